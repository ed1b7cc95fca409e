"""Topics that the node publishes and records: each message is serialised once, for DDS and for the recorder."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, ReliabilityPolicy, qos_check_compatible
from rclpy.serialization import serialize_message

from constrained_sim.exceptions import InvalidValue
from constrained_sim.ros.bag import RecordedTopic
from constrained_sim.ros.cdr import serialise
from constrained_sim.ros.recorder import Recorder

RELIABLE = QoSProfile(depth=400, reliability=ReliabilityPolicy.RELIABLE)
"""Deep enough for a subscriber that is held up while steps are run as fast as they can be."""

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)

FLUSH_PERIOD = 0.01
"""[s] of wall-clock time that what was published may wait for its way to the recorder."""

SHOWN = 60
"""Number of characters of a refused name that are shown."""

Sink = Callable[[bytes, int], None]
"""Takes a serialised message and its stamp [ns]."""


class Topics(Protocol):
    """Where messages go: to DDS and a recorder, or to a comparison with a recording."""

    def open(self, kind: type, name: str, qos: QoSProfile = RELIABLE) -> Topic:
        """Return the topic `name` for messages of `kind`.

        Raises:
            InvalidValue: a name that :meth:`check` refuses.
        """

    def check(self, name: str) -> None:
        """Check that a topic `name` can be opened.

        Raises:
            InvalidValue: ROS takes no such name, or the topic is open already.
        """

    def close(self, name: str) -> None:
        """Close the topic `name`."""

    def warn(self, text: str) -> None:
        """Tell the user of a topic that cannot be."""

    @property
    def records(self) -> bool:
        """Whether there is a recording."""

    def record(self, kind: type, name: str, message: Any, stamp: int) -> None:
        """Record `message` of `kind` without publishing it; only where there is a recording."""

    def flush(self) -> None:
        """Let what was sent be recorded."""

    def has_room(self, timeout: float) -> bool:
        """Return whether a simulation may go on; where the recorder holds it up, wait up to `timeout` [s]."""

    @property
    def lost(self) -> int:
        """Number of messages that could not be recorded."""

    @property
    def problem(self) -> str:
        """What keeps messages from being recorded; empty: nothing does."""


class Topic:
    """One topic; its bytes depend on what is in the messages only."""

    def __init__(
        self,
        sinks: list[Sink],
        subscribers: Callable[[], list[str]] = list,
        listeners: Callable[[], int] = lambda: 0,
        always: bool = True,
    ) -> None:
        """Send to `sinks`, `always` or while there are listeners.

        Args:
            sinks: where serialised messages go; the first one publishes.
            subscribers: names the nodes that subscribe.
            listeners: counts the subscriptions that are connected.
            always: send whether anybody listens or not.
        """
        self._sinks, self._subscribers, self._listeners, self._always = sinks, subscribers, listeners, always
        self._greeted = 0
        self._last = b""

    @property
    def subscriber_names(self) -> list[str]:
        """Names of the nodes that subscribe, one for each subscription that can connect."""
        return self._subscribers()

    def is_connected_to(self, node_name: str) -> bool:
        """Return whether the node `node_name` subscribes, and all subscriptions that are known are connected."""
        names = self._subscribers()
        return node_name in names and self._listeners() >= len(names)

    @property
    def is_wanted(self) -> bool:
        """Whether a message would reach anybody; else none need be made."""
        return self._always or self._listeners() > 0

    @property
    def has_newcomers(self) -> bool:
        """Whether more subscriptions are connected than at the last message or look."""
        before, self._greeted = self._greeted, self._listeners()
        return self._greeted > before

    def send(self, message: Any, stamp: int) -> None:
        """Send `message`, if it is wanted."""
        if self.is_wanted:
            self.send_bytes(serialise(message), stamp)
        else:
            self._greeted = 0

    def send_bytes(self, data: bytes, stamp: int) -> None:
        """Send a serialised message, if it is wanted."""
        self._last, self._greeted = data, self._listeners()
        if self._always or self._greeted:
            for sink in self._sinks:
                sink(data, stamp)

    def repeat(self) -> None:
        """Publish the last message again, or for the first time if nobody wanted it; it is not recorded again."""
        self._sinks[0](self._last, 0)


class NodeTopics:
    """Topics of a node, recorded where there is a recorder."""

    def __init__(self, node: Node, recorder: Recorder | None) -> None:
        """Publish from `node`."""
        self._node, self._recorder = node, recorder
        self._publishers: dict[str, Publisher] = {}
        self._flushed = 0.0
        self._recorded = functools.cache(self._recorded_topic)

    def open(self, kind: type, name: str, qos: QoSProfile = RELIABLE) -> Topic:
        """Return the topic `name` for messages of `kind`.

        Raises:
            InvalidValue: a name that :meth:`check` refuses.
        """
        self.check(name)
        publisher = self._node.create_publisher(kind, name, qos)
        self._publishers[publisher.topic_name] = publisher
        sinks: list[Sink] = [lambda data, stamp: publisher.publish(data)]
        always = self._recorder is not None or qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        if self._recorder is not None:
            sinks.append(self._recorder.sink(self._recorded_topic(kind, name, qos)))

        def subscribers() -> list[str]:
            publishers = self._node.get_publishers_info_by_topic(publisher.topic_name)
            mine = [info.qos_profile for info in publishers if info.node_name == self._node.get_name()]
            known = self._node.get_subscriptions_info_by_topic(publisher.topic_name)
            return [info.node_name for info in known if all(_can_connect(own, info.qos_profile) for own in mine)]

        return Topic(sinks, subscribers, publisher.get_subscription_count, always)

    def check(self, name: str) -> None:
        """Check that a topic `name` can be opened.

        Raises:
            InvalidValue: ROS takes no such name, or the topic is open already.
        """
        shown = name if len(name) <= SHOWN else f"{name[:SHOWN]}... ({len(name)} characters)"
        try:
            resolved = self._node.resolve_topic_name(name)
        except RuntimeError as error:
            why = str(error).partition(": ")[2].partition(", at ")[0]
            raise InvalidValue("topic", shown, f"what ROS takes as a name ({why})") from None
        if resolved in self._publishers:
            raise InvalidValue("topic", shown, f"one that nothing else is published on, unlike {resolved}")

    def close(self, name: str) -> None:
        """Close the topic `name`: its publisher is destroyed."""
        self._node.destroy_publisher(self._publishers.pop(self._node.resolve_topic_name(name)))

    def warn(self, text: str) -> None:
        """Tell the user of a topic that cannot be."""
        self._node.get_logger().warning(text)

    @property
    def records(self) -> bool:
        """Whether there is a recorder."""
        return self._recorder is not None

    def record(self, kind: type, name: str, message: Any, stamp: int) -> None:
        """Record `message` of `kind` without publishing it."""
        if self._recorder is not None:
            self._recorder.write(self._recorded(kind, name), stamp, serialize_message(message))

    def flush(self) -> None:
        """Hand what was published to the recorder, unless that was done a moment ago: to wake it takes long."""
        now = time.monotonic()
        if self._recorder is not None and now - self._flushed > FLUSH_PERIOD:
            self._flushed = now
            self._recorder.flush()

    def _recorded_topic(self, kind: type, name: str, qos: QoSProfile = RELIABLE) -> RecordedTopic:
        return RecordedTopic(self._node.resolve_topic_name(name), type_name(kind), offered(qos))

    @property
    def lost(self) -> int:
        """Number of messages that the recorder could not take."""
        return self._recorder.lost if self._recorder is not None else 0

    def has_room(self, timeout: float) -> bool:
        """Return whether the simulation may go on; where the recorder holds it up, wait up to `timeout` [s]."""
        return self._recorder is None or self._recorder.has_room(timeout)

    @property
    def problem(self) -> str:
        """What keeps messages from being recorded; empty: nothing does."""
        return self._recorder.problem if self._recorder is not None else ""


def _can_connect(publisher: QoSProfile, subscription: QoSProfile) -> bool:
    return qos_check_compatible(publisher, subscription)[0] != QoSCompatibility.ERROR


def offered(qos: QoSProfile) -> str:
    """Return `qos` as rosbag2 keeps it: a YAML list of one profile, enumerations of rmw by number, times in two parts.

    Source: rosbag2_storage, qos.cpp; every version of its metadata can be read with numbers.
    """
    profile = qos.get_c_qos_profile().to_dict()
    for name in ("deadline", "lifespan", "liveliness_lease_duration"):
        seconds, nanoseconds = divmod(profile[name].nanoseconds, 10**9)
        profile[name] = {"sec": seconds, "nsec": nanoseconds}
    return json.dumps([profile])


def type_name(kind: type) -> str:
    """Return the name of a message type, as ``std_msgs/msg/String``."""
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"

"""Topics of the node: each message is serialised once, for DDS and for the recorder."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, qos_check_compatible
from rclpy.serialization import serialize_message

from constrained_sim.exceptions import InvalidValue
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.ros.bag import RecordedTopic
from constrained_sim.ros.message_types import published_type, type_name
from constrained_sim.ros.recorder import Recorder
from constrained_sim.ros.topic_choice import TopicChoice
from constrained_sim.ros.topics import RELIABLE, Topic

FLUSH_PERIOD = 0.01
"""[s] of wall-clock time that what was published may wait for its way to the recorder."""

SHOWN = 60
"""Number of characters of a refused name that are shown."""


class NodeTopics:
    """Topics of a node, recorded where there is a recorder."""

    def __init__(
        self,
        node: Node,
        recorder: Recorder | None,
        recorded: TopicChoice | None = None,
        published_qos: Mapping[str, QoSProfile] = MappingProxyType({}),
    ) -> None:
        """Open none yet.

        Args:
            node: publishes.
            recorder: records, where there is one.
            recorded: chooses what is recorded; None: everything.
            published_qos: what is offered on topics of these names, though a recording keeps what :meth:`open` is told.
        """
        self._published_qos = published_qos
        self._node, self._recorder, self._choice = node, recorder, recorded or TopicChoice()
        self._opened: set[str] = set()
        self._publishers: dict[str, Publisher] = {}
        self._flushed = 0.0
        self._recorded = functools.cache(self._recorded_topic)

    def open(
        self, kind: type, name: str, qos: QoSProfile = RELIABLE, publish: bool = True, record: bool = True
    ) -> Topic:
        """Return the topic `name` for messages of `kind`; without `publish` they are only recorded.

        Without `record` they are never recorded.

        Raises:
            InvalidValue: a name that :meth:`check` refuses.
        """
        self.check(name)
        if record:
            self._opened.add(name)
        chosen = record and name in self._choice
        sink = self._recorder.sink(self._recorded_topic(kind, name, qos)) if self._recorder and chosen else None
        published = published_type(kind) if publish else None
        if published is None:
            return Topic(None, sink, always=sink is not None)
        publisher = self._node.create_publisher(published, name, self._published_qos.get(name, qos))
        self._publishers[publisher.topic_name] = publisher
        always = sink is not None or qos.durability == DurabilityPolicy.TRANSIENT_LOCAL

        def subscribers() -> list[str]:
            publishers = self._node.get_publishers_info_by_topic(publisher.topic_name)
            mine = [info.qos_profile for info in publishers if info.node_name == self._node.get_name()]
            known = self._node.get_subscriptions_info_by_topic(publisher.topic_name)
            return [info.node_name for info in known if all(_can_connect(own, info.qos_profile) for own in mine)]

        return Topic(
            lambda data, stamp: publisher.publish(data), sink, subscribers, publisher.get_subscription_count, always
        )

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

    def check_recorded(self) -> None:
        """Check that all topics are there that are to be recorded.

        Raises:
            ConfigError: one is not.
        """
        self._choice.check(self._opened)

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
        seconds, nanoseconds = divmod(profile[name].nanoseconds, NANOSECONDS)
        profile[name] = {"sec": seconds, "nsec": nanoseconds}
    return json.dumps([profile])

"""Topics, and what they need of whoever publishes them: a node, or a comparison with a recording."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from constrained_sim.ros.cdr import serialise

RELIABLE = QoSProfile(depth=400, reliability=ReliabilityPolicy.RELIABLE)
"""Deep enough for a subscriber that is held up while steps are run as fast as they can be."""

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)

REQUESTS = QoSProfile(history=HistoryPolicy.KEEP_ALL, reliability=ReliabilityPolicy.RELIABLE)
"""Of services: of the requests that come faster than they are answered, those of ROS keep ten, and lose the others."""

SETTLE = 0.5
"""[s] after which a newcomer is told again: what comes before it knows of the publisher is lost to it."""

Sink = Callable[[bytes, int], None]
"""Takes a serialised message and its stamp [ns]."""


class Topics(Protocol):
    """Where messages go: to DDS and a recorder, or to a comparison with a recording."""

    def open(
        self, kind: type, name: str, qos: QoSProfile = RELIABLE, publish: bool = True, record: bool = True
    ) -> Topic:
        """Return the topic `name` for messages of `kind`; without `publish` they are only recorded.

        Without `record` they are never recorded.

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
        publish: Sink | None,
        record: Sink | None = None,
        subscribers: Callable[[], list[str]] = list,
        listeners: Callable[[], int] = lambda: 0,
        always: bool = True,
    ) -> None:
        """Send `always`, or while there are listeners.

        Args:
            publish: takes what is for subscribers; None: it cannot be published.
            record: takes what is for the recording; None: there is none.
            subscribers: names the nodes that subscribe.
            listeners: counts the subscriptions that are connected.
            always: send whether anybody listens or not.
        """
        self._sinks = [sink for sink in (publish, record) if sink is not None]
        self._publish, self._subscribers, self._listeners, self._always = publish, subscribers, listeners, always
        self._told = 0
        self._tell_again: float | None = None

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
        """Whether there are subscriptions that no message has reached since they were connected.

        They are told of twice: more are connected than at the last message or look, or were so :data:`SETTLE` ago.
        """
        before, self._told, now = self._told, self._listeners(), time.monotonic()
        if self._told > before:
            self._tell_again = now + SETTLE
            return True
        if self._tell_again is None or now < self._tell_again:
            return False
        self._tell_again = None
        return True

    def offer(self, make: Callable[[], bytes | None], stamp: int) -> None:
        """Send the serialised message that `make` returns, if one is wanted; None: there is none."""
        self._told = self._listeners()
        data = make() if self._always or self._told else None
        if data is not None:
            for sink in self._sinks:
                sink(data, stamp)

    def send(self, message: Any, stamp: int) -> None:
        """Send `message`, if it is wanted."""
        self.offer(lambda: serialise(message), stamp)

    def send_bytes(self, data: bytes, stamp: int) -> None:
        """Send a serialised message, if it is wanted."""
        self.offer(lambda: data, stamp)

    def mute(self) -> None:
        """Publish no longer; the recording goes on."""
        if self._publish is not None:
            self._sinks.remove(self._publish)
        self._publish, self._listeners = None, lambda: 0

    def repeat(self, data: bytes) -> None:
        """Publish what was sent before, or was wanted by nobody, once more; it is not recorded again."""
        if self._publish is not None:
            self._publish(data, 0)

    def greet(self, make: Callable[[], bytes | None]) -> None:
        """Repeat the message that `make` returns if there are newcomers; None: there is none."""
        if self.has_newcomers and (data := make()) is not None:
            self.repeat(data)

"""Who publishes /clock: time has one source, and a second one would let it jump back and forth."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from rclpy.duration import Duration, Infinite
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.topic_endpoint_info import TopicEndpointInfo

from constrained_sim.ros.topics import RELIABLE

CLOCK = "/clock"

DISCOVERY = 0.5
"""[s] of wall-clock time after which a node usually knows the publishers that were there before it."""

LOOK = 0.02
"""[s] of wall-clock time between two looks for the names of publishers, which are discovered after them."""

UNKNOWN = "_UNKNOWN_"
"""In what ROS says of a publisher whose node it has not discovered."""


class ClockPublisher(NamedTuple):
    """A publisher of the clock as all nodes see it; the first in order keeps the clock.

    Attributes:
        since: [ns] of wall-clock time when it began; 0: a publisher of another program, which always was first.
        gid: its identifier.
        node: full name of its node.
    """

    since: int
    gid: bytes
    node: str


class ClockOwner:
    """Decides whether this node publishes /clock.

    With ``publish_clock: auto`` it does unless somebody else did before. Discovery may take seconds on a busy machine,
    so that two nodes publish for a moment. Which of them began first is then clear to both: the lifespan that a
    publisher offers is the wall-clock time of its beginning. DDS tells the lifespan to everybody, and samples that live
    for more than 50 years never expire.

    Attributes:
        publishes: whether this node publishes the clock.
        qos: what the publisher of this node offers.
    """

    def __init__(self, node: Node, mode: str, discovering_since: float) -> None:
        """Look for others, but for those that have not been discovered.

        Args:
            node: this one; it has no publisher of /clock yet.
            mode: ``auto``, ``always`` or ``never``.
            discovering_since: when it began to discover others, by ``time.monotonic()``.
        """
        self._node, self._mode, self._told = node, mode, 0
        if mode == "auto":
            time.sleep(max(0.0, discovering_since + DISCOVERY - time.monotonic()))
        others = self._without_ours(self._all())
        until = time.monotonic() + DISCOVERY
        while mode == "auto" and any(UNKNOWN in other.node for other in others) and time.monotonic() < until:
            time.sleep(LOOK)
            others = self._without_ours(self._all())
        self.publishes = mode == "always" or (mode == "auto" and not others)
        self.qos = QoSProfile(
            depth=RELIABLE.depth, reliability=RELIABLE.reliability, lifespan=Duration(nanoseconds=time.time_ns())
        )
        if mode == "auto" and others:
            self._tell_of_yielding(others)

    def _all(self) -> list[ClockPublisher]:
        return sorted(map(_clock_publisher, self._node.get_publishers_info_by_topic(CLOCK)))

    def _without_ours(self, publishers: list[ClockPublisher]) -> list[ClockPublisher]:
        return [found for found in publishers if found.node != self._node.get_fully_qualified_name()]

    def look(self, leave: Callable[[], None]) -> str:
        """Return what there is to say of others who publish the clock, empty: nothing.

        Args:
            leave: ends the publishing of this node.
        """
        everyone = self._all()
        others = self._without_ours(everyone)
        if not self.publishes or not others:
            self._told = 0
            return ""
        if self._mode == "auto" and everyone[0] in others and len(others) < len(everyone):
            self.publishes = False
            leave()
            return self._tell_of_yielding(others)
        text = f"time jumps: {_names(others)} publishes {CLOCK} too; publish_clock: never leaves it to them"
        if len(others) > self._told:
            self._node.get_logger().warning(text)
        self._told = len(others)
        return text

    def _tell_of_yielding(self, others: list[ClockPublisher]) -> str:
        text = (
            f"{_names(others)} publishes {CLOCK} already: this node does not (publish_clock: always makes it, never "
            "says that it need not)"
        )
        self._node.get_logger().warning(text)
        return text


def _clock_publisher(found: TopicEndpointInfo) -> ClockPublisher:
    lifespan = found.qos_profile.lifespan
    since = 0 if lifespan == Infinite else lifespan.nanoseconds
    return ClockPublisher(since, bytes(found.endpoint_gid), f"{found.node_namespace.rstrip('/')}/{found.node_name}")


def _names(publishers: list[ClockPublisher]) -> str:
    return ", ".join(found.node for found in publishers)

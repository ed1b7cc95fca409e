"""Who publishes /clock: time has one source, and a second one would let it jump back and forth."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from rclpy.duration import Duration, Infinite
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rosgraph_msgs.msg import Clock

from constrained_sim.ros.inbox import Inbox
from constrained_sim.ros.topics import RELIABLE

CLOCK = "/clock"

DISCOVERY = 0.5
"""[s] of wall-clock time after which a node usually knows the publishers that were there before it."""

LOOK = 0.02
"""[s] of wall-clock time between two looks for the names of publishers, which are discovered after them."""

SAME = 1_000
"""[ns] within which two beginnings are one: the middleware may round what a publisher offers."""

GREETING = 2.0
"""[s] of wall-clock time within which a simulator that lives is heard by a new listener, even a paused one."""

LEASE = 30.0
"""[s] of wall-clock time after which DDS lists nothing any more of a process that was killed."""

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
    for more than 50 years never expire. By it a node also tells its own publisher from that of a namesake.

    Where the owner ends, nobody takes over: time would jump for those who follow it, and the owner may come back.

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
        self._name = node.get_fully_qualified_name()
        self._silent: set[bytes] = set()
        self._silent_until = 0.0
        others = self._discover(discovering_since) if mode == "auto" else []
        self._since = time.time_ns()
        self.publishes = mode == "always" or (mode == "auto" and not others)
        self.qos = QoSProfile(
            depth=RELIABLE.depth, reliability=RELIABLE.reliability, lifespan=Duration(nanoseconds=self._since)
        )
        if others:
            self._tell_of_yielding(others)

    def _discover(self, since: float) -> list[ClockPublisher]:
        """Return the others that publish the clock, once they are known by name, and namesakes found alive."""
        time.sleep(max(0.0, since + DISCOVERY - time.monotonic()))
        until = time.monotonic() + DISCOVERY
        while any(UNKNOWN in other.node for other in self._all()) and time.monotonic() < until:
            time.sleep(LOOK)
        namesakes = {other.gid for other in self._all() if other.node == self._name}
        if namesakes and not self._hears_a_clock():
            self._silent, self._silent_until = namesakes, time.monotonic() + LEASE
        return self._all()

    def _hears_a_clock(self) -> bool:
        """Return whether somebody publishes the clock now: a process that was killed is listed for a while."""
        heard: list[bytes] = []
        inbox = Inbox(self._node)
        inbox.subscribe(Clock, CLOCK, heard.append, QoSProfile(depth=1), serialised=True)
        until = time.monotonic() + GREETING
        while not heard and (left := until - time.monotonic()) > 0.0:
            inbox.wait(left)
            inbox.take_all()
        for subscription in inbox.subscriptions:
            self._node.destroy_subscription(subscription)
        return bool(heard)

    def _all(self) -> list[ClockPublisher]:
        """Return all publishers of the clock, but for those of namesakes that seem to have been killed."""
        silent = self._silent if time.monotonic() < self._silent_until else set()
        found = map(_clock_publisher, self._node.get_publishers_info_by_topic(CLOCK))
        return sorted(publisher for publisher in found if publisher.gid not in silent)

    def _is_ours(self, found: ClockPublisher) -> bool:
        return found.node == self._name and (not found.since or abs(found.since - self._since) < SAME)

    def look(self, leave: Callable[[], None]) -> str:
        """Return what there is to say of others who publish the clock, or do so no longer; empty: nothing.

        Args:
            leave: ends the publishing of this node.
        """
        everyone = self._all()
        others = [found for found in everyone if not self._is_ours(found)]
        if self._mode == "auto" and not self.publishes and not others:
            return self._tell_of_the_end()
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

    def _tell_of_the_end(self) -> str:
        text = (
            f"nobody publishes {CLOCK} any more: nodes with use_sim_time stand still; start the simulator that did "
            "again, or else this one"
        )
        if not self._told:
            self._node.get_logger().warning(text)
        self._told = 1
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

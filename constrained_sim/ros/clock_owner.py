"""Who publishes /clock: time has one source, and a second one would let it jump back and forth."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.node import Node

CLOCK = "/clock"

DISCOVERY = 0.5
"""[s] of wall-clock time after which a node knows the publishers that were there before it."""


LOOK = 0.02
"""[s] of wall-clock time between two looks for the names of publishers, which are discovered after them."""

UNKNOWN = "_UNKNOWN_"
"""In what ROS says of a publisher whose node it has not discovered."""


class ClockOwner:
    """Decides whether this node publishes /clock.

    With ``publish_clock: auto`` it does unless somebody else did before. Of two that began at once the one with the
    lesser identifier goes on.
    """

    def __init__(self, node: Node, mode: str, since: float) -> None:
        """Look for others, but for those that have not been discovered.

        Args:
            node: this one; it has no publisher of /clock yet.
            mode: ``auto``, ``always`` or ``never``.
            since: when it began to discover others, by ``time.monotonic()``.
        """
        self._node, self._mode, self._told = node, mode, 0
        if mode == "auto":
            time.sleep(max(0.0, since + DISCOVERY - time.monotonic()))
        others = self._others()
        until = time.monotonic() + DISCOVERY
        while mode == "auto" and any(UNKNOWN in name for name in others.values()) and time.monotonic() < until:
            time.sleep(LOOK)
            others = self._others()
        self.publishes = mode == "always" or (mode == "auto" and not others)
        if mode == "auto" and others:
            self._tell_of_yielding(others)

    def _others(self) -> dict[bytes, str]:
        """Return the names of others that publish the clock, by their identifiers."""
        return {gid: name for gid, name in self._all().items() if name != self._node.get_fully_qualified_name()}

    def _all(self) -> dict[bytes, str]:
        found = self._node.get_publishers_info_by_topic(CLOCK)
        return {bytes(end.endpoint_gid): f"{end.node_namespace.rstrip('/')}/{end.node_name}" for end in found}

    def look(self, leave: Callable[[], None]) -> str:
        """Return what there is to say of others who publish the clock, empty: nothing.

        Args:
            leave: ends the publishing of this node.
        """
        everyone, others = self._all(), self._others()
        if not self.publishes or not others:
            self._told = 0
            return ""
        mine = [gid for gid in everyone if gid not in others]
        if self._mode == "auto" and mine and min(everyone) not in mine:
            self.publishes = False
            leave()
            return self._tell_of_yielding(others)
        text = f"time jumps: {', '.join(others.values())} publishes {CLOCK} too; publish_clock: never leaves it to them"
        if len(others) > self._told:
            self._node.get_logger().warning(text)
        self._told = len(others)
        return text

    def _tell_of_yielding(self, others: dict[bytes, str]) -> str:
        text = (
            f"{', '.join(others.values())} publishes {CLOCK} already: this node does not (publish_clock: always makes "
            "it, never says that it need not)"
        )
        self._node.get_logger().warning(text)
        return text

"""Copies of topics for those who look at the simulation: the newest message only, as often as an eye can follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from constrained_sim.ros.topics import Topic, Topics
from constrained_sim.viewer.frame import PICTURE_PERIOD

SAMPLED = "~/sampled/"
"""What the name of a copy begins with."""


class SampledTopics:
    """Publishes copies of topics at most once in the time of a picture; they are never recorded.

    A subscriber to a topic itself costs the simulation, and whoever it shares the processors with, a message in every
    control period.
    """

    def __init__(self, topics: Topics, copied: Mapping[str, tuple[type, Callable[[], bytes | None]]]) -> None:
        """Open a copy of each topic; `copied` has its type, and what makes its message, None where there is none."""
        self._copies: list[tuple[Topic, Callable[[], bytes | None]]] = [
            (topics.open(kind, SAMPLED + name, record=False), make) for name, (kind, make) in copied.items()
        ]
        self._next, self._is_sent = 0.0, True

    def send(self, stamp: int) -> None:
        """Take note of what is true at `stamp` [ns], and publish it if its time has come."""
        self._is_sent = False
        self._send_due(stamp)

    def greet(self, stamp: int) -> None:
        """Publish what is true again for those who have begun to listen, and what waits for its time.

        In this order: who is found by :meth:`Topic.offer` is told once only, and may not be connected yet.
        """
        for copy, make in self._copies:
            copy.greet(make)
        self._send_due(stamp)

    def _send_due(self, stamp: int) -> None:
        if self._is_sent or (now := time.monotonic()) < self._next:
            return
        self._next, self._is_sent = now + PICTURE_PERIOD, True
        for copy, make in self._copies:
            copy.offer(make, stamp)

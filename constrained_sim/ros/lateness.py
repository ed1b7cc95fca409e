"""Real time that is not held for long: the counter of late periods alone is seen by nobody who does not look."""

from __future__ import annotations

from rclpy.node import Node

from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.world import World

SHARE = 0.1
"""Of the periods between two looks: so many late ones are no accident."""

LONG = 5
"""Looks, one a second, with as many late periods after which a warning tells of them."""


class Lateness:
    """Looks, once a second, whether realtime mode keeps up with the wall clock."""

    def __init__(self, node: Node, world: World, outputs: Outputs) -> None:
        """Have seen nothing yet."""
        self._node, self._world, self._outputs = node, world, outputs
        self._late, self._stamp, self._looks = 0, world.stamp, 0

    def look(self) -> str:
        """Return what there is to say of late periods, empty: nothing; a warning in the log says it when they begin."""
        late, stamp = self._outputs.counters.late_periods, self._world.stamp
        more, periods = late - self._late, (stamp - self._stamp) / self._world.period_ns
        self._late, self._stamp = late, stamp
        self._looks = self._looks + 1 if more > SHARE * abs(periods) else 0
        if self._looks < LONG:
            return ""
        text = (
            f"real time is not held for {self._looks} s: {more} of the last {periods:.0f} periods began late; "
            "take a smaller real_time_factor, a longer control_period, or clock_mode lockstep"
        )
        if self._looks == LONG:
            self._node.get_logger().warning(text)
        return text

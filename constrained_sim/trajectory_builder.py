"""Builds a trajectory, step by step."""

from __future__ import annotations

from dataclasses import replace

from constrained_sim.robot import Robot
from constrained_sim.step_result import StepResult
from constrained_sim.trajectory import Setup, Trajectory


class TrajectoryBuilder:
    """Gathers what a run does, step by step or many steps at once."""

    def __init__(self, robot: Robot) -> None:
        """Begin with no step of `robot`."""
        self._robot = robot
        self._parts: list[Trajectory] = []
        self._results: list[StepResult] = []

    def add_step(self, result: StepResult) -> None:
        """Take a step."""
        self._results.append(result)

    def add_part(self, part: Trajectory) -> None:
        """Take several steps."""
        self._gather()
        self._parts.append(part)

    def built(self, setup: Setup) -> Trajectory:
        """Return all of it."""
        if not self._parts:
            self._parts.append(self._of_results())
        self._gather()
        return replace(Trajectory.joined(self._parts), setup=setup)

    def _gather(self) -> None:
        if self._results:
            self._parts.append(self._of_results())

    def _of_results(self) -> Trajectory:
        sizes = self._robot.nq, self._robot.nv, self._robot.nu
        part = Trajectory.from_results(self._results, *sizes)
        self._results.clear()
        return part

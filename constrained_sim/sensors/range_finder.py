"""RangeFinder: distance to the next surface along a beam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.collision.ray import surroundings_of
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, finite_array, number, unit_vector


class RangeReading(NamedTuple):
    """One reading of a :class:`RangeFinder`.

    Attributes:
        range: (1,) [m]; infinity: nothing within reach; minus infinity: nearer than can be measured (REP 117).
    """

    range: Array


@dataclass(frozen=True)
class RangeFinder(Sensor):
    """A range finder with one thin beam.

    It sees the bodies and planes of the scene, and the collision geometry of the robot and of the objects beside it.
    The body that it is on is left out, and so are the planes of declared contacts. It reads at the end of the step.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame that carries the sensor; the world too.
        rate: readings per simulated second [Hz]; 0: one every control period.
        origin: (3,) where the beam begins [m], in the link.
        direction: (3,) of the beam, the link's axes; normalised on creation.
        min_range: distance below which it reads minus infinity [m].
        max_range: distance above which it reads infinity [m].
        range_noise: standard deviation [m].
    """

    name: str
    link: str
    rate: float = 0.0
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    direction: tuple[float, float, float] = (1.0, 0.0, 0.0)
    min_range: float = 0.0
    max_range: float = 10.0
    range_noise: float = 0.0

    kind = "range_finder"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        of = f"of sensor {self.name!r}"
        object.__setattr__(self, "origin", tuple(finite_array(f"origin {of}", self.origin, (3,)).tolist()))
        object.__setattr__(self, "direction", tuple(unit_vector(f"direction {of}", self.direction).tolist()))
        lower = number(f"min_range {of}", self.min_range, 0.0)
        if number(f"max_range {of}", self.max_range, 0.0) <= lower:
            raise InvalidValue(f"max_range {of}", self.max_range, f"more than min_range, {lower:g} m")
        self._check_errors("range")

    def exact(self, robot: Robot, result: StepResult) -> RangeReading:
        """Return the distance on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        return RangeReading(self._within_reach(self._distance(robot, result)))

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> RangeReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        error = self.range_noise * generator.standard_normal()
        return RangeReading(self._within_reach(self._distance(robot, result) + error))

    def _distance(self, robot: Robot, result: StepResult) -> float:
        joint, placement = robot.link_placement(self.link)
        state = result.state
        placements = kinematics_at(robot, state.q, state.t).placements
        here = placements[joint]
        start = placement.act(np.array(self.origin)) @ here[:3] + here[3]
        direction = placement.rotation @ np.array(self.direction) @ here[:3]
        return surroundings_of(robot, result.collisions).distance(placements, start, direction, joint)

    def _within_reach(self, distance: float) -> Array:
        """Return (1,) the `distance` [m] if it can be measured."""
        if distance > self.max_range:
            return np.array([np.inf])
        return np.array([distance if distance >= self.min_range else -np.inf])

"""RangeFinder: distance to the next surface along a beam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.robot import Robot
from constrained_sim.sensors.beams import BeamSensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, finite_array, unit_vector


class RangeReading(NamedTuple):
    """One reading of a :class:`RangeFinder`.

    Attributes:
        range: (1,) [m]; infinity: nothing within reach; minus infinity: nearer than can be measured (REP 117).
    """

    range: Array


@dataclass(frozen=True)
class RangeFinder(BeamSensor):
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
        self._check_beams()

    def exact(self, robot: Robot, result: StepResult) -> RangeReading:
        """Return the distance on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        return RangeReading(self._within_reach(self._distance(robot, result)))

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> RangeReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        error = self.range_noise * generator.standard_normal()
        return RangeReading(self._within_reach(self._distance(robot, result) + error))

    def _distance(self, robot: Robot, result: StepResult) -> Array:
        """Return the distance (1,) [m]."""
        return self._distances(robot, result, np.array(self.origin), np.array([self.direction]))

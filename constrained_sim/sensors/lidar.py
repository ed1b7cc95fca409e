"""Lidar: distances to the next surfaces along a fan of beams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot
from constrained_sim.sensors.beams import BeamSensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, number, whole_number

MOST_BEAMS = 100_000
"""Beams of a scan: more than any scanner has, and a message of 400 kB."""


class LidarReading(NamedTuple):
    """One reading of a :class:`Lidar`.

    Attributes:
        ranges: (beams,) [m], from the first angle to the last; infinity: nothing within reach; minus infinity: nearer
            than can be measured (REP 117).
    """

    ranges: Array


@dataclass(frozen=True)
class Lidar(BeamSensor):
    """A scanner in the x-y plane of a frame, whose beams all measure at the end of the step.

    A beam at the angle a goes along (cos a, sin a, 0) of the frame, as sensor_msgs/LaserScan has it. It sees what a
    :class:`RangeFinder` sees.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame that carries the sensor, whose origin the beams begin at; the world too.
        rate: scans per simulated second [Hz]; 0: one every control period.
        min_angle: of the first beam [rad].
        max_angle: of the last beam [rad].
        beams: number of beams, equally far apart.
        min_range: distance below which a beam reads minus infinity [m].
        max_range: distance above which it reads infinity [m].
        range_noise: standard deviation [m], of each beam by itself.
    """

    name: str
    link: str
    rate: float = 0.0
    min_angle: float = -0.75 * np.pi
    max_angle: float = 0.75 * np.pi
    beams: int = 271
    min_range: float = 0.0
    max_range: float = 10.0
    range_noise: float = 0.0

    kind = "lidar"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        of = f"of sensor {self.name!r}"
        first = number(f"min_angle {of}", self.min_angle, -2.0 * np.pi, 2.0 * np.pi)
        whole_number(f"beams {of}", self.beams, 2, MOST_BEAMS)
        if not first < number(f"max_angle {of}", self.max_angle, -2.0 * np.pi, 2.0 * np.pi) <= first + 2.0 * np.pi:
            raise InvalidValue(f"max_angle {of}", self.max_angle, f"from min_angle, {first:g} rad, to a turn beyond it")
        self._check_beams()

    @property
    def angle_increment(self) -> float:
        """Angle from one beam to the next [rad]."""
        return (self.max_angle - self.min_angle) / (self.beams - 1)

    def exact(self, robot: Robot, result: StepResult) -> LidarReading:
        """Return the distances on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        return LidarReading(self._within_reach(self._scan(robot, result)))

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> LidarReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        errors = self.range_noise * generator.standard_normal(self.beams)
        return LidarReading(self._within_reach(self._scan(robot, result) + errors))

    def _scan(self, robot: Robot, result: StepResult) -> Array:
        """Return the distances (beams,) [m]."""
        angles = np.linspace(self.min_angle, self.max_angle, self.beams)
        directions = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(self.beams)])
        return self._distances(robot, result, np.zeros(3), directions)

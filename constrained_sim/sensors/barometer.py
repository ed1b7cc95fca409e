"""Barometer: the pressure of the air at a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, number

SEA_PRESSURE, SEA_TEMPERATURE = 101_325.0, 288.15
"""Of the standard atmosphere at mean sea level [Pa], [K]."""

LAPSE_RATE, EXPONENT = 6.5e-3, 9.80665 / (287.05287 * 6.5e-3)
"""By how much its temperature falls [K/m], and gravity over gas constant and that."""

TROPOSPHERE = 11_000.0
"""Height up to which it is so [m]."""


class BarometerReading(NamedTuple):
    """One reading of a :class:`Barometer`.

    Attributes:
        pressure: (1,) of the air [Pa].
    """

    pressure: Array


@dataclass(frozen=True)
class Barometer(Sensor):
    """A barometer at the origin of a frame, in the standard atmosphere, at the end of the step.

    ``p = 101325 Pa (1 - 0.0065 h / 288.15)^5.2559``, with the height h above mean sea level [m], up to 11 km: higher up
    it reads the pressure there (ISO 2533, ICAO Doc 7488). The air has no other effect.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame that carries the sensor; the world too.
        rate: readings per simulated second [Hz]; 0: one every control period.
        altitude: height of the world's origin above mean sea level [m].
        pressure_noise: standard deviation [Pa].
    """

    name: str
    link: str
    rate: float = 0.0
    altitude: float = 0.0
    pressure_noise: float = 0.0

    kind = "barometer"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        number(f"altitude of sensor {self.name!r}", self.altitude, -TROPOSPHERE, TROPOSPHERE)
        self._check_errors("pressure")

    def exact(self, robot: Robot, result: StepResult) -> BarometerReading:
        """Return the pressure on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        frame = self._frame(kinematics_at(robot, result.state.q, result.state.t))
        height = self.altitude + float(frame.translation[2])
        ratio = 1.0 - LAPSE_RATE * min(height, TROPOSPHERE) / SEA_TEMPERATURE
        return BarometerReading(np.array([SEA_PRESSURE * ratio**EXPONENT]))

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> BarometerReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        error = self.pressure_noise * generator.standard_normal(1)
        return BarometerReading(self.exact(robot, result).pressure + error)

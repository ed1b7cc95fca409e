"""Magnetometer: the magnetic field of the world in the axes of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor, with_errors
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, finite_array


class MagnetometerReading(NamedTuple):
    """One reading of a :class:`Magnetometer`.

    Attributes:
        field: (3,) flux density [T], the frame's axes.
    """

    field: Array


@dataclass(frozen=True)
class Magnetometer(Sensor):
    """A magnetometer in a uniform field, at the end of the step: ``R^T field``, with the frame's rotation R.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame that carries the sensor; the world too.
        rate: readings per simulated second [Hz]; 0: one every control period.
        world_field: (3,) flux density [T], world axes: x east, y north, z up (REP 103). Left out, that of a place in
            central Europe, which points down by 65 degrees.
        field_noise: standard deviation of each component [T].
        field_bias: (3,) constant error [T], the frame's axes.
    """

    name: str
    link: str
    rate: float = 0.0
    world_field: tuple[float, float, float] = (0.0, 2.0e-5, -4.3e-5)
    field_noise: float = 0.0
    field_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)

    kind = "magnetometer"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        field = finite_array(f"world_field of sensor {self.name!r}", self.world_field, (3,))
        object.__setattr__(self, "world_field", tuple(field.tolist()))
        self._check_errors("field")

    def exact(self, robot: Robot, result: StepResult) -> MagnetometerReading:
        """Return the field on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        frame = self._frame(kinematics_at(robot, result.state.q, result.state.t))
        return MagnetometerReading(np.array(self.world_field) @ frame.rotation)

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> MagnetometerReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        field = self.exact(robot, result).field
        return MagnetometerReading(with_errors(field, self.field_bias, self.field_noise, generator))

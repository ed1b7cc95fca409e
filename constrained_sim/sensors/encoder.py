"""Encoder: position of a joint in steps of its resolution, and velocity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.joints import SingleJoint, within_a_turn
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, instance, number


class EncoderReading(NamedTuple):
    """One reading of an :class:`Encoder`.

    Attributes:
        position: (1,) [rad, m]; of a continuous joint within -pi .. pi.
        velocity: (1,) [rad/s, m/s].
    """

    position: Array
    velocity: Array


@dataclass(frozen=True)
class Encoder(Sensor):
    """An encoder on a joint with one degree of freedom.

    It reads the nearest multiple of its resolution to the position at the end of the step plus noise, of a continuous
    joint within -pi .. pi. Its velocity is that of the joint, plus noise of its own.

    Attributes:
        name: unique among the sensors of the robot.
        joint: a joint with one degree of freedom.
        rate: readings per simulated second [Hz]; 0: one every control period.
        delay: age of the position and the velocity that a reading shows [s], a multiple of the control period.
        resolution: step of the position [rad, m]; 0: none.
        position_noise: standard deviation, before the position is rounded to the resolution [rad, m].
        velocity_noise: standard deviation [rad/s, m/s].
    """

    name: str
    joint: str
    rate: float = 0.0
    delay: float = 0.0
    resolution: float = 0.0
    position_noise: float = 0.0
    velocity_noise: float = 0.0

    kind, link = "encoder", ""

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        instance(f"joint of sensor {self.name!r}", self.joint, str, "the name of a joint")
        number(f"resolution of sensor {self.name!r}", self.resolution, 0.0)
        self._check_errors("position", "velocity")

    def check(self, robot: Robot) -> None:
        """Refuse a robot without the joint, see :meth:`Sensor.check`."""
        SingleJoint.of(robot, self.joint)

    def exact(self, robot: Robot, result: StepResult) -> EncoderReading:
        """Return what an ideal encoder reads on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        joint = SingleJoint.of(robot, self.joint)
        return EncoderReading(np.array([joint.position(result.state.q)]), result.state.v[joint.v : joint.v + 1].copy())

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> EncoderReading:
        """Return what this encoder reads, with its errors, see :meth:`Sensor.measure`."""
        position, velocity = self.exact(robot, result)
        position = position + self.position_noise * generator.standard_normal(1)
        if self.resolution:
            position = self.resolution * np.round(position / self.resolution)
        if SingleJoint.of(robot, self.joint).turns:
            position = within_a_turn(position)
        return EncoderReading(position, velocity + self.velocity_noise * generator.standard_normal(1))

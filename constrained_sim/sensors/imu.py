"""Imu: orientation, angular velocity and proper acceleration of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from constrained_sim.dynamics.dynamics import dynamics_at, motion_at
from constrained_sim.dynamics.kinematics import bias_at
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor, with_errors
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array


class ImuReading(NamedTuple):
    """One reading of an :class:`Imu`.

    Attributes:
        orientation: (4,) of the frame in the world: the unit quaternion x y z w, w >= 0, that turns components in the
            frame's axes into components in world axes.
        angular_velocity: (3,) [rad/s], the frame's axes.
        acceleration: (3,) proper acceleration [m/s^2], the frame's axes.
    """

    orientation: Array
    angular_velocity: Array
    acceleration: Array


@dataclass(frozen=True)
class Imu(Sensor):
    """An inertial measurement unit at the origin of a frame.

    It reads the proper acceleration ``R^T (dv/dt - g)``: v is the velocity of the frame's origin in the world, R the
    frame's rotation. At rest that is 9.81 m/s^2 upwards, in free fall zero. With the body's origin o, its angular
    velocity omega and acceleration alpha, and r from o to the frame, ``dv/dt = a_o + alpha x r + omega x (omega x r)``.

    Orientation and angular velocity are those at the end of the step. The acceleration is the mean over the step, as of
    a unit that counts increments of velocity: from the mean joint acceleration :attr:`StepResult.a`, positions and axes
    in the middle of the step, and the velocities between its impacts. The jumps of impacts are no part of it: an
    impact has no finite acceleration. With a control period of several steps it is that of the last of them.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame that carries the sensor; the world too.
        rate: readings per simulated second [Hz]; 0: one every control period.
        orientation_noise: standard deviation of each component of the rotation vector [rad], the frame's axes, by which
            the measured frame is turned from the true one.
        angular_velocity_noise: standard deviation of each component [rad/s].
        acceleration_noise: standard deviation of each component [m/s^2].
        angular_velocity_bias: (3,) constant error [rad/s].
        acceleration_bias: (3,) constant error [m/s^2].
    """

    name: str
    link: str
    rate: float = 0.0
    orientation_noise: float = 0.0
    angular_velocity_noise: float = 0.0
    acceleration_noise: float = 0.0
    angular_velocity_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    acceleration_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)

    kind = "imu"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        self._check_errors("orientation", "angular_velocity", "acceleration")

    def exact(self, robot: Robot, result: StepResult) -> ImuReading:
        """Return what an ideal unit reads on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        joint, placement = robot.link_placement(self.link)
        state, middle = result.state, result.middle
        acceleration = np.zeros(3)
        for share, v in result.phases:
            body = motion_at(robot, middle.q, v, result.a, middle.t).body(joint)
            proper = bias_at(body, body.position + body.rotation @ placement.translation) - robot.gravity
            acceleration += share * proper @ body.rotation @ placement.rotation
        body = dynamics_at(robot, state.q, state.v, state.t).body(joint)
        rotation = body.rotation @ placement.rotation
        return ImuReading(_quaternion(rotation), body.angular_velocity @ rotation, acceleration)

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> ImuReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        orientation, angular_velocity, acceleration = self.exact(robot, result)
        turn = pin.exp3(self.orientation_noise * generator.standard_normal(3))
        if self.orientation_noise:
            orientation = _quaternion(pin.Quaternion(orientation).matrix() @ turn)
        return ImuReading(
            orientation,
            with_errors(angular_velocity, self.angular_velocity_bias, self.angular_velocity_noise, generator),
            with_errors(acceleration, self.acceleration_bias, self.acceleration_noise, generator),
        )


def _quaternion(rotation: Array) -> Array:
    """Return the unit quaternion x y z w with w >= 0 of a rotation matrix (3, 3)."""
    quaternion = pin.Quaternion(rotation).coeffs()
    return np.asarray(-quaternion if quaternion[3] < 0.0 else quaternion, dtype=np.float64)

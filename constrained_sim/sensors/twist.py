"""Twist: true velocity of a frame, with which an estimate of the state is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from constrained_sim.dynamics.dynamics import dynamics_at
from constrained_sim.dynamics.kinematics import velocity_at
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array


class TwistReading(NamedTuple):
    """One reading of a :class:`Twist`.

    Attributes:
        linear: (3,) velocity of the frame's origin in the world [m/s], the frame's axes.
        angular: (3,) [rad/s], the frame's axes.
    """

    linear: Array
    angular: Array


@dataclass(frozen=True)
class Twist(Sensor):
    """The true velocity of a frame at the end of the step.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame whose velocity is read; the world too.
        rate: readings per simulated second [Hz]; 0: one every control period.
    """

    name: str
    link: str
    rate: float = 0.0

    kind = "twist"

    def exact(self, robot: Robot, result: StepResult) -> TwistReading:
        """Return the velocity on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        joint, placement = robot.link_placement(self.link)
        state = result.state
        body = dynamics_at(robot, state.q, state.v, state.t).body(joint)
        rotation = body.rotation @ placement.rotation
        linear = velocity_at(body, body.position + body.rotation @ placement.translation)
        return TwistReading(linear @ rotation, body.angular_velocity @ rotation)

"""ForceTorque: the wrench that the parent side of a joint exerts on a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from constrained_sim.robot import Robot
from constrained_sim.sensors.part import part_beyond
from constrained_sim.sensors.sensor import Sensor, with_errors
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array


class ForceTorqueReading(NamedTuple):
    """One reading of a :class:`ForceTorque`.

    Attributes:
        force: (3,) [N], the frame's axes.
        torque: (3,) [N m] about the frame's origin, the frame's axes.
    """

    force: Array
    torque: Array


@dataclass(frozen=True)
class ForceTorque(Sensor):
    """A six-axis force-torque sensor in the joint, fixed or not, that holds a link.

    **Sign.** It reads the wrench that the parent side of the cut exerts on the child side, `link` and everything that
    descends from it, about the origin of the link's frame, in its axes. So at rest a sensor above a tool of mass m that
    hangs from it reads m g upwards, and one in the ankle of a foot that stands on the ground reads the ground's force
    downwards, less the weight of the foot. It is the opposite of what sensors in Gazebo read by default
    (``child_to_parent``), and the same as theirs with ``parent_to_child``.

    By Newton-Euler over the child side: the rate of change of its momentum, less its weight, less all that acts on it
    from outside: contacts, anchors (also such as close a loop across the cut) and applied wrenches. Efforts of a
    moving joint in the cut, with damping, dry friction, springs, limits and couplings, are part of what it reads: the
    component along the joint's axis is their sum, less the rotor's inertia (``armature``), which is in none of the
    bodies. Custom constraints count as efforts in joints too; what is no effort of a joint, such as a custom force
    between a link and the world, this sensor cannot tell from one.

    It is the mean over the step, impulses of impacts excluded: from the mean acceleration :attr:`StepResult.a`, the
    mean forces, positions and axes in the middle of the step, and the velocities between its impacts. With a control
    period of several steps it is that of the last of them.

    Attributes:
        name: unique among the sensors of the robot.
        link: first link beyond the sensor, not the world; for a frame that is no link (an MJCF site), the
            cut is where the frame's link is held.
        rate: readings per simulated second [Hz]; 0: one every control period.
        force_noise: standard deviation of each component [N].
        torque_noise: standard deviation of each component [N m].
        force_bias: (3,) constant error [N].
        torque_bias: (3,) constant error [N m].
    """

    name: str
    link: str
    rate: float = 0.0
    force_noise: float = 0.0
    torque_noise: float = 0.0
    force_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    torque_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)

    kind = "force_torque"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        self._check_errors("force", "torque")

    def check(self, robot: Robot) -> None:
        """Refuse a robot without the link, see :meth:`Sensor.check`."""
        part_beyond(robot, self.link)

    def exact(self, robot: Robot, result: StepResult) -> ForceTorqueReading:
        """Return what an ideal sensor reads on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        total, dynamics = part_beyond(robot, self.link).holding_force(robot, result)
        wrench = self._frame(dynamics).actInv(pin.Force(total))
        return ForceTorqueReading(np.array(wrench.linear), np.array(wrench.angular))

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> ForceTorqueReading:
        """Return what this sensor reads, with its errors, see :meth:`Sensor.measure`."""
        force, torque = self.exact(robot, result)
        return ForceTorqueReading(
            with_errors(force, self.force_bias, self.force_noise, generator),
            with_errors(torque, self.torque_bias, self.torque_noise, generator),
        )

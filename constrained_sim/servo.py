"""Joint feedback within the simulation, as a drive does it: positions and velocities are commanded, not efforts."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from math import nan as NAN
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.exceptions import InvalidValue
from constrained_sim.joints import SingleJoint, places_of
from constrained_sim.posture import JointFeedback, has_same_joints
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, known, number, one_or_each, sparse_array


class JointCommand(NamedTuple):
    """What one joint is told.

    Attributes:
        effort: [N m, N].
        position: to follow [rad, m]; NaN: none.
        velocity: to follow [rad/s, m/s]; NaN: none.
    """

    effort: float = 0.0
    position: float = NAN
    velocity: float = NAN

    @property
    def mode(self) -> str:
        """What is followed: ``effort``, ``position``, ``velocity``, or ``position+velocity``."""
        followed = [name for name in ("position", "velocity") if not isnan(getattr(self, name))]
        return "+".join(followed) or "effort"


class JointTargets(NamedTuple):
    """What a :class:`Servo` follows, for :meth:`Simulator.step <constrained_sim.simulator.Simulator.step>`.

    Attributes:
        robot: whose joints these are.
        feedback: of the actuated joints, towards the targets.
    """

    robot: Robot
    feedback: JointFeedback

    def of(self, robot: Robot) -> JointFeedback:
        """Return the feedback.

        Raises:
            InvalidValue: these are the targets of another robot.
        """
        if not has_same_joints(robot, self.robot):
            raise InvalidValue("tau", "targets of another robot", "those of a Servo of the robot that is simulated")
        return self.feedback


class Servo:
    """Follows positions and velocities of joints, by proportional and derivative feedback within each step.

    ``tau = effort + stiffness (position - q) + damping (velocity - v)``, joint by joint, within the effort limits; a
    continuous joint goes the shorter way. The feedback acts at the state at the end of a step, so it is stable at any
    gain, see :class:`~constrained_sim.actuators.Actuators`. At rest it is exact: an effort of 1 N m bends a stiffness
    of 100 N m/rad by 0.01 rad.

    Attributes:
        stiffness: (nu,) [N m/rad, N/m].
        damping: (nu,) [N m s/rad, N s/m].
    """

    def __init__(self, robot: Robot, stiffness: Any, damping: Any) -> None:
        """Take the gains of `robot`.

        Args:
            robot: the robot.
            stiffness: of each actuated joint, by name (others have none); or one for all [N m/rad, N/m].
            damping: in the same way [N m s/rad, N s/m].

        Raises:
            UnknownName: a joint that is not actuated, or one with several degrees of freedom.
            InvalidValue: a gain that is negative or not finite.
        """
        self._robot = checked_robot(robot)
        self._places = places_of([SingleJoint.of(robot, name) for name in robot.actuated_joints])
        self.stiffness, self.damping = self._gains("stiffness", stiffness), self._gains("damping", damping)

    def targets(self, position: Any = None, velocity: Any = None, effort: Any = 0.0) -> JointTargets:
        """Return what to follow.

        Args:
            position: (nu,) [rad, m]; NaN: this joint follows no position; None: no joint does.
            velocity: (nu,) [rad/s, m/s]; NaN: none; a joint that follows a position alone comes to rest there.
            effort: (nu,) or for all joints, added [N m, N].

        Raises:
            InvalidValue: another number of numbers, infinity, a target of a joint without the gain that follows it, or
                one that asks for an effort beyond all numbers.
        """
        robot = self._robot
        position, velocity = self._optional("position", position), self._optional("velocity", velocity)
        effort = one_or_each("effort", effort, robot.nu)
        has_position, has_velocity = ~np.isnan(position), ~np.isnan(velocity)
        self._check("position", has_position, "stiffness", self.stiffness)
        self._check("velocity", has_velocity, "damping", self.damping)
        stiffness = np.where(has_position, self.stiffness, 0.0)
        damping = np.where(has_position | has_velocity, self.damping, 0.0)
        goal, rate = np.where(has_position, position, 0.0), np.where(has_velocity, velocity, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = effort + damping * rate
            is_finite = np.isfinite(np.abs(offset) + stiffness * np.abs(goal))
        for index in np.flatnonzero(~is_finite).tolist():
            given = [float(values[index]) for values in (position, velocity, effort)]
            what = f"position, velocity and effort for joint {robot.actuated_joints[index]!r}"
            raise InvalidValue(what, given, "numbers that ask for a finite effort in all")
        return JointTargets(robot, JointFeedback(*self._places, goal, stiffness, damping, offset))

    def _check(self, what: str, is_given: npt.NDArray[np.bool_], gain: str, gains: Array) -> None:
        """Refuse targets of joints that do not follow them."""
        for name in np.array(self._robot.actuated_joints)[is_given & (gains == 0.0)]:
            raise InvalidValue(f"{what} of joint {str(name)!r}", "a target", f"none, as its {gain} in the servo is 0")

    def _gains(self, what: str, value: Any) -> Array:
        """Return (nu,) the gains of the actuated joints."""
        names = self._robot.actuated_joints
        if isinstance(value, Mapping):
            gains = dict.fromkeys(names, 0.0)
            for name, gain in value.items():
                known("actuated joint of the servo", name, names)
                gains[name] = number(f"{what} of joint {name!r}", gain, 0.0)
            return np.array([gains[name] for name in names])
        try:
            return np.full(len(names), number(f"{what} of a servo", value, 0.0))
        except InvalidValue as error:
            raise InvalidValue(error.what, value, f"{error.allowed}, or one for each joint by its name") from None

    def _optional(self, what: str, value: Any) -> Array:
        """Return (nu,) targets, NaN where there is none."""
        nu = self._robot.nu
        return np.full(nu, np.nan) if value is None else sparse_array(f"{what} of joints", value, (nu,))

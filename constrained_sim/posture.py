"""Springs and dampers in the joints that hold a posture."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.exceptions import InvalidValue
from constrained_sim.joints import SingleJoint, places_of
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, float_array, one_or_each


class JointFeedback(NamedTuple):
    """What :func:`feedback_efforts` needs of a posture.

    Attributes:
        at_q: (nu,) index into the configuration of each joint; of the cosine, where it is continuous.
        at_v: (nu,) index into the velocity.
        turns: (nu,) whether it is continuous.
        goal: (nu,) positions [rad, m].
        stiffness: (nu,) [N m/rad, N/m].
        damping: (nu,) [N m s/rad, N s/m].
        feed_forward: (nu,) [N m, N].
    """

    at_q: npt.NDArray[np.int64]
    at_v: npt.NDArray[np.int64]
    turns: npt.NDArray[np.bool_]
    goal: Array
    stiffness: Array
    damping: Array
    feed_forward: Array


def no_feedback(nu: int) -> JointFeedback:
    """Return the feedback that asks `nu` joints for no efforts."""
    nothing, first = np.zeros(nu), np.zeros(nu, dtype=np.int64)
    return JointFeedback(first, first, np.zeros(nu, dtype=np.bool_), nothing, nothing, nothing, nothing)


class Posture:
    """Holds actuated joints where a configuration has them, by proportional and derivative feedback.

    ``tau = feed_forward + stiffness (q_0 - q) - damping v``, joint by joint; a continuous joint goes the shorter way.

    Efforts are held over a step of dt. So damping is stable only where ``dt M^-1 damping``, of the joints at hand, is
    below 2: a light link takes less of it. Damping of the joints themselves (``Robot.with_joints``) is implicit in time
    stepping, and knows no such bound.

    It is a controller for :meth:`Simulator.run <constrained_sim.simulator.Simulator.run>`, which evaluates it within
    its compiled steps.
    """

    def __init__(
        self,
        robot: Robot,
        q: Any,
        stiffness: Any,
        damping: Any,
        feed_forward: Any = 0.0,
    ) -> None:
        """Hold the posture that `robot` has at `q`.

        Args:
            robot: the robot.
            q: (nq,) configuration.
            stiffness: (nu,) or for all joints [N m/rad, N/m].
            damping: (nu,) or for all joints [N m s/rad, N s/m].
            feed_forward: (nu,) or for all joints [N m, N].

        Raises:
            UnknownName: an actuated joint with several degrees of freedom.
            InvalidValue: another number of numbers, or numbers that are not finite.
        """
        self.robot = checked_robot(robot)
        self._joints = [SingleJoint.of(robot, name) for name in robot.actuated_joints]
        self.law = JointFeedback(
            *places_of(self._joints),
            self._positions(q),
            one_or_each("stiffness of a posture", stiffness, robot.nu),
            one_or_each("damping of a posture", damping, robot.nu),
            one_or_each("feed_forward of a posture", feed_forward, robot.nu),
        )

    def about(self, q: Any) -> Posture:
        """Return the same feedback about another configuration `q` (nq,).

        Raises:
            InvalidValue: another number of numbers, or numbers that are not finite.
        """
        other = copy.copy(self)
        other.law = self.law._replace(goal=self._positions(q))
        return other

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return (nu,) the efforts [N m, N] at `q` (nq,) and `v` (nv,), whatever the time `t` [s]."""
        return self.efforts(q, v)

    def efforts(self, q: Array, v: Array) -> Array:
        """Return (nu,) the efforts [N m, N] at `q` (nq,) and `v` (nv,).

        Raises:
            InvalidValue: no arrays of so many floats, or floats that are not finite.
        """
        q, v = float_array("q", q, (self.robot.nq,)), float_array("v", v, (self.robot.nv,))
        return np.asarray(feedback_efforts(self.law, q, v), dtype=np.float64)

    def of(self, robot: Robot) -> Posture:
        """Return this posture for `robot`, which may have other objects beside it.

        Raises:
            InvalidValue: this is a posture of another robot.
        """
        if robot is self.robot:
            return self
        if not has_same_joints(robot, self.robot):
            raise InvalidValue("controller", "a posture of another robot", "one of the robot that is simulated")
        other = copy.copy(self)
        other.robot = robot
        return other

    def _positions(self, q: Any) -> Array:
        configuration = self.robot.checked_configuration(q)
        return np.array([joint.position(configuration) for joint in self._joints], dtype=np.float64)


def has_same_joints(robot: Robot, other: Robot) -> bool:
    """Return whether two robots, without objects, have the same actuated joints in the same places, as copies have."""
    one, two = robot.without_objects, other.without_objects
    if (one.nq, one.nv, one.actuated_joints) != (two.nq, two.nv, two.actuated_joints):
        return False
    return one is two or all(SingleJoint.of(one, name) == SingleJoint.of(two, name) for name in one.actuated_joints)


@kernel
def feedback_efforts(law, q, v):
    """Return (nu,) the efforts [N m, N] of a :class:`JointFeedback` at `q` (nq,) and `v` (nv,)."""
    at_q, at_v, turns, goal, stiffness, damping, feed_forward = law
    tau = np.empty(at_q.shape[0])
    for i in range(tau.shape[0]):
        k = at_q[i]
        if turns[i]:
            error = goal[i] - np.arctan2(q[k + 1], q[k])
            error -= 2.0 * np.pi * np.round(error / (2.0 * np.pi))
        else:
            error = goal[i] - q[k]
        tau[i] = feed_forward[i] + stiffness[i] * error - damping[i] * v[at_v[i]]
    return tau

"""JointVelocity: a joint moves at a prescribed velocity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from constrained_sim.constraints.bilateral_rows import BilateralRows
from constrained_sim.constraints.constraint import Bilateral, BoundConstraint, checked_joints, checked_name
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.joints import SingleJoint
from constrained_sim.robot import Robot
from constrained_sim.user_functions import ask_user
from constrained_sim.validation import Array, finite_array, number


@dataclass(frozen=True)
class JointVelocity(Bilateral):
    """``psi = v_joint - w(t) = 0``, a velocity-level constraint (Tedrake, sec. 2); ``gamma = -dw/dt``.

    Attributes:
        name: unique name.
        joint: a joint with one degree of freedom.
        velocity: constant [rad/s, m/s], or a function of time [s] alone that returns (w, dw/dt).

    Raises:
        InvalidValue: a velocity that is neither a finite number nor callable.
    """

    name: str
    joint: str
    velocity: float | Callable[[float], tuple[float, float]]

    kind = "joint_velocity"
    lasts = True

    def __post_init__(self) -> None:
        """Check the values."""
        checked_name(self.name)
        checked_joints(f"of joint velocity {self.name!r}", self.joint)
        if not callable(self.velocity):
            object.__setattr__(self, "velocity", number(f"velocity of {self.name!r}", self.velocity))

    @property
    def asks_user(self) -> bool:
        """Whether the velocity is a function of the user's."""
        return callable(self.velocity)

    def at(self, t: float) -> Array:
        """Return (2,) w and dw/dt at time `t`.

        Raises:
            InvalidValue: the function did not return two finite numbers.
        """
        value = ask_user(self.velocity, t) if callable(self.velocity) else (self.velocity, 0.0)
        return finite_array(f"velocity of {self.name!r} at t = {t}", value, (2,))

    def bind(self, robot: Robot, q: Array) -> BoundJointVelocity:
        """Return its row on `robot`; `q` does not count.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
        """
        return BoundJointVelocity(self, robot)


class BoundJointVelocity(BoundConstraint):
    """A :class:`JointVelocity` on one robot."""

    dim = 1
    is_position_level = False

    def __init__(self, declaration: JointVelocity, robot: Robot) -> None:
        """Resolve the joint of `declaration`.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
        """
        self.declaration: JointVelocity = declaration
        self._jacobian = np.zeros((1, robot.nv))
        self._jacobian[0, SingleJoint.of(robot, declaration.joint).v] = 1.0

    def phi(self, dynamics: Dynamics) -> Array:
        """Return 0: there is no position level."""
        return np.zeros(1)

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (1, nv), constant."""
        return self._jacobian

    def arrays(self) -> BilateralRows:
        """Return the row as kernels know it."""
        return BilateralRows.without_function(*self._jacobian.shape)._replace(constant=self._jacobian)

    def target(self, t: float) -> Array:
        """Return (2, 1) zero, for there is no position level, and the velocity wanted [rad/s, m/s]."""
        return np.array([[0.0], self.declaration.at(t)[:1]])

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (1,) ``v_joint - w(t)`` [rad/s, m/s]."""
        return J @ v - self.declaration.at(t)[:1]

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (1,) ``-dw/dt`` [rad/s^2, m/s^2]."""
        return -self.declaration.at(dynamics.t)[1:]

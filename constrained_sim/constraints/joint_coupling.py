"""JointCoupling: the position of a joint follows that of another."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from constrained_sim.constraints.bilateral_rows import BilateralRows, coupling_error
from constrained_sim.constraints.constraint import Bilateral, BoundConstraint, checked_joints, checked_name
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.joints import SingleJoint
from constrained_sim.robot import Robot
from constrained_sim.validation import Array, number


@dataclass(frozen=True)
class JointCoupling(Bilateral):
    """``q_joint = ratio q_reference + offset``, of two joints with one degree of freedom each: a gear, a <mimic>.

    ``phi = q_joint - ratio q_reference - offset``; the multiplier is the effort [N m, N] on `joint`; -ratio times it
    acts on the reference. With a continuous joint, phi is taken modulo what its (cos, sin) cannot tell: a turn of the
    joint, or ``ratio`` turns where only the reference is continuous.

    Attributes:
        name: unique name.
        joint: that follows; with one degree of freedom.
        reference_joint: that it follows; with one degree of freedom.
        ratio: of the positions [-, m/rad, rad/m]; whole where the reference is continuous.
        offset: position of the joint where the reference is at 0 [rad, m].

    Raises:
        InvalidValue: a ratio or offset that is not finite, or a joint coupled to itself.
    """

    name: str
    joint: str
    reference_joint: str
    ratio: float
    offset: float = 0.0

    kind = "joint_coupling"
    lasts = True

    def __post_init__(self) -> None:
        """Check the values."""
        checked_name(self.name)
        for value in ("ratio", "offset"):
            object.__setattr__(self, value, number(f"{value} of joint coupling {self.name!r}", getattr(self, value)))
        checked_joints(f"of joint coupling {self.name!r}", self.joint, self.reference_joint)
        if self.joint == self.reference_joint:
            raise InvalidValue(f"reference_joint of joint coupling {self.name!r}", self.joint, "another joint")

    def follow(self, robot: Robot, q: Array) -> Array:
        """Return a copy of `q` (nq,), a configuration of `robot`, with the joint where its reference wants it."""
        joint, reference = SingleJoint.of(robot, self.joint), SingleJoint.of(robot, self.reference_joint)
        value = self.ratio * reference.position(q) + self.offset
        moved = q.copy()
        joint.place(moved, value)
        return moved

    def completed(self, robot: Robot, q: Array, given: Container[str]) -> Array:
        """Return `q` (nq,) of `robot` with the joint where its reference wants it, unless it is among those `given`."""
        return q if self.joint in given else self.follow(robot, q)

    def bind(self, robot: Robot, q: Array) -> BoundJointCoupling:
        """Return its row on `robot`; `q` does not count.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
            InvalidValue: a continuous reference joint, with a ratio that is not whole.
        """
        return BoundJointCoupling(self, robot)


class BoundJointCoupling(BoundConstraint):
    """A :class:`JointCoupling` on one robot."""

    dim = 1

    def __init__(self, declaration: JointCoupling, robot: Robot) -> None:
        """Resolve the joints of `declaration`.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
            InvalidValue: a continuous reference joint, with a ratio that is not whole.
        """
        self.declaration: JointCoupling = declaration
        self._joint = SingleJoint.of(robot, declaration.joint)
        self._reference = SingleJoint.of(robot, declaration.reference_joint)
        if self._reference.turns and declaration.ratio != round(declaration.ratio):
            allowed = "a whole number: the position of a continuous joint is known up to turns only"
            raise InvalidValue(f"ratio of joint coupling {declaration.name!r}", declaration.ratio, allowed)
        self._at_q = np.array([self._joint.q, self._reference.q])
        self._turns = np.array([self._joint.turns, self._reference.turns])
        self._jacobian = np.zeros((1, robot.nv))
        self._jacobian[0, self._joint.v] = 1.0
        self._jacobian[0, self._reference.v] -= declaration.ratio
        unknown = 1.0 if self._joint.turns else abs(declaration.ratio) * self._reference.turns
        self._period = 2.0 * np.pi * unknown or np.inf

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (1,) [rad, m]."""
        declaration = self.declaration
        law = declaration.ratio, declaration.offset, self._period
        return np.array([coupling_error(dynamics.q, self._at_q, self._turns, *law)])

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (1, nv), constant."""
        return self._jacobian

    def arrays(self) -> BilateralRows:
        """Return the row as kernels know it."""
        declaration = self.declaration
        return BilateralRows.without_function(1, self._jacobian.shape[1])._replace(
            couplings=np.zeros(1, dtype=np.int64),
            at_q=self._at_q[None],
            turns=self._turns[None],
            ratios=np.array([declaration.ratio]),
            positions=np.array([declaration.offset]),
            periods=np.array([self._period]),
            constant=self._jacobian,
        )

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return 0."""
        return np.zeros(1)

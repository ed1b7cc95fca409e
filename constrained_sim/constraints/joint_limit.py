"""JointLimit: a joint stays between two positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.bilateral_rows import BilateralRows
from constrained_sim.constraints.constraint import (
    BoundConstraint,
    Constraint,
    checked_joints,
    checked_name,
)
from constrained_sim.constraints.constraint_stack import ConstraintStack
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.joints import SingleJoint
from constrained_sim.robot import Robot
from constrained_sim.validation import Array, number


@dataclass(frozen=True)
class JointLimit(Constraint):
    """``lower <= q_joint <= upper``: one unilateral row for each finite bound, ``q - lower`` and ``upper - q``.

    The multiplier is the effort [N m, N] with which the stop pushes back, never negative. Equal bounds hold the joint:
    one bilateral row, ``q - lower``, whose effort acts both ways. ``Robot.joint_limits`` makes them of a description.

    Attributes:
        name: unique name.
        joint: a joint with one degree of freedom that is not continuous.
        lower: [rad, m]; minus infinity: no row.
        upper: [rad, m]; infinity: no row.
        restitution: Newton's coefficient, 0 to 1.

    Raises:
        InvalidValue: bounds that are NaN, both infinite, or in the wrong order; a restitution outside 0..1.
    """

    name: str
    joint: str
    lower: float = -np.inf
    upper: float = np.inf
    restitution: float = 0.0

    kind = "joint_limit"
    lasts = True

    def __post_init__(self) -> None:
        """Check the values."""
        checked_name(self.name)
        checked_joints(f"of joint limit {self.name!r}", self.joint)
        object.__setattr__(self, "restitution", number(f"restitution of {self.name!r}", self.restitution, 0.0, 1.0))
        bounds = (self.lower, self.upper)
        lower, upper = (_bound(bound) for bound in bounds)
        if not lower <= upper or np.isinf([lower, upper]).all():
            raise InvalidValue(f"bounds of joint limit {self.name!r}", bounds, "lower <= upper, one of them finite")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def is_unilateral(self) -> bool:  # type: ignore[override]
        """Whether the joint may move between the bounds."""
        return self.lower < self.upper

    def bind(self, robot: Robot, q: Array) -> BoundJointLimit:
        """Return its rows on `robot`; `q` does not count.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
            InvalidValue: a continuous joint, whose position is known up to turns only.
        """
        return BoundJointLimit(self, robot)


def _bound(value: object) -> float:
    """Return a bound as a float; NaN where it is no number."""
    is_number = isinstance(value, float | int | np.integer | np.floating) and not isinstance(value, bool)
    try:
        return float(value) if is_number else np.nan  # type: ignore[arg-type]
    except OverflowError:  # an integer beyond the floats
        return np.nan


class Bounds(NamedTuple):
    """Joint limits as arrays, a row each: ``phi = signs q[at_q] - values``.

    Attributes:
        at_q: (l,) which coordinate a row bounds.
        signs: (l,) 1 of a lower bound, -1 of an upper one.
        values: (l,) of the bounds, times these signs [rad, m].
        rows: (l, nv) of the Jacobian, constant.
    """

    at_q: npt.NDArray[np.intp]
    signs: Array
    values: Array
    rows: Array

    def phi(self, q: Array) -> Array:
        """Return (l,) distances to the bounds [rad, m] at q (nq,)."""
        return self.signs * q[self.at_q] - self.values


class BoundJointLimit(BoundConstraint):
    """A :class:`JointLimit` on one robot.

    Attributes:
        bounds: a row for each of its finite ones.
    """

    def __init__(self, declaration: JointLimit, robot: Robot) -> None:
        """Resolve the joint of `declaration`.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
            InvalidValue: a continuous joint, whose position is known up to turns only.
        """
        self.declaration: JointLimit = declaration
        self._joint = SingleJoint.of(robot, declaration.joint)
        if self._joint.turns:
            raise InvalidValue(f"joint of {declaration.name!r}", declaration.joint, "a joint that is not continuous")
        values = np.array([declaration.lower, -declaration.upper])
        given = np.isfinite(values) & [True, declaration.is_unilateral]
        values, signs = values[given], np.array([1.0, -1.0])[given]
        self.dim = len(values)
        rows = np.zeros((self.dim, robot.nv))
        rows[:, self._joint.v] = signs
        self.bounds = Bounds(np.full(self.dim, self._joint.q), signs, values, rows)

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) distances to the bounds [rad, m]."""
        return self.bounds.phi(dynamics.q)

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (dim, nv), constant."""
        return self.bounds.rows

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return 0."""
        return np.zeros(self.dim)

    def arrays(self) -> BilateralRows:
        """Return the row of equal bounds, which is bilateral, as kernels know it: a coupling to nothing."""
        at_q, values = self.bounds.at_q, self.bounds.values
        return BilateralRows.without_function(*self.bounds.rows.shape)._replace(
            couplings=np.arange(self.dim),
            at_q=np.stack([at_q, at_q], axis=1),
            turns=np.zeros((self.dim, 2), dtype=np.bool_),
            ratios=np.zeros(self.dim),
            positions=values,
            periods=np.full(self.dim, np.inf),
            constant=self.bounds.rows,
        )


class JointLimitStack(ConstraintStack):
    """The rows of several joint limits, one below the other, evaluated together; or none.

    Attributes:
        bounds: all of them.
    """

    def __init__(self, members: tuple[BoundJointLimit, ...], nv: int) -> None:
        """Stack `members` in their order."""
        super().__init__(members, nv)
        none = Bounds(np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0), np.zeros((0, nv)))
        parts = [none, *(member.bounds for member in members)]
        self.bounds = Bounds(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) distances to the bounds [rad, m]."""
        return self.bounds.phi(dynamics.q)

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (dim, nv), constant."""
        return self.bounds.rows


def stack_limits(members: tuple[BoundConstraint, ...], nv: int) -> ConstraintStack:
    """Return the rows of unilateral `members`, one below the other."""
    limits = tuple(member for member in members if isinstance(member, BoundJointLimit))
    return JointLimitStack(limits, nv) if len(limits) == len(members) else ConstraintStack(members, nv)


def joint_limits_of(robot: Robot, restitution: float) -> tuple[JointLimit, ...]:
    """Return a JointLimit ``<joint> limit`` for each joint of `robot` that has position limits."""
    lower, upper = robot.position_limits
    limited = np.isfinite(lower) | np.isfinite(upper)
    return tuple(
        JointLimit(f"{name} limit", name, lower[i], upper[i], restitution)
        for i, name in enumerate(robot.velocity_names)
        if limited[i]
    )

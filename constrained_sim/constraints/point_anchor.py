"""PointAnchor: a point of one link stays on a point of another link, or of the world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.constraints.bilateral_rows import BilateralRows, anchor_error
from constrained_sim.constraints.constraint import (
    BetweenLinks,
    BoundConstraint,
    StackedRows,
    checked_links,
    checked_name,
    sign_on,
)
from constrained_sim.dynamics import kinematics
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_aside
from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.rank import ROW_TOLERANCE
from constrained_sim.robot import WORLD, Robot
from constrained_sim.user_functions import ask_user
from constrained_sim.validation import Array, directions, finite_array, read_only, unit_vector

MovingPoint = Callable[[float], Any]


@dataclass(frozen=True, eq=False)
class PointAnchor(BetweenLinks):
    """Holds the point `point_a` of `link_a` on the point `point_b` of `link_b`, along `normals`.

    ``phi = N^T R_b^T (p_a - p_b)``, N the directions in the axes of link_b. With ``link_b = "world"`` the rows are the
    contact constraints of RBDL (module Contacts), position level included.

    Attributes:
        name: unique name.
        link_a: link or frame that is held.
        point_a: (3,) [m], in link_a.
        link_b: link or frame that holds it, or ``"world"``.
        point_b: (3,) [m], in link_b; None: where point_a is when the constraint is bound; or a function of time [s]
            alone that returns the point and its first two derivatives, (3,) each: a moving anchor.
        normals: (k, 3) held directions in the axes of link_b, or all numbers in a row; normalised on creation; None: x,
            y, z.

    Raises:
        InvalidValue: a point or a direction that is not finite, or a zero direction.
    """

    name: str
    link_a: str
    point_a: Sequence[float] = (0.0, 0.0, 0.0)
    link_b: str = WORLD
    point_b: Sequence[float] | MovingPoint | None = None
    normals: Any = None

    kind = "point_anchor"
    lasts = True
    targets = ("point_b",)

    def __post_init__(self) -> None:
        """Check and normalise."""
        checked_name(self.name)
        what = f"of point anchor {self.name!r}"
        checked_links(what, self.link_a, self.link_b)
        object.__setattr__(self, "point_a", read_only(finite_array(f"point_a {what}", self.point_a, (3,))))
        if self.point_b is not None and not callable(self.point_b):
            object.__setattr__(self, "point_b", read_only(finite_array(f"point_b {what}", self.point_b, (3,))))
        if self.normals is not None:
            given = directions(f"normals {what}", self.normals, 3)
            if not len(given):
                raise InvalidValue(f"normals {what}", self.normals, "k x 3 directions, or None for all three")
            units = [unit_vector(f"a normal {what}", direction) for direction in given]
            object.__setattr__(self, "normals", read_only(np.array(units)))

    @property
    def pinocchio_type(self) -> pin.ContactType | None:  # type: ignore[override]
        """Three independent directions make a 3-D contact of Pinocchio's; fewer have no model there."""
        rows = np.eye(3) if self.normals is None else self.normals
        is_whole = len(rows) == 3 and np.linalg.matrix_rank(rows, ROW_TOLERANCE) == 3
        return pin.ContactType.CONTACT_3D if is_whole else None

    @property
    def asks_user(self) -> bool:
        """Whether the anchor moves as a function of the user's says."""
        return callable(self.point_b)

    def point_b_at(self, t: float) -> Array:
        """Return (3, 3) the moving point_b, its velocity and its acceleration at time `t`, in link_b.

        Raises:
            InvalidValue: the function did not return three points of finite numbers.
        """
        motion = ask_user(self.point_b, t)  # type: ignore[arg-type]
        return finite_array(f"point_b of {self.name!r} at t = {t}", motion, (3, 3))

    def bind(self, robot: Robot, q: Array) -> BoundPointAnchor:
        """Return its rows on `robot`; a `point_b` that is None is the place of point_a at `q` (nq,).

        Raises:
            UnknownName: a link that the robot does not have.
        """
        return BoundPointAnchor(self, robot, q)


class BoundPointAnchor(BoundConstraint):
    """A :class:`PointAnchor` on one robot."""

    def __init__(self, declaration: PointAnchor, robot: Robot, q: Array) -> None:
        """Resolve the links of `declaration`."""
        self.declaration: PointAnchor = declaration
        joint_a, offset_a = robot.link_point(declaration.link_a, declaration.point_a)
        joint_b, placement_b = robot.link_placement(declaration.link_b)
        self._joints, self._offset_a, self._bound_at = np.array([joint_a, joint_b]), offset_a[None], (robot, q.copy())
        normals = np.eye(3) if declaration.normals is None else declaration.normals
        self._normals = np.ascontiguousarray(normals @ placement_b.rotation.T)
        self.dim, self._nv = len(normals), robot.nv
        self._frame_b, self._fixed = placement_b, np.zeros((3, self.dim))

    @classmethod
    def together(cls, members: tuple[BoundPointAnchor, ...]) -> tuple[StackedRows, ...]:
        """Return what evaluates the rows of all `members` in one call."""
        return (AnchorRows(members),) if len(members) > 1 and type(members[0]) is BoundPointAnchor else members

    def at(self, robot: Robot, q: Array) -> BoundPointAnchor:
        """Return the same rows of `robot`; a `point_b` that is None is the place of point_a at `q` (nq,)."""
        if self.declaration.point_b is not None:
            return self
        other = copy(self)
        vars(other).pop("_offsets", None)
        other._bound_at = robot, q
        return other

    @cached_property
    def _offsets(self) -> Array:
        """(2, 3) the points in the frames of the joints [m]; the Jacobian needs the first alone."""
        point_b = self.declaration.point_b
        if callable(point_b):
            offset_b = self._frame_b.translation
        elif point_b is None:
            dynamics = kinematics_aside(*self._bound_at)
            point_a = dynamics.point_positions(self._joints[:1], self._offset_a)[0]
            offset_b = _to_joint(dynamics, int(self._joints[1]), point_a)
        else:
            offset_b = self._frame_b.act(point_b)
        return np.array([self._offset_a[0], offset_b])

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) ``N^T R_b^T (p_a - p_b)`` [m]."""
        apart = anchor_error(self._joints, self._offsets, self._normals, dynamics.placements)
        return np.asarray(apart - self._moved(dynamics.t)[0])

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (dim, nv): relative velocity of the two body points that are at p_a now, in the axes of link_b."""
        robot = dynamics.robot
        return kinematics.anchor_rows(
            self._joints, self._offset_a, self._normals, dynamics.placements, dynamics.joint_axes, robot.support
        )

    def arrays(self) -> BilateralRows:
        """Return the rows as kernels know them."""
        return BilateralRows.without_function(self.dim, self._nv)._replace(
            anchors=np.array([[0, self.dim]]),
            anchor_joints=self._joints[None],
            anchor_offsets=self._offsets[None],
            normals=self._normals,
        )

    def target(self, t: float) -> Array:
        """Return (2, dim) a moving point_b and its velocity along the rows [m, m/s]; zero if it is fixed."""
        return self._moved(t)[:2]

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (dim,) ``J v``, less the velocity of a moving point_b [m/s]."""
        return J @ v - self._moved(t)[1]

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (dim,) ``N^T R_b^T (a_a - a_b - 2 omega_b x v)``, with v the relative velocity at p_a [m/s^2].

        Less the acceleration of a moving point_b.
        """
        bias = kinematics.anchor_bias(self._joints, self._offset_a, self._normals, *dynamics.motion)
        return bias - self._moved(dynamics.t)[2]

    def wrench(self, dynamics: Dynamics, multipliers: Array, link: str) -> Array:
        """Return (6,) the force [N] on `link` at p_a and no moment, world axes; see :meth:`BoundConstraint.wrench`."""
        return np.concatenate([sign_on(self, link) * multipliers @ self._axes(dynamics), np.zeros(3)])

    def wrench_point(self, dynamics: Dynamics) -> Array:
        """Return (3,) p_a [m], world frame."""
        return dynamics.point_positions(self._joints[:1], self._offset_a)[0]

    def pinocchio_constraint(self, dynamics: Dynamics) -> tuple[pin.RigidConstraintModel, Array]:
        """Return the 3-D contact of the body points that are at p_a now, its rows along the axes of link_b's joint."""
        point_a = self.wrench_point(dynamics)
        joint_a, joint_b = (int(joint) for joint in self._joints)
        in_a = pin.SE3(np.eye(3), self._offset_a[0])
        in_b = pin.SE3(np.eye(3), _to_joint(dynamics, joint_b, point_a))
        model, kind = dynamics.robot.model, self.declaration.pinocchio_type
        return pin.RigidConstraintModel(kind, model, joint_b, in_b, joint_a, in_a, pin.LOCAL), self._normals

    def _moved(self, t: float) -> Array:
        """Return (3, dim) a moving point_b, its velocity and its acceleration along the rows; 0 if it is fixed."""
        if not callable(self.declaration.point_b):
            return self._fixed
        return np.asarray(self.declaration.point_b_at(t) @ (self._normals @ self._frame_b.rotation).T)

    def _axes(self, dynamics: Dynamics) -> Array:
        """Return (dim, 3) the held directions in world axes."""
        return self._normals @ dynamics.placements[self._joints[1]][:3]


class AnchorRows:
    """The rows of several bound :class:`PointAnchor`, evaluated together.

    Attributes:
        members: the anchors.
        dim: number of rows.
    """

    def __init__(self, members: tuple[BoundPointAnchor, ...]) -> None:
        """Stack `members` in their order."""
        self.members = members
        ends = np.cumsum([0, *(member.dim for member in members)])
        self._table = (
            np.stack([ends[:-1], ends[1:]], axis=1),
            np.array([member._joints for member in members]),
            np.array([member._offset_a for member in members]),
            np.concatenate([member._normals for member in members]),
        )
        self.dim = int(ends[-1])
        self._moves = any(member.declaration.asks_user for member in members)

    def at(self, robot: Robot, q: Array) -> AnchorRows:
        """Return the same rows of `robot`, with open targets as they are at `q` (nq,)."""
        other = copy(self)
        other.members = tuple(member.at(robot, q) for member in self.members)
        return other

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (rows, nv), see :meth:`BoundPointAnchor.jacobian`."""
        where = dynamics.placements, dynamics.joint_axes, dynamics.robot.support
        return np.asarray(kinematics.anchors_rows(*self._table, *where))

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (rows,), see :meth:`BoundPointAnchor.gamma`."""
        return np.asarray(kinematics.anchors_bias(*self._table, *dynamics.motion)) - self._moved(dynamics.t, 2)

    def velocity(self, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (rows,), see :meth:`BoundPointAnchor.velocity`."""
        return self.velocity_with(self.jacobian(dynamics), dynamics, v, t)

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (rows,) the same, where J (rows, nv) is known already."""
        return J @ v - self._moved(t, 1)

    def _moved(self, t: float, derivative: int) -> Array | float:
        """Return (rows,) this derivative of the points b that move, along the rows; 0 where none moves."""
        return np.concatenate([member._moved(t)[derivative] for member in self.members]) if self._moves else 0.0


def _to_joint(dynamics: Dynamics, joint: int, point: Array) -> Array:
    placement = dynamics.placements[joint]
    return placement[:3] @ (point - placement[3])

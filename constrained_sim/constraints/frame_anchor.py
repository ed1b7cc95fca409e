"""FrameAnchor: a frame of one link coincides with a frame of another link, or of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.linalg import expm_frechet

from constrained_sim.constraints.bilateral_rows import BilateralRows
from constrained_sim.constraints.constraint import BetweenLinks, BoundConstraint, checked_links, checked_name, sign_on
from constrained_sim.dynamics import rigid_motion
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, directions, finite_array, read_only, shape_of, unit_pose

ORTHOGONAL = 1e-9
"""Error of ``R R^T`` up to which the user's matrix is a rotation: numbers of ten digits are taken."""


@dataclass(frozen=True, eq=False)
class FrameAnchor(BetweenLinks):
    """Holds the frame `placement_a` of `link_a` on the frame `placement_b` of `link_b`: a weld, or in parts of it.

    ``phi = log6(b^-1 a)``, 3 linear rows [m], then 3 angular rows [rad], with a and b the frames' placements. Its
    derivative is exact at any distance: ``s = Jlog6(b^-1 a) nu``, nu the velocity of a relative to b in the axes of a.
    With `axes` N, the rows are N times these. All unit directions but an angular one make a hinge, which may turn
    without end; all but a linear one a slide. (Each axis is a loop constraint of RBDL's.)

    Attributes:
        name: unique name.
        link_a: link or frame that is held.
        placement_a: pinocchio.SE3, 4 x 4 matrix, or position and quaternion xyzw (7,), in link_a.
        link_b: link or frame that holds it, or ``"world"``.
        placement_b: of the same kinds, in link_b; None: where the first frame is when the constraint is bound.
        axes: (k, 6) held directions, three linear and three angular components along the axes of the frames, or
            all numbers in a row; None: all.

    Raises:
        InvalidValue: not a placement, or directions that are not finite or zero.
    """

    name: str
    link_a: str
    placement_a: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    link_b: str = WORLD
    placement_b: Any = None
    axes: Any = None

    kind = "frame_anchor"
    targets = ("placement_b",)

    def __post_init__(self) -> None:
        """Check and convert."""
        checked_name(self.name)
        checked_links(f"of frame anchor {self.name!r}", self.link_a, self.link_b)
        object.__setattr__(self, "placement_a", as_placement(f"placement_a of {self.name!r}", self.placement_a))
        if self.placement_b is not None:
            object.__setattr__(self, "placement_b", as_placement(f"placement_b of {self.name!r}", self.placement_b))
        if self.axes is not None:
            what = f"axes of frame anchor {self.name!r}"
            axes = directions(what, self.axes, 6)
            if not len(axes):
                raise InvalidValue(what, self.axes, "k x 6 directions, or None for all six")
            if not axes.any(axis=1).all():
                raise InvalidValue(what, axes.tolist(), "directions that are not zero")
            object.__setattr__(self, "axes", read_only(axes))

    @property
    def pinocchio_type(self) -> pin.ContactType | None:  # type: ignore[override]
        """All six directions are a 6-D contact of Pinocchio's; others have no model there."""
        return pin.ContactType.CONTACT_6D if self.axes is None else None

    def bind(self, robot: Robot, q: Array) -> BoundFrameAnchor:
        """Return its rows on `robot`; a `placement_b` that is None is that of the first frame at `q` (nq,).

        Raises:
            UnknownName: a link that the robot does not have.
        """
        return BoundFrameAnchor(self, robot, q)


class BoundFrameAnchor(BoundConstraint):
    """A :class:`FrameAnchor` on one robot."""

    def __init__(self, declaration: FrameAnchor, robot: Robot, q: Array) -> None:
        """Resolve the links of `declaration`."""
        self.declaration: FrameAnchor = declaration
        self._axes = np.eye(6) if declaration.axes is None else declaration.axes
        self.dim = len(self._axes)
        self._joint_a, link_a = robot.link_placement(declaration.link_a)
        self._joint_b, link_b = robot.link_placement(declaration.link_b)
        self._in_a = link_a * declaration.placement_a
        if declaration.placement_b is None:
            dynamics = kinematics_at(robot, q)
            self._in_b = dynamics.placement(self._joint_b).actInv(dynamics.placement(self._joint_a) * self._in_a)
        else:
            self._in_b = link_b * declaration.placement_b
        self._joints, self._nv = np.array([self._joint_a, self._joint_b]), robot.nv
        self._frames = np.array(
            [np.vstack([frame.rotation.T, frame.translation]) for frame in (self._in_a, self._in_b)]
        )

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) ``N log6(b^-1 a)`` [m, rad]."""
        return np.asarray(rigid_motion.frame_error(self._joints, self._frames, self._axes, dynamics.placements))

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (dim, nv) ``N Jlog6 Ad(a^-1) (J_a - J_b)``, from the joints' axes in the world frame."""
        where = dynamics.placements, dynamics.joint_axes, dynamics.robot.support
        return np.asarray(rigid_motion.frame_rows(self._joints, self._frames, self._axes, *where))

    def arrays(self) -> BilateralRows:
        """Return the rows as kernels know them."""
        return BilateralRows.without_function(self.dim, self._nv)._replace(
            frame_anchors=np.array([[0, self.dim]]),
            frame_joints=self._joints[None],
            frames=self._frames[None],
            directions=self._axes,
        )

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (dim,) ``N (Jlog6 dnu/dt + d(Jlog6)/dt nu)`` for zero joint accelerations [m/s^2, rad/s^2].

        With spatial velocities V and accelerations A of the bodies in world axes, ``nu = Ad(a^-1) (V_a - V_b)`` and
        ``dnu/dt = Ad(a^-1) (A_a - A_b - V_a x (V_a - V_b))``.
        """
        a, relative = self._relative(dynamics)
        velocity_a, bias_a = dynamics.spatial_motion(self._joint_a)
        velocity_b, bias_b = dynamics.spatial_motion(self._joint_b)
        slip = velocity_a - velocity_b
        nu = a.actInv(slip).vector
        nu_dot = a.actInv(bias_a - bias_b - velocity_a.cross(slip)).vector
        jlog = rigid_motion.jlog6(relative)
        x_dot = jlog @ nu
        turning = _right_jacobian_derivative(pin.Motion(rigid_motion.log6(relative)), pin.Motion(x_dot))
        return self._axes @ (jlog @ (nu_dot - turning @ x_dot))

    def wrench(self, dynamics: Dynamics, multipliers: Array, link: str) -> Array:
        """Return (6,) force and moment on `link` about the origin of the first frame, world axes."""
        a, relative = self._relative(dynamics)
        in_a = rigid_motion.jlog6(relative).T @ (multipliers @ self._axes)
        return sign_on(self, link) * np.concatenate([a.rotation @ in_a[:3], a.rotation @ in_a[3:]])

    def wrench_point(self, dynamics: Dynamics) -> Array:
        """Return (3,) the origin of the first frame [m], world frame."""
        return np.array(self._relative(dynamics)[0].translation)

    def pinocchio_constraint(self, dynamics: Dynamics) -> tuple[pin.RigidConstraintModel, Array]:
        """Return the 6-D contact of the body frames that are at the first frame now, rows in its axes."""
        a, relative = self._relative(dynamics)
        in_b = dynamics.placement(self._joint_b).actInv(a)
        model, kind = dynamics.robot.model, self.declaration.pinocchio_type
        contact = pin.RigidConstraintModel(kind, model, self._joint_b, in_b, self._joint_a, self._in_a, pin.LOCAL)
        return contact, np.asarray(rigid_motion.jlog6(relative))

    def _relative(self, dynamics: Dynamics) -> tuple[pin.SE3, Array]:
        """Return the placement of a in the world, and (4, 3) that in b: rotation columns and translation."""
        a, relative = rigid_motion.relative_placement(self._joints, self._frames, dynamics.placements)
        return pin.SE3(np.ascontiguousarray(a[:3].T), a[3]), relative


def as_placement(what: str, value: Any) -> pin.SE3:
    """Return a placement from a pinocchio.SE3, a 4 x 4 matrix, or position and quaternion xyzw (7,).

    Raises:
        InvalidValue: anything else, a matrix that is not a rigid motion, or a zero quaternion.
    """
    if isinstance(value, pin.SE3):
        return pin.SE3(value)
    if shape_of(value) == (4, 4):
        matrix = finite_array(what, value, (4, 4))
        rotation = matrix[:3, :3]
        is_rigid = np.allclose(rotation @ rotation.T, np.eye(3), atol=ORTHOGONAL) and np.linalg.det(rotation) > 0.0
        if not is_rigid or not np.allclose(matrix[3], (0.0, 0.0, 0.0, 1.0)):
            raise InvalidValue(what, matrix.tolist(), "a rigid motion")
        return pin.SE3(rotation, matrix[:3, 3])
    pose = unit_pose(what, value)
    return pin.SE3(pin.Quaternion(pose[3:]).matrix(), pose[:3])


def _right_jacobian_derivative(x: pin.Motion, x_dot: pin.Motion) -> Array:
    """Return (6, 6) the rate of the right Jacobian of exp6 at x, along x_dot.

    ``J_r(x) = phi_1(-ad_x)`` with ``phi_1(z) = (e^z - 1) / z``, the corner of ``expm([[-ad_x, I], [0, 0]])``, so its
    derivative is that of the matrix exponential (Al-Mohy and Higham, 2009). Jlog6 is the inverse of J_r.
    """
    matrix, direction = np.zeros((12, 12)), np.zeros((12, 12))
    matrix[:6, :6], matrix[:6, 6:] = -x.action, np.eye(6)
    direction[:6, :6] = -x_dot.action
    return expm_frechet(matrix, direction, compute_expm=False, check_finite=False)[:6, 6:]

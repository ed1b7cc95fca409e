"""All contacts and one-sided rows of a robot as one table of arrays, evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim import kinematics
from constrained_sim.contact.laws import SoftLaw
from constrained_sim.contact.resistance import TurningResistance
from constrained_sim.dynamics import Dynamics
from constrained_sim.validation import Array

if TYPE_CHECKING:
    from constrained_sim.constraints.constraint import ConstraintStack
    from constrained_sim.constraints.point_contact import BoundContact


TOUCHING = 1e-8
"""Gap [m, rad] up to which a contact counts as closed, and a limit as reached."""


class ContactGeometry(NamedTuple):
    """Where k contacts are, how far l one-sided rows are from their bounds, and how the rows of both move.

    Attributes:
        points: (k, 3) contact points [m], world frame.
        distances: (k,) of the contacts from their surfaces [m], negative where they penetrate.
        gaps: (k + l,) of the contacts and of the one-sided rows [m, rad], negative where they are violated; infinite
            of soft contacts, which have nothing to violate.
        J: (3 k + l, nv) rows [t1, t2, n] of each contact, then the one-sided rows.
        s: (3 k + l,) velocities of the rows [m/s, rad/s].
        normals: (k + l,) which rows open and close: the normal ones, and all one-sided ones.
    """

    points: Array
    distances: Array
    gaps: Array
    J: Array
    s: Array
    normals: npt.NDArray[np.int64]

    @property
    def s_normal(self) -> Array:
        """(k + l,) velocities with which they open [m/s, rad/s]."""
        return self.s[self.normals]


class ContactTable:
    """Gaps, contact points and rows [t1, t2, n] of k contacts with planes; and l one-sided rows, such as joint limits.

    A sphere touches at ``centre - radius n``, a point that moves over the body: its rows are the velocity of the
    body point that is there now, and their derivative follows the centre. Where the surface belongs to another link,
    rows are relative to the point of that link which is there now, and axes stay as they are in the world.

    Attributes:
        members: the bound contacts, in the order of all rows.
        limits: the one-sided rows, stacked.
        friction: (k,) coefficients in effect.
        restitution: (k + l,).
        poisson: (k + l,) whether this is Poisson's coefficient, not Newton's.
        axes: (k, 3, 3) rows t1, t2, n of each contact, world axes.
        normals: (k + l,) which rows open and close.
        soft: indices of the contacts whose law gives a force.
        soft_laws: their laws.
        resistance: of the contacts to rolling and spinning.
        placement: where contacts and their surfaces are: the first arguments of ``kinematics.contact_rows``.
    """

    def __init__(self, members: Sequence[BoundContact], limits: ConstraintStack) -> None:
        """Take the contacts and the one-sided constraints in their order."""
        self.members, self.limits = tuple(members), limits
        contacts = [member.declaration for member in members]
        self.friction = np.array([contact.coefficient for contact in contacts])
        self.soft = np.flatnonzero([isinstance(contact.law, SoftLaw) for contact in contacts])
        self.soft_laws = tuple(contact.law for contact in contacts if isinstance(contact.law, SoftLaw))
        one_sided = [limit.declaration.restitution for limit in limits.members for _ in range(limit.dim)]
        self.restitution = np.array([contact.restitution for contact in contacts] + one_sided)
        self.poisson = np.zeros(len(self.restitution), dtype=np.bool_)
        self.poisson[: len(contacts)] = [contact.restitution_law == "poisson" for contact in contacts]
        self.axes = np.array([contact.surface.axes for contact in contacts]).reshape(-1, 3, 3)
        rows = 3 * len(contacts)
        self.normals = np.concatenate([np.arange(2, rows, 3), rows + np.arange(limits.dim)])
        self._radii = np.array([contact.radius for contact in contacts])
        self._joints = np.array([member.joint for member in members], dtype=np.int64)
        self._points = np.array([member.offset for member in members]).reshape(-1, 3)
        self._other_joints = np.array([member.other_joint for member in members], dtype=np.int64)
        other_points = np.array([member.other_offset for member in members]).reshape(-1, 3)
        self.placement = (self._joints, self._points, self._radii, self.axes, self._other_joints, other_points)
        self.resistance = TurningResistance(members)

    def __len__(self) -> int:
        """Return how many contacts and one-sided rows there are."""
        return len(self.members) + self.limits.dim

    @property
    def dim(self) -> int:
        """Number of rows, 3 k + l."""
        return 3 * len(self.members) + self.limits.dim

    @property
    def slices(self) -> dict[str, slice]:
        """Rows of each contact and one-sided constraint, by name."""
        begin = 3 * len(self.members)
        contacts = {member.name: slice(3 * i, 3 * i + 3) for i, member in enumerate(self.members)}
        return contacts | {
            name: slice(begin + rows.start, begin + rows.stop) for name, rows in self.limits.slices.items()
        }

    def rows(self, dynamics: Dynamics, v: Array) -> ContactGeometry:
        """Return points, gaps, Jacobian and row velocities at the configuration of `dynamics` and at `v` (nv,)."""
        count = len(self.members)
        points, distances = np.empty((count, 3)), np.empty(count)
        J, s = np.empty((3 * count, len(v))), np.empty(3 * count)
        kinematics.contact_rows(
            *self.placement,
            dynamics.placements,
            dynamics.joint_axes,
            dynamics.robot.support,
            v,
            points,
            distances,
            J,
            s,
        )
        gaps = distances
        if self.soft.size:
            gaps = distances.copy()
            gaps[self.soft] = np.inf
        if self.limits.dim:
            limits = self.limits.jacobian(dynamics)
            gaps = np.concatenate([gaps, self.limits.phi(dynamics)])
            J, s = np.concatenate([J, limits]), np.concatenate([s, limits @ v])
        return ContactGeometry(points, distances, gaps, J, s, self.normals)

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (3 k + l,) the velocity-dependent part of the rows' acceleration [m/s^2, rad/s^2].

        Of contacts ``[t1, t2, n] . (a_centre + alpha x (-r n))``: the normal of a plane does not turn, hence no
        ``omega x (omega x r n)``. Less, where the surface belongs to another link, the rate of its velocity at a point
        that moves with the centre: ``a_other + omega_other x (v_centre - v_other)``.
        """
        gamma = np.empty((len(self.members), 3))
        for i, (joint, point) in enumerate(zip(self._joints, self._points, strict=True)):
            body = dynamics.body(int(joint))
            centre = body.position + body.rotation @ point
            arm = -self._radii[i] * self.axes[i, 2]
            bias = body.bias_at(centre) + kinematics.cross(body.angular_bias, arm)
            if self._other_joints[i]:
                other = dynamics.body(int(self._other_joints[i]))
                drift = body.velocity_at(centre) - other.velocity_at(centre + arm)
                bias -= other.bias_at(centre + arm) + kinematics.cross(other.angular_velocity, drift)
            gamma[i] = self.axes[i] @ bias
        return np.concatenate([gamma.ravel(), self.limits.gamma(dynamics)])

    def laws_of(self, indices: npt.NDArray[np.intp]) -> tuple[Array, Array, Array, Array]:
        """Return friction, slip, lower and upper bounds of contacts and one-sided rows, at velocity level."""
        friction = self.friction[indices[indices < len(self.members)]]
        one_sided = np.zeros(len(indices) - len(friction))
        return friction, np.zeros((len(friction), 2)), one_sided, one_sided + np.inf

    def reached(self, gaps: Array) -> npt.NDArray[np.intp]:
        """Return the places of all contacts but soft ones, and of one-sided rows at their bound, at `gaps` (k + l,)."""
        closed = gaps <= TOUCHING
        closed[: len(self.members)] = np.isfinite(gaps[: len(self.members)])
        return np.flatnonzero(closed)

    def rows_of(self, indices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the rows of contacts and one-sided rows given by `indices` (c,), ascending: three of each contact."""
        contacts = indices[indices < len(self.members)]
        of_contacts = (3 * contacts[:, None] + np.arange(3)).ravel()
        return np.concatenate([of_contacts, self.normals[indices[len(contacts) :]]])

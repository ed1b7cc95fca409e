"""All contacts and one-sided rows of a robot as one table of arrays, evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.bias_acceleration import contact_gamma
from constrained_sim.contact.bound_contact import BoundContact
from constrained_sim.contact.features import ContactFeatures, ContactGeometry, contact_rows
from constrained_sim.contact.laws import SoftLaw
from constrained_sim.contact.rolling import RollingFriction
from constrained_sim.contact.soft_contacts import SoftContacts
from constrained_sim.contact_solvers.scaled_problem import ContactLaws, box_bounds
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.validation import Array, read_only

if TYPE_CHECKING:
    from constrained_sim.constraints.constraint_stack import ConstraintStack

NO_JOINT_FRICTION = read_only(np.zeros(0))

TOUCHING = 1e-8
"""Gap [m, rad] up to which a contact counts as closed, and a limit as reached."""


class ContactSet:
    """Gaps, contact points and rows [t1, t2, n] of k contacts; and l one-sided rows, such as joint limits.

    A sphere touches a plane at ``centre - radius n``, a point that moves over the body: its rows are the velocity of
    the body point that is there now, relative to the point of the other body which is there now.

    Attributes:
        members: the bound contacts, in the order of all rows.
        limits: the one-sided rows, stacked.
        friction: (k,) coefficients in effect.
        slip_friction: (k,) the same, but 0 of soft contacts, whose friction does not jump where slip turns back.
        restitution: (k + l,).
        poisson: (k + l,) whether this is Poisson's coefficient, not Newton's.
        normals: (k + l,) which rows open and close.
        soft: indices of the contacts whose law gives a force.
        soft_laws: their laws.
        soft_table: them as kernels know them.
        asks_user: whether the force of any of them is a function of the user's.
        resistance: of the contacts to rolling and spinning.
        features: what touches at the contacts.
    """

    def __init__(self, members: Sequence[BoundContact], limits: ConstraintStack) -> None:
        """Take the contacts and the one-sided constraints in their order."""
        self.members, self.limits = tuple(members), limits
        contacts = [member.properties for member in members]
        self.friction = np.array([contact.coefficient for contact in contacts])
        self.soft = np.flatnonzero([isinstance(contact.law, SoftLaw) for contact in contacts])
        self.soft_laws = tuple(contact.law for contact in contacts if isinstance(contact.law, SoftLaw))
        self.soft_table = SoftContacts.of(self.soft, self.soft_laws)
        self.asks_user = any(law.coefficients is None for law in self.soft_laws)
        self.slip_friction = self.friction.copy()
        self.slip_friction[self.soft] = 0.0
        one_sided = [limit.declaration.restitution for limit in limits.members for _ in range(limit.dim)]
        self.restitution = np.array([contact.restitution for contact in contacts] + one_sided)
        self.poisson = np.zeros(len(self.restitution), dtype=np.bool_)
        self.poisson[: len(contacts)] = [contact.is_poisson for contact in contacts]
        rows = 3 * len(contacts)
        self.normals = np.concatenate([np.arange(2, rows, 3), rows + np.arange(limits.dim)])
        self.features = ContactFeatures(
            np.array([(member.joint, member.other_joint) for member in members], dtype=np.int64).reshape(-1, 2),
            np.array([(member.offset, member.other_offset) for member in members]).reshape(-1, 2, 3),
            np.array([(member.radius, member.other_radius) for member in members]).reshape(-1, 2),
            np.array([member.normal_owner for member in members], dtype=np.int64),
            np.array([member.axes for member in members]).reshape(-1, 3, 3),
            np.array([member.directions for member in members]).reshape(-1, 2, 3),
            np.array([member.rim_radii for member in members], dtype=np.float64).reshape(-1, 2),
        )
        self.resistance = RollingFriction(members, self.features)

    def __len__(self) -> int:
        """Return how many contacts and one-sided rows there are."""
        return len(self.members) + self.limits.dim

    @property
    def dim(self) -> int:
        """Number of rows, 3 k + l."""
        return 3 * len(self.members) + self.limits.dim

    @property
    def shares_bodies(self) -> bool:
        """Whether any two neighbours are of the same bodies; others are not combined, see `reduced_rows.py`."""
        bodies = self.features.bodies
        return bool((bodies[1:] == bodies[:-1]).all(axis=1).any())

    @property
    def slices(self) -> dict[str, slice]:
        """Rows of each contact and one-sided constraint, by name."""
        begin = 3 * len(self.members)
        contacts = {member.name: slice(3 * i, 3 * i + 3) for i, member in enumerate(self.members)}
        return contacts | {
            name: slice(begin + rows.start, begin + rows.stop) for name, rows in self.limits.slices.items()
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(k + l) names of the constraints that the contacts and one-sided rows belong to."""
        return *(member.name for member in self.members), *self.limits.row_names

    def rows(self, dynamics: Dynamics, v: Array) -> ContactGeometry:
        """Return points, gaps, Jacobian and row velocities at the configuration of `dynamics` and at `v` (nv,)."""
        count = len(self.members)
        axes, points, distances = np.empty((count, 3, 3)), np.empty((count, 3)), np.empty(count)
        J, s = np.empty((3 * count, len(v))), np.empty(3 * count)
        pose = dynamics.placements, dynamics.joint_axes, dynamics.robot.support
        contact_rows(self.features, pose, v, (axes, points, distances), (J, s))
        gaps = distances
        if self.soft.size:
            gaps = distances.copy()
            gaps[self.soft] = np.inf
        if self.limits.dim:
            limits = self.limits.jacobian(dynamics)
            gaps = np.concatenate([gaps, self.limits.phi(dynamics)])
            J, s = np.concatenate([J, limits]), np.concatenate([s, limits @ v])
        return ContactGeometry(axes, points, distances, gaps, J, s, self.normals)

    def with_turning(self, dynamics: Dynamics, geometry: ContactGeometry) -> Array:
        """Return (3 k + l + e, nv) the rows of the `geometry`, then those in which contacts resist turning."""
        if not self.resistance.dim:
            return geometry.J
        return np.vstack([geometry.J, self.resistance.rows(dynamics, geometry.axes)])

    def gamma(self, dynamics: Dynamics, geometry: ContactGeometry) -> Array:
        """Return (3 k + l,) the velocity-dependent part of the rows' acceleration [m/s^2, rad/s^2].

        At the configuration and velocity of `dynamics`, where the `geometry` was found.
        """
        gamma = contact_gamma(tuple(self.features), geometry.places, dynamics.motion)
        return np.concatenate([gamma, self.limits.gamma(dynamics)])

    def forces(self, rows: Array, axes: Array) -> Array:
        """Return (..., k, 3) the forces of the contacts, world axes.

        Args:
            rows: (..., 3 k + l) values.
            axes: (..., k, 3, 3) along which those of the contacts act.
        """
        of_contacts = rows[..., : 3 * len(self.members)].reshape(*axes.shape[:-2], 1, 3)
        return np.matmul(of_contacts, axes)[..., 0, :]

    def laws_of(self, indices: npt.NDArray[np.intp], joint_friction: Array = NO_JOINT_FRICTION) -> ContactLaws:
        """Return the laws of contacts and one-sided rows at velocity level, without resistance to turning.

        Args:
            indices: (c,) of them, ascending.
            joint_friction: (d,) largest impulses of dry joint friction, whose rows follow theirs [N m s, N s].
        """
        friction = self.friction[indices[indices < len(self.members)]]
        lower, upper = box_bounds(len(indices) - len(friction), 0, joint_friction)
        return ContactLaws.of_contacts(friction)._replace(lower=lower, upper=upper)

    def reached(self, gaps: Array) -> npt.NDArray[np.intp]:
        """Return the places of all contacts but soft ones, and of one-sided rows at their bound, at `gaps` (k + l,)."""
        if not len(self):
            return np.empty(0, dtype=np.intp)
        closed = gaps <= TOUCHING
        closed[: len(self.members)] = np.isfinite(gaps[: len(self.members)])
        return np.flatnonzero(closed)

    def along_normals(self, values: Array) -> Array:
        """Return (3 k + l,) the `values` (k + l,) in the rows that open and close, 0 in those along surfaces."""
        rows = np.zeros(self.dim)
        rows[self.normals] = values
        return rows

    def rows_of(self, indices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the rows of contacts and one-sided rows given by `indices` (c,), ascending: three of each contact."""
        rows: npt.NDArray[np.intp] = rows_of(np.ascontiguousarray(indices), self.normals, len(self.members))
        return rows


@kernel
def rows_of(chosen, normals, contacts):
    """Return the rows (n,) of contacts and one-sided rows, `chosen` (c,) among them: three of each contact.

    Args:
        chosen: ascending.
        normals: (k + l,) which rows open and close.
        contacts: their number k.
    """
    rows = np.empty(3 * chosen.shape[0], dtype=np.int64)
    count = 0
    for c in chosen:
        for row in range(normals[c] - 2 if c < contacts else normals[c], normals[c] + 1):
            rows[count] = row
            count += 1
    return rows[:count]

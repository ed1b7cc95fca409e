"""The constraints of one robot, bound, with their rows in the order of their declaration."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.constraint import (
    BoundConstraint,
    Constraint,
    ConstraintStack,
    checked_constraints,
)
from constrained_sim.constraints.joint_limit import JointLimitStack, stack_limits
from constrained_sim.constraints.point_contact import BoundContact
from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import DuplicateName
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, known, lookup


class ConstraintSet:
    """Immutable set of bound constraints and contacts.

    Attributes:
        robot: that they act on.
        members: all, in the order of declaration.
        bilateral: the bilateral rows, stacked.
        contacts: the contacts and all other one-sided rows, as a table.
        slices: rows of each member among all rows, by name.
        dim: number of all rows.
        bounds: of the joints; None where there are other one-sided rows.
        places: (dim,) where the rows are, in the order of declaration, among those of the table of contacts and then
            the bilateral ones.
        is_of_arrays: whether kernels know all: contacts, limits of joints, and rows of all kinds but custom ones.
    """

    def __init__(self, robot: Robot, members: Sequence[BoundConstraint | BoundContact]) -> None:
        """Stack bound `members`.

        Raises:
            DuplicateName: two members of one name.
        """
        rows = [member for member in members if isinstance(member, BoundConstraint)]
        bilateral = ConstraintStack(tuple(m for m in rows if not m.declaration.is_unilateral), robot.nv)
        limits = stack_limits(tuple(m for m in rows if m.declaration.is_unilateral), robot.nv)
        self._take(robot, members, bilateral, limits)

    def _take(
        self,
        robot: Robot,
        members: Sequence[BoundConstraint | BoundContact],
        bilateral: ConstraintStack,
        limits: ConstraintStack,
    ) -> None:
        """Take these members, whose bilateral rows and one-sided ones are stacked."""
        self.robot, self.members, self.bilateral = robot, tuple(members), bilateral
        self.contacts = ContactSet([member for member in members if isinstance(member, BoundContact)], limits)
        self.slices: dict[str, slice] = {}
        self.dim = 0
        for member in self.members:
            if member.name in self.slices:
                raise DuplicateName(member.name)
            count = 3 if isinstance(member, BoundContact) else member.dim
            self.slices[member.name] = slice(self.dim, self.dim + count)
            self.dim += count
        self.bounds = limits.bounds if isinstance(limits, JointLimitStack) else None
        self.is_of_arrays = self.bounds is not None and self.bilateral.arrays is not None
        self._bilateral_rows = self._rows_of(self.bilateral.slices)
        self._contact_rows = self._rows_of(self.contacts.slices)
        self.places = np.argsort(np.concatenate([self._contact_rows, self._bilateral_rows]))

    @classmethod
    def bind(cls, robot: Robot, q: Array, constraints: Iterable[Constraint]) -> ConstraintSet:
        """Bind `constraints` and those of the `robot` itself; "where it is now" is at `q` (nq,).

        Raises:
            InvalidValue: something that is not a constraint.
            DuplicateName: two constraints of one name.
            UnknownName: a link or joint that the robot does not have.
        """
        given = *checked_constraints(constraints), *robot.constraints
        return cls(robot, [constraint.bind(robot, q) for constraint in given])

    def with_contacts(self, members: Sequence[BoundConstraint | BoundContact]) -> ConstraintSet:
        """Return a set of these `members`, which differ from those here in contacts only; all else is shared.

        Raises:
            DuplicateName: two members of one name.
        """
        if len(members) == len(self.members) and all(map(operator.is_, members, self.members)):
            return self
        other = object.__new__(ConstraintSet)
        other._take(self.robot, members, self.bilateral, self.contacts.limits)
        return other

    @property
    def declarations(self) -> tuple[Constraint, ...]:
        """What was bound, in the order of declaration; not what was detected."""
        return tuple(member.declaration for member in self.members if member.declaration is not None)

    def member(self, name: str) -> BoundConstraint | BoundContact:
        """Return the bound constraint or contact `name`.

        Raises:
            UnknownName: with the names that exist.
        """
        return lookup("constraint or contact", name, {member.name: member for member in self.members})

    def wrench(
        self,
        dynamics: Dynamics,
        name: str,
        multipliers: Array,
        link: str,
        axes: str = WORLD,
        moments: Array | None = None,
    ) -> Array:
        """Return (6,) the force [N] and the moment [N m] about the point where it acts, by `name` on `link`.

        Args:
            dynamics: at the configuration in question.
            name: constraint or contact.
            multipliers: its rows [N, N m].
            link: the link that is acted on.
            axes: ``"world"``, or a link whose axes to use.
            moments: (k, 3) of the contacts [N m], world axes; None: zero.

        Raises:
            UnknownName: no such constraint, or one that does not act on this link.
        """
        member = self.member(name)
        if isinstance(member, BoundConstraint):
            wrench = member.wrench(dynamics, multipliers, link)
        else:
            links = [member.link, member.other_link]
            known(f"link of contact {name!r}", link, links)
            place = self.contacts.members.index(member)
            moment = np.zeros(3) if moments is None else moments[place]
            force = multipliers @ self.contacts.rows(dynamics, dynamics.v).axes[place]
            wrench = (1.0 if link == links[0] else -1.0) * np.concatenate([force, moment])
        joint, placement = dynamics.robot.link_placement(axes)
        rotation = dynamics.placements[joint][:3].T @ placement.rotation
        return np.concatenate([rotation.T @ wrench[:3], rotation.T @ wrench[3:]])

    def rows_jacobian(self, bilateral: Array, contact: Array) -> Array:
        """Return (dim, nv) the Jacobian of all rows in the order of declaration, from the two kinds."""
        combined = np.zeros((self.dim, bilateral.shape[1]))
        combined[self._bilateral_rows], combined[self._contact_rows] = bilateral, contact
        return combined

    def rows(self, bilateral: Array, contact: Array) -> Array:
        """Return (..., dim) values of all rows in the order of declaration, from the two kinds."""
        every = np.concatenate([contact, bilateral], axis=-1) if self.bilateral.dim else contact
        return np.take(every, self.places, axis=-1)

    def split(self, rows: Array) -> tuple[Array, Array]:
        """Return the bilateral and the contact part of `rows` (..., dim)."""
        return rows[..., self._bilateral_rows], rows[..., self._contact_rows]

    def slice(self, name: str) -> slice:
        """Return the rows of `name`.

        Raises:
            UnknownName: with the names that exist.
        """
        return lookup("constraint or contact", name, self.slices)

    def _rows_of(self, names: Iterable[str]) -> npt.NDArray[np.intp]:
        indices = [np.arange(self.dim)[self.slices[name]] for name in names]
        return np.concatenate(indices) if indices else np.zeros(0, dtype=np.intp)

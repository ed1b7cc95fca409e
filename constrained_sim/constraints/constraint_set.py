"""The constraints of one robot, bound, with their rows in the order of their declaration."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.constraint import (
    BoundConstraint,
    Constraint,
    checked_constraints,
)
from constrained_sim.constraints.constraint_stack import ConstraintStack
from constrained_sim.constraints.joint_limit import JointLimitStack, stack_limits
from constrained_sim.contact.bound_contact import BoundContact
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
    """

    def __init__(self, robot: Robot, members: Sequence[BoundConstraint | BoundContact]) -> None:
        """Stack bound `members`.

        Raises:
            DuplicateName: two members of one name.
        """
        rows = [member for member in members if isinstance(member, BoundConstraint)]
        bilateral = ConstraintStack(tuple(m for m in rows if not m.declaration.is_unilateral), robot.nv)
        unilateral = tuple(m for m in rows if m.declaration.is_unilateral)
        limits = stack_limits(unilateral, robot.nv) if unilateral else _no_contacts(robot.nv).limits
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
        contacts = [member for member in members if isinstance(member, BoundContact)]
        self.contacts = ContactSet(contacts, limits) if contacts or limits.members else _no_contacts(robot.nv)
        self.slices: dict[str, slice] = {}
        self.dim = 0
        for member in self.members:
            if member.name in self.slices:
                raise DuplicateName(member.name)
            count = 3 if isinstance(member, BoundContact) else member.dim
            self.slices[member.name] = slice(self.dim, self.dim + count)
            self.dim += count
        self.bounds = limits.bounds if isinstance(limits, JointLimitStack) else None

    @classmethod
    def bind(cls, robot: Robot, q: Array, constraints: Iterable[Constraint]) -> ConstraintSet:
        """Bind `constraints` and those of the `robot` itself; "where it is now" is at `q` (nq,).

        Sets of constraints that last are kept, and bound again only as far as `q` counts.

        Raises:
            InvalidValue: something that is not a constraint.
            DuplicateName: two constraints of one name.
            UnknownName: a link or joint that the robot does not have.
        """
        given = *checked_constraints(constraints), *robot.constraints
        for same, bound in tuple(robot.bound_sets):
            if len(same) == len(given) and all(map(operator.is_, same, given)):
                return bound._at(q)
        bound = cls(robot, [constraint.bind(robot, q) for constraint in given])
        if all(vars(type(constraint)).get("lasts") for constraint in given):
            robot.bound_sets.append((given, bound))
        return bound

    def _at(self, q: Array) -> ConstraintSet:
        """Return a set of the same constraints, bound at `q` (nq,): all else is shared."""
        if not self.bilateral.has_open_targets:
            return self
        other = copy(self)
        other.bilateral = self.bilateral.at(self.robot, q.copy())
        members = dict(zip(self.bilateral.slices, other.bilateral.members, strict=True))
        other.members = tuple(members.get(member.name, member) for member in self.members)
        return other

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
    def is_of_arrays(self) -> bool:
        """Whether kernels know all: contacts, limits of joints, and rows of all kinds but custom ones."""
        return self.bounds is not None and self.bilateral.arrays is not None

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
        if not self.contacts.dim:
            return bilateral
        every = np.concatenate([contact, bilateral], axis=-1) if self.bilateral.dim else contact
        return np.take(every, self.row_order, axis=-1)

    def split(self, rows: Array) -> tuple[Array, Array]:
        """Return the bilateral and the contact part of `rows` (..., dim)."""
        if not self.contacts.dim:
            return rows, rows[..., :0]
        return rows[..., self._bilateral_rows], rows[..., self._contact_rows]

    def slice(self, name: str) -> slice:
        """Return the rows of `name`.

        Raises:
            UnknownName: with the names that exist.
        """
        return lookup("constraint or contact", name, self.slices)

    @cached_property
    def _bilateral_rows(self) -> npt.NDArray[np.intp]:
        return self._rows_of(self.bilateral.slices)

    @cached_property
    def _contact_rows(self) -> npt.NDArray[np.intp]:
        return self._rows_of(self.contacts.slices)

    @cached_property
    def row_order(self) -> npt.NDArray[np.intp]:
        """(dim,) where the rows are, in the order of declaration, among those of the contacts, then the bilateral."""
        return np.argsort(np.concatenate([self._contact_rows, self._bilateral_rows]))

    def _rows_of(self, names: Iterable[str]) -> npt.NDArray[np.intp]:
        indices = [np.arange(self.dim)[self.slices[name]] for name in names]
        return np.concatenate(indices) if indices else np.zeros(0, dtype=np.intp)


@lru_cache(maxsize=16)
def _no_contacts(nv: int) -> ContactSet:
    """Return no contacts and no one-sided rows of a robot with `nv` degrees of freedom."""
    return ContactSet((), stack_limits((), nv))

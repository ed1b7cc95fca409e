"""Constraint: a declaration by name, and its rows for one robot once it is bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from typing import Any, Protocol

import numpy as np
import pinocchio as pin

from constrained_sim.constraints.bilateral_rows import BilateralRows
from constrained_sim.contact.bound_contact import BoundContact
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue, NotSupported, UnknownName
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, items, lookup


class Constraint(ABC):
    """Declaration of a constraint: immutable, knows names only, belongs to no robot.

    Attributes:
        kind: name in configuration files and messages.
        name: unique among the constraints and contacts of a simulation.
        is_unilateral: whether its force pushes only: ``0 <= s _|_ lam >= 0`` where phi is 0, nothing where phi > 0.
        restitution: Newton's coefficient of a unilateral constraint.
        pinocchio_type: kind of Pinocchio's constraint model with rows that span the same; None if there is none.
        targets: names of the fields, of bilateral ones only, that may be None: what they are when the constraint is
            bound.
        lasts: whether what it is bound to lasts: no field can change, and configurations count for `targets` only. A
            subclass has to say so anew.
    """

    kind: str
    name: str
    is_unilateral = False
    restitution: float = 0.0
    pinocchio_type: pin.ContactType | None = None
    targets: tuple[str, ...] = ()
    lasts = False

    @property
    def links(self) -> tuple[str, ...]:
        """The link that its wrench acts on, and the one that the opposite acts on; none of a constraint of joints."""
        return ()

    @property
    def asks_user(self) -> bool:
        """Whether functions of the user's give its rows, so that their derivatives may be wrong."""
        return False

    @property
    def has_open_target(self) -> bool:
        """Whether a target is None, so that it matters where the constraint is bound."""
        return any(getattr(self, target) is None for target in self.targets)

    def completed(self, robot: Robot, q: Array, given: Container[str]) -> Array:
        """Return `q` with the joints that follow others by this constraint where these want them.

        Args:
            robot: the robot.
            q: (nq,) configuration; it is not changed.
            given: names of joints that stay where they are.
        """
        return q

    @abstractmethod
    def bind(self, robot: Robot, q: Array) -> BoundConstraint | BoundContact:
        """Return the constraint on one robot: names become indices, a target that is None becomes what it is at `q`.

        Args:
            robot: the robot.
            q: (nq,) configuration; it counts only where a target is None.

        Returns:
            Its rows, a :class:`BoundConstraint`; of a contact a
            :class:`~constrained_sim.contact.bound_contact.BoundContact`.

        Raises:
            UnknownName: a link or joint that the robot does not have, or a joint with several degrees of freedom.
            InvalidValue: a joint or a target that this kind of constraint cannot have.
        """


class Bilateral(Constraint):
    """A constraint whose force may act both ways."""

    @abstractmethod
    def bind(self, robot: Robot, q: Array) -> BoundConstraint:
        """Return its rows on `robot`, with targets from `q` (nq,), see :meth:`Constraint.bind`."""


class BetweenLinks(Bilateral):
    """A constraint that exerts a wrench on link_a, and the opposite one on link_b."""

    link_a: str
    link_b: str

    @property
    def links(self) -> tuple[str, ...]:
        """link_a and link_b."""
        return self.link_a, self.link_b


class SupportsSome:
    """What can do some constraints, and not others: a solver or a stepper.

    Attributes:
        role: what it is, for messages.
        name: in the registry.
        supported: the constraints that it can do, in words.
        does_dry_friction: whether it can do dry joint friction.
    """

    role: str
    name: str
    supported = "every constraint and contact"
    does_dry_friction = True

    def supports(self, constraint: Constraint) -> bool:
        """Return whether this can do `constraint`."""
        return True

    def check(self, constraints: Iterable[Constraint]) -> None:
        """Refuse constraints that this cannot do.

        Raises:
            NotSupported: names the first of them.
        """
        for constraint in constraints:
            if not self.supports(constraint):
                raise self.refusal(constraint.name)

    def check_robot(self, robot: Robot) -> None:
        """Refuse a robot with dry joint friction that this cannot do.

        Raises:
            NotSupported: it has some.
        """
        if robot.friction_dofs.size and not self.does_dry_friction:
            raise self.refusal("dry joint friction")

    def refusal(self, what: str) -> NotSupported:
        """Return what says that this cannot do `what`."""
        return NotSupported(f"{self.role} {self.name!r}", what, self.supported)


class StackedRows(Protocol):
    """Rows of one or of several bound constraints, one below the other; see :class:`BoundConstraint`."""

    dim: int

    @property
    def members(self) -> tuple[BoundConstraint, ...]:
        """The constraints, in the order of their rows."""

    def at(self, robot: Robot, q: Array) -> StackedRows:
        """Return the same rows with open targets as they are at `q` (nq,)."""

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return J (rows, nv)."""

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (rows,)."""

    def velocity(self, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (rows,) for the velocity `v` (nv,) at time `t`."""

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return the same, where J (rows, nv) is known already."""


def sign_on(constraint: BoundConstraint, link: str) -> float:
    """Return 1 for link_a of a `constraint` between two links, on which its multipliers act, -1 for link_b.

    Raises:
        UnknownName: it is neither.
    """
    link_a, link_b = constraint.declaration.links
    return lookup(f"link of constraint {constraint.declaration.name!r}", link, {link_b: -1.0, link_a: 1.0})


class BoundConstraint(ABC):
    """Rows of a constraint of one robot: ``phi(q, t) = 0``, or ``psi(q, v, t) = 0`` at velocity level.

    Rows of a unilateral constraint are of position level and do not depend on time: ``phi(q) >= 0``.

    Row velocity: ``s = dphi/dt = J v + phi_t``, or ``s = psi`` with ``J = dpsi/dv``. At acceleration level:
    ``ds/dt = J a + gamma = 0``. Configuration, velocity and time are those of the dynamics that are passed.

    Attributes:
        declaration: what was bound.
        dim: number of rows.
        is_position_level: whether there is a phi.
    """

    declaration: Constraint
    dim: int
    is_position_level = True

    @classmethod
    def together(cls, members: tuple[Any, ...]) -> tuple[StackedRows, ...]:
        """Return what evaluates the rows of `members`, all of this kind, in their order: each member its own."""
        return members

    @property
    def members(self) -> tuple[BoundConstraint, ...]:
        """Itself alone: see :class:`StackedRows`."""
        return (self,)

    def at(self, robot: Robot, q: Array) -> BoundConstraint:
        """Return the same rows of `robot`, with targets that the declaration leaves open as they are at `q` (nq,)."""
        return self.declaration.bind(robot, q) if self.declaration.has_open_target else self  # type: ignore[return-value]

    @abstractmethod
    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) the violation [m, rad]; zero at velocity level."""

    @abstractmethod
    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return J (dim, nv), the derivative of the row velocity s by v."""

    @abstractmethod
    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (dim,) ``ds/dt - J a``, which does not depend on the acceleration a [m/s^2, rad/s^2]."""

    def velocity(self, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (dim,) s [m/s, rad/s] at the configuration of `dynamics`, for the velocity `v` (nv,) at time `t`."""
        return self.velocity_with(self.jacobian(dynamics), dynamics, v, t)

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return what :meth:`velocity` does, where J (dim, nv) is known already."""
        return J @ v

    def arrays(self) -> BilateralRows | None:
        """Return its rows as kernels know them, but for their target; None of a kind that only Python evaluates."""
        return None

    def target(self, t: float) -> Array:
        """Return (2, dim) what is taken from its rows in :meth:`arrays` at time `t`: from phi, and from ``J v``.

        Of a constraint that moves, what phi would be if it stayed where its target is zero [m, rad], and how fast that
        changes [m/s, rad/s]. Only of kinds that have arrays.
        """
        return np.zeros((2, self.dim))

    def wrench(self, dynamics: Dynamics, multipliers: Array, link: str) -> Array:
        """Return (6,) the force [N] on `link` and its moment [N m] about :meth:`wrench_point`, world axes.

        Args:
            dynamics: configuration of the robot.
            multipliers: (dim,) of its rows [N, N m].
            link: the one that the wrench acts on.

        Raises:
            UnknownName: the constraint does not act on `link`, or on joints instead of links.
        """
        raise UnknownName(f"link of constraint {self.name!r}", link, ())

    def wrench_point(self, dynamics: Dynamics) -> Array:
        """Return (3,) the point that the moment of :meth:`wrench` is about [m], world frame.

        Only of constraints between links.
        """
        raise NotImplementedError

    def pinocchio_constraint(self, dynamics: Dynamics) -> tuple[pin.RigidConstraintModel, Array]:
        """Return Pinocchio's model at the configuration of `dynamics`, and T (dim, dim): our rows are T times its rows.

        Only of constraints whose declaration has a ``pinocchio_type``.
        """
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Name of the declaration."""
        return self.declaration.name


def checked_name(name: object) -> str:
    """Return `name` if it can name a constraint.

    Raises:
        InvalidValue: not a string, or empty.
    """
    if not isinstance(name, str) or not name:
        raise InvalidValue("name of a constraint", name, "a non-empty string")
    return name


def checked_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Return `constraints`.

    Raises:
        InvalidValue: no sequence of them.
    """
    return items("constraints", constraints, Constraint, "them: instances of classes in CONSTRAINTS")


def checked_links(what: str, *links: object) -> None:
    """Refuse what cannot name a link; whether a robot has it shows when the constraint is bound.

    Raises:
        InvalidValue: not a string, or empty; or the world on both sides.
    """
    _check_names(f"link {what}", links, "the name of a link")
    if links == (WORLD, WORLD):
        raise InvalidValue(f"links {what}", links, "a link of the robot on one side at least: nothing moves the world")


def checked_joints(what: str, *joints: object) -> None:
    """Refuse what cannot name a joint; whether a robot has it shows when the constraint is bound.

    Raises:
        InvalidValue: not a string, or empty.
    """
    _check_names(f"joint {what}", joints, "the name of a joint")


def _check_names(what: str, names: Iterable[object], allowed: str) -> None:
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidValue(what, name, allowed)

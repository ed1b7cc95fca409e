"""ConstraintManager: what of a simulation's constraints and contacts is declared, enabled, detected, and active."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

import numpy as np

from constrained_sim.assembly import assemble_members
from constrained_sim.collision.detected_contacts import DetectedContacts
from constrained_sim.collision.detector import DETECTED_NAME, Collisions
from constrained_sim.constraints import BoundConstraint, Constraint
from constrained_sim.constraints.check import warn_of_wrong_derivatives
from constrained_sim.constraints.constraint import checked_constraints
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import DuplicateName, InvalidValue, NothingCollides, UnknownName, ViolatedConstraint
from constrained_sim.objects.combined_robot import carried_over
from constrained_sim.robot import Robot
from constrained_sim.stabilization import ACCEPTABLE_VIOLATION
from constrained_sim.state import State
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array, instance, lookup


class ConstraintManager:
    """The constraints and contacts of one simulation, by name.

    A declared one is enabled or disabled. What is enabled is bound to the robot: a target "where it is now" is resolved
    then. Contacts of the collision geometry are detected anew in each step, and not declared. All that is bound or
    detected is active, in a :class:`~constrained_sim.constraints.constraint_set.ConstraintSet`.

    Attributes:
        declared: by name, in the order of declaration.
        collisions: what the robot's collision geometry may touch; None: nothing.
        tolerance: [m, rad] by how much a constraint may be violated when it begins to act.
        unchecked: names of those with functions of the user's that :meth:`check_user_code` has not seen.
    """

    def __init__(
        self, robot: Robot, constraints: Iterable[Constraint], collisions: Collisions | None, tolerance: float
    ) -> None:
        """Declare the constraints of the `robot` itself and these, all enabled.

        Args:
            robot: the robot.
            constraints: what else is declared.
            collisions: None: nothing; of a robot with objects beside it, these and the robot touch each other.
            tolerance: [m, rad].

        Raises:
            DuplicateName: two of one name.
            InvalidValue: something that is no constraint, or no collisions; a name that a detected contact may have.
        """
        self._robot, self.tolerance = robot, tolerance
        self.declared: dict[str, Constraint] = _by_name([*robot.constraints, *checked_constraints(constraints)])
        self._disabled: set[str] = set()
        self.unchecked = {name for name, constraint in self.declared.items() if constraint.asks_user}
        self._bound_at: dict[str, Array] = {}
        self.given_collisions = collisions
        self._detected = _detected_contacts(robot, collisions)

    @property
    def enabled(self) -> tuple[Constraint, ...]:
        """What is switched on, in the order of declaration."""
        return tuple(constraint for name, constraint in self.declared.items() if name not in self._disabled)

    @property
    def disabled(self) -> tuple[Constraint, ...]:
        """What is switched off, in the order of declaration."""
        return tuple(constraint for name, constraint in self.declared.items() if name in self._disabled)

    @property
    def collisions(self) -> Collisions | None:
        """What the robot's collision geometry may touch; None: nothing."""
        return None if self._detected is None else self._detected.collisions

    @property
    def kinds(self) -> list[Constraint]:
        """All that is declared, and a contact like those that are detected: what solver and stepper have to do."""
        declared = list(self.declared.values())
        if self.collisions is None:
            return declared
        return [*declared, self.collisions.contact()]

    def is_enabled(self, name: str) -> bool:
        """Return whether what is declared by this name is switched on."""
        return name not in self._disabled

    def named(self, name: str) -> Constraint:
        """Return what is declared by this name.

        Raises:
            UnknownName: with the names that exist.
        """
        return lookup("constraint or contact", name, self.declared)

    # -- changes

    def check_name(self, name: str) -> None:
        """Refuse the name of one more that is to be declared.

        Raises:
            DuplicateName: it is taken.
            InvalidValue: a detected contact may have it.
        """
        _check_name(name, self.declared)

    def declare(self, constraint: Constraint, enabled: bool) -> None:
        """Declare one more, whose name has been checked."""
        self.declared[constraint.name] = constraint
        if not enabled:
            self._disabled.add(constraint.name)
        if constraint.asks_user:
            self.unchecked.add(constraint.name)

    def switch(self, name: str, on: bool) -> None:
        """Enable or disable what is declared by this name."""
        (self._disabled.discard if on else self._disabled.add)(name)

    def forget(self, name: str) -> None:
        """Declare it no longer."""
        del self.declared[name]
        self._bound_at.pop(name, None)
        self._disabled.discard(name)
        self.unchecked.discard(name)

    # -- what is active

    def bind(self, q: Array, constraints: Iterable[Constraint]) -> ConstraintSet:
        """Return `constraints` as they are for this robot; "where it is now" is at `q` (nq,).

        Raises:
            UnknownName: a link or joint that the robot does not have.
        """
        return ConstraintSet(self._robot, [constraint.bind(self._robot, q) for constraint in constraints])

    def remember_targets(self, q: Array, name: str | None = None) -> None:
        """Remember that the targets of `name`, None: of all that is declared, were resolved at `q` (nq,)."""
        if name is None:
            self._bound_at = dict.fromkeys(self.declared, q)
        else:
            self._bound_at[name] = q

    def with_one(self, bound: ConstraintSet, constraint: Constraint, q: Array) -> ConstraintSet:
        """Return a set with one `constraint` more, bound at `q` (nq,), in the order of declaration.

        What is detected is left out: it is found anew.
        """
        members = {member.name: member for member in bound.members}
        members[constraint.name] = constraint.bind(self._robot, q)
        order = {**self.declared, constraint.name: constraint}
        return ConstraintSet(self._robot, [members[name] for name in order if name in members])

    def without(self, bound: ConstraintSet, name: str) -> ConstraintSet:
        """Return a set without the member of this name."""
        return ConstraintSet(self._robot, [member for member in bound.members if member.name != name])

    def with_detected(self, bound: ConstraintSet, state: State, dt: float) -> ConstraintSet:
        """Return a set with the contacts that the collision geometry has at a `state`, for a step of `dt` [s]."""
        if self._detected is None:
            return bound
        declared = [member for member in bound.members if member.declaration is not None]
        return bound.with_contacts([*declared, *self._detected.at(state, dt)])

    def with_missed(self, bound: ConstraintSet, begin: State, end: State, dt: float) -> ConstraintSet:
        """Return a set with the contacts too that only the `end` of a step of `dt` [s] shows."""
        missed = self._detected.missed(begin, end, dt, bound.slices) if self._detected is not None else []
        return bound.with_contacts([*bound.members, *missed])

    # -- checks

    def assembled(self, bound: ConstraintSet, q: Array, t: float) -> Array:
        """Return a configuration near `q` at which all bilateral constraints hold at the time `t` [s].

        Raises:
            ViolatedConstraint: none was found.
        """
        found = assemble_members(self._robot, q, bound.bilateral.members, t=t)
        if not found.closed:
            name = max(found.violations, key=found.violations.__getitem__)
            raise ViolatedConstraint(name, found.residual, ACCEPTABLE_VIOLATION, "at the nearest configuration found")
        return found.q

    def check_violations(self, bound: ConstraintSet, q: Array, t: float, names: Iterable[str]) -> None:
        """Refuse a configuration `q` (nq,) at which one of these `names` does not hold at the time `t` [s].

        Raises:
            ViolatedConstraint: by more than the tolerance.
        """
        dynamics = Dynamics(self._robot)
        dynamics.update_kinematics(q, t)
        gaps = bound.contacts.rows(dynamics, np.zeros(self._robot.nv)).gaps
        one_sided = bound.contacts.along_normals(np.minimum(gaps, 0.0))
        phi = np.abs(bound.rows(bound.bilateral.phi(dynamics), one_sided))
        violations = {name: float(phi[bound.slice(name)].max()) for name in names}
        violated = [name for name, violation in violations.items() if violation > self.tolerance]
        if violated:
            first, others = violated[0], violated[1:]
            raise ViolatedConstraint(
                first, violations[first], self.tolerance, others=others, remedy=self._remedy(bound, first)
            )

    def _remedy(self, bound: ConstraintSet, name: str) -> str:
        """Return what moves the robot to where constraint `name` holds, if anything does."""
        if name in bound.bilateral.slices:
            return "assemble=True (in files assemble: true) moves the robot to where bilateral constraints hold"
        if self._robot.floating_base and any(contact.name == name for contact in bound.contacts.members):
            return "set_on_ground lifts a robot onto its contacts"
        return ""

    def check_collisions(self, q: Array, t: float, new: Collection[str] | None = None) -> None:
        """Refuse bodies that are in each other at `q` (nq,); of `new` objects only, None: all.

        Raises:
            ViolatedConstraint: by more than the tolerance.
        """
        if self._detected is None:
            return
        name, gap = self._detected.deepest(q, t, new)
        if gap < -self.tolerance:
            raise ViolatedConstraint(name, -gap, self.tolerance, "where its bodies overlap")

    def warn_of_missing_geometry(self) -> None:
        """Warn where collision geometry is asked for, and there is none.

        Warns:
            NothingCollides: beside the robot there is no object either.
        """
        wanted = self.collisions is not None and (self.collisions.scene or self.collisions.self_collision)
        if wanted and not self._robot.collision_elements:
            text = "the robot has no collision geometry: of all contacts only the declared ones act"
            warn(NothingCollides(text))

    def has_unchecked(self, bound: ConstraintSet) -> bool:
        """Return whether :meth:`check_user_code` has not seen all that is `bound`."""
        return bool(self.unchecked) and not self.unchecked.isdisjoint(bound.slices)

    def check_user_code(self, bound: ConstraintSet, state: State) -> None:
        """Warn of constraints whose functions contradict each other near a `state`; of each only once.

        At another velocity, since at rest much of what may be wrong is zero.

        Warns:
            WrongDerivative: functions of a constraint that contradict each other.
        """
        v = state.v + np.sin(np.arange(1.0, self._robot.nv + 1.0))
        for member in bound.members:
            if member.name in self.unchecked and isinstance(member, BoundConstraint):
                self.unchecked.remove(member.name)
                warn_of_wrong_derivatives(self._robot, member, state.q, v, state.t)

    # -- objects that come and go

    def take_over(self, before: ConstraintManager, new: Collection[str], q: Array, v: Array) -> ConstraintSet:
        """Declare what was declared `before` for another set of objects, and return what is active now.

        Targets stay where they were resolved; those of `new` objects are resolved at the configuration carried over.

        Args:
            before: of the same robot with other objects.
            new: objects that were not there.
            q: (nq,) configuration of the robot before.
            v: (nv,) velocity of the robot before.

        Raises:
            InvalidValue: a constraint or contact is on an object that has gone.
        """
        robot, other = self._robot, before._robot
        kept = {"", *(entry.name for entry in robot.objects)} - set(new)
        stays = [one for name, one in before.declared.items() if other.owner_of(name) in kept]
        fresh = [one for one in robot.constraints if robot.owner_of(one.name) in new]
        self.declared = _by_name([*stays, *fresh])
        names = set(self.declared)
        self._disabled, self.unchecked = before._disabled & names, before.unchecked & names
        self.unchecked |= {one.name for one in fresh if one.asks_user}
        self._bound_at = {name: carried_over(other, robot, at, v)[0] for name, at in before._bound_at.items()}
        return self._bound_again(carried_over(other, robot, q, v)[0])

    def _bound_again(self, q: Array) -> ConstraintSet:
        """Return what is enabled, with targets where they were; of what is new at `q` (nq,).

        Raises:
            InvalidValue: a constraint or contact is on what is not there.
        """
        members = []
        for one in self.declared.values():
            try:
                member = one.bind(self._robot, self._bound_at.setdefault(one.name, q))
            except UnknownName as error:
                allowed = f"those that constraint or contact {one.name!r} is on, or remove that first ({error})"
                raise InvalidValue("objects", [entry.name for entry in self._robot.objects], allowed) from error
            if one.name not in self._disabled:
                members.append(member)
        return ConstraintSet(self._robot, members)


def _detected_contacts(robot: Robot, collisions: Collisions | None) -> DetectedContacts | None:
    """Return what finds the contacts of `collisions`, if there are any to find; objects touch each other anyway."""
    if collisions is None and robot.objects:
        collisions = Collisions()
    if collisions is None:
        return None
    return DetectedContacts(robot, instance("collisions", collisions, Collisions, "None, or a Collisions"))


def _by_name(constraints: Iterable[Constraint]) -> dict[str, Constraint]:
    """Return `constraints` by name.

    Raises:
        DuplicateName: two of one name.
        InvalidValue: one that a detected contact may have.
    """
    declared: dict[str, Constraint] = {}
    for constraint in constraints:
        _check_name(constraint.name, declared)
        declared[constraint.name] = constraint
    return declared


def _check_name(name: str, taken: Container[str]) -> None:
    """Refuse a name that is `taken`, or that a detected contact may have."""
    if name in taken:
        raise DuplicateName(name)
    if DETECTED_NAME.fullmatch(name):
        allowed = "none like ELEMENT/BODY#NUMBER: so the contacts are called that collision geometry detects"
        raise InvalidValue("name of a constraint or contact", name, allowed)

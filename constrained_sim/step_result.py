"""Result of one step of a Simulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from constrained_sim.by_name import ByName
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.dynamics.dynamics import integrate, kinematics_at
from constrained_sim.energy import EnergyTerms
from constrained_sim.impact import Impact
from constrained_sim.robot import WORLD, Robot
from constrained_sim.state import State
from constrained_sim.steppers import StepOutcome
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench

if TYPE_CHECKING:
    from constrained_sim.collision.detector import Collisions


STATUSES = tuple(ContactStatus)


@dataclass(frozen=True, eq=False)
class ContactForce:
    """One contact at the end of a step.

    Attributes:
        name: of the contact.
        link: that touches.
        status: of the contact.
        position: (3,) contact point [m], world frame.
        normal: (3,) unit vector from the ground to the robot, world axes.
        force: (3,) mean force on the robot over the step [N], world axes, impulses of impacts excluded.
        normal_force: mean of the force along the normal [N], >= 0.
        friction: coefficient in effect.
        gap: [m], negative where it penetrates.
        slip: (3,) tangential velocity relative to the ground [m/s], world axes.
        moment: (3,) mean moment on the robot about the contact point [N m], world axes, impulses of impacts excluded;
            zero unless it resists rolling or spinning.
    """

    name: str
    link: str
    status: ContactStatus
    position: Array
    normal: Array
    force: Array
    normal_force: float
    friction: float
    gap: float
    slip: Array
    moment: Array


@dataclass(frozen=True, eq=False)
class ConstraintForce:
    """One bilateral constraint at the end of a step.

    Attributes:
        name: of the constraint.
        multipliers: (dim,) mean forces of its rows over the step [N, N m].
        position_error: (dim,) phi [m, rad]; empty of a constraint at velocity level.
        velocity_error: (dim,) row velocities [m/s, rad/s].
        link_a: link that the wrench acts on; empty of a constraint between joints.
        link_b: link that the opposite wrench acts on.
        position: (3,) where the wrench acts [m], world frame.
        wrench: (6,) mean force [N] and moment about `position` [N m] on link_a, world axes, turned as in the middle of
            the step.
    """

    name: str
    multipliers: Array
    position_error: Array
    velocity_error: Array
    link_a: str
    link_b: str
    position: Array
    wrench: Array


@dataclass(frozen=True, eq=False)
class StepResult:
    """State after a step, and the forces that acted during it.

    Attributes:
        state: at the end of the step.
        a: (nv,) mean acceleration over the step, the jumps of impacts excluded.
        tau_applied: (nu,) efforts after limiting [N m, N].
        outcome: everything the stepper found.
        wrenches: external wrenches that acted during the step.
        dt: length of the step [s].
        robot: that moved, with what is beside it.
        collisions: what collision geometry may touch; None: nothing.
    """

    state: State
    a: Array
    tau_applied: Array
    outcome: StepOutcome
    wrenches: tuple[Wrench, ...]
    dt: float
    robot: Robot
    collisions: Collisions | None = None

    def __repr__(self) -> str:
        """Say what acted, not every number of it."""
        touching = [name for name, contact in self.contact_forces.items() if contact.status]
        impacts, bilateral = len(self.impacts), ", ".join(self.constraint_forces)
        return (
            f"StepResult(t={self.state.t:g} s, {impacts} impacts, contacts that touch: [{', '.join(touching)}], "
            f"constraints: [{bilateral}])"
        )

    @cached_property
    def middle(self) -> State:
        """The state in the middle of the step, from which the mean acceleration :attr:`a` leads to its end.

        What follows from it with mean accelerations and mean forces is accurate to second order in dt, to first order
        where the velocity jumped during the step.
        """
        half, state = 0.5 * self.dt, self.state
        q = integrate(self.robot, state.q, half * (0.5 * half * self.a - state.v))
        return State(state.t - half, read_only(q), read_only(state.v - half * self.a))

    @cached_property
    def phases(self) -> tuple[tuple[float, Array], ...]:
        """Share of the step, and mean velocity (nv,), of every interval between its impacts."""
        if not self.impacts:
            return ((1.0, self.middle.v),)
        times = np.array([self.state.t - self.dt, *(impact.t for impact in self.impacts), self.state.t])
        lengths = np.diff(times)
        begin = [self.impacts[0].v_minus - lengths[0] * self.a, *(impact.v_plus for impact in self.impacts)]
        end = [*(impact.v_minus for impact in self.impacts), self.state.v]
        shares = lengths / lengths.sum()
        return tuple(
            (float(w), read_only(0.5 * (u + v))) for w, u, v in zip(shares, begin, end, strict=True) if w > 0.0
        )

    @property
    def lam(self) -> Array:
        """(rows,) mean forces of all rows in the order of declaration [N, N m]."""
        return self.outcome.lam

    @property
    def dry_friction(self) -> Array:
        """(nv,) mean effort of dry joint friction [N m, N]."""
        return self.outcome.dry_friction

    @property
    def impacts(self) -> tuple[Impact, ...]:
        """Impacts within the step, in the order of time."""
        return self.outcome.impacts

    @property
    def early_impacts(self) -> int:
        """Number of contacts that took part in impacts before they touched, see :class:`Impact`."""
        return sum(impact.early for impact in self.impacts)

    @cached_property
    def energy(self) -> EnergyTerms:
        """Terms of the energy audit of this step."""
        return EnergyTerms(*self.outcome.energy.tolist())

    @property
    def dynamics_residual(self) -> float:
        """Of the step's equation of motion, relative to its largest term."""
        return self.outcome.residuals.dynamics

    @property
    def constraint_residual(self) -> float:
        """Of the bilateral rows, relative to their terms."""
        return self.outcome.residuals.constraint

    @property
    def complementarity_residual(self) -> float:
        """Of the contact problem, relative to the largest impulse; 0 without contacts."""
        return self.outcome.residuals.complementarity

    def multipliers(self, name: str) -> Array:
        """Return the mean forces of the rows of constraint or contact `name` [N, N m].

        Raises:
            UnknownName: with the names that exist.
        """
        return self.lam[self.outcome.end.bound.slice(name)]

    def wrench(self, name: str, link: str, axes: str = WORLD) -> Array:
        """Return (6,) the mean force [N] and the moment [N m] about the point where it acts, by `name` on `link`.

        Rows and point are those in the middle of the step, to which mean forces belong.

        Args:
            name: constraint or contact.
            link: the link that is acted on.
            axes: ``"world"``, or a link whose axes to use.

        Raises:
            UnknownName: no such constraint, or one that does not act on this link.
        """
        bound, middle = self.outcome.end.bound, self.middle
        moments = bound.contacts.resistance.moments(self.outcome.moments, self.outcome.axes)
        dynamics = kinematics_at(self.robot, middle.q, middle.t)
        return bound.wrench(dynamics, name, self.multipliers(name), link, axes, moments)

    @cached_property
    def contact_forces(self) -> ByName[ContactForce]:
        """All contacts by name, open ones too, in the order of declaration."""
        end, outcome = self.outcome.end, self.outcome
        contact_set, contact = end.bound.contacts, end.contact
        count = len(contact_set.members)
        rows = end.bound.split(self.lam)[1]
        forces = read_only(contact_set.forces(rows, outcome.axes))
        points, normals = read_only(contact.points.copy()), read_only(contact.axes[:, 2].copy())
        along = contact.s[: 3 * count].reshape(count, 1, 3)[:, :, :2]
        slips = read_only((along @ contact.axes[:, :2])[:, 0])
        moments = read_only(contact_set.resistance.moments(outcome.moments, outcome.axes))
        numbers = zip(
            outcome.status[:count].tolist(),
            rows[contact_set.normals[:count]].tolist(),
            contact_set.friction.tolist(),
            contact.distances.tolist(),
            strict=True,
        )
        found = {
            member.name: ContactForce(
                member.name,
                member.link,
                STATUSES[status],
                points[i],
                normals[i],
                forces[i],
                push,
                friction,
                distance,
                slips[i],
                moments[i],
            )
            for i, (member, (status, push, friction, distance)) in enumerate(
                zip(contact_set.members, numbers, strict=True)
            )
        }
        return ByName("contact", found)

    @cached_property
    def constraint_forces(self) -> dict[str, ConstraintForce]:
        """All active bilateral constraints by name, in the order of declaration."""
        end = self.outcome.end
        rows = end.bound.bilateral.slices
        if not rows:
            return {}
        members, middle, found = end.bound.bilateral.members, self.middle, {}
        between_links = [bool(member.declaration.links) for member in members]
        there = kinematics_at(self.robot, end.q, end.t)
        positions = [
            member.wrench_point(there) if has_links else np.zeros(3)
            for member, has_links in zip(members, between_links, strict=True)
        ]
        dynamics = kinematics_at(self.robot, middle.q, middle.t)
        for member, has_links, position in zip(members, between_links, positions, strict=True):
            multipliers, declaration = self.multipliers(member.name), member.declaration
            link_a, link_b = declaration.links if has_links else ("", "")
            wrench = member.wrench(dynamics, multipliers, link_a) if has_links else np.zeros(6)
            phi = end.phi[rows[member.name]] if member.is_position_level else np.zeros(0)
            found[member.name] = ConstraintForce(
                member.name,
                multipliers,
                read_only(phi.copy()),
                read_only(end.s_bilateral[rows[member.name]].copy()),
                link_a,
                link_b,
                read_only(position),
                read_only(wrench),
            )
        return found

"""Velocity-level time stepping: impacts and contact forces of one step in one kind of problem."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.table import TOUCHING, rows_of
from constrained_sim.drift import Projection
from constrained_sim.dynamics import Dynamics, integrate, potential_energy
from constrained_sim.energy import EnergyTerms
from constrained_sim.exceptions import ContactNotSolved
from constrained_sim.impact import Impact, impact_at
from constrained_sim.integrators import Integrator
from constrained_sim.motion import ContactRows, Motion, solve_motion
from constrained_sim.robot import Robot
from constrained_sim.solvers import Solver, System
from constrained_sim.steppers.stepper import Observation, StepOutcome, Stepper
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench, generalised_force

IMPACT_SPEED = 1e-9
"""Approach speed [m/s] from which a closing contact is an impact; below, the contact force takes care of it."""

SLOW = 1e-7
"""Largest velocity [rad/s, m/s] whose square, and so all that the second half of a step corrects, is below rounding."""

PASSES_AFTER_JUMP = 3
"""Passes over a step whose predecessor's acceleration is unknown; the first finds it, the others use it."""

REACH = 1e-3
"""Predicted gap [m] up to which a contact takes part in the contact problem of a step."""


class TimeStepping(Stepper):
    """Moreau-Jean / Stewart-Trinkle stepping at velocity level, with a fixed step.

    Where no contact closes, a step is one smooth problem over h = dt::

        M (v' - v) = h (S^T tau + J_ext^T w - bias - D v') + J^T lam
        bilateral rows   s' = 0
        normal rows      0 <= s' + max(gap, 0) / h _|_ lam_n >= 0
        tangential rows  Coulomb's cone

    A contact that closes within the step splits it: the smooth problem up to the touchdown, the impact map there, the
    smooth problem over the rest. So each part conserves momentum to the order of the integrator, whatever the jump.

    M, the bias forces and J are taken where the integrator says. ``s' = J v' + (J v - s)`` with s the row velocity at
    the beginning: the row velocity at the end, up to O(h^2), whichever point J was evaluated at. It makes the work of
    a held row, ``lam J (v + v') / 2 = lam (s + s') / 2``, exactly zero from one held state to the next. For the same
    reason a separating contact may not end a step faster downwards than it began upwards (the offset of its normal row
    is at least s_n), and penetration is not pushed out by forces.

    What is left of the row velocities at the end of the step is removed there, by the same laws for the total impulse
    of the step (as in RATTLE, whose second multiplier holds the velocities): the impulse that this takes is O(h) of
    the whole and counts as force. Contact forces so never feed energy, and momentum is what they say. Positions drift
    by O(h^3) per step, which a projection removes.

    Sources: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Stewart and Trinkle, An
    implicit time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb friction, 1996.
    """

    name = "time_stepping"

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, projection: Projection) -> None:
        """Allocate the work space for steps of `dt` [s]."""
        super().__init__(robot, dt, integrator, projection)
        self._here, self._mid = Dynamics(robot), Dynamics(robot)
        self._acceleration: Array = np.zeros(robot.nv)

    def reset(self, bound: ConstraintSet, q: Array, v: Array) -> Observation:
        """Start at (q, v) with these constraints."""
        self._forget()
        return self._observe(bound, q, v)

    def _forget(self) -> None:
        """After a jump the last acceleration says nothing: take as many passes over the next part as make up for it."""
        self._acceleration, self._passes = np.zeros(self.robot.nv), PASSES_AFTER_JUMP

    def step(
        self, start: Observation, t: float, tau: Array, wrenches: tuple[Wrench, ...], solver: Solver, method: str
    ) -> StepOutcome:
        """Advance by dt, see the class."""
        loads = _Loads(tau, wrenches, solver, method)
        parts: list[_Part] = []
        impacts: list[Impact] = []
        here, rest = start, self.dt
        for _ in range(3 * len(start.gaps)):
            closing = self._closing(here, rest)
            if not closing.size:
                break
            flight = self._fly_to_touchdown(here, closing, rest, loads)
            if flight is not None:
                parts.append(flight)
                here, rest = flight.end, rest - flight.h
            impacts.append(self._impact(here, closing, t + self.dt - rest, loads))
            here = self._observe(here.bound, here.q, impacts[-1].v_plus)
            self._forget()
        if rest > 0.0:
            parts.append(self._advance(here, rest, loads, np.zeros(0, dtype=np.intp)))
        self._acceleration, self._passes = parts[-1].a, 1
        return _outcome(parts, impacts, self.dt)

    def _closing(self, here: Observation, rest: float) -> npt.NDArray[np.intp]:
        """Return the contacts that touch down within `rest` [s], as velocity and last acceleration predict, first first."""
        s = here.s_normal
        fall = rest * s + 0.5 * rest**2 * np.minimum(here.J_contact[2::3] @ self._acceleration, 0.0)
        closing = np.flatnonzero((s < -IMPACT_SPEED) & (here.gaps + fall < 0.0))
        return closing[np.argsort(here.gaps[closing] / -s[closing], kind="stable")]

    def _fly_to_touchdown(
        self, here: Observation, closing: npt.NDArray[np.intp], rest: float, loads: _Loads
    ) -> _Part | None:
        """Advance to the instant at which the first of `closing` touches; None if it touches already.

        Newton's method on the length of this part of the step.
        """
        first = closing[0]
        if here.gaps[first] <= TOUCHING:
            return None
        h = min(float(here.gaps[first] / -here.s_normal[first]), rest)
        for _ in range(5):
            flight = self._advance(here, h, loads, closing)
            gap, s = flight.end.gaps[first], flight.end.s_normal[first]
            if abs(gap) <= 0.1 * TOUCHING or s >= 0.0:
                break
            h = min(max(h - gap / s, 0.1 * h), rest)
        return flight

    def _impact(self, here: Observation, closing: npt.NDArray[np.intp], t: float, loads: _Loads) -> Impact:
        """Resolve the impact of the first of `closing` and of all contacts that touch."""
        bound = here.bound
        touching = np.union1d(np.flatnonzero(here.gaps <= TOUCHING), closing[:1])
        bounces = here.s_normal < -self.bounce_velocity
        coefficients = bound.rows(
            np.zeros(bound.bilateral.dim), np.repeat(np.where(bounces, bound.contacts.restitution, 0.0), 3)
        )
        self._here.update_inertia(here.q)
        return impact_at(
            self._here, bound, here.q, here.v, touching, loads.solver, loads.method, t, coefficients=coefficients
        )

    def _advance(self, begin: Observation, h: float, loads: _Loads, excluded: npt.NDArray[np.intp]) -> _Part:
        """Advance by `h` [s] without impact, contacts `excluded` carrying no force."""
        acceleration = self._acceleration
        for _ in range(self._passes):
            part = self._smooth(begin, h, loads, excluded, acceleration)
            acceleration = part.a
        return part

    def _smooth(
        self, begin: Observation, h: float, loads: _Loads, excluded: npt.NDArray[np.intp], acceleration: Array
    ) -> _Part:
        """Solve the smooth problem over `h` [s], forces at the velocity extrapolated by `acceleration`, and hold."""
        robot, mid, v = self.robot, self._mid, begin.v
        q_mid, v_mid = self.integrator.evaluation_point(robot, begin.q, v, acceleration, h)
        mid.update(q_mid, v_mid)
        impulses = np.zeros((6, robot.nv))
        gravity_coriolis, actuators, external, damping, contact, constraint = impulses
        gravity_coriolis -= h * mid.h
        actuators[robot.actuation] = h * loads.tau
        if loads.wrenches:
            external += h * generalised_force(robot, mid, loads.wrenches)
        damped = mid.M + np.diag(h * robot.damping) if robot.damping.any() else mid.M
        candidates = np.setdiff1d(self._candidates(begin, h), excluded)
        rows = self._contact_rows(begin, candidates, h)
        bilateral = begin.bound.bilateral.jacobian(mid)
        momentum = mid.M @ v + gravity_coriolis + actuators + external
        motion = solve_motion(
            loads.solver,
            System(damped, bilateral, robot.inertia_parents),
            momentum,
            begin.s_bilateral - bilateral @ v,
            rows,
            loads.method,
        )
        _refuse_unsolved(motion)
        damping -= h * robot.damping * motion.x
        contact += motion.impulse @ rows.J
        constraint += motion.lam @ bilateral
        energy = EnergyTerms.of_step(v, motion.x, mid.M, impulses)
        impulse, status = np.zeros(3 * len(begin.gaps)), np.zeros(len(begin.gaps), dtype=np.int64)
        impulse[rows_of(candidates)] = motion.impulse
        if motion.contact is not None:
            status[candidates] = motion.contact.status
        q_plus = self.integrator.advance(robot, begin.q, q_mid, motion.x, h)
        part = _Part(h, self._observe(begin.bound, q_plus, motion.x), motion.lam, impulse, status, energy, motion, v)
        held = np.flatnonzero((status > 0) & (begin.gaps <= TOUCHING))
        part = self._hold_positions(part, held, loads)
        if max(np.abs(v).max(), np.abs(motion.x).max()) > SLOW:
            momentum = begin.M @ v + impulses.sum(axis=0) + h * mid.inertia_rate(q_mid, v_mid)
            part = self._correct(part, momentum, held, loads)
        return part

    def _correct(self, part: _Part, momentum: Array, held: npt.NDArray[np.intp], loads: _Loads) -> _Part:
        """Make the momentum at the end of the step what it must be, and the row velocities there obey their laws.

        Args:
            part: the step as predicted; its configuration stays.
            momentum: (nv,) generalised momentum at the end, with the constraint impulses of the prediction.
            held: contacts that may carry force at the end.
            loads: how to solve.
        """
        end, rows = part.end, rows_of(held)
        J, friction = end.J_contact[rows], end.bound.contacts.friction[held]
        system = System(end.M, end.J_bilateral, self.robot.inertia_parents)
        contacts = ContactRows(J, np.zeros(len(J)), friction, np.zeros((len(held), 2)))
        free = momentum - part.impulse[rows] @ J
        motion = solve_motion(loads.solver, system, free, np.zeros(len(end.phi)), contacts, loads.method)
        _refuse_unsolved(motion)
        impulse, status = part.impulse.copy(), part.status.copy()
        impulse[rows] = motion.impulse
        if motion.contact is not None:
            status[held] = motion.contact.status
        impulses = np.zeros((6, self.robot.nv))
        impulses[0] = momentum - end.M @ end.v
        impulses[4] = (motion.impulse - part.impulse[rows]) @ J
        impulses[5] = motion.lam @ end.J_bilateral
        energy = part.energy + EnergyTerms.of_step(end.v, motion.x, end.M, impulses)
        end = self._observe(end.bound, end.q, motion.x)
        return replace(part, end=end, lam=part.lam + motion.lam, impulse=impulse, status=status, energy=energy)

    def _hold_positions(self, part: _Part, held: npt.NDArray[np.intp], loads: _Loads) -> _Part:
        """Project the configuration onto the bilateral rows and the contacts `held`, where these are still closed.

        The tangential rows of sticking contacts keep their position meanwhile.
        """
        end, energy = part.end, 0.0
        closed = held[part.status[held] > 0]
        rows = np.sort(np.concatenate([3 * closed + 2, *(3 * closed[part.status[closed] == 1] + i for i in (0, 1))]))
        for _ in range(5):
            gaps = np.zeros(3 * len(end.gaps))
            gaps[2::3] = end.gaps
            phi = np.concatenate([end.phi, gaps[rows]])
            if not np.abs(phi).max(initial=0.0) > self.projection.position_tolerance:
                break
            system = System(self.projection.weight(end.M), np.vstack([end.J_bilateral, end.J_contact[rows]]), self.robot.inertia_parents)
            dq, _ = loads.solver.factor(system).solve(np.zeros(self.robot.nv), -phi)
            q = integrate(self.robot, end.q, dq)
            energy += potential_energy(self.robot, q) - potential_energy(self.robot, end.q)
            end = self._observe(end.bound, q, end.v)
        return replace(part, end=end, energy=replace(part.energy, projection=energy))

    def _observe(self, bound: ConstraintSet, q: Array, v: Array) -> Observation:
        """Return what the constraints look like at (q, v); leaves the kinematics at q in ``_here``."""
        here = self._here
        here.update_inertia(q)
        points, gaps = bound.contacts.points_and_gaps(here)
        contact_rows = bound.contacts.jacobian(here, points)
        bilateral = bound.bilateral.jacobian(here)
        phi = bound.bilateral.phi(here)
        return Observation(
            bound,
            read_only(q),
            read_only(v),
            here.M.copy(),
            points,
            gaps,
            contact_rows,
            contact_rows @ v,
            phi,
            bilateral,
            bilateral @ v,
        )

    def _candidates(self, begin: Observation, h: float) -> npt.NDArray[np.intp]:
        """Return the contacts that may carry force within the next `h` [s]."""
        return np.flatnonzero(begin.gaps + h * np.minimum(begin.s_normal, 0.0) <= REACH)

    def _contact_rows(self, begin: Observation, candidates: npt.NDArray[np.intp], h: float) -> ContactRows:
        """Return the rows of the candidates at the evaluation point, with offsets that make ``J v' + offset`` = s'."""
        table, rows = begin.bound.contacts, rows_of(candidates)
        points, _ = table.points_and_gaps(self._mid)
        J = table.jacobian(self._mid, points)[rows]
        offset = J @ begin.v - begin.s_contact[rows]
        gap = np.where(begin.gaps[candidates] > TOUCHING, begin.gaps[candidates], 0.0)
        offset[2::3] += np.maximum(gap / h, begin.s_normal[candidates])
        return ContactRows(J, offset, table.friction[candidates], np.zeros((len(candidates), 2)))


@dataclass(frozen=True, eq=False)
class _Loads:
    """What acts on the robot during a step, and how its problems are solved."""

    tau: Array
    wrenches: tuple[Wrench, ...]
    solver: Solver
    method: str


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a step without impact, of length h [s], from velocity v on; lam and impulse in N s."""

    h: float
    end: Observation
    lam: Array
    impulse: Array
    status: npt.NDArray[np.int64]
    energy: EnergyTerms
    motion: Motion
    v: Array

    @property
    def a(self) -> Array:
        """Mean acceleration (nv,)."""
        return (self.end.v - self.v) / self.h

    @property
    def rows(self) -> Array:
        """(rows,) impulses of all rows in the order of declaration [N s]."""
        return self.end.bound.rows(self.lam, self.impulse)


def _outcome(parts: list[_Part], impacts: list[Impact], dt: float) -> StepOutcome:
    """Put the parts of a step together."""
    last = parts[-1]
    energy = EnergyTerms(impact_losses=sum(impact.energy_lost for impact in impacts))
    return StepOutcome(
        last.end,
        last.a,
        sum(part.rows for part in parts) / dt,
        last.status,
        tuple(impacts),
        sum((part.energy for part in parts), energy),
        last.motion,
    )


def _refuse_unsolved(motion: Motion) -> None:
    if motion.contact is not None and not motion.contact.converged:
        raise ContactNotSolved(motion.contact.residual)

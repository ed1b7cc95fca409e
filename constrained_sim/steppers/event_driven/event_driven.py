"""Adaptive integration between events: touchdown, lift-off, stop of slip or turn, each at its exact instant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import ConstrainedSolution, ContactRows, solve_constrained_dynamics
from constrained_sim.contact.soft_forces import soft_status
from constrained_sim.contact.speeds import REST_SPEED, directions
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.problem import ContactSolution
from constrained_sim.dynamics.dynamics import difference
from constrained_sim.energy import IMPACT_LOSSES, EnergyTerms
from constrained_sim.exceptions import NonFiniteMotion
from constrained_sim.forward_dynamics import acceleration_rows
from constrained_sim.impact import Impact, ImpactLaw
from constrained_sim.integrators import Adaptive, Integrator
from constrained_sim.robot import Robot
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.stabilization import Baumgarte, Projection
from constrained_sim.steppers.event_driven.contact_modes import Mode
from constrained_sim.steppers.event_driven.max_margin_forces import max_margin_forces
from constrained_sim.steppers.event_driven.motion_inputs import MotionInputs
from constrained_sim.steppers.event_driven.options import EVENTS
from constrained_sim.steppers.event_driven.segment import Segment
from constrained_sim.steppers.event_driven.singular_crossing import SingularCrossing
from constrained_sim.steppers.step_outcome import Evaluation, StepOutcome
from constrained_sim.steppers.stepper import Stepper
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench


class EventDriven(Stepper):
    """Integrates the motion between events to a relative error of 1e-12, and resolves each event where it happens.

    Between events the mode is fixed: which contacts and limits are closed, which stick, which slide and where to, which
    of those that resist rolling or spinning do turn. Then the equations of motion are linear in all forces, with
    friction ``-c lam_n s_t / |s_t|`` where a contact slides, and a moment ``-R lam_n w / |w|`` where it rolls (w along
    the surface) or spins (w about the normal)::

        M a + h = S^T tau + J_ext^T w - D v + J^T lam,   ds/dt = 0, dw/dt = 0 of every row that is held

    Events end a segment: a gap closes; the normal force of a closed contact vanishes; sticking friction leaves its
    cone, or a holding moment its bound; slip, rolling or spinning stops or reverses; and the same of limits and dry
    joint friction. What approaches when it touches goes through
    the impact map, as often as anything approaches. Then the mode that follows is the solution of the contact problem
    at acceleration level, of everything closed at once: so any number of events may share an instant. Restitution
    counts as 0 below ``bounce_velocity``, where a sequence of ever smaller bounces ends in contact. A velocity that the
    bilateral constraints forbid at the beginning of a step is an impact too, see :meth:`Stepper.forbidden_jump`.

    Indeterminate forces are those of least norm inside the cones; where contacts resist rolling or spinning, any inside
    their bounds. Where these reach a bound though nothing slips or turns, forces that are farther inside go on from
    there (:mod:`~constrained_sim.steppers.event_driven.max_margin_forces`); the motion is the same.

    With friction at acceleration level there may be no solution (Painleve's paradox: pressing more makes a sliding
    contact sink faster). Then forces grow beyond all bounds in no time: a Painleve impact, one without collision,
    which the impact map resolves with the vanishing approach that the forces would have to stop
    (:attr:`Impact.without_collision`). Where a contact may as well lift off as have a Painleve impact, it lifts off
    here; time stepping, which sees impulses only, may let it stay, with a force of about 1 / dt.

    A mechanism passes its singular positions (:mod:`~constrained_sim.steppers.event_driven.singular_crossing`), of
    which ``memory`` tells the next step.

    Where forces are not unique, they are those of least norm as long as these are inside their cones without being
    forced to, else those nearest to the ones at the beginning of the step. The norm is that of all forces, multipliers
    of bilateral rows too; while something slides, contacts share a load as equal springs do
    (:mod:`~constrained_sim.contact_solvers.least_norm`).

    Efforts and external wrenches are constant during a step. Forces of the result are means over it, impulses of
    impacts excluded, integrated with the motion; so is the work of each cause.

    Sources: Tedrake, sec. 3; Genot and Brogliato, New results on Painleve paradoxes, 1999; Leine and van de Wouw,
    Stability and convergence of mechanical systems with unilateral constraints, 2008, sec. 5.3, for moments.
    """

    name = "event_driven"
    default_integrator = Adaptive.name
    integrator: Adaptive
    memory: SingularCrossing | None = None

    @classmethod
    def takes(cls, integrator: Integrator) -> bool:
        """Return whether `integrator` is the adaptive one."""
        return isinstance(integrator, Adaptive)

    def step(
        self, start: Evaluation, efforts: Efforts, wrenches: tuple[Wrench, ...], solver: Solver, method: ContactMethod
    ) -> StepOutcome:
        """Advance by dt, see the class.

        Raises:
            ContactNotSolved: no contact method found a solution.
            NonFiniteMotion: events that accumulate without end.
        """
        feedback = self.stabilization if isinstance(self.stabilization, Baumgarte) else None
        inputs = MotionInputs(efforts, wrenches, solver, method, feedback)
        ledger = _Ledger(start, len(self.robot.friction_dofs))
        here, end, stalled, painleve = start, start.t + self.dt, 0, False
        before: Mode | None = None
        if (jump := self.forbidden_jump(start, solver, method)) is not None:
            here = ledger.after(start, jump)
        for _ in range(EVENTS.max_events):
            collisions = len(ledger.impacts)
            here, mode, motion = self._settle(here, inputs, ledger, painleve)
            goes_on = before is not None and len(ledger.impacts) == collisions and mode.continues(before)
            near = stalled > 0 or goes_on
            if near:
                mode = self._inside(here, mode)
            segment = Segment(self, self.integrator.tolerance, here, mode, inputs, near, self.memory)
            rest = end - here.t
            ignore_events = stalled > EVENTS.max_stalled
            elapsed, y, painleve, self.memory, is_event = segment.integrate_mode(
                min(rest, EVENTS.event_free_time) if ignore_events else rest, ignore_events
            )
            before = mode if is_event else None
            stalled = stalled + 1 if elapsed <= EVENTS.instant else 0
            if elapsed <= 0.0:
                continue
            done = elapsed >= rest
            arrived = segment.evaluation(y, end if done else here.t + elapsed)
            ledger.add_segment(here, arrived, segment.integrals(y))
            here = self._hold(arrived, mode, inputs, ledger)
            if done:
                break
        else:
            raise NonFiniteMotion(
                f"more than {EVENTS.max_events} events within one step; 'time_stepping' does not stop at events"
            )
        return ledger.outcome(start, here, mode, motion, self.dt, self.robot)

    # -- events

    def _settle(
        self, here: Evaluation, inputs: MotionInputs, ledger: _Ledger, painleve: bool
    ) -> tuple[Evaluation, Mode, ConstrainedSolution]:
        """Resolve all impacts at this instant, and return what follows them, and the mode that begins.

        What is about to touch, since an impact just before has let it rise by less than a gap that counts as closed,
        takes part in them: else the impact would drive it into what it lies on, and the next one back.

        The first of them is a Painleve impact, if the motion up to here `painleve`.
        """
        bound = here.bound
        for _ in range(EVENTS.max_events):
            touching = _touching(here)
            if (touching & (here.contact.s_normal < -EVENTS.resting_speed)).any():
                here = ledger.after(here, self.collide(here, here.touching, inputs.solver, inputs.method))
                continue
            candidates = np.flatnonzero(touching & _stays(here, inputs.feedback))
            painleve = painleve and len(candidates) > 0
            dynamics = self._here
            dynamics.update(here.q, here.v, here.t)
            forces = inputs.forces(dynamics, bound.contacts, here.contact, here.deflection)[0]
            J, _, b = acceleration_rows(bound.bilateral, dynamics, inputs.feedback)
            turning, *rows_that_turn = bound.contacts.resistance.at_motion(dynamics, here.contact, candidates)
            rows = self._rows(here, candidates, inputs).with_rolling(*rows_that_turn)
            system = RobotSystem(dynamics, J, bound.bilateral.members)
            motion = solve_constrained_dynamics(inputs.solver, system, forces.sum(axis=0), b, rows, inputs.method)
            if motion.contact is None:
                return here, Mode.free(bound.contacts), motion
            if motion.contact.converged and not painleve:
                return here, self._mode(here, candidates, turning, motion.contact), motion
            if painleve:  # it vanishes, as does what friction leaves of the force against it
                approach = np.full(len(candidates), -1.0)
            else:
                free = solve_constrained_dynamics(
                    inputs.solver, system, forces.sum(axis=0), b, ContactRows.none(self.robot.nv), inputs.method
                )
                approach = (rows.J @ free.x + rows.offset)[rows.normals[: len(candidates)]]
            if not (approach < 0.0).any():
                motion.check_contacts()
            here, painleve = self._painleve_impact(here, candidates, approach, inputs, ledger), False
        raise NonFiniteMotion("impacts that do not end")

    def _mode(
        self,
        here: Evaluation,
        candidates: npt.NDArray[np.intp],
        turning: npt.NDArray[np.intp],
        solution: ContactSolution,
    ) -> Mode:
        """Return the mode that follows a solution for `candidates`, and the places `turning` of rows that turn."""
        contact_set, friction_dofs = here.bound.contacts, self.robot.friction_dofs
        rows = contact_set.rows_of(candidates)
        of_rows, friction_effort, of_turning = np.split(solution.impulse, np.cumsum([len(rows), len(friction_dofs)]))
        forces = np.zeros(len(here.J_contact))
        forces[rows], forces[contact_set.dim + turning] = of_rows, of_turning
        s = here.J_contact @ here.v
        return Mode.of(contact_set, candidates, solution.status, forces, friction_effort, s, here.v[friction_dofs])

    def _inside(self, here: Evaluation, mode: Mode) -> Mode:
        """Return a mode with indeterminate forces of what holds away from the bounds that ended the last one."""
        held, joints, contact = mode.held, np.flatnonzero(mode.slip_sign == 0.0), here.J_contact
        rows = mode.force_rows(contact, mode.moving.friction(contact @ here.v))
        rows = np.vstack([rows, np.eye(self.robot.nv)[self.robot.friction_dofs[joints]]])
        forces = max_margin_forces(
            (rows, here.J_bilateral),
            np.concatenate([mode.forces[held], mode.friction_effort[joints]]),
            np.searchsorted(held, mode.normals),
            mode.holding.among(held),
            self.robot.coulomb_effort[joints],
        )
        every, friction_effort = mode.forces.copy(), mode.friction_effort.copy()
        every[held], friction_effort[joints] = np.split(forces, [len(held)])
        return replace(mode, forces=every, friction_effort=friction_effort)

    def _rows(self, here: Evaluation, candidates: npt.NDArray[np.intp], inputs: MotionInputs) -> ContactRows:
        """Return the rows of all that may be closed, at acceleration level, and those of dry joint friction."""
        contact_set, robot, most = here.bound.contacts, self.robot, self.robot.coulomb_effort
        rows, laws = contact_set.rows_of(candidates), contact_set.laws_of(candidates, most)
        offset = contact_set.gamma(self._here, here.contact)
        if inputs.feedback is not None:
            normals = contact_set.normals[candidates]
            feedback = inputs.feedback.for_rows(contact_set.names[i] for i in candidates)
            offset[normals] += feedback.feedback(here.contact.gaps[candidates], here.contact.s[normals])
        slip = directions(here.contact.s[rows[: 3 * len(laws.friction)]].reshape(-1, 3)[:, :2], REST_SPEED)
        friction = np.where(slip.any(axis=1), np.minimum(laws.friction, OPTIONS.strong_friction), laws.friction)
        velocity = here.v[robot.friction_dofs]
        moving = np.flatnonzero(np.abs(velocity) > REST_SPEED)
        of_moving = len(laws.lower) - len(most) + moving
        laws.lower[of_moving] = laws.upper[of_moving] = -np.sign(velocity[moving]) * most[moving]
        J = np.vstack([here.contact.J[rows], np.eye(robot.nv)[robot.friction_dofs]])
        offset = np.concatenate([offset[rows], np.zeros(len(most))])
        return ContactRows(J, offset, laws._replace(friction=friction, slip=slip))

    def _painleve_impact(
        self, here: Evaluation, closing: npt.NDArray[np.intp], approach: Array, inputs: MotionInputs, ledger: _Ledger
    ) -> Evaluation:
        """Return the state after the impact without collision of contacts that cannot slide on.

        Args:
            here: the state.
            closing: the contacts.
            approach: (c,) accelerations with which they open without contact forces [m/s^2].
            inputs: how to solve.
            ledger: takes the impact.
        """
        contact_set = here.bound.contacts
        speed = max(REST_SPEED, EVENTS.approach_ratio * np.abs(here.contact.s[contact_set.rows_of(closing)]).max())
        leaving = np.maximum(here.contact.s_normal[closing], 0.0)  # up to the resting speed
        approach_velocity = np.zeros(contact_set.dim)
        wanted = speed * approach / np.abs(approach).max() - leaving
        approach_velocity[contact_set.normals[closing]] = np.where(approach < 0.0, wanted, 0.0)
        law = ImpactLaw(np.zeros(here.bound.dim), approach_velocity=approach_velocity)
        return ledger.after(here, self.impact(here, closing, inputs.solver, inputs.method, law))

    def _hold(self, end: Evaluation, mode: Mode, inputs: MotionInputs, ledger: _Ledger) -> Evaluation:
        """Remove drift: of closed gaps, of bilateral rows, and of the velocities of all that is held."""
        projection = self.stabilization
        if not isinstance(projection, Projection):
            return end
        firm, energy = self.project(projection, end, inputs.solver, mode.closed, mode.held)
        ledger.energy += EnergyTerms(projection=energy).as_array()
        return firm


class _Ledger:
    """What adds up during a step."""

    def __init__(self, start: Evaluation, friction_dofs: int) -> None:
        self._rows, self._joint_friction = np.zeros(start.bound.dim), np.zeros(friction_dofs)
        self._moments = np.zeros(len(start.turning))
        self._change: Array = np.zeros(len(start.v))
        self.energy: Array = EnergyTerms().as_array()
        self.impacts: list[Impact] = []

    def after(self, here: Evaluation, impact: Impact) -> Evaluation:
        """Take an impact, and return the state after it."""
        self.impacts.append(impact)
        return here.with_velocity(impact.v_plus)

    def add_segment(self, begin: Evaluation, end: Evaluation, integrals: Array) -> None:
        """Add a segment without events."""
        bound = begin.bound
        sizes = bound.bilateral.dim, bound.contacts.dim, len(self._moments), len(self._joint_friction)
        lam, rows, moments, joint_friction, work = np.split(integrals, np.cumsum(sizes))
        self._rows += bound.rows(lam, rows)
        self._moments += moments
        self._joint_friction += joint_friction
        self.energy[: len(work)] += work
        self._change += end.v - begin.v

    def outcome(
        self,
        start: Evaluation,
        end: Evaluation,
        mode: Mode,
        motion: ConstrainedSolution,
        dt: float,
        robot: Robot,
    ) -> StepOutcome:
        """Return the step as a whole."""
        joint_friction = np.zeros(len(end.v))
        joint_friction[robot.friction_dofs] = self._joint_friction / dt
        self.energy[IMPACT_LOSSES] += sum(impact.energy_lost for impact in self.impacts)
        status = mode.status()
        soft = end.bound.contacts.soft
        status[soft] = soft_status(end.bound.contacts, end.contact, end.deflection)
        return StepOutcome(
            end=end,
            a=self._change / dt,
            lam=read_only(self._rows / dt),
            axes=end.mean_axes(start),
            dry_friction=read_only(joint_friction),
            status=read_only(status),
            impacts=tuple(self.impacts),
            energy=self.energy,
            motion=motion,
            moments=read_only(self._moments / dt),
            damped_velocity=difference(robot, start.q, end.q) / dt,
        )


def _stays(here: Evaluation, feedback: Baumgarte | None) -> npt.NDArray[np.bool_]:
    """Return (k + l,) what does not open, or with feedback not fast enough by itself, see ``Baumgarte.holds``."""
    gaps, speed = here.contact.gaps, here.contact.s_normal
    rests = speed <= EVENTS.resting_speed
    if feedback is None:
        return rests
    below = np.flatnonzero(gaps < 0.0)
    names = here.bound.contacts.names
    rests[below] |= feedback.for_rows(names[i] for i in below).holds(gaps[below], speed[below])
    return rests


def _touching(here: Evaluation) -> npt.NDArray[np.bool_]:
    """Return (k + l,) what is closed: it rests within ``closed_gap``, or it arrives within an ``instant``."""
    gaps, speed = here.contact.gaps, here.contact.s_normal
    arrives = gaps <= np.maximum(EVENTS.touching_gap, -EVENTS.instant * speed)
    return (gaps <= EVENTS.closed_gap) & ((speed >= -EVENTS.resting_speed) | arrives)

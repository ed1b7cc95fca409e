"""Velocity-level time stepping: impacts and contact forces of one step in one kind of problem."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact import ContactMethod
from constrained_sim.contact.compliance import SoftRows, dragged, soft_rows
from constrained_sim.contact.geometry import ContactGeometry
from constrained_sim.contact.problem import no_values
from constrained_sim.contact.table import TOUCHING
from constrained_sim.drift import Projection, Stabilization
from constrained_sim.dynamics import Dynamics
from constrained_sim.energy import EnergyTerms
from constrained_sim.exceptions import FINE, CoarseStep
from constrained_sim.impact import Impact, bouncing, impact_at
from constrained_sim.integrators import Integrator, Midpoint, SteppingScheme
from constrained_sim.motion import NOTHING_KNOWN, ContactRows, Motion, solve_motion
from constrained_sim.posture import JointFeedback
from constrained_sim.robot import Robot
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.steppers import flight, kernels, rigid
from constrained_sim.steppers.parts import Loads, Part, Prediction, outcome_of, work_space
from constrained_sim.steppers.run import run_steps
from constrained_sim.steppers.stepper import NO_CONTACT, Observation, Run, StepOutcome, Stepper
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench, generalised_force

UNFELT = 1e-7
"""Depth [m] to which a closed contact may come within a step before its approach is an impact: the contact force takes
care of it. Less, and the feet of a humanoid that comes to rest rock from corner to corner, an impact in each step."""

BOUNCE_VELOCITY = 1e-2
"""Approach speed [m/s] below which restitution counts as 0."""

SLOW = 1e-7
"""Largest velocity [rad/s, m/s] whose square, and so all that the second half of a step corrects, is below rounding."""

PASSES_AFTER_JUMP = 2
"""Passes over a step whose predecessor's acceleration is unknown: the first finds it to O(h), as exactly as needed."""

MOST_TOUCHDOWNS = 3
"""Instants of touchdown that split one step; what would touch down in its rest does so at once, ahead of its time."""

PROJECTED = EnergyTerms(projection=1.0).as_array()
"""Terms of the energy audit per joule that a projection brings in."""

MOST_TRIALS = 8
"""Lengths of a part of a step that are tried on the way to the instant of a touchdown."""

REACH = 1e-3
"""Predicted gap [m] up to which a contact takes part in the contact problem of a step."""


class TimeStepping(Stepper):
    """Moreau-Jean / Stewart-Trinkle stepping at velocity level, with a fixed step.

    Where no contact closes, a step is one smooth problem over h = dt::

        M (v' - v) = h (S^T tau + J_ext^T w - bias - D v') + J^T lam
        bilateral rows   s' = 0
        normal rows      0 <= s' + s + 2 max(gap, 0) / h _|_ lam_n >= 0
        tangential rows  Coulomb's cone
        turning rows     discs, where a contact resists rolling or spinning

    A contact that closes within the step splits it: the smooth problem up to the touchdown, the impact map there, the
    smooth problem over the rest. So each part conserves momentum to the order of the integrator, whatever the jump. A
    soft contact splits it too, without impact: a spring that began the step apart would be compressed for nothing.

    M, the bias forces and J are taken where the integrator says. ``s' = J v' + (J v - s)`` with s the row velocity at
    the beginning: the row velocity at the end, up to O(h^2), whichever point J was evaluated at. It makes the work of
    a held row, ``lam J (v + v') / 2 = lam (s + s') / 2``, exactly zero from one held state to the next. Positions move
    with the mean of s and s' (with s' alone under semi-implicit Euler), hence the normal rows: a gap may close within
    the step and no more, and penetration is not pushed out by forces.

    This predicts the configuration at the end. The velocity there is then corrected: to the momentum that all
    impulses account for, and so that the whole impulse of the step obeys the same laws with the row velocities
    there, friction of what slides on with their means over the step (as in RATTLE, whose second multiplier holds
    the velocities). What this adds is O(h) of the impulses, and counts as force. So momentum is what the forces
    say, of all that a free-flyer carries (:mod:`~constrained_sim.steppers.flight`; of other joints to second
    order), and contact forces never feed energy. (The prediction need not be exact: rows of many contacts of one
    body may contradict each other by O(h^2) there, never at the end.) Positions drift by O(h^3) per step, which a
    projection removes.

    Sources: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Stewart and Trinkle, An
    implicit time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb friction, 1996.
    """

    name = "time_stepping"
    default_integrator = Midpoint.name
    does_feedback = False
    integrator: SteppingScheme
    stabilization: Projection

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, stabilization: Stabilization) -> None:
        """Allocate the work space for steps of `dt` [s].

        Raises:
            InvalidValue: an integrator that is no stepping scheme, or a stabilization that is no projection.
        """
        super().__init__(robot, dt, integrator, stabilization)
        self._mid, self._free = Dynamics(robot), robot.free_joints
        self._model = _model_of(robot) if self.stabilization.metric == "mass" else None
        self._acceleration: Array = np.zeros(robot.nv)
        self._judged: set[str] = set()

    @property
    def memory(self) -> tuple[Array, int]:
        """The acceleration of the last step, and how many passes over the next one it makes necessary."""
        return self._acceleration, self._passes

    @memory.setter
    def memory(self, memory: tuple[Array, int]) -> None:
        self._acceleration, self._passes = memory

    @classmethod
    def takes(cls, integrator: Integrator) -> bool:
        """Return whether `integrator` is a stepping scheme."""
        return isinstance(integrator, SteppingScheme)

    def reset(self, bound: ConstraintSet, t: float, q: Array, v: Array, stretch: Array | None = None) -> Observation:
        """Start at (q, v) and time `t` with these constraints."""
        self._forget()
        return self.observe(bound, t, q, v, stretch)

    def _forget(self) -> None:
        """After a jump the last acceleration says nothing: take as many passes over the next part as make up for it."""
        self._acceleration, self._passes = np.zeros(self.robot.nv), PASSES_AFTER_JUMP

    def step(
        self,
        start: Observation,
        tau: Array,
        wrenches: tuple[Wrench, ...],
        solver: Solver,
        method: ContactMethod,
    ) -> StepOutcome:
        """Advance by dt, see the class."""
        loads = Loads(tau, wrenches, solver, method, method)
        parts: list[Part] = []
        impacts: list[Impact] = []
        here, rest, settled = start, self.dt, NO_CONTACT
        while (closing := self._closing(here, rest, settled)).size:
            if len(parts) == MOST_TOUCHDOWNS:
                early = closing[np.isfinite(here.contact.gaps[closing])]  # soft contacts have no impact
                if not early.size:
                    break
                settled = np.union1d(settled, early)
            else:
                if _open_gaps(here)[closing[0]] > TOUCHING:
                    parts.append(self._fly_to_touchdown(here, closing, rest, loads).checked())
                    here, rest, settled = parts[-1].end, rest - parts[-1].h, NO_CONTACT
                if not (here.contact.gaps[closing] <= TOUCHING).any():
                    continue  # what touches is soft, or forces have changed since the prediction and nothing does yet
                settled = np.flatnonzero(here.contact.gaps <= TOUCHING)
            impacts.append(self._impact(here, settled, loads))
            here = here.with_velocity(impacts[-1].v_plus)
            self._forget()
        if rest > 0.0:
            parts.append(self._advance(here, rest, loads).checked())
            here = parts[-1].end
            self._acceleration, self._passes = parts[-1].a, 1
        return outcome_of(start, here, parts, impacts, self.dt, self.robot.rubbing)

    def run(
        self,
        start: Observation,
        law: JointFeedback,
        asked: tuple[int, int],
        tau: Array,
        steps: int,
        solver: Solver,
        method: ContactMethod,
    ) -> Run | None:
        """Do steps in one kernel, see the base class."""
        if not (Loads(tau, (), solver, method, method).are_plain and self._is_usual(start)):
            return None
        robot, contact, bound = self.robot, start.contact, start.bound
        work = work_space(robot, start)
        here = tuple(np.array(values) for values in (start.q, start.v, start.M, start.frames, *contact[:-1]))
        q, v, taus = np.empty((steps, robot.nq)), np.empty((steps, robot.nv)), np.empty((steps, robot.nu))
        impulses, energy = np.empty((steps, len(contact.s))), np.empty((steps, len(work.found[-1])))
        axes, acceleration = np.empty((steps, *contact.axes.shape)), self._acceleration.copy()
        limits = -robot.effort_limits, robot.effort_limits, tau
        records = q, v, taus, impulses, axes, energy
        done, t = run_steps(  # type: ignore[call-arg]
            *self._problem(start, self.dt, method),
            UNFELT / self.dt,
            law,
            limits,
            asked,
            (start.t, here),
            acceleration,
            records,
            *work,
        )
        if not done:
            return None
        if done < steps:
            records = tuple(record[:done].copy() for record in records)  # type: ignore[assignment]
        q, v, taus, impulses, axes, energy = records
        lam = bound.rows(no_values(), impulses / self.dt)
        return Run(_at(start, t, here), (acceleration, 1), q, v, taus, lam, axes, energy)

    def _closing(self, here: Observation, rest: float, settled: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return what but `settled` is predicted to close within `rest` [s], in the order of linear closing times."""
        gaps, contact = _open_gaps(here), here.contact
        if not gaps.size:
            return NO_CONTACT
        if settled.size:
            gaps = gaps.copy()
            gaps[settled] = np.inf
        closing = np.empty(len(gaps), dtype=np.int64)
        count = kernels.closing_contacts(
            gaps, contact.normals, contact.s, contact.J, self._acceleration, rest, UNFELT / self.dt, closing
        )
        return closing[:count]

    # -- impacts

    def _fly_to_touchdown(self, here: Observation, closing: npt.NDArray[np.intp], rest: float, loads: Loads) -> Part:
        """Advance to the instant at which the first of `closing` touches, or by `rest` [s] if none does.

        It looks where tangents of the parabolas through the gaps at the last lengths h of this part of the step meet
        zero, always for the contact that is due first, and in the middle of what is left where they lead astray: gaps
        at the end are those of another motion for each h, which may bend sharply where a contact opens or begins to
        slip.
        """
        gaps, fall = _open_gaps(here)[closing], -here.contact.s_normal[closing]
        h, last, before_last, near = min(float((gaps / fall).min()), rest), 0.0, 0.0, NOTHING_KNOWN
        early, late = 0.0, np.inf
        for _ in range(MOST_TRIALS):
            part = self._advance(here, h, loads, closing, near)
            self._acceleration, self._passes = part.a, 1
            fall_before, before, gaps = fall, gaps, part.end.contact.all_gaps[closing]
            fall = (before - gaps) / (h - last)
            bend = (fall - fall_before) * (h - last) / (h - before_last)
            slope = np.clip(fall + bend, 0.5 * fall, 2.0 * fall)
            due = np.where(slope > 0.0, h + gaps / np.where(slope > 0.0, slope, 1.0), np.inf)
            first = int(np.argmin(due))
            if abs(gaps[first]) <= 0.1 * TOUCHING or (h == rest and gaps.min() > 0.0):
                break
            early, late = (h, late) if gaps.min() > 0.0 else (early, h)
            wanted = min(float(due[first]), rest)
            if not early < wanted < late:
                wanted = 0.5 * (early + min(late, rest))
            before_last, last, h, near = last, h, wanted, wanted / h * part.motion.impulse
        return part

    def _impact(self, here: Observation, touching: npt.NDArray[np.intp], loads: Loads) -> Impact:
        """Resolve the impact of all contacts that touch."""
        bound = here.bound
        self._here.update_inertia(here.q, here.t)
        return impact_at(
            self._here,
            bound,
            here.v,
            touching,
            loads.solver,
            loads.method,
            coefficients=bouncing(bound, touching, here.contact.s_normal, BOUNCE_VELOCITY),
        )

    # -- smooth motion

    def _advance(
        self,
        begin: Observation,
        h: float,
        loads: Loads,
        excluded: npt.NDArray[np.intp] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
    ) -> Part:
        """Advance by `h` [s] without impact, and without forces of what is `excluded`.

        Impulses will be `near` those, if it is not empty.
        """
        if loads.are_plain and self._is_usual(begin):
            part = self._advance_compiled(begin, h, loads, excluded, near)
            if part is not None:
                return part
            loads = loads._replace(method=loads.method.without_newton)
        predicted = self._predict(begin, h, loads, excluded, near)
        return self._finish(begin, predicted, self._reach(begin, predicted), loads, excluded)

    def _advance_compiled(
        self, begin: Observation, h: float, loads: Loads, excluded: npt.NDArray[np.intp], near: Array
    ) -> Part | None:
        """Advance as `_advance` does, as a rule in one kernel; None where contacts need more than usual."""
        work, contact, method = work_space(self.robot, begin), begin.contact, loads.method
        state, (pushes, pushed, steps, residual, magnitude, _, dynamics) = rigid.step(  # type: ignore[call-arg]
            *self._problem(begin, h, method),
            (read_only(begin.q), read_only(begin.v), begin.M, begin.frames, contact.gaps, contact.s),
            self._acceleration,
            loads.tau,
            excluded,
            near,
            *work,
        )
        if state == rigid.UNSOLVED:
            return None
        none, solution = no_values(), None
        if len(contact.gaps) or self.robot.rubbing.size:
            solution = method.usual_solution(pushes, pushed, steps, residual, magnitude)
        (q_mid, v_mid, x), impulses, (impulse, dry, status, energy), end = work
        motion = Motion(x, none, pushes, solution, dynamics, 0.0)
        predicted = Prediction(h, q_mid, v_mid, motion, impulses, impulse, dry, none, status, energy, begin.stretch)
        reached = _at(begin, begin.t + h, end)
        if state == rigid.DONE:
            return predicted.part(begin, reached)
        self._mid.update(q_mid, v_mid, begin.t + 0.5 * h)
        self._here.update_inertia(reached.q, reached.t)
        return self._finish(begin, predicted, reached, loads._replace(near=method.without_newton), excluded)

    def _is_usual(self, begin: Observation) -> bool:
        """Whether the kernels of a whole step can do what is declared."""
        return begin.bound.bounds is not None and self._model is not None

    def _problem(self, begin: Observation, h: float, method: ContactMethod) -> tuple[Any, ...]:
        """Return the first arguments of :func:`~constrained_sim.steppers.rigid.advance`, which no step changes."""
        table, bounds = begin.bound.contacts, begin.bound.bounds
        tolerances = self.stabilization.position_tolerance, method.tolerance
        scheme = (h, self.integrator.share, self._passes, REACH, SLOW, *tolerances, method.usual_steps)
        return self._model, (tuple(table.cores), table.friction, begin.contact.normals), bounds, scheme

    def _predict(
        self, begin: Observation, h: float, loads: Loads, excluded: npt.NDArray[np.intp], start: Array = NOTHING_KNOWN
    ) -> Prediction:
        """Solve the smooth problem over `h` [s], in as many passes as the acceleration needs; `start`: see `_solve`."""
        acceleration = self._acceleration
        for _ in range(self._passes):
            predicted = self._solve(begin, h, loads, excluded, acceleration, start)
            acceleration, start = predicted.acceleration(begin.v), predicted.motion.impulse
        if not _moves(begin.v, predicted.motion.x) and _moves(predicted.v_mid):
            # What stopped within the last step would have forces at a velocity that it does not have.
            return self._solve(begin, h, loads, excluded, acceleration, start)
        return predicted

    def _solve(
        self,
        begin: Observation,
        h: float,
        loads: Loads,
        excluded: npt.NDArray[np.intp],
        acceleration: Array,
        start: Array,
    ) -> Prediction:
        """Solve the smooth problem over `h` [s], forces at the velocity extrapolated by `acceleration`.

        Impulses will be near `start`, if that is not empty.
        """
        robot, mid, v = self.robot, self._mid, begin.v
        q_mid, v_mid = self.integrator.evaluation_point(robot, begin.q, v, acceleration, h)
        if self._free[0].size:
            q_mid = mid.carried(q_mid, self._free[0], self._centres(begin, h))
        mid.update(q_mid, v_mid, begin.t + 0.5 * h)
        impulses = np.zeros((6, robot.nv))
        gravity_coriolis, actuators, external, damping, contact, constraint = impulses
        gravity_coriolis -= h * mid.h
        if robot.springs:
            gravity_coriolis += h * (robot.spring_effort(begin.q) - 0.25 * h * robot.stiffness * v)
        actuators[robot.actuation] = h * loads.tau
        if loads.wrenches:
            external += h * generalised_force(robot, mid, loads.wrenches)
        candidates, turning, rows, soft = self._unilateral_rows(begin, h, excluded)
        bilateral, b = self._bilateral_rows(begin, h)
        system = RobotSystem(mid, bilateral, begin.bound.bilateral.members, self._implicit(h))
        momentum = kernels.momentum(mid.M, v, impulses)
        start = start if len(start) == len(rows.offset) else NOTHING_KNOWN  # what takes part depends on h
        method = loads.near if len(start) else loads.method
        motion = solve_motion(loads.solver, system, momentum, b, rows, method, start)
        pushes, dry, turned = self._split(motion.impulse, len(turning))
        damping -= h * robot.damping * motion.x
        if robot.springs:
            gravity_coriolis -= 0.25 * h**2 * robot.stiffness * motion.x
        damping[robot.rubbing] += dry
        contact += pushes @ rows.J[: len(pushes)]
        moments = np.zeros(len(begin.turning))
        if turning.size:
            contact += turned @ rows.J[-len(turned) :]
            moments[turning] = turned
        constraint += motion.lam @ bilateral
        found = motion.contact.status if motion.contact is not None else NO_CONTACT
        stretch = begin.stretch
        if soft is not None:
            pushes, found, pads, pad_status = _take_out(soft, len(rows.friction), pushes, found)
        impulse, status = kernels.spread(candidates, begin.contact.normals, pushes, found, len(begin.contact.s))
        if soft is not None:
            table = begin.bound.contacts
            impulse[soft.rows], status[table.soft[soft.members]] = pads, pad_status
            stretch = dragged(table, soft, pads, pad_status, 0.5 * soft.J @ (v + motion.x), stretch, h)
        energy = kernels.energy_of(v, motion.x, mid.M, impulses)
        return Prediction(h, q_mid, v_mid, motion, impulses, impulse, dry, moments, status, energy, stretch)

    def _reach(self, begin: Observation, predicted: Prediction) -> Observation:
        """Return the state to which a prediction leads."""
        x, h, mid, (free, rows) = predicted.motion.x, predicted.h, self._mid, self._free
        q_plus = self.integrator.advance(self.robot, predicted.q_mid, x, h)
        if free.size:
            forces = mid.M, predicted.impulses, self.robot.gravity
            flown = flight.end_velocities(h, begin.M, begin.v, *forces, rows, begin.frames, mid.placements[free])
            q_plus = mid.carried(q_plus, free, self._centres(begin, h) + self.integrator.share * h * flown)
        return self.observe(begin.bound, begin.t + h, q_plus, x, predicted.stretch)

    def _centres(self, begin: Observation, h: float) -> Array:
        """Return (r, 3) where the centres of mass of what free-flyers carry are at the evaluation [m]."""
        first = (1.0 - self.integrator.share) * h
        return np.asarray(flight.middle_centres(first, begin.M, begin.v, begin.frames, self._free[1]), dtype=np.float64)

    def _finish(
        self,
        begin: Observation,
        predicted: Prediction,
        end: Observation,
        loads: Loads,
        excluded: npt.NDArray[np.intp],
    ) -> Part:
        """Hold what was predicted, at `end`, and correct the velocity there."""
        pressed, held = kernels.pressing(predicted.status, begin.contact.gaps, end.contact.gaps, excluded)
        part = self._hold(predicted.part(begin, end), held, loads)
        if not _moves(begin.v, predicted.v_mid, predicted.motion.x):
            return part
        momentum = self._end_momentum(begin, part, predicted)
        return self._correct(begin, part, momentum, pressed, loads)

    def _end_momentum(self, begin: Observation, part: Part, predicted: Prediction) -> Array:
        """Return the generalised momentum (nv,) at the end of a part of a step.

        Inertial forces are those at the velocity found, not at the one extrapolated for the prediction: on a fast robot
        the difference would feed itself.
        """
        mid, v, (free, rows) = self._mid, self.integrator.inertial_velocity(begin.v, predicted.motion.x), self._free
        C, middle = mid.inertia_rate(v), mid.placements[free]
        return flight.end_momentum(
            predicted.h,
            begin.M,
            begin.v,
            mid.M,
            mid.bias_change(v) + v @ C + C @ v,
            predicted.impulses,
            self.robot.gravity,
            part.end.M,
            rows,
            begin.frames,
            middle,
            part.end.frames,
        )

    def _correct(
        self, begin: Observation, part: Part, momentum: Array, pressed: npt.NDArray[np.intp], loads: Loads
    ) -> Part:
        """Make the momentum at the end of the step what it must be, and the row velocities there obey their laws.

        Friction of what slides on opposes the mean slip, which is of second order where the slip turns. Where slip ends
        within the step, the friction that holds at its end may be along the slip at its beginning: there it is made to
        oppose the mean slip too, so that it never does positive work.

        Args:
            begin: the state at the beginning.
            part: the step as predicted; its configuration stays.
            momentum: (nv,) generalised momentum at the end, with the constraint impulses of the prediction.
            pressed: contacts that carry force in the prediction.
            loads: how to solve.
        """
        end, table = part.end, part.end.bound.contacts
        rows = table.rows_of(pressed)
        turning, discs = table.resistance.of(pressed)
        J, predicted = end.contact.J[rows], np.concatenate([part.impulse[rows], part.dry, part.moments[turning]])
        contacts = self._with_dry_friction(ContactRows(J, np.zeros(len(J)), *table.laws_of(pressed)), part.h)
        contacts = contacts.with_discs(end.turning[turning], np.zeros(len(turning)), discs)
        gaps, s, share = begin.contact.gaps[pressed], begin.contact.s_normal[pressed], self.integrator.share
        contacts.offset[contacts.normals[: len(pressed)]] = [
            kernels.allowed_approach(gap, speed, part.h, share) for gap, speed in zip(gaps, s, strict=True)
        ]
        w = begin.turning @ begin.v
        s = np.concatenate([begin.contact.s[rows], begin.v[self.robot.rubbing], w[turning]])
        system = RobotSystem(self._here, end.J_bilateral, end.bound.bilateral.members)
        free = momentum - predicted @ contacts.J
        b = end.J_bilateral @ end.v - end.s_bilateral
        count = len(contacts.friction), len(part.dry)
        kernels.follow_mean_slip(s, count[0], discs, contacts.J, contacts.offset, end.v)
        motion = solve_motion(loads.solver, system, free, b, contacts, loads.near, predicted)
        if kernels.oppose_mean_slip(
            s, *count, discs, contacts.J, contacts.offset, motion.x, motion.impulse, loads.method.tolerance
        ):
            motion = solve_motion(loads.solver, system, free, b, contacts, loads.near, motion.impulse)
        impulse, moments, status = part.impulse.copy(), part.moments.copy(), part.status.copy()
        impulse[rows], dry, moments[turning] = self._split(motion.impulse, len(turning))
        if pressed.size and motion.contact is not None:
            status[pressed] = motion.contact.status[: len(pressed)]
        impulses = np.zeros((6, self.robot.nv))
        impulses[0] = momentum - end.M @ end.v
        impulses[3, self.robot.rubbing] = dry - part.dry
        impulses[4] = (impulse[rows] - part.impulse[rows]) @ J + (moments - part.moments) @ end.turning
        impulses[5] = motion.lam @ end.J_bilateral
        corrected = end.with_velocity(motion.x)
        energy = part.energy + kernels.energy_of(end.v, motion.x, end.M, impulses)
        lam = part.lam + motion.lam
        held_work = 0.5 * float(lam @ (begin.J_bilateral @ begin.v + end.J_bilateral @ motion.x))
        contact_work = 0.5 * float(impulse @ (begin.contact.s + corrected.contact.s))
        if moments.size:
            contact_work += 0.5 * float(moments @ (w + end.turning @ motion.x))
        kernels.attribute_work(energy, contact_work, held_work)
        if dry.size:
            rubbing = self.robot.rubbing
            kernels.attribute_dry_work(energy, begin.v[rubbing], end.v[rubbing], motion.x[rubbing], part.dry, dry)
        return part._replace(
            end=corrected,
            lam=lam,
            impulse=impulse,
            dry=dry,
            moments=moments,
            status=status,
            energy=energy,
            decisive=motion,
        )

    def _hold(self, part: Part, held: npt.NDArray[np.intp], loads: Loads) -> Part:
        """Project the configuration onto the bilateral rows and the contacts `held`, which press or have sunk.

        The tangential rows of sticking contacts keep their position meanwhile.
        """
        here = part.end
        if kernels.largest_drift(here.phi, here.contact.gaps, held) <= self.stabilization.position_tolerance:
            return part
        rows = kernels.held_rows(held, here.contact.normals, part.status)
        end, energy = self.hold_positions(self.stabilization, here, loads.solver, held, rows)
        return part._replace(end=end, energy=part.energy + energy * PROJECTED)

    def _implicit(self, h: float) -> Array | None:
        """Return (nv,) what forces that depend on the velocity at the end add to the inertia, or None.

        Joint damping acts at that velocity; springs act at the mean of the positions at both ends, which keeps their
        energy whatever their frequency.
        """
        robot = self.robot
        if not robot.springs:
            return h * robot.damping if robot.is_damped else None
        return h * robot.damping + 0.25 * h**2 * robot.stiffness

    # -- constraints

    def _bilateral_rows(self, begin: Observation, h: float) -> tuple[Array, Array]:
        """Return the rows at the evaluation point, and b such that ``J v' = b`` makes s' vanish at the end."""
        bilateral, mid, v = begin.bound.bilateral, self._mid, begin.v
        if not bilateral.dim:
            return begin.J_bilateral, begin.s_bilateral
        J = bilateral.jacobian(mid)
        change = bilateral.velocity(mid, v, begin.t) - begin.s_bilateral
        return J, J @ v - bilateral.velocity(mid, v, begin.t + h) - change

    def _unilateral_rows(
        self, begin: Observation, h: float, excluded: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], ContactRows, SoftRows | None]:
        """Return what may carry force within the next `h` [s].

        Returns:
            The contacts and limits, the places of the rows in which they resist turning, and the rows of all that
            pushes, at the evaluation point: contacts, soft contacts (also returned by themselves, last), limits, dry
            joint friction, resistance to turning.
        """
        table, contact = begin.bound.contacts, begin.contact
        if not len(table):
            return NO_CONTACT, NO_CONTACT, self._with_dry_friction(ContactRows.none(self.robot.nv), h), None
        middle = table.rows(self._mid, begin.v)
        candidates, J, offset = kernels.candidate_rows(
            contact.gaps, contact.normals, contact.s, middle.s, middle.J, excluded, h, self.integrator.share, REACH
        )
        rows = ContactRows(J, offset, *table.laws_of(candidates))
        soft = None
        if table.soft.size:
            soft = soft_rows(table, contact, middle, excluded, begin.stretch, h, self.robot.mass)
            rows = rows.with_contacts(soft.J, soft.offset, table.friction[table.soft[soft.members]], soft.compliance)
            self._judge(begin, soft, h)
        rows = self._with_dry_friction(rows, h)
        turning, discs = table.resistance.of(candidates)
        if turning.size:
            J = table.resistance.rows(self._mid, middle.axes)[turning]
            rows = rows.with_discs(J, (J - begin.turning[turning]) @ begin.v, discs)
        return candidates, turning, rows, soft

    def _judge(self, begin: Observation, soft: SoftRows, h: float) -> None:
        """Warn, once per contact, where a step is too long for the stiffness or the damping of a soft contact.

        With the impedance ``alpha = h^2 k / 4 + h d`` and the mass m that the contact feels, a step turns an undamped
        vibration by ``2 sqrt(alpha / m)``.
        """
        names = [begin.bound.contacts.members[i].name for i in begin.bound.contacts.soft[soft.members]]
        for row, name in enumerate(names):
            if name not in self._judged:
                self._judged.add(name)
                normal = soft.J[3 * row + 2]
                angle = 2.0 * np.sqrt(normal @ np.linalg.solve(begin.M, normal) / soft.compliance[3 * row + 2])
                if angle > FINE:
                    warnings.warn(CoarseStep(name, h, float(angle)), stacklevel=2)

    def _with_dry_friction(self, rows: ContactRows, h: float) -> ContactRows:
        """Append a row for each joint with dry friction: ``|impulse| <= h tau_f``, and less only at rest."""
        rubbing = self.robot.rubbing
        if not rubbing.size:
            return rows
        most = h * self.robot.breakaway
        return ContactRows(
            np.vstack([rows.J, np.eye(self.robot.nv)[rubbing]]),
            np.concatenate([rows.offset, np.zeros(len(most))]),
            rows.friction,
            rows.slip,
            np.concatenate([rows.lower, -most]),
            np.concatenate([rows.upper, most]),
            None if rows.compliance is None else np.concatenate([rows.compliance, np.zeros(len(most))]),
        )

    def _split(self, impulse: Array, turning: int) -> tuple[Array, Array, Array]:
        """Return the impulses of contacts and limits, of dry joint friction, and of `turning` rows of discs."""
        end = len(impulse) - turning
        pushes = end - len(self.robot.rubbing)
        return impulse[:pushes], impulse[pushes:end], impulse[end:]


def _model_of(robot: Robot) -> tuple[Any, ...] | None:
    """Return what :func:`~constrained_sim.steppers.rigid.step` needs of a robot; None of one that it cannot do."""
    if robot.tree is None or robot.springs:
        return None
    dry = robot.rubbing, robot.breakaway
    return robot.tree, robot.support, robot.damping, robot.actuation, *dry, *robot.free_joints


def _at(begin: Observation, t: float, end: tuple[Array, ...]) -> Observation:
    """Return the state at time `t` [s] from what :func:`~constrained_sim.steppers.rigid.advance` left in `end`."""
    q, v, M, frames, axes, points, distances, gaps, J, s = end
    contact = ContactGeometry(axes, points, distances, gaps, J, s, begin.contact.normals)
    return begin._replace(t=t, q=read_only(q), v=read_only(v), M=M, frames=frames, contact=contact)


def _moves(*velocities: Array) -> bool:
    """Return whether any of the velocities of a step, those at which forces were evaluated too, is not slow."""
    for v in velocities:
        if kernels.exceeds(v, SLOW):
            return True
    return False


def _open_gaps(here: Observation) -> Array:
    """Return (k + l,) gaps of all that can still touch down [m, rad]; infinite of soft contacts that press already."""
    contact = here.contact
    if not here.stretch.size:
        return contact.gaps
    gaps = contact.all_gaps
    return np.where(np.isfinite(contact.gaps) | (gaps > TOUCHING), gaps, np.inf)


def _take_out(
    soft: SoftRows, contacts: int, pushes: Array, status: npt.NDArray[np.int64]
) -> tuple[Array, npt.NDArray[np.int64], Array, npt.NDArray[np.int64]]:
    """Separate soft contacts, the last of `contacts`: impulses and status of all others, and theirs."""
    first = contacts - len(soft.members)
    members, rows = np.arange(first, contacts), np.arange(3 * first, 3 * contacts)
    return np.delete(pushes, rows), np.delete(status, members), pushes[rows], status[members]

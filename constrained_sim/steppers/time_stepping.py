"""Velocity-level time stepping: impacts and contact forces of one step in one kind of problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import NOTHING_KNOWN
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.contact.speeds import STOP_SPEED
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.energy import TERMS
from constrained_sim.impact import Impact
from constrained_sim.integrators import Midpoint
from constrained_sim.posture import JointFeedback
from constrained_sim.solvers import Solver
from constrained_sim.steppers.contact_selection import closing_contacts, gaps_ahead
from constrained_sim.steppers.midpoint_friction import first_reversal
from constrained_sim.steppers.options import STEPPING
from constrained_sim.steppers.packed_step import packed_size
from constrained_sim.steppers.run import run_steps
from constrained_sim.steppers.soft_rows import NO_FORCES
from constrained_sim.steppers.step_inputs import StepInputs
from constrained_sim.steppers.step_model import StepArguments, StepSettings
from constrained_sim.steppers.step_outcome import Evaluation, Run, StepOutcome
from constrained_sim.steppers.stepper import NO_CONTACT
from constrained_sim.steppers.substep import DONE, INACCURATE
from constrained_sim.steppers.substep_outcome import PackedState, SubstepOutcome, outcome_of, packed_state
from constrained_sim.steppers.substep_runner import CLOSING, TRIAL, WHOLE_STEP
from constrained_sim.steppers.substeps import Substeps
from constrained_sim.steppers.touchdown import TouchdownSearch
from constrained_sim.validation import Array
from constrained_sim.wrench import Wrench, wrench_table


class TimeStepping(Substeps):
    """Moreau-Jean / Stewart-Trinkle stepping at velocity level, with a fixed step.

    Where no contact closes, a step is one smooth problem over h = dt::

        M (v' - v) = h (S^T tau + J_ext^T w - bias - D v') + J^T lam
        bilateral rows   s' = 0
        normal rows      0 <= s' + max(s + 2 gap / h, s, 0) _|_ lam_n >= 0    (of closed ones s' + max(s, 0))
        tangential rows  Coulomb's cone
        turning rows     bounded length, where a contact resists rolling or spinning

    A contact that closes within the step splits it: the smooth problem up to the touchdown, the impact map there, the
    smooth problem over the rest. So each part conserves momentum to the order of the integrator, whatever the jump. A
    soft contact splits it too, without impact: a spring that began the step apart would be compressed for nothing. So
    does slip that turns back, of a contact or of a joint with dry friction, for friction turns with it. Where joints
    turn so far that the energy is not that of the work, a step is done in halves, and halves of these.

    M, the bias forces and J are taken where the integrator says, velocities of free-flyers along their axes there,
    which stay as they are during the step (:mod:`~constrained_sim.dynamics.free_flyer`). ``s' = J v' + (J v - s)`` with
    s the row velocity at the beginning: the row velocity at the end, up to O(h^2), whichever point J was evaluated at.
    It makes the work of a held row, ``lam J (v + v') / 2 = lam (s + s') / 2``, exactly zero from one held state to the
    next. Positions move with the mean of s and s' (with s' alone under semi-implicit Euler), hence the normal rows: a
    gap may close within the step and no more, and penetration is not pushed out by forces.

    This predicts the configuration at the end. The velocity there is then corrected: to the momentum that all
    impulses account for, and so that the whole impulse of the step obeys the same laws with the row velocities
    there, friction of what slides on with their means over the step (as in RATTLE, whose second multiplier holds
    the velocities). What this adds is O(h) of the impulses, and counts as force. So momentum is what the forces
    say, of all that a free-flyer carries (:mod:`~constrained_sim.dynamics.free_flyer`, but about the long axis of a
    chain; of other joints to second order), and contact forces never feed energy. (The prediction need not be exact:
    rows of many contacts of one body may contradict each other by O(h^2) there, never at the end.) Positions drift by
    O(h^3) per step, which a projection removes.

    Sources: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Stewart and Trinkle, An
    implicit time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb friction, 1996.
    """

    name = "time_stepping"
    default_integrator = Midpoint.name
    _ahead = 1

    def step(
        self,
        start: Evaluation,
        efforts: Efforts,
        wrenches: tuple[Wrench, ...],
        solver: Solver,
        method: ContactMethod,
    ) -> StepOutcome:
        """Advance by dt, see the class."""
        inputs = StepInputs(efforts, wrench_table(self.robot, wrenches), solver, method)
        found = None
        self._warn_of_coarse_steps(start)
        if self._can_compile(start, inputs) and not start.bound.contacts.asks_user:
            found = self._runner(start, True).step(start, self.dt, self.memory, inputs, WHOLE_STEP)
        if found is not None and found.reached == DONE:
            self._remember(found)
            return found
        parts: list[SubstepOutcome] = []
        impacts: list[Impact] = []
        here, rest, touched, longest = start, self.dt, 0, self.dt
        while rest > 0.0:
            here, rest, touched = self._resolve_touchdowns(here, rest, touched, inputs, parts, impacts)
            if not rest > 0.0:
                break
            known = found if here is start and found is not None and found.reached != CLOSING else None
            h = min(rest, longest)
            part = self._advance(here, h, inputs, near=_expected(parts, h), found=known)
            part = self._shortened(part, inputs).checked()
            longest = longest if part.h == h else 2.0 * part.h
            if len(parts) < STEPPING.parts:
                part = self._until_reversal(part, inputs)
            self._remember(part)
            parts.append(part)
            here, rest = part.end, rest - part.h
        return outcome_of(start, here, parts, impacts, self.dt, self.robot.friction_dofs)

    def run(
        self,
        start: Evaluation,
        law: JointFeedback,
        asked: tuple[int, int],
        tau: Array,
        wrenches: tuple[Wrench, ...],
        times: Array,
        solver: Solver,
        method: ContactMethod,
    ) -> Run | None:
        """Do steps in one kernel, see the base class."""
        robot, contact, bound, contacts = self.robot, start.contact, start.bound, start.bound.contacts
        efforts, table = Efforts(tau, np.zeros_like(tau)), wrench_table(robot, wrenches)
        inputs = StepInputs(efforts, table, solver, method)
        if contacts.asks_user or run_steps.runs_source() or not self._can_compile(start, inputs):
            return None
        targets = bound.bilateral.targets_ahead(times[:-1][: self._ahead].tolist(), self.dt)
        steps = len(targets) if bound.bilateral.asks_user else len(times) - 1
        if not steps:
            return None
        judged = np.array([contacts.members[i].name in self._judged for i in contacts.soft], dtype=np.bool_)
        compiled = self._runner(start, True)
        here = packed_state(start).copy()
        q, v, taus = np.empty((steps, robot.nq)), np.empty((steps, robot.nv)), np.empty((steps, robot.nu))
        impulses, energy = np.empty((steps, bound.dim)), np.empty((steps, TERMS))
        axes, acceleration = np.empty((steps, *contact.axes.shape)), self._acceleration.copy()
        moments = np.empty((steps, contacts.resistance.dim))
        records = q, v, taus, impulses, axes, energy, moments
        factorization = int(solver.compiled_factorization or 0)
        settings = StepSettings(
            self.dt, True, self._passes, factorization, method.tolerance, method.newton_first, False
        )
        acting = StepArguments(efforts, table, targets, NO_CONTACT, NO_FORCES)
        done, calls = run_steps(
            compiled.model,
            settings,
            law,
            (robot.least_efforts, robot.effort_limits, judged),
            acting,
            asked,
            (here, np.zeros(packed_size(compiled.sizes)), acceleration),
            records,
        )
        self._ahead = min(2 * self._ahead, STEPPING.targets_ahead) if done == steps else 1
        if not done:
            return None
        solver.calls += calls
        if done < steps:
            records = tuple(record[:done].copy() for record in records)  # type: ignore[assignment]
        q, v, taus, impulses, axes, energy, moments = records
        forces, end = impulses / self.dt, PackedState(start, float(times[done]), here, compiled.sizes)
        lam = np.take(forces, bound.row_order, axis=-1)
        return Run(end, (acceleration, 1), q, v, taus, lam, axes, energy, moments / self.dt, done == steps)

    def _closing(self, here: Evaluation, rest: float, settled: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return what but `settled` is predicted to close within `rest` [s], in the order of linear closing times."""
        gaps, contact = _gaps_ahead(here), here.contact
        if not gaps.size:
            return NO_CONTACT
        if settled.size:
            gaps = gaps.copy()
            gaps[settled] = np.inf
        closing = np.empty(len(gaps), dtype=np.int64)
        count = closing_contacts(
            gaps,
            contact.normals,
            contact.s,
            contact.J,
            self._acceleration,
            rest,
            self._impact_speed,
            closing,
        )
        return closing[:count]

    def _shortened(
        self, part: SubstepOutcome, inputs: StepInputs, excluded: npt.NDArray[np.intp] = NO_CONTACT
    ) -> SubstepOutcome:
        """Return a `part` of a step so short that its energy is that of the work, or as short as is tried.

        Args:
            part: itself, where it is accurate.
            inputs: how to solve.
            excluded: what exerts no force in it.

        Warns:
            FastJoints: none is short enough, for the first time.
        """
        while part.reached == INACCURATE and part.h > STEPPING.shortest_part * self.dt:
            h = 0.5 * part.h
            part = self._advance(part.begin, h, inputs, excluded, _expected([part], h))
        if part.reached == INACCURATE and np.isfinite(part.end.v).all():
            self._warn_of_fast_joints()
        return part

    # -- slip that turns back

    def _until_reversal(self, part: SubstepOutcome, inputs: StepInputs) -> SubstepOutcome:
        """Return a `part` of a step up to where slip first turns back; itself, where none does.

        Friction turns there, and with it the acceleration jumps: a step across it would be of first order.
        """
        for _ in range(STEPPING.parts):
            which, share = self._reversal(part)
            if which < 0:
                break
            whole, part = part, self._until_stop(part, which, share, inputs)
            if part is whole:
                break  # else another slip may turn back before this one, which was expected later
        return part

    def _until_stop(self, part: SubstepOutcome, which: int, share: float, inputs: StepInputs) -> SubstepOutcome:
        """Return a `part` of a step up to where one slip ends, probably after this `share` of it, if it is worth while.

        Until then slip along its first direction is a smooth function of the time. Secants through times at which it
        still goes on lead to its end: friction may hold it for a while beyond. What friction has turned back with less
        than it can ends long before that share.
        """
        whole, h = part, STEPPING.first_trial * share * part.h
        rows, M = self._slip_rows(part.begin, which), part.begin.M
        slip, early, late, least = rows @ part.begin.v, [(0.0, 1.0)], whole.h, STEPPING.least_share * self.dt
        error = inputs.method.tolerance * float((rows @ np.linalg.solve(M, rows.T)).diagonal().max())
        enough = max(STOP_SPEED, error) / float(np.linalg.norm(slip))
        for _ in range(STEPPING.trials):
            if not least < h < whole.h - least:
                return whole
            part = self._advance(whole.begin, h, inputs, near=_expected([whole], h))
            if not part.is_solved or part.reached == INACCURATE:
                return whole
            left = float(slip @ self._slip_rows(part.end, which) @ part.end.v) / float(slip @ slip)
            if left > enough:
                early.append((h, left))
            elif len(early) == 1:
                h, late = STEPPING.first_trial * h, h
                continue
            elif left >= -enough:
                break
            else:
                late = h
            (t, there), (other, left_there) = early[-1], early[-2] if left > enough else (h, left)
            wanted = t + there * (t - other) / (left_there - there) if left_there != there else late
            h = wanted if t < wanted < late else 0.5 * (t + late)
        return part

    def _reversal(self, part: SubstepOutcome) -> tuple[int, float]:
        """Return which slip turns back first within a `part`, see :func:`first_reversal`."""
        begin, end, dofs, change = part.begin, part.end, self.robot.friction_dofs, part.h * self._acceleration
        most = part.h * self.robot.coulomb_effort
        joints = begin.v[dofs], end.v[dofs], change[dofs], part.outputs.joint_friction, most
        friction, slips = begin.bound.contacts.slip_friction, (begin.contact.s, end.contact.s, end.contact.J @ change)
        least = STEPPING.least_share * self.dt / part.h
        which, share = first_reversal(*slips, friction, part.outputs.impulse, part.status, joints, least)
        return which, share

    def _slip_rows(self, here: Evaluation, which: int) -> Array:
        """Return the rows (2, nv) whose velocities are the slip of a contact [m/s], or (1, nv) those of a joint."""
        joint = which - len(here.bound.contacts.friction)
        if joint < 0:
            return here.contact.J[3 * which : 3 * which + 2]
        return np.eye(self.robot.nv)[self.robot.friction_dofs[joint : joint + 1]]

    # -- impacts

    def _resolve_touchdowns(
        self,
        here: Evaluation,
        rest: float,
        touched: int,
        inputs: StepInputs,
        parts: list[SubstepOutcome],
        impacts: list[Impact],
    ) -> tuple[Evaluation, float, int]:
        """Advance past all touchdowns of a step that are predicted now, with their impacts.

        Args:
            here: the state.
            rest: of the step [s].
            touched: how many contacts have touched down in it.
            inputs: how to solve.
            parts: of the step, appended to.
            impacts: of the step, appended to.

        Returns:
            The same at the end.
        """
        settled, acceleration = NO_CONTACT, self._acceleration
        while (closing := self._closing(here, rest, settled)).size:
            if touched >= STEPPING.touching:
                early = closing[np.isfinite(here.contact.gaps[closing])]  # soft contacts have no impact
                if not early.size:
                    break
                settled = np.union1d(settled, early)
            else:
                if _gaps_ahead(here)[closing[0]] > TOUCHING:
                    flight, is_whole = self._integrate_to_touchdown(here, closing, rest, inputs, parts)
                    parts.append(flight.checked())
                    here, rest, settled = flight.end, rest - flight.h, NO_CONTACT
                    acceleration = self._acceleration
                    if not is_whole:
                        continue
                touching = here.touching
                touched += max(touching.size, 1)
                if not (here.contact.gaps[closing] <= TOUCHING).any():
                    continue  # what touches is soft, or forces have changed since the prediction and nothing does yet
                settled = touching
            impacts.append(self._impact(here, settled, inputs, acceleration))
            here = here.with_velocity(impacts[-1].v_plus)
            self._forget()
        return here, rest, touched

    def _integrate_to_touchdown(
        self,
        here: Evaluation,
        closing: npt.NDArray[np.intp],
        rest: float,
        inputs: StepInputs,
        parts: list[SubstepOutcome],
    ) -> tuple[SubstepOutcome, bool]:
        """Advance to the instant at which the first of `closing` touches, or by `rest` [s] if none does.

        Impulses will be near those of the last of the `parts` of the step before this, if there is one. Only the flight
        that ends there is corrected.

        Returns:
            The flight, and whether it is whole; else it is only the part of it that is accurate.
        """
        search = TouchdownSearch(_gaps_ahead(here)[closing], -here.contact.s_normal[closing], rest)
        near = _expected(parts, search.h)
        for _ in range(STEPPING.trials):
            trial, memory = self._advance(here, search.h, inputs, closing, near, TRIAL), self.memory
            if trial.reached == INACCURATE:
                break  # where it leads says nothing of a shorter one
            self._remember(trial)
            if search.is_over(trial.end.contact.all_gaps[closing]):
                break
            near = _expected([trial], search.h)
        self.memory = memory
        part = self._advance(here, trial.h, inputs, closing, trial.row_impulses)
        part = self._shortened(part, inputs, closing)
        self._remember(part)
        return part, part.h == trial.h

    def _impact(
        self, here: Evaluation, touching: npt.NDArray[np.intp], inputs: StepInputs, acceleration: Array
    ) -> Impact:
        """Resolve the impact of all contacts that touch, to which this `acceleration` (nv,) led.

        What is slower than what it gives to an approach within a step would bounce for about a step, and then for less
        and less: it does not.
        """
        gained = 0.0 if not here.bound.contacts.restitution.any() else self.dt * self._closing_rates(here, acceleration)
        impact = self.collide(here, touching, inputs.solver, inputs.method, gained)
        return replace(impact, early=int((here.contact.gaps[touching] > TOUCHING).sum()))

    def _closing_rates(self, here: Evaluation, acceleration: Array) -> Array:
        """Return (k + l,) the rates at which contacts and limits gain approach speed [m/s^2, rad/s^2].

        Rows change too: what lies in a turning drum gains speed towards its wall.

        Args:
            here: the state.
            acceleration: (nv,) mean one of a part of a step, of free-flyers along axes held constant.
        """
        rate = acceleration.copy()
        for k in self.robot.free_joints[1]:
            rate[k : k + 3] -= np.cross(here.v[k + 3 : k + 6], here.v[k : k + 3])
        self._here.update(here.q, here.v, here.t)
        gained = here.contact.J @ rate + here.bound.contacts.gamma(self._here, here.contact)
        return np.asarray(-gained[here.contact.normals])


def _expected(parts: list[SubstepOutcome], h: float) -> Array:
    """Return impulses over `h` [s] if forces go on as in the last of `parts`; nothing if there is none."""
    return h / parts[-1].h * parts[-1].row_impulses if parts else NOTHING_KNOWN


def _gaps_ahead(here: Evaluation) -> Array:
    """Return (k + l,) the gaps of all that can still touch down, see :func:`gaps_ahead`."""
    ahead: Array = gaps_ahead(here.contact.gaps, here.contact.distances, here.bound.contacts.soft)
    return ahead

"""The motion between two events: smooth, in one mode, integrated until an event function changes its sign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from constrained_sim.bracketed_root import bracketed_root
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.dynamics.dynamics import integrate, tangent_rate
from constrained_sim.energy import CONSTRAINTS, CONTACTS, DAMPING, FORCES
from constrained_sim.exceptions import NonFiniteMotion
from constrained_sim.forward_dynamics import acceleration_rows
from constrained_sim.integrators import adaptive_solver, advance
from constrained_sim.linalg.rank import EPSILON, TINY
from constrained_sim.solvers import RobotSystem
from constrained_sim.solvers.solver import Factorization
from constrained_sim.steppers.event_driven.contact_modes import Mode
from constrained_sim.steppers.event_driven.mode_equations import ModeEquations
from constrained_sim.steppers.event_driven.motion_inputs import MotionInputs
from constrained_sim.steppers.event_driven.options import EVENTS
from constrained_sim.steppers.event_driven.singular_crossing import (
    CrossingFactorization,
    ScaledRows,
    SingularCrossing,
)
from constrained_sim.steppers.step_outcome import Evaluation
from constrained_sim.steppers.stepper import Stepper
from constrained_sim.validation import Array


class Slopes(NamedTuple):
    """Derivatives at one state, and the values of all events there.

    Attributes:
        a: (nv,) acceleration.
        deflection: (2 soft,) rates of the springs of soft contacts [m/s].
        rates: of the integrals, see :class:`Segment`.
        events: values of all event functions, those of the open gaps first; positive while the mode lasts.
        opening: rates of the open gaps [m/s, rad/s].
        free: (nv,) acceleration without contacts.
    """

    a: Array
    deflection: Array
    rates: Array
    events: Array
    opening: Array
    free: Array


class ModeEnd(NamedTuple):
    """How a segment went.

    Attributes:
        duration: flown [s].
        y: state at the end.
        painleve: whether friction lets the forces grow beyond all bounds there.
        crossing: of a singular position, if one is near.
        is_event: whether an event ended it.
    """

    duration: float
    y: Array
    painleve: bool
    crossing: SingularCrossing | None
    is_event: bool = False


class Segment:
    """The motion in one mode, from an evaluated state on: ``y = [x, v, deflection, integrals]``, x tangent to q there.

    Integrals: multipliers of the bilateral rows, of the table's rows, of those that turn, of dry joint friction, and
    the powers of the causes in the order of ``FORCES`` and of ``M a``.
    """

    def __init__(
        self,
        stepper: Stepper,
        tolerance: float,
        start: Evaluation,
        mode: Mode,
        inputs: MotionInputs,
        near: bool,
        crossing: SingularCrossing | None,
    ) -> None:
        """Begin at `start` in `mode`.

        Args:
            stepper: of the segment.
            tolerance: relative and absolute one of the integration.
            start: the state.
            mode: that begins there.
            inputs: what acts.
            near: whether indeterminate forces stay near those at the beginning of the mode; else only where those of
                least norm are outside their cones.
            crossing: of a singular position, if one is near.
        """
        self._stepper, self._tolerance, self._crossing = stepper, tolerance, crossing
        self._start, self._mode, self._inputs = start, mode, inputs
        self._dynamics = stepper.on_the_way
        contact_set = start.bound.contacts
        friction_dofs, self._sticks = stepper.robot.friction_dofs, mode.slip_sign == 0.0
        self._held_joints = np.eye(stepper.robot.nv)[friction_dofs[self._sticks]]
        self._apart = apart = start.contact.distances[contact_set.soft] > 0.0
        self._in_contact = contact_set.soft[~apart]
        hard = np.setdiff1d(np.flatnonzero(np.isfinite(start.contact.gaps)), mode.closed)
        self._open = np.union1d(hard, contact_set.soft[apart]).astype(np.intp)
        self._open_rows = start.contact.normals[self._open]
        self._feedback = None
        self._lag = np.zeros(len(self._open))
        if inputs.feedback is not None:
            names = np.array(contact_set.names)
            self._feedback = inputs.feedback.for_rows(names[mode.closed])
            kp = np.broadcast_to(inputs.feedback.for_rows(names[self._open]).kp, self._lag.shape)
            returns = (start.contact.all_gaps[self._open] < -EVENTS.closed_gap) & (kp > 0.0)
            self._lag[returns] = 1.0 / np.sqrt(kp[returns])
        self._known: tuple[float, bytes, Slopes] | None = None
        nv, soft = stepper.robot.nv, start.deflection.size
        counts = start.bound.bilateral.dim + len(mode.forces) + len(friction_dofs) + len(FORCES) + 1
        deflection = np.where(apart[:, None], 0.0, start.deflection)  # springs relax where nothing touches
        self._y0 = np.concatenate([np.zeros(nv), start.v, deflection.ravel(), np.zeros(counts)])
        self._ends = nv, 2 * nv, 2 * nv + soft
        begin = np.concatenate([mode.forces[mode.held], mode.friction_effort[self._sticks]])
        self._reference = begin if near else np.zeros(len(begin))
        margins = self._slopes(0.0, self._y0).events[len(self._open) :]
        if not near and margins.min(initial=0.0) < -EVENTS.outside * np.abs(begin).max(initial=0.0):
            self._reference, self._known = begin, None

    def integrate_mode(self, duration: float, ignore_events: bool) -> ModeEnd:
        """Integrate for `duration` [s], up to the first event unless these are ignored, or to a singular crossing.

        Raises:
            NonFiniteMotion: the motion does not go on, and it is not friction that stops it.
        """
        margins = np.maximum(0.0, -self._slopes(0.0, self._y0).events) + self._rounding()
        margins[: len(self._open)] += self._idle()
        nv, velocities, _ = self._ends
        fastest = np.abs(self._y0[nv:velocities]).max(initial=TINY)
        deepening = np.abs(self._start.contact.s[3 * self._in_contact + 2]).max(initial=TINY)
        longest, first = EVENTS.max_turn / fastest, EVENTS.soft_depth / deepening
        solver = adaptive_solver(self._derivative, self._y0, duration, self._tolerance, longest, first)
        before = self._slopes(0.0, self._y0)
        entry, crossing = (0.0, self._y0), self._crossing
        if not _is_singular(crossing):
            crossing = self._seen(*entry, crossing)
            if _is_singular(crossing):
                return ModeEnd(*entry, False, crossing)
        while solver.status == "running":
            try:
                advance(solver)
            except NonFiniteMotion:
                if self._is_painleve(solver.t, solver.y):
                    return ModeEnd(solver.t, solver.y, True, crossing)
                raise
            t, y, last = solver.t, solver.y, crossing
            after, crossing = self._slopes(t, y), self._seen(t, y, last)
            if _is_singular(crossing) and not _is_singular(last):
                return ModeEnd(*entry, False, crossing)
            if crossing is not last:
                entry = t, y
            if _has_no_bound(after.a, after.free) and self._is_painleve(t, y):
                return ModeEnd(t, y, True, crossing)
            if not ignore_events and (event := self._first_event(solver, margins, before, after)) is not None:
                return ModeEnd(*event, False, last, True)
            if _is_singular(last) and not _is_singular(crossing):
                return ModeEnd(t, y, False, crossing)
            before = after
        return ModeEnd(duration, solver.y, False, crossing)

    def _seen(self, t: float, y: Array, crossing: SingularCrossing | None) -> SingularCrossing | None:
        """Return the crossing of a singular position as it is seen from y, when `crossing` was seen before.

        Raises:
            NonFiniteMotion: behind it the motion leaves the path that the rows allow.
        """
        bilateral, dynamics = self._start.bound.bilateral, self._dynamics
        if not bilateral.dim:
            return None
        nv, velocities, _ = self._ends
        v, robot = y[nv:velocities].copy(), dynamics.robot
        q, now = integrate(robot, self._start.q, y[:nv]), self._start.t + t

        def rows_at(q: Array, length: Array | float) -> ScaledRows:
            dynamics.update(q, v, now)
            return ScaledRows(RobotSystem(dynamics, bilateral.jacobian(dynamics)), length)

        rows = rows_at(q, 0.0 if crossing is None else crossing.length)
        if crossing is None and rows.rank(EVENTS.singular_sigma) < bilateral.dim and v.any():
            ahead = rows_at(integrate(robot, q, EVENTS.lookahead * v / np.abs(v).max()), rows.length)
            rank, none = max(rows.rank(EVENTS.singular_sigma), ahead.rank(EVENTS.singular_sigma)), np.zeros(nv)
            crossing = SingularCrossing(now, np.zeros(bilateral.dim), none, none, rank, ahead.length)
            rows = rows_at(q, crossing.length)
        rank = rows.rank(EVENTS.singular_sigma) if crossing is None else crossing.rank
        left = bilateral.velocity(dynamics, v, now)
        if _is_singular(crossing) and np.abs(left).max() > max(EVENTS.off_path * np.abs(v).max(), EVENTS.resting_speed):
            raise NonFiniteMotion("a singular position from which no motion goes on: forces grow without bound there")
        if rows.rank(EVENTS.enter_sigma) < rank:
            return (
                crossing
                if crossing is None or rows.rank(EVENTS.singular_sigma) == rank
                else crossing._replace(passed=True)
            )
        if crossing is None or not crossing.passed:
            lam = self._slopes(t, y).rates[: bilateral.dim]
            push = lam @ rows.system.J
            crossing = (
                SingularCrossing(now, lam, push, np.zeros_like(push), rank, rows.length)
                if crossing is None
                else crossing
            )
            return crossing.at(now, lam, push, rows)
        return crossing._replace(passed=False)

    def _is_painleve(self, t: float, y: Array) -> bool:
        """Return whether friction has made the forces grow beyond all bounds: without it the motion goes on."""
        blocks = self._mode.blocks
        slippery = replace(self._mode, blocks=blocks._replace(coefficient=np.zeros(len(blocks.coefficient))))
        other = Segment(self._stepper, self._tolerance, self._start, slippery, self._inputs, False, self._crossing)
        return _has_no_bound(self._slopes(t, y).a, other._slopes(t, y).a)

    def _first_event(
        self, solver: scipy.integrate.DOP853, margins: Array, before: Slopes, after: Slopes
    ) -> tuple[float, Array] | None:
        """Return when and in which state the first event function falls below its margin in the last step, if one does.

        An open gap may do so in between and rise again: then it has its minimum where it stops closing.
        """
        falls = (before.events + margins >= 0.0) & (after.events + margins < 0.0)
        ends = dict.fromkeys(np.flatnonzero(falls).tolist(), solver.t)
        dips = np.flatnonzero((before.opening < 0.0) & (after.opening > 0.0) & ~falls[: len(self._open)])
        if not (ends or dips.size):
            return None
        path = solver.dense_output()

        def opening(index: int, t: float) -> float:
            return float(self._slopes(t, path(t)).opening[index])

        def event(index: int, t: float) -> float:
            return float(self._slopes(t, path(t)).events[index] + margins[index])

        for index in dips.tolist():
            lowest = _root(partial(opening, index), solver.t_old, solver.t)
            if event(index, lowest) < 0.0:
                ends[index] = lowest
        first = None
        while ends:  # each root leaves those that are below their margin before it
            index = min(ends, key=ends.__getitem__)
            first = _root(partial(event, index), solver.t_old, ends.pop(index))
            ends = {other: min(end, first) for other, end in ends.items() if end < first or event(other, first) < 0.0}
        return None if first is None else (first, path(first))

    def evaluation(self, y: Array, t: float) -> Evaluation:
        """Return the state at `y` and time `t` [s], evaluated."""
        nv, velocities, deflections = self._ends
        q = integrate(self._stepper.robot, self._start.q, y[:nv])
        deflection = y[velocities:deflections].reshape(-1, 2)
        return self._stepper.evaluate(self._start.bound, t, q, y[nv:velocities].copy(), deflection)

    def integrals(self, y: Array) -> Array:
        """Return the integrals at `y`."""
        return y[self._ends[-1] :]

    def _rounding(self) -> Array:
        """Return by how much events are passed where they are located: gaps no farther than they are rounded.

        A ball meets the ground later and faster by it; bounces add that up.
        """
        margins = np.full(len(self._slopes(0.0, self._y0).events), EVENTS.event_margin)
        of_contacts = np.flatnonzero(self._open < len(self._start.contact.distances))
        margins[of_contacts] = min(EVENTS.event_margin, EPSILON * np.abs(self._dynamics.placements[:, 3]).max())
        return margins

    def _idle(self) -> Array:
        """Return how far what is open, but neither under load nor leaving, may sink on before it is an event.

        A contact that was found at the beginning of a step may lie deeper than ``closed_gap`` by then.
        """
        contact = self._start.contact
        gaps, speed = contact.all_gaps[self._open], contact.s_normal[self._open]
        return np.where((gaps <= EVENTS.closed_gap) & (np.abs(speed) <= EVENTS.resting_speed), EVENTS.closed_gap, 0.0)

    def _derivative(self, t: float, y: Array) -> Array:
        """Return dy/dt; NaN where there is none, so that the integrator tries a shorter step."""
        nv, velocities, _ = self._ends
        try:
            slopes = self._slopes(t, y)
            rate = tangent_rate(self._stepper.robot, self._start.q, y[:nv], y[nv:velocities])
        except np.linalg.LinAlgError:
            return np.full(len(y), np.nan)
        return np.concatenate([rate, slopes.a, slopes.deflection, slopes.rates])

    def _slopes(self, t: float, y: Array) -> Slopes:
        key = y.tobytes()
        if self._known is None or self._known[:2] != (t, key):
            self._known = t, key, self._evaluate(t, y)
        return self._known[2]

    def _evaluate(self, t: float, y: Array) -> Slopes:
        """Solve the equations of motion of this mode."""
        start, mode, inputs, dynamics = self._start, self._mode, self._inputs, self._dynamics
        robot, bound, contact_set = dynamics.robot, start.bound, start.bound.contacts
        nv, velocities, deflections = self._ends
        v = y[nv:velocities].copy()
        dynamics.update(integrate(robot, start.q, y[:nv]), v, start.t + t)
        deflection = y[velocities:deflections].reshape(-1, 2)
        geometry = contact_set.rows(dynamics, v)
        forces, soft, spring_rate = inputs.forces(dynamics, contact_set, geometry, deflection, self._apart)
        damping, contact, constraint = forces[DAMPING], forces[CONTACTS], forces[CONSTRAINTS]
        joint_friction = -mode.slip_sign * robot.coulomb_effort
        damping[robot.friction_dofs] += joint_friction
        J, _, b = acceleration_rows(bound.bilateral, dynamics, inputs.feedback)
        J_contact = contact_set.with_turning(dynamics, geometry)
        s = J_contact @ v
        system = RobotSystem(dynamics, J, bound.bilateral.members)
        factorization: Factorization | CrossingFactorization
        kept: Array = np.zeros(len(J))
        if self._crossing is not None and self._crossing.passed:
            factorization = ScaledRows(system, self._crossing.length).within(self._crossing, start.t + t)
            kept = factorization.lam
            constraint += factorization.push
        else:
            factorization = inputs.solver.factor(system)
        free = factorization.solve(forces.sum(axis=0), b)
        equations = ModeEquations(
            mode, J_contact, self._held_joints, self._gamma(geometry), self._reference, system, factorization, *free
        )
        friction = equations.with_onset(mode.moving.friction(s), mode.moving.onset(s))
        a, lam, r, force_rows = equations.solve(friction)
        closing, rest = r[: len(mode.held)], r[len(mode.held) :]
        rows = mode.all_forces(closing, friction)
        rows[: len(soft)] += soft
        joint_friction[self._sticks] = rest
        damping[robot.friction_dofs[self._sticks]] += rest
        contact += closing @ force_rows[: len(closing)]
        constraint += lam @ J
        rates = np.concatenate([lam + kept, rows, joint_friction, forces @ v, [v @ dynamics.M @ a]])
        events = self._events(geometry.all_gaps, s, v, rows, joint_friction)
        return Slopes(a, spring_rate.ravel(), rates, events, geometry.s_normal[self._open], equations.free)

    def _gamma(self, geometry: ContactGeometry) -> Array:
        """Return (3 k + l + e,) what the accelerations of the rows are to make up for where they are held."""
        mode, contact_set = self._mode, self._start.bound.contacts
        if not mode.held.size:
            return np.zeros(len(mode.forces))
        gamma = contact_set.gamma(self._dynamics, geometry)
        if self._feedback is not None:
            gamma[mode.normals] += self._feedback.feedback(geometry.gaps[mode.closed], geometry.s[mode.normals])
        return np.concatenate([gamma, contact_set.resistance.gamma(self._dynamics, geometry)])

    def _events(self, gaps: Array, s: Array, v: Array, rows: Array, joint_friction: Array) -> Array:
        """Return what is positive while the mode lasts: gaps, normal forces, cones, speeds, joints, depths where soft.

        With feedback, what comes back from below by itself does so as long as ``phi + eps s > 0``.
        """
        mode, robot = self._mode, self._dynamics.robot
        return np.concatenate(
            [
                gaps[self._open] + self._lag * s[self._open_rows],
                rows[mode.normals],
                mode.holding.margins(rows),
                mode.moving.events(s),
                np.where(
                    self._sticks,
                    robot.coulomb_effort - np.abs(joint_friction),
                    mode.slip_sign * v[robot.friction_dofs],
                ),
                -gaps[self._in_contact],
            ]
        )


def _has_no_bound(a: Array, without: Array) -> bool:
    """Return whether accelerations `a` (nv,) are beyond all bounds beside those `without` friction or contacts."""
    return bool(np.abs(a).max() > EVENTS.painleve_ratio * np.abs(without).max())


def _is_singular(crossing: SingularCrossing | None) -> bool:
    """Return whether the mechanism is within a singular crossing."""
    return crossing is not None and crossing.passed


def _root(function: Callable[[float], float], begin: float, end: float) -> float:
    """Return where a function changes its sign between two times, to rounding; the end if it does not quite."""
    if function(begin) * function(end) > 0.0:
        return end
    return bracketed_root(function, begin, end)

"""The motion between two events: smooth, in one mode, integrated until an event function changes its sign."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact import ContactMethod
from constrained_sim.contact.compliance import soft_forces
from constrained_sim.contact.geometry import ContactGeometry
from constrained_sim.contact.modes import Mode
from constrained_sim.drift import Baumgarte
from constrained_sim.dynamics import Dynamics, integrate, tangent_rate
from constrained_sim.energy import FORCES
from constrained_sim.forward_dynamics import acceleration_rows
from constrained_sim.integrators import adaptive_solver, advance
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.steppers.stepper import Observation, Stepper
from constrained_sim.validation import Array
from constrained_sim.wrench import Wrench, generalised_force

DEPTH = 1e-10
"""Gap [m, rad] up to which what rests counts as closed."""

RESTING = 1e-7
"""Approach speed [m/s, rad/s] up to which what touches rests; beyond, it collides.

An event is located up to ``ROUNDING`` of its gap, so that what a contact falls from there makes up to 1e-8 m/s.
"""

EPS = float(np.finfo(np.float64).eps)

ROUNDING = 1e-16
"""Margin of the event functions beyond their values at the beginning of a segment."""

SHALLOW = 1e-5
"""Depth [m] to which a soft contact comes in a first step at most: in a longer one it might be left unnoticed."""

TURN = 1.0
"""[rad, m] by which a joint moves at most between two looks for events."""


class Loads(NamedTuple):
    """What acts on the robot during a step, and how its problems are solved."""

    tau: Array
    wrenches: tuple[Wrench, ...]
    solver: Solver
    method: ContactMethod
    feedback: Baumgarte | None

    def forces(
        self, dynamics: Dynamics, bound: ConstraintSet, stretch: Array, apart: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Array, Array, Array]:
        """Return forces (6, nv) by cause, and force rows and spring rates of soft contacts, at the updated state.

        Those that are `apart`: see :func:`~constrained_sim.contact.compliance.soft_forces`.
        """
        robot, v = dynamics.robot, dynamics.v
        forces = np.zeros((len(FORCES), robot.nv))
        gravity_coriolis, actuators, external, damping, contact, _ = forces
        gravity_coriolis += robot.spring_effort(dynamics.q) - dynamics.h
        actuators[robot.actuation] = self.tau
        external += generalised_force(robot, dynamics, self.wrenches)
        damping -= robot.damping * v
        if not bound.contacts.soft.size:
            return forces, np.zeros(bound.contacts.dim), np.zeros_like(stretch)
        geometry = bound.contacts.rows(dynamics, v)
        soft, rate = soft_forces(bound.contacts, geometry, stretch, apart)
        contact += soft @ geometry.J
        return forces, soft, rate


class Slopes(NamedTuple):
    """Derivatives at one state: acceleration, springs of soft contacts, integrals; the values of all events.

    Those of the open gaps come first; `opening` are the rates of these.
    """

    a: Array
    stretch: Array
    rates: Array
    events: Array
    opening: Array


class Segment:
    """The motion in one mode, from an observed state on: ``y = [x, v, stretch, integrals]``, x tangent to q there.

    Integrals: multipliers of the bilateral rows, of the table's rows, of those that turn, of dry joint friction, and
    the powers of the causes in the order of ``FORCES`` and of ``M a``.
    """

    def __init__(self, stepper: Stepper, tolerance: float, start: Observation, mode: Mode, loads: Loads) -> None:
        """Begin at `start` in `mode`; `tolerance` is the relative and absolute one of the integration."""
        self._stepper, self._tolerance = stepper, tolerance
        self._start, self._mode, self._loads = start, mode, loads
        self._dynamics = Dynamics(stepper.robot)
        table = start.bound.contacts
        self._apart = apart = start.contact.distances[table.soft] > 0.0
        self._pressed = table.soft[~apart]
        hard = np.setdiff1d(np.flatnonzero(np.isfinite(start.contact.gaps)), mode.closed)
        self._open = np.union1d(hard, table.soft[apart]).astype(np.intp)
        self._reference = np.concatenate([mode.push[mode.held], mode.grip[mode.rubs == 0.0]])
        self._known: tuple[float, bytes, Slopes] | None = None
        nv, soft = stepper.robot.nv, start.stretch.size
        counts = start.bound.bilateral.dim + len(mode.push) + len(stepper.robot.rubbing) + len(FORCES) + 1
        stretch = np.where(apart[:, None], 0.0, start.stretch)  # springs relax where nothing touches
        self._y0 = np.concatenate([np.zeros(nv), start.v, stretch.ravel(), np.zeros(counts)])
        self._ends = nv, 2 * nv, 2 * nv + soft

    def fly(self, duration: float, looking: bool) -> tuple[float, Array]:
        """Integrate for `duration` [s] or up to the first event; return the time flown and y there."""
        margins = np.maximum(0.0, -self._slopes(0.0, self._y0).events) + ROUNDING
        margins[: len(self._open)] += self._idle()
        nv, velocities, _ = self._ends
        fastest = np.abs(self._y0[nv:velocities]).max(initial=1e-300)
        solver = adaptive_solver(
            lambda t, y: np.concatenate(self._derivative(t, y)),
            self._y0,
            duration,
            self._tolerance,
            TURN / fastest,
            SHALLOW / max(np.abs(self._start.contact.s[3 * self._pressed + 2]).max(initial=0.0), 1e-300),
        )
        before = self._slopes(0.0, self._y0)
        while solver.status == "running":
            advance(solver)
            after = self._slopes(solver.t, solver.y)
            if looking and (event := self._first_event(solver, margins, before, after)) is not None:
                return event
            before = after
        return duration, solver.y

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
        times = [_root(partial(event, index), solver.t_old, end) for index, end in ends.items()]
        return (min(times), path(min(times))) if times else None

    def observation(self, y: Array, t: float) -> Observation:
        """Return the state at `y`, observed."""
        nv, velocities, stretches = self._ends
        q = integrate(self._stepper.robot, self._start.q, y[:nv])
        stretch = y[velocities:stretches].reshape(-1, 2)
        return self._stepper.observe(self._start.bound, t, q, y[nv:velocities].copy(), stretch)

    def integrals(self, y: Array) -> Array:
        """Return the integrals at `y`."""
        return y[self._ends[-1] :]

    def _idle(self) -> Array:
        """Return how far what is open, but neither pressed nor leaving, may sink before it is an event."""
        contact = self._start.contact
        gaps, speed = contact.all_gaps[self._open], contact.s_normal[self._open]
        return np.where((np.abs(gaps) <= DEPTH) & (np.abs(speed) <= RESTING), DEPTH, 0.0)

    def _derivative(self, t: float, y: Array) -> tuple[Array, ...]:
        nv, velocities, _ = self._ends
        slopes = self._slopes(t, y)
        rate = tangent_rate(self._stepper.robot, self._start.q, y[:nv], y[nv:velocities])
        return rate, slopes.a, slopes.stretch, slopes.rates

    def _slopes(self, t: float, y: Array) -> Slopes:
        key = y.tobytes()
        if self._known is None or self._known[:2] != (t, key):
            self._known = t, key, self._evaluate(t, y)
        return self._known[2]

    def _evaluate(self, t: float, y: Array) -> Slopes:
        """Solve the equations of motion of this mode."""
        start, mode, loads, dynamics = self._start, self._mode, self._loads, self._dynamics
        robot, bound, table = dynamics.robot, start.bound, start.bound.contacts
        nv, velocities, stretches = self._ends
        v = y[nv:velocities].copy()
        dynamics.update(integrate(robot, start.q, y[:nv]), v, start.t + t)
        stretch = y[velocities:stretches].reshape(-1, 2)
        forces, soft, spring_rate = loads.forces(dynamics, bound, stretch, self._apart)
        _, _, _, damping, contact, constraint = forces
        dry = -mode.rubs * robot.breakaway
        damping[robot.rubbing] += dry
        geometry = table.rows(dynamics, v)
        J, _, b = acceleration_rows(bound.bilateral, dynamics, loads.feedback)
        J_contact = np.vstack([geometry.J, table.resistance.rows(dynamics, geometry.axes)])
        s = J_contact @ v
        rubbing_rows = np.eye(robot.nv)[robot.rubbing[mode.rubs == 0.0]]
        held = np.vstack([J_contact[mode.held], rubbing_rows])
        gamma = np.concatenate([self._gamma(geometry), np.zeros(len(rubbing_rows))])
        friction = mode.moving.friction(s)
        pushes = np.vstack([mode.force_rows(J_contact, friction), rubbing_rows])
        factorization = loads.solver.factor(RobotSystem(dynamics, J, bound.bilateral.members))
        a, lam = factorization.solve(forces.sum(axis=0), b)
        r = np.zeros(0)
        if len(held):
            response, reaction = factorization.solve(pushes, np.zeros((len(pushes), len(b))))
            delassus = held @ response.T
            r = self._reference + np.linalg.lstsq(delassus, -(held @ a + gamma + delassus @ self._reference), 1e-11)[0]
            a, lam = a + r @ response, lam + r @ reaction
        closing, rest = np.split(r, [len(mode.held)])
        rows = mode.forces(closing, friction)
        rows[: len(soft)] += soft
        dry[mode.rubs == 0.0] = rest
        damping[robot.rubbing[mode.rubs == 0.0]] += rest
        contact += closing @ pushes[: len(closing)]
        constraint += lam @ J
        rates = np.concatenate([lam, rows, dry, forces @ v, [v @ dynamics.M @ a]])
        events = self._events(geometry.all_gaps, s, v, rows, dry)
        return Slopes(a, spring_rate.ravel(), rates, events, geometry.s_normal[self._open])

    def _gamma(self, geometry: ContactGeometry) -> Array:
        """Return what the accelerations of the held rows are to make up for."""
        mode, table = self._mode, self._start.bound.contacts
        if not mode.held.size:
            return np.zeros(0)
        gamma = table.gamma(self._dynamics, geometry)
        if self._loads.feedback is not None:
            gamma[mode.normals] += self._loads.feedback.feedback(geometry.gaps[mode.closed], geometry.s[mode.normals])
        return np.concatenate([gamma, table.resistance.gamma(self._dynamics, geometry)])[mode.held]

    def _events(self, gaps: Array, s: Array, v: Array, rows: Array, dry: Array) -> Array:
        """Return what is positive as long as the mode lasts: gaps, pushes, cones, speeds, joints, depths where soft."""
        mode, robot = self._mode, self._dynamics.robot
        return np.concatenate(
            [
                gaps[self._open],
                rows[mode.normals],
                mode.holding.coefficient * rows[mode.holding.normal] - mode.holding.lengths(rows),
                mode.moving.events(s),
                np.where(mode.rubs == 0.0, robot.breakaway - np.abs(dry), mode.rubs * v[robot.rubbing]),
                -gaps[self._pressed],
            ]
        )


def _root(function: Callable[[float], float], begin: float, end: float) -> float:
    """Return where a function changes its sign between two times, to rounding; the end if it does not quite."""
    if function(begin) * function(end) > 0.0:
        return end
    return float(scipy.optimize.brentq(function, begin, end, xtol=4.0 * EPS, rtol=4.0 * EPS))

"""The contract of a stepper: one simulated step, from what is observed at its beginning to what it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.table import ContactGeometry
from constrained_sim.drift import Projection
from constrained_sim.impact import Impact
from constrained_sim.integrators import Integrator
from constrained_sim.motion import Motion
from constrained_sim.robot import Robot
from constrained_sim.solvers import Solver
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench


class Observation(NamedTuple):
    """A state, and the constraints as they are there.

    Attributes:
        bound: the constraints.
        t: time [s].
        q: (nq,).
        v: (nv,).
        M: (nv, nv) inertia at q.
        base: (4, 3) rotation columns and translation of the first joint's frame.
        contact: points, gaps and rows of the contacts.
        phi: (m,) violations of the bilateral rows.
        J_bilateral: (m, nv).
        s_bilateral: (m,).
    """

    bound: ConstraintSet
    t: float
    q: Array
    v: Array
    M: Array
    base: Array
    contact: ContactGeometry
    phi: Array
    J_bilateral: Array
    s_bilateral: Array

    def with_velocity(self, v: Array) -> Observation:
        """Return the same configuration at the velocity `v` (nv,); rows of bilateral constraints change by J."""
        contact = self.contact._replace(s=self.contact.J @ v)
        s_bilateral = self.s_bilateral + self.J_bilateral @ (v - self.v) if self.s_bilateral.size else self.s_bilateral
        return self._replace(v=read_only(v), contact=contact, s_bilateral=s_bilateral)


class StepOutcome(NamedTuple):
    """What one step gave.

    Attributes:
        end: the new state, observed.
        a: (nv,) mean acceleration of the last part without impact.
        lam: (rows,) mean constraint and contact forces [N, N m], percussions excluded.
        status: (k,) of the contacts: 0 open, 1 sticking, 2 sliding.
        impacts: in the order of time.
        energy: (9,) terms of the audit, in the order of :class:`~constrained_sim.energy.EnergyTerms`.
        motion: solution of the step's problem, with residuals.
    """

    end: Observation
    a: Array
    lam: Array
    status: npt.NDArray[np.int64]
    impacts: tuple[Impact, ...]
    energy: Array
    motion: Motion


class Stepper(ABC):
    """Advances a robot by steps of dt.

    Attributes:
        name: in the registry.
        bounce_velocity: approach speed [m/s] below which restitution counts as 0.
    """

    name: str

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, projection: Projection) -> None:
        """Keep the settings."""
        self.robot, self.dt, self.integrator, self.projection = robot, dt, integrator, projection
        self.bounce_velocity = 1e-2

    @abstractmethod
    def reset(self, bound: ConstraintSet, t: float, q: Array, v: Array) -> Observation:
        """Forget the past and observe (q, v) at time `t`."""

    @abstractmethod
    def step(
        self,
        start: Observation,
        tau: Array,
        wrenches: tuple[Wrench, ...],
        solver: Solver,
        method: str,
    ) -> StepOutcome:
        """Advance by dt.

        Args:
            start: the state at the beginning.
            tau: (nu,) efforts [N m, N], within the limits.
            wrenches: external forces during the step.
            solver: of the linear part.
            method: of the contact problem.

        Raises:
            ContactNotSolved: no contact method found a solution.
        """

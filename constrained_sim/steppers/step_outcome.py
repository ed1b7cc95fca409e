"""States at the beginning and the end of a step, with their constraints, and the outcome of the step."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.impact import Impact
from constrained_sim.steppers.state_checks import largest_violation
from constrained_sim.validation import Array, read_only


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A state, and the constraints as they are there.

    Attributes:
        bound: the constraints.
        t: time [s].
        q: (nq,).
        v: (nv,).
        M: (nv, nv) inertia at q.
        frames: (r, 4, 3) rotation columns and translation of the free-flyers' frames, see ``Robot.free_joints``.
        contact: points, gaps and rows of the contacts.
        phi: (m,) violations of the bilateral rows.
        J_bilateral: (m, nv).
        s_bilateral: (m,).
        deflection: (soft, 2) of the springs of soft contacts along their surfaces [m].
        turning: (e, nv) rows in which contacts resist rolling and spinning.
    """

    bound: ConstraintSet
    t: float
    q: Array
    v: Array
    M: Array
    frames: Array
    contact: ContactGeometry
    phi: Array
    J_bilateral: Array
    s_bilateral: Array
    deflection: Array
    turning: Array

    @property
    def touching(self) -> npt.NDArray[np.intp]:
        """Contacts that are closed, and one-sided rows at their bound; ascending."""
        return np.flatnonzero(self.contact.gaps <= TOUCHING)

    def with_velocity(self, v: Array) -> Evaluation:
        """Return the same configuration at the velocity `v` (nv,); rows of bilateral constraints change by J."""
        s_bilateral = self.s_bilateral + self.J_bilateral @ (v - self.v) if self.s_bilateral.size else self.s_bilateral
        contact = self.contact._replace(s=self.contact.J @ v)
        rest = self.phi, self.J_bilateral, s_bilateral, self.deflection, self.turning
        return Evaluation(self.bound, self.t, self.q, read_only(v), self.M, self.frames, contact, *rest)

    def at_time(self, t: float) -> Evaluation:
        """Return the same at the time `t` [s], which differs by rounding."""
        if t == self.t:
            return self
        other = copy(self)
        vars(other)["t"] = t
        return other

    @property
    def J_contact(self) -> Array:
        """(3 k + l + e, nv) rows of the contacts and one-sided rows, then those that turn."""
        return np.vstack([self.contact.J, self.turning]) if len(self.turning) else self.contact.J

    @property
    def largest_violation(self) -> tuple[float, float]:
        """The largest bilateral violation or depth of a contact [m, rad], and bilateral row velocity."""
        return largest_violation(self.phi, self.contact.gaps, self.s_bilateral)

    def mean_axes(self, start: Evaluation) -> Array:
        """Return (k, 3, 3) the means of the axes of contacts here and at the `start`."""
        return 0.5 * (start.contact.axes + self.contact.axes)

    def deflection_in(self, bound: ConstraintSet) -> Array:
        """Return the springs (soft, 2) for another set of constraints: those of contacts that are in both."""
        mine, theirs = self.bound.contacts, bound.contacts
        known = {mine.members[i].name: deflection for i, deflection in zip(mine.soft, self.deflection, strict=True)}
        found = [known.get(theirs.members[i].name, np.zeros(2)) for i in theirs.soft]
        return np.array(found).reshape(-1, 2)


class StepResiduals(NamedTuple):
    """Relative residuals of a step.

    Attributes:
        dynamics: of the equation of motion.
        constraint: of the bilateral rows.
        complementarity: of the contact problem; 0 without contacts.
    """

    dynamics: float
    constraint: float
    complementarity: float


@dataclass(frozen=True, eq=False)
class StepOutcome:
    """What one step gave.

    Attributes:
        end: the new state.
        a: (nv,) mean acceleration over the step, the jumps of impacts excluded.
        lam: (rows,) mean constraint and contact forces [N, N m], impulses of impacts excluded.
        axes: (k, 3, 3) rows t1, t2, n along which those of the contacts act: means of the axes at both ends.
        dry_friction: (nv,) mean effort of dry joint friction [N m, N].
        status: (k + l,) of the contacts and one-sided rows: 0 open, 1 sticking, 2 sliding.
        impacts: in the order of time.
        energy: (9,) terms of the audit, in the order of :class:`~constrained_sim.energy.EnergyTerms`.
        motion: solution of the step's problem, with residuals.
        moments: (e,) mean moments by which contacts resist rolling and spinning [N m].
        damped_velocity: (nv,) at which the damping of joints and of their feedback acted, mean over the step.
    """

    end: Evaluation
    a: Array
    lam: Array
    axes: Array
    dry_friction: Array
    status: npt.NDArray[np.int64]
    impacts: tuple[Impact, ...]
    energy: Array
    motion: ConstrainedSolution
    moments: Array
    damped_velocity: Array

    @property
    def residuals(self) -> StepResiduals:
        """Relative residuals."""
        motion = self.motion
        contact = motion.contact.residual if motion.contact is not None else 0.0
        return StepResiduals(motion.dynamics_residual, motion.constraint_residual, contact)


class Run(NamedTuple):
    """What n steps gave, a row for each; see :class:`StepOutcome`.

    Attributes:
        end: the state after the last of them.
        memory: of the stepper there.
        q: (n, nq) at the end of each.
        v: (n, nv) at the end of each.
        tau: (n, nu) efforts, within the limits [N m, N].
        lam: (n, rows) mean constraint and contact forces [N, N m].
        axes: (n, k, 3, 3) along which those of the contacts act.
        energy: (n, 9) terms of the audit.
        moments: (n, e) mean moments by which contacts resist rolling and spinning [N m].
        may_go_on: whether the next step may be done in the same way; else it needs :meth:`Stepper.step`.
    """

    end: Evaluation
    memory: Any
    q: Array
    v: Array
    tau: Array
    lam: Array
    axes: Array
    energy: Array
    moments: Array
    may_go_on: bool = False

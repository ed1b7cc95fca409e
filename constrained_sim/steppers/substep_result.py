"""What a step of time stepping is made of: its inputs, and the parts between which contacts close."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.energy import EnergyTerms
from constrained_sim.impact import Impact
from constrained_sim.solvers import Solver
from constrained_sim.steppers.soft_rows import NO_PUSH
from constrained_sim.steppers.stepper import NO_CONTACT, Evaluation, StepOutcome
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import WrenchTable


class StepInputs(NamedTuple):
    """What acts on the robot during a step, and how its problems are solved.

    Attributes:
        efforts: of the actuators.
        wrenches: external ones, constant along their axes during the step.
        solver: of the linear part.
        method: of the contact problems of predictions.
        near: of corrections, whose solution is nearly known.
        turned: of those in which friction was turned against the mean slip: Newton's method seldom gets on from there.
        excluded: (x,) contacts and limits that carry no force.
        pushes: what the user's laws of soft contacts say, see
            :func:`~constrained_sim.steppers.soft_rows.pushes_of_users`.
    """

    efforts: Efforts
    wrenches: WrenchTable
    solver: Solver
    method: ContactMethod
    near: ContactMethod
    turned: ContactMethod
    excluded: npt.NDArray[np.int64] = NO_CONTACT
    pushes: Array = NO_PUSH

    @classmethod
    def of(cls, efforts: Efforts, wrenches: WrenchTable, solver: Solver, method: ContactMethod) -> StepInputs:
        """Return the loads of a step whose contact problems are solved by `method`."""
        return cls(efforts, wrenches, solver, method, method, method.without_newton)

    def after_prediction(self) -> StepInputs:
        """Return what goes on where the quick methods have found no prediction."""
        return self._replace(method=self.method.after_quick)

    def after_correction(self) -> StepInputs:
        """Return what goes on where they have found a prediction, and no correction."""
        return self._replace(near=self.near.after_quick, turned=self.near.after_quick)


class SubstepResult(NamedTuple):
    """A part of a step without impact, of length h [s]; lam, impulse, joint_friction and moments in N s.

    `motion` is as predicted; `decisive` is what the velocity at the end comes from.
    """

    h: float
    end: Evaluation
    lam: Array
    impulse: Array
    joint_friction: Array
    moments: Array
    status: npt.NDArray[np.int64]
    energy: Array
    motion: ConstrainedSolution
    decisive: ConstrainedSolution
    begin: Evaluation

    @property
    def is_solved(self) -> bool:
        """Whether its contact problem is, to its tolerance."""
        return self.decisive.contact is None or self.decisive.contact.converged

    def checked(self) -> SubstepResult:
        """Return this, unless its contact problem is not solved: what is thrown away need not be.

        Raises:
            ContactNotSolved: see :meth:`~constrained_sim.constrained_dynamics.ConstrainedSolution.check_contacts`.
        """
        self.decisive.check_contacts(OPTIONS.tolerable)
        return self

    @property
    def change(self) -> Array:
        """(nv,) by how much the velocity changes."""
        return self.end.v - self.begin.v

    @property
    def rows(self) -> Array:
        """(rows,) impulses of all rows in the order of declaration [N s]."""
        return self.end.bound.rows(self.lam, self.impulse)


def outcome_of(
    start: Evaluation,
    end: Evaluation,
    parts: list[SubstepResult],
    impacts: list[Impact],
    dt: float,
    friction_dofs: npt.NDArray[np.intp],
) -> StepOutcome:
    """Put the parts of a step together; `end` is the state after them and all impacts."""
    last = parts[-1]
    rows, energy, moments, joint_friction, change, moved = (
        last.rows,
        last.energy,
        last.moments,
        last.joint_friction,
        last.change,
        last.h * last.motion.x,
    )
    for part in parts[:-1]:
        rows, energy, moments = rows + part.rows, energy + part.energy, moments + part.moments
        joint_friction, change = joint_friction + part.joint_friction, change + part.change
        moved = moved + part.h * part.motion.x
    if impacts:
        lost = sum(impact.energy_lost for impact in impacts)
        energy = energy + EnergyTerms(impact_losses=lost).as_array()
    efforts = np.zeros(len(change))
    if friction_dofs.size:
        efforts[friction_dofs] = joint_friction / dt
    forces, turning, status = read_only(rows / dt), read_only(moments / dt), read_only(last.status)
    axes, motion = end.mean_axes(start), last.motion
    return StepOutcome(
        end, change / dt, forces, axes, read_only(efforts), status, tuple(impacts), energy, motion, turning, moved / dt
    )

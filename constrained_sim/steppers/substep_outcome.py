"""Outcome of a step without impact; parts of its record are unpacked on demand."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.quick_solution import QuickSolution
from constrained_sim.energy import EnergyTerms
from constrained_sim.impact import Impact
from constrained_sim.steppers.packed_step import (
    Sizes,
    State,
    StepOutputs,
    unpack_outputs,
    unpack_state,
)
from constrained_sim.steppers.step_outcome import Evaluation, StepOutcome, StepResiduals
from constrained_sim.validation import Array, read_only


class PackedState(Evaluation):
    """A state that a compiled step left. Who keeps q and v, which are copies, does not keep the record.

    Attributes:
        record: begins with the state.
        sizes: of its parts.
    """

    record: Array
    sizes: Sizes

    def __init__(self, before: Evaluation, t: float, record: Array, sizes: Sizes) -> None:
        """Take over a `record` at time `t` [s], under the constraints of the state `before`."""
        q, v = record[: sizes.nq].copy(), record[sizes.nq : sizes.nq + sizes.nv].copy()
        vars(self).update(bound=before.bound, t=t, q=read_only(q), v=read_only(v), record=record, sizes=sizes)

    @cached_property
    def _parts(self) -> State:
        parts: State = unpack_state(self.record, self.sizes)
        return parts

    @cached_property
    def M(self) -> Array:
        """(nv, nv) inertia at q."""
        return self._parts.M

    @cached_property
    def frames(self) -> Array:
        """(r, 4, 3) placements of the free-flyers."""
        return self._parts.frames

    @cached_property
    def contact(self) -> ContactGeometry:
        """Points, gaps and rows of the contacts."""
        here, normals = self._parts, self.bound.contacts.normals
        return ContactGeometry(here.axes, here.points, here.distances, here.gaps, here.J, here.s, normals)

    @cached_property
    def phi(self) -> Array:
        """(m,) violations of the bilateral rows."""
        return self._parts.phi

    @cached_property
    def J_bilateral(self) -> Array:
        """(m, nv)."""
        return self._parts.J_bilateral

    @cached_property
    def s_bilateral(self) -> Array:
        """(m,)."""
        return self._parts.s_bilateral

    @cached_property
    def turning(self) -> Array:
        """(e, nv)."""
        return self._parts.turning

    @cached_property
    def deflection(self) -> Array:
        """(soft, 2) of the springs of soft contacts."""
        return self._parts.deflection


def packed_state(state: Evaluation) -> Array:
    """Return an array that begins with the parts of a `state`; its record, where it has one."""
    if isinstance(state, PackedState):
        return state.record
    contact = state.contact
    parts = State(
        q=state.q,
        v=state.v,
        M=state.M,
        frames=state.frames,
        axes=contact.axes,
        points=contact.points,
        distances=contact.distances,
        gaps=contact.gaps,
        phi=state.phi,
        s_bilateral=state.s_bilateral,
        J=contact.J,
        s=contact.s,
        J_bilateral=state.J_bilateral,
        turning=state.turning,
        deflection=state.deflection,
    )
    return np.concatenate([part.ravel() for part in parts])


class SubstepReport(NamedTuple):
    """How a step went, in numbers.

    Attributes:
        reached: how far it came, see :func:`~constrained_sim.steppers.substep_runner.run_substep`.
        calls: how often rows were held.
        rows: how many rows took part in the contact problem.
        members: how many contacts, one-sided rows, degrees of freedom with dry friction and moments did.
        method: which of :data:`~constrained_sim.contact_solvers.quick_solution.NAMES` solved it.
        iterations: of all methods.
        residual: relative, of the contact law.
        magnitude: impulse scale [N s].
        dynamics_residual: relative, of the equation of motion.
        constraint_residual: relative, of the bilateral rows.
    """

    reached: int
    calls: int
    rows: int
    members: int
    method: int
    iterations: int
    residual: float
    magnitude: float
    dynamics_residual: float
    constraint_residual: float


class SolvedProblem(NamedTuple):
    """How a step solved its contact problem.

    Attributes:
        method: that was to come first, and its tolerance.
        status: of all contacts and one-sided rows, then of what took part in the problem.
        report: of the step.
    """

    method: ContactMethod
    status: npt.NDArray[np.int64]
    report: SubstepReport


class SubstepOutcome(StepOutcome):
    """What a step without impact, or a part of one, gave.

    Attributes:
        begin: the state at the beginning.
        h: length [s].
        solved: how the contact problem of the step was solved.
        reached: how far it came; what is done has a whole record.
        outputs: what the step gave.
        decisive: solution of what the velocity at the end comes from; None where kernels did it, whose solutions do.
    """

    begin: Evaluation
    h: float
    end: PackedState
    solved: SolvedProblem
    reached: int
    outputs: StepOutputs
    decisive: ConstrainedSolution | None
    _predicted: ConstrainedSolution | None

    def __init__(
        self,
        begin: Evaluation,
        h: float,
        end: PackedState,
        solved: SolvedProblem,
        predicted: ConstrainedSolution | None = None,
        decisive: ConstrainedSolution | None = None,
    ) -> None:
        """Take over what a step of `h` [s] from the `begin` left at its `end`.

        An interpreted step has two solutions of its own: that `predicted`, and the last one.
        """
        outputs, reached = unpack_outputs(end.record, end.sizes), solved.report.reached
        vars(self).update(begin=begin, h=h, end=end, solved=solved, reached=reached, outputs=outputs)
        vars(self).update(impacts=(), energy=outputs.energy, decisive=decisive, _predicted=predicted)

    @cached_property
    def a(self) -> Array:
        """(nv,) mean acceleration."""
        return (self.end.v - self.begin.v) / self.h

    @cached_property
    def lam(self) -> Array:
        """(rows,) mean forces [N, N m]."""
        return read_only(self.outputs.forces.copy())

    @cached_property
    def axes(self) -> Array:
        """(k, 3, 3) along which those of the contacts act."""
        return self.outputs.axes

    @cached_property
    def dry_friction(self) -> Array:
        """(nv,) mean efforts [N m, N]."""
        return read_only(self.outputs.friction_efforts.copy())

    @cached_property
    def status(self) -> npt.NDArray[np.int64]:
        """(k + l,) of the contacts and one-sided rows."""
        sizes = self.end.sizes
        return read_only(self.solved.status[: sizes.rows - 2 * sizes.contacts])

    @cached_property
    def moments(self) -> Array:
        """(e,) mean moments [N m]."""
        return read_only(self.outputs.moments / self.h)

    @property
    def damped_velocity(self) -> Array:
        """(nv,) at which the damping of joints and of their feedback acted."""
        return self.outputs.x

    @property
    def residuals(self) -> StepResiduals:
        """Relative residuals."""
        report = self.solved.report
        return StepResiduals(report.dynamics_residual, report.constraint_residual, report.residual)

    @cached_property
    def motion(self) -> ConstrainedSolution:
        """Solution of the step's problem."""
        if self._predicted is not None:
            return self._predicted
        (method, status, report), outputs, solution = self.solved, self.outputs, None
        if len(outputs.row_impulses):
            first = len(self.status)
            how = report.method, report.iterations, report.residual, report.magnitude
            quick = QuickSolution(self.row_impulses, status[first : first + report.members], *how, True)
            solution = method.solution(quick)
        residuals = report.dynamics_residual, report.constraint_residual
        return ConstrainedSolution(outputs.x, outputs.lam, self.row_impulses, solution, *residuals)

    @property
    def row_impulses(self) -> Array:
        """(n,) impulses of all rows that took part in the prediction [N s, N m s]."""
        return self.outputs.row_impulses[: self.solved.report.rows]

    @property
    def is_solved(self) -> bool:
        """Whether its contact problem is, to its tolerance."""
        return self.decisive is None or self.decisive.contact is None or self.decisive.contact.converged

    def checked(self) -> SubstepOutcome:
        """Return this, unless its contact problem is not solved: what is thrown away need not be.

        Raises:
            ContactNotSolved: see :meth:`~constrained_sim.constrained_dynamics.ConstrainedSolution.check_contacts`.
        """
        if self.decisive is not None:
            self.decisive.check_contacts(OPTIONS.tolerable)
        return self


def outcome_of(
    start: Evaluation,
    end: Evaluation,
    parts: list[SubstepOutcome],
    impacts: list[Impact],
    dt: float,
    friction_dofs: npt.NDArray[np.intp],
) -> StepOutcome:
    """Put the parts of a step together; `end` is the state after them and all impacts."""
    outputs = [part.outputs for part in parts]
    lam, impulse = _total([part.lam for part in outputs]), _total([part.impulse for part in outputs])
    energy = _total([part.energy for part in parts])
    if impacts:
        energy = energy + EnergyTerms(impact_losses=sum(impact.energy_lost for impact in impacts)).as_array()
    efforts = np.zeros(len(end.v))
    efforts[friction_dofs] = _total([part.joint_friction for part in outputs]) / dt
    return StepOutcome(
        end=end,
        a=_total([part.end.v - part.begin.v for part in parts]) / dt,
        lam=read_only(end.bound.rows(lam, impulse) / dt),
        axes=end.mean_axes(start),
        dry_friction=read_only(efforts),
        status=parts[-1].status,
        impacts=tuple(impacts),
        energy=energy,
        motion=parts[-1].motion,
        moments=read_only(_total([part.moments for part in outputs]) / dt),
        damped_velocity=_total([part.h * part.outputs.x for part in parts]) / dt,
    )


def _total(arrays: list[Array]) -> Array:
    """Return the sum of some arrays, at least one."""
    total = arrays[0]
    for other in arrays[1:]:
        total = total + other
    return total

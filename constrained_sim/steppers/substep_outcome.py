"""What a step without impact gave, as it looks from outside: parts of its record are unpacked on demand."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.energy import EnergyTerms
from constrained_sim.impact import Impact
from constrained_sim.steppers.packed_step import (
    Sizes,
    State,
    StepOutputs,
    first_gap,
    unpack_outputs,
    unpack_state,
)
from constrained_sim.steppers.state_checks import largest_violation
from constrained_sim.steppers.step_outcome import Evaluation, StepOutcome, StepResiduals
from constrained_sim.validation import Array, read_only


class PackedState(Evaluation):
    """A state that a compiled step left. Who keeps q and v, which are copies, does not keep the record.

    Attributes:
        record: begins with the state.
        sizes: of its parts.
    """

    def __init__(self, before: Evaluation, t: float, record: Array, sizes: Sizes) -> None:
        """Take over a `record` at time `t` [s], under the constraints of the state `before`."""
        self.bound, self.t, self.record, self.sizes = before.bound, t, record, sizes
        self.q = read_only(record[: sizes.nq].copy())
        self.v = read_only(record[sizes.nq : sizes.nq + sizes.nv].copy())

    @cached_property
    def _parts(self) -> State:
        parts: State = unpack_state(self.record, self.sizes)
        return parts

    @cached_property
    def M(self) -> Array:  # type: ignore[override]
        """(nv, nv) inertia at q."""
        return self._parts.M

    @cached_property
    def frames(self) -> Array:  # type: ignore[override]
        """(r, 4, 3) placements of the free-flyers."""
        return self._parts.frames

    @cached_property
    def contact(self) -> ContactGeometry:  # type: ignore[override]
        """Points, gaps and rows of the contacts."""
        here, normals = self._parts, self.bound.contacts.normals
        return ContactGeometry(here.axes, here.points, here.distances, here.gaps, here.J, here.s, normals)

    @cached_property
    def phi(self) -> Array:  # type: ignore[override]
        """(m,) violations of the bilateral rows."""
        return self._parts.phi

    @cached_property
    def J_bilateral(self) -> Array:  # type: ignore[override]
        """(m, nv)."""
        return self._parts.J_bilateral

    @cached_property
    def s_bilateral(self) -> Array:  # type: ignore[override]
        """(m,)."""
        return self._parts.s_bilateral

    @cached_property
    def turning(self) -> Array:  # type: ignore[override]
        """(e, nv)."""
        return self._parts.turning

    @cached_property
    def deflection(self) -> Array:  # type: ignore[override]
        """(soft, 2) of the springs of soft contacts."""
        return self._parts.deflection

    @property
    def largest_violation(self) -> tuple[float, float]:
        """The largest bilateral violation or depth of a contact [m, rad], and bilateral row velocity."""
        sizes, record, gaps = self.sizes, self.record, first_gap(self.sizes)
        phi = gaps + sizes.rows - 2 * sizes.contacts
        s = phi + sizes.bilateral
        return largest_violation(record[phi:s], record[gaps:phi], record[s : s + sizes.bilateral])


def packed_state(state: Evaluation, sizes: Sizes) -> Array:
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


class SolvedProblem(NamedTuple):
    """How a compiled step solved its contact problem.

    Attributes:
        method: of contact problems.
        status: of all contacts and one-sided rows, then of what took part in the problem.
        rows: how many rows took part.
        members: how many contacts, one-sided rows and degrees of freedom with dry friction did.
        how: which method solved it, and steps.
        residual: relative, of the contact law.
        magnitude: impulse scale [N s].
        dynamics_residual: relative, of the equation of motion.
        constraint_residual: relative, of the bilateral rows.
    """

    method: ContactMethod
    status: npt.NDArray[np.int64]
    rows: int
    members: int
    how: tuple[int, int]
    residual: float
    magnitude: float
    dynamics_residual: float
    constraint_residual: float


class SubstepOutcome(StepOutcome):
    """What a step without impact, or a part of one, gave.

    Attributes:
        begin: the state at the beginning.
        h: length [s].
        reached: how far it came, see :func:`~constrained_sim.steppers.substep_runner.step`; what is done has a whole
            record.
        solved: how the contact problem of the step was solved.
        outputs: what the step gave.
        decisive: solution of what the velocity at the end comes from; None where kernels did it, whose solutions do.
    """

    impacts = ()
    decisive: ConstrainedSolution | None = None

    def __init__(self, begin: Evaluation, h: float, end: PackedState, reached: int, solved: SolvedProblem) -> None:
        """Take over what a step of `h` [s] from the `begin` left at its `end`."""
        self.end: PackedState
        self.begin, self.h, self.end, self.reached, self.solved = begin, h, end, reached, solved
        self.outputs: StepOutputs = unpack_outputs(end.record, end.sizes)
        self.energy = self.outputs.energy

    @cached_property
    def a(self) -> Array:  # type: ignore[override]
        """(nv,) mean acceleration."""
        return (self.end.v - self.begin.v) / self.h

    @cached_property
    def lam(self) -> Array:  # type: ignore[override]
        """(rows,) mean forces [N, N m]."""
        return read_only(self.outputs.forces.copy())

    @cached_property
    def axes(self) -> Array:  # type: ignore[override]
        """(k, 3, 3) along which those of the contacts act."""
        return self.outputs.axes

    @cached_property
    def dry_friction(self) -> Array:  # type: ignore[override]
        """(nv,) mean efforts [N m, N]."""
        return read_only(self.outputs.efforts.copy())

    @cached_property
    def status(self) -> npt.NDArray[np.int64]:  # type: ignore[override]
        """(k + l,) of the contacts and one-sided rows."""
        sizes = self.end.sizes
        return read_only(self.solved.status[: sizes.rows - 2 * sizes.contacts])

    @cached_property
    def moments(self) -> Array:  # type: ignore[override]
        """(e,) mean moments [N m]."""
        return read_only(self.outputs.moments / self.h)

    @property
    def damped_velocity(self) -> Array:  # type: ignore[override]
        """(nv,) at which the damping of joints and of their feedback acted."""
        return self.outputs.x

    @property
    def residuals(self) -> StepResiduals:
        """Relative residuals."""
        solved = self.solved
        return StepResiduals(solved.dynamics_residual, solved.constraint_residual, solved.residual)

    @cached_property
    def motion(self) -> ConstrainedSolution:  # type: ignore[override]
        """Solution of the step's problem."""
        solved, outputs = self.solved, self.outputs
        row_impulses, solution = self.row_impulses, None
        if len(outputs.row_impulses):
            first = len(self.status)
            status = solved.status[first : first + solved.members]
            solution = solved.method.quick_solution(row_impulses, status, solved.how, solved.residual, solved.magnitude)
        residuals = solved.dynamics_residual, solved.constraint_residual
        return ConstrainedSolution(outputs.x, outputs.lam, row_impulses, solution, *residuals)

    @property
    def row_impulses(self) -> Array:
        """(n,) impulses of all rows that took part in the prediction [N s, N m s]."""
        return self.outputs.row_impulses[: self.solved.rows]

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

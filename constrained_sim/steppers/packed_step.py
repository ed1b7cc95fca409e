"""What a compiled step leaves, in one array, and what it looks like from outside: parts are unpacked on demand.

To make an array of each takes longer than the step of a leg.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.steppers.state_checks import largest_violation
from constrained_sim.steppers.stepper import Evaluation, StepOutcome
from constrained_sim.steppers.substep_result import SubstepResult
from constrained_sim.validation import Array, read_only


class Sizes(NamedTuple):
    """Of a robot and its constraints.

    Attributes:
        nq: length of q.
        nv: of v.
        flyers: number of free-flyers.
        contacts: number k of contacts.
        rows: number of rows, 3 k + l.
        joint_friction: number of degrees of freedom with dry friction.
        bilateral: number m of bilateral rows.
        turning: number e of rows in which contacts resist turning.
        moments: number g of moments about these.
        soft: number s of soft contacts.
    """

    nq: int
    nv: int
    flyers: int
    contacts: int
    rows: int
    joint_friction: int
    bilateral: int
    turning: int
    moments: int
    soft: int


class State(NamedTuple):
    """A state as kernels see it, of k contacts and l one-sided rows.

    Attributes:
        q: (nq,) configuration.
        v: (nv,) velocity.
        M: (nv, nv) inertia.
        frames: (r, 4, 3) placements of the free-flyers.
        axes: (k, 3, 3) of the contacts, and so on, see :class:`~constrained_sim.contact.features.ContactGeometry`.
        points: (k, 3) [m].
        distances: (k,) [m].
        gaps: (k + l,) [m, rad].
        phi: (m,) violations of the bilateral rows [m, rad].
        s_bilateral: (m,) their velocities [m/s, rad/s].
        J: (3 k + l, nv) rows.
        s: (3 k + l,) their velocities [m/s, rad/s].
        J_bilateral: (m, nv).
        turning: (e, nv) rows in which contacts resist rolling and spinning.
        deflection: (s, 2) of the springs of soft contacts along their surfaces [m].
    """

    q: Array
    v: Array
    M: Array
    frames: Array
    axes: Array
    points: Array
    distances: Array
    gaps: Array
    phi: Array
    s_bilateral: Array
    J: Array
    s: Array
    J_bilateral: Array
    turning: Array
    deflection: Array


class StepOutputs(NamedTuple):
    """What a step gives.

    Attributes:
        energy: (9,) terms of the audit.
        acceleration: (nv,) mean, see :func:`~constrained_sim.dynamics.free_flyer.mean_acceleration`.
        forces: (3 k + l + m,) mean forces of all rows, in the order of declaration [N, N m].
        axes: (k, 3, 3) mean axes of the contacts.
        efforts: (nv,) mean efforts of dry friction [N m, N].
        impulse: (3 k + l,) of contacts and one-sided rows [N s, N m s].
        joint_friction: (d,) impulses of dry friction [N m s, N s].
        lam: (m,) impulses of the bilateral rows [N s, N m s].
        moments: (e,) impulses of the rows in which contacts resist turning [N m s].
        x: (nv,) velocity of the prediction.
        row_impulses: (3 k + l + d + e,) impulses of all that took part in it, which may be fewer.
    """

    energy: Array
    acceleration: Array
    forces: Array
    axes: Array
    efforts: Array
    impulse: Array
    joint_friction: Array
    lam: Array
    moments: Array
    x: Array
    row_impulses: Array


@register_jitable
def first_gap(sizes):  # type: ignore[no-untyped-def]
    """Return where in a record the gaps begin; then come violations and velocities of the bilateral rows."""
    nq, nv, flyers, k, _, _, _, _, _, _ = sizes
    return nq + nv * (nv + 1) + 12 * flyers + 13 * k


@register_jitable
def state_size(sizes):  # type: ignore[no-untyped-def]
    """Return how many numbers :func:`unpack_state` unpacks."""
    _, nv, _, k, rows, _, m, turning, _, soft = sizes
    return first_gap(sizes) + (rows - 2 * k) + 2 * m + rows * (nv + 1) + (m + turning) * nv + 2 * soft


@register_jitable
def packed_size(sizes):  # type: ignore[no-untyped-def]
    """Return the length of a record."""
    _, nv, _, k, rows, joint_friction, m, turning, _, _ = sizes
    return state_size(sizes) + 9 + 3 * nv + 3 * rows + 9 * k + 2 * joint_friction + 2 * m + 2 * turning


@register_jitable
def unpack_state(record, sizes):  # type: ignore[no-untyped-def]
    """Return the :class:`State` with which a `record` begins: the one at the end of a step."""
    nq, nv, flyers, k, rows, _, m, e, _, soft = sizes
    M = nq + nv
    frames = M + nv * nv
    axes = frames + 12 * flyers
    points, distances, gaps = axes + 9 * k, axes + 12 * k, axes + 13 * k
    phi = gaps + rows - 2 * k
    s_bilateral, J = phi + m, phi + 2 * m
    s = J + rows * nv
    J_bilateral = s + rows
    turning = J_bilateral + m * nv
    deflection = turning + e * nv
    return State(
        record[:nq],
        record[nq:M],
        record[M:frames].reshape((nv, nv)),
        record[frames:axes].reshape((flyers, 4, 3)),
        record[axes:points].reshape((k, 3, 3)),
        record[points:distances].reshape((k, 3)),
        record[distances:gaps],
        record[gaps:phi],
        record[phi:s_bilateral],
        record[s_bilateral:J],
        record[J:s].reshape((rows, nv)),
        record[s:J_bilateral],
        record[J_bilateral:turning].reshape((m, nv)),
        record[turning:deflection].reshape((e, nv)),
        record[deflection : deflection + 2 * soft].reshape((soft, 2)),
    )


@register_jitable
def unpack_outputs(record, sizes):  # type: ignore[no-untyped-def]
    """Return the other parts of a `record`: the :class:`StepOutputs`."""
    _, nv, _, k, rows, joint_friction, m, e, _, _ = sizes
    energy = state_size(sizes)
    a, forces = energy + 9, energy + 9 + nv
    axes = forces + rows + m
    efforts = axes + 9 * k
    impulse, friction = efforts + nv, efforts + nv + rows
    lam, moments = friction + joint_friction, friction + joint_friction + m
    x, row_impulses = moments + e, moments + e + nv
    return StepOutputs(
        record[energy:a],
        record[a:forces],
        record[forces:axes],
        record[axes:efforts].reshape((k, 3, 3)),
        record[efforts:impulse],
        record[impulse:friction],
        record[friction:lam],
        record[lam:moments],
        record[moments:x],
        record[x:row_impulses],
        record[row_impulses:],
    )


class PackedState(Evaluation):
    """A state that a compiled step left. Who keeps q and v, which are copies, does not keep the record.

    Attributes:
        record: begins with the state.
        sizes: of its parts.
    """

    def __init__(self, before: Evaluation, t: float, record: Array, sizes: Sizes) -> None:
        """Take over a `record` at time `t` [s], under the constraints of the observation `before`."""
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
        """(s, 2) of the springs of soft contacts."""
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


class PackedOutcome(StepOutcome):
    """What a compiled step, or part of one, gave.

    Attributes:
        reached: how far it came, see :func:`~constrained_sim.steppers.substep_runner.step`; what is done has a whole
            record.
        solved: how the contact problem of the step was solved.
        outputs: what the step gave.
    """

    impacts = ()

    def __init__(self, v: Array, h: float, end: PackedState, reached: int, solved: SolvedProblem) -> None:
        """Take over what a step of `h` [s] from the velocity `v` (nv,) left at its `end`."""
        self.end: PackedState
        self.end, self.reached, self.solved, self.h = end, reached, solved, h
        self.outputs: StepOutputs = unpack_outputs(end.record, end.sizes)
        self.energy = self.outputs.energy
        self.a = (self.end.v - v) / h

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
    def residuals(self) -> tuple[float, float, float]:
        """Relative residuals: of the equation of motion, of the bilateral rows, of the contact problem."""
        solved = self.solved
        return solved.dynamics_residual, solved.constraint_residual, solved.residual

    @cached_property
    def motion(self) -> ConstrainedSolution:  # type: ignore[override]
        """Solution of the step's problem."""
        solved, outputs = self.solved, self.outputs
        row_impulses, solution = outputs.row_impulses[: solved.rows], None
        if len(outputs.row_impulses):
            first = len(self.status)
            status = solved.status[first : first + solved.members]
            solution = solved.method.quick_solution(row_impulses, status, solved.how, solved.residual, solved.magnitude)
        residuals = solved.dynamics_residual, solved.constraint_residual
        return ConstrainedSolution(outputs.x, outputs.lam, row_impulses, solution, *residuals)

    @cached_property
    def decisive(self) -> ConstrainedSolution:
        """Solution of what the velocity at the end comes from; what a kernel has done is solved."""
        return self.motion

    def part(self, begin: Evaluation) -> SubstepResult:
        """Return this as a part of a step from the `begin`."""
        outputs = self.outputs
        return SubstepResult(
            h=self.h,
            end=self.end,
            lam=outputs.lam,
            impulse=outputs.impulse,
            joint_friction=outputs.joint_friction,
            moments=outputs.moments,
            status=self.status,
            energy=self.energy,
            motion=self.motion,
            decisive=self.decisive,
            begin=begin,
        )

"""What a compiled step leaves, in one array, and what it looks like from outside: parts are cut out when asked for.

To make an array of each takes longer than the step of a leg.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from constrained_sim.constrained_dynamics import NOTHING_KNOWN, ConstrainedSolution
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.steppers.state_checks import largest_violation
from constrained_sim.steppers.stepper import Evaluation, StepOutcome
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
    """

    nq: int
    nv: int
    flyers: int
    contacts: int
    rows: int
    joint_friction: int


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
        J: (3 k + l, nv) rows.
        s: (3 k + l,) their velocities [m/s, rad/s].
    """

    q: Array
    v: Array
    M: Array
    frames: Array
    axes: Array
    points: Array
    distances: Array
    gaps: Array
    J: Array
    s: Array


@register_jitable
def count_state(sizes):  # type: ignore[no-untyped-def]
    """Return how many numbers :func:`cut_state` cuts."""
    nq, nv, flyers, k, rows, _ = sizes
    return nq + nv * (nv + rows + 1) + 12 * flyers + 11 * k + 2 * rows


@register_jitable
def count_all(sizes):  # type: ignore[no-untyped-def]
    """Return the length of a record."""
    _, nv, _, k, rows, joint_friction = sizes
    return count_state(sizes) + 9 + 3 * nv + 3 * rows + 9 * k + 2 * joint_friction


@register_jitable
def cut_state(record, sizes):  # type: ignore[no-untyped-def]
    """Return the :class:`State` with which a `record` begins: the one at the end of a step."""
    nq, nv, flyers, k, rows, _ = sizes
    M = nq + nv
    frames = M + nv * nv
    axes = frames + 12 * flyers
    points, distances, gaps = axes + 9 * k, axes + 12 * k, axes + 13 * k
    J = gaps + rows - 2 * k
    s = J + rows * nv
    return State(
        record[:nq],
        record[nq:M],
        record[M:frames].reshape((nv, nv)),
        record[frames:axes].reshape((flyers, 4, 3)),
        record[axes:points].reshape((k, 3, 3)),
        record[points:distances].reshape((k, 3)),
        record[distances:gaps],
        record[gaps:J],
        record[J:s].reshape((rows, nv)),
        record[s : s + rows],
    )


@register_jitable
def cut_outcome(record, sizes):  # type: ignore[no-untyped-def]
    """Return the other parts of a `record`: what happened during the step.

    Terms of the audit (9,); mean acceleration (nv,); mean forces of contacts and one-sided rows (3 k + l,) in the order
    of declaration [N, N m]; mean axes (k, 3, 3); mean efforts of dry friction (nv,) [N m, N]; impulses of contacts and
    one-sided rows (3 k + l,) and of dry friction (d,) [N s, N m s]; of the prediction the velocity (nv,), and the
    impulses of all that took part (3 k + l + d,), which may be fewer.
    """
    _, nv, _, k, rows, joint_friction = sizes
    energy = count_state(sizes)
    a, forces = energy + 9, energy + 9 + nv
    axes = forces + rows
    efforts = axes + 9 * k
    impulse, friction, x = efforts + nv, efforts + nv + rows, efforts + nv + rows + joint_friction
    row_impulses = x + nv
    return (
        record[energy:a],
        record[a:forces],
        record[forces:axes],
        record[axes:efforts].reshape((k, 3, 3)),
        record[efforts:impulse],
        record[impulse:friction],
        record[friction:x],
        record[x:row_impulses],
        record[row_impulses:],
    )


class RecordedState(Evaluation):
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
        self.phi, self.J_bilateral, self.s_bilateral = before.phi, before.J_bilateral, before.s_bilateral
        self.deflection, self.turning = before.deflection, before.turning

    @cached_property
    def _parts(self) -> State:
        parts: State = cut_state(self.record, self.sizes)
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
        axes, points, distances, gaps, J, s = self._parts[4:]
        return ContactGeometry(axes, points, distances, gaps, J, s, self.bound.contacts.normals)

    @property
    def largest_violation(self) -> tuple[float, float]:
        """The largest depth of a contact [m, rad], and bilateral row velocity: 0."""
        _, nv, _, k, rows, _ = self.sizes
        end = count_state(self.sizes) - rows * (nv + 1)
        return largest_violation(self.phi, self.record[end - rows + 2 * k : end], self.s_bilateral)


def record_of(state: Evaluation, sizes: Sizes) -> Array:
    """Return an array that begins with the parts of a `state`; its record, where it has one."""
    if isinstance(state, RecordedState):
        return state.record
    parts = state.q, state.v, state.M, state.frames, *state.contact[:-1]
    return np.concatenate([part.ravel() for part in parts])


class RecordedOutcome(StepOutcome):
    """What a compiled step, or part of one, gave.

    Attributes:
        reached: how far it came, see :func:`~constrained_sim.steppers.compiled.step`; what is done has a whole record.
        solved: the method of contact problems; the status of all contacts and one-sided rows, then of what took part in
            the problem; how many rows and how many of these did; which method solved it, and steps; relative residual;
            impulse scale; relative residual of the equation of motion.
    """

    impacts = ()
    moments = NOTHING_KNOWN

    def __init__(self, end: RecordedState, reached: int, solved: tuple[Any, ...]) -> None:
        """Take over what a step left at its `end`."""
        self.end: RecordedState
        self.end, self.reached, self.solved = end, reached, solved
        self.parts: tuple[Array, ...] = cut_outcome(end.record, end.sizes)
        self.energy = self.parts[0]
        self.a = self.parts[1].copy()

    @cached_property
    def lam(self) -> Array:  # type: ignore[override]
        """(rows,) mean forces [N, N m]."""
        return read_only(self.parts[2].copy())

    @cached_property
    def axes(self) -> Array:  # type: ignore[override]
        """(k, 3, 3) along which those of the contacts act."""
        return self.parts[3]

    @cached_property
    def dry_friction(self) -> Array:  # type: ignore[override]
        """(nv,) mean efforts [N m, N]."""
        return read_only(self.parts[4].copy())

    @cached_property
    def status(self) -> npt.NDArray[np.int64]:  # type: ignore[override]
        """(k + l,) of the contacts and one-sided rows."""
        sizes = self.end.sizes
        return read_only(self.solved[1][: sizes.rows - 2 * sizes.contacts])

    @property
    def residuals(self) -> tuple[float, float, float]:
        """Relative residuals: of the equation of motion, of the bilateral rows, of the contact problem."""
        *_, contact, _, dynamics = self.solved
        return dynamics, 0.0, contact

    @cached_property
    def motion(self) -> ConstrainedSolution:  # type: ignore[override]
        """Solution of the step's problem."""
        method, status, rows, members, how, residual, magnitude, dynamics = self.solved
        x, row_impulses, solution = self.parts[7], self.parts[8][:rows], None
        if len(self.parts[8]):
            first = len(self.status)
            solution = method.quick_solution(row_impulses, status[first : first + members], how, residual, magnitude)
        return ConstrainedSolution(x, NOTHING_KNOWN, row_impulses, solution, dynamics, 0.0)

"""The compiled step as Python calls it: what no step changes is handed over once, what one finds comes in one array.

To hand over sixty arrays takes longer than the step of a leg.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.experimental import structref

from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact import ContactMethod
from constrained_sim.contact.geometry import ContactGeometry
from constrained_sim.motion import NOTHING_KNOWN, Motion
from constrained_sim.robot import Robot
from constrained_sim.steppers.kernels import are_finite, closing_contacts
from constrained_sim.steppers.rigid import DONE, UNSOLVED, advance
from constrained_sim.steppers.stepper import NO_CONTACT, Observation
from constrained_sim.validation import Array, read_only

CLOSING = -1
"""How far a step came that was not begun, since a contact closes within it."""


@structref.register
class ProblemType(types.StructRef):
    """Numba's type of a :class:`Problem`."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Return the fields as they are typed whatever their present values."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Problem(structref.StructRefProxy):
    """What is the same in all steps of a robot under the same constraints; to kernels one argument instead of forty.

    Fields: ``robot``, ``contacts`` and ``limits`` of :func:`~constrained_sim.steppers.rigid.advance`; ``scheme``, the
    share, reach, slow velocity and position tolerance of its scheme, and the impact speed of
    :func:`~constrained_sim.steppers.kernels.closing_contacts`; ``order`` of the rows of contacts and limits in that of
    declaration; and work space, ``middle`` and ``impulses``.
    """


structref.define_proxy(Problem, ProblemType, ["robot", "contacts", "limits", "scheme", "order", "middle", "impulses"])


@numba.njit(cache=True)
def make_problem(robot, contacts, limits, scheme, order, middle, impulses):  # type: ignore[no-untyped-def]
    """Return the :class:`Problem` with these fields."""
    return Problem(robot, contacts, limits, scheme, order, middle, impulses)


class Found(NamedTuple):
    """What a compiled step found, see :func:`step`; all but q and v of the `record` can be written to.

    Attributes:
        is_done: whether the record is complete; else it is that of a prediction.
        parts: of the record.
        status: (k + l,) of contacts and one-sided rows.
        motion: solution of the smooth problem.
    """

    is_done: bool
    parts: tuple[Any, ...]
    status: npt.NDArray[np.int64]
    motion: Motion


def observed(state: tuple[Array, ...], begin: Observation, t: float) -> Observation:
    """Return the observation of a `state` at time `t` [s], as a record begins with it, after that at the `begin`."""
    q, v, M, frames, axes, points, distances, gaps, J, s = state
    contact = ContactGeometry(axes, points, distances, gaps, J, s, begin.contact.normals)
    rest = begin.phi, begin.J_bilateral, begin.s_bilateral, begin.stretch, begin.turning
    return Observation(begin.bound, t, read_only(q), read_only(v), M, frames, contact, *rest)


class CompiledSteps:
    """Steps of one robot under rigid contacts and joint limits only: a set of constraints that has ``bounds``.

    Attributes:
        bound: the constraints.
        problem: what is the same in all steps.
    """

    def __init__(self, robot: Robot, model: tuple[Any, ...] | None, bound: ConstraintSet, scheme: tuple[float, ...]) -> None:
        """Prepare steps of `robot`, of which kernels know the `model`; the `scheme` is that of :class:`Problem`."""
        self.bound, table, nv = bound, bound.contacts, robot.nv
        self.middle = np.empty(robot.nq), np.empty(nv), np.empty(nv)
        self.impulses = np.empty((6, nv))
        contacts = (tuple(table.cores), table.friction, table.normals)
        self.problem = make_problem(model, contacts, bound.bounds, scheme, bound.places, self.middle, self.impulses)
        dry = len(robot.rubbing)
        self._sizes = robot.nq, nv, len(robot.free_joints[0]), len(table.members), table.limits.dim, dry
        self._has_laws = bool(len(table) or dry)

    def step(
        self,
        begin: Observation,
        h: float,
        memory: tuple[Array, int],
        tau: Array,
        method: ContactMethod,
        is_whole: bool,
        excluded: npt.NDArray[np.int64] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
    ) -> Found | None:
        """Do a step of `h` [s], see :func:`step`; None where it has to be done another way."""
        acceleration, passes = memory
        contact = begin.contact
        reached, record, status, pushes, pushed, steps, residual, magnitude, dynamics = step(
            self.problem,
            (h, passes, method.tolerance, method.usual_steps, is_whole),
            (begin.q, begin.v, begin.M, begin.frames, contact.axes, contact.gaps, contact.J, contact.s),
            acceleration,
            tau,
            excluded,
            near,
        )
        if reached in (CLOSING, UNSOLVED):
            return None
        parts = carve(record, self._sizes)
        solution = method.usual_solution(pushes, pushed, steps, residual, magnitude) if self._has_laws else None
        return Found(reached == DONE, parts, status, Motion(parts[4], NOTHING_KNOWN, pushes, solution, dynamics, 0.0))


def carve(record, sizes):  # type: ignore[no-untyped-def]
    """Return the parts of a `record` as views, in the order in which :func:`step` explains them.

    Args:
        record: one array for all of them.
        sizes: nq, nv, and the numbers of free-flyers, contacts, one-sided rows and rows of dry friction.
    """
    nq, nv, flyers, k, one_sided, dry = sizes
    rows = 3 * k + one_sided
    v, M = nq, nq + nv
    frames = M + nv * nv
    axes = frames + 12 * flyers
    points, distances, gaps = axes + 9 * k, axes + 12 * k, axes + 13 * k
    J = gaps + k + one_sided
    s = J + rows * nv
    impulse, friction = s + rows, s + 2 * rows
    energy = friction + dry
    x, a, forces = energy + 9, energy + 9 + nv, energy + 9 + 2 * nv
    mean_axes = forces + rows
    efforts = mean_axes + 9 * k
    return (
        (
            record[:v],
            record[v:M],
            record[M:frames].reshape((nv, nv)),
            record[frames:axes].reshape((flyers, 4, 3)),
            record[axes:points].reshape((k, 3, 3)),
            record[points:distances].reshape((k, 3)),
            record[distances:gaps],
            record[gaps:J],
            record[J:s].reshape((rows, nv)),
            record[s:impulse],
        ),
        record[impulse:friction],
        record[friction:energy],
        record[energy:x],
        record[x:a],
        record[a:forces],
        record[forces:mean_axes],
        record[mean_axes:efforts].reshape((k, 3, 3)),
        record[efforts : efforts + nv],
    )


_carve = numba.njit(cache=True)(carve)


@numba.njit(cache=True)
def blank_record(problem, begin):  # type: ignore[no-untyped-def]
    """Return a record and its parts, for a step from what is at its `begin`, see :func:`step`."""
    q, v, _, frames, axes, _, _, s = begin
    nq, nv, flyers, k = q.shape[0], v.shape[0], frames.shape[0], axes.shape[0]
    rows, dry = s.shape[0], problem.robot[4].shape[0]
    record = np.zeros(nq + nv * (nv + rows + 4) + 12 * flyers + 20 * k + 4 * rows + dry + 9)
    return record, _carve(record, (nq, nv, flyers, k, rows - 3 * k, dry))


@numba.njit(cache=True)
def step(problem, settings, begin, acceleration, tau, excluded, near):  # type: ignore[no-untyped-def]
    """Do a step, or a part of one, as :func:`~constrained_sim.steppers.rigid.advance` does.

    Args:
        problem: what is the same in all steps.
        settings: length h of the step [s]; passes, tolerance and steps of Newton's method, see ``advance``; whether it
            is a whole step, which is left to others where a contact closes within it.
        begin: q and v, which cannot be written to, M, placements of the free-flyers, axes of the contacts, gaps, rows
            and their velocities at the beginning.
        acceleration: (nv,) of the last step.
        tau: (nu,) efforts [N m, N].
        excluded: this and the following, see ``advance``.
        near: likewise.

    Returns:
        How far this came; the record; the status of contacts and one-sided rows; then what
        :func:`~constrained_sim.steppers.rigid.predict` returns, but whether it is solved. In the record are what
        ``advance`` leaves in `end`; impulses (3 k + l,) of contacts and one-sided rows and (d,) of dry friction [N s,
        N m s]; (9,) terms of the audit; (nv,) predicted velocity; (nv,) mean acceleration; (3 k + l,) mean forces [N,
        N m] in the order of declaration; (k, 3, 3) mean axes; (nv,) mean efforts of dry friction [N m, N].
    """
    h, passes, tolerance, newton_steps, is_whole = settings
    share, reach, slow, position_tolerance, impact_speed = problem.scheme
    robot, contacts = problem.robot, problem.contacts
    q, v, M, frames, axes, gaps, J, s = begin
    rubbing, nothing = robot[4], np.empty(0, dtype=np.int64)
    if is_whole and closing_contacts(
        gaps, contacts[2], s, J, acceleration, h, impact_speed, np.empty(gaps.shape[0], dtype=np.int64)
    ):
        return CLOSING, np.empty(0), nothing, np.empty(0), nothing, 0, 0.0, 0.0, 0.0
    record, (end, impulse, friction, energy, x, a, forces, mean_axes, efforts) = blank_record(problem, begin)
    status = np.zeros(gaps.shape[0], dtype=np.int64)
    scheme = h, share, passes, reach, slow, position_tolerance, tolerance, newton_steps
    reached, (pushes, pushed, steps, residual, magnitude, _, dynamics) = advance(
        robot, contacts, problem.limits, scheme, (q.copy(), v.copy(), M, frames, gaps, s), acceleration, tau, excluded,
        near, problem.middle, problem.impulses, (impulse, friction, status, energy), end,
    )  # fmt: skip
    if reached == DONE and not are_finite(end[0], end[1]):
        reached = UNSOLVED
    if reached != UNSOLVED:
        x[:] = problem.middle[2]
        a[:] = (end[1] - v) / h
        for i in range(forces.shape[0]):
            forces[i] = impulse[problem.order[i]] / h
        mean_axes[:] = 0.5 * (axes + end[4])
        for i in range(rubbing.shape[0]):
            efforts[rubbing[i]] = friction[i] / h
    return reached, record, status, pushes, pushed, steps, residual, magnitude, dynamics

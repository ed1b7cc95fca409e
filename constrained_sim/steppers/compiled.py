"""The compiled step as Python calls it: what no step changes is handed over once, what one finds comes in one array.

To hand over sixty arrays takes longer than the step of a leg.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.experimental import structref

from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact import ContactMethod
from constrained_sim.motion import NOTHING_KNOWN
from constrained_sim.robot import Robot
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.kernels import are_finite, closing_contacts
from constrained_sim.steppers.record import (
    RecordedOutcome,
    RecordedState,
    Sizes,
    count_all,
    count_state,
    cut_outcome,
    cut_state,
    record_of,
)
from constrained_sim.steppers.rigid import UNSOLVED, WorkSpace, advance
from constrained_sim.steppers.stepper import NO_CONTACT, Observation
from constrained_sim.tree import pose_of
from constrained_sim.validation import Array

CLOSING = -1
"""How far a step came that was not begun, since a contact closes within it."""

WHOLE, PART, TRIAL = range(3)
"""What is to be done: a step in which no contact closes; a part of one; a part that is only predicted."""


@structref.register
class ProblemType(types.StructRef):
    """Numba's type of a :class:`Problem`."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Return the fields as they are typed whatever their present values."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Problem(structref.StructRefProxy):
    """What is the same in all steps of a robot under the same constraints; to kernels one argument instead of forty.

    Fields:
        robot: tree; support, see :func:`~constrained_sim.kinematics.row_jacobian`; (nv,) damping of the joints; (nu,)
            velocity index of every effort; (d,) degrees of freedom with dry friction and (d,) their breakaway efforts
            [N m, N]; the free-flyers and their rows, see ``Robot.free_joints``; the other degrees of freedom and their
            parents, see :func:`~constrained_sim.tree.contract`.
        contacts: cores, see :class:`~constrained_sim.contact.geometry.Cores`; (k,) coefficients of friction; (k + l,)
            which rows open and close; whether any two neighbours are of the same bodies.
        limits: the bounds of joints, see :class:`~constrained_sim.constraints.joint_limit.Bounds`.
        scheme: share of the new velocity in the mean velocity; predicted gap [m] up to which a contact takes part;
            velocity up to which a state is at rest [m/s, rad/s]; drift up to which positions stay as they are [m, rad];
            impact speed of :func:`~constrained_sim.steppers.kernels.closing_contacts`.
        sizes: of the parts of records.
        order: of the rows of contacts and limits in that of declaration.
        work: a :class:`~constrained_sim.steppers.rigid.WorkSpace`.
    """


FIELDS = ["robot", "contacts", "limits", "scheme", "sizes", "order", "work"]
structref.define_proxy(Problem, ProblemType, FIELDS)


@numba.njit(cache=True)
def make_problem(robot, contacts, limits, scheme, sizes, order, work):  # type: ignore[no-untyped-def]
    """Return the :class:`Problem` with these fields."""
    return Problem(robot, contacts, limits, scheme, sizes, order, work)


class CompiledSteps:
    """Steps of one robot under rigid contacts and joint limits only: a set of constraints that has ``bounds``.

    Attributes:
        bound: the constraints.
        problem: what is the same in all steps.
        sizes: of the records' parts.
        work: what the last step has left in its work space.
    """

    def __init__(self, robot: Robot, model: tuple[Any, ...], bound: ConstraintSet, scheme: tuple[float, ...]) -> None:
        """Prepare steps of `robot`, of which kernels know the `model`; the `scheme` is that of :class:`Problem`."""
        self.bound, table, nv = bound, bound.contacts, robot.nv
        counts = len(robot.free_joints[0]), len(table.members), table.dim, len(robot.rubbing)
        self.sizes = Sizes(robot.nq, nv, *counts)
        middle = cut_state(np.zeros(count_state(self.sizes)), self.sizes)
        velocities = np.zeros(nv), np.zeros(nv), np.zeros(table.dim + len(robot.rubbing))
        self.work = WorkSpace(middle, pose_of(model[0]), pose_of(model[0]), np.zeros((6, nv)), *velocities)
        contacts, sizes = (tuple(table.cores), table.friction, table.normals, table.shares_bodies), tuple(self.sizes)
        self.problem = make_problem(model, contacts, bound.bounds, scheme, sizes, bound.places, self.work)
        self._length, self._members = count_all(self.sizes), 2 * len(table) + len(robot.rubbing)

    def step(
        self,
        begin: Observation,
        h: float,
        memory: tuple[Array, int],
        tau: Array,
        method: ContactMethod,
        kind: int,
        excluded: npt.NDArray[np.int64] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
    ) -> RecordedOutcome:
        """Do a step of `h` [s], see :func:`step`; where this does not come so far there is nothing in its record."""
        sizes, (acceleration, passes) = self.sizes, memory
        record, status = np.zeros(self._length), np.zeros(self._members, dtype=np.int64)
        reached, *solved = step(
            self.problem,
            (h, passes, method.tolerance, method.usual_steps, kind),
            record_of(begin, sizes),
            acceleration,
            tau,
            excluded,
            near,
            record,
            status,
        )
        return RecordedOutcome(RecordedState(begin, begin.t + h, record, sizes), reached, (method, status, *solved))


@numba.njit(cache=True)
def step(  # type: ignore[no-untyped-def]
    problem, settings, begin, acceleration, tau, excluded, near, record, all_status
):
    """Do a step, or a part of one, as :func:`~constrained_sim.steppers.rigid.advance` does.

    Args:
        problem: what is the same in all steps.
        settings: length h of the step [s]; passes, tolerance and steps of Newton's method, see ``advance``; and whether
            this is :data:`WHOLE`, :data:`PART` or :data:`TRIAL`.
        begin: record that begins with the state at the beginning.
        acceleration: (nv,) of the last step.
        tau: (nu,) efforts [N m, N].
        excluded: this and the following, see ``advance``.
        near: likewise.
        record: zeros, filled with the state at the end and with what happened.
        all_status: zeros, filled with the status of all contacts and one-sided rows (k + l,), then with those of what
            took part in the contact problem.

    Returns:
        How far this came: :data:`CLOSING`, or what ``advance`` says, and ``UNSOLVED`` where the state is not finite;
        how many rows and forces, and how many contacts, one-sided rows and degrees of freedom with dry friction took
        part in the contact problem; then what :func:`~constrained_sim.steppers.rigid.predict` returns after these,
        but whether it is solved.
    """
    h, passes, tolerance, newton_steps, kind = settings
    _, _, _, _, impact_speed = problem.scheme
    _, _, normals, _ = borrowed(problem.contacts)
    sizes = problem.sizes
    begin, acceleration, tau, record, all_status = borrowed((begin, acceleration, tau, record, all_status))
    q, v, M, frames, axes, _, _, gaps, J, s = cut_state(begin, sizes)
    count = gaps.shape[0]
    if kind == WHOLE and closing_contacts(
        gaps, normals, s, J, acceleration, h, impact_speed, np.empty(count, dtype=np.int64)
    ):
        return CLOSING, 0, 0, 0, 0.0, 0.0, 0.0
    end = cut_state(record, sizes)
    energy, a, forces, mean_axes, efforts, impulse, friction, x, all_pushes = cut_outcome(record, sizes)
    reached, (pushes, pushed, steps, residual, magnitude, _, dynamics) = advance(
        problem,
        (h, kind != TRIAL, passes, tolerance, newton_steps),
        (q, v, M, frames, gaps, s),
        acceleration,
        tau,
        excluded,
        near,
        (impulse, friction, all_status[:count], energy),
        end,
    )
    if reached == UNSOLVED or not are_finite(end[0], end[1]):
        return UNSOLVED, 0, 0, 0, 0.0, 0.0, 0.0
    rows, members = pushes.shape[0], pushed.shape[0]
    all_pushes[:rows], all_status[count : count + members] = pushes, pushed
    x[:] = borrowed(problem.work).x
    a[:] = (end[1] - v) / h
    for i in range(forces.shape[0]):
        forces[i] = impulse[problem.order[i]] / h
    mean_axes[:] = 0.5 * (axes + end[4])
    _, _, _, _, rubbing, _, _, _, _ = borrowed(problem.robot)
    for i in range(friction.shape[0]):
        efforts[rubbing[i]] = friction[i] / h
    return reached, rows, members, steps, residual, magnitude, dynamics

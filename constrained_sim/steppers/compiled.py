"""The compiled step as Python calls it: what no step changes is handed over once, what one finds comes in one array.

To hand over sixty arrays takes longer than the step of a leg.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.constrained_dynamics import NOTHING_KNOWN
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers.solve import BY_STICKING
from constrained_sim.dynamics.free_flyer import mean_acceleration
from constrained_sim.dynamics.tree import pose_of
from constrained_sim.robot import Robot
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import closing_contacts
from constrained_sim.steppers.parts import StepInputs
from constrained_sim.steppers.problem import Contacts, Model, Scheme, WorkSpace, make_problem
from constrained_sim.steppers.record import (
    RecordedOutcome,
    RecordedState,
    Sizes,
    SolvedProblem,
    count_all,
    count_state,
    cut_outcome,
    cut_state,
    record_of,
)
from constrained_sim.steppers.rigid import UNSOLVED, advance
from constrained_sim.steppers.state_checks import are_finite
from constrained_sim.steppers.stepper import NO_CONTACT, Evaluation
from constrained_sim.validation import Array

CLOSING = -1
"""How far a step came that was not begun, since a contact closes within it."""

WHOLE, PART, TRIAL = range(3)
"""What is to be done: a step in which no contact closes; a part of one; a part that is only predicted."""


class CompiledSteps:
    """Steps of one robot under constraints that kernels know: a set that ``is_of_arrays``.

    Attributes:
        bound: the constraints.
        problem: what is the same in all steps.
        sizes: of the records' parts.
        work: what the last step has left in its work space.
    """

    def __init__(self, robot: Robot, model: Model, bound: ConstraintSet, scheme: Scheme) -> None:
        """Prepare steps of `robot`, of which kernels know the `model`."""
        self.bound, contact_set, nv = bound, bound.contacts, robot.nv
        self.sizes = Sizes(
            nq=robot.nq,
            nv=nv,
            flyers=len(robot.free_joints[0]),
            contacts=len(contact_set.members),
            rows=contact_set.dim,
            joint_friction=len(robot.friction_dofs),
            bilateral=bound.bilateral.dim,
        )
        middle = cut_state(np.zeros(count_state(self.sizes)), self.sizes)
        velocities = np.zeros(nv), np.zeros(nv), np.zeros(contact_set.dim + len(robot.friction_dofs))
        self.work = WorkSpace(
            middle, pose_of(model.tree), pose_of(model.tree), np.zeros(nv), np.zeros((6, nv)), *velocities
        )
        contacts = Contacts(
            tuple(contact_set.features), contact_set.friction, contact_set.normals, contact_set.shares_bodies
        )
        rows, sizes = (bound.bounds, bound.bilateral.arrays), tuple(self.sizes)
        self.problem = make_problem(model, contacts, *rows, scheme, sizes, bound.places, self.work)
        self._length, self._members = count_all(self.sizes), 2 * len(contact_set) + len(robot.friction_dofs)

    def step(
        self,
        begin: Evaluation,
        h: float,
        memory: tuple[Array, int],
        inputs: StepInputs,
        kind: int,
        excluded: npt.NDArray[np.int64] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
    ) -> RecordedOutcome:
        """Do a step of `h` [s], see :func:`step`; where this does not come so far there is nothing in its record."""
        sizes, (acceleration, passes), (solver, method) = self.sizes, memory, (inputs.solver, inputs.method)
        record, status = np.zeros(self._length), np.zeros(self._members, dtype=np.int64)
        reached, calls, rows, members, how, residual, magnitude, dynamics, inconsistent = step(
            self.problem,
            (h, passes, solver.held_rows, method.tolerance, method.quick_steps, kind),
            record_of(begin, sizes),
            acceleration,
            (inputs.efforts, inputs.wrenches, self.bound.bilateral.targets(begin.t, h)),
            excluded,
            near,
            record,
            status,
        )
        solver.calls += calls
        solved = SolvedProblem(method, status, rows, members, how, residual, magnitude, dynamics, inconsistent)
        return RecordedOutcome(begin.v, h, RecordedState(begin, begin.t + h, record, sizes), reached, solved)


@kernel
def step(  # type: ignore[no-untyped-def]
    problem, settings, begin, acceleration, loads, excluded, near, record, all_status
):
    """Do a step, or a part of one, as :func:`~constrained_sim.steppers.rigid.advance` does.

    Args:
        problem: what is the same in all steps.
        settings: length h of the step [s]; passes, factorisation, tolerance and steps of Newton's method, see
            ``advance``; and whether this is :data:`WHOLE`, :data:`PART` or :data:`TRIAL`.
        begin: record that begins with the state at the beginning.
        acceleration: (nv,) of the last step.
        loads: see ``advance``.
        excluded: contacts and limits that carry no force.
        near: (n,) impulses near the solution; (0,): nothing is known of them.
        record: zeros, filled with the state at the end and with what happened.
        all_status: zeros, filled with the status of all contacts and one-sided rows (k + l,), then with those of what
            took part in the contact problem.

    Returns:
        How far this came: :data:`CLOSING`, or what ``advance`` says, and ``UNSOLVED`` where the state is not finite;
        how often rows were held; how many rows and forces, and how many contacts, one-sided rows and degrees of freedom
        with dry friction took part in the contact problem; which method solved it, and steps; its relative residual;
        impulse scale; relative residuals of the equation of motion and of the bilateral rows.
    """
    h, passes, factorization, tolerance, newton_steps, kind = settings
    normals, sizes = borrowed(problem.contacts).normals, problem.sizes
    begin, acceleration, loads, record, all_status = borrowed((begin, acceleration, loads, record, all_status))
    start, end = cut_state(begin, sizes), cut_state(record, sizes)
    count = start.gaps.shape[0]
    if kind == WHOLE and closing_contacts(
        start.gaps,
        normals,
        start.s,
        start.J,
        acceleration,
        h,
        problem.scheme.impact_speed,
        np.empty(count, dtype=np.int64),
    ):
        return CLOSING, 0, 0, 0, (BY_STICKING, 0), 0.0, 0.0, 0.0, 0.0
    happened = cut_outcome(record, sizes)
    impulse, friction, lam = happened.impulse, happened.joint_friction, happened.lam
    reached, predicted, calls = advance(
        problem,
        (h, kind != TRIAL, passes, factorization, tolerance, newton_steps),
        start,
        acceleration,
        loads,
        excluded,
        near,
        (impulse, friction, lam, all_status[:count], happened.energy),
        end,
    )
    if reached == UNSOLVED or not are_finite(end.q, end.v):
        return UNSOLVED, calls, 0, 0, (BY_STICKING, 0), 0.0, 0.0, 0.0, 0.0
    rows, members = predicted.impulse.shape[0], predicted.status.shape[0]
    happened.row_impulses[:rows], all_status[count : count + members] = predicted.impulse, predicted.status
    happened.x[:] = borrowed(problem.work).x
    free_rows = borrowed(problem.robot).free_rows
    happened.acceleration[:] = mean_acceleration(h, start.v, end.v, free_rows, start.frames, end.frames)
    for i in range(happened.forces.shape[0]):
        place = problem.order[i] - impulse.shape[0]
        happened.forces[i] = (lam[place] if place >= 0 else impulse[problem.order[i]]) / h
    happened.axes[:] = 0.5 * (start.axes + end.axes)
    friction_dofs = borrowed(problem.robot).friction_dofs
    for i in range(friction.shape[0]):
        happened.efforts[friction_dofs[i]] = friction[i] / h
    residuals = predicted.residual, predicted.magnitude, predicted.dynamics_residual, predicted.constraint_residual
    return reached, calls, rows, members, predicted.how, *residuals

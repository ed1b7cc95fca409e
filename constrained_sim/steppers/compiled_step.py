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
from constrained_sim.steppers.packed_step import (
    PackedOutcome,
    PackedState,
    Sizes,
    SolvedProblem,
    packed_size,
    packed_state,
    state_size,
    unpack_outputs,
    unpack_state,
)
from constrained_sim.steppers.rigid import UNSOLVED, advance
from constrained_sim.steppers.state_checks import are_finite
from constrained_sim.steppers.step_model import Contacts, RobotModel, StepOptions, WorkSpace, make_step_model
from constrained_sim.steppers.stepper import NO_CONTACT, Evaluation
from constrained_sim.steppers.substep_result import StepInputs
from constrained_sim.validation import Array

CLOSING = -1
"""How far a step came that was not begun, since a contact closes within it."""

WHOLE, PART, TRIAL = range(3)
"""What is to be done: a step in which no contact closes; a part of one; a part that is only predicted."""


class CompiledSteps:
    """Steps of one robot under constraints that kernels know: a set that ``is_of_arrays``.

    Attributes:
        bound: the constraints.
        step_model: what is the same in all steps.
        sizes: of the records' parts.
        work: what the last step has left in its work space.
    """

    def __init__(self, robot: Robot, model: RobotModel, bound: ConstraintSet, options: StepOptions) -> None:
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
        middle = unpack_state(np.zeros(state_size(self.sizes)), self.sizes)
        velocities = np.zeros(nv), np.zeros(nv), np.zeros(contact_set.dim + len(robot.friction_dofs))
        self.work = WorkSpace(
            middle, pose_of(model.tree), pose_of(model.tree), np.zeros(nv), np.zeros((6, nv)), *velocities
        )
        contacts = Contacts(
            tuple(contact_set.features), contact_set.friction, contact_set.normals, contact_set.shares_bodies
        )
        rows, sizes = (bound.bounds, bound.bilateral.arrays), tuple(self.sizes)
        self.step_model = make_step_model(model, contacts, *rows, options, sizes, bound.places, self.work)
        self._length, self._members = packed_size(self.sizes), 2 * len(contact_set) + len(robot.friction_dofs)

    def step(
        self,
        begin: Evaluation,
        h: float,
        memory: tuple[Array, int],
        inputs: StepInputs,
        kind: int,
        excluded: npt.NDArray[np.int64] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
    ) -> PackedOutcome:
        """Do a step of `h` [s], see :func:`step`; where this does not come so far there is nothing in its record."""
        sizes, (acceleration, passes), (solver, method) = self.sizes, memory, (inputs.solver, inputs.method)
        record, status = np.zeros(self._length), np.zeros(self._members, dtype=np.int64)
        reached, calls, rows, members, how, residual, magnitude, dynamics, inconsistent = step(
            self.step_model,
            (h, passes, solver.held_rows, method.tolerance, method.quick_steps, kind),
            packed_state(begin, sizes),
            acceleration,
            (inputs.efforts, inputs.wrenches, self.bound.bilateral.targets(begin.t, h)),
            excluded,
            near,
            record,
            status,
        )
        solver.calls += calls
        solved = SolvedProblem(method, status, rows, members, how, residual, magnitude, dynamics, inconsistent)
        return PackedOutcome(begin.v, h, PackedState(begin, begin.t + h, record, sizes), reached, solved)


@kernel
def step(  # type: ignore[no-untyped-def]
    model, settings, begin, acceleration, loads, excluded, near, record, all_status
):
    """Do a step, or a part of one, as :func:`~constrained_sim.steppers.rigid.advance` does.

    Args:
        model: what is the same in all steps.
        settings: length h of the step [s]; passes, factorisation, tolerance and steps of Newton's method, see
            ``advance``; and whether this is :data:`WHOLE`, :data:`PART` or :data:`TRIAL`.
        begin: record that begins with the state at the beginning.
        acceleration: (nv,) of the last step.
        loads: see ``advance``.
        excluded: contacts and limits that carry no force.
        near: (n,) impulses near the solution; (0,): nothing is known of them.
        record: zeros, filled with the state at the end and the outputs.
        all_status: zeros, filled with the status of all contacts and one-sided rows (k + l,), then with those of what
            took part in the contact problem.

    Returns:
        How far this came: :data:`CLOSING`, or what ``advance`` says, and ``UNSOLVED`` where the state is not finite;
        how often rows were held; how many rows and forces, and how many contacts, one-sided rows and degrees of freedom
        with dry friction took part in the contact problem; which method solved it, and steps; its relative residual;
        impulse scale; relative residuals of the equation of motion and of the bilateral rows.
    """
    h, passes, factorization, tolerance, newton_steps, kind = settings
    normals, sizes = borrowed(model.contacts).normals, model.sizes
    begin, acceleration, loads, record, all_status = borrowed((begin, acceleration, loads, record, all_status))
    start, end = unpack_state(begin, sizes), unpack_state(record, sizes)
    count = start.gaps.shape[0]
    if kind == WHOLE and closing_contacts(
        start.gaps,
        normals,
        start.s,
        start.J,
        acceleration,
        h,
        model.options.impact_speed,
        np.empty(count, dtype=np.int64),
    ):
        return CLOSING, 0, 0, 0, (BY_STICKING, 0), 0.0, 0.0, 0.0, 0.0
    outputs = unpack_outputs(record, sizes)
    impulse, friction, lam = outputs.impulse, outputs.joint_friction, outputs.lam
    reached, predicted, calls = advance(
        model,
        (h, kind != TRIAL, passes, factorization, tolerance, newton_steps),
        start,
        acceleration,
        loads,
        excluded,
        near,
        (impulse, friction, lam, all_status[:count], outputs.energy),
        end,
    )
    if reached == UNSOLVED or not are_finite(end.q, end.v):
        return UNSOLVED, calls, 0, 0, (BY_STICKING, 0), 0.0, 0.0, 0.0, 0.0
    rows, members = predicted.impulse.shape[0], predicted.status.shape[0]
    outputs.row_impulses[:rows], all_status[count : count + members] = predicted.impulse, predicted.status
    outputs.x[:] = borrowed(model.work).x
    free_rows = borrowed(model.robot).free_rows
    outputs.acceleration[:] = mean_acceleration(h, start.v, end.v, free_rows, start.frames, end.frames)
    for i in range(outputs.forces.shape[0]):
        place = model.order[i] - impulse.shape[0]
        outputs.forces[i] = (lam[place] if place >= 0 else impulse[model.order[i]]) / h
    outputs.axes[:] = 0.5 * (start.axes + end.axes)
    friction_dofs = borrowed(model.robot).friction_dofs
    for i in range(friction.shape[0]):
        outputs.efforts[friction_dofs[i]] = friction[i] / h
    residuals = predicted.residual, predicted.magnitude, predicted.dynamics_residual, predicted.constraint_residual
    return reached, calls, rows, members, predicted.how, *residuals

"""Substeps as Python calls them: what no step changes is handed over once, what one finds comes in one array.

To hand over sixty arrays takes longer than the step of a leg.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.actuators import Efforts
from constrained_sim.compilation.kernel import kernel
from constrained_sim.constrained_dynamics import NOTHING_KNOWN
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers.quick_solution import BY_STICKING
from constrained_sim.dynamics.free_flyer import mean_acceleration
from constrained_sim.dynamics.tree import Tree, pose_of
from constrained_sim.robot import Robot
from constrained_sim.stabilization import Projection
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import will_close
from constrained_sim.steppers.interpreted_model import InterpretedSubstepModel
from constrained_sim.steppers.packed_step import Sizes, packed_size, unpack_outputs, unpack_state
from constrained_sim.steppers.state_checks import are_finite
from constrained_sim.steppers.step_impulses import enter_means
from constrained_sim.steppers.step_inputs import StepInputs
from constrained_sim.steppers.step_model import (
    StepArguments,
    StepImpulses,
    StepModel,
    StepOptions,
    StepSettings,
    contacts_of,
    make_step_model,
    robot_model,
    work_space,
)
from constrained_sim.steppers.step_outcome import Evaluation
from constrained_sim.steppers.substep import UNSOLVED, substep
from constrained_sim.steppers.substep_outcome import (
    PackedState,
    SolvedProblem,
    SubstepOutcome,
    SubstepReport,
    packed_state,
)
from constrained_sim.validation import Array
from constrained_sim.wrench import WrenchTable

CLOSING = -1
"""How far a step came that was not begun, since a contact closes within it."""

WHOLE_STEP, PART_OF_STEP, TRIAL = range(3)
"""What is to be done: a step in which no contact closes; a part of one; a part that is only predicted."""


def sizes_of(robot: Robot, bound: ConstraintSet) -> Sizes:
    """Return the sizes of a robot and its constraints."""
    resistance = bound.contacts.resistance
    return Sizes(
        nq=robot.nq,
        nv=robot.nv,
        flyers=len(robot.free_joints[0]),
        contacts=len(bound.contacts.members),
        rows=bound.contacts.dim,
        joint_friction=len(robot.friction_dofs),
        bilateral=bound.bilateral.dim,
        turning=resistance.dim,
        moments=len(resistance.table.moments),
        soft=len(bound.contacts.soft),
    )


def compiled_model(robot: Robot, tree: Tree, bound: ConstraintSet, options: StepOptions, sizes: Sizes) -> StepModel:
    """Return the model for which steps are compiled, of a robot with this `tree` and of constraints kernels know."""
    model, work = robot_model(robot), work_space(sizes, pose_of(tree), pose_of(tree))
    rows = bound.bounds, bound.bilateral.arrays
    sizes_and_order = tuple(sizes), bound.row_order
    made: StepModel = make_step_model(model, contacts_of(bound.contacts), *rows, options, *sizes_and_order, work)
    return made


class SubstepRunner:
    """Substeps of one robot under the same constraints, compiled or interpreted.

    Attributes:
        bound: the constraints.
        model: what is the same in all steps.
        sizes: of the records' parts.
    """

    def __init__(
        self, robot: Robot, bound: ConstraintSet, options: StepOptions, stabilization: Projection, tree: Tree | None
    ) -> None:
        """Prepare steps of `robot`: compiled ones of a `tree` that kernels know; None: such as do what is declared."""
        self.bound, self.sizes = bound, sizes_of(robot, bound)
        self.interpreted: InterpretedSubstepModel | None = None
        self.model: StepModel | InterpretedSubstepModel
        if tree is not None:
            self.model = compiled_model(robot, tree, bound, options, self.sizes)
        else:
            self.model = self.interpreted = InterpretedSubstepModel(robot, bound, options, self.sizes, stabilization)
        self._length = packed_size(self.sizes)
        self._members = 2 * len(bound.contacts) + self.sizes.joint_friction + self.sizes.moments

    def step(
        self,
        begin: Evaluation,
        h: float,
        memory: tuple[Array, int],
        inputs: StepInputs,
        kind: int,
        near: Array = NOTHING_KNOWN,
    ) -> SubstepOutcome:
        """Do a step of `h` [s], see :func:`run_substep`; the record of one that comes less far is empty."""
        sizes, (acceleration, passes), (solver, method) = self.sizes, memory, (inputs.solver, inputs.method)
        record, status = np.zeros(self._length), np.zeros(self._members, dtype=np.int64)
        targets = self.bound.bilateral.targets(begin.t, h)
        arguments = tuple(inputs.efforts), tuple(inputs.wrenches), targets, inputs.excluded, inputs.user_forces
        if self.interpreted is not None:
            self.interpreted.begin(begin.t, h, inputs)
        factorization = -1 if solver.compiled_factorization is None else solver.compiled_factorization
        goes_on = self.interpreted is not None
        settings = h, kind != TRIAL, passes, factorization, method.tolerance, method.newton_first, goes_on
        state, filled = packed_state(begin), (record, status)
        numbers = run_substep(self.model, settings, kind == WHOLE_STEP, state, acceleration, arguments, near, filled)
        report = SubstepReport(*numbers)
        solved = SolvedProblem(method, status, report)
        end = PackedState(begin, begin.t + h, record, sizes)
        if self.interpreted is not None:
            return SubstepOutcome(begin, h, end, solved, self.interpreted.predicted, self.interpreted.decisive)
        solver.calls += report.calls
        return SubstepOutcome(begin, h, end, solved)


@kernel(stage=True)
def run_substep(model, settings, whole, begin, acceleration, arguments, near, filled):
    """Do a step, or a part of one, as :func:`~constrained_sim.steppers.substep.substep` does.

    Args:
        model: what is the same in all steps.
        settings: what :class:`~constrained_sim.steppers.step_model.StepSettings` holds, as a tuple: of names it would
            take longer to hand over.
        whole: whether this is a step in which no contact closes; else it may, without impact.
        begin: record that begins with the state at the beginning.
        acceleration: (nv,) of the last step.
        arguments: what :class:`~constrained_sim.steppers.step_model.StepArguments` holds, as tuples.
        near: (n,) impulses near the solution; (0,): nothing is known of them.
        filled: zeros: a record, filled with the state at the end and the outputs; the status of all contacts and
            one-sided rows (k + l,), then those of what took part in the contact problem.

    Returns:
        What :class:`SubstepReport` holds, as a tuple; it reached :data:`CLOSING`, or what ``substep`` says, or
        ``UNSOLVED`` where the state is not finite.
    """
    efforts, wrenches, targets, excluded, user_forces = borrowed(arguments)
    acting = StepArguments(Efforts(*efforts), WrenchTable(*wrenches), targets, excluded, user_forces)
    settings, sizes = StepSettings(*settings), model.sizes
    begin, acceleration, h = borrowed(begin), borrowed(acceleration), settings.h
    record, all_status = borrowed(filled)
    start, end = unpack_state(begin, sizes), unpack_state(record, sizes)
    count = start.gaps.shape[0]
    if whole and will_close(model, h, start, acceleration):
        return _not_done(CLOSING, 0)
    outputs = unpack_outputs(record, sizes)
    impulse, friction = outputs.impulse, outputs.joint_friction
    found = StepImpulses(impulse, friction, outputs.moments, outputs.lam, all_status[:count], outputs.energy)
    reached, predicted, calls = substep(model, settings, start, acceleration, acting, near, found, end)
    if reached == UNSOLVED or not (settings.goes_on or are_finite(end.q, end.v)):
        return _not_done(UNSOLVED, calls)
    contact = predicted.contact
    rows, members = contact.impulse.shape[0], contact.status.shape[0]
    outputs.row_impulses[:rows], all_status[count : count + members] = contact.impulse, contact.status
    outputs.x[:] = borrowed(model.work).x
    free_rows = borrowed(model.robot).free_rows
    outputs.acceleration[:] = mean_acceleration(h, start.v, end.v, free_rows, start.frames, end.frames)
    enter_means(h, model.order, borrowed(model.robot).joints.friction_dofs, start.axes, end.axes, outputs)
    how, residuals = (contact.method, contact.iterations), (contact.residual, contact.magnitude)
    return reached, calls, rows, members, *how, *residuals, predicted.dynamics_residual, predicted.constraint_residual


@kernel(inline=True)
def _not_done(reached, calls):
    """Return the report of a step that came no farther than `reached`, after so many `calls`."""
    return reached, calls, 0, 0, BY_STICKING, 0, 0.0, 0.0, 0.0, 0.0

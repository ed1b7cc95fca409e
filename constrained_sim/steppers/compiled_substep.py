"""Parts of a step of time stepping between which nothing closes: compiled where they can be, else interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import NOTHING_KNOWN
from constrained_sim.dynamics.free_flyer import turn_axes
from constrained_sim.integrators import Integrator
from constrained_sim.robot import Robot
from constrained_sim.stabilization import Stabilization
from constrained_sim.steppers.compiled_step import PART, TRIAL, CompiledSteps
from constrained_sim.steppers.packed_step import PackedOutcome
from constrained_sim.steppers.rigid import DONE, REVERSED, TURNED, UNSOLVED
from constrained_sim.steppers.step_model import StepOptions, robot_model
from constrained_sim.steppers.stepper import NO_CONTACT, Evaluation
from constrained_sim.steppers.substep import ACTIVATION_DISTANCE, REST_SPEED, InterpretedSubstep
from constrained_sim.steppers.substep_result import Prediction, StepInputs, SubstepResult, Trial
from constrained_sim.validation import Array

IMPACT_DEPTH = 1e-7
"""Depth [m] to which a closed contact may come within a step before its approach is an impact: the contact force takes
care of it. Less, and the feet of a humanoid that comes to rest rock from corner to corner, an impact in each step."""


class CompiledSubstep(InterpretedSubstep):
    """Does parts of a step in one kernel where it can: those of constraints and springs that kernels know.

    The interpreted step goes on where the kernel leaves off, as where the quick methods do not solve a contact problem.
    """

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, stabilization: Stabilization) -> None:
        """Allocate the work space for steps of `dt` [s].

        Raises:
            InvalidValue: an integrator that is no stepping scheme, or a stabilization that is no projection.
        """
        super().__init__(robot, dt, integrator, stabilization)
        self._model = robot_model(robot) if self.stabilization.metric == "mass" else None
        self._steps: CompiledSteps | None = None

    def _advance(
        self,
        begin: Evaluation,
        h: float,
        inputs: StepInputs,
        excluded: npt.NDArray[np.intp] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
        found: PackedOutcome | None = None,
    ) -> SubstepResult:
        """Advance by `h` [s] without impact, and without forces of what is `excluded`.

        Impulses will be `near` those, if it is not empty. As a rule one kernel does it all: `found` is what it left, if
        it has been tried already.
        """
        if self._can_compile(begin, inputs):
            if found is None:
                found = self._compiled_step(begin, h, inputs, PART, excluded, near)
            if found.reached != UNSOLVED:
                return self._go_on(begin, found, h, inputs, excluded)
            inputs, near = inputs._replace(method=inputs.method.after_quick), NOTHING_KNOWN
        return self._predicted(begin, h, inputs, excluded, near).finish()

    def _try(
        self, begin: Evaluation, h: float, inputs: StepInputs, excluded: npt.NDArray[np.intp], near: Array
    ) -> Trial:
        """Return what :meth:`_advance` comes to, with the velocity at the end as it is predicted; and how it ends."""
        if self._can_compile(begin, inputs):
            found = self._compiled_step(begin, h, inputs, TRIAL, excluded, near)
            if found.reached != UNSOLVED:
                part = self._prediction(begin, found, h).part(begin, found.end)
                return Trial(part, lambda: self._advance(begin, h, inputs, excluded, part.motion.impulse))
            inputs, near = inputs._replace(method=inputs.method.after_quick), NOTHING_KNOWN
        return self._predicted(begin, h, inputs, excluded, near)

    def _predicted(
        self, begin: Evaluation, h: float, inputs: StepInputs, excluded: npt.NDArray[np.intp], near: Array
    ) -> Trial:
        """Predict `h` [s] interpreted."""
        predicted = self._predict(begin, h, inputs, excluded, near)
        part, active = self._held(begin, predicted, self._end(begin, predicted), inputs, excluded)
        return Trial(part, lambda: self._finish(begin, predicted, part, active, inputs))

    def _compiled_step(
        self,
        begin: Evaluation,
        h: float,
        inputs: StepInputs,
        kind: int,
        excluded: npt.NDArray[np.intp] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
    ) -> PackedOutcome:
        """Return what a kernel finds of a step of `h` [s], or a part of one."""
        return self._compiled(begin).step(begin, h, self.memory, inputs, kind, excluded, near)

    def _prediction(self, begin: Evaluation, found: PackedOutcome, h: float) -> Prediction:
        """Return the smooth problem that a kernel has solved last."""
        work, none, status = self._compiled(begin).work, NOTHING_KNOWN, found.status.copy()
        q_mid, v_mid, bias, impulses = (
            part.copy() for part in (work.middle.q, work.middle.v, work.bias, work.impulses)
        )
        outputs, deflection = found.outputs, begin.deflection
        impulse, joint_friction, energy = outputs.impulse, outputs.joint_friction, outputs.energy
        v = turn_axes((1.0 - self.integrator.theta) * h, begin.v, self._free[1])
        return Prediction(
            h, v, q_mid, v_mid, bias, found.motion, impulses, impulse, joint_friction, none, status, energy, deflection
        )

    def _go_on(
        self, begin: Evaluation, found: PackedOutcome, h: float, inputs: StepInputs, excluded: npt.NDArray[np.intp]
    ) -> SubstepResult:
        """Return the part of a step that a kernel has `found`, finished where that left it unfinished."""
        predicted = self._prediction(begin, found, h)
        if found.reached in (DONE, REVERSED):
            return predicted.part(begin, found.end)
        work = self._compiled(begin).work
        x, row_impulses = work.x_first.copy(), work.row_impulses_first.copy()
        self._mid.update(predicted.q_mid, predicted.v_mid, begin.t + 0.5 * h)
        self._here.update_inertia(found.end.q, found.end.t)
        part, active = self._held(begin, predicted, found.end, inputs, excluded)
        if found.reached == TURNED:
            inputs = inputs._replace(turned=inputs.near.after_quick)
            return self._finish(begin, predicted, part, active, inputs, (x, row_impulses))
        return self._finish(begin, predicted, part, active, inputs._replace(near=inputs.near.after_quick))

    def _can_compile(self, begin: Evaluation, inputs: StepInputs) -> bool:
        """Whether the kernels of a whole step can do what is declared, with the solver that is chosen."""
        return inputs.solver.held_rows is not None and begin.bound.is_of_arrays and self._model is not None

    def _compiled(self, begin: Evaluation) -> CompiledSteps:
        """Return the compiled steps under the constraints that act at the `begin`."""
        steps = self._steps
        if steps is None or steps.bound is not begin.bound:
            assert self._model is not None, "a robot that kernels do not know"
            tolerance = self.stabilization.position_tolerance
            options = StepOptions(
                self.integrator.theta, ACTIVATION_DISTANCE, REST_SPEED, tolerance, IMPACT_DEPTH / self.dt
            )
            steps = self._steps = CompiledSteps(self.robot, self._model, begin.bound, options)
        return steps

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy begins with: it prepares compiled steps of its own."""
        return self.__dict__ | {"_steps": None}

"""Parts of a step of time stepping between which nothing closes: compiled where they can be, else interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import NOTHING_KNOWN
from constrained_sim.exceptions import CoarseStep, FastJoints
from constrained_sim.integrators import Integrator, SteppingScheme
from constrained_sim.robot import Robot
from constrained_sim.stabilization import Projection, Stabilization
from constrained_sim.steppers.options import STEPPING
from constrained_sim.steppers.soft_rows import depth_ahead, forces_of_users, impedance
from constrained_sim.steppers.step_inputs import StepInputs
from constrained_sim.steppers.step_model import StepOptions
from constrained_sim.steppers.step_outcome import Evaluation
from constrained_sim.steppers.stepper import NO_CONTACT, Stepper
from constrained_sim.steppers.substep import UNCORRECTED, UNSOLVED
from constrained_sim.steppers.substep_outcome import SubstepOutcome
from constrained_sim.steppers.substep_runner import PART_OF_STEP, SubstepRunner, run_substep
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array


class Substeps(Stepper):
    """Does parts of a step without impact, see :func:`~constrained_sim.steppers.substep.substep`.

    One kernel does them where kernels know what is declared and the quick methods solve the contact problems. Else the
    same stages are interpreted, with every constraint, solver and contact method.
    """

    does_feedback = False
    integrator: SteppingScheme
    stabilization: Projection
    _acceleration: Array
    _passes: int

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, stabilization: Stabilization) -> None:
        """Prepare steps of `dt` [s].

        Raises:
            InvalidValue: an integrator that is no stepping scheme, or a stabilization that is no projection.
        """
        super().__init__(robot, dt, integrator, stabilization)
        self._runners: dict[bool, SubstepRunner] = {}
        self._judged: set[str] = set()
        self._has_warned_of_fast_joints = False
        self._forget()

    @property
    def memory(self) -> tuple[Array, int]:
        """The acceleration of the last step, and how many passes over the next one it makes necessary."""
        return self._acceleration, self._passes

    @memory.setter
    def memory(self, memory: tuple[Array, int]) -> None:
        self._acceleration, self._passes = memory

    @classmethod
    def takes(cls, integrator: Integrator) -> bool:
        """Return whether `integrator` is a stepping scheme."""
        return isinstance(integrator, SteppingScheme)

    @property
    def _impact_speed(self) -> float:
        """Approach speed below which nothing is an impact [m/s, rad/s]."""
        return min(STEPPING.impact_depth / self.dt, STEPPING.impact_acceleration * self.dt)

    def _forget(self) -> None:
        """After a jump the last acceleration says nothing: take as many passes over the next part as make up for it."""
        self._acceleration, self._passes = np.zeros(self.robot.nv), STEPPING.passes_after_jump

    def _remember(self, part: SubstepOutcome) -> None:
        """Keep the acceleration of a `part` of a step for the next."""
        self._acceleration, self._passes = part.outputs.acceleration, 1

    def _advance(
        self,
        begin: Evaluation,
        h: float,
        inputs: StepInputs,
        excluded: npt.NDArray[np.intp] = NO_CONTACT,
        near: Array = NOTHING_KNOWN,
        kind: int = PART_OF_STEP,
        found: SubstepOutcome | None = None,
    ) -> SubstepOutcome:
        """Advance by `h` [s] without impact, and without forces of what is `excluded`.

        Impulses will be `near` those, if it is not empty; `found` is what a kernel has found of it already.
        """
        user_forces = forces_of_users(begin.bound.contacts, begin.contact, excluded, h)
        inputs = inputs._replace(excluded=excluded, user_forces=user_forces)
        if self._can_compile(begin, inputs):
            if found is None:
                found = self._runner(begin, True).step(begin, h, self.memory, inputs, kind, near)
            if found.reached not in {UNSOLVED, UNCORRECTED}:
                return found
            near = found.row_impulses if found.reached == UNCORRECTED else NOTHING_KNOWN
        return self._runner(begin, False).step(begin, h, self.memory, inputs, kind, near)

    def _can_compile(self, begin: Evaluation, inputs: StepInputs) -> bool:
        """Whether the kernels of a whole step can do what is declared, with the solver that is chosen.

        Where another process has compiled them for long, this waits for them.
        """
        known = begin.bound.is_of_arrays and self.robot.tree is not None and self.stabilization.metric == "mass"
        if not known or inputs.solver.compiled_factorization is None:
            return False
        run_substep.wait_if_overdue()
        return not run_substep.runs_source()

    def _runner(self, begin: Evaluation, compiled: bool) -> SubstepRunner:
        """Return what does substeps under the constraints that act at the `begin`."""
        runner = self._runners.get(compiled)
        if runner is None or runner.bound is not begin.bound:
            options = StepOptions(self.integrator.theta, self.stabilization.position_tolerance, self._impact_speed)
            runner = SubstepRunner(
                self.robot, begin.bound, options, self.stabilization, self.robot.tree if compiled else None
            )
            self._runners[compiled] = runner
        return runner

    def _warn_of_coarse_steps(self, here: Evaluation) -> None:
        """Warn, once per soft contact when it is first active, where a step is too long for its stiffness or damping.

        With the impedance alpha of :func:`~constrained_sim.steppers.soft_rows.soft_rows` and the mass m that the
        contact feels, a step turns an undamped vibration by ``2 sqrt(alpha / m)``.
        """
        contact_set, h = here.bound.contacts, self.dt
        if not contact_set.soft_laws:
            return
        contact = here.contact
        for i, law in zip(contact_set.soft, contact_set.soft_laws, strict=True):
            name, s_normal = contact_set.members[i].name, contact.s[3 * i + 2]
            if name in self._judged or not (depth := depth_ahead(contact.distances[i], s_normal, h)) > 0.0:
                continue
            normal, alpha = contact.J[3 * i + 2], impedance(h, *law.slopes(depth, -s_normal), self.robot.mass)
            angle = 2.0 * np.sqrt(alpha * normal @ np.linalg.solve(here.M, normal))
            self._judged.add(name)
            if angle > STEPPING.resolved_phase:
                warn(CoarseStep(name, h, float(angle), STEPPING.resolved_phase))

    def _warn_of_fast_joints(self) -> None:
        """Warn, once, that joints turn too far within a step."""
        if not self._has_warned_of_fast_joints:
            self._has_warned_of_fast_joints = True
            warn(FastJoints(self.dt))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy begins with: it prepares steps of its own."""
        return self.__dict__ | {"_runners": {}}

"""Model of an interpreted step: Pinocchio, the user's functions, and every solver."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import InterpretedModel
from constrained_sim.constrained_dynamics import ConstrainedSolution, ContactRows, solve_constrained_dynamics
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers.quick_solution import BY_STICKING, QuickSolution
from constrained_sim.dynamics.dynamics import Dynamics, integrate, potential_energy
from constrained_sim.linalg.kept_dependence import keep_dependence
from constrained_sim.robot import Robot
from constrained_sim.solvers import RobotSystem
from constrained_sim.stabilization import Projection
from constrained_sim.steppers.packed_step import Sizes, State
from constrained_sim.steppers.row_solution import MIDPOINT_FRICTION, PREDICTION, RowSolution, StepProblem
from constrained_sim.steppers.step_inputs import StepInputs
from constrained_sim.steppers.step_model import (
    Contacts,
    StepOptions,
    StepSettings,
    contacts_of,
    robot_model,
    work_space,
)
from constrained_sim.validation import Array
from constrained_sim.wrench import WrenchTable, external_effort


class Place:
    """Where a state of an interpreted step is.

    Attributes:
        dynamics: there.
        t: time [s].
    """

    def __init__(self, robot: Robot) -> None:
        """Allocate the work space of `robot`."""
        self.dynamics, self.t = Dynamics(robot), 0.0


class InterpretedSubstepModel(InterpretedModel):
    """Steps of any robot under any constraints, with any solver and stabilization.

    It has what a :class:`~constrained_sim.steppers.step_model.StepModel` has, and stages of its own.

    Attributes:
        inputs: what acts during the present step, and how its problems are solved.
        predicted: the solution of the last prediction.
        decisive: the last solution: what the velocity at the end comes from.
    """

    inputs: StepInputs
    predicted: ConstrainedSolution
    decisive: ConstrainedSolution

    def __init__(
        self, robot: Robot, bound: ConstraintSet, options: StepOptions, sizes: Sizes, stabilization: Projection
    ) -> None:
        """Prepare steps of `robot` under `bound` constraints."""
        self._robot, self.bound, self.options, self.sizes, self.order = robot, bound, options, sizes, bound.row_order
        self.robot, self.stabilization = robot_model(robot), stabilization
        self.contacts: Contacts = contacts_of(bound.contacts)
        self.work = work_space(sizes, Place(robot), Place(robot))
        self._t = 0.0

    def begin(self, t: float, h: float, inputs: StepInputs) -> None:
        """Take the time `t` [s] and length `h` [s] of the next step, and its `inputs`."""
        self.inputs, self._t = inputs, t
        self.work.pose.t, self.work.end_pose.t = t + (1.0 - self.options.theta) * h, t + h

    # -- stages, see constrained_sim.steppers.evaluation and row_solution

    def configure(self, pose: Place, q: Array, h: float, v: Array, coms: Array, state: State) -> None:
        """Give a `state` a configuration."""
        state.q[:] = integrate(self._robot, q, h * v)
        if coms.size:
            state.q[:] = pose.dynamics.with_com_at(state.q, self.robot.free, coms)
        pose.dynamics.update_inertia(state.q, pose.t)

    def evaluate_rows(self, target: Array, pose: Place, v: Array, state: State) -> None:
        """Fill in what a `state` has of constraints."""
        dynamics, bound = pose.dynamics, self.bound
        dynamics.v = v
        contact = bound.contacts.rows(dynamics, v)
        state.axes[:], state.points[:], state.distances[:], state.gaps[:], state.J[:], state.s[:] = contact[:6]
        state.turning[:] = bound.contacts.resistance.rows(dynamics, contact.axes)
        state.phi[:], state.J_bilateral[:] = bound.bilateral.phi(dynamics), bound.bilateral.jacobian(dynamics)
        state.s_bilateral[:] = bound.bilateral.velocity_with(state.J_bilateral, dynamics, v, pose.t)

    def evaluate_inertia(self, pose: Place, state: State) -> None:
        """Fill in the inertia of a `state`."""
        state.M[:], state.frames[:] = pose.dynamics.M, pose.dynamics.placements[self.robot.free]

    def inertial_forces(self, pose: Place, v: Array) -> Array:
        """Return (nv,) Coriolis, centrifugal and gravity forces."""
        return pose.dynamics.bias_at(v)

    def gravity_forces(self, pose: Place) -> Array:
        """Return (nv,) gravity forces."""
        return pose.dynamics.gravity_forces()

    def external_forces(self, pose: Place, wrenches: WrenchTable) -> Array:
        """Return (nv,) the efforts of external `wrenches`."""
        dynamics = pose.dynamics
        effort: Array = external_effort(wrenches, dynamics.placements, dynamics.joint_axes, self.robot.support)
        return effort

    def bilateral_goal(self, targets: Array, begin: State, v: Array, middle: State) -> Array:
        """Return (m,) what ``J v'`` is to be; rows may depend on the velocity and time in any way."""
        bilateral, dynamics = self.bound.bilateral, self.work.pose.dynamics
        J = middle.J_bilateral
        J[:] = bilateral.jacobian(dynamics)
        change = bilateral.velocity_with(J, dynamics, v, self._t) - begin.s_bilateral
        s_end = bilateral.velocity_with(J, dynamics, v, self.work.end_pose.t)
        return np.asarray(J @ v - s_end - change, dtype=np.float64)

    def stored_energy(self, pose: Place, q: Array) -> float:
        """Return the energy of gravity and springs [J]."""
        return potential_energy(self._robot, q)

    def step_back(self, before: Array, pose: Place, state: State, rows: npt.NDArray[np.int64]) -> Array:
        """Return the smallest tangent step (nv,) that takes out drift, in the metric of the stabilization."""
        J, phi = keep_dependence(state.M, self.robot.parents, before, state.J_bilateral, state.phi)
        system = RobotSystem(pose.dynamics, J, self.bound.bilateral.members)
        system.M = state.M  # of the configuration that all steps back begin at
        gaps = self.bound.contacts.along_normals(state.gaps)
        return self.stabilization.tangent_step(self.inputs.solver, system, phi, state.J[rows], gaps[rows])

    def solve_rows(self, settings: StepSettings, phase: int, problem: StepProblem, start: Array) -> RowSolution:
        """Solve for the velocity by the solver and contact method that are chosen."""
        inputs, work = self.inputs, self.work
        dynamics = (work.pose if phase == PREDICTION else work.end_pose).dynamics
        added = problem.added if problem.added.any() else None
        system = RobotSystem(dynamics, problem.J_bilateral, self.bound.bilateral.members, added)
        method = inputs.method
        if phase == MIDPOINT_FRICTION:  # from there Newton's method seldom gets on
            method = method.without_newton
        rows = self._contact_rows(settings, problem)
        motion = solve_constrained_dynamics(inputs.solver, system, problem.f, problem.goal, rows, method, start)
        self.decisive, contact = motion, motion.contact
        if phase == PREDICTION:
            self.predicted = motion
        status, residual, solved = np.empty(0, dtype=np.int64), 0.0, True
        if contact is not None:
            status, residual, solved = contact.status, contact.residual, contact.converged
        # which method solved it, and how, is in the motion
        found = QuickSolution(motion.impulse, status, BY_STICKING, 0, residual, 1.0, solved)
        return RowSolution(motion.x, motion.lam, found, motion.dynamics_residual, motion.constraint_residual)

    def _contact_rows(self, settings: StepSettings, problem: StepProblem) -> ContactRows:
        """Return the rows of a problem with their laws."""
        active, compliance = problem.active, None
        if active.compliance.size:  # of contacts; all rows after theirs have none
            compliance = np.append(active.compliance, np.zeros(len(active.offset) - len(active.compliance)))
        laws = self.bound.contacts.laws_of(active.chosen, settings.h * self.robot.joints.coulomb_effort)
        return ContactRows(active.J, active.offset, laws._replace(rolling=active.moments), compliance)

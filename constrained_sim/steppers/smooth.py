"""Smooth motion at acceleration level: bilateral rows only, any integrator."""

from __future__ import annotations

import numpy as np

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import ConstrainedSolution, ContactRows, solve_constrained_dynamics
from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.dynamics.dynamics import Dynamics, difference
from constrained_sim.energy import CONSTRAINTS, KINETIC, PROJECTION, TERMS
from constrained_sim.forward_dynamics import acceleration_rows
from constrained_sim.integrators import RK4
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.stabilization import Baumgarte, Projection
from constrained_sim.steppers.known_forces import known_forces
from constrained_sim.steppers.stepper import NO_CONTACT, Evaluation, StepOutcome, Stepper
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench


class Smooth(Stepper):
    """Integrates ``M a + h = S^T tau + J_ext^T w - D v + J^T lam`` with ``J a = -gamma - feedback``.

    Efforts and external wrenches are constant during a step. What the integrator leaves of drift is removed by
    Baumgarte's feedback within the acceleration, or by a projection of position and velocity after the step. Forces of
    the result are means over the step, integrated like the motion; so is the work of each cause.
    """

    name = "smooth"
    default_integrator = RK4.name
    does_dry_friction = False
    supported = "bilateral constraints; contacts, limits and dry friction need 'time_stepping' or 'event_driven'"

    def supports(self, constraint: Constraint) -> bool:
        """Return whether `constraint` is bilateral."""
        return not constraint.is_unilateral

    def step(
        self, start: Evaluation, efforts: Efforts, wrenches: tuple[Wrench, ...], solver: Solver, method: ContactMethod
    ) -> StepOutcome:
        """Advance by dt, see the class."""
        field = _Field(self, start.bound, efforts, wrenches, solver)
        q, v, integrals = self.integrator.step(field, self.robot, start.t, start.q, start.v, self.dt)
        end = self.evaluate(start.bound, start.t + self.dt, q, v)
        rows = start.bound.bilateral.dim
        energy = np.zeros(TERMS)
        energy[: KINETIC + 1] = integrals[rows:]
        a = (v - start.v) / self.dt
        if isinstance(self.stabilization, Projection):
            end, energy[PROJECTION] = self.project(self.stabilization, end, solver)
        lam = start.bound.rows(integrals[:rows] / self.dt, np.zeros(0))
        rest = read_only(np.zeros(self.robot.nv))
        moved = difference(self.robot, start.q, end.q) / self.dt
        axes = end.contact.axes
        return StepOutcome(end, a, read_only(lam), axes, rest, NO_CONTACT, (), energy, field.motion, np.zeros(0), moved)


class _Field:
    """Acceleration, constraint forces and powers of the causes in the order of ``FORCES``, and of ``M a``."""

    motion: ConstrainedSolution

    def __init__(
        self, stepper: Smooth, bound: ConstraintSet, efforts: Efforts, wrenches: tuple[Wrench, ...], solver: Solver
    ) -> None:
        self._dynamics, self._bilateral = Dynamics(stepper.robot), bound.bilateral
        self._efforts, self._wrenches, self._solver = efforts, wrenches, solver
        feedback = stepper.stabilization
        self._feedback = feedback if isinstance(feedback, Baumgarte) else None

    def __call__(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        dynamics, robot = self._dynamics, self._dynamics.robot
        dynamics.update(q, v, t)
        forces = known_forces(dynamics, self._efforts, self._wrenches)
        J, _, b = acceleration_rows(self._bilateral, dynamics, self._feedback)
        system = RobotSystem(dynamics, J, self._bilateral.members)
        motion = self.motion = solve_constrained_dynamics(
            self._solver, system, forces.sum(axis=0), b, ContactRows.none(robot.nv)
        )
        forces[CONSTRAINTS] += motion.lam @ J
        return motion.x, np.concatenate([motion.lam, forces @ v, [v @ dynamics.M @ motion.x]])

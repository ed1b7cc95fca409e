"""Smooth motion at acceleration level: bilateral rows only, any integrator."""

from __future__ import annotations

import numpy as np

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import ConstrainedSolution, ContactRows, solve_constrained_dynamics
from constrained_sim.constraints import Constraint
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.dynamics.dynamics import difference
from constrained_sim.energy import CONSTRAINTS, IMPACT_LOSSES, KINETIC, PROJECTION, TERMS
from constrained_sim.forward_dynamics import acceleration_rows
from constrained_sim.integrators import RK4
from constrained_sim.linalg.kept_dependence import keep_dependence
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.stabilization import Baumgarte, Projection
from constrained_sim.steppers.known_forces import known_forces
from constrained_sim.steppers.step_outcome import Evaluation, StepOutcome
from constrained_sim.steppers.stepper import NO_CONTACT, Stepper
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench


class Smooth(Stepper):
    """Integrates ``M a + h = S^T tau + J_ext^T w - D v + J^T lam`` with ``J a = -gamma - feedback``.

    Efforts and external wrenches are constant during a step, those of joint feedback too: they are what it asks for at
    the end of the step, see :meth:`_velocity_ahead`. What the integrator leaves of drift is removed by
    Baumgarte's feedback within the acceleration, or by a projection of position and velocity after the step. A velocity
    that the constraints forbid at its beginning is gone at once then, see :meth:`Stepper.forbidden_jump`. Forces of the
    result are means over the step, impulses of impacts excluded, integrated like the motion; so is the work of each
    cause.
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
        field, ahead = _Field(self, start, efforts, wrenches, solver), None
        energy, jump = np.zeros(TERMS), self.forbidden_jump(start, solver, method)
        if jump is not None:
            start, energy[IMPACT_LOSSES] = start.with_velocity(jump.v_plus), jump.energy_lost
        if efforts.damping.any():
            ahead = self._velocity_ahead(start, field)
            field.efforts = Efforts(efforts.at(ahead[self.robot.actuation]), np.zeros(self.robot.nu))
        q, v, integrals = self.integrator.step(field, self.robot, start.t, start.q, start.v, self.dt)
        end = self.evaluate(start.bound, start.t + self.dt, q, v)
        rows = start.bound.bilateral.dim
        energy[: KINETIC + 1] = integrals[rows:]
        a = (v - start.v) / self.dt
        if isinstance(self.stabilization, Projection):
            end, energy[PROJECTION] = self.project(self.stabilization, end, solver)
        lam = start.bound.rows(integrals[:rows] / self.dt, np.zeros(0))
        return StepOutcome(
            end=end,
            a=a,
            lam=read_only(lam),
            axes=end.contact.axes,
            dry_friction=read_only(np.zeros(self.robot.nv)),
            status=NO_CONTACT,
            impacts=() if jump is None else (jump,),
            energy=energy,
            motion=field.motion,
            moments=np.zeros(0),
            damped_velocity=difference(self.robot, start.q, end.q) / self.dt if ahead is None else ahead,
        )

    def _velocity_ahead(self, start: Evaluation, field: _Field) -> Array:
        """Return (nv,) the velocity v' = v + h a at the end of the step, to first order, under joint feedback.

        ``(M + h D) a = f - D v + J^T lam``, f without the damping D of the feedback. An explicit integrator would not
        be stable with large D; with the effort ``constant - D v'`` during the whole step it is (Tan, Liu and Turk,
        Stable proportional-derivative controllers, 2011).
        """
        added = np.zeros(self.robot.nv)
        added[self.robot.actuation] = self.dt * field.efforts.damping
        _, _, motion = field.solve(start.t, start.q, start.v, added)
        return start.v + self.dt * motion.x


class _Field:
    """Acceleration, constraint forces and powers of the causes in the order of ``FORCES``, and of ``M a``."""

    motion: ConstrainedSolution

    def __init__(
        self, stepper: Smooth, start: Evaluation, efforts: Efforts, wrenches: tuple[Wrench, ...], solver: Solver
    ) -> None:
        self._dynamics, self._bilateral, self._start = stepper.on_the_way, start.bound.bilateral, start
        self.efforts, self._wrenches, self._solver = efforts, wrenches, solver
        feedback = stepper.stabilization
        self._feedback = feedback if isinstance(feedback, Baumgarte) else None

    def __call__(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        forces, J, motion = self.solve(t, q, v)
        self.motion = motion
        forces[CONSTRAINTS] += motion.lam @ J
        return motion.x, np.concatenate([motion.lam, forces @ v, [v @ self._dynamics.M @ motion.x]])

    def solve(
        self, t: float, q: Array, v: Array, added: Array | None = None
    ) -> tuple[Array, Array, ConstrainedSolution]:
        """Return forces (6, nv) of the causes, rows J (m, nv) and the motion, with what is `added` (nv,) to inertia."""
        dynamics = self._dynamics
        dynamics.update(q, v, t)
        forces = known_forces(dynamics, self.efforts, self._wrenches)
        J, _, b = acceleration_rows(self._bilateral, dynamics, self._feedback)
        J, b = keep_dependence(dynamics.M, dynamics.robot.inertia_parents, self._start.J_bilateral, J, b)
        system, none = RobotSystem(dynamics, J, self._bilateral.members, added), ContactRows.none(len(v))
        return forces, J, solve_constrained_dynamics(self._solver, system, forces.sum(axis=0), b, none)

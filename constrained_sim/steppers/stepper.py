"""The contract of a stepper: one simulated step, from the evaluated state at its beginning to what it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.actuators import Efforts
from constrained_sim.constraints.constraint import SupportsSome
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.speeds import REST_SPEED
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.dynamics.dynamics import Dynamics, integrate, potential_energy
from constrained_sim.exceptions import InvalidValue
from constrained_sim.impact import Impact, ImpactLaw, bouncing, impact_at
from constrained_sim.integrators import INTEGRATORS, Integrator
from constrained_sim.posture import JointFeedback
from constrained_sim.robot import Robot
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.stabilization import Baumgarte, Projection, Stabilization
from constrained_sim.steppers.drift_rows import takes_out, without_clashes
from constrained_sim.steppers.options import STEPPING
from constrained_sim.steppers.state_checks import largest_drift
from constrained_sim.steppers.step_outcome import Evaluation, Run, StepOutcome
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench

NO_CONTACT = np.empty(0, dtype=np.int64)


class Stepper(SupportsSome, ABC):
    """Advances a robot by steps of dt.

    Attributes:
        default_integrator: name of the integrator that it takes unless told otherwise.
        does_feedback: whether it can remove drift by Baumgarte's feedback.
        bounce_velocity: approach speed [m/s, rad/s] up to which restitution counts as 0: so bounces end in contact.
        memory: what a step takes over from the one before; set again, it makes a step that failed undone.
    """

    role = "stepper"
    default_integrator: str
    does_feedback = True
    bounce_velocity = 1e-6
    memory: Any = None

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, stabilization: Stabilization) -> None:
        """Keep the settings, and allocate the work space.

        Raises:
            InvalidValue: an integrator or a stabilization that this stepper cannot use.
        """
        self.robot, self.dt, self.integrator, self.stabilization = robot, dt, integrator, stabilization
        self._here = Dynamics(robot)
        if not isinstance(stabilization, Stabilization):
            raise InvalidValue("stabilization", stabilization, "None, a Projection or Baumgarte")
        if isinstance(stabilization, Baumgarte) and not self.does_feedback:
            raise InvalidValue(f"stabilization of stepper {self.name!r}", stabilization, "a Projection")
        if not self.takes(integrator):
            names = [name for name, kind in INTEGRATORS.items() if self.takes(kind())]
            raise InvalidValue(f"integrator of stepper {self.name!r}", integrator.name, ", ".join(names))
        self.check_robot(robot)

    @cached_property
    def on_the_way(self) -> Dynamics:
        """Work space for states between two that are evaluated."""
        return Dynamics(self.robot)

    @classmethod
    def takes(cls, integrator: Integrator) -> bool:
        """Return whether this stepper can use `integrator`."""
        return True

    def reset(self, bound: ConstraintSet, t: float, q: Array, v: Array, deflection: Array | None = None) -> Evaluation:
        """Forget the past and evaluate (q, v) at time `t`, with springs (soft, 2) of soft contacts; None: relaxed."""
        here = self.evaluate(bound, t, q, v, deflection)
        self._forget()
        return here

    def _forget(self) -> None:
        """Forget what a step takes over from the one before."""
        self.memory = None

    def evaluate(
        self, bound: ConstraintSet, t: float, q: Array, v: Array, deflection: Array | None = None
    ) -> Evaluation:
        """Return what the constraints look like at (q, v); leaves inertia and kinematics at q in the work space."""
        if deflection is None:
            deflection = np.zeros((len(bound.contacts.soft), 2))
        here = self._here
        here.update_inertia(q, t)
        here.v = v
        contact = bound.contacts.rows(here, v)
        J = bound.bilateral.jacobian(here)
        return Evaluation(
            bound,
            t,
            read_only(q),
            read_only(v),
            here.M.copy(),
            here.placements[self.robot.free_joints[0]],
            contact,
            bound.bilateral.phi(here),
            J,
            bound.bilateral.velocity_with(J, here, v, t),
            deflection,
            bound.contacts.resistance.rows(here, contact.axes),
        )

    def impact(
        self,
        here: Evaluation,
        closing: npt.NDArray[np.intp],
        solver: Solver,
        method: ContactMethod,
        law: ImpactLaw | None = None,
    ) -> Impact:
        """Resolve the impact of the contacts and one-sided rows `closing` at the state `here`.

        Args:
            here: before the impact.
            closing: indices, ascending.
            solver: of the linear part.
            method: how contacts are solved.
            law: of the rows; None: contacts have their own coefficients.
        """
        self._here.update_inertia(here.q, here.t)
        return impact_at(self._here, here.bound, here.v, closing, solver, method, law)

    def collide(
        self,
        here: Evaluation,
        closing: npt.NDArray[np.intp],
        solver: Solver,
        method: ContactMethod,
        least: Array | float = 0.0,
    ) -> Impact:
        """Resolve an impact as :meth:`impact` does, after which fast contacts bounce.

        These are faster than :attr:`bounce_velocity`, and than the `least` speed, of each (k + l,) or of all [m/s,
        rad/s].
        """
        least = np.maximum(self.bounce_velocity, least)
        law = ImpactLaw(bouncing(here.bound, closing, here.contact.s_normal, least))
        return self.impact(here, closing, solver, method, law)

    def jump_onto_rows(self, here: Evaluation, solver: Solver, method: ContactMethod) -> Impact:
        """Return the impact that brings a state onto its bilateral constraints.

        Closed contacts take part, with their own coefficients of restitution.
        """
        return self.impact(here, here.touching, solver, method)

    def forbidden_jump(self, here: Evaluation, solver: Solver, method: ContactMethod) -> Impact | None:
        """Return :meth:`jump_onto_rows` where bilateral rows forbid the velocity at the beginning of a step.

        A step leaves none that they forbid: so somebody has set it, as an initial velocity or a drive that is to start.
        With projection that is an impact; taken away at the end, it would have moved the configuration off the rows
        before, and the way back gives momentum. Feedback takes it away in its own time, by forces.

        Returns:
            None with feedback; where rows are no faster than a row at rest, or than what the projection leaves as it
            is; and where the impact would not change that, as where rows contradict each other.
        """
        if not isinstance(self.stabilization, Projection):
            return None
        drift = max(REST_SPEED, self.stabilization.velocity_tolerance)
        if not np.abs(here.s_bilateral).max(initial=0.0) > drift:
            return None
        impact = self.jump_onto_rows(here, solver, method)
        change, _ = here.bound.split(impact.row_velocity_plus - impact.row_velocity_minus)
        return impact if np.abs(change).max() > drift else None

    def project(
        self,
        projection: Projection,
        end: Evaluation,
        solver: Solver,
        held: npt.NDArray[np.int64] = NO_CONTACT,
        rows: npt.NDArray[np.int64] = NO_CONTACT,
    ) -> tuple[Evaluation, float]:
        """Project a configuration and its velocity onto the bilateral rows and the contacts `held`, see `_project_q`.

        Returns:
            The state there, and the energy [J] that this brings in.
        """
        there, energy = self._project_q(projection, end, solver, held, rows)
        J = there.J_contact[rows]
        s = J @ there.v
        if max(np.abs(there.s_bilateral).max(initial=0.0), np.abs(s).max(initial=0.0)) <= projection.velocity_tolerance:
            return there, energy
        system = RobotSystem(self._here, there.J_bilateral, there.bound.bilateral.members)
        v = there.v + projection.tangent_step(solver, system, there.s_bilateral, J, s)
        return there.with_velocity(v), energy + 0.5 * float((v - there.v) @ there.M @ (v + there.v))

    def _project_q(
        self,
        projection: Projection,
        end: Evaluation,
        solver: Solver,
        held: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> tuple[Evaluation, float]:
        """Project a configuration onto the bilateral rows and the contacts `held`, if they have drifted.

        Where rows nearly depend on each other, what is a hundredth of a micrometre at one of them may take a large
        motion, or be farther away after it: contacts are left as they are then, as is what a step does not halve. Rows
        whose position cannot stay while drift is taken out are left out.

        Args:
            projection: how.
            end: the state, the last one that this stepper has evaluated.
            solver: of the linear problem.
            held: contacts whose gap is to vanish.
            rows: rows of all contacts, then those that turn, whose position is to stay.

        Returns:
            The state there, and the potential energy [J] that this brings in.
        """
        start, drift = end, largest_drift(end.phi, end.contact.gaps, held)
        for _ in range(STEPPING.projections):
            if drift <= projection.position_tolerance:
                break
            J, normals = end.J_contact, end.contact.normals
            gaps = np.zeros(len(J))
            gaps[normals] = end.contact.gaps
            system = RobotSystem(self._here, end.J_bilateral, end.bound.bilateral.members)
            dq = projection.tangent_step(solver, system, end.phi, J[rows], gaps[rows])
            others, allowed = len(rows) - len(held), STEPPING.clash * drift
            if others and not takes_out(dq, end.J_bilateral, end.phi, J, end.contact.gaps, normals, held, allowed):
                rows = without_clashes(end.M, system.parents, end.J_bilateral, J, rows, normals)
                dq = projection.tangent_step(solver, system, end.phi, J[rows], gaps[rows])
            if held.size and np.abs(dq).max() > STEPPING.lever * drift:
                break
            q, v = integrate(self.robot, end.q, dq), self._carried(end.v, dq)
            moved = self.evaluate(end.bound, end.t, q, v, end.deflection)
            left = largest_drift(moved.phi, moved.contact.gaps, held)
            if not left < 0.5 * drift:
                self.evaluate(end.bound, end.t, end.q, end.v, end.deflection)  # the work space is at this configuration
                break
            end, drift = moved, left
        if end is start:
            return end, 0.0
        return end, potential_energy(self.robot, end.q) - potential_energy(self.robot, start.q)

    def _carried(self, v: Array, dq: Array) -> Array:
        """Return `v` (nv,) after a displacement `dq` (nv,), which turns the axes of free-flyers but not their way."""
        carried = v.copy()
        for row in self.robot.free_joints[1]:
            carried[row : row + 3] = pin.exp3(dq[row + 3 : row + 6]).T @ v[row : row + 3]
        return carried

    @abstractmethod
    def step(
        self,
        start: Evaluation,
        efforts: Efforts,
        wrenches: tuple[Wrench, ...],
        solver: Solver,
        method: ContactMethod,
    ) -> StepOutcome:
        """Advance by dt.

        Args:
            start: the state at the beginning.
            efforts: of the actuators.
            wrenches: external forces during the step.
            solver: of the linear part.
            method: of the contact problem.

        Raises:
            ContactNotSolved: no contact method found a solution.
        """

    def run(
        self,
        start: Evaluation,
        law: JointFeedback,
        asked: tuple[int, int],
        tau: Array,
        wrenches: tuple[Wrench, ...],
        times: Array,
        solver: Solver,
        method: ContactMethod,
    ) -> Run | None:
        """Do the first of n steps at once, as many as this stepper can: as :meth:`step` does them, bit by bit.

        The stepper goes on from there once it is given the memory that comes with them.

        Args:
            start: the state at the beginning.
            law: gives the efforts, which are limited to those of the robot.
            asked: how many steps there are from one evaluation of `law` to the next, and to the first.
            tau: (nu,) efforts until then [N m, N].
            wrenches: external ones during all steps.
            times: (n + 1,) at which the steps begin, and the last one ends [s].
            solver: of the linear part.
            method: of the contact problem.

        Returns:
            What they gave; None if the first of them needs :meth:`step`.
        """
        return None

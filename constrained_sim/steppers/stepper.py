"""The contract of a stepper: one simulated step, from what is observed at its beginning to what it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.constraints.constraint import SupportsSome
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.dynamics.dynamics import Dynamics, integrate, potential_energy
from constrained_sim.exceptions import InvalidValue
from constrained_sim.impact import Impact, ImpactLaw, bouncing, impact_at
from constrained_sim.integrators import INTEGRATORS, Integrator
from constrained_sim.posture import JointFeedback
from constrained_sim.robot import Robot
from constrained_sim.solvers import RobotSystem, Solver
from constrained_sim.stabilization import Baumgarte, Projection, Stabilization
from constrained_sim.steppers.state_checks import LEVER, MOST_PROJECTIONS, largest_drift, largest_violation
from constrained_sim.validation import Array, read_only
from constrained_sim.wrench import Wrench

NO_CONTACT = np.empty(0, dtype=np.int64)


@dataclass(eq=False)
class Evaluation:
    """A state, and the constraints as they are there.

    Attributes:
        bound: the constraints.
        t: time [s].
        q: (nq,).
        v: (nv,).
        M: (nv, nv) inertia at q.
        frames: (r, 4, 3) rotation columns and translation of the free-flyers' frames, see ``Robot.free_joints``.
        contact: points, gaps and rows of the contacts.
        phi: (m,) violations of the bilateral rows.
        J_bilateral: (m, nv).
        s_bilateral: (m,).
        deflection: (soft, 2) of the springs of soft contacts along their surfaces [m].
        turning: (e, nv) rows in which contacts resist rolling and spinning.
    """

    bound: ConstraintSet
    t: float
    q: Array
    v: Array
    M: Array
    frames: Array
    contact: ContactGeometry
    phi: Array
    J_bilateral: Array
    s_bilateral: Array
    deflection: Array
    turning: Array

    @property
    def touching(self) -> npt.NDArray[np.intp]:
        """Contacts that are closed, and one-sided rows at their bound; ascending."""
        return np.flatnonzero(self.contact.gaps <= TOUCHING)

    def with_velocity(self, v: Array) -> Evaluation:
        """Return the same configuration at the velocity `v` (nv,); rows of bilateral constraints change by J."""
        return self.moving(v, self.contact.J @ v)

    def moving(self, v: Array, s: Array) -> Evaluation:
        """Return the same configuration at the velocity `v` (nv,), where contacts' rows have the velocities `s`."""
        s_bilateral = self.s_bilateral + self.J_bilateral @ (v - self.v) if self.s_bilateral.size else self.s_bilateral
        contact = self.contact._replace(s=s)
        rest = self.phi, self.J_bilateral, s_bilateral, self.deflection, self.turning
        return Evaluation(self.bound, self.t, self.q, read_only(v), self.M, self.frames, contact, *rest)

    @property
    def J_contact(self) -> Array:
        """(3 k + l + e, nv) rows of the contacts and one-sided rows, then those that turn."""
        return np.vstack([self.contact.J, self.turning]) if len(self.turning) else self.contact.J

    @property
    def largest_violation(self) -> tuple[float, float]:
        """The largest bilateral violation or depth of a contact [m, rad], and bilateral row velocity."""
        return largest_violation(self.phi, self.contact.gaps, self.s_bilateral)

    def mean_axes(self, start: Evaluation) -> Array:
        """Return (k, 3, 3) the means of the axes of contacts here and at the `start`."""
        return 0.5 * (start.contact.axes + self.contact.axes)

    def deflection_in(self, bound: ConstraintSet) -> Array:
        """Return the springs (soft, 2) for another set of constraints: those of contacts that are in both."""
        mine, theirs = self.bound.contacts, bound.contacts
        known = {mine.members[i].name: deflection for i, deflection in zip(mine.soft, self.deflection, strict=True)}
        found = [known.get(theirs.members[i].name, np.zeros(2)) for i in theirs.soft]
        return np.array(found).reshape(-1, 2)


@dataclass(eq=False)
class StepOutcome:
    """What one step gave.

    Attributes:
        end: the new state, observed.
        a: (nv,) mean acceleration over the step, the jumps of impacts excluded.
        lam: (rows,) mean constraint and contact forces [N, N m], impulses of impacts excluded.
        axes: (k, 3, 3) rows t1, t2, n along which those of the contacts act: means of the axes at both ends.
        dry_friction: (nv,) mean effort of dry joint friction [N m, N].
        status: (k + l,) of the contacts and one-sided rows: 0 open, 1 sticking, 2 sliding.
        impacts: in the order of time.
        energy: (9,) terms of the audit, in the order of :class:`~constrained_sim.energy.EnergyTerms`.
        motion: solution of the step's problem, with residuals.
        moments: (e,) mean moments by which contacts resist rolling and spinning [N m].
        damped_velocity: (nv,) at which the damping of joints and of their feedback acted, mean over the step.
    """

    end: Evaluation
    a: Array
    lam: Array
    axes: Array
    dry_friction: Array
    status: npt.NDArray[np.int64]
    impacts: tuple[Impact, ...]
    energy: Array
    motion: ConstrainedSolution
    moments: Array
    damped_velocity: Array

    @property
    def residuals(self) -> tuple[float, float, float]:
        """Relative residuals: of the equation of motion, of the bilateral rows, of the contact problem."""
        motion = self.motion
        contact = motion.contact.residual if motion.contact is not None else 0.0
        return motion.dynamics_residual, motion.constraint_residual, contact


class Run(NamedTuple):
    """What n steps gave, a row for each; see :class:`StepOutcome`.

    Attributes:
        end: the state after the last of them.
        memory: of the stepper there.
        q: (n, nq) at the end of each.
        v: (n, nv) at the end of each.
        tau: (n, nu) efforts, within the limits [N m, N].
        lam: (n, rows) mean constraint and contact forces [N, N m].
        axes: (n, k, 3, 3) along which those of the contacts act.
        energy: (n, 9) terms of the audit.
        moments: (n, e) mean moments by which contacts resist rolling and spinning [N m].
        may_go_on: whether the next step may be done in the same way; else it needs :meth:`Stepper.step`.
    """

    end: Evaluation
    memory: Any
    q: Array
    v: Array
    tau: Array
    lam: Array
    axes: Array
    energy: Array
    moments: Array
    may_go_on: bool = False


class Stepper(SupportsSome, ABC):
    """Advances a robot by steps of dt.

    Attributes:
        default_integrator: name of the integrator that it takes unless told otherwise.
        does_feedback: whether it can remove drift by Baumgarte's feedback.
        bounce_velocity: approach speed [m/s, rad/s] below which restitution counts as 0: so bounces end in contact.
        memory: what a step takes over from the one before; set again, it makes a step that failed undone.
    """

    role = "stepper"
    default_integrator: str
    does_feedback = True
    bounce_velocity: float
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

    @classmethod
    def takes(cls, integrator: Integrator) -> bool:
        """Return whether this stepper can use `integrator`."""
        return True

    def reset(self, bound: ConstraintSet, t: float, q: Array, v: Array, deflection: Array | None = None) -> Evaluation:
        """Forget the past and evaluate (q, v) at time `t`, with springs (soft, 2) of soft contacts; None: relaxed."""
        self._forget()
        return self.evaluate(bound, t, q, v, deflection)

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
        return Evaluation(
            bound,
            t,
            read_only(q),
            read_only(v),
            here.M.copy(),
            here.placements[self.robot.free_joints[0]],
            contact,
            bound.bilateral.phi(here),
            bound.bilateral.jacobian(here),
            bound.bilateral.velocity(here, v, t),
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

    def collide(self, here: Evaluation, closing: npt.NDArray[np.intp], solver: Solver, method: ContactMethod) -> Impact:
        """Resolve an impact as :meth:`impact` does, after which contacts faster than :attr:`bounce_velocity` bounce."""
        law = ImpactLaw(bouncing(here.bound, closing, here.contact.s_normal, self.bounce_velocity))
        return self.impact(here, closing, solver, method, law)

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
        motion, or be farther away after it: contacts are left as they are then, as is what a step does not halve.

        Args:
            projection: how.
            end: the state, last observed by this stepper.
            solver: of the linear problem.
            held: contacts whose gap is to vanish.
            rows: rows of all contacts, then those that turn, whose position is to stay.

        Returns:
            The state there, and the potential energy [J] that this brings in.
        """
        start, drift = end, largest_drift(end.phi, end.contact.gaps, held)
        for _ in range(MOST_PROJECTIONS):
            if drift <= projection.position_tolerance:
                break
            J = end.J_contact
            gaps = np.zeros(len(J))
            gaps[end.contact.normals] = end.contact.gaps
            system = RobotSystem(self._here, end.J_bilateral, end.bound.bilateral.members)
            dq = projection.tangent_step(solver, system, end.phi, J[rows], gaps[rows])
            if held.size and np.abs(dq).max() > LEVER * drift:
                break
            moved = self.evaluate(end.bound, end.t, integrate(self.robot, end.q, dq), end.v, end.deflection)
            left = largest_drift(moved.phi, moved.contact.gaps, held)
            if not left < 0.5 * drift:
                self.evaluate(end.bound, end.t, end.q, end.v, end.deflection)  # the work space is at this configuration
                break
            end, drift = moved, left
        if end is start:
            return end, 0.0
        return end, potential_energy(self.robot, end.q) - potential_energy(self.robot, start.q)

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
        loads: tuple[Array, tuple[Wrench, ...]],
        steps: int,
        solver: Solver,
        method: ContactMethod,
    ) -> Run | None:
        """Do the first of `steps` steps at once, as many as this stepper can: as :meth:`step` does them, bit by bit.

        The stepper goes on from there once it is given the memory that comes with them.

        Args:
            start: the state at the beginning.
            law: gives the efforts, which are limited to those of the robot.
            asked: how many steps there are from one evaluation of `law` to the next, and to the first.
            loads: (nu,) efforts until then [N m, N], and external wrenches during all steps.
            steps: at most so many.
            solver: of the linear part.
            method: of the contact problem.

        Returns:
            What they gave; None if the first of them needs :meth:`step`.
        """
        return None

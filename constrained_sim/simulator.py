"""Simulator: owns a robot, its constraints and its state, and the order in which things happen."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from constrained_sim.actuators import Actuators, Command
from constrained_sim.collision.detector import Collisions
from constrained_sim.constraint_manager import ConstraintManager
from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.dynamics.dynamics import potential_energy
from constrained_sim.energy import EnergyTerms
from constrained_sim.exceptions import (
    ContactNotSolved,
    InvalidValue,
    LightJoint,
    NonFiniteMotion,
    NonFiniteState,
    NotSupported,
    listed,
)
from constrained_sim.impact import Impact
from constrained_sim.integrators import INTEGRATORS
from constrained_sim.late_imports import call_late
from constrained_sim.linalg.blas_threads import single_threaded_blas
from constrained_sim.objects.combined_robot import can_act, carried_over, kept_objects
from constrained_sim.objects.world_object import WorldObject
from constrained_sim.optional import optional
from constrained_sim.posture import JointFeedback, Posture, no_feedback
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.servo import JointTargets
from constrained_sim.solvers import DEFAULT, Solver, System, as_solver
from constrained_sim.stabilization import Projection, Stabilization
from constrained_sim.state import State
from constrained_sim.step_result import StepResult
from constrained_sim.steppers import STEPPERS, Evaluation, StepOutcome, Stepper
from constrained_sim.steppers.state_checks import are_finite
from constrained_sim.trajectory import Setup, Trajectory
from constrained_sim.trajectory_builder import TrajectoryBuilder
from constrained_sim.user_functions import ask_user, is_of_user
from constrained_sim.user_warnings import warn
from constrained_sim.validation import (
    Array,
    finite_array,
    flag,
    function,
    instance,
    known,
    lookup,
    number,
    read_only,
)
from constrained_sim.wrench import Wrench, checked_wrenches

if TYPE_CHECKING:
    from constrained_sim.viewer.shown_page import ShownPage

Controller = Callable[[float, Array, Array], Any]

MOST_STEPS = 1e15
"""In one run; time is exact in steps up to there."""

MOST_REPEATED = 3
"""Times that a step is done again with contacts which showed at its end only; each may lead to further ones."""

MOST_DELAYED = 1_000_000
"""Steps that a command may be delayed."""

MOST_AT_ONCE = 1000
"""Steps in one go of compiled code: so often a progress bar moves on, and an interrupt is heard."""

MULTIPLE_ERROR = 1e-9
"""Relative error up to which a time is a multiple of dt: both are rounded."""

LIGHT = 1e-8
"""Share of a joint's inertia below which the user is warned; robots in use have 1e-5 and more in every posture."""

NO_MOTION = ContactNotSolved, NonFiniteMotion, ArithmeticError, np.linalg.LinAlgError
"""Errors of a step for which there is no finite motion: our own, and those of libraries for what has overflown."""


class Simulator:
    """Simulates one robot.

    ``copy.deepcopy`` gives a simulation of the same state that goes on by itself, as the rollouts of a predictive
    controller need it; it shares the robot and what is loaded from meshes. Pickled, it goes on in another process.

    Attributes:
        robot: the robot.
        steps: number of steps since the last reset.
        early_impacts: contacts that took part in impacts before they touched, since the last reset: with very many in
            one step, the last are not waited for.
    """

    # So that `sim.q = q`, which would do nothing, is refused.
    __slots__ = (
        *("robot", "steps", "early_impacts", "_dt", "_start_time", "_initial_velocity", "_initial_energy"),
        *("_actuators", "_manager", "_stepper", "_solver", "_method", "_applied", "_energy", "_begun", "__weakref__"),
    )

    def __init__(
        self,
        robot: Robot,
        constraints: Iterable[Constraint] = (),
        stepper: str = "time_stepping",
        solver: str | Solver = DEFAULT,
        dt: float = 1e-3,
        integrator: str | None = None,
        stabilization: Stabilization | None = None,
        contact_method: str = "newton",
        contact_tolerance: float = 0.0,
        position_tolerance: float = 1e-4,
        command_delay: float = 0.0,
        velocity_limits: bool = False,
        collisions: Collisions | None = None,
        q: Any = None,
        v: Any = None,
    ) -> None:
        """Set up a simulation that begins at (q, v).

        Args:
            robot: the robot.
            constraints: bilateral constraints and contacts, active from the beginning.
            stepper: a name in ``STEPPERS``.
            solver: a name in ``SOLVERS``, or a configured solver.
            dt: step [s].
            integrator: a name in ``INTEGRATORS``; None: the stepper's own choice (midpoint; rk4 of ``smooth``).
            stabilization: how drift is removed; None: projection in the metric of the kinetic energy. Baumgarte's
                feedback only with ``smooth`` and ``event_driven``.
            contact_method: ``newton``, ``interior_point``, ``continuation``, ``pivoting``, ``gauss_seidel`` or
                ``admm``; it comes first.
            contact_tolerance: error of contact impulses that is good enough [N s]; 0: rounding.
            position_tolerance: [m, rad] by how much a constraint may be violated when it is added.
            command_delay: time from an effort's command to its effect [s], a multiple of dt; no effort before.
            velocity_limits: apply no effort that drives a joint on beyond its velocity limit.
            collisions: what the robot's collision geometry may touch; its contacts are found anew at every step. None:
                nothing; of a robot with objects beside it, these and the robot touch each other.
            q: (nq,) configuration; None: :meth:`reset` will say. If the state is used before, it is the neutral one; a
                robot with constraints of its own begins where these hold, nearest to neutral.
            v: (nv,) velocity; None: at rest.

        Raises:
            UnknownName: a name that does not exist.
            InvalidValue: a value that is not allowed.
            DuplicateName: two constraints of one name.
            ViolatedConstraint: a constraint that does not hold at q. Without q, the first use of the state raises this.
        """
        self.robot = checked_robot(robot)
        self._dt = number("dt", dt, 0.0, open_lower=True)
        tolerance = number("position_tolerance", position_tolerance, 0.0)
        delay = self._multiple_of_dt("command_delay", command_delay, MOST_DELAYED)
        self._actuators = Actuators(robot, flag("velocity_limits", velocity_limits), delay)
        self._manager = ConstraintManager(robot, constraints, collisions, tolerance)
        self._stepper = self._make_stepper(stepper, integrator, stabilization)
        self.set_solver(solver)
        self._method = ContactMethod(contact_method, contact_tolerance)
        self._applied: list[tuple[Wrench, int]] = []
        self._start_time, self.steps, self.early_impacts = 0.0, 0, 0
        self._energy = EnergyTerms().as_array()
        self._begun: Evaluation | None = None
        self._initial_velocity = np.zeros(robot.nv) if v is None else finite_array("v", v, (robot.nv,))
        if q is None:
            self._manager.bind(robot.neutral(), self.constraints)  # names that do not exist are refused now
        else:
            self.reset(q, v)

    def __copy__(self) -> Simulator:
        """Return what ``copy.deepcopy`` does: half of a simulator is none."""
        return copy.deepcopy(self)

    @property
    def dt(self) -> float:
        """Step [s]; that of a simulation stays as it is."""
        return self._dt

    @property
    def velocity_limits(self) -> bool:
        """Whether no effort drives a joint on beyond its velocity limit."""
        return self._actuators.velocity_limits

    @property
    def _evaluation(self) -> Evaluation:
        """The present state; of a simulation that nobody told where to begin, neutral from the first use on.

        Raises:
            ViolatedConstraint: a constraint that does not hold there.
        """
        return self._begin_at_neutral() if self._begun is None else self._begun

    @_evaluation.setter
    def _evaluation(self, here: Evaluation) -> None:
        self._begun = here

    @property
    def state(self) -> State:
        """The present state."""
        return State(self._time_after(self.steps), self._evaluation.q, self._evaluation.v)

    def _time_after(self, steps: int) -> float:
        """Return the time [s] so many steps after the last reset; a sum of steps would drift from it."""
        return self._start_time + steps * self.dt

    @property
    def energy(self) -> EnergyTerms:
        """Sum of the energy terms since the last reset."""
        return EnergyTerms(*self._energy.tolist())

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What is active, in the order of declaration; detected contacts are not declared."""
        return self._manager.enabled

    @property
    def disabled(self) -> tuple[Constraint, ...]:
        """What is switched off, in the order of declaration."""
        return self._manager.disabled

    @property
    def collisions(self) -> Collisions | None:
        """What the robot's collision geometry may touch; None: nothing."""
        return self._manager.collisions

    @property
    def position_tolerance(self) -> float:
        """[m, rad] by how much a constraint may be violated when it is added."""
        return self._manager.tolerance

    @property
    def solver(self) -> Solver:
        """The solver in use."""
        return self._solver

    @property
    def stepper_name(self) -> str:
        """Name of the stepper."""
        return self._stepper.name

    @property
    def integrator_name(self) -> str:
        """Name of the integrator."""
        return self._stepper.integrator.name

    @property
    def contact_method(self) -> str:
        """Method that contact problems try first."""
        return self._method.name

    def set_solver(self, solver: str | Solver, **options: Any) -> None:
        """Use another solver from the next step on; this changes rounding only.

        Args:
            solver: a name in ``SOLVERS``, or a configured solver.
            options: of a solver that is named, such as ``factorization``.

        Raises:
            UnknownName: no such solver or factorization.
            InvalidValue: an option that the solver does not have.
            NotSupported: a constraint that the solver cannot do.
            MissingLibrary: an optional library that the solver needs.
        """
        solver = as_solver(solver, **options)
        self.check_solver(solver)
        self._solver = solver

    def check_solver(self, solver: Solver) -> None:
        """Refuse a solver that cannot do what is declared.

        Raises:
            NotSupported: a constraint, or dry joint friction, that it cannot do.
        """
        instance("solver", solver, Solver, "a configured solver, as make_solver returns it").check(self._manager.kinds)
        solver.check_robot(self.robot)

    def set_contact_method(self, name: str, tolerance: float | None = None) -> None:
        """Use another contact method from the next step on.

        Args:
            name: ``newton``, ``interior_point``, ``continuation``, ``pivoting``, ``gauss_seidel`` or ``admm``; it comes
                first.
            tolerance: error of impulses that is good enough [N s]; None: as it is.

        Raises:
            UnknownName: no such method.
            InvalidValue: a negative tolerance.
        """
        self._method = ContactMethod(name, self._method.tolerance if tolerance is None else tolerance)

    def set_stepper(self, name: str, integrator: str | None = None, stabilization: Stabilization | None = None) -> None:
        """Use another stepper from the next step on; the state stays as it is.

        Args:
            name: in ``STEPPERS``.
            integrator: a name in ``INTEGRATORS``; None: the present one if the stepper is the same, else its own.
            stabilization: how drift is removed; None: the present one if the stepper is the same, else projection.

        Raises:
            UnknownName: no such stepper or integrator.
            InvalidValue: an integrator or stabilization that the stepper cannot use.
            NotSupported: a constraint that the stepper cannot do.
        """
        if known("stepper", name, STEPPERS) == self._stepper.name:
            integrator = self._stepper.integrator.name if integrator is None else integrator
            stabilization = self._stepper.stabilization if stabilization is None else stabilization
        stepper = self._make_stepper(name, integrator, stabilization)
        if (here := self._begun) is not None:
            self._evaluation = stepper.reset(here.bound, self.state.t, here.q, here.v, here.deflection)
        self._stepper = stepper

    def reset(self, q: Any = None, v: Any = None, t: float = 0.0, assemble: bool = False) -> None:
        """Start anew at (q, v); None: neutral, at rest. Targets "where it is now" are resolved again.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity. What bilateral constraints forbid of it is gone at the beginning of the first step, by an
                impact of the constraints and the closed contacts: ``event_driven`` and ``smooth`` report it as such,
                time stepping as a force of 1 / dt; Baumgarte's feedback takes it away in its own time. With `assemble`
                it is gone before.
            t: time [s].
            assemble: move q so that all bilateral constraints hold, and v to what they allow.

        Raises:
            InvalidValue: wrong length, NaN or infinity.
            ViolatedConstraint: a constraint that does not hold at q, or cannot be assembled from there.

        Warns:
            LightJoint: a joint that moves next to no inertia at q.
            NothingCollides: a scene, but no collision geometry.
        """
        q = self.robot.neutral() if q is None else self.robot.checked_configuration(q)
        v = np.zeros(self.robot.nv) if v is None else finite_array("v", v, (self.robot.nv,))
        bound, t = self._manager.bind(q, self.constraints), number("t", t)
        if flag("assemble", assemble):
            q = self._manager.assembled(bound, q, t)
        self._manager.check_violations(bound, q, t, bound.slices)
        self._manager.check_collisions(q, t)
        if assemble and bound.bilateral.dim:
            v = self._jump_onto(self._stepper.evaluate(bound, t, q, v)).v_plus
        here = self._stepper.reset(bound, t, q, v)
        self._start_time, self.steps, self.early_impacts = t, 0, 0
        self._energy = EnergyTerms().as_array()
        self._applied.clear()
        self._actuators.reset()
        self._evaluation = here
        self._manager.remember_targets(q)
        self._initial_energy = self.mechanical_energy()
        self._warn_of_light_joint()
        self._manager.warn_of_missing_geometry()

    def add(self, constraint: Constraint, assemble: bool = False, enabled: bool = True) -> Impact | None:
        """Make a constraint or contact active from now on.

        A bilateral constraint on a moving robot is an impact at this instant, which is returned; a contact acts from
        the next step on.

        Args:
            constraint: what to add.
            assemble: first move the configuration so that it and all other bilateral constraints hold.
            enabled: switch it on; else :meth:`enable` does so later.

        Raises:
            DuplicateName: the name is taken.
            InvalidValue: a name that a detected contact may have.
            UnknownName: a link that the robot does not have.
            NotSupported: the solver or the stepper cannot do it.
            ViolatedConstraint: it does not hold here and cannot be assembled, or the contact starts too deep.
            ContactNotSolved: the impact could not be solved.
        """
        instance("constraint", constraint, Constraint, "an instance of a class in CONSTRAINTS")
        assemble, enabled = flag("assemble", assemble), flag("enabled", enabled)
        self._manager.check_name(constraint.name)
        self._solver.check([constraint])
        self._stepper.check([constraint])
        impact = None
        if enabled:
            impact = self._activate(constraint, assemble)
        else:
            constraint.bind(self.robot, self._evaluation.q)  # names that do not exist are refused now
        self._manager.declare(constraint, enabled)
        return impact

    def remove(self, name: str) -> None:
        """Take a constraint or contact away; the state stays as it is.

        Args:
            name: of the constraint or contact.

        Raises:
            UnknownName: with the names that exist.
        """
        self._manager.named(name)
        self._deactivate(name)
        self._manager.forget(name)

    def enable(self, name: str, on: bool = True) -> Impact | None:
        """Switch a constraint or contact on or off; off, it keeps its name and its place and does nothing.

        Switching on is what :meth:`add` is: the constraint must hold here, a target "where it is now" is taken here,
        and a bilateral constraint on a moving robot is an impact. Off, the state stays as it is.

        Raises:
            UnknownName: with the names that exist.
            ViolatedConstraint: it does not hold here.
            ContactNotSolved: the impact could not be solved.
        """
        constraint, impact = self._manager.named(name), None
        if flag("on", on) and not self._manager.is_enabled(name):
            impact = self._activate(constraint, False)
        elif not on:
            self._deactivate(name)
        self._manager.switch(name, on)
        return impact

    def with_objects(self, objects: Iterable[WorldObject]) -> Simulator:
        """Return a simulation that goes on from here with these objects beside the robot, and no others.

        An object that is here already stays as it is, one that is new begins where it says, at rest. Its own
        constraints come with it; all that is called ``OBJECT/...`` goes with it. All else is kept:
        time, steps, the state of the robot, constraints and contacts with their targets, solver and stepper, commands
        that are delayed, wrenches that are applied, the audit of the energy. The stepper forgets the past, as after a
        change of constraints: so one of the same state from which all objects were taken away goes on like one that
        never had any. This simulation stays as it is.

        Raises:
            ViolatedConstraint: a new object is in something else.
            InvalidValue: a constraint or contact is on an object that is to go.
            DuplicateName, ModelError: see :meth:`Robot.with_objects <constrained_sim.Robot.with_objects>`.
        """
        before, state = self.robot, self.state
        robot = before.with_objects(objects)
        kept = kept_objects(before, robot)
        new = [entry.name for entry in robot.objects if entry.name not in kept]
        sim = Simulator(
            robot,
            stepper=self.stepper_name,
            solver=self._solver,
            dt=self.dt,
            integrator=self.integrator_name,
            stabilization=self._stepper.stabilization,
            contact_method=self._method.name,
            contact_tolerance=self._method.tolerance,
            position_tolerance=self.position_tolerance,
            command_delay=self._actuators.delay * self.dt,
            velocity_limits=self.velocity_limits,
            collisions=self._manager.given_collisions,
        )
        bound = sim._manager.take_over(self._manager, new, state.q, state.v)
        q, v = carried_over(before, robot, state.q, state.v)
        sim._manager.check_violations(bound, q, state.t, [name for name in bound.slices if robot.owner_of(name) in new])
        sim._manager.check_collisions(q, state.t, new)
        sim._evaluation = sim._stepper.reset(bound, state.t, q, v, self._evaluation.deflection_in(bound))
        sim._start_time, sim.steps, sim.early_impacts = self._start_time, self.steps, self.early_impacts
        sim._energy = self._energy.copy()
        sim._initial_energy = self._initial_energy + sim.mechanical_energy() - self.mechanical_energy()
        sim._applied = [(wrench, end) for wrench, end in self._applied if can_act(wrench, robot)]
        sim._actuators.take_over(self._actuators)
        return sim

    def apply(self, wrench: Wrench, duration: float) -> None:
        """Let an external wrench act from now on for `duration` [s], in whole steps, at least one.

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidValue: no wrench, or a duration that is negative or not finite.
        """
        (wrench,) = checked_wrenches([wrench])
        self.robot.link_placement(wrench.link), self.robot.link_placement(wrench.axes)
        count = max(1, self._steps_in("duration", duration))
        if self._begun is None:
            self._begin_at_neutral()
        self._applied.append((wrench, self.steps + count))

    def step(self, tau: Any = None, wrenches: Iterable[Wrench] = ()) -> StepResult:
        """Advance by dt.

        Args:
            tau: (nu,) efforts of ``robot.actuated_joints`` [N m, N], limited to the effort limits; or targets that a
                :class:`~constrained_sim.servo.Servo` follows; None: zero. With a command delay, what acts now is what
                was passed so much earlier.
            wrenches: external wrenches during this step, beside those given to :meth:`apply`.

        Raises:
            InvalidValue: tau of wrong length, NaN or infinity; nothing has changed.
            NonFiniteState: the step gave a state that is not finite, or a contact problem that could not be solved;
                the state before it is kept.
            ConstrainedSimError: what a custom constraint returned is not allowed; nothing has changed. What a function
                of the user's raises comes out as it is.

        Warns:
            WrongDerivative: at the first step, functions of a constraint that contradict each other.
        """
        commanded = self._actuators.checked(tau)
        acting = (*checked_wrenches(wrenches), *(wrench for wrench, _ in self._applied))
        here = self._evaluation = self._with_detected()
        if self._manager.has_unchecked(here.bound):
            self._manager.check_user_code(here.bound, self.state)
        memory = self._stepper.memory
        try:
            outcome, given = self._step_into_contacts(here, self._actuators.after_delay(commanded), acting)
        except BaseException as error:  # an interrupt too
            self._stepper.memory = memory
            is_ours = not is_of_user(error) and not isinstance(error, InvalidValue | NotSupported)
            if isinstance(error, NO_MOTION) and is_ours:
                raise NonFiniteState(self.steps, self.state.t, f"{error}{self._before(error)}") from error
            raise
        self.steps += 1
        self._evaluation = outcome.end.at_time(self._time_after(self.steps))
        self._actuators.advance(commanded)
        self._drop_ended()
        self._energy += outcome.energy
        self.early_impacts += sum(impact.early for impact in outcome.impacts)
        return StepResult(
            self.state, read_only(outcome.a), read_only(given), outcome, acting, self.dt, self.robot, self.collisions
        )

    def _before(self, error: Exception) -> str:
        """Return what the state before a step that failed tells: what touched, and what was fastest.

        The largest velocity is often that of what is to blame.
        """
        here, told = self._evaluation, ""
        if isinstance(error, ContactNotSolved):
            contact, names = here.contact, here.bound.contacts.names
            meets = contact.gaps <= TOUCHING - self.dt * np.minimum(contact.s_normal, 0.0)
            told += f"; contacts and limits there: {listed(names[i] for i in np.flatnonzero(meets))}"
            told += f"; bilateral constraints: {listed(member.name for member in here.bound.bilateral.members)}"
        if here.v.any():
            fastest = int(np.abs(here.v).argmax())
            told += (
                f"; the largest velocity before it is {here.v[fastest]:.4g} of {self.robot.velocity_names[fastest]!r}"
            )
        return told

    def _drop_ended(self) -> None:
        """Forget the wrenches that have acted for as long as they were to."""
        self._applied = [(wrench, end) for wrench, end in self._applied if end > self.steps]

    def _step_into_contacts(
        self, here: Evaluation, command: Command, acting: tuple[Wrench, ...]
    ) -> tuple[StepOutcome, Array]:
        """Return a step and its efforts, done again with the contacts that only its end shows.

        Raises:
            NonFiniteMotion: the state at its end is not finite.
        """
        begin, memory = _state_of(here), self._stepper.memory
        for may_repeat in reversed(range(MOST_REPEATED + 1)):
            outcome, given = self._step_within_limits(here, command, acting)
            if self.collisions is None or not may_repeat:
                break
            bound = self._manager.with_missed(here.bound, begin, _state_of(outcome.end), self.dt)
            if bound is here.bound:
                break
            self._stepper.memory, here = memory, self._under(self._evaluation, bound)
        return outcome, given

    def _step_within_limits(
        self, here: Evaluation, command: Command, acting: tuple[Wrench, ...]
    ) -> tuple[StepOutcome, Array]:
        """Return a step, and the (nu,) mean efforts of the actuators [N m, N].

        Raises:
            NonFiniteMotion: the state at its end is not finite.
        """
        actuators, memory = self._actuators, self._stepper.memory
        law, tries = actuators.efforts(command, here.q, here.v, self.dt), 0
        efforts = actuators.first_try(law, here.v) if isinstance(command, JointFeedback) else law
        while True:
            outcome = self._stepper.step(here, efforts, acting, self._solver, self._method)
            if not are_finite(outcome.end.q, outcome.end.v):
                raise NonFiniteMotion("the equations of motion gave NaN or infinity")
            if not isinstance(command, JointFeedback):
                return outcome, efforts.constant
            rates = outcome.damped_velocity[self.robot.actuation]
            other = actuators.within_limits(law, efforts, rates, here.v, tries)
            if other is None:
                return outcome, efforts.at(rates)
            self._stepper.memory, efforts, tries = memory, other, tries + 1

    def run(
        self,
        duration: float,
        controller: Controller | None = None,
        sample_period: float | None = None,
        progress: bool = False,
    ) -> Trajectory:
        """Simulate for `duration` [s].

        Under a :class:`~constrained_sim.posture.Posture`, or without a controller, many steps are done in compiled code
        at once, past :meth:`step`, where they can be: with ``time_stepping``, projection in the metric of the kinetic
        energy, contacts and bilateral constraints; without custom constraints, force laws of yours, collision geometry,
        command delay and velocity limits; with ``direct`` (LU), ``range_space`` or ``null_space``; and while contacts
        do not slide, unless ``newton`` is the contact method. Targets that are functions of time are evaluated some
        steps in advance: they must depend on nothing else. What comes out is the same, bit by bit. BLAS has one thread
        meanwhile, see :func:`~constrained_sim.linalg.blas_threads.single_threaded_blas`.

        Args:
            duration: in whole steps, to the nearest one.
            controller: ``controller(t, q, v) -> tau``, (nu,) or targets of a :class:`~constrained_sim.servo.Servo`, as
                :meth:`step` takes them; None: zero efforts.
            sample_period: how often the controller is asked [s], a multiple of dt; None: every step.
            progress: show a progress bar on the standard error stream.

        Raises:
            InvalidValue: a duration or period that is not allowed, or what the controller returned.
            NonFiniteState: see :meth:`step`.
            MissingLibrary: the one that shows progress bars.

        Whatever ends a run early, an exception of the controller or Ctrl-C too, has the run until then as its attribute
        ``trajectory``.
        """
        count = self._steps_in("duration", duration)
        if duration and not count:
            raise InvalidValue("duration", duration, f"0, or more than half a step (dt = {self.dt})")
        every = 1 if sample_period is None else self._multiple_of_dt("sample_period", sample_period)
        if not every:
            raise InvalidValue("sample_period", sample_period, "a positive multiple of dt")
        with contextlib.ExitStack() as stack:
            stack.enter_context(single_threaded_blas())
            report: Callable[[int], None] = lambda done: None  # noqa: E731
            if flag("progress", progress):
                console = optional("rich.console", "a progress bar").Console(stderr=True)
                bar = optional("rich.progress", "a progress bar").Progress(transient=True, console=console)
                stack.enter_context(bar)
                task = bar.add_task("simulating", total=count)
                report = lambda done: bar.update(task, completed=done)  # noqa: E731
            return self._run(count, controller, every, report)

    def view(self, controller: Controller | None = None, port: int = 8080) -> ShownPage:
        """Simulate in real time on a page of the browser, on this machine only; it begins paused.

        Until ``close()`` of the page, which is returned, the simulator belongs to it.

        Args:
            controller: ``controller(t, q, v) -> tau``; None: no efforts but those of the page's sliders.
            port: of the page, or the next one that is free.

        Raises:
            InvalidValue: no function, or no port.
            MissingLibrary: the one that shows it.
        """
        page: ShownPage = call_late("view_simulator", self, controller, port)
        return page

    def _run(self, count: int, controller: Controller | None, every: int, report: Callable[[int], None]) -> Trajectory:
        """Do `count` steps, see :meth:`_do_steps`; what ends them early gets what was done as its ``trajectory``."""
        run = TrajectoryBuilder(self.robot)
        try:
            self._do_steps(count, controller, every, run, report)
        except BaseException as error:
            vars(error)["trajectory"] = run.built(self._setup)
            raise
        return run.built(self._setup)

    @property
    def _setup(self) -> Setup:
        return Setup(self.robot, tuple(self._manager.declared.values()), self.collisions)

    def _do_steps(
        self,
        count: int,
        controller: Controller | None,
        every: int,
        run: TrajectoryBuilder,
        report: Callable[[int], None],
    ) -> None:
        """Do `count` steps of a `run`; ask the controller in each one of `every`, and `report` how many are done."""
        if isinstance(controller, Posture):
            suited = controller.of(self.robot)
            controller = suited if type(controller) is Posture else controller  # one of the user's may remember
        law = self._feedback(controller)
        tau: Any = np.zeros(self.robot.nu)  # or targets, never where a law is compiled
        done, may_compile = 0, True
        while done < count:
            most, compiled = min(count - done, MOST_AT_ONCE, *(end - self.steps for _, end in self._applied)), None
            if law is not None and may_compile:
                compiled = self._run_compiled(law, (every, -done % every), tau, most)
            may_compile = True
            if compiled is not None:
                part, may_compile = compiled
                run.add_part(part)
                tau = part.tau[-1]
                done += len(part.t)
            else:
                if controller is not None and done % every == 0:
                    tau = self._commanded_by(controller)
                run.add_step(self.step(tau))
                done += 1
            report(done)

    def _commanded_by(self, controller: Controller) -> Array | JointTargets:
        """Return what a controller commands now.

        Raises:
            InvalidValue: something else; says when.
        """
        now = self.state
        tau = ask_user(controller, now.t, now.q, now.v)
        if isinstance(tau, JointTargets):
            return tau
        try:
            return self.robot.clamp(tau)
        except InvalidValue as error:
            raise InvalidValue(f"{error.what} at t = {now.t:.9g} s", tau, error.allowed) from None

    def _feedback(self, controller: Controller | None) -> JointFeedback | None:
        """Return what compiled steps may evaluate in place of `controller`; None where only the controller will do."""
        if controller is None:
            return no_feedback(self.robot.nu)
        function("controller", controller, "controller(t, q, v) -> tau")
        if not isinstance(controller, Posture):
            return None
        return controller.law if type(controller) is Posture else None

    def _run_compiled(
        self, law: JointFeedback, asked: tuple[int, int], tau: Array, steps: int
    ) -> tuple[Trajectory, bool] | None:
        """Do as many of `steps` steps as the stepper can at once; None if the first of them needs :meth:`step`.

        Returns:
            What they gave, and whether the stepper may go on in the same way.
        """
        here, manager = self._evaluation, self._manager
        if self.collisions is not None or not self._actuators.is_direct or manager.has_unchecked(here.bound):
            return None
        wrenches = tuple(wrench for wrench, _ in self._applied)
        times: Array = self._start_time + np.arange(self.steps, self.steps + steps + 1, dtype=np.float64) * self.dt
        run = self._stepper.run(here, law, asked, tau, wrenches, times, self._solver, self._method)
        if run is None:
            return None
        done = len(run.q)
        energy = np.add.accumulate(np.vstack([self._energy, run.energy]))[-1]
        trajectory = Trajectory.from_run(run, times[1 : done + 1].copy())
        self._stepper.memory = run.memory
        self._evaluation, self.steps, self._energy = run.end, self.steps + done, energy
        self._drop_ended()
        return trajectory, run.may_go_on

    def kinetic_energy(self) -> float:
        """Return the kinetic energy [J]."""
        here = self._evaluation
        return 0.5 * float(here.v @ here.M @ here.v)

    def mechanical_energy(self) -> float:
        """Return kinetic plus potential energy [J]."""
        return self.kinetic_energy() + potential_energy(self.robot, self._evaluation.q)

    def integration_energy(self) -> float:
        """Return the energy [J] since the last reset that no cause accounts for: the error of the integrator."""
        terms = self.energy
        causes = (
            terms.actuators + terms.external + terms.damping + terms.contacts + terms.constraints + terms.projection
        )
        return self.mechanical_energy() - self._initial_energy - causes + terms.impact_losses

    def active_rows(self) -> tuple[int, int]:
        """Return how many rows are bilateral or belong to a contact that touches, and how many are independent."""
        here = self._evaluation
        touching = here.touching
        J = np.vstack([here.J_bilateral, here.contact.J[here.bound.contacts.rows_of(touching)]])
        return len(J), System(here.M, J, self.robot.inertia_parents).row_space.rank

    def largest_violation(self) -> tuple[float, float]:
        """Return the largest bilateral violation or depth of a contact [m, rad], and bilateral row velocity."""
        return self._evaluation.largest_violation

    def _make_stepper(self, name: str, integrator: str | None, stabilization: Stabilization | None) -> Stepper:
        kind = lookup("stepper", name, STEPPERS)
        scheme = lookup("integrator", kind.default_integrator if integrator is None else integrator, INTEGRATORS)()
        stepper = kind(self.robot, self.dt, scheme, Projection() if stabilization is None else stabilization)
        stepper.check(self._manager.kinds)
        return stepper

    def _activate(self, constraint: Constraint, assemble: bool) -> Impact | None:
        """Put a constraint into effect at the present state, whole or not at all."""
        here, name = self._evaluation, constraint.name
        state = self.state
        bound = self._manager.with_one(here.bound, constraint, here.q)
        q = self._manager.assembled(bound, here.q, state.t) if assemble else here.q
        self._manager.check_violations(bound, q, state.t, bound.slices if assemble else [name])
        before, v, impact = self.mechanical_energy(), here.v, None
        moved = self._stepper.evaluate(bound, state.t, q, v, here.deflection_in(bound))
        if not constraint.is_unilateral:
            impact = self._jump_onto(moved)
            v = impact.v_plus
        self._evaluation = self._stepper.reset(bound, state.t, q, v, moved.deflection)
        self._manager.remember_targets(here.q, name)
        if assemble:
            lost = impact.energy_lost if impact is not None else 0.0
            self._energy += EnergyTerms(projection=self.mechanical_energy() + lost - before).as_array()
        if impact is not None:
            self._energy += EnergyTerms(impact_losses=impact.energy_lost).as_array()
        return impact

    def _deactivate(self, name: str) -> None:
        """Take a constraint out of effect, if it is in effect."""
        here = self._begun
        if here is None or not self._manager.is_enabled(name):
            return
        bound = self._manager.without(here.bound, name)
        self._evaluation = self._stepper.reset(bound, self.state.t, here.q, here.v, here.deflection_in(bound))

    def _jump_onto(self, here: Evaluation) -> Impact:
        """Return the impact that brings a state onto its bilateral constraints, see the stepper's.

        Contacts that the collision geometry has there take part.
        """
        bound = self._manager.with_detected(here.bound, _state_of(here), self.dt)
        return self._stepper.jump_onto_rows(self._under(here, bound), self._solver, self._method)

    def _with_detected(self) -> Evaluation:
        """Return the present state with the contacts that the collision geometry has there."""
        here = self._evaluation
        if self.collisions is None:
            return here
        return self._under(here, self._manager.with_detected(here.bound, _state_of(here), self.dt))

    def _under(self, here: Evaluation, bound: ConstraintSet) -> Evaluation:
        """Return the state `here` under these constraints."""
        if bound is here.bound:
            return here
        return self._stepper.evaluate(bound, here.t, here.q, here.v, here.deflection_in(bound))

    def _warn_of_light_joint(self) -> None:
        """Warn of the joint that moves the smallest share of its inertia, where that is next to nothing.

        With ``M = L^T L`` the square of a diagonal element of L is the inertia that its motion feels when all joints
        behind it give way.
        """
        M = self._evaluation.M
        system = System(M, np.zeros((0, self.robot.nv)), self.robot.inertia_parents)
        shares = np.diag(system.inertia_factor) ** 2 / np.diag(M)
        # Of what carries a joint that moves no inertia nothing is known: that joint is the last of them.
        unknown = np.flatnonzero(np.isnan(shares))
        least = int(unknown[-1]) if unknown.size else int(np.argmin(shares))
        if not shares[least] >= LIGHT:
            warn(LightJoint(self.robot.velocity_names[least], 0.0 if unknown.size else float(shares[least])))

    def _multiple_of_dt(self, what: str, period: float, most: float = MOST_STEPS) -> int:
        count = self._steps_in(what, period, most)
        if abs(count * self.dt - period) > MULTIPLE_ERROR * period:
            raise InvalidValue(what, period, f"a multiple of dt = {self.dt}")
        return count

    def _steps_in(self, what: str, duration: float, most: float = MOST_STEPS) -> int:
        """Return the number of steps nearest to `duration` [s], `most` of them."""
        return round(number(what, duration, 0.0, most * self.dt) / self.dt)

    def _begin_at_neutral(self) -> Evaluation:
        """Begin where nobody said where; a robot's own constraints are assembled."""
        self.reset(None, self._initial_velocity, assemble=bool(self.robot.constraints))
        return self._evaluation


def _state_of(here: Evaluation) -> State:
    return State(here.t, here.q, here.v)

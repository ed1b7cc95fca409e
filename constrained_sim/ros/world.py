"""The simulated world as the node drives it: control periods, stamps, commands. No ROS in here, and no maths."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from constrained_sim.config import Config
from constrained_sim.constraints import Constraint, PointContact, point_contacts
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue, UnknownName
from constrained_sim.impact import Impact
from constrained_sim.nanoseconds import NANOSECONDS, control_steps, nanoseconds_of, seconds_of, whole_nanoseconds
from constrained_sim.objects.combined_robot import can_act, carried_over, kept_objects
from constrained_sim.objects.world_object import WorldObject
from constrained_sim.robot import Robot
from constrained_sim.servo import JointCommand, JointTargets
from constrained_sim.step_result import ConstraintForce, ContactForce, StepResult
from constrained_sim.validation import Array
from constrained_sim.wrench import Wrench

LAST_STAMP = (2**31 - 1) * NANOSECONDS
"""[ns] The seconds of a ROS stamp are a signed integer of 32 bits."""


@dataclass(frozen=True, eq=False)
class Period:
    """One control period; forces are put together when they are asked for.

    Attributes:
        stamp: [ns] of its end.
        results: of its steps; fewer than a period has where the next one failed.
        stamp_at_reset: [ns] which the times of the steps count from.
        reports_constraints: whether there are bilateral constraints, or were in the period before.
    """

    stamp: int
    results: tuple[StepResult, ...]
    stamp_at_reset: int
    reports_constraints: bool

    @property
    def result(self) -> StepResult:
        """The last step."""
        return self.results[-1]

    @property
    def length(self) -> int:
        """Simulated time [ns]."""
        return len(self.results) * nanoseconds_of(self.result.dt)

    @cached_property
    def contacts(self) -> Mapping[str, ContactForce]:
        """Contacts at its end; those found by collision geometry that are no longer there, when they were last."""
        return {name: contact for result in self.results for name, contact in result.contact_forces.items()}

    @cached_property
    def mean_forces(self) -> Mapping[str, Array]:
        """(3,) mean force of each contact over the period [N], world axes."""
        return _means([{name: c.force for name, c in result.contact_forces.items()} for result in self.results])

    @cached_property
    def mean_moments(self) -> Mapping[str, Array]:
        """(3,) mean moment of each contact over the period [N m], about the point that it has in :attr:`contacts`.

        On the way the point moves, and what collision geometry finds by one name may be another corner in each step.
        """
        each = [result.contact_forces for result in self.results]
        return _means(_moments([{name: (c.position, c.force, c.moment) for name, c in f.items()} for f in each]))

    @property
    def constraints(self) -> Mapping[str, ConstraintForce] | None:
        """Bilateral constraints at its end; None if there are none, and there were none in the period before."""
        return self.result.constraint_forces if self.reports_constraints else None

    @cached_property
    def mean_constraint_forces(self) -> Mapping[str, tuple[Array, Array]]:
        """Mean multipliers (dim,) and wrench (6,) of each [N, N m], about its last position, world axes."""
        each = [result.constraint_forces for result in self.results]
        multipliers = _means([{name: c.multipliers for name, c in f.items()} for f in each])
        forces = _means([{name: c.wrench[:3] for name, c in f.items()} for f in each])
        acting = [{name: (c.position, c.wrench[:3], c.wrench[3:]) for name, c in f.items()} for f in each]
        moments = _means(_moments(acting))
        return {name: (multipliers[name], np.append(forces[name], moments[name])) for name in multipliers}

    @property
    def impacts(self) -> tuple[tuple[int, Impact], ...]:
        """Impacts with their stamps [ns], after the beginning of the step that they are in, and up to its end."""
        found, dt = [], nanoseconds_of(self.result.dt)
        for number, result in enumerate(self.results, 1):
            end = self.stamp - (len(self.results) - number) * dt
            for impact in result.impacts:
                found.append((min(max(self.stamp_at_reset + nanoseconds_of(impact.t), end - dt + 1), end), impact))
        return tuple(found)


@dataclass
class Residuals:
    """Largest relative residuals, and violations [m, rad] and [m/s, rad/s], since the last status."""

    dynamics: float = 0.0
    constraint: float = 0.0
    complementarity: float = 0.0
    position: float = 0.0
    velocity: float = 0.0

    def see(self, result: StepResult) -> None:
        """Take a step into account."""
        position, velocity = result.outcome.end.largest_violation
        self.position, self.velocity = max(self.position, position), max(self.velocity, velocity)
        dynamics, constraint, complementarity = result.outcome.residuals
        self.dynamics, self.constraint = max(self.dynamics, dynamics), max(self.constraint, constraint)
        self.complementarity = max(self.complementarity, complementarity)


class World:
    """A simulator that advances by control periods, with time in integer nanoseconds.

    Attributes:
        configured: what was configured.
        config: the same with the objects that are there now.
        sim: the simulator.
        commands: of the (nu) efforts; a joint that is not commanded keeps its last one.
        stamp: [ns] of the present state.
        period_ns: control period [ns].
        frozen: why the simulation cannot go on; empty while it can.
        last: the last step, None before the first.
        residuals: since the last status.
    """

    def __init__(self, config: Config) -> None:
        """Start at the initial state of `config`.

        Raises:
            ConstrainedSimError: a configuration that the simulator refuses.
        """
        config.node.frames.check_links(config.robot.links)
        self.configured = self.config = config
        self.sim = config.simulator()
        self._dt_ns = whole_nanoseconds("dt", config.simulation.dt)
        self._timeout_ns = nanoseconds_of(config.node.command_timeout)
        self._steps_per_period = control_steps(config.node.control_period, config.simulation.dt)
        self.period_ns = self._steps_per_period * self._dt_ns
        self.stamp = nanoseconds_of(config.node.start_time)
        self._forget()

    def _forget(self) -> None:
        self._stamp_at_reset = self.stamp
        self.commands = [JointCommand()] * self.config.robot.nu
        self._tau: Array | JointTargets = np.zeros(self.config.robot.nu)
        self.frozen = ""
        self.last: StepResult | None = None
        self.residuals = Residuals()
        self._commanded_at: int | None = None
        self._wrenches: list[Wrench] = []
        self._had_constraints = False

    def link_of(self, frame: str) -> str:
        """Return the link, or the world, that a message names, see :class:`~constrained_sim.frame_names.FrameNames`."""
        return self.config.node.frames.link(frame, self.config.robot.links)

    @property
    def contacts(self) -> dict[str, PointContact]:
        """Declared contacts by name, disabled ones too."""
        return point_contacts((*self.sim.constraints, *self.sim.disabled))

    def freed(self, robot: Robot) -> set[str]:
        """Return the names of own constraints of the robot, and of objects that `robot` has too, that do not act."""
        own = self._kept(self.sim.robot.constraints, robot)
        return {one.name for one in own} - {one.name for one in self.sim.constraints}

    def command(self, commands: Mapping[int, JointCommand]) -> None:
        """Take over commands by index into tau.

        Raises:
            InvalidValue: a target of a joint that no servo moves; nothing has changed.
        """
        wanted = [commands.get(index, before) for index, before in enumerate(self.commands)]
        effort, position, velocity = np.array(wanted).reshape(-1, 3).T
        if np.isnan(position).all() and np.isnan(velocity).all():
            self._tau = effort
        elif self.config.servo is None:
            raise InvalidValue("joint command", "a position or velocity", "efforts, as the parameters have no servo")
        else:
            self._tau = self.config.servo.targets(position, velocity, effort)
        self.commands, self._commanded_at = wanted, self.stamp

    def push(self, wrench: Wrench) -> None:
        """Let a wrench act during the next control period, beside others.

        Raises:
            UnknownName: a link that the robot does not have.
        """
        self.config.robot.link_placement(wrench.link)
        self._wrenches.append(wrench)

    def apply(self, wrench: Wrench, duration_ns: int) -> None:
        """Let a wrench act for a while [ns] from now on; 0: one control period.

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidValue: a negative duration.
        """
        self.sim.apply(wrench, seconds_of(duration_ns or self.period_ns))

    @property
    def command_is_overdue(self) -> bool:
        """Whether the last command is older than ``command_timeout``, in simulated time since its receipt."""
        if not self._timeout_ns or self._commanded_at is None:
            return False
        return self.stamp - self._commanded_at >= self._timeout_ns

    def _efforts(self, overdue: bool) -> Array | JointTargets:
        """Return what is commanded for the next step: the last command, or what ``timeout_action`` says."""
        options = self.config.node
        if not overdue or options.timeout_action == "hold":
            return self._tau
        if options.timeout_action == "zero":
            return np.zeros(self.config.robot.nu)
        return -options.timeout_damping * self.sim.state.v[self.config.robot.actuation]

    def advance(self) -> Period | None:
        """Simulate a control period, or up to a step that fails and freezes the world; None if no step was made."""
        if self.stamp + self.period_ns > LAST_STAMP:
            self.frozen = f"time is over: a stamp of ROS has {LAST_STAMP // NANOSECONDS} seconds at most"
            return None
        results = self._steps()
        if not results:
            return None
        self.last = results[-1]
        self.stamp = self._stamp_at_reset + self.sim.steps * self._dt_ns
        has_constraints = bool(self.last.outcome.end.bound.bilateral.dim)
        reported, self._had_constraints = has_constraints or self._had_constraints, has_constraints
        return Period(self.stamp, tuple(results), self._stamp_at_reset, reported)

    def _steps(self) -> list[StepResult]:
        """Make the steps of a period, up to one that fails."""
        overdue, wrenches, self._wrenches = self.command_is_overdue, self._wrenches, []
        results: list[StepResult] = []
        for _ in range(self._steps_per_period):
            try:
                results.append(self.sim.step(self._efforts(overdue), wrenches))
            except ConstrainedSimError as error:
                self.frozen = str(error)
                break
            except Exception:  # not foreseen: the node lives on, and its services can reset what is there
                self.frozen = traceback.format_exc()
                break
            self.residuals.see(results[-1])
        return results

    def change_objects(self, objects: Iterable[WorldObject]) -> None:
        """Let these objects be beside the robot from now on, and no others; all else goes on.

        Raises:
            ConstrainedSimError: an object that cannot be there, or one that a constraint or a sensor is on is missing;
                nothing has changed.
        """
        before, sim = self.config, self.sim.with_objects(objects)
        robot = sim.robot
        before.node.frames.check_links(robot.links)
        stays = {"", *kept_objects(before.robot, robot)}
        kept = [one for one in before.constraints if before.robot.owner_of(one.name) in stays]
        limits = robot.joint_limits() if before.simulation.joint_limits else ()
        new = [limit for limit in limits if robot.owner_of(limit.name) not in stays]
        for limit in new:
            sim.add(limit)
        q, v = carried_over(before.robot, robot, before.q, before.v)
        config = replace(before, robot=robot, constraints=(*kept, *new), q=q, v=v)
        try:
            config.sensor_set()
        except UnknownName as error:
            allowed = f"all that sensors of the parameters are on ({error})"
            raise InvalidValue("objects", [entry.name for entry in robot.objects], allowed) from error
        self._wrenches = [wrench for wrench in self._wrenches if can_act(wrench, robot)]
        self.sim, self.config = sim, config

    def reset(self, q: Array, v: Array, keep_time: bool, keep_constraints: bool, keep_objects: bool = True) -> None:
        """Start anew at (q, v), with the stepper and the solver in effect; commands are forgotten.

        Args:
            q: (nq,) configuration of the robot and the objects that are kept, as the next.
            v: (nv,) velocity.
            keep_time: let time go on; else it is that of the start.
            keep_constraints: keep those in effect; else those of the configuration come back.
            keep_objects: keep those that are there; else those of the configuration come back.

        Raises:
            ConstrainedSimError: a state that violates a constraint, or a constraint is to be kept on an object that is
                not; nothing has changed.
        """
        before, config = self.sim, self.config if keep_objects else self.configured
        if keep_constraints:
            enabled, disabled = self._kept(before.constraints, config.robot), self._kept(before.disabled, config.robot)
            self._check_kept((*enabled, *disabled), config.robot, q)
            sim = config.simulator(q, v, (*enabled, *self._new(config)), before)
            for constraint in disabled:
                sim.add(constraint, enabled=False)
        else:
            sim = config.simulator(q, v, like=before)
        self.sim, self.config = sim, config
        self.stamp = self.stamp if keep_time else nanoseconds_of(self.config.node.start_time)
        self._forget()

    def _check_kept(self, kept: Iterable[Constraint], robot: Robot, q: Array) -> None:
        """Check that what is to be `kept` can be on `robot`, at the configuration `q`.

        Raises:
            InvalidValue: something is on an object that is not there.
        """
        for constraint in kept:
            try:
                constraint.bind(robot, q)
            except UnknownName as error:
                what = f"keep_constraints, with {constraint.name!r} on an object that the reset takes away"
                allowed = f"false, or with keep_objects: true, or once {constraint.name!r} is removed"
                raise InvalidValue(what, True, allowed) from error

    def _kept(self, declared: Iterable[Constraint], robot: Robot) -> list[Constraint]:
        """Return what is `declared` now, and not gone with an object once the robot is `robot`."""
        stays = {"", *kept_objects(self.sim.robot, robot)}
        return [one for one in declared if self.sim.robot.owner_of(one.name) in stays]

    def _new(self, config: Config) -> list[Constraint]:
        """Return the constraints that come with the objects of `config` which are not there now."""
        stays = {"", *kept_objects(self.sim.robot, config.robot)}
        declared = (*config.robot.constraints, *config.constraints)
        return [one for one in declared if config.robot.owner_of(one.name) not in stays]


def _moments(steps: list[dict[str, tuple[Array, Array, Array]]]) -> list[dict[str, Array]]:
    """Return the moments (3,) of each step about where each name is in the last step that has it [N m].

    Args:
        steps: position (3,) [m], force (3,) [N], and moment (3,) about that position [N m], world axes, by name.
    """
    if len(steps) == 1:
        return [{name: moment for name, (_, _, moment) in steps[0].items()}]
    last = {name: position for step in steps for name, (position, _, _) in step.items()}
    return [
        {name: moment + np.cross(position - last[name], force) for name, (position, force, moment) in step.items()}
        for step in steps
    ]


def _means(steps: list[dict[str, Array]]) -> dict[str, Array]:
    """Return the mean of each entry over all `steps`; one that is missing in a step counts as zero there."""
    if len(steps) == 1:
        return steps[0]
    totals: dict[str, Array] = {}
    for values in steps:
        for name, value in values.items():
            totals[name] = totals.get(name, 0.0) + value
    return {name: total / len(steps) for name, total in totals.items()}

"""The parameters at the top of a file: how to simulate, and how the ROS node runs that."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from constrained_sim.contact_solvers import METHODS
from constrained_sim.exceptions import InvalidValue
from constrained_sim.frame_names import FrameNames
from constrained_sim.integrators import INTEGRATORS
from constrained_sim.solvers import DEFAULT, SOLVERS, Solver, make_solver
from constrained_sim.stabilization import Baumgarte, Projection, Stabilization
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import lookup, number

LONGEST = 2.0**31 - 1.0
"""[s] What a stamp of ROS can hold: the node deals with no longer times."""

SPEEDS = 1e-6, 1e9
"""Least and largest factor of real time."""

RATES = 1e-6, 1e9
"""[Hz] Least and largest rate of what is published now and then."""

CHANGEABLE = ("solver", "factorization", "stepper", "contact_method", "real_time_factor")
"""Options that can be changed while the node runs."""


def at_least(default: float, lower: float) -> Any:
    """Return a field for a number that is not below `lower`."""
    return field(default=default, metadata={"lower": lower, "open": False})


def within(default: float, lower: float, upper: float) -> Any:
    """Return a field for a number from `lower` to `upper`."""
    return field(default=default, metadata={"lower": lower, "upper": upper, "open": False})


def above(default: float, lower: float) -> Any:
    """Return a field for a number that is above `lower`."""
    return field(default=default, metadata={"lower": lower, "open": True})


def one_of(default: str, *others: str) -> Any:
    """Return a field for a name among several."""
    return field(default=default, metadata={"allowed": tuple(dict.fromkeys((default, *others)))})


def _check_options(options: Any) -> None:
    """Check the values of a dataclass against what its fields allow.

    Raises:
        InvalidValue: one that is not allowed.
    """
    for option in fields(options):
        value, limits = getattr(options, option.name), option.metadata
        if "lower" in limits:
            number(option.name, value, limits["lower"], limits.get("upper", math.inf), open_lower=limits["open"])
        elif "allowed" in limits and value not in limits["allowed"]:
            raise InvalidValue(option.name, value, ", ".join(limits["allowed"]))


@dataclass(frozen=True)
class SimulationOptions:
    """How to simulate; see :class:`~constrained_sim.simulator.Simulator`.

    Attributes:
        dt: physics step [s], a whole number of nanoseconds.
        stepper: how the state goes from one step to the next.
        integrator: of the smooth part of a step: ``midpoint``, ``semi_implicit_euler``; of the stepper smooth also
            ``rk4``, ``adaptive``, ``taylor``, ``explicit_euler``, ``backward_euler``, ``lecture``; empty: the stepper's
            own choice.
        solver: of accelerations and constraint forces; all find the same, up to rounding.
        factorization: of the direct solver: ``lu``, ``qr_pivoting``, ``qr``, ``ldlt``; empty: its default.
        contact_method: finds the forces of contacts that open or slide; if it fails, the others take over.
        contact_tolerance: error of contact impulses that is good enough [N s]; 0: rounding.
        position_tolerance: [m, rad] by how much a constraint may be violated when it is added.
        projection_metric: ``mass`` or ``euclidean``: what counts as least change where drift is removed.
        time_constant: of Baumgarte's feedback, in place of projection [s]; 0: projection.
        command_delay: time from an effort's command to its effect [s], a multiple of dt.
        joint_limits: stop joints at the position limits of the description.
        velocity_limits: apply no effort that drives a joint on beyond its velocity limit.
        assemble: move the initial configuration so that all bilateral constraints hold.
        sensor_seed: of the noise of sensors, >= 0.
    """

    dt: float = above(1e-3, 0.0)
    stepper: str = one_of(*STEPPERS)
    integrator: str = ""
    solver: str = one_of(DEFAULT, *SOLVERS)
    factorization: str = ""
    contact_method: str = one_of("newton", *METHODS)
    contact_tolerance: float = at_least(0.0, 0.0)
    position_tolerance: float = at_least(1e-4, 0.0)
    projection_metric: str = one_of("mass", "euclidean")
    time_constant: float = at_least(0.0, 0.0)
    command_delay: float = at_least(0.0, 0.0)
    joint_limits: bool = False
    velocity_limits: bool = False
    assemble: bool = False
    sensor_seed: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: one that is not allowed.
            UnknownName: no such integrator or factorization.
        """
        _check_options(self)
        if self.integrator:
            lookup("integrator", self.integrator, INTEGRATORS)
        self.make_solver()

    def make_stabilization(self, stepper: str) -> Stabilization:
        """Return the configured removal of drift, for one of the ``STEPPERS``: feedback where that can do it."""
        if self.time_constant and (stepper == self.stepper or STEPPERS[stepper].does_feedback):
            return Baumgarte(self.time_constant)
        return Projection(self.projection_metric)

    def make_solver(self) -> Solver:
        """Return the configured solver.

        Raises:
            UnknownName: no such solver or factorization.
            InvalidValue: a factorization for a solver that has none.
        """
        return configured_solver(self.solver, self.factorization)


@dataclass(frozen=True)
class NodeOptions:
    """How the ROS node runs the simulation.

    Attributes:
        control_period: [s] between published states, a whole multiple of dt; 0: dt.
        clock_mode: ``realtime`` follows the wall clock, ``fast`` never waits, ``lockstep`` waits for the answer to each
            state.
        real_time_factor: simulated seconds per second in realtime mode.
        start_time: [s] stamp of the initial state.
        publish_clock: ``auto``: unless somebody else publishes /clock already; ``always``; ``never``.
        autostart: configure and activate the node at once; else somebody else manages its lifecycle.
        start_paused: wait for ``~/pause`` or ``~/step``.
        wait_for_first_command: let no time pass until a controller has sent its first command.
        wait_for_subscriber: let no time pass until the node of this name subscribes to contact_forces; empty: none.
        duration: [s] of simulated time after which the node ends; 0: never. It ends, with exit code 1, also when
            lockstep has waited for a command for as much wall-clock time, and at least ``lockstep_timeout``.
        lockstep_commands: answers to a state before lockstep goes on.
        lockstep_match: ``stamp``: an answer carries the stamp of the state; ``arrival``: any command is one.
        lockstep_timeout: [s] of wall-clock time without an answer before the node acts.
        lockstep_action: ``warn``, ``pause``, or ``continue`` in real time, with the last command, until one comes.
        command_timeout: [s] of simulated time since the last command before ``timeout_action`` acts; 0: never.
        timeout_action: ``zero`` effort, ``hold`` the last command, or ``damping``.
        timeout_damping: [N m s/rad, N s/m] of each actuated joint, with ``damping``.
        strict_commands: refuse commands that name a joint which is not actuated, rather than take them for the others.
        command_reliability: QoS of subscriptions of commands, ``reliable`` or ``best_effort``, which takes both.
        joints: order of the efforts in ``~/commands``; empty: the actuated joints.
        world_frame: frame_id of what is published.
        frame_prefix: put before the names of links in messages and transforms, such as ``left/``.
        tf: ``links``: publish where every link is, and the robot in the world; ``base``: the robot in the world only,
            for those who let robot_state_publisher do the rest; ``none``.
        tf_rate: [Hz] simulated, of the links behind joints; a floating base comes in every control period.
        status_rate: [Hz] simulated.
        contact_wrenches: publish the wrench of every contact on its link, in the link's axes, on contact_wrenches/NAME.
        marker_rate: [Hz] simulated, of contact_markers; 0: none.
        marker_scale: [m/N] of the arrows.
        record: directory of the rosbag2 recording; empty: none.
        record_topics: names of the topics that are recorded, before remapping, with ``*`` for any characters; empty:
            all. ~/inputs is always recorded, so that the recording can be replayed.
        record_compression: of the recording: ``none``, ``zstd`` or ``lz4``.
    """

    control_period: float = at_least(0.0, 0.0)
    clock_mode: str = one_of("realtime", "fast", "lockstep")
    real_time_factor: float = within(1.0, *SPEEDS)
    start_time: float = within(1.0, 0.0, LONGEST)
    publish_clock: str = one_of("auto", "always", "never")
    autostart: bool = True
    start_paused: bool = False
    wait_for_first_command: bool = False
    wait_for_subscriber: str = ""
    duration: float = within(0.0, 0.0, LONGEST)
    lockstep_commands: int = at_least(1, 1)
    lockstep_match: str = one_of("stamp", "arrival")
    lockstep_timeout: float = above(5.0, 0.0)
    lockstep_action: str = one_of("warn", "pause", "continue")
    command_timeout: float = within(0.0, 0.0, LONGEST)
    timeout_action: str = one_of("zero", "hold", "damping")
    timeout_damping: float = at_least(1.0, 0.0)
    strict_commands: bool = False
    command_reliability: str = one_of("reliable", "best_effort")
    joints: tuple[str, ...] = ()
    world_frame: str = "world"
    frame_prefix: str = ""
    tf: str = one_of("links", "base", "none")
    tf_rate: float = within(50.0, *RATES)
    status_rate: float = within(10.0, *RATES)
    contact_wrenches: bool = False
    marker_rate: float = within(30.0, 0.0, RATES[1])
    marker_scale: float = above(0.005, 0.0)
    record: str = ""
    record_topics: tuple[str, ...] = ()
    record_compression: str = one_of("none", "zstd", "lz4")

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: one that is not allowed.
        """
        _check_options(self)
        FrameNames(self.world_frame, self.frame_prefix)

    @cached_property
    def frames(self) -> FrameNames:
        """Names of frames in messages."""
        return FrameNames(self.world_frame, self.frame_prefix)


def configured_solver(name: str, factorization: str = "") -> Solver:
    """Return the solver `name`; an empty `factorization` is its default.

    Raises:
        UnknownName: no such solver or factorization.
        InvalidValue: a factorization for a solver that has none.
    """
    return make_solver(name, **({"factorization": factorization} if factorization else {}))

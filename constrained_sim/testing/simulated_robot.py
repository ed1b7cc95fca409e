"""The robot that a test of a controller works with, whatever simulates it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from constrained_sim.config import Config, read_config
from constrained_sim.exceptions import ConfigError, ControllerFailed, InvalidValue, UnknownName
from constrained_sim.impact_record import ImpactRecord
from constrained_sim.nanoseconds import control_steps, nanoseconds_of, seconds_of, whole_nanoseconds
from constrained_sim.parameter_file import load_parameters
from constrained_sim.robot import WORLD
from constrained_sim.testing.snapshot import SINGLE_JOINT, Condition, Snapshot
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array, finite_array, number
from constrained_sim.wrench import Wrench

EffortFunction = Callable[[float, Array, Array], Any]
"""``efforts(t, q, v)``: (nu,) efforts of ``robot.actuated_joints`` [N m, N] at t [s] since the last reset."""

PathLike = str | os.PathLike[str]


class SimulatedRobot(ABC):
    """A robot with a controller, simulated one control period after the other as the test asks for it.

    A context manager: leaving it ends all that it has started.

    Attributes:
        config: of the simulation.
        period: control period [s].
        history: a snapshot of the last reset, and one of every control period since.
    """

    def __init__(self, config: Config) -> None:
        """Keep the configuration; a backend fills :attr:`history` with the first snapshot."""
        self.config = config
        dt = config.simulation.dt
        self._period_ns = control_steps(config.node.control_period, dt) * whole_nanoseconds("dt", dt)
        self.period = seconds_of(self._period_ns)
        self.history: list[Snapshot] = []
        self._controller_name = "of the test"

    @property
    def now(self) -> Snapshot:
        """The present state."""
        return self.history[-1]

    @property
    @abstractmethod
    def impacts(self) -> tuple[ImpactRecord, ...]:
        """The impacts since the last reset in the order of time, to the nanosecond."""

    def step(self, periods: int = 1) -> Snapshot:
        """Simulate so many control periods and return the state after them.

        The controller is asked once at the beginning of each.

        Raises:
            InvalidValue: not a positive whole number, or efforts of the controller that are not finite numbers.
            ControllerFailed: the controller ended.
            SimulationFailed: the state would not be finite.
            NoAnswer: the controller is silent.
        """
        if isinstance(periods, bool) or not isinstance(periods, int) or periods < 1:
            raise InvalidValue("periods", periods, "a whole number, at least 1")
        try:
            self._advance(periods)
        except SystemExit as error:
            raise ControllerFailed.by_exit(self._controller_name, self.now.t, error) from error
        return self.now

    def run(self, seconds: float) -> list[Snapshot]:
        """Simulate for so many seconds, a multiple of the control period, and return a snapshot of each period.

        Raises:
            InvalidValue: not a positive multiple of the control period.
            ControllerFailed, SimulationFailed, NoAnswer: see :meth:`step`.
        """
        periods = self._periods("seconds", seconds)
        self.step(periods)
        return self.history[-periods:]

    def run_until(self, condition: Condition, within: float, what: str = "the condition") -> list[Snapshot]:
        """Simulate, one period at least, until `condition` is true; return a snapshot of each period.

        Args:
            condition: of the snapshot after each period.
            within: simulated time that it may take [s].
            what: it means, for the message.

        Raises:
            AssertionError: it is not true by then; the message shows the last snapshot.
            InvalidValue: not a positive multiple of the control period.
            ControllerFailed, SimulationFailed, NoAnswer: see :meth:`step`.
        """
        for count in range(1, self._periods("within", within) + 1):
            if condition(self.step()):
                return self.history[-count:]
        raise AssertionError(f"{what} does not hold within {within:g} s (simulated); at last {self.now}")

    def push(self, wrench: Wrench, duration: float = 0.0) -> None:
        """Let a wrench act from now on for `duration` [s]; 0: one control period.

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidValue: a wrench on the world, or a negative duration.
        """
        for link in (wrench.link, wrench.axes):
            if link not in self.config.robot.links:
                raise UnknownName("link", link, self.config.robot.links)
        if wrench.link == WORLD:
            raise InvalidValue("link of a wrench", wrench.link, "a link of the robot")
        self._push(wrench, nanoseconds_of(number("duration", duration, 0.0)) or self._period_ns)

    def reset(
        self, positions: Mapping[str, float] | None = None, velocities: Mapping[str, float] | None = None
    ) -> Snapshot:
        """Start anew at time 0; joints that are not named begin as configured.

        A :class:`~constrained_sim.exceptions.MovedByAssembly` warns of joints that begin elsewhere than asked, a
        :class:`~constrained_sim.exceptions.BeyondLimits` of joints that are asked to be beyond their limits.

        Contacts and constraints are those of the configuration. A controller of its own process or node is told by the
        stamps alone, which begin anew; a function sees t = 0.

        Args:
            positions: [rad, m] by joint.
            velocities: [rad/s, m/s] by joint.

        Raises:
            UnknownName: no such joint with one degree of freedom.
            InvalidValue: NaN or infinity.
            ConstrainedSimError: a state that violates a constraint; nothing has changed.
        """
        joints = {
            "positions": dict(positions or {}),
            "velocities": dict(velocities or {}),
        }
        for what, values in joints.items():
            for name in values:
                if name not in self.history[0].position:
                    raise UnknownName(SINGLE_JOINT, name, self.history[0].position)
            finite_array(f"{what} of a reset", list(values.values()), (len(values),))
        snapshot = self._reset(joints["positions"], joints["velocities"])
        for warning in self.config.warnings_at(joints["positions"], snapshot.q):
            warn(warning)
        self.history = [snapshot]
        return snapshot

    @abstractmethod
    def close(self) -> None:
        """End all that was started.

        Raises:
            ControllerFailed: the controller had ended by itself, with an error, and nobody has been told yet.
        """

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()

    @abstractmethod
    def _advance(self, periods: int) -> None:
        """Simulate and append to the history."""

    @abstractmethod
    def _push(self, wrench: Wrench, nanoseconds: int) -> None:
        """Let a wrench act."""

    @abstractmethod
    def _reset(self, positions: dict[str, float], velocities: dict[str, float]) -> Snapshot:
        """Start anew and return the first snapshot."""

    def _periods(self, what: str, seconds: float) -> int:
        nanoseconds = whole_nanoseconds(what, seconds)
        if nanoseconds % self._period_ns:
            raise InvalidValue(what, seconds, f"a multiple of the control period, {self.period:g} s")
        return nanoseconds // self._period_ns


def checked_efforts(config: Config, efforts: Any) -> Array:
    """Return what a function returned as (nu,) efforts [N m, N].

    Raises:
        InvalidValue: wrong length, NaN or infinity.
    """
    joints = ", ".join(config.robot.actuated_joints)
    return finite_array(f"efforts of the controller ({joints})", efforts, (config.robot.nu,))


def read_parameters(path: Path, parameters: Mapping[str, Any]) -> Config:
    """Read a configuration file, with some `parameters` (dots between the levels of a name) other than in the file.

    Raises:
        ConfigError: a file that cannot be read, or a name that is both a value and a group.
        ConstrainedSimError: a name or value that is not allowed.
    """
    nested = load_parameters(path)
    for name, value in parameters.items():
        *groups, key = name.split(".")
        level = nested
        for group in groups:
            level[group] = dict(level.get(group) or {}) if isinstance(level.get(group, {}), Mapping) else level[group]
            level = level[group]
            if not isinstance(level, dict):
                raise ConfigError(f"parameter {name!r}: {group!r} is a value, not a group")
        level[key] = value.tolist() if isinstance(value, np.ndarray) else value
    return read_config(nested, path.parent)

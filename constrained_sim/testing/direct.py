"""A simulated robot without ROS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from constrained_sim.compilation.background import BACKGROUND
from constrained_sim.exceptions import InvalidValue, SimulationFailed
from constrained_sim.impact_record import ImpactRecord
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.package_paths import find_config
from constrained_sim.ros.world import Period, World
from constrained_sim.servo import JointCommand
from constrained_sim.testing.simulated_robot import (
    EffortFunction,
    PathLike,
    SimulatedRobot,
    checked_efforts,
    read_parameters,
)
from constrained_sim.testing.snapshot import Snapshot
from constrained_sim.wrench import Wrench


class DirectRobot(SimulatedRobot):
    """A robot simulated in this process, as the node would simulate it; its controller is a function."""

    def __init__(
        self,
        config: PathLike,
        controller: EffortFunction | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Start at the initial state.

        Args:
            config: configuration file, or ``package://name/path``.
            controller: ``efforts(t, q, v)`` (nu,) [N m, N]; None: no efforts.
            parameters: other values than in the file, by name, with dots between levels: ``{"contacts.foot.friction":
                0.3}``.

        Raises:
            InvalidValue: a controller that is not a function.
            ConstrainedSimError: a configuration that is refused.
        """
        if controller is not None and (not callable(controller) or isinstance(controller, type)):
            raise InvalidValue("controller", controller, "without ROS, a function efforts(t, q, v)")
        BACKGROUND.compile_here()  # the same test over DDS gives the same bits
        super().__init__(read_parameters(find_config(config).absolute(), parameters or {}))
        self._controller = controller
        self._controller_name = getattr(controller, "__qualname__", repr(controller))
        self._world = World(self.config)
        self._start_ns = self._world.stamp
        self._impacts: list[ImpactRecord] = []
        self.history = [self._first_snapshot()]

    @property
    def impacts(self) -> tuple[ImpactRecord, ...]:
        """The impacts since the last reset in the order of time, to the nanosecond."""
        return tuple(self._impacts)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _advance(self, periods: int) -> None:
        for _ in range(periods):
            if self._controller is not None:
                efforts = checked_efforts(self.config, self._controller(self.now.t, self.now.q, self.now.v))
                self._world.command(dict(enumerate(map(JointCommand, efforts.tolist()))))
            period = self._world.advance()
            if period is None:
                raise SimulationFailed(self._world.frozen)
            self.history.append(self._snapshot(period))
            self._impacts += [
                ImpactRecord.of(impact, seconds_of(stamp - self._start_ns)) for stamp, impact in period.impacts
            ]

    def _push(self, wrench: Wrench, nanoseconds: int) -> None:
        self._world.apply(wrench, nanoseconds)

    def _reset(self, positions: dict[str, float], velocities: dict[str, float]) -> Snapshot:
        robot = self.config.robot
        q, v = self.config.q.copy(), self.config.v.copy()
        given = robot.configuration(positions)
        for name in positions:
            joint = robot.joint_models[name]
            q[joint.idx_q : joint.idx_q + joint.nq] = given[joint.idx_q : joint.idx_q + joint.nq]
        for name, velocity in velocities.items():
            v[robot.joint_models[name].idx_v] = velocity
        self._world.reset(q, v, keep_time=False, keep_constraints=False)
        self._impacts.clear()
        return self._first_snapshot()

    def _first_snapshot(self) -> Snapshot:
        state = self._world.sim.state
        return Snapshot(state.t, state.q, state.v, np.zeros(self.config.robot.nu), {}, self.config.robot)

    def _snapshot(self, period: Period) -> Snapshot:
        state = period.result.state
        contacts = {
            name: replace(
                contact,
                force=period.mean_forces[name],
                moment=period.mean_moments[name],
                normal_force=float(period.mean_forces[name] @ contact.normal),
            )
            for name, contact in sorted(period.contacts.items())
        }
        return Snapshot(state.t, state.q, state.v, period.result.tau_applied, contacts, self.config.robot)

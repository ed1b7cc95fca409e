"""A simulated robot over ROS."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs import msg as geometry_msgs
from rclpy.node import Node
from sensor_msgs.msg import JointState

from constrained_sim.exceptions import InvalidValue, NoAnswer, SimulationFailed
from constrained_sim.impact_record import ImpactRecord
from constrained_sim.nanoseconds import nanoseconds_of
from constrained_sim.package_paths import find_config
from constrained_sim.robot import WORLD
from constrained_sim.ros.conversions import point, to_duration, to_time, vector
from constrained_sim.srv import ApplyWrench, Step
from constrained_sim.testing.ros.controllers import (
    Command,
    FunctionController,
    NodeController,
    ProcessController,
    RosController,
)
from constrained_sim.testing.ros.readings import Readings
from constrained_sim.testing.ros.session import Session, accepted, nanoseconds, stamp
from constrained_sim.testing.simulated_robot import (
    EffortFunction,
    PathLike,
    SimulatedRobot,
    read_parameters,
)
from constrained_sim.testing.snapshot import Snapshot
from constrained_sim.wrench import Wrench

CHUNK = 50
"""Periods of one request: fewer than the simulator keeps for a test that listens slowly."""

MEETING_TIME = 0.5
"""[s] of wall-clock time in which the messages of a period reach a test that every topic knows."""

STARTING_TIME = 20.0
"""[s] of wall-clock time that the simulator may take to start."""

RESET_TIME = 20.0
"""[s] of wall-clock time that a reset may take."""


class RosRobot(SimulatedRobot):
    """A robot simulated by the node, in a process and on a DDS domain of its own, in lock-step with its controller.

    Simulated time passes only while the test steps, and waits for the controller's answer to every state: an answer
    carries the state's stamp, or none. Without a controller it waits for nobody.

    Attributes:
        session: the running simulator, its DDS domain, and a client for topics and services of the test's own.
        controller: the running controller; None: none.
    """

    def __init__(
        self,
        config: PathLike,
        controller: EffortFunction | type[Node] | Command | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float = 20.0,
        folder: Path | None = None,
    ) -> None:
        """Start the node, then the controller.

        Args:
            config: configuration file, or ``package://name/path``.
            controller: a function ``efforts(t, q, v)`` (nu,) [N m, N]; a subclass of rclpy's Node, which runs in the
                test's thread, in rclpy's default context; or a command line, executable and arguments in a sequence,
                which runs in a process of its own. None: no efforts.
            parameters: other values than in the file, by name, with dots between levels.
            timeout: [s] of wall-clock time without a new state after which a step fails.
            folder: for the output of processes; None: a temporary one.

        Raises:
            InvalidValue: another kind of controller, a command that cannot be started, or rclpy's default context in
                use already.
            NotSupported: a robot whose state the topics do not have.
            SimulationFailed: the node does not start; the message has its standard error.
            ConstrainedSimError: a configuration that is refused.
        """
        path, given = find_config(config).absolute(), dict(parameters or {})
        is_node = isinstance(controller, type) and issubclass(controller, Node)
        is_command = isinstance(controller, (list, tuple)) and bool(controller)
        is_function = callable(controller) and not isinstance(controller, type)
        if controller is not None and not (is_node or is_command or is_function):
            allowed = "a function efforts(t, q, v), a subclass of rclpy.node.Node, or a command line in a list"
            raise InvalidValue("controller", controller, allowed)
        super().__init__(read_parameters(path, given))
        self._readings = Readings(self.config)
        self._initial = Snapshot(
            0.0, self.config.q, self.config.v, np.zeros(self.config.robot.nu), {}, self.config.robot
        )
        self._read = self._collected = 0
        self._timeout = timeout
        self.controller: RosController | None = None
        given |= {
            "clock_mode": "fast" if controller is None else "lockstep",
            "start_paused": True,
            "wait_for_first_command": False,
            "duration": 0.0,
        }
        with ExitStack() as started:
            if folder is None:
                folder = Path(started.enter_context(tempfile.TemporaryDirectory()))
            self.session = Session(folder, path, given, self.config.robot.floating_base, is_node)
            started.callback(self.session.close)
            self._meet(lockstep=controller is not None)
            self.history = [self._reset({}, {})]
            if controller is not None:
                self.controller = self._start(controller, is_node, is_command, folder)
                self._controller_name = self.controller.name
                started.callback(self.controller.close)
                self.session.client.watchers.append(self.controller.attend)
            self._started = started.pop_all()

    @property
    def impacts(self) -> tuple[ImpactRecord, ...]:
        """The impacts since the last reset in the order of time, to the nanosecond."""
        return tuple(self._readings.impact(message) for message in self.session.impacts)

    def close(self) -> None:
        """End the controller, the client and the node.

        Raises:
            ControllerFailed: the controller had ended by itself, with an error, and nobody has been told yet.
        """
        self._started.close()

    def _start(self, controller: Any, is_node: bool, is_command: bool, folder: Path) -> RosController:
        if is_node:
            return NodeController(self.session, controller)
        if is_command:
            return ProcessController(self.session, folder, controller, self._time)
        return FunctionController(self.session, self.config, controller)

    def _meet(self, lockstep: bool) -> None:
        """Step until every topic reaches the test: then none of the messages that count is missed.

        Raises:
            NoAnswer: the simulator is silent.
        """
        session, end = self.session, time.monotonic() + STARTING_TIME
        at = nanoseconds_of(self.config.node.start_time)
        while True:
            for _ in range(self.config.node.lockstep_commands if lockstep else 0):
                session.publish("/joint_commands", self._no_effort(at))
            at = nanoseconds(accepted(session.call(Step, "step", timeout=STARTING_TIME, periods=1)).stamp)
            try:
                session.wait_for_period(at, timeout=MEETING_TIME)
                return
            except NoAnswer:
                if time.monotonic() > end:
                    raise

    def _no_effort(self, nanoseconds: int) -> JointState:
        names = list(self.config.robot.actuated_joints)
        command = JointState(name=names, effort=[0.0] * len(names))
        command.header.stamp = to_time(nanoseconds)
        return command

    def _advance(self, periods: int) -> None:
        while periods:
            count = min(periods, CHUNK)
            self._advance_at_once(count)
            periods -= count

    def _advance_at_once(self, periods: int) -> None:
        session, begin = self.session, self._stamp()
        if self.controller is not None:
            self.controller.expect(periods)
        answer = session.client.ask(Step, "step", periods=periods)
        try:
            session.wait_for(answer.done, "new state", self._timeout, self._stamp, self._whom_it_waits_for)
            end = nanoseconds(answer.result().stamp)
            if end > begin:
                session.wait_for_period(end, self._timeout)
        finally:
            self._collect()
        if not answer.result().success:
            raise SimulationFailed(answer.result().message)

    def _collect(self) -> None:
        """Make snapshots of the periods whose messages have arrived, in their order.

        The last state is told again to who is found late: no period counts twice.
        """
        session = self.session
        states = [{stamp(message): message for message in messages[self._read :]} for messages in session.of_states]
        forces = {stamp(message): message for message in session.forces[len(self.history) - 1 :]}
        arrived = forces.keys() & set.intersection(*map(set, states))
        for at in sorted(at for at in arrived if at > self._collected):
            self._collected = at
            self.history.append(self._readings.snapshot([messages[at] for messages in states], forces[at]))
        self._read = min(map(len, session.of_states))

    def _push(self, wrench: Wrench, nanoseconds: int) -> None:
        answer = self.session.call(
            ApplyWrench,
            "apply_wrench",
            link=wrench.link,
            point=point(wrench.point),
            frame_id="" if wrench.axes == WORLD else wrench.axes,
            wrench=geometry_msgs.Wrench(force=vector(wrench.force), torque=vector(wrench.torque)),
            duration=to_duration(nanoseconds),
        )
        accepted(answer)

    def _reset(self, positions: dict[str, float], velocities: dict[str, float]) -> Snapshot:
        if positions and velocities:
            joints, configured = {**velocities, **positions}, self._configured()
            positions = {name: positions.get(name, configured.position[name]) for name in joints}
            velocities = {name: velocities.get(name, configured.velocity[name]) for name in joints}
        self.session.reset(False, False, RESET_TIME, velocities, **positions)
        if self.controller is not None:
            self.controller.forget()
        self._read, self._collected = 1, self._stamp()
        return self._readings.snapshot([messages[-1] for messages in self.session.of_states], None)

    def _configured(self) -> Snapshot:
        config = self.config
        return Snapshot(0.0, config.q, config.v, np.zeros(config.robot.nu), {}, config.robot)

    def _stamp(self) -> int:
        """Return the stamp of the newest state [ns]."""
        return stamp(self.session.states[-1])

    def _time(self) -> float:
        """Return the time of the newest state [s]."""
        return self._readings.time(self._stamp())

    def _whom_it_waits_for(self) -> str:
        if self.controller is None:
            return ""
        node = self.session.client.node
        publishers = _names(node.get_publishers_info_by_topic("/joint_commands"), node.get_name())
        subscribers = _names(node.get_subscriptions_info_by_topic("/joint_states"), node.get_name())
        return (
            f"the simulation waits at t = {self._time():.9g} s for an answer; {self.controller.describe()}; "
            f"publishers of joint_commands: {publishers}; subscribers of joint_states: {subscribers}; "
            "the simulator, which counts this test as one publisher and one subscriber too, wrote: "
            f"{self.session.process.stderr.strip() or 'nothing'}"
        )


def _names(endpoints: list[Any], own: str) -> str:
    """Return the names of the nodes of `endpoints` other than the test's `own`."""
    return ", ".join(sorted({endpoint.node_name for endpoint in endpoints} - {own})) or "none"

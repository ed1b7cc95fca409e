"""A simulation node in a process of its own, and a client that listens to it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from constrained_sim import exceptions
from constrained_sim.exceptions import EXPLANATION, ConstrainedSimError, SimulationFailed
from constrained_sim.msg import ContactForces, Impact, SimulationStatus
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.srv import Reset, Step
from constrained_sim.testing.ros.client import NODE, Client
from constrained_sim.testing.ros.domains import free_domain
from constrained_sim.testing.ros.process import Process, package_executable


def nanoseconds(time_or_duration: Any) -> int:
    """Return a builtin_interfaces Time or Duration in nanoseconds."""
    return int(time_or_duration.sec * NANOSECONDS + time_or_duration.nanosec)


def stamp(message: Any) -> int:
    """Return the stamp of a message [ns]."""
    return nanoseconds(message.clock if hasattr(message, "clock") else message.header.stamp)


def arguments(config: Path, parameters: Mapping[str, Any]) -> list[str]:
    """Return the arguments of the simulator for a configuration file and other values than in the file, by name."""
    words = ["--ros-args", "--params-file", str(config)]
    for name, value in parameters.items():
        text = str(value) if isinstance(value, (str, os.PathLike)) else json.dumps(value)
        words += ["-p", f"{name}:={text}"]
    return words


class Session:
    """A running simulator with a client that listens to everything.

    Attributes:
        domain: DDS domain.
        process: the simulator.
        client: whose waits end when the simulator does.
        states, odometry, forces, impacts, status, clock: the messages that have arrived.
        of_states: those that come with every state: :attr:`states`, and :attr:`odometry` of a floating base.
    """

    def __init__(
        self,
        folder: Path,
        config: Path,
        parameters: Mapping[str, Any],
        floating_base: bool = False,
        default_context: bool = False,
    ) -> None:
        """Start both.

        Args:
            folder: for the output of the simulator.
            config: configuration file.
            parameters: other values than in the file, by name.
            floating_base: whether the robot has one, so that there is odometry.
            default_context: see :class:`~constrained_sim.testing.ros.client.Client`.

        Raises:
            InvalidValue: rclpy's default context is in use already.
        """
        self.domain = free_domain()
        self.client = Client(self.domain, default_context)
        try:
            command = [str(package_executable("simulator")), *arguments(config, parameters)]
            self.process = Process(folder, self.domain, command, cwd=config.parent)
        except BaseException:
            self.client.close()
            raise
        self.client.watchers.append(self._check_process)
        # In the order in which the simulator hears of them: when it knows the last one, it knows them all.
        self.impacts: list[Any] = self.client.subscribe(Impact, "/impacts")
        self.status: list[Any] = self.client.subscribe(SimulationStatus, f"{NODE}/status")
        self.states: list[Any] = self.client.subscribe(JointState, "/joint_states")
        self.odometry: list[Any] = self.client.subscribe(Odometry, "/odom")
        self.of_states = [self.states, self.odometry] if floating_base else [self.states]
        self.clock: list[Any] = self.client.subscribe(Clock, "/clock")
        self.forces: list[Any] = self.client.subscribe(ContactForces, "/contact_forces")
        self.call, self.publish, self.wait_for = self.client.call, self.client.publish, self.client.wait_for

    def close(self) -> None:
        """End both."""
        try:
            self.client.close()
        finally:
            self.process.stop()

    def pause(self, on: bool = True) -> None:
        """Pause or go on."""
        accepted(self.call(SetBool, "pause", data=on))

    def forget(self) -> None:
        """Drop what has arrived."""
        for messages in self.client.got.values():
            messages.clear()

    def step(self, periods: int = 1) -> tuple[Any, Any]:
        """Run control periods of the paused simulation, wait for all they publish; return the last state and forces.

        Raises:
            ConstrainedSimError: what the simulator refused.
            NoAnswer: something did not come.
        """
        answer = accepted(self.call(Step, "step", timeout=60.0, periods=periods))
        self.wait_for_period(nanoseconds(answer.stamp))
        self.wait_for(lambda: self.status and self.status[-1].step == answer.step, "status of the last step", 10.0)
        return self.states[-1], self.forces[-1]

    def wait_for_period(self, end: int, timeout: float = 10.0) -> None:
        """Wait for all that is published of the control period with stamp `end` [ns], the last one.

        Raises:
            NoAnswer: something did not come.
        """
        for messages in (*self.of_states, self.forces, self.clock):
            self._wait_for_stamp(messages, end, "message of the last period", timeout)

    def reset(
        self,
        keep_time: bool = False,
        keep_constraints: bool = False,
        timeout: float = 20.0,
        velocities: Mapping[str, float] | None = None,
        **positions: float,
    ) -> Any:
        """Reset, forget what arrived before, and return the state that is published then.

        Args:
            keep_time: go on with the present stamp.
            keep_constraints: keep those in effect.
            timeout: for the answer [s].
            velocities: [rad/s, m/s] by joint; of the same joints as the positions, if both are given.
            positions: [rad, m] by joint.

        Raises:
            ConstrainedSimError: what the simulator refused.
            NoAnswer: something did not come.
        """
        before = {topic: len(messages) for topic, messages in self.client.got.items()}
        rates = velocities or {}
        names = list(positions or rates)
        request = JointState(name=names, position=list(positions.values()), velocity=[rates[n] for n in names if rates])
        answer = accepted(
            self.call(Reset, "reset", timeout, keep_time=keep_time, keep_constraints=keep_constraints, joints=request)
        )
        for topic, count in before.items():
            del self.client.got[topic][:count]
        for messages in (*self.of_states, self.clock):
            self._wait_for_stamp(messages, nanoseconds(answer.stamp), "state after the reset", timeout)
        return self.states[-1]

    def _wait_for_stamp(self, messages: list[Any], wanted: int, what: str, timeout: float) -> None:
        self.wait_for(lambda: messages and stamp(messages[-1]) == wanted, what, timeout)

    def _check_process(self) -> None:
        if ending := self.process.ending:
            raise SimulationFailed(f"the simulator {ending}; its standard error:\n{self.process.stderr}".rstrip())


def accepted(answer: Any) -> Any:
    """Return the response of a service that succeeded.

    Raises:
        ConstrainedSimError: with the message of one that did not; see :func:`refusal`.
    """
    if not answer.success:
        raise refusal(answer.message)
    return answer


def refusal(message: str) -> ConstrainedSimError:
    """Return the exception that the simulator answered with, of the class that its `message` ends with.

    It has the message alone: the other attributes of the class are not in an answer.
    """
    command = re.search(rf"\({EXPLANATION} (\w+)\)$", message)
    kind = getattr(exceptions, command[1], None) if command else None
    if not (isinstance(kind, type) and issubclass(kind, ConstrainedSimError)):
        kind = ConstrainedSimError
    return kind.__new__(kind, message)

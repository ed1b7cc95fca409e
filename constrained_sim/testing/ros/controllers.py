"""Controllers under test over ROS: a function, a node in the test's own process, a process."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from rclpy.node import Node
from sensor_msgs.msg import JointState

from constrained_sim.config import Config
from constrained_sim.exceptions import ControllerFailed, InvalidValue
from constrained_sim.testing.ros.process import Process
from constrained_sim.testing.ros.readings import Readings
from constrained_sim.testing.ros.session import Session
from constrained_sim.testing.simulated_robot import EffortFunction, checked_efforts

QUIET = 0.1
"""[s] without a newer state, after which all is taken to have arrived that was published before a controller ended."""

NodeClass = Callable[[], Node]
Command = Sequence[str | os.PathLike[str]]


class RosController(ABC):
    """A controller that answers joint_states with joint_commands.

    Attributes:
        name: for messages.
    """

    name: str

    def expect(self, periods: int) -> None:
        """Note that so many answers are wanted from now on."""
        return None

    def attend(self) -> None:
        """Do what there is to do; called again and again while the test waits.

        Raises:
            ControllerFailed: it has ended.
        """
        return None

    def forget(self) -> None:
        """Note that the simulation was reset."""
        return None

    def describe(self) -> str:
        """Return what is known of it, for the message that says that it is silent."""
        return f"the controller {self.name} runs in the test's own thread"

    @abstractmethod
    def close(self) -> None:
        """End it."""


class FunctionController(RosController):
    """A function, called by the test process once for every period."""

    def __init__(self, session: Session, config: Config, function: EffortFunction) -> None:
        """Answer with ``function(t, q, v)``."""
        self.name = getattr(function, "__qualname__", repr(function))
        self._session, self._config, self._function = session, config, function
        self._readings = Readings(config)
        self._wanted = 0
        self._answer: JointState | None = None
        self._seen = 0

    def expect(self, periods: int) -> None:
        """Note that so many answers are wanted from now on."""
        self._wanted = periods
        self.attend()

    def attend(self) -> None:
        """Answer the newest state, once; repeat the answer where the simulator repeats the state."""
        arrived = self._session.of_states
        if not all(arrived):
            return
        header = arrived[0][-1].header
        if self._answer is not None and self._answer.header.stamp == header.stamp:
            if len(arrived[0]) > self._seen:
                self._session.publish("/joint_commands", self._answer)
        elif self._wanted and (state := self._readings.state([messages[-1] for messages in arrived])):
            self._wanted -= 1
            efforts = checked_efforts(self._config, self._function(*state))
            names = list(self._config.robot.actuated_joints)
            self._answer = JointState(header=header, name=names, effort=efforts.tolist())
            self._session.publish("/joint_commands", self._answer)
        self._seen = len(arrived[0])

    def forget(self) -> None:
        """Note that the simulation was reset."""
        self._answer, self._wanted = None, 0

    def close(self) -> None:
        """Do nothing."""


class NodeController(RosController):
    """A node of a class of the user's, spun by the test's own thread while it waits."""

    def __init__(self, session: Session, make: NodeClass) -> None:
        """Make the node, in rclpy's default context, which is the session's.

        Raises:
            ControllerFailed: it calls ``sys.exit``.
        """
        self.name = getattr(make, "__qualname__", repr(make))
        try:
            self._client, self._node = session.client, make()
        except SystemExit as error:
            raise ControllerFailed.by_exit(self.name, 0.0, error) from error
        self._client.add_node(self._node)

    def close(self) -> None:
        """Destroy the node."""
        self._client.remove_node(self._node)
        self._node.destroy_node()


class ProcessController(RosController):
    """A command, in a process of its own."""

    def __init__(self, session: Session, folder: Path, command: Command, time: Callable[[], float]) -> None:
        """Start it; `time` gives the simulated time [s], for messages.

        Raises:
            InvalidValue: no such executable.
        """
        self.name = " ".join(map(str, command))
        try:
            self.process = Process(folder, session.domain, command)
        except OSError as error:
            raise InvalidValue("controller", self.name, f"a command that can be started ({error})") from error
        self._client, self._time, self._told = session.client, time, False

    def attend(self) -> None:
        """Check that it lives; if not, take in what was published before it ended.

        Raises:
            ControllerFailed: it has ended.
        """
        if ending := self.process.ending:
            before = None
            while (now := self._time()) != before:
                before = now
                self._client.spin(QUIET)
            self._told = True
            raise ControllerFailed(self.name, ending, self._time(), self.process.stderr)

    def describe(self) -> str:
        """Return what is known of it."""
        stderr = self.process.stderr.rstrip()
        return f"the controller {self.name} is running; its standard error {f'is: {stderr}' if stderr else 'is empty'}"

    def close(self) -> None:
        """End it, with all that it started.

        Raises:
            ControllerFailed: it had ended by itself with an error, and nobody has been told yet.
        """
        ending, code = self.process.ending, self.process.popen.returncode
        self.process.stop()
        if ending and code and not self._told:
            raise ControllerFailed(self.name, ending, self._time(), self.process.stderr)

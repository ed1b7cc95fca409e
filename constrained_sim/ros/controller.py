"""A control law as an ordinary ROS 2 node: states in, joint commands out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from ament_index_python.packages import get_package_share_directory
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from constrained_sim.config import Config, load_config
from constrained_sim.controllers import ControlLaw
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.ros.callbacks import SERVICE_PERIOD, Callbacks
from constrained_sim.ros.conversions import JointNames, to_nanoseconds, to_time
from constrained_sim.ros.demos import PACKAGE
from constrained_sim.ros.inbox import Inbox
from constrained_sim.ros.odometry_reader import BaseMotion, OdometryReader
from constrained_sim.ros.process import begin, finish, on_end
from constrained_sim.ros.usage import check_command_line
from constrained_sim.validation import Array

T = TypeVar("T")

KEPT = 10
"""Number of messages of each topic that wait for their counterpart of the same stamp."""


class ControllerNode(Node):
    """Answers every state with one command that carries the stamp of that state, so that it also works in lockstep.

    DDS orders nothing across topics: where the robot has a floating base, a state is the pair of a JointState and an
    Odometry with equal stamps.

    Parameters: ``mode``, one of the law's; ``config``, the configuration of the robot, by default the shipped one.

    Subscribes: joint_states (sensor_msgs/JointState) and, of a floating base, odom (nav_msgs/Odometry).

    Publishes: joint_commands (sensor_msgs/JointState, efforts).
    """

    def __init__(self, name: str, law: type[ControlLaw], config: str) -> None:
        """Connect.

        Args:
            name: of the node.
            law: makes the efforts.
            config: file in the package's folder config, unless the parameter ``config`` says otherwise.

        Raises:
            ConstrainedSimError: a mode or configuration that is refused.
        """
        super().__init__(name)
        mode = self.declare_parameter("mode", law.MODES[0]).value
        shipped = Path(get_package_share_directory(PACKAGE)) / "config" / config
        self._states = States(load_config(self.declare_parameter("config", str(shipped)).value))
        self._law = law(self._states.config, mode)
        self._commands = self.create_publisher(JointState, "joint_commands", QoSProfile(depth=KEPT))
        self._stopped = False
        self._inbox, self._odometry = Inbox(self), OdometryReader()
        self._inbox.subscribe(JointState, "joint_states", self._on_joints, QoSProfile(depth=KEPT))
        if self._states.config.robot.floating_base:
            self._inbox.subscribe(Odometry, "odom", self._on_base, QoSProfile(depth=KEPT), serialised=True)

    def run(self) -> None:
        """Answer states, and now and then whoever asks for parameters, until stopped."""
        callbacks = Callbacks(self, self._inbox.subscriptions)
        while not self._stopped:
            self._inbox.wait(SERVICE_PERIOD)
            self._inbox.take_all()
            callbacks.run_ready()

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stopped = True

    def _on_joints(self, joints: JointState) -> None:
        self._states.take_joints(joints)
        self._answer(to_nanoseconds(joints.header.stamp))

    def _on_base(self, data: bytes) -> None:
        try:
            base = self._odometry.read(data)
        except ConstrainedSimError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        self._states.take_base(base)
        self._answer(base.stamp)

    def _answer(self, stamp: int) -> None:
        try:
            state = self._states.complete(stamp)
        except ConstrainedSimError as error:
            self.get_logger().warning(f"no command: {error}", throttle_duration_sec=1.0)
            return
        if state is None:
            return
        efforts = self._law.efforts(seconds_of(stamp), *state)
        command = JointState(name=self._states.config.robot.actuated_joints, effort=efforts.tolist())
        command.header.stamp = to_time(stamp)
        self._commands.publish(command)


class States:
    """Configurations and velocities put together from messages of equal stamps.

    Attributes:
        config: of the robot.
    """

    def __init__(self, config: Config) -> None:
        """Wait for the first messages."""
        self.config, self._names = config, JointNames(config.robot)
        self._joints: dict[int, JointState] = {}
        self._bases: dict[int, BaseMotion] = {}

    def take_joints(self, message: JointState) -> None:
        """Keep the state of the joints."""
        _keep(self._joints, to_nanoseconds(message.header.stamp), message)

    def take_base(self, base: BaseMotion) -> None:
        """Keep the state of the base."""
        _keep(self._bases, base.stamp, base)

    def complete(self, stamp: int) -> tuple[Array, Array] | None:
        """Return q (nq,) and v (nv,) at `stamp` [ns], once; None while a message is missing.

        Raises:
            InvalidValue: a state of the joints that lacks a joint, or its position or velocity.
        """
        robot = self.config.robot.without_objects
        joints, base = self._joints.get(stamp), self._bases.get(stamp)
        if joints is None or (robot.floating_base and base is None):
            return None
        q, v = robot.neutral(), np.zeros(robot.nv)
        self._names.fill(joints, q, v)
        del self._joints[stamp]
        self._bases.pop(stamp, None)
        if base is not None:
            q[:7], v[:6] = base.pose, base.twist
        return q, v


def _keep(kept: dict[int, T], stamp: int, new: T) -> None:
    """Keep the newest, in the order of arrival."""
    kept.pop(stamp, None)
    kept[stamp] = new
    while len(kept) > KEPT:
        del kept[next(iter(kept))]


def main(name: str, law: type[ControlLaw], config: str, args: Sequence[str] | None = None) -> int:
    """Run `law` in a node until SIGINT or SIGTERM; return 0, or 1 with one clear line where it cannot go on."""
    arguments = list(sys.argv if args is None else args)
    check_command_line(
        arguments,
        name,
        "Answers every state of the simulated robot with a command that carries the stamp of that state.",
        f"examples:\n  {name}\n  {name} --ros-args -p mode:={law.MODES[-1]}",
        f"parameters (default)\n  mode ({law.MODES[0]!r}): one of {', '.join(law.MODES)}\n"
        f"  config (the package's {config}): parameter file of the robot",
    )
    try:
        begin(arguments)
        node = ControllerNode(name, law, config)
        on_end(node.stop)
        node.run()
    except ConstrainedSimError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except SystemExit as error:
        print(f"{name}: the control law {law.__qualname__} called sys.exit({error.code!r})", file=sys.stderr)
        return 1
    finally:
        finish()
    return 0

#!/usr/bin/env python3
"""Makes the leg stand or hop: an ordinary rclpy node that knows the topics joint_states and joint_commands only.

It answers every state with one command that carries the stamp of that state, so that it also works in lockstep.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

import constrained_sim.ros.early_signals  # noqa: F401  (first: what follows takes a second)

# isort: split

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState

from constrained_sim.controllers.leg import LegController, LegState

EXAMPLE = "example: leg_controller --ros-args -p mode:=hop (or stand, the default)"


class LegControllerNode(Node):
    """Subscribes to joint_states, publishes joint_commands.

    Parameter: mode, ``stand`` or ``hop``.
    """

    JOINTS = ("slider", "hip", "knee")

    def __init__(self) -> None:
        """Connect; only the newest state matters, so the queue holds one."""
        super().__init__("leg_controller", start_parameter_services=False)  # rclpy would look at them at every state
        mode = self.declare_parameter("mode", "stand").value
        if mode not in ("stand", "hop"):
            raise SystemExit(f"leg_controller: parameter mode: got {mode!r}, allowed: stand, hop")
        self._controller = LegController(None, mode)
        self._commands = self.create_publisher(JointState, "joint_commands", QoSProfile(depth=10))
        self.create_subscription(JointState, "joint_states", self._on_state, QoSProfile(depth=1))

    def _on_state(self, state: JointState) -> None:
        order = [state.name.index(name) for name in self.JOINTS]
        leg = LegState([state.position[i] for i in order], [state.velocity[i] for i in order])
        stamp = state.header.stamp
        efforts = self._controller.efforts_of(stamp.sec + 1e-9 * stamp.nanosec, leg)
        command = JointState(name=["hip", "knee"], effort=efforts)
        command.header.stamp = stamp
        self._commands.publish(command)


def main() -> None:
    """Run until SIGINT or SIGTERM, which end the loop between two callbacks: an exception could come amidst of one."""
    parser = argparse.ArgumentParser(prog="leg_controller", description=__doc__, epilog=EXAMPLE)
    parser.parse_args(remove_ros_args(sys.argv)[1:])
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    executor = SingleThreadedExecutor()
    executor.add_node(LegControllerNode())
    while not stopped.is_set():
        executor.spin_once(timeout_sec=0.1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C comes twice under ros2 launch
    rclpy.shutdown()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes the leg stand or hop: an ordinary rclpy node that knows the topics joint_states and joint_commands only.

It answers every state with one command that carries the stamp of that state, so that it also works in lockstep.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

LINK = 0.16
"""Length of the upper and of the lower leg [m]."""

MASS = 2.5
GRAVITY = 9.81


@dataclass
class LegState:
    """Slider height [m], hip and knee angle [rad], and their rates."""

    position: np.ndarray
    velocity: np.ndarray

    @cached_property
    def foot(self) -> np.ndarray:
        """Foot relative to the hip (x, z) [m]."""
        _, hip, knee = self.position
        return -LINK * np.array([math.sin(hip) + math.sin(hip + knee), math.cos(hip) + math.cos(hip + knee)])

    @cached_property
    def foot_jacobian(self) -> np.ndarray:
        """Derivative of :attr:`foot` by (hip, knee), 2 x 2."""
        x, z = self.foot
        _, hip, knee = self.position
        return np.array([[z, -LINK * math.cos(hip + knee)], [-x, LINK * math.sin(hip + knee)]])

    @property
    def foot_height(self) -> float:
        """Height of the foot above the ground [m]."""
        return float(self.position[0] + self.foot[1])


class LegController:
    """Commands hip and knee efforts through a virtual spring and damper between hip and foot."""

    STIFFNESS = np.array([400.0, 900.0])  # N/m, along x and z
    DAMPING = np.array([14.0, 36.0])  # N s/m
    FLIGHT_STIFFNESS = np.array([150.0, 150.0])
    FLIGHT_DAMPING = np.array([4.0, 4.0])
    STAND_LENGTH = 0.25
    CROUCH_LENGTH = 0.20
    TAKEOFF_LENGTH = 0.285
    THRUST = 40.0  # N, on the ground
    CROUCH_TIME = 0.25  # s
    LANDING_TIME = 0.15  # s

    def __init__(self, mode: str) -> None:
        """Choose `mode`, ``stand`` or ``hop``."""
        self._hops = mode == "hop"
        self.phase = "flight"
        self._since = 0.0
        self._landing_length = self.STAND_LENGTH

    def efforts(self, t: float, leg: LegState) -> np.ndarray:
        """Return the efforts of hip and knee [N m] at time `t` [s]."""
        self._change_phase(t, leg)
        jacobian = leg.foot_jacobian
        velocity = jacobian @ leg.velocity[1:]
        if self.phase == "thrust":
            sideways = -self.STIFFNESS[0] * leg.foot[0] - self.DAMPING[0] * velocity[0]
            return jacobian.T @ np.array([sideways, -self.THRUST])
        length = self._wanted_length(t)
        in_flight = self.phase == "flight"
        stiffness = self.FLIGHT_STIFFNESS if in_flight else self.STIFFNESS
        damping = self.FLIGHT_DAMPING if in_flight else self.DAMPING
        force = stiffness * (np.array([0.0, -length]) - leg.foot) - damping * velocity
        if not in_flight:
            force[1] -= MASS * GRAVITY
        return jacobian.T @ force

    def _wanted_length(self, t: float) -> float:
        """Return the length of the leg to aim at [m]: after a landing it goes from that at touchdown to the next."""
        if self.phase == "flight":
            return self.STAND_LENGTH
        goal = self.CROUCH_LENGTH if self._hops else self.STAND_LENGTH
        progress = min(1.0, (t - self._since) / self.LANDING_TIME)
        return self._landing_length + progress * (goal - self._landing_length)

    def _change_phase(self, t: float, leg: LegState) -> None:
        lasted = t - self._since
        length = -leg.foot[1]
        if self.phase == "flight" and leg.foot_height < 1e-3 and leg.velocity[0] < 0.1:
            self._landing_length = length
            self._enter("stance", t)
        elif self.phase == "stance" and self._hops and lasted > self.CROUCH_TIME:
            self._enter("thrust", t)
        elif self.phase == "thrust" and length > self.TAKEOFF_LENGTH:
            self._enter("flight", t)

    def _enter(self, phase: str, t: float) -> None:
        self.phase, self._since = phase, t


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
        self._controller = LegController(mode)
        self._commands = self.create_publisher(JointState, "joint_commands", QoSProfile(depth=10))
        self.create_subscription(JointState, "joint_states", self._on_state, QoSProfile(depth=1))

    def _on_state(self, state: JointState) -> None:
        order = [state.name.index(name) for name in self.JOINTS]
        leg = LegState(np.array(state.position)[order], np.array(state.velocity)[order])
        stamp = state.header.stamp
        efforts = self._controller.efforts(stamp.sec + 1e-9 * stamp.nanosec, leg)
        command = JointState(name=["hip", "knee"], effort=efforts.tolist())
        command.header.stamp = stamp
        self._commands.publish(command)


def main() -> None:
    """Run until SIGINT or SIGTERM, which end the loop between two callbacks: an exception could come amidst of one."""
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    executor = SingleThreadedExecutor()
    executor.add_node(LegControllerNode())
    while not stopped.is_set():
        executor.spin_once(timeout_sec=0.1)
    rclpy.shutdown()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes the leg stand or hop: an ordinary rclpy node that knows the topics joint_states and joint_commands only.

It answers every state with one command that carries the stamp of that state, so that it also works in lockstep.
"""

from __future__ import annotations

import math
import signal
import sys
import threading

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


class LegState:
    """Where the foot is and how it moves; plain numbers, since arrays of two take ten times as long.

    Attributes:
        x, z: of the foot relative to the hip [m].
        vx, vz: their rates [m/s].
        height: of the foot above the ground [m].
        climb: velocity of the slider [m/s].
    """

    def __init__(self, position: list[float], velocity: list[float]) -> None:
        """Take slider height [m], hip and knee angle [rad], and their rates."""
        (slider, hip, knee), (self.climb, hip_rate, knee_rate) = position, velocity
        lower_x, lower_z = LINK * math.sin(hip + knee), LINK * math.cos(hip + knee)
        self.x, self.z = -LINK * math.sin(hip) - lower_x, -LINK * math.cos(hip) - lower_z
        self.height = slider + self.z
        self._of_hip, self._of_knee = (self.z, -self.x), (-lower_z, lower_x)
        self.vx = self._of_hip[0] * hip_rate + self._of_knee[0] * knee_rate
        self.vz = self._of_hip[1] * hip_rate + self._of_knee[1] * knee_rate

    def efforts(self, fx: float, fz: float) -> list[float]:
        """Return the efforts of hip and knee [N m] that push with a force [N] from the hip onto the foot: J^T f."""
        return [x * fx + z * fz for x, z in (self._of_hip, self._of_knee)]


class LegController:
    """Commands hip and knee efforts through a virtual spring and damper between hip and foot."""

    STIFFNESS = 400.0, 900.0  # N/m, along x and z
    DAMPING = 14.0, 36.0  # N s/m
    FLIGHT_STIFFNESS = 150.0, 150.0
    FLIGHT_DAMPING = 4.0, 4.0
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

    def efforts(self, t: float, leg: LegState) -> list[float]:
        """Return the efforts of hip and knee [N m] at time `t` [s]."""
        self._change_phase(t, leg)
        if self.phase == "thrust":
            return leg.efforts(-self.STIFFNESS[0] * leg.x - self.DAMPING[0] * leg.vx, -self.THRUST)
        in_flight = self.phase == "flight"
        stiffness = self.FLIGHT_STIFFNESS if in_flight else self.STIFFNESS
        damping = self.FLIGHT_DAMPING if in_flight else self.DAMPING
        fx = -stiffness[0] * leg.x - damping[0] * leg.vx
        fz = -stiffness[1] * (self._wanted_length(t) + leg.z) - damping[1] * leg.vz
        return leg.efforts(fx, fz if in_flight else fz - MASS * GRAVITY)

    def _wanted_length(self, t: float) -> float:
        """Return the length of the leg to aim at [m]: after a landing it goes from that at touchdown to the next."""
        if self.phase == "flight":
            return self.STAND_LENGTH
        goal = self.CROUCH_LENGTH if self._hops else self.STAND_LENGTH
        progress = min(1.0, (t - self._since) / self.LANDING_TIME)
        return self._landing_length + progress * (goal - self._landing_length)

    def _change_phase(self, t: float, leg: LegState) -> None:
        lasted = t - self._since
        length = -leg.z
        if self.phase == "flight" and leg.height < 1e-3 and leg.climb < 0.1:
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
        leg = LegState([state.position[i] for i in order], [state.velocity[i] for i in order])
        stamp = state.header.stamp
        efforts = self._controller.efforts(stamp.sec + 1e-9 * stamp.nanosec, leg)
        command = JointState(name=["hip", "knee"], effort=efforts)
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

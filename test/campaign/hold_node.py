"""The law Hold as an ordinary node: it knows joint_states and joint_commands only."""

import sys
import time

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState

JOINTS = "hip", "knee"
GOAL = 0.60, -1.20


class HoldNode(Node):
    """Answers every state; from the time `silent_from` it stays silent, from `greedy_from` it holds more and more."""

    def __init__(self):
        super().__init__("hold")
        self.stiffness = self.declare_parameter("stiffness", 60.0).value
        self.damping = self.declare_parameter("damping", 1.5).value
        self.silent_from = self.declare_parameter("silent_from", 1e9).value
        self.greedy_from = self.declare_parameter("greedy_from", 1e9).value
        self.commands = self.create_publisher(JointState, "joint_commands", 10)
        self.create_subscription(JointState, "joint_states", self.answer, 10)

    def answer(self, state):
        """Publish efforts with the stamp of the state."""
        now = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        if now > self.silent_from:
            time.sleep(1000.0)
        held = []
        while now > self.greedy_from:
            held.append(b"x" * 10_000_000)
        at = [state.name.index(name) for name in JOINTS]
        efforts = [
            self.stiffness * (goal - state.position[i]) - self.damping * state.velocity[i]
            for i, goal in zip(at, GOAL, strict=True)
        ]
        self.commands.publish(JointState(header=state.header, name=list(JOINTS), effort=efforts))


rclpy.init(args=sys.argv)
rclpy.spin(HoldNode())

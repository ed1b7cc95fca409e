"""Tests of controllers over ROS: the simulation node in a process of its own, in lock-step with the controller."""

from constrained_sim.testing.ros.client import Client
from constrained_sim.testing.ros.domains import free_domain
from constrained_sim.testing.ros.process import Process, package_executable
from constrained_sim.testing.ros.ros_robot import RosRobot
from constrained_sim.testing.ros.session import Session, accepted, arguments, nanoseconds, stamp

__all__ = [
    "Client",
    "Process",
    "RosRobot",
    "Session",
    "accepted",
    "arguments",
    "free_domain",
    "nanoseconds",
    "package_executable",
    "stamp",
]

"""Starts the simulation of the leg and its controller."""

from constrained_sim.ros.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return launch_description("leg")

"""Starts the simulation of the leg and its controller."""

from datetime import datetime

from launch.actions import DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription

ARGUMENTS = [
    DeclareLaunchArgument(
        "controller",
        default_value="hop",
        choices=["stand", "hop", "none"],
        description="What the example controller makes the leg do; none: leave it to a controller of yours.",
    ),
    DeclareLaunchArgument(
        "clock_mode",
        default_value="realtime",
        choices=["realtime", "fast", "lockstep"],
        description="realtime follows the wall clock; fast never waits; lockstep waits for a command after each state.",
    ),
    DeclareLaunchArgument(
        "solver",
        default_value="",
        description="direct, range_space, null_space, kokkevis, projected, proximal; empty: as configured. All agree.",
    ),
    DeclareLaunchArgument(
        "record",
        default_value="false",
        choices=["true", "false"],
        description="Record a rosbag2 (MCAP) into a new folder leg_bag_<date>_<time> of the working directory.",
    ),
    DeclareLaunchArgument(
        "duration",
        default_value="0.0",
        description="Seconds of simulated time after which everything stops; 0: run until interrupted.",
    ),
    DeclareLaunchArgument(
        "config",
        default_value=PathJoinSubstitution([FindPackageShare("constrained_sim"), "config", "leg.yaml"]),
        description="Parameter file: robot, contacts, initial state, how to simulate.",
    ),
]


def start(context: LaunchContext) -> list:
    """Return the processes for the values of the arguments."""
    value = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    overrides = {
        "clock_mode": value["clock_mode"],
        "duration": float(value["duration"]),
        "wait_for_first_command": value["controller"] != "none",
    }
    if value["solver"]:
        overrides["solver"] = value["solver"]
    if value["record"] == "true":
        overrides["record"] = f"leg_bag_{datetime.now():%Y%m%d_%H%M%S}"
    simulator = Node(
        package="constrained_sim",
        executable="simulator",
        name="constrained_sim",
        output="screen",
        parameters=[value["config"], overrides],
    )
    controller = Node(
        package="constrained_sim",
        executable="leg_controller",
        name="leg_controller",
        output="screen",
        parameters=[{"mode": value["controller"]}],
    )
    stop_together = RegisterEventHandler(
        OnProcessExit(target_action=simulator, on_exit=[Shutdown(reason="simulation ended")])
    )
    return [stop_together, simulator, *([controller] if value["controller"] != "none" else [])]


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=start)])

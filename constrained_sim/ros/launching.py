"""What the launch files of the shipped robots have in common; the only module that imports the launch system."""

from __future__ import annotations

from datetime import datetime

from launch.actions import DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler, SetEnvironmentVariable, Shutdown
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from constrained_sim.ros.demos import MODES, PACKAGE
from constrained_sim.ros.discovery import discovery_settings
from launch import LaunchContext, LaunchDescription


def launch_description(robot: str) -> LaunchDescription:
    """Return the launch description that simulates a shipped `robot` with its controller."""
    declared = arguments(robot)
    names = [argument.name for argument in declared]

    def start(context: LaunchContext) -> list:
        return processes(robot, {name: LaunchConfiguration(name).perform(context) for name in names})

    environment = [SetEnvironmentVariable(name, value) for name, value in discovery_settings().items()]
    return LaunchDescription([*declared, *environment, OpaqueFunction(function=start)])


def arguments(robot: str) -> list[DeclareLaunchArgument]:
    """Return the arguments of the launch file of `robot`."""
    return [
        DeclareLaunchArgument(
            "controller",
            default_value=MODES[robot][0],
            choices=[*MODES[robot], "none"],
            description="What the example controller makes the robot do; none: leave it to a controller of yours.",
        ),
        DeclareLaunchArgument(
            "clock_mode",
            default_value="realtime",
            choices=["realtime", "fast", "lockstep"],
            description="realtime follows the wall clock; fast never waits; lockstep waits for a command after each "
            "state.",
        ),
        DeclareLaunchArgument(
            "solver",
            default_value="",
            description="direct, range_space, null_space, kokkevis, projected, proximal; empty: as configured. All "
            "agree.",
        ),
        DeclareLaunchArgument(
            "record",
            default_value="false",
            choices=["true", "false"],
            description=f"Record a rosbag2 (MCAP) into a new folder {robot}_bag_<date>_<time> here.",
        ),
        DeclareLaunchArgument(
            "viewer",
            default_value="false",
            choices=["true", "false"],
            description="Show the simulation in the browser, at http://127.0.0.1:8080 or the next port that is free.",
        ),
        DeclareLaunchArgument(
            "duration",
            default_value="0.0",
            description="Seconds of simulated time after which everything stops; 0: run until interrupted.",
        ),
        DeclareLaunchArgument(
            "config",
            default_value=PathJoinSubstitution([FindPackageShare(PACKAGE), "config", f"{robot}.yaml"]),
            description="Parameter file: robot, contacts, initial state, how to simulate.",
        ),
    ]


def processes(robot: str, value: dict[str, str]) -> list:
    """Return what to start for the `value` of every argument: the simulator, the controller unless it is none, the viewer on request."""
    controlled = value["controller"] != "none"
    overrides = {
        "clock_mode": value["clock_mode"],
        "duration": float(value["duration"]),
        "wait_for_first_command": controlled,
    }
    if value["solver"]:
        overrides["solver"] = value["solver"]
    if value["record"] == "true":
        overrides["record"] = f"{robot}_bag_{datetime.now():%Y%m%d_%H%M%S}"
    simulator = Node(
        package=PACKAGE,
        executable="simulator",
        name="constrained_sim",
        output="screen",
        parameters=[value["config"], overrides],
    )
    controller = Node(
        package=PACKAGE,
        executable=f"{robot}_controller",
        name=f"{robot}_controller",
        output="screen",
        parameters=[{"mode": value["controller"]} | ({} if robot == "leg" else {"config": value["config"]})],
    )
    viewer = Node(package=PACKAGE, executable="viewer", name="viewer", output="screen")
    stop_together = RegisterEventHandler(
        OnProcessExit(target_action=simulator, on_exit=[Shutdown(reason="simulation ended")])
    )
    return [stop_together, simulator, *([controller] if controlled else []), *([viewer] if value["viewer"] == "true" else [])]

"""The arguments of the launch files of the shipped robots."""

from __future__ import annotations

from launch.actions import DeclareLaunchArgument
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

from constrained_sim.ros.demos import MODES, PACKAGE
from constrained_sim.solvers import SOLVERS

SWITCH = ["true", "false"]
LEVELS = ["debug", "info", "warn", "error", "fatal"]


def arguments(robot: str) -> list[DeclareLaunchArgument]:
    """Return the arguments of the launch file of `robot`."""
    return [*_of_simulation(robot), *_of_ros(robot)]


def _of_simulation(robot: str) -> list[DeclareLaunchArgument]:
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
            choices=["", *SOLVERS],
            description="How constraints and contacts are solved; empty: as configured. All agree.",
        ),
        DeclareLaunchArgument(
            "viewer",
            default_value="false",
            choices=SWITCH,
            description="Show the simulation in the browser, at http://127.0.0.1:8080 or the next port that is free.",
        ),
        DeclareLaunchArgument(
            "record",
            default_value="false",
            choices=SWITCH,
            description=f"Record a rosbag2 (MCAP) into a new folder {robot}_bag_<date>_<time> here.",
        ),
        DeclareLaunchArgument(
            "duration",
            default_value="0.0",
            description="Seconds of simulated time after which everything stops; 0: as configured, which is "
            "never unless the file says so.",
        ),
        DeclareLaunchArgument(
            "config",
            default_value=_shared("config", f"{robot}.yaml"),
            description="Parameter file: robot, contacts, initial state, how to simulate.",
        ),
    ]


def _of_ros(robot: str) -> list[DeclareLaunchArgument]:
    return [
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of all nodes."),
        DeclareLaunchArgument(
            "frame_prefix",
            default_value="",
            description="Before the names of links in messages and transforms, such as left/; empty: as configured.",
        ),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value="true",
            choices=SWITCH,
            description="Whether the nodes beside the simulator, which makes the time, follow /clock.",
        ),
        DeclareLaunchArgument(
            "log_level", default_value="info", choices=LEVELS, description="What nodes log, and all that is worse."
        ),
        DeclareLaunchArgument(
            "robot_state_publisher",
            default_value="auto",
            choices=["auto", *SWITCH],
            description="Leave the transforms of the links to a robot_state_publisher, which is started; auto: where "
            "it is installed and can tell the place of every link.",
        ),
        DeclareLaunchArgument(
            "rviz", default_value="false", choices=SWITCH, description="Show robot and contact forces in RViz."
        ),
        DeclareLaunchArgument(
            "rviz_config", default_value=_shared("config", f"{robot}.rviz"), description="What RViz shows."
        ),
    ]


def _shared(*path: str) -> PathJoinSubstitution:
    return PathJoinSubstitution([FindPackageShare(PACKAGE), *path])

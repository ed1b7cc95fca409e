"""Common part of the launch files of the shipped robots; with launch_arguments, all that imports launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_packages_with_prefixes
from launch.actions import EmitEvent, LogInfo, OpaqueFunction, RegisterEventHandler, SetEnvironmentVariable
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from constrained_sim.config import Config, load_config
from constrained_sim.descriptions.urdf.writer import urdf_of
from constrained_sim.exceptions import InvalidValue, SimulationFailed
from constrained_sim.exit_code import how_it_ended
from constrained_sim.ros.demos import PACKAGE
from constrained_sim.ros.discovery import discovery_settings
from constrained_sim.ros.launch_arguments import arguments
from launch import LaunchContext, LaunchDescription

PUBLISHER = "robot_state_publisher"


def launch_description(robot: str) -> LaunchDescription:
    """Return the launch description that simulates a shipped `robot` with its controller."""
    declared = arguments(robot)
    names = [argument.name for argument in declared]

    def start(context: LaunchContext) -> list:
        return processes(robot, {name: LaunchConfiguration(name).perform(context) for name in names})

    environment = [SetEnvironmentVariable(name, value) for name, value in discovery_settings().items()]
    return LaunchDescription([*declared, *environment, OpaqueFunction(function=start)])


def processes(robot: str, value: Mapping[str, str]) -> list:
    """Return what to start for the `value` of every argument: the simulator, and what goes with it.

    Raises:
        InvalidValue: a duration that is not one, or a file that is not there.
    """
    if not Path(value["config"]).is_file():
        raise InvalidValue("argument config", value["config"], "a parameter file")
    simulator = _node(value, "simulator", "constrained_sim", [value["config"], simulator_parameters(robot, value)])
    others = [*([controller(robot, value)] if value["controller"] != "none" else []), *companions(value)]
    stop_together = RegisterEventHandler(OnProcessExit(target_action=simulator, on_exit=_end_with_the_simulator))
    return [stop_together, simulator, *others]


def simulator_parameters(robot: str, value: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of the simulator beside those in its file.

    Raises:
        InvalidValue: a duration that is not one.
    """
    parameters: dict[str, Any] = {
        "clock_mode": value["clock_mode"],
        "wait_for_first_command": value["controller"] != "none",
    }
    if duration := seconds("duration", value["duration"]):
        parameters["duration"] = duration
    parameters |= {name: value[name] for name in ("solver", "frame_prefix") if value[name]}
    if value["record"] == "true":
        parameters["record"] = f"{robot}_bag_{datetime.now():%Y%m%d_%H%M%S}"
    if others_publish_links(value):
        parameters["tf"] = "base"
    return parameters


def controller(robot: str, value: Mapping[str, str]) -> Node:
    """Return the example controller."""
    parameters = {"mode": value["controller"]} | ({} if robot == "leg" else {"config": value["config"]})
    return _node(value, f"{robot}_controller", f"{robot}_controller", [parameters])


def companions(value: Mapping[str, str]) -> list[Node]:
    """Return the viewer and the nodes of other packages, where they are asked for."""
    on_time, nodes = {"use_sim_time": value["use_sim_time"] == "true"}, []
    if others_publish_links(value):
        config = config_of(value["config"])
        text = config.robot.urdf or urdf_of(config.robot.without_objects)
        prefix = value["frame_prefix"] or config.node.frame_prefix
        described = {"robot_description": text, "frame_prefix": prefix}
        nodes.append(_node(value, PUBLISHER, PUBLISHER, [described | on_time], PUBLISHER))
    if value["viewer"] == "true":
        nodes.append(_node(value, "viewer", "viewer", [on_time]))
    if value["rviz"] == "true":
        nodes.append(_node(value, "rviz2", "rviz2", [on_time], "rviz2", "-d", value["rviz_config"]))
    return nodes


@functools.cache
def config_of(file: str) -> Config:
    """Return the configuration in a parameter file, read once: several nodes are told of it."""
    return load_config(file)


def others_publish_links(value: Mapping[str, str]) -> bool:
    """Return whether a robot_state_publisher is to publish the transforms of the links.

    Of itself where its package is installed, and the robot has no joint of several degrees of freedom, of which
    joint_states do not tell.
    """
    if value["robot_state_publisher"] != "auto":
        return value["robot_state_publisher"] == "true"
    if PUBLISHER not in get_packages_with_prefixes():
        return False
    robot = config_of(value["config"]).robot
    joints = [joint for joint in robot.joint_models.values() if joint.nv > 1]
    return len(joints) == int(robot.floating_base)


def seconds(name: str, text: str) -> float:
    """Return the value of an argument in seconds.

    Raises:
        InvalidValue: it is no finite number, or negative.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise InvalidValue(f"argument {name}", text, "seconds, at least 0")
    return value


def _node(
    value: Mapping[str, str], executable: str, name: str, parameters: list, package: str = PACKAGE, *words: str
) -> Node:
    return Node(
        package=package,
        executable=executable,
        name=name,
        namespace=value["namespace"],
        output="screen",
        parameters=parameters,
        arguments=[*words, "--ros-args", "--log-level", value["log_level"]],
    )


def _end_with_the_simulator(event: Any, context: LaunchContext) -> list:
    """End everything; launch itself fails if the simulator did, so that its caller sees it.

    Raises:
        SimulationFailed: the simulator ended with an error.
    """
    if event.returncode:
        reason = "; its last line says why" if event.returncode > 0 else ""
        raise SimulationFailed(f"the simulator {how_it_ended(event.returncode)}{reason}")
    return [LogInfo(msg="simulation ended"), EmitEvent(event=Shutdown(reason="simulation ended"))]

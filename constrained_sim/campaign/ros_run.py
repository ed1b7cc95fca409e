"""A run over ROS: the simulation node and a controller's node in a DDS domain of their own, in lock-step."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from constrained_sim.campaign.push import Push, in_order
from constrained_sim.campaign.sampling import generator
from constrained_sim.campaign.study import Inputs, Study
from constrained_sim.config import Config
from constrained_sim.optional import ros_module
from constrained_sim.testing.simulated_robot import SimulatedRobot
from constrained_sim.testing.snapshot import Snapshot
from constrained_sim.trajectory import Setup, Trajectory

SMALLEST_TIMEOUT = 20.0
"""[s] of wall-clock time without a new state after which a run fails; the study's limit counts too."""


def simulate_in_ros(study: Study, run: int, inputs: Inputs, config: Config) -> Trajectory:
    """Return the run of the controller's node: a row for every control period, energies and multipliers unknown.

    Options of the controller become parameters of its node.

    Raises:
        MissingLibrary: ROS 2.
        ConstrainedSimError: the node or the controller ended, or is silent.
    """
    robots = ros_module("constrained_sim.testing.ros", "a controller that is a ROS node")
    command = list(study.controller)
    if inputs.options:
        words = [word for name, value in inputs.options.items() for word in ("-p", f"{name}:={value}")]
        command += words if "--ros-args" in command else ["--ros-args", *words]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        file = folder / "simulation.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": _of_node(study, run, inputs, config)}}))
        timeout = max(SMALLEST_TIMEOUT, study.time_limit)
        with robots.RosRobot(file, command, timeout=timeout, folder=folder) as robot:
            _advance(robot, study.duration, inputs.pushes)
            return _trajectory(robot)


def _of_node(study: Study, run: int, inputs: Inputs, config: Config) -> dict[str, Any]:
    """Return the parameters of the simulation's node; sensors, if there are any, have noise of this run's own."""
    parameters = {name: value for name, value in inputs.configuration.items() if value not in ({}, [], ())}
    if config.sensors:
        parameters["sensor_seed"] = int(generator(study.seed, run, "sensors").integers(2**31))
    return parameters


def _advance(robot: SimulatedRobot, duration: float, pushes: tuple[Push, ...]) -> None:
    """Simulate from the beginning for `duration` [s], with `pushes` that begin with a control period."""
    periods = max(1, round(duration / robot.period))
    now = 0
    for begin, push in in_order(pushes, robot.period, periods):
        if begin > now:
            robot.step(begin - now)
            now = begin
        robot.push(push.wrench, push.duration)
    robot.step(periods - now)


def _trajectory(robot: SimulatedRobot) -> Trajectory:
    """Return what the history of a robot holds."""
    history: list[Snapshot] = robot.history[1:]
    names = list(dict.fromkeys(name for now in history for name in now.contacts))
    absent = np.full(3, np.nan)

    def of_contacts(what: str) -> dict[str, Any]:
        return {
            name: np.array([getattr(now.contacts[name], what) if name in now.contacts else absent for now in history])
            for name in names
        }

    return Trajectory(
        np.array([now.t for now in history]),
        np.array([now.q for now in history]),
        np.array([now.v for now in history]),
        np.array([now.tau for now in history]),
        of_contacts("force"),
        {},
        {},
        robot.impacts,
        of_contacts("moment"),
        Setup(robot.config.robot, robot.config.constraints, robot.config.collisions),
    )

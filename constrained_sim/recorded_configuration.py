"""Configuration of a recorded simulation, or the description of its robot at least."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constrained_sim.config import Config, read_config
from constrained_sim.exceptions import InvalidValue, listed
from constrained_sim.joints import single_joints
from constrained_sim.robot import Robot

INPUT, TEXT, BASE = "constrained_sim/msg/Input", "std_msgs/msg/String", "nav_msgs/msg/Odometry"

DESCRIPTION, CONFIGURATION = "robot_description", "configuration"
"""Topics of texts; the second is in the bags of runs without ROS, which hold no inputs."""


def check_joints(robot: Robot, recorded: Iterable[str]) -> None:
    """Refuse a `robot` that a recording with the joints `recorded` cannot be of.

    Raises:
        InvalidValue: it lacks some of them.
    """
    known = single_joints(robot.joint_models)
    if missing := [name for name in recorded if name not in known]:
        raise InvalidValue("robot", robot, f"one with the recorded joints {listed(missing)}")


@dataclass
class RecordedConfiguration:
    """Collects the messages that tell of the simulation.

    Attributes:
        told: parameters, the folder where relative paths begin, and versions, as the recording has them.
        inputs: how many things entered the simulation, by their name, the configuration aside.
        description: of the robot; empty: none was recorded.
        has_base: whether the base of the robot floats.
        has_inputs: whether all that entered the simulation was recorded, so that it can be replayed.
    """

    told: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    description: str = ""
    has_base: bool = False
    has_inputs: bool = False

    @staticmethod
    def is_told_by(topic: str, kind: str) -> bool:
        """Return whether messages of this `topic` and type tell of it."""
        return kind in (INPUT, BASE) or (kind == TEXT and topic.endswith((DESCRIPTION, CONFIGURATION)))

    def add(self, topic: str, kind: str, message: Any) -> None:
        """Take a message; one that tells nothing is passed over."""
        if kind == INPUT and message.name == "configuration":
            self.told, self.has_inputs = self.told or json.loads(message.content), True
        elif kind == INPUT:
            self.inputs[message.name] = self.inputs.get(message.name, 0) + 1
        elif kind == TEXT and topic.endswith(DESCRIPTION):
            self.description = message.data
        elif kind == TEXT and topic.endswith(CONFIGURATION):
            self.told = self.told or json.loads(message.data)
        elif kind == BASE:
            self.has_base = True

    def config(self) -> Config | None:
        """Return the configuration; None: none was recorded.

        Raises:
            ConstrainedSimError: one that cannot be read here, as that of a robot whose files are elsewhere.
        """
        return read_config(self.told["parameters"], Path(self.told["folder"])) if self.told else None

    def robot(self) -> Robot | None:
        """Return the robot; None: the recording does not tell of it.

        Raises:
            ConstrainedSimError: a configuration or a description that cannot be read here.
        """
        config = self.config()
        if config is not None:
            return config.robot
        return Robot.from_urdf(self.description, floating_base=self.has_base) if self.description else None

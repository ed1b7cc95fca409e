"""The joints that a controller manager asks for, between its numbers and those of the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from math import nan as NAN

import numpy as np

from constrained_sim.config import Config
from constrained_sim.exceptions import InvalidValue
from constrained_sim.ros.conversions import JointNames
from constrained_sim.servo import JointCommand
from constrained_sim.simulator import Simulator
from constrained_sim.validation import Array, known, sparse_array


class HardwareJoints:
    """Joints with their command interfaces, in the order of the controller manager.

    Numbers are one array of (3 n): positions [rad, m], velocities [rad/s, m/s] and efforts [N m, N] of the n joints.
    """

    def __init__(self, asked: Mapping[str, Sequence[str]], config: Config, joints: JointNames) -> None:
        """Look up the joints that are asked for.

        Args:
            asked: command interfaces of each joint: ``position``, ``velocity``, ``effort``; none: it is only read.
            config: of the robot, and its servo.
            joints: of the robot.

        Raises:
            UnknownName: no such joint, or a command interface of one that is not actuated.
            InvalidValue: a position or a velocity of a joint without the gain that follows it.
        """
        for name in asked:
            known("joint of the hardware", name, joints.names)
        commanded = [name for name, interfaces in asked.items() if interfaces]
        places = {name: place for place, name in enumerate(asked)}
        drives = joints.drives(commanded, strict=True)
        self._joints = joints
        self._listed = np.array([joints.names.index(name) for name in asked], dtype=int)
        self._drives = [(places[name], drives[number]) for number, name in enumerate(commanded)]
        self._check_gains(asked, config)

    def _check_gains(self, asked: Mapping[str, Sequence[str]], config: Config) -> None:
        """Refuse positions and velocities that nothing follows."""
        goals = {kind: np.full(config.robot.nu, NAN) for kind in ("position", "velocity")}
        names = list(asked)
        for place, index in self._drives:
            for kind, goal in goals.items():
                if kind in asked[names[place]]:
                    goal[index] = 0.0
        if config.servo is not None:
            config.servo.targets(**goals)
            return
        for kind, goal in goals.items():
            if not np.isnan(goal).all():
                raise InvalidValue("command interface", kind, "effort, as the parameters have no servo")

    def state(self, sim: Simulator, tau: Array) -> Array:
        """Return (3 n) the state of the joints.

        Args:
            sim: the simulator.
            tau: (nu,) efforts that were applied [N m, N].
        """
        joints, state = self._joints, sim.state
        all_joints = joints.positions(state.q), joints.velocities(state.v), joints.efforts(tau)
        return np.array(all_joints)[:, self._listed].ravel()

    def commands(self, numbers: Array) -> dict[int, JointCommand]:
        """Return the commands in `numbers` (3 n) by index into tau; NaN: no command of this kind, and no effort.

        Raises:
            InvalidValue: another number of numbers, or infinity.
        """
        numbers = sparse_array("command of the hardware", numbers, (3 * len(self._listed),))
        position, velocity, effort = numbers.reshape(3, -1).tolist()
        return {
            index: JointCommand(0.0 if isnan(effort[place]) else effort[place], position[place], velocity[place])
            for place, index in self._drives
        }

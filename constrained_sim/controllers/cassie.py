"""Cassie: it stands."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from constrained_sim.config import Config
from constrained_sim.controllers.control_law import checked_mode
from constrained_sim.controllers.statics import standing_efforts
from constrained_sim.exceptions import UnknownName
from constrained_sim.posture import Posture
from constrained_sim.validation import Array


class CassieController:
    """Holds the initial posture by springs and dampers in the ten motors, about the efforts that carry the weight.

    The springs of the motors at hip, knee and ankle are stiff enough to keep the body, an inverted pendulum of some
    200 N m/rad, upright over its line feet: small pushes need no other balance.
    """

    MODES: ClassVar[tuple[str, ...]] = ("stand",)

    GAINS: ClassVar[dict[str, tuple[float, float]]] = {
        "roll-op": (400.0, 10.0),
        "yaw-op": (400.0, 10.0),
        "pitch-op": (600.0, 15.0),
        "knee-op": (800.0, 20.0),
        "tarsus-crank-joint": (300.0, 6.0),
    }
    """Stiffness [N m/rad] and damping [N m s/rad] by motor, left and right."""

    def __init__(self, config: Config, mode: str) -> None:
        """Prepare to do `mode`, ``stand``, in the initial configuration of `config`.

        Raises:
            UnknownName: no such mode, or an actuated joint that is none of Cassie's motors.
        """
        checked_mode(type(self), mode)
        robot = config.robot
        motors = [name.partition("-")[2] for name in robot.actuated_joints]
        for name, motor in zip(robot.actuated_joints, motors, strict=True):
            if motor not in self.GAINS:
                raise UnknownName("motor of Cassie", name, self.GAINS)
        stiffness, damping = np.array([self.GAINS[motor] for motor in motors]).T
        self._posture = Posture(robot, config.q, stiffness, damping, standing_efforts(config))

    def efforts(self, t: float, q: Array, v: Array) -> Array:
        """Return (10,) the efforts [N m] at configuration `q` and velocity `v`."""
        return self._posture.efforts(q, v)

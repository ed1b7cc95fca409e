"""The leg stands or hops; the example controller of ROS (examples/leg_controller.py) uses this law too."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from constrained_sim.config import Config
from constrained_sim.controllers.control_law import checked_mode
from constrained_sim.validation import Array

LINK = 0.16
"""Length of the upper and of the lower leg [m]."""

MASS = 2.5
GRAVITY = 9.81


class LegState:
    """Where the foot is and how it moves; plain numbers, since arrays of two take ten times as long.

    Attributes:
        x, z: of the foot relative to the hip [m].
        vx, vz: their rates [m/s].
        height: of the foot above the ground [m].
        climb: velocity of the slider [m/s].
    """

    def __init__(self, position: list[float], velocity: list[float]) -> None:
        """Take slider height [m], hip and knee angle [rad], and their rates."""
        (slider, hip, knee), (self.climb, hip_rate, knee_rate) = position, velocity
        lower_x, lower_z = LINK * math.sin(hip + knee), LINK * math.cos(hip + knee)
        self.x, self.z = -LINK * math.sin(hip) - lower_x, -LINK * math.cos(hip) - lower_z
        self.height = slider + self.z
        self._of_hip, self._of_knee = (self.z, -self.x), (-lower_z, lower_x)
        self.vx = self._of_hip[0] * hip_rate + self._of_knee[0] * knee_rate
        self.vz = self._of_hip[1] * hip_rate + self._of_knee[1] * knee_rate

    def efforts(self, fx: float, fz: float) -> list[float]:
        """Return the efforts of hip and knee [N m] that push with a force [N] from the hip onto the foot: J^T f."""
        return [x * fx + z * fz for x, z in (self._of_hip, self._of_knee)]


class LegController:
    """Commands hip and knee efforts through a virtual spring and damper between hip and foot.

    Attributes:
        phase: ``flight``, ``stance`` or ``thrust``.
    """

    MODES: ClassVar[tuple[str, ...]] = ("hop", "stand")

    STIFFNESS = 400.0, 900.0  # N/m, along x and z
    DAMPING = 14.0, 36.0  # N s/m
    FLIGHT_STIFFNESS = 150.0, 150.0
    FLIGHT_DAMPING = 4.0, 4.0
    STAND_LENGTH = 0.25
    CROUCH_LENGTH = 0.20
    TAKEOFF_LENGTH = 0.285
    THRUST = 40.0  # N, on the ground
    CROUCH_TIME = 0.25  # s
    LANDING_TIME = 0.15  # s

    def __init__(self, config: Config | None, mode: str) -> None:
        """Choose `mode`, ``stand`` or ``hop``; the dimensions are those of the shipped leg, whatever `config` says.

        Raises:
            UnknownName: no such mode.
        """
        self._hops = checked_mode(type(self), mode) == "hop"
        self.phase = "flight"
        self._since = 0.0
        self._landing_length = self.STAND_LENGTH

    def efforts(self, t: float, q: Array, v: Array) -> Array:
        """Return (2,) the efforts of hip and knee [N m] at time `t` [s], slider, hip and knee at `q` and `v` (3,)."""
        return np.array(self.efforts_of(t, LegState(q.tolist(), v.tolist())))

    def efforts_of(self, t: float, leg: LegState) -> list[float]:
        """Return the efforts of hip and knee [N m] at time `t` [s] and the state `leg`."""
        self._change_phase(t, leg)
        if self.phase == "thrust":
            return leg.efforts(-self.STIFFNESS[0] * leg.x - self.DAMPING[0] * leg.vx, -self.THRUST)
        in_flight = self.phase == "flight"
        stiffness = self.FLIGHT_STIFFNESS if in_flight else self.STIFFNESS
        damping = self.FLIGHT_DAMPING if in_flight else self.DAMPING
        fx = -stiffness[0] * leg.x - damping[0] * leg.vx
        fz = -stiffness[1] * (self._wanted_length(t) + leg.z) - damping[1] * leg.vz
        return leg.efforts(fx, fz if in_flight else fz - MASS * GRAVITY)

    def _wanted_length(self, t: float) -> float:
        """Return the length of the leg to aim at [m]: after a landing it goes from that at touchdown to the next."""
        if self.phase == "flight":
            return self.STAND_LENGTH
        goal = self.CROUCH_LENGTH if self._hops else self.STAND_LENGTH
        progress = min(1.0, (t - self._since) / self.LANDING_TIME)
        return self._landing_length + progress * (goal - self._landing_length)

    def _change_phase(self, t: float, leg: LegState) -> None:
        lasted = t - self._since
        length = -leg.z
        if self.phase == "flight" and leg.height < 1e-3 and leg.climb < 0.1:
            self._landing_length = length
            self._enter("stance", t)
        elif self.phase == "stance" and self._hops and lasted > self.CROUCH_TIME:
            self._enter("thrust", t)
        elif self.phase == "thrust" and length > self.TAKEOFF_LENGTH:
            self._enter("flight", t)

    def _enter(self, phase: str, t: float) -> None:
        self.phase, self._since = phase, t

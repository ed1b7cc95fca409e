"""A linkage driven at one joint: proportional and integral control of its velocity."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from constrained_sim.config import Config
from constrained_sim.controllers.control_law import checked_mode
from constrained_sim.exceptions import InvalidValue
from constrained_sim.joints import SingleJoint
from constrained_sim.validation import Array


class FourBarController:
    """Turns the only actuated joint at a constant rate.

    ``tau = GAIN (e + integral of e dt / INTEGRAL_TIME)``, ``e = RATE - v``. The integral waits while the effort is at
    its limit.
    """

    MODES: ClassVar[tuple[str, ...]] = ("turn",)

    RATE = 2.0 * np.pi  # rad/s
    GAIN = 4.0  # N m s/rad
    INTEGRAL_TIME = 0.02  # s

    def __init__(self, config: Config, mode: str) -> None:
        """Prepare to do `mode`, ``turn``.

        Raises:
            UnknownName: no such mode.
            InvalidValue: more or less than one actuated joint.
        """
        checked_mode(type(self), mode)
        if len(config.robot.actuated_joints) != 1:
            raise InvalidValue("actuated joints", list(config.robot.actuated_joints), "one, the crank")
        self._crank = SingleJoint.of(config.robot, config.robot.actuated_joints[0])
        self._limit = float(config.robot.effort_limits[0])
        self._integral = 0.0
        self._then: float | None = None

    def efforts(self, t: float, q: Array, v: Array) -> Array:
        """Return (1,) the effort of the crank [N m] at time `t` [s] and velocity `v`; earlier times start anew."""
        error = self.RATE - float(v[self._crank.v])
        if self._then is None or t < self._then:
            self._integral, self._then = 0.0, t
        integral = self._integral + error * (t - self._then) / self.INTEGRAL_TIME
        if abs(self.GAIN * (error + integral)) < self._limit:
            self._integral = integral
        self._then = t
        return np.array([self.GAIN * (error + self._integral)])

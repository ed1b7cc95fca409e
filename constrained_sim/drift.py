"""Keeping constraints satisfied: Baumgarte's feedback, and projection of positions and velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.validation import Array, number


@dataclass(frozen=True)
class Baumgarte:
    """Feedback ``kd s + kp phi`` on the constraint rows: ``J a = -gamma - kd s - kp phi``.

    Tedrake, sec. 1: with one time constant eps, ``kd = 2 / eps`` and ``kp = 1 / eps^2`` (critically damped).

    Attributes:
        kp: [1/s^2].
        kd: [1/s].
    """

    kp: float = 0.0
    kd: float = 0.0

    def __post_init__(self) -> None:
        """Check the gains."""
        for gain in ("kp", "kd"):
            object.__setattr__(self, gain, number(f"{gain} of Baumgarte's feedback", getattr(self, gain), 0.0))

    @classmethod
    def from_time_constant(cls, time_constant: float) -> Baumgarte:
        """Return the critically damped feedback that decays with `time_constant` [s].

        Raises:
            InvalidValue: not positive and finite.
        """
        eps = number("time constant of Baumgarte's feedback", time_constant, 0.0, open_lower=True)
        return cls(kp=1.0 / eps**2, kd=2.0 / eps)

    def feedback(self, phi: Array, s: Array) -> Array:
        """Return ``kd s + kp phi`` for violations `phi` and row velocities `s`."""
        return self.kd * s + self.kp * phi


METRICS = ("mass", "euclidean")


@dataclass(frozen=True)
class Projection:
    """Projection of the state onto the constraints, when they are violated by more than a tolerance.

    A velocity moves by the smallest change in the metric that makes the row velocities vanish; with the metric of
    the kinetic energy this never raises that energy (time-independent rows). A configuration moves by tangent steps,
    smallest in the same metric, until phi vanishes.

    Attributes:
        metric: ``"mass"`` or ``"euclidean"``.
        position_tolerance: [m, rad] largest violation left alone.
        velocity_tolerance: [m/s, rad/s] largest row velocity left alone.
    """

    metric: str = "mass"
    position_tolerance: float = 5e-9
    velocity_tolerance: float = 1e-12

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.metric not in METRICS:
            raise InvalidValue("metric of a projection", self.metric, " or ".join(METRICS))
        for tolerance in ("position_tolerance", "velocity_tolerance"):
            object.__setattr__(self, tolerance, number(f"{tolerance} of a projection", getattr(self, tolerance), 0.0))

    def weight(self, M: Array) -> Array:
        """Return (nv, nv) the metric, given the inertia."""
        return M if self.metric == "mass" else np.eye(len(M))

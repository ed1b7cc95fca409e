"""Keeping constraints satisfied: Baumgarte's feedback, and projection of positions and velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from constrained_sim.exceptions import InvalidValue
from constrained_sim.solvers import Solver, System
from constrained_sim.solvers.row_space import least_squares
from constrained_sim.validation import Array, number


class Baumgarte:
    """Feedback on the constraint rows: ``J a = -gamma - kd s - kp phi``, at velocity level ``J a = -gamma - kv s``.

    Tedrake, sec. 1 and 2: with one time constant eps, ``kd = 2 / eps``, ``kp = 1 / eps^2`` (critically damped), and
    ``kv = 1 / eps``.

    Attributes:
        kp: [1/s^2].
        kd: [1/s].
        kv: [1/s].
    """

    def __init__(
        self, time_constant: float | None = None, *, kp: float | None = None, kd: float | None = None, kv: float = 0.0
    ) -> None:
        """Set one time constant [s], or separate gains.

        Raises:
            InvalidValue: a time constant that is not positive, a negative gain, or both kinds at once.
        """
        what = "of Baumgarte's feedback"
        if time_constant is not None:
            if kp is not None or kd is not None or kv:
                raise InvalidValue(f"gains {what}", (kp, kd, kv), "none beside a time constant")
            eps = number(f"time_constant {what}", time_constant, 0.0, open_lower=True)
            kp, kd, kv = 1.0 / eps**2, 2.0 / eps, 1.0 / eps
        self.kp = number(f"kp {what}", 0.0 if kp is None else kp, 0.0)
        self.kd = number(f"kd {what}", 0.0 if kd is None else kd, 0.0)
        self.kv = number(f"kv {what}", kv, 0.0)

    def feedback(self, phi: Array, s: Array, is_position_level: npt.NDArray[np.bool_] | bool = True) -> Array:
        """Return the feedback for violations `phi` and row velocities `s` of rows that have a phi, or have none."""
        return np.where(is_position_level, self.kd * s + self.kp * phi, self.kv * s)


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

    def tangent_step(self, solver: Solver, system: System, error: Array) -> Array:
        """Return the smallest step x (nv,) with ``J x = -error`` in the metric; least squares where rows contradict.

        With the mass metric this is the linear problem of all other jobs, ``M x - J^T lam = 0``; with the Euclidean one
        it is ``-J^+ error``, by a singular value decomposition of J.
        """
        if self.metric == "mass":
            return solver.factor(system).solve(np.zeros(system.J.shape[1]), -error)[0]
        return -least_squares(system.J, error)

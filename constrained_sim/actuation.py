"""Actuation maps: ``S^T tau`` of the actuated joints, or ``B u`` of the caller's own matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.robot import Robot
from constrained_sim.validation import Array, finite_array, shape_of


def actuation_matrix(robot: Robot, actuation: Any = None) -> Array:
    """Return B (nv, k), with the generalised force ``B u`` [N m, N] of the inputs u (k,).

    Args:
        robot: the robot.
        actuation: (nv, k), any matrix: gears, tendons, thrusters, differentials; None: the selection ``S^T`` of the
            actuated joints, k = nu.

    Raises:
        InvalidValue: another number of rows, NaN or infinity.
    """
    if actuation is None:
        B = np.zeros((robot.nv, robot.nu))
        B[robot.actuation, np.arange(robot.nu)] = 1.0
        return B
    columns = (*shape_of(actuation), 0, 0)[1]
    return finite_array("actuation", actuation, (robot.nv, columns))


def actuation_force(robot: Robot, tau: Any, actuation: Any = None) -> Array:
    """Return (nv,) the generalised force ``B tau`` [N m, N], see :func:`actuation_matrix`.

    Raises:
        InvalidValue: wrong lengths, NaN or infinity.
    """
    if actuation is None:
        force = np.zeros(robot.nv)
        force[robot.actuation] = finite_array("tau", tau, (robot.nu,))
        return force
    B = actuation_matrix(robot, actuation)
    return np.asarray(B @ finite_array("tau", tau, (B.shape[1],)))

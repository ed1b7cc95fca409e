"""Joint gains that are stable at a control period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from constrained_sim.bringup.ground import checked_contacts
from constrained_sim.bringup.held_rows import held_rows
from constrained_sim.constraints import PointContact
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, number

DAMPING_SHARE = 0.4
"""Of the largest damping that is stable: the rest is for other postures, whose inertia is less."""

STIFFNESS_SHARE = 0.1
"""Of the largest stiffness that is stable with this damping."""


class JointGains(NamedTuple):
    """Gains of ``tau = stiffness (q_0 - q) - damping v``, and their bounds; (nu,) each, in the order of tau.

    Attributes:
        stiffness: [N m/rad, N/m].
        damping: [N m s/rad, N s/m].
        stiffness_bound: largest stable stiffness with this damping [N m/rad, N/m].
        damping_bound: largest stable damping, when all joints take the same share of theirs [N m s/rad, N s/m].
        apparent_inertia: of each joint in the air, all others without effort [kg m^2, kg].
        standing_inertia: the same while the contacts hold [kg m^2, kg]; infinite where they hold the joint.
    """

    stiffness: Array
    damping: Array
    stiffness_bound: Array
    damping_bound: Array
    apparent_inertia: Array
    standing_inertia: Array


def suggest_gains(
    robot: Robot, q: Any, dt: float, contacts: Sequence[PointContact] = (), frequency: float = 5.0
) -> JointGains:
    """Return proportional and derivative gains that are stable when efforts are held over `dt`.

    Linearised at rest and without gravity, effort u at the actuated joints accelerates them by ``A u``,

        A = S (M^-1 - M^-1 J^T (J M^-1 J^T)^+ J M^-1) S^T,

    J the rows of what holds: the bilateral constraints of the robot, and of closed contacts. The apparent inertia of
    joint i is ``m_i = 1 / A_ii``. With u = -(K x + D v) held over dt, a period is exactly

        v+ = v + dt A u,    x+ = x + dt (v + v+) / 2.

    For x, v ~ z^k put ``z = (2 + dt s) / (2 - dt s)``, which maps the unit disc to the left half plane. Then v = s x
    and

        [s^2 (A^-1 - dt/2 D) + s (D - dt/2 K) + K] x = 0.

    This is a mass, a damper and a spring. It is asymptotically stable where all three matrices are positive definite:

        dt lambda_max(D^1/2 A D^1/2) < 2    and    dt K_i < 2 D_i;

    for one joint, ``D < 2 m / dt`` and ``K < 2 D / dt``, which are necessary too. With ``D_i = c m_i`` the first is
    ``c < 2 / (dt lambda_max(W))``, ``W_ij = A_ij / sqrt(A_ii A_jj)``; lambda_max(W) is between 1 and nu. A contact
    takes a positive semidefinite part from A. So what is stable in the air is stable with any contacts closed, and the
    bounds are those in the air. (Sampled feedback: Astrom and Wittenmark, Computer-Controlled Systems, ch. 3 and 8.)

    Stiffness is ``m_i (2 pi frequency)^2`` with the inertia while standing, damping is critical for it; both at most a
    share of their bounds: 0.4 of damping, 0.1 of stiffness. The bounds hold at `q`; elsewhere inertia differs.

    Args:
        robot: the robot; damping and friction in its joints are left out, they help.
        q: (nq,) configuration.
        dt: control period [s].
        contacts: that are closed while it stands.
        frequency: wanted of every joint, where the bounds allow it [Hz].

    Raises:
        InvalidValue: no configuration of the robot, a period or frequency that is not positive, no actuated joint.
        UnknownName: a contact on a link that does not exist.
    """
    q = checked_robot(robot).checked_configuration(q)
    dt = number("dt", dt, 0.0, open_lower=True)
    omega = 2.0 * np.pi * number("frequency", frequency, 0.0, open_lower=True)
    if not robot.nu:
        raise InvalidValue("robot", "no actuated joint", "one at least")
    air, standing = _mobility(robot, q, ()), _mobility(robot, q, checked_contacts(contacts))
    scale = np.sqrt(np.diag(air))
    largest = float(np.linalg.eigvalsh(air / np.outer(scale, scale)).max())
    inertia = 1.0 / np.diag(air)
    held = np.diag(standing) <= 1e-9 * np.diag(air)
    standing_inertia = np.where(held, np.inf, 1.0 / np.where(held, 1.0, np.diag(standing)))
    damping_bound = 2.0 * inertia / (dt * largest)
    target = np.where(held, inertia, standing_inertia)
    damping = np.minimum(2.0 * omega * target, DAMPING_SHARE * damping_bound)
    stiffness_bound = 2.0 * damping / dt
    stiffness = np.minimum(omega**2 * target, STIFFNESS_SHARE * stiffness_bound)
    return JointGains(stiffness, damping, stiffness_bound, damping_bound, inertia, standing_inertia)


def _mobility(robot: Robot, q: Array, contacts: Sequence[PointContact]) -> Array:
    """Return (nu, nu) the accelerations of the actuated joints for unit efforts, while everything holds."""
    dynamics = Dynamics.at(robot, q, np.zeros(robot.nv))
    rows = held_rows(robot, dynamics, contacts)
    inverse = np.linalg.inv(np.linalg.cholesky(dynamics.M))
    whitened = np.vstack([rows.bilateral, rows.contacts]) @ inverse.T
    root = inverse[:, robot.actuation]
    if len(whitened):
        space = RowSpace.of(whitened, whitened)
        basis = solve_triangular(space.cholesky, space.scaled(whitened), lower=True)  # (rank, nv), orthonormal rows
        root = root - basis.T @ (basis @ root)
    return np.asarray(root.T @ root)

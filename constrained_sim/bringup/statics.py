"""The efforts with which a robot stands still, and what the ground carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.bringup.ground import checked_contacts
from constrained_sim.bringup.held_rows import held_rows
from constrained_sim.constraints import PointContact
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.rank import least_squares
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array

EQUILIBRIUM_WEIGHT = 1e4
"""Weight of the equations of motion against the size of the forces, in the bounded problem."""

MOST_ROUNDS, SMALL = 20, 1e-9
"""Rounds of the search for edges of friction cones; share of the forces that may be missing at its end."""

SLACK = 1e-9
"""Share of the largest force by which the forces of least norm may leave their bounds."""


class Standing(NamedTuple):
    """Forces of a robot at rest.

    Attributes:
        tau: (nu,) efforts [N m, N].
        forces: (k, 3) of the ground on the robot [N], world axes, one row for each contact in the order given.
        multipliers: (rows,) of the bilateral constraints [N, N m].
        residual: (nv,) what is left of the equations of motion [N, N m]; zero where the robot can stand like this.
    """

    tau: Array
    forces: Array
    multipliers: Array
    residual: Array


class _Statics(NamedTuple):
    """``A x = b`` with x = (tau, multipliers, contact rows), and the contact rows: a normal, or two tangents before it.

    Attributes:
        rows: (m, nv) the transpose of A.
        b: (nv,).
        axes: (c, 3) world direction of each contact row.
        owner: (c,) contact of each row.
        normals: (k,) place of the normal of each contact among the contact rows.
    """

    rows: Array
    b: Array
    axes: Array
    owner: npt.NDArray[np.intp]
    normals: npt.NDArray[np.intp]


def standing_efforts(robot: Robot, q: Any, contacts: Sequence[PointContact]) -> Standing:
    """Return the efforts and contact forces of least norm that hold a robot at rest.

    The equations of motion with v = 0 and a = 0 are::

        S^T tau + J_b^T lam + J_c^T f = h - (springs in joints),

    J_b the bilateral constraints of the robot, J_c the contacts: their three directions, or where the friction
    coefficient is zero the normal alone. The solution of least norm is taken where it keeps the limits of efforts and
    ``f_n >= 0, |f_t| <= friction f_n``. Elsewhere a bounded least-squares problem is solved::

        min |W (A x - b)|^2 + |x|^2,    W = 1e4,

    in which f is a nonnegative sum of edges of each friction cone: four, and those that turn out to be missing.
    Where no forces keep the robot at rest, `residual` tells what is missing.

    Args:
        robot: the robot; its own constraints hold it too.
        q: (nq,) configuration.
        contacts: that are closed, whatever their gaps.

    Raises:
        InvalidValue: no configuration of the robot, or no contacts.
        UnknownName: a contact on a link that does not exist.
    """
    q = checked_robot(robot).checked_configuration(q)
    contacts = checked_contacts(contacts)
    statics = _statics(robot, q, contacts)
    x: Array = least_squares(statics.rows.T, statics.b)
    friction = np.minimum([contact.coefficient for contact in contacts], OPTIONS.strong_friction)
    if not _is_allowed(robot, statics, x, friction):
        x = _bounded(robot, statics, friction)
    first = len(x) - len(statics.axes)
    forces = np.zeros((len(contacts), 3))
    np.add.at(forces, statics.owner, x[first:, None] * statics.axes)
    return Standing(x[: robot.nu], forces, x[robot.nu : first], statics.rows.T @ x - statics.b)


def _statics(robot: Robot, q: Array, contacts: Sequence[PointContact]) -> _Statics:
    dynamics = Dynamics.at(robot, q, np.zeros(robot.nv))
    held = held_rows(robot, dynamics, contacts)
    used = np.repeat([contact.coefficient > 0.0 for contact in contacts], 3).astype(np.bool_)
    used[2::3] = True
    owner = np.repeat(np.arange(len(contacts)), 3)[used]
    normals = np.flatnonzero(np.diff(owner, append=-1)).astype(np.intp)
    actuation = np.eye(robot.nv)[robot.actuation]
    rows = np.vstack([actuation, held.bilateral, held.contacts[used]])
    return _Statics(rows, dynamics.h - robot.spring_effort(q), held.axes[used], owner, normals)


def _is_allowed(robot: Robot, statics: _Statics, x: Array, friction: Array) -> bool:
    """Return whether `x` keeps the limits of efforts and the friction cones, to rounding."""
    slack = SLACK * np.abs(x).max(initial=0.0)
    tau, f = x[: robot.nu], x[len(x) - len(statics.axes) :]
    normal = f[statics.normals]
    side = np.zeros(len(friction))
    np.add.at(side, statics.owner, f**2)
    side = np.sqrt(np.maximum(side - normal**2, 0.0))
    efforts = np.all(tau <= robot.effort_limits + slack) and np.all(tau >= robot.least_efforts - slack)
    return bool(efforts and np.all(normal >= -slack) and np.all(side <= friction * normal + slack))


def _bounded(robot: Robot, statics: _Statics, friction: Array) -> Array:
    """Return x within limits and cones that comes nearest to equilibrium, then the smallest.

    Forces are sums of edges of the cones. Those along which a force would reduce most of what is missing are added
    until no more do (column generation): so the cones are the round ones.
    """
    free = len(statics.rows) - len(statics.axes)
    cone = _first_edges(statics, friction)
    x = _sum_of_edges(robot, statics, cone)
    missing = statics.rows.T @ x - statics.b
    for _ in range(MOST_ROUNDS):
        edges = _helpful_edges(statics, friction, statics.rows[free:] @ missing)
        if not len(edges) or np.abs(missing).max() <= SMALL * np.abs(statics.b).max():
            break
        cone = np.vstack([cone, edges])
        other = _sum_of_edges(robot, statics, cone)
        left = statics.rows.T @ other - statics.b
        if not left @ left < missing @ missing:
            break
        x, missing = other, left
    return x


def _edge(statics: _Statics, contact: int, along: Array) -> Array:
    """Return (c,) contact rows of a normal force of 1 on a contact, and of one `along` (2,) its surface; or (0,)."""
    normal, edge = statics.normals[contact], np.zeros(len(statics.axes))
    edge[normal], edge[normal - len(along) : normal] = 1.0, along
    return edge


def _first_edges(statics: _Statics, friction: Array) -> Array:
    """Return (e, c) four edges of each friction cone, or a normal, as rows of contact forces."""
    around = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    edges = [
        _edge(statics, contact, along)
        for contact, coefficient in enumerate(friction)
        for along in (coefficient * around if coefficient else np.zeros((1, 0)))
    ]
    return np.array(edges).reshape(-1, len(statics.axes))


def _helpful_edges(statics: _Statics, friction: Array, gradient: Array) -> Array:
    """Return (e, c) the edge of each cone along which half the square of what is missing falls most, where it falls.

    Args:
        statics: the equations.
        friction: (k,) coefficients.
        gradient: (c,) of that by the contact rows.
    """
    edges = []
    for contact, normal in enumerate(statics.normals):
        along = gradient[normal - 2 : normal] if friction[contact] else np.zeros(0)
        length = float(np.linalg.norm(along))
        if length and gradient[normal] - friction[contact] * length < 0.0:
            edges.append(_edge(statics, contact, -friction[contact] / length * along))
    return np.array(edges).reshape(-1, len(statics.axes))


def _sum_of_edges(robot: Robot, statics: _Statics, cone: Array) -> Array:
    """Return the best x whose contact forces are nonnegative sums of the rows of `cone` (e, c)."""
    count = len(statics.axes)
    free = len(statics.rows) - count
    rows = np.vstack([statics.rows[:free], cone @ statics.rows[free:]])
    lower, upper = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    lower[free:] = 0.0
    lower[: robot.nu], upper[: robot.nu] = robot.least_efforts, robot.effort_limits
    if np.any(lower >= upper):
        raise InvalidValue("effort limits", (lower, upper), "least below largest efforts")
    # the contact forces themselves are to be small, not the sums of edges
    size = np.vstack([np.eye(free, len(rows)), np.hstack([np.zeros((count, free)), cone.T])])
    A = np.vstack([EQUILIBRIUM_WEIGHT * rows.T, size, 1e-3 * np.eye(len(rows))])
    b = np.concatenate([EQUILIBRIUM_WEIGHT * statics.b, np.zeros(len(size) + len(rows))])
    x = scipy.optimize.lsq_linear(A, b, (lower, upper), method="bvls" if len(rows) < 200 else "trf").x
    return np.concatenate([x[:free], x[free:] @ cone])

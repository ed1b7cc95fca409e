"""Logarithms of rigid motions, and the rows of a frame that is held on another one, compiled.

Placements are (4, 3): the columns of the rotation, then the translation. Logarithms are linear, then angular.

Source: Sola, Deray and Atchuthan, A micro Lie theory for state estimation in robotics, 2018, equations 143 to 146, 174
and 179 f. For the six rows of Jlog6: Pinocchio, ``explog.hpp``.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.kinematics import ROUNDING, drop_spurious
from constrained_sim.dynamics.vectors import cross_components, in_axes, in_world
from constrained_sim.linalg.products import matvec

SERIES_ANGLE = 0.5
"""[rad] below which the coefficients of a logarithm are taken from their series, exact to 4e-16 there."""

COEFFICIENTS = (
    1.0 / 12.0,
    1.0 / 720.0,
    1.0 / 30240.0,
    1.0 / 1209600.0,
    1.0 / 47900160.0,
    691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
)
"""Of ``1 / a^2 - cot(a / 2) / (2 a)`` by powers of a^2: Bernoulli's numbers, ``|B_2k| / (2 k)!``."""


@kernel
def relative_placement(joints, frames, placements):
    """Return (4, 3) the placement of the first of two frames in the world, and that in the second one.

    Args:
        joints: (2,) that carry the frames.
        frames: (2, 4, 3) placements of the frames in those of the joints.
        placements: (njoints, 4, 3), see :func:`~constrained_sim.dynamics.kinematics.point_positions`.
    """
    found, relative = np.empty((2, 4, 3)), np.empty((4, 3))
    for side in range(2):
        frame, carrier = frames[side], placements[joints[side]]
        for row in range(4):
            found[side, row] = in_world(frame[row, 0], frame[row, 1], frame[row, 2], carrier)
        found[side, 3] += carrier[3]
    a, b = found[0], found[1]
    for axis in range(3):
        relative[axis] = in_axes(a[axis, 0], a[axis, 1], a[axis, 2], b)
    relative[3] = in_axes(a[3, 0] - b[3, 0], a[3, 1] - b[3, 1], a[3, 2] - b[3, 2], b)
    return a, relative


@kernel
def log3(rotation):
    """Return the components of the vector [rad] about which, and by whose length, a rotation turns: at most pi.

    By the unit quaternion, whose largest component comes first (Shepperd's method): as exact near pi as near 0.

    Args:
        rotation: (3, 3) or more rows, the columns of the rotation first.
    """
    trace = rotation[0, 0] + rotation[1, 1] + rotation[2, 2]
    x = rotation[1, 2] - rotation[2, 1]
    y = rotation[2, 0] - rotation[0, 2]
    z = rotation[0, 1] - rotation[1, 0]
    s = 1.0 + trace
    if trace < 0.0:
        i = 0
        if rotation[1, 1] > rotation[i, i]:
            i = 1
        if rotation[2, 2] > rotation[i, i]:
            i = 2
        first = 1.0 + 2.0 * rotation[i, i] - trace
        xy, xz, yz = (
            rotation[0, 1] + rotation[1, 0],
            rotation[0, 2] + rotation[2, 0],
            rotation[1, 2] + rotation[2, 1],
        )
        if i == 0:
            s, x, y, z = x, first, xy, xz
        elif i == 1:
            s, x, y, z = y, xy, first, yz
        else:
            s, x, y, z = z, xz, yz, first
    sine = np.sqrt(x * x + y * y + z * z)
    if sine == 0.0:
        return 0.0, 0.0, 0.0
    if s < 0.0:
        s, x, y, z = -s, -x, -y, -z
    factor = 2.0 * np.arctan2(sine, s) / sine
    return factor * x, factor * y, factor * z


@kernel(inline=True)
def _coefficients(square):
    """Return ``c = 1 / a^2 - cot(a / 2) / (2 a)`` and ``dc/da / a`` of an angle a, from its square."""
    if square < SERIES_ANGLE * SERIES_ANGLE:
        c, slope = 0.0, 0.0
        for k in range(6, -1, -1):
            c = c * square + COEFFICIENTS[k]
            if k:
                slope = slope * square + 2.0 * k * COEFFICIENTS[k]
        return c, slope
    angle = np.sqrt(square)
    sine, versine = np.sin(angle), 1.0 - np.cos(angle)
    c = 1.0 / square - 0.5 * sine / (angle * versine)
    return c, -2.0 / square**2 + (1.0 + sine / angle) / (2.0 * square * versine)


@kernel
def log6(placement):
    """Return (6,) the logarithm of a placement (4, 3) [m, rad]."""
    found, (x, y, z) = np.empty(6), log3(placement)
    px, py, pz = placement[3]
    c, _ = _coefficients(x * x + y * y + z * z)
    ax, ay, az = cross_components(x, y, z, px, py, pz)
    bx, by, bz = cross_components(x, y, z, ax, ay, az)
    found[0], found[1], found[2] = px - 0.5 * ax + c * bx, py - 0.5 * ay + c * by, pz - 0.5 * az + c * bz
    found[3], found[4], found[5] = x, y, z
    return found


@kernel
def jlog6(placement):
    """Return (6, 6) the derivative of :func:`log6` by the velocity in the axes of the `placement` (4, 3)."""
    J, w, p = np.zeros((6, 6)), np.empty(3), placement[3]
    w[0], w[1], w[2] = log3(placement)
    square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    along = w[0] * p[0] + w[1] * p[1] + w[2] * p[2]
    c, slope = _coefficients(square)
    mixed = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            J[i, j] = c * w[i] * w[j]
            mixed[i, j] = (slope * along * w[i] - (square * slope + 2.0 * c) * p[i]) * w[j] + c * w[i] * p[j]
        J[i, i] += 1.0 - c * square
        mixed[i, i] += along * c
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        J[j, k] -= 0.5 * w[i]
        J[k, j] += 0.5 * w[i]
        mixed[j, k] -= 0.5 * p[i]
        mixed[k, j] += 0.5 * p[i]
    for i in range(3):
        for j in range(3):
            J[3 + i, 3 + j] = J[i, j]
            J[i, 3 + j] = mixed[i, 0] * J[0, j] + mixed[i, 1] * J[1, j] + mixed[i, 2] * J[2, j]
    return J


@kernel
def frame_error(joints, frames, axes, placements):
    """Return (k,) ``N log6(b^-1 a)`` [m, rad], for the directions N; arguments as of :func:`frame_rows`."""
    return matvec(axes, log6(relative_placement(joints, frames, placements)[1]))


@kernel
def frame_rows(joints, frames, axes, placements, joint_axes, support):
    """Return (k, nv) ``N Jlog6(b^-1 a) Ad(a^-1) (J_a - J_b)``: the derivative of :func:`frame_error`.

    What is below the rounding of the sums it comes from is zero, and so are rows that are nothing beside others, see
    :func:`~constrained_sim.dynamics.kinematics.anchor_rows`.

    Args:
        joints: (2,) of a and b.
        frames: (2, 4, 3) placements of a and b in these joints' frames.
        axes: (k, 6) the directions N, one per row: linear, then angular components.
        placements: see :func:`~constrained_sim.dynamics.kinematics.point_positions`.
        joint_axes: see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        support: see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
    """
    a, relative = relative_placement(joints, frames, placements)
    jlog, (x, y, z), nv = jlog6(relative), a[3], joint_axes.shape[0]
    lever, turns, mixes = abs(x) + abs(y) + abs(z), np.abs(jlog[:3, :3]).max(), np.abs(jlog[:3, 3:]).max()
    rows, noise, column = np.zeros((6, nv)), np.zeros((2, nv)), np.empty(6)
    for j in range(nv):
        moves_a, moves_b = support[joints[0], j], support[joints[1], j]
        if moves_a == moves_b:
            continue
        lx, ly, lz, wx, wy, wz = joint_axes[j]
        mx, my, mz = cross_components(wx, wy, wz, x, y, z)
        column[0], column[1], column[2] = in_axes(lx + mx, ly + my, lz + mz, a)
        column[3], column[4], column[5] = in_axes(wx, wy, wz, a)
        turn = abs(wx) + abs(wy) + abs(wz)
        noise[0, j] = ROUNDING * (turns * (abs(lx) + abs(ly) + abs(lz) + turn * lever) + mixes * turn)
        noise[1, j] = ROUNDING * turns * turn
        for i in range(6):
            along = 0.0
            for k in range(0 if i < 3 else 3, 6):
                along += jlog[i, k] * column[k]
            if abs(along) > noise[i // 3, j]:
                rows[i, j] = along if moves_a else -along
    drop_spurious(rows[:3])
    drop_spurious(rows[3:])
    held = np.zeros((axes.shape[0], nv))
    for r in range(axes.shape[0]):
        for j in range(nv):
            along, least = 0.0, 0.0
            for i in range(6):
                along += axes[r, i] * rows[i, j]
                least += abs(axes[r, i]) * noise[i // 3, j]
            if abs(along) > least:
                held[r, j] = along
    return held

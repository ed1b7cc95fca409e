"""Momentum and centre of mass of all that a free-flyer carries: only external impulses change them.

The six rows of M v of a free-flyer on the world are the momentum of all that it carries, in the axes of its frame and
about the frame's origin. Carried from one end of a step to the other as linear momentum p and as angular momentum L
about the centre of mass c, no inertial force is needed, however fast the frame turns::

    p' = p + h m g + F,    L' = L + T

with F and T the force and, about c, the moment of the other impulses where they acted. And c moves by h times the mean
of p / m and p' / m, straight where nothing acts, while tangent steps would lead a turning frame around a curve. With
both, the angular momentum about any fixed point changes by the moment of the impulses exactly.

A step compares velocities and impulses along one set of axes, those of the frame in its middle. Pinocchio's linear
velocity of a free-flyer is along the axes of its own frame, and these turn: the components of a constant velocity
change, by a centrifugal force that is none. At constant axes the linear velocity drops out of the inertial forces
(Galilei's principle), and rows see the velocity that they see at the ends of the step. Frames move as the midpoint
scheme moves them, by ``exp(h w / 2)`` and then by ``exp(h w' / 2)``: neither turn changes its own axis, so that the
components of the angular velocities are the same along the axes in the middle.

Joints move to second order only. So bodies that joints connect point in directions at the end of a step that err by
O(h^3), and their angular momentum by as much, across. Where all of them together are thin, as a chain that is nearly
straight, to make it exact about their long axis would take a spin that is larger than this error by the ratio of the
moments of inertia, a thousand and more. About that axis the momentum is the one that the equation of motion leads to:
it turns no link about its own axis but by moments that act on it.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.rigid_rotation import (
    angular_velocity,
    columns_of,
    determinant_of,
    newton_matrix,
    solve_columns,
    times,
    turned_by,
    turned_momentum,
)
from constrained_sim.dynamics.vectors import cross_components, in_axes, in_world
from constrained_sim.linalg.products import matvec

THIN = 0.03, 0.1
"""Least moment of inertia of what joints connect, relative to the largest: up to the first the angular momentum about
its axis is not made exact, from the second on it is, between them a share of it. That of a man who stands is 0.1."""

SQUARINGS = 4
"""Of the inverse of an inertia: at a ratio of 0.1 its 16th power is that of its largest eigenvalue to rounding."""


@kernel
def velocity_in_turned_axes(h, v, rows):
    """Return a velocity (nv,) with those of free-flyers along the axes to which `h` [s] at this velocity turn theirs.

    Args:
        h: time [s].
        v: (nv,) velocity.
        rows: (r,) the first row of each free-flyer in v.
    """
    found = v.copy()
    for k in rows:
        w = v[k + 3], v[k + 4], v[k + 5]
        found[k], found[k + 1], found[k + 2] = turned_by((v[k], v[k + 1], v[k + 2]), w, -h)
    return found


@kernel
def mean_acceleration(h, v, v_plus, rows, begin, end):
    """Return (nv,) the mean acceleration over a step, of free-flyers along their axes at its end, held constant.

    Args:
        h: length of the step [s].
        v: (nv,) velocity at the beginning.
        v_plus: (nv,) at the end.
        rows: (r,) the first row of each free-flyer in v.
        begin: (r, 4, 3) placements of their frames at the beginning.
        end: (r, 4, 3) at the end.
    """
    found = (v_plus - v) / h
    for i in range(rows.shape[0]):
        k = rows[i]
        x, y, z = in_axes(*in_world(v[k], v[k + 1], v[k + 2], begin[i]), end[i])
        found[k], found[k + 1], found[k + 2] = (v_plus[k] - x) / h, (v_plus[k + 1] - y) / h, (v_plus[k + 2] - z) / h
    return found


@kernel
def expected_velocity(h, theta, M, v, acceleration, known, rows):
    """Return (nv,) the velocity expected at the end of a step, along the axes in its middle.

    It goes on as it did in a step of the same length before; but of a free-flyer the angular momentum about the centre
    of mass does, of all that it carries, as if the joints were locked. So a body that nothing touches turns as Euler's
    equations say, however fast: its momentum p is constant, and along the axes in the middle ``exp(h w / 2) I w = p``
    is solved for the angular velocity w at the end.

    Args:
        h: length of the step [s].
        theta: of the velocity at the end in the mean velocity.
        M: (nv, nv) inertia at the beginning.
        v: (nv,) velocity there, along the axes in the middle.
        acceleration: (nv,) of the step before.
        known: whether that is; if it is not, the momentum is expected to stay as it is.
        rows: (r,) the first row of each free-flyer in v.

    Returns:
        It, and (nv,) the shares of the last changes that were expected once more: 1 but for angular velocities.
    """
    expected, shares = v + h * acceleration, np.ones(v.shape[0])
    for k in rows:
        I, (wx, wy, wz) = _inertia_about_centre(M, k), v[k + 3 : k + 6]
        px, py, pz = turned_momentum(I, (wx, wy, wz), -(1.0 - theta) * h)
        guess, share = (wx, wy, wz), 0.0
        if known:
            guess = expected[k + 3], expected[k + 4], expected[k + 5]
            ax, ay, az = acceleration[k + 3 : k + 6]
            last = turned_momentum(I, (wx - h * ax, wy - h * ay, wz - h * az), -(1.0 - theta) * h)
            lx, ly, lz = turned_by(last, (wx, wy, wz), -h)
            share = _share_expected(I, (px, py, pz), theta * h, guess)
            px, py, pz = px + share * (px - lx), py + share * (py - ly), pz + share * (pz - lz)
        found = angular_velocity(I, (px, py, pz), theta * h, guess)
        expected[k + 3], expected[k + 4], expected[k + 5] = found
        shares[k + 3 : k + 6] = share
    return expected, shares


@kernel(inline=True, error_model="numpy")
def _share_expected(I, p, h, w):
    """Return which share of its last change the momentum p is expected to change by once more, 0 to 1.

    ``(det I / det G)^3``, G the matrix of :func:`newton_matrix`: nearly 1, unless a body is thin. About the axis of a
    rod G is larger than the moment of inertia I_a, by the factor 1 + c with ``c = (h w)^2 / 2 I_t / I_a``, I_t that
    across. What is wrong with the spin by e changes the momentum by that, and in the next step the place by e times
    -c, and by twice that the spin, through the momentum that is kept. A share s of the change makes e grow by
    ``s (1 - 3 c)`` from step to step: without bound if s were 1. The third power keeps that below 1 for any c.
    """
    ratio = determinant_of(*columns_of(I)) / determinant_of(*newton_matrix(I, p, h, w))
    return min(max(ratio, 0.0), 1.0) ** 3


@kernel
def hold_axes(bias, h, theta, M, v, expected, rows):
    """Take out of bias forces (nv,) what the turning axes of free-flyers bring in, in place; and return them.

    So that ``M (x - v) = h (f - bias)`` along the axes in the middle. The gyroscopic moments are those that lead to
    the `expected` velocity from the present one, not only to second order.

    Args:
        bias: (nv,) forces h with ``M dv/dt + h = f``, along the moving axes, at the velocity in the middle.
        h: length of the step [s].
        theta: of the velocity at the end in the mean velocity.
        M: (nv, nv) inertia in the middle.
        v: (nv,) velocity at the beginning, along the axes in the middle.
        expected: (nv,) that at the end.
        rows: (r,) the first row of each free-flyer in v.
    """
    for k in rows:
        I, first = _inertia_about_centre(M, k), 1.0 - theta
        (vx, vy, vz, ax, ay, az), (ux, uy, uz, bx, by, bz) = v[k : k + 6], expected[k : k + 6]
        wx, wy, wz = ax + first * (bx - ax), ay + first * (by - ay), az + first * (bz - az)
        x, y, z = cross_components(wx, wy, wz, vx + first * (ux - vx), vy + first * (uy - vy), vz + first * (uz - vz))
        for i in range(bias.shape[0]):
            bias[i] -= M[k, i] * x + M[k + 1, i] * y + M[k + 2, i] * z
        x, y, z = cross_components(wx, wy, wz, *times(I, (wx, wy, wz)))
        ex, ey, ez = turned_momentum(I, (bx, by, bz), theta * h)
        sx, sy, sz = turned_momentum(I, (ax, ay, az), -first * h)
        lx, ly, lz = times(I, (bx - ax, by - ay, bz - az))
        _add_couple(bias, M, k, I, ((ex - sx - lx) / h - x, (ey - sy - ly) / h - y, (ez - sz - lz) / h - z))
    return bias


@kernel(inline=True, error_model="numpy")
def _add_couple(bias, M, k, I, couple):
    """Add a couple on all that a free-flyer carries to bias forces (nv,), in place, as if the joints were locked.

    On the body of its frame alone, it would turn that one about the axis of a thin link by far too much.
    """
    (tx, ty, tz), (x, y, z) = couple, times(_thin_part(M, k, I), couple)
    tx, ty, tz = tx - x, ty - y, tz - z
    ax, ay, az = solve_columns(columns_of(I), (tx, ty, tz))
    x, y, z = cross_components(*_centre(M, k), ax, ay, az)  # the centre of mass stays where it is
    for i in range(bias.shape[0]):
        if i < k or i >= k + 6:
            bias[i] += M[k, i] * x + M[k + 1, i] * y + M[k + 2, i] * z
            bias[i] += M[k + 3, i] * ax + M[k + 4, i] * ay + M[k + 5, i] * az
    bias[k + 3], bias[k + 4], bias[k + 5] = bias[k + 3] + tx, bias[k + 4] + ty, bias[k + 5] + tz


@kernel(inline=True, error_model="numpy")
def _thin_part(M, k, I):
    """Return the matrix that takes, of an angular momentum, the part that is not made exact, see :data:`THIN`.

    As six numbers like the inertia I: a share of the projector onto the axis of least inertia; zeros for a rigid body.
    No moment of inertia is larger than the sum of the other two, half the trace: hence only one axis can be thin.
    """
    a, b, c, d, e, f = I
    trace, most = a + d + f, 0.5 * (a + d + f)
    if determinant_of(*columns_of(I)) >= THIN[1] * most**3 or not _carries_joints(M, k):
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # Powers of the inverse, the adjugate but for a factor, lead to the projector onto the axis of least inertia.
    a, b, c, d, e, f = d * f - e * e, c * e - b * f, b * e - c * d, a * f - c * c, b * c - a * e, a * d - b * b
    for _ in range(SQUARINGS):
        scale = 1.0 / (a + d + f)
        a, b, c, d, e, f = scale * a, scale * b, scale * c, scale * d, scale * e, scale * f
        a, b, c, d, e, f = (
            *(a * a + b * b + c * c, a * b + b * d + c * e, a * c + b * e + c * f),
            *(b * b + d * d + e * e, b * c + d * e + e * f, c * c + e * e + f * f),
        )
    scale = 1.0 / (a + d + f)
    a, b, c, d, e, f = scale * a, scale * b, scale * c, scale * d, scale * e, scale * f
    least = I[0] * a + I[3] * d + I[5] * f + 2.0 * (I[1] * b + I[2] * c + I[4] * e)
    ratio = 2.0 * least / (trace - least)  # to the mean of the other two
    share = min(max((THIN[1] - ratio) / (THIN[1] - THIN[0]), 0.0), 1.0)
    return share * a, share * b, share * c, share * d, share * e, share * f


@kernel(inline=True)
def _carries_joints(M, k):
    """Return whether the free-flyer with the first row k of the inertia M (nv, nv) carries joints."""
    for i in range(M.shape[0]):
        if (i < k or i >= k + 6) and M[k : k + 6, i].any():
            return True
    return False


@kernel(inline=True)
def _inertia_about_centre(M, row):
    """Return xx, xy, xz, yy, yz, zz of the inertia about their centre of mass of all that a free-flyer carries."""
    (x, y, z), mass, k = _centre(M, row), M[row, row], row + 3
    return (
        M[k, k] - mass * (y * y + z * z),
        M[k, k + 1] + mass * x * y,
        M[k, k + 2] + mass * x * z,
        M[k + 1, k + 1] - mass * (x * x + z * z),
        M[k + 1, k + 2] + mass * y * z,
        M[k + 2, k + 2] - mass * (x * x + y * y),
    )


@kernel
def middle_coms(h, M, v, frames, rows):
    """Return (r, 3) where the centres of mass are after `h` [s] with the velocity at the beginning [m], world frame.

    Args:
        h: time [s].
        M: (nv, nv) inertia at the beginning.
        v: (nv,) velocity there.
        frames: (r, 4, 3) placements of the free-flyers' frames there: rotation columns and translation.
        rows: (r,) the first row of each in v.
    """
    found = np.empty((rows.shape[0], 3))
    for i in range(rows.shape[0]):
        frame, (vx, vy, vz), (cx, cy, cz) = frames[i], _velocity(M, v, rows[i]), _centre(M, rows[i])
        x, y, z = in_world(h * vx + cx, h * vy + cy, h * vz + cz, frame)
        found[i, 0], found[i, 1], found[i, 2] = frame[3, 0] + x, frame[3, 1] + y, frame[3, 2] + z
    return found


@kernel
def end_velocities(h, inertias, v, impulses, gravity, rows, frames):
    """Return (r, 3) the velocities of the centres of mass at the end of a step [m/s], world axes.

    The arguments are those of :func:`free_flyer_momentum`, without what is known at the end only.
    """
    found, (M, M_middle), (begin, middle) = np.empty((rows.shape[0], 3)), inertias, frames
    for i in range(rows.shape[0]):
        k, (vx, vy, vz) = rows[i], _velocity(M, v, rows[i])
        fx, fy, fz, _, _, _ = _external(impulses, k)
        x, y, z = in_world(vx, vy, vz, begin[i])
        dx, dy, dz = in_world(fx / M_middle[k, k], fy / M_middle[k, k], fz / M_middle[k, k], middle[i])
        found[i, 0] = x + dx + h * gravity[0]
        found[i, 1] = y + dy + h * gravity[1]
        found[i, 2] = z + dz + h * gravity[2]
    return found


@kernel(inline=True)
def _velocity(M, v, row):
    """Return the three components of the velocity of the centre of mass [m/s] in the axes of the free-flyer."""
    x = y = z = 0.0
    for j in range(v.shape[0]):
        x, y, z = x + M[row, j] * v[j], y + M[row + 1, j] * v[j], z + M[row + 2, j] * v[j]
    mass = M[row, row]
    return x / mass, y / mass, z / mass


@kernel
def free_flyer_momentum(h, inertias, v, impulses, gravity, rows, frames):
    """Return (r, 6) the rows of free-flyers of the generalised momentum at the end of a step, exact.

    Args:
        h: length of the step [s].
        inertias: (nv, nv) each: at the beginning, where the forces were evaluated, and at the end.
        v: (nv,) velocity at the beginning.
        impulses: (6, nv) generalised impulses of the causes in the order of ``FORCES``.
        gravity: (3,) [m/s^2], world axes.
        rows: (r,) first rows of the free-flyers in v.
        frames: (r, 4, 3) each: their placements at the beginning, where the forces were evaluated, and at the end.
    """
    (M, M_middle, M_end), (begin, middle, end) = inertias, frames
    found = np.empty((rows.shape[0], 6))
    for i in range(rows.shape[0]):
        k, (gx, gy, gz) = rows[i], gravity
        pull = h * M[k, k]
        px, py, pz, sx, sy, sz = _about_centre(matvec(M[k : k + 6], v), _centre(M, k), begin[i])
        fx, fy, fz, tx, ty, tz = _about_centre(_external(impulses, k), _centre(M_middle, k), middle[i])
        px, py, pz = in_axes(px + fx + pull * gx, py + fy + pull * gy, pz + fz + pull * gz, end[i])
        sx, sy, sz = in_axes(sx + tx, sy + ty, sz + tz, end[i])
        x, y, z = _centre(M_end, k)
        found[i, 0], found[i, 1], found[i, 2] = px, py, pz
        found[i, 3], found[i, 4], found[i, 5] = sx + y * pz - z * py, sy + z * px - x * pz, sz + x * py - y * px
    return found


@kernel
def keep_spin(M, total, rows, carried):
    """Let the angular momentum about thin axes be what it is in a generalised momentum, see the module, in place.

    Args:
        M: (nv, nv) inertia at the end of a step.
        total: (nv,) generalised momentum.
        rows: (r,) first rows of the free-flyers in v.
        carried: (r, 6) the exact rows; changed.
    """
    for i in range(rows.shape[0]):
        k = rows[i]
        px, py, pz, lx, ly, lz = carried[i] - total[k : k + 6]
        x, y, z = cross_components(*_centre(M, k), px, py, pz)
        x, y, z = times(_thin_part(M, k, _inertia_about_centre(M, k)), (lx - x, ly - y, lz - z))
        carried[i, 3], carried[i, 4], carried[i, 5] = carried[i, 3] - x, carried[i, 4] - y, carried[i, 5] - z


@kernel(inline=True)
def _centre(M, row):
    """Return the three components of the centre of mass [m] in the axes of the free-flyer of this row."""
    mass = M[row, row]
    return M[row + 1, row + 5] / mass, M[row + 2, row + 3] / mass, M[row, row + 4] / mass


@kernel(inline=True)
def _external(impulses, row):
    """Return the six numbers of the impulses of all causes but gravity and inertia on the free-flyer of this row."""
    a = b = c = d = e = f = 0.0
    for cause in range(1, impulses.shape[0]):
        a, b, c = a + impulses[cause, row], b + impulses[cause, row + 1], c + impulses[cause, row + 2]
        d, e, f = d + impulses[cause, row + 3], e + impulses[cause, row + 4], f + impulses[cause, row + 5]
    return a, b, c, d, e, f


@kernel(inline=True)
def _about_centre(force, com, frame):
    """Return force and moment about `com`, world axes, of the six numbers of a `force` in the axes of a frame."""
    fx, fy, fz, nx, ny, nz = force
    x, y, z = com
    tx, ty, tz = in_world(nx - (y * fz - z * fy), ny - (z * fx - x * fz), nz - (x * fy - y * fx), frame)
    px, py, pz = in_world(fx, fy, fz, frame)
    return px, py, pz, tx, ty, tz

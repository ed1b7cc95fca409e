"""What free-flyers carry: momentum that changes by external impulses only, and a centre of mass that moves with it.

The six rows of M v of a free-flyer on the world are the momentum of all that it carries, in the axes of its frame and
about the frame's origin. Carried from one end of a step to the other as linear momentum p and as angular momentum L
about the centre of mass c, no inertial force is needed, however fast the frame turns::

    p' = p + h m g + F,    L' = L + T

with F and T the force and, about c, the moment of the other impulses where they acted. And c moves by h times the mean
of p / m and p' / m, straight where nothing acts, while tangent steps would lead a turning frame around a curve. With
both, the angular momentum about any fixed point changes by the moment of the impulses exactly.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.tree import in_axes, in_world
from constrained_sim.linalg.products import matvec


@kernel
def middle_coms(h, M, v, frames, rows):  # type: ignore[no-untyped-def]
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
def end_velocities(h, M, v, M_middle, impulses, gravity, rows, begin, middle):  # type: ignore[no-untyped-def]
    """Return (r, 3) the velocities of the centres of mass at the end of a step [m/s], world axes.

    The arguments are those of :func:`end_momentum`.
    """
    found = np.empty((rows.shape[0], 3))
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
def _velocity(M, v, row):  # type: ignore[no-untyped-def]
    """Return the three components of the velocity of the centre of mass [m/s] in the axes of the free-flyer."""
    x = y = z = 0.0
    for j in range(v.shape[0]):
        x, y, z = x + M[row, j] * v[j], y + M[row + 1, j] * v[j], z + M[row + 2, j] * v[j]
    mass = M[row, row]
    return x / mass, y / mass, z / mass


@kernel
def end_momentum(h, M, v, M_middle, inertial, impulses, gravity, M_end, rows, begin, middle, end):  # type: ignore[no-untyped-def]
    """Return (nv,) the generalised momentum at the end of a step.

    ``d(M v)/dt = dM/dt v - h + f``. With ``dM/dt = C + C^T``, C the Coriolis matrix, this is ``C^T v - g + f``: for a
    coordinate that M does not depend on, momentum changes by forces only. The rows of free-flyers are exact.

    Args:
        h: length of the step [s].
        M: (nv, nv) inertia at the beginning.
        v: (nv,) velocity there.
        M_middle: (nv, nv) inertia where the forces were evaluated.
        inertial: (nv,) what is to be added to the bias forces of the evaluation, whose impulses are among those below,
            so that ``C^T v - g`` is left.
        impulses: (6, nv) generalised impulses of the causes in the order of ``FORCES``.
        gravity: (3,) [m/s^2], world axes.
        M_end: (nv, nv) inertia at the end.
        rows: (r,) first rows of the free-flyers in v.
        begin: (r, 4, 3) their placements at the beginning.
        middle: (r, 4, 3) where the forces were evaluated.
        end: (r, 4, 3) at the end.
    """
    total = generalized_momentum(M, v, impulses)
    for i in range(total.shape[0]):
        total[i] += h * inertial[i]
    for i in range(rows.shape[0]):
        k, (gx, gy, gz) = rows[i], gravity
        pull = h * M[k, k]
        px, py, pz, sx, sy, sz = _about_centre(matvec(M[k : k + 6], v), _centre(M, k), begin[i])
        fx, fy, fz, tx, ty, tz = _about_centre(_external(impulses, k), _centre(M_middle, k), middle[i])
        px, py, pz = in_axes(px + fx + pull * gx, py + fy + pull * gy, pz + fz + pull * gz, end[i])
        sx, sy, sz = in_axes(sx + tx, sy + ty, sz + tz, end[i])
        x, y, z = _centre(M_end, k)
        total[k], total[k + 1], total[k + 2] = px, py, pz
        total[k + 3], total[k + 4], total[k + 5] = sx + y * pz - z * py, sy + z * px - x * pz, sz + x * py - y * px
    return total


@kernel(inline=True)
def _centre(M, row):  # type: ignore[no-untyped-def]
    """Return the three components of the centre of mass [m] in the axes of the free-flyer of this row."""
    mass = M[row, row]
    return M[row + 1, row + 5] / mass, M[row + 2, row + 3] / mass, M[row, row + 4] / mass


@kernel(inline=True)
def _external(impulses, row):  # type: ignore[no-untyped-def]
    """Return the six numbers of the impulses of all causes but gravity and inertia on the free-flyer of this row."""
    a = b = c = d = e = f = 0.0
    for cause in range(1, impulses.shape[0]):
        a, b, c = a + impulses[cause, row], b + impulses[cause, row + 1], c + impulses[cause, row + 2]
        d, e, f = d + impulses[cause, row + 3], e + impulses[cause, row + 4], f + impulses[cause, row + 5]
    return a, b, c, d, e, f


@kernel(inline=True)
def _about_centre(force, com, frame):  # type: ignore[no-untyped-def]
    """Return force and moment about `com`, world axes, of the six numbers of a `force` in the axes of a frame."""
    fx, fy, fz, nx, ny, nz = force
    x, y, z = com
    tx, ty, tz = in_world(nx - (y * fz - z * fy), ny - (z * fx - x * fz), nz - (x * fy - y * fx), frame)
    px, py, pz = in_world(fx, fy, fz, frame)
    return px, py, pz, tx, ty, tz


@kernel
def generalized_momentum(M, v, impulses):  # type: ignore[no-untyped-def]
    """Return (nv,) ``M v`` plus the sum of `impulses` (6, nv)."""
    total = matvec(M, v)
    for cause in range(impulses.shape[0]):
        for i in range(total.shape[0]):
            total[i] += impulses[cause, i]
    return total

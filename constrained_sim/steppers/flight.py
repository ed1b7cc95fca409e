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

import numba
import numpy as np

from constrained_sim.products import matvec
from constrained_sim.steppers.kernels import momentum
from constrained_sim.tree import in_axes, in_world


@numba.njit(cache=True)
def middle_centres(h, M, v, frames, rows):  # type: ignore[no-untyped-def]
    """Return (r, 3) where the centres of mass are after `h` [s] with the velocity at the beginning [m], world frame.

    Args:
        h: time [s].
        M: (nv, nv) inertia at the beginning.
        v: (nv,) velocity there.
        frames: (r, 4, 3) placements of the free-flyers' frames there: rotation columns and translation.
        rows: (r,) the first row of each in v.
    """
    found = h * _velocities(M, v, frames, rows)
    for i in range(rows.shape[0]):
        x, y, z = _centre(M, rows[i])
        there = in_world(x, y, z, frames[i])
        for axis in range(3):
            found[i, axis] += there[axis] + frames[i, 3, axis]
    return found


@numba.njit(cache=True)
def end_velocities(h, M, v, M_middle, impulses, gravity, rows, begin, middle):  # type: ignore[no-untyped-def]
    """Return (r, 3) the velocities of the centres of mass at the end of a step [m/s], world axes.

    The arguments are those of :func:`end_momentum`.
    """
    found = _velocities(M, v, begin, rows)
    for i in range(rows.shape[0]):
        external = _external(impulses, rows[i]) / M_middle[rows[i], rows[i]]
        found[i] += np.array(in_world(external[0], external[1], external[2], middle[i])) + h * gravity
    return found


@numba.njit(cache=True)
def _velocities(M, v, frames, rows):  # type: ignore[no-untyped-def]
    """Return (r, 3) the velocities of the centres of mass [m/s], world axes."""
    found = np.empty((rows.shape[0], 3))
    for i in range(rows.shape[0]):
        k = rows[i]
        p = matvec(M[k : k + 3], v) / M[k, k]
        found[i] = in_world(p[0], p[1], p[2], frames[i])
    return found


@numba.njit(cache=True)
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
    total = momentum(M, v, impulses) + h * inertial
    for i in range(rows.shape[0]):
        k = rows[i]
        mass, external = M[k, k], _external(impulses, k)
        linear, angular = _about_centre(matvec(M[k : k + 6], v), _centre(M, k), begin[i])
        force, moment = _about_centre(external, _centre(M_middle, k), middle[i])
        p, spin = linear + force + h * mass * gravity, angular + moment
        px, py, pz = in_axes(p[0], p[1], p[2], end[i])
        sx, sy, sz = in_axes(spin[0], spin[1], spin[2], end[i])
        x, y, z = _centre(M_end, k)
        total[k], total[k + 1], total[k + 2] = px, py, pz
        total[k + 3], total[k + 4], total[k + 5] = sx + y * pz - z * py, sy + z * px - x * pz, sz + x * py - y * px
    return total


@numba.njit(cache=True)
def _centre(M, row):  # type: ignore[no-untyped-def]
    """Return the three components of the centre of mass [m] in the axes of the free-flyer of this row."""
    mass = M[row, row]
    return M[row + 1, row + 5] / mass, M[row + 2, row + 3] / mass, M[row, row + 4] / mass


@numba.njit(cache=True)
def _external(impulses, row):  # type: ignore[no-untyped-def]
    """Return (6,) the impulses of all causes but gravity and inertia on the free-flyer of this row."""
    total = np.zeros(6)
    for cause in range(1, impulses.shape[0]):
        for i in range(6):
            total[i] += impulses[cause, row + i]
    return total


@numba.njit(cache=True)
def _about_centre(force, centre, frame):  # type: ignore[no-untyped-def]
    """Return force (3,) and moment (3,) about `centre`, world axes, of a spatial force (6,) in the axes of a frame."""
    fx, fy, fz, nx, ny, nz = force
    x, y, z = centre
    moment = in_world(nx - (y * fz - z * fy), ny - (z * fx - x * fz), nz - (x * fy - y * fx), frame)
    return np.array(in_world(fx, fy, fz, frame)), np.array(moment)

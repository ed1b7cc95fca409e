"""Among all contact forces that give the same motion, those of least norm inside their cones.

Where dependent rows press, as the four legs of a table do, the contact laws do not tell the forces. This choice depends
on the problem alone, not on the method that solved it nor on where that began.

With the motion u of a solution r known, the admissible forces are those of a product K of convex sets: nothing where a
contact opens, a ray opposite to the slip where it slides, Coulomb's cone where it is at rest; among these
``minimise |x|^2 / 2`` with ``G x = G r``. With Q an orthonormal basis of the range of G and P the projection onto K its
dual is smooth and convex: ``minimise z^T P(z) - |P(z)|^2 / 2 - y^T Q^T r`` over y, where ``z = Q y`` and ``x = P(z)``.
Newton's method on its gradient, ``Q^T P(Q y) = Q^T r``, solves it.
"""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.discs import no_discs
from constrained_sim.contact.kernels import OPEN, RANK_TOLERANCE, SLIDING, STICKING, block_times, range_factor, solve

NO_DISCS = no_discs()

DAMPING = 1e-3
"""Of a Newton step, per unit of the relative error that is left."""


@numba.njit(cache=True)
def by_motion(u, friction, slip, lower, upper, p, tolerance):  # type: ignore[no-untyped-def]
    """Return (k + m,) the status that the row velocities u alone allow: a contact at rest may press without doing so.

    Arguments as in :func:`~constrained_sim.contact.kernels.natural_map`; `tolerance` is one of impulses [N s].
    """
    contacts = friction.shape[0]
    status = np.full(contacts + lower.shape[0], STICKING)
    for c in range(contacts):
        i = 3 * c
        if p[i + 2] * u[i + 2] > tolerance:
            status[c] = OPEN
        elif friction[c] == 0.0 or slip[c].any() or p[i] * np.hypot(u[i], u[i + 1]) > tolerance:
            status[c] = SLIDING
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        if p[i] * abs(u[i]) > tolerance:
            at_zero = lower[j] == 0.0 and u[i] > 0.0
            status[contacts + j] = OPEN if at_zero else SLIDING
    return status


@numba.njit(cache=True)
def is_determined(G, status, friction):  # type: ignore[no-untyped-def]
    """Return whether the rows of all that presses are independent, so that its forces are unique."""
    contacts = friction.shape[0]
    n = G.shape[0]
    largest = 0.0
    for i in range(n):
        largest = max(largest, G[i, i])
    L = np.zeros((n, n))
    kept = np.empty(n, dtype=np.int64)
    count = 0
    for i in range(n):
        place = i // 3 if i < 3 * contacts else contacts + i - 3 * contacts
        if status[place] == OPEN or G[i, i] <= RANK_TOLERANCE * largest:
            continue
        total = G[i, i]
        for a in range(count):
            entry = G[i, kept[a]]
            for k in range(a):
                entry -= L[count, k] * L[a, k]
            L[count, a] = entry / L[a, a]
            total -= L[count, a] ** 2
        if total <= 1e-9 * G[i, i]:
            return False
        L[count, count] = np.sqrt(total)
        kept[count] = i
        count += 1
    return True


@numba.njit(cache=True)
def least_norm(G, b, friction, slip, lower, upper, status, r, iterations):  # type: ignore[no-untyped-def]
    """Return the forces of least norm with the motion of `r`, and whether they were found.

    Args:
        G: (n, n) Delassus matrix.
        b: (n,) row velocities at r = 0.
        friction: (k,).
        slip: (k, 2) known directions of slip, zero where u_t tells.
        lower: (m,) bounds of the interval rows.
        upper: (m,) likewise.
        status: (k + m,) that its motion allows, see :func:`by_motion`.
        r: (n,) a solution.
        iterations: at most.
    """
    u, Q = G @ r + b, _orthonormal(range_factor(G))
    goal, transposed = r @ Q, np.ascontiguousarray(Q.T)
    y = goal.copy()
    tolerance = 1e-14 * np.abs(r).max()
    z = Q @ y
    x, slope = _project(z, u, friction, slip, lower, upper, status)
    F = x @ Q - goal
    for _ in range(iterations):
        error = np.abs(F).max()
        if error <= tolerance:
            return x, True
        H = transposed @ block_times(slope, Q, friction.shape[0], NO_DISCS)
        H += (1e-13 + DAMPING * min(error / np.abs(r).max(), 1.0)) * np.eye(H.shape[0])
        step = solve(H, -F)
        length, value, decrease = 1.0, np.dot(z, x) - 0.5 * np.dot(x, x) - np.dot(y, goal), np.dot(F, step)
        for _ in range(20):
            candidate = y + length * step
            z = Q @ candidate
            x, slope = _project(z, u, friction, slip, lower, upper, status)
            reached = np.dot(z, x) - 0.5 * np.dot(x, x) - np.dot(candidate, goal)
            if reached <= value + 1e-4 * length * decrease + 1e-15 * abs(value):
                break
            length *= 0.5
        y = candidate
        F = x @ Q - goal
    return x, np.abs(F).max() <= 10.0 * tolerance


@numba.njit(cache=True)
def _orthonormal(L):  # type: ignore[no-untyped-def]
    """Return an orthonormal basis (n, k) of the columns of L (n, k), by Gram and Schmidt's method done twice."""
    Q = L.copy()
    for j in range(Q.shape[1]):
        for _ in range(2):
            for k in range(j):
                along = 0.0
                for i in range(Q.shape[0]):
                    along += Q[i, k] * Q[i, j]
                for i in range(Q.shape[0]):
                    Q[i, j] -= along * Q[i, k]
        length = 0.0
        for i in range(Q.shape[0]):
            length += Q[i, j] ** 2
        for i in range(Q.shape[0]):
            Q[i, j] /= np.sqrt(length)
    return Q


@numba.njit(cache=True)
def _project(z, u, friction, slip, lower, upper, status):  # type: ignore[no-untyped-def]
    """Return the point of K nearest to z, and blocks (k + m, 3, 3) of the derivative of this projection."""
    x, slope = np.zeros_like(z), np.zeros((status.shape[0], 3, 3))
    for c in range(friction.shape[0]):
        i = 3 * c
        if status[c] == OPEN:
            continue
        if status[c] == SLIDING:
            d0, d1 = slip[c]
            speed = np.hypot(u[i], u[i + 1])
            if d0 == 0.0 and d1 == 0.0 and speed > 0.0:
                d0, d1 = u[i] / speed, u[i + 1] / speed
            ray = np.array([-friction[c] * d0, -friction[c] * d1, 1.0])
            along = (ray[0] * z[i] + ray[1] * z[i + 1] + z[i + 2]) / np.dot(ray, ray)
            if along > 0.0:
                x[i : i + 3] = along * ray
                slope[c] = np.outer(ray, ray) / np.dot(ray, ray)
        else:
            _project_cone(z[i : i + 3], friction[c], x[i : i + 3], slope[c])
    for j in range(lower.shape[0]):
        i = 3 * friction.shape[0] + j
        if status[friction.shape[0] + j] == OPEN:
            continue
        if status[friction.shape[0] + j] == SLIDING:
            x[i] = lower[j] if u[i] > 0.0 else upper[j]
            continue
        x[i] = min(max(z[i], lower[j]), upper[j])
        if lower[j] < z[i] < upper[j]:
            slope[friction.shape[0] + j, 0, 0] = 1.0
    return x, slope


@numba.njit(cache=True)
def _project_cone(z, friction, x, slope):  # type: ignore[no-untyped-def]
    """Set x to the point of ``|x_t| <= c x_n`` nearest to z, and slope to the derivative, in place."""
    length = np.hypot(z[0], z[1])
    if np.isinf(friction):
        x[:2], x[2] = z[:2], max(z[2], 0.0)
        slope[0, 0] = slope[1, 1] = 1.0
        slope[2, 2] = 1.0 if z[2] > 0.0 else 0.0
        return
    if length <= friction * z[2]:
        x[:] = z
        slope[0, 0] = slope[1, 1] = slope[2, 2] = 1.0
        return
    height = (z[2] + friction * length) / (1.0 + friction**2)
    if height <= 0.0:
        return
    d0, d1 = z[0] / length, z[1] / length
    x[0], x[1], x[2] = friction * height * d0, friction * height * d1, height
    ray = np.array([friction * d0, friction * d1, 1.0])
    slope[:] = np.outer(ray, ray) / (1.0 + friction**2)
    around = friction * height / length
    slope[0, 0] += around * d1 * d1
    slope[1, 1] += around * d0 * d0
    slope[0, 1] -= around * d0 * d1
    slope[1, 0] -= around * d0 * d1

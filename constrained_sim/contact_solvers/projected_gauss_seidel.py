"""Projected Gauss-Seidel: plain sweeps, where Newton's method begins, and exact ones, which go on where it stalls.

A few plain sweeps tell roughly what presses and what slides; many, from where other methods stall, seldom stall too.
Exact ones solve each contact for the impulses of all others; they are slow.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.natural_map import natural_map
from constrained_sim.contact_solvers.rolling_rows import nearest, sweep_rolling
from constrained_sim.linalg.elimination import solve

RELAXATION = 1.2
"""Over-relaxation of the sweeps; halved towards 1 where they do not get nearer."""

LOOK = 50
"""Plain sweeps between two looks at the error."""

DIRECTIONS = 16
"""Directions of slip between which the one that friction opposes is looked for."""


@kernel
def projected_gauss_seidel(G, b, friction, slip, lower, upper, rolling, p, r, tolerance, iterations):  # type: ignore[no-untyped-def]
    """Sweep from r, each row by itself: ``r - p u``, projected; until the natural map is below `tolerance`.

    Arguments and result are those of :func:`~constrained_sim.contact_solvers.semismooth_newton.semismooth_newton`.
    """
    r, error, done = r.copy(), np.inf, 0
    while done < iterations and error > tolerance:
        done += 1
        for c in range(friction.shape[0]):
            i = 3 * c
            r[i + 2] = max(0.0, r[i + 2] - p[i + 2] * (np.dot(G[i + 2], r) + b[i + 2]))
            z0 = r[i] - p[i] * (np.dot(G[i], r) + b[i])
            z1 = r[i + 1] - p[i + 1] * (np.dot(G[i + 1], r) + b[i + 1])
            r[i], r[i + 1] = nearest(z0, z1, friction[c] * r[i + 2] if r[i + 2] > 0.0 else 0.0, slip[c])
        for j in range(lower.shape[0]):
            i = 3 * friction.shape[0] + j
            r[i] = min(max(r[i] - p[i] * (np.dot(G[i], r) + b[i]), lower[j]), upper[j])
        if rolling.shape[0]:
            sweep_rolling(rolling, G, b, r, 1.0)
        if done % LOOK == 0 or done == iterations:
            error = np.abs(natural_map(G, b, friction, slip, lower, upper, rolling, p, r)).max()
    return r, error, done


@kernel
def gauss_seidel(G, b, friction, slip, lower, upper, rolling, p, r, tolerance, iterations):  # type: ignore[no-untyped-def]
    """Sweep over the contacts until the natural map is below `tolerance`, from r.

    Each contact is solved exactly for the impulses of all others (:func:`one_contact`), and over-relaxed within its
    cone. Arguments and result are those of
    :func:`~constrained_sim.contact_solvers.semismooth_newton.semismooth_newton`.
    """
    r = r.copy()
    relaxation, before = RELAXATION, np.inf
    for done in range(iterations):
        for c in range(friction.shape[0]):
            i = 3 * c
            u0 = np.dot(G[i], r) + b[i] - (G[i, i] * r[i] + G[i, i + 1] * r[i + 1] + G[i, i + 2] * r[i + 2])
            u1 = np.dot(G[i + 1], r) + b[i + 1]
            u1 -= G[i + 1, i] * r[i] + G[i + 1, i + 1] * r[i + 1] + G[i + 1, i + 2] * r[i + 2]
            u2 = np.dot(G[i + 2], r) + b[i + 2]
            u2 -= G[i + 2, i] * r[i] + G[i + 2, i + 1] * r[i + 1] + G[i + 2, i + 2] * r[i + 2]
            x, y, z = one_contact(G[i : i + 3, i : i + 3], u0, u1, u2, friction[c], slip[c], p[i], r[i : i + 3])
            r[i] += relaxation * (x - r[i])
            r[i + 1] += relaxation * (y - r[i + 1])
            r[i + 2] = max(0.0, r[i + 2] + relaxation * (z - r[i + 2]))
            length, radius = np.hypot(r[i], r[i + 1]), friction[c] * r[i + 2] if r[i + 2] > 0.0 else 0.0
            if length > radius:
                r[i], r[i + 1] = radius / length * r[i], radius / length * r[i + 1]
        for j in range(lower.shape[0]):
            i = 3 * friction.shape[0] + j
            r[i] = min(max(r[i] - relaxation * p[i] * (np.dot(G[i], r) + b[i]), lower[j]), upper[j])
        if rolling.shape[0]:
            sweep_rolling(rolling, G, b, r, relaxation)
        if done % 10 == 9:
            error = np.abs(natural_map(G, b, friction, slip, lower, upper, rolling, p, r)).max()
            if error <= tolerance:
                return r, error, done + 1
            if error > 0.9 * before:
                relaxation = 0.5 * (1.0 + relaxation)
            before = error
    return r, np.abs(natural_map(G, b, friction, slip, lower, upper, rolling, p, r)).max(), iterations


@kernel
def one_contact(G, u0, u1, u2, friction, slip, p, r):  # type: ignore[no-untyped-def]
    """Return the impulse of one contact alone: open, sticking, or sliding against its velocity.

    Where it slides, ``r = r_n (-c d, 1)`` with ``u_n = 0`` tells r_n for each direction of slip d; the direction is a
    zero of the part of u_t across d, with u_t along d. It is bracketed among ``DIRECTIONS`` and then bisected.

    Args:
        G: (3, 3) its block of the Delassus matrix.
        u0: velocity along t1 without its impulse [m/s].
        u1: along t2.
        u2: along the normal.
        friction: coefficient c.
        slip: (2,) known direction of slip; zero where there is none.
        p: scale of its tangential rows.
        r: (3,) present impulse, kept where no direction of slip is found.
    """
    if u2 >= 0.0 or G[2, 2] <= 0.0:
        return 0.0, 0.0, 0.0
    if slip[0] != 0.0 or slip[1] != 0.0:
        z = _pressed(G, u2, friction, slip[0], slip[1])
        return -friction * z * slip[0], -friction * z * slip[1], z
    if friction > 0.0:
        x, y, z = _stuck(G, u0, u1, u2, p)
        if z >= 0.0 and np.hypot(x, y) <= friction * z:
            return x, y, z
    if np.isinf(friction):
        return 0.0, 0.0, max(0.0, -u2 / G[2, 2])
    if friction == 0.0:
        return 0.0, 0.0, -u2 / G[2, 2]
    angle, found = _slip_direction(G, u0, u1, u2, friction)
    if not found:
        z = max(0.0, r[2] - (u2 + G[2, 0] * r[0] + G[2, 1] * r[1] + G[2, 2] * r[2]) / G[2, 2])
        x = r[0] - p * (u0 + G[0, 0] * r[0] + G[0, 1] * r[1] + G[0, 2] * z)
        y = r[1] - p * (u1 + G[1, 0] * r[0] + G[1, 1] * r[1] + G[1, 2] * z)
        length = np.hypot(x, y)
        shrink = friction * z / length if length > friction * z else 1.0
        return shrink * x, shrink * y, z
    d0, d1 = np.cos(angle), np.sin(angle)
    z = _pressed(G, u2, friction, d0, d1)
    return -friction * z * d0, -friction * z * d1, z


@kernel(inline=True)
def _pressed(G, u2, friction, d0, d1):  # type: ignore[no-untyped-def]
    """Return the normal impulse for which ``u_n = 0`` while it slides along d; 0 where pressing does not help."""
    slope = G[2, 2] - friction * (G[2, 0] * d0 + G[2, 1] * d1)
    return -u2 / slope if slope > 1e-12 * G[2, 2] else 0.0


@kernel
def _stuck(G, u0, u1, u2, p):  # type: ignore[no-untyped-def]
    """Return the impulse that brings the contact point to rest; rows of zeros take none."""
    A = G.copy()
    for i in range(2):
        if A[i, i] <= 1e-11 / p:
            A[i, i] = 1.0 / p
    largest = max(A[0, 0], A[1, 1], A[2, 2])
    for i in range(3):
        A[i, i] += 1e-14 * largest
    x = solve(A, np.array([-u0, -u1, -u2]))
    return x[0], x[1], x[2]


@kernel(inline=True)
def _across(G, u0, u1, u2, friction, angle):  # type: ignore[no-untyped-def]
    """Return the parts of u_t across and along the direction of slip at `angle`."""
    d0, d1 = np.cos(angle), np.sin(angle)
    z = _pressed(G, u2, friction, d0, d1)
    x, y = -friction * z * d0, -friction * z * d1
    t0 = u0 + G[0, 0] * x + G[0, 1] * y + G[0, 2] * z
    t1 = u1 + G[1, 0] * x + G[1, 1] * y + G[1, 2] * z
    return d0 * t1 - d1 * t0, d0 * t0 + d1 * t1


@kernel
def _slip_direction(G, u0, u1, u2, friction):  # type: ignore[no-untyped-def]
    """Return the angle of the direction of slip, and whether there is one."""
    width = 2.0 * np.pi / DIRECTIONS
    start = np.arctan2(u1, u0) - 0.5 * width
    across, along = _across(G, u0, u1, u2, friction, start)
    for k in range(DIRECTIONS):
        following, ahead = _across(G, u0, u1, u2, friction, start + (k + 1) * width)
        if (across >= 0.0) != (following >= 0.0) and max(along, ahead) > 0.0:
            low, high, sign = start + k * width, start + (k + 1) * width, across >= 0.0
            for _ in range(50):
                middle = 0.5 * (low + high)
                value, _ = _across(G, u0, u1, u2, friction, middle)
                if (value >= 0.0) == sign:
                    low = middle
                else:
                    high = middle
            if _across(G, u0, u1, u2, friction, 0.5 * (low + high))[1] >= 0.0:
                return 0.5 * (low + high), True
        across, along = following, ahead
    return 0.0, False

"""Rotation of a rigid body, in its axes; inertia as six numbers xx, xy, xz, yy, yz, zz."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.vectors import cross_components, rotated, rotation_coefficients, turned
from constrained_sim.linalg.rank import EPSILON

MOST_NEWTON_STEPS = 50
"""For an angular velocity: it is found in four where a frame turns by 0.01 rad in a step, and in twelve at 1 rad of a
body with moments of inertia of 1 to 1e-6."""


@kernel(inline=True)
def times(I, w):
    """Return the three components of ``I w``, I the six numbers."""
    a, b, c, d, e, f = I
    x, y, z = w
    return a * x + b * y + c * z, b * x + d * y + e * z, c * x + e * y + f * z


@kernel(inline=True)
def turned_by(vector, w, h):
    """Return the three components of a vector turned by ``h w`` [rad]."""
    x, y, z = vector
    quaternion = turned((0.0, 0.0, 0.0, 1.0), (h * w[0], h * w[1], h * w[2]))
    return rotated(quaternion, x, y, z)


@kernel(inline=True)
def turned_momentum(I, w, h):
    """Return the three components of the angular momentum ``I w``, turned by ``h w`` [rad]."""
    return turned_by(times(I, w), w, h)


@kernel(inline=True, error_model="numpy")
def angular_velocity(I, p, h, guess):
    """Return the w with ``exp(h w) I w = p``, by Newton's method from a guess.

    All of the derivative is needed: of a thin rod the terms of order ``(h w)^2 I`` about its axis are larger than its
    inertia there.
    """
    (x, y, z), step = guess, np.inf
    for _ in range(MOST_NEWTON_STEPS):
        px, py, pz = turned_by(p, (x, y, z), -h)
        lx, ly, lz = times(I, (x, y, z))
        dx, dy, dz = solve_columns(newton_matrix(I, (px, py, pz), h, (x, y, z)), (px - lx, py - ly, pz - lz))
        before, step = step, max(abs(dx), abs(dy), abs(dz))
        if not step < before:
            break  # what is left is rounding
        x, y, z = x + dx, y + dy, z + dz
        if step <= EPSILON * max(abs(x), abs(y), abs(z)):
            break
    return x, y, z


@kernel(inline=True, error_model="numpy")
def newton_matrix(I, p, h, w):
    """Return the three columns of ``G = I - h [p]x J(-h w)``, J the left Jacobian of rotations.

    With ``I w = p`` and ``p = exp(-h w) p_0``, which changes by ``h p x J(-h w) dw`` (Sola et al., A micro Lie theory
    for state estimation in robotics, 2018, eq. 145).
    """
    turn = -h * w[0], -h * w[1], -h * w[2]
    one, two = rotation_coefficients(np.sqrt(_dot(turn, turn)))
    factors = -h * p[0], -h * p[1], -h * p[2]
    return (
        _newton_column(I, factors, turn, one, two, (1.0, 0.0, 0.0)),
        _newton_column(I, factors, turn, one, two, (0.0, 1.0, 0.0)),
        _newton_column(I, factors, turn, one, two, (0.0, 0.0, 1.0)),
    )


@kernel(inline=True)
def _newton_column(I, factors, turn, one, two, d):
    """Return ``I d + f x (d + one t x d + two t x (t x d))``, f the factors and t the turn."""
    ax, ay, az = cross_components(*turn, *d)
    bx, by, bz = cross_components(*turn, ax, ay, az)
    x, y, z = cross_components(
        *factors, d[0] + one * ax + two * bx, d[1] + one * ay + two * by, d[2] + one * az + two * bz
    )
    lx, ly, lz = times(I, d)
    return lx + x, ly + y, lz + z


@kernel(inline=True)
def columns_of(I):
    """Return the three columns of an inertia, I the six numbers."""
    a, b, c, d, e, f = I
    return (a, b, c), (b, d, e), (c, e, f)


@kernel(inline=True, error_model="numpy")
def solve_columns(columns, r):
    """Return the three components of x with ``A x = r``, A the matrix with these three columns, by Cramer's rule."""
    a, b, c = columns
    determinant = determinant_of(a, b, c)
    x, y = determinant_of(r, b, c) / determinant, determinant_of(a, r, c) / determinant
    return x, y, determinant_of(a, b, r) / determinant


@kernel(inline=True)
def determinant_of(a, b, c):
    """Return the determinant of the matrix with these three columns."""
    return _dot(a, cross_components(*b, *c))


@kernel(inline=True)
def _dot(a, b):
    """Return the scalar product of two vectors of three components."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]

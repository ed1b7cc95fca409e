"""Vectors and rotations in space by their components: as arrays they would take ten times as long in kernels."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel

SMALL_ANGLE = 1e-2
"""[rad] below which the coefficients of a turn are taken from their series, exact to 1e-17 there."""


@kernel(inline=True)
def cross_components(a, b, c, x, y, z):
    """Return the components of a vector product; as an array they would take ten times as long."""
    return b * z - c * y, c * x - a * z, a * y - b * x


@kernel(inline=True)
def in_world(x, y, z, placement):
    """Return the three components, in world axes, of a vector given in the axes of a placement."""
    return (
        x * placement[0, 0] + y * placement[1, 0] + z * placement[2, 0],
        x * placement[0, 1] + y * placement[1, 1] + z * placement[2, 1],
        x * placement[0, 2] + y * placement[1, 2] + z * placement[2, 2],
    )


@kernel(inline=True)
def in_axes(x, y, z, placement):
    """Return the three components, in the axes of a placement, of a vector given in world axes."""
    return (
        placement[0, 0] * x + placement[0, 1] * y + placement[0, 2] * z,
        placement[1, 0] * x + placement[1, 1] * y + placement[1, 2] * z,
        placement[2, 0] * x + placement[2, 1] * y + placement[2, 2] * z,
    )


@kernel(inline=True)
def rotated(quaternion, x, y, z):
    """Return the components of a vector turned by a unit quaternion (4,) xyzw: ``v + 2 s (u x v) + 2 u x (u x v)``."""
    a, b, c, s = quaternion
    tx, ty, tz = cross_components(2.0 * a, 2.0 * b, 2.0 * c, x, y, z)
    ux, uy, uz = cross_components(a, b, c, tx, ty, tz)
    return x + s * tx + ux, y + s * ty + uy, z + s * tz + uz


@kernel(inline=True)
def rotation_coefficients(angle):
    """Return ``(1 - cos a) / a^2`` and ``(a - sin a) / a^3`` of an `angle` a [rad]: those of Rodrigues' formulas."""
    if angle > SMALL_ANGLE:
        return (1.0 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
    return 0.5 - angle**2 / 24.0 + angle**4 / 720.0, 1.0 / 6.0 - angle**2 / 120.0 + angle**4 / 5040.0


@kernel(inline=True)
def turned(quaternion, w):
    """Return the components xyzw of a quaternion (4,) after the turn by the vector w (3,) in its own axes [rad]."""
    angle = np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2)
    share = np.sin(0.5 * angle) / angle if angle > SMALL_ANGLE else 0.5 - angle**2 / 48.0 + angle**4 / 3840.0
    a, b, c, d = share * w[0], share * w[1], share * w[2], np.cos(0.5 * angle)
    x, y, z, s = quaternion
    e, f, g = s * a + x * d + y * c - z * b, s * b + y * d + z * a - x * c, s * c + z * d + x * b - y * a
    h = s * d - x * a - y * b - z * c
    length = np.sqrt(e**2 + f**2 + g**2 + h**2)
    return e / length, f / length, g / length, h / length

"""The second-order cone ``|x_t| <= x_0`` in three dimensions, and its Jordan algebra.

Source: Alizadeh and Goldfarb, Second-order cone programming, 2003.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.rank import TINY


@kernel(inline=True)
def determinant(x):
    """Return ``x_0^2 - |x_t|^2`` of x (3,)."""
    length = np.hypot(x[1], x[2])
    return (x[0] - length) * (x[0] + length)


@kernel
def are_inside(x):
    """Return whether all points x (k, 3) are inside the cone, as far as numbers of this precision tell."""
    for c in range(x.shape[0]):
        if not TINY < determinant(x[c]) < 1.0 / TINY:
            return False
    return True


@kernel(inline=True)
def jordan_product(x, y):
    """Return the Jordan products ``(x . y, x_0 y_t + y_0 x_t)`` (k, 3)."""
    z = np.empty_like(x)
    for c in range(x.shape[0]):
        z[c, 0] = x[c, 0] * y[c, 0] + x[c, 1] * y[c, 1] + x[c, 2] * y[c, 2]
        z[c, 1], z[c, 2] = x[c, 0] * y[c, 1] + y[c, 0] * x[c, 1], x[c, 0] * y[c, 2] + y[c, 0] * x[c, 2]
    return z


@kernel(inline=True)
def jordan_quotient(z, x):
    """Return the y (k, 3) whose Jordan product with x is z."""
    y = np.empty_like(z)
    for c in range(x.shape[0]):
        along = x[c, 1] * z[c, 1] + x[c, 2] * z[c, 2]
        y[c, 0] = (x[c, 0] * z[c, 0] - along) / determinant(x[c])
        y[c, 1], y[c, 2] = (z[c, 1] - y[c, 0] * x[c, 1]) / x[c, 0], (z[c, 2] - y[c, 0] * x[c, 2]) / x[c, 0]
    return y


@kernel(inline=True)
def nesterov_todd_scaling(x, y, W, inverse):
    """Set W (3, 3), symmetric with ``W x = W^-1 y``, and its inverse, for points inside the cone (3,)."""
    size_x, size_y = np.sqrt(determinant(x)), np.sqrt(determinant(y))
    ratio = np.sqrt(size_y / size_x)
    x0, x1, x2, y0, y1, y2 = x[0] / size_x, x[1] / size_x, x[2] / size_x, y[0] / size_y, y[1] / size_y, y[2] / size_y
    twice = np.sqrt(2.0 * (1.0 + x0 * y0 + x1 * y1 + x2 * y2))
    w0, w1, w2 = (x0 + y0) / twice, (y1 - x1) / twice, (y2 - x2) / twice
    across = 1.0 / (1.0 + w0)
    for sign, factor, matrix in ((1.0, ratio, W), (-1.0, 1.0 / ratio, inverse)):
        matrix[0, 0] = factor * w0
        matrix[0, 1] = matrix[1, 0] = sign * factor * w1
        matrix[0, 2] = matrix[2, 0] = sign * factor * w2
        matrix[1, 1], matrix[2, 2] = factor * (1.0 + w1 * w1 * across), factor * (1.0 + w2 * w2 * across)
        matrix[1, 2] = matrix[2, 1] = factor * w1 * w2 * across


@kernel(inline=True)
def block_products(W, x):
    """Return the products (k, 3) of the matrices W (k, 3, 3) and x (k, 3)."""
    product = np.empty_like(x)
    for c in range(x.shape[0]):
        for i in range(3):
            product[c, i] = W[c, i, 0] * x[c, 0] + W[c, i, 1] * x[c, 1] + W[c, i, 2] * x[c, 2]
    return product


@kernel(inline=True)
def inverse_step_length(x, change):
    """Return the inverse of how many times `change` can be added to x (3,) before it leaves its cone; 0 for ever.

    In the axes in which x is a multiple of the cone's unit, the smallest eigenvalue of the change tells.
    """
    size = np.sqrt(determinant(x))
    u0, u1, u2 = x[0] / size, x[1] / size, x[2] / size
    along = u0 * change[0] - u1 * change[1] - u2 * change[2]
    across = (along + change[0]) / (u0 + 1.0)
    return (np.hypot(change[1] - across * u1, change[2] - across * u2) - along) / size

"""Householder reflections: orthonormal bases of rows and of their null space."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.cholesky import cholesky, solve_lower, solve_upper


@kernel
def null_space_bases(M, rows):
    """Return the bases of the null-space method for independent rows (r, nv), by Householder reflections.

    Returns:
        (Y^T (r, nv), Z^T (nv - r, nv), C (r, r) lower triangular with ``rows = C Y^T``, and the Cholesky factor of
        ``Z^T M Z``).
    """
    rank, nv = rows.shape
    reduced, mirrors = rows.copy(), np.zeros((rank, nv))
    factors = np.zeros(rank)
    for k in range(rank):
        v = mirrors[k]
        v[k:] = reduced[k, k:]
        length = np.sqrt(np.dot(v, v))
        v[k] += length if v[k] >= 0.0 else -length
        square = np.dot(v, v)
        factors[k] = 2.0 / square if square > 0.0 else 0.0
        _reflect(reduced[k:], v, k, factors[k])
    basis = np.eye(nv)
    for k in range(rank - 1, -1, -1):
        _reflect(basis[k:], mirrors[k], k, factors[k])
    Yt, Zt = basis[:rank], basis[rank:]
    return Yt, Zt, np.tril(reduced[:, :rank]), cholesky(Zt @ M @ Zt.T)


@kernel(inline=True)
def _reflect(rows, v, first, factor):
    """Apply ``I - factor v v^T`` to each of `rows` in place; v is zero before its entry `first`."""
    for row in rows:
        along = 0.0
        for j in range(first, v.shape[0]):
            along += row[j] * v[j]
        along *= factor
        for j in range(first, v.shape[0]):
            row[j] -= along * v[j]


@kernel
def null_space_solve(M, Yt, Zt, C, free_inertia, f, b):
    """Return x (k, nv) and multipliers (k, r) of the null-space method.

    Args:
        M: (nv, nv).
        Yt: (r, nv) first result of :func:`null_space_bases`.
        Zt: (nv - r, nv) second result.
        C: (r, r) third result.
        free_inertia: Cholesky factor of ``Z^T M Z``.
        f: (k, nv).
        b: (k, r).
    """
    x = solve_lower(C, b) @ Yt
    if Zt.shape[0]:
        force = (f - x @ M) @ Zt.T
        x = x + solve_upper(free_inertia, solve_lower(free_inertia, force)) @ Zt
    return x, solve_upper(C, (x @ M - f) @ Yt.T)

"""Compiled kernels of the solvers. Vectors are rows: a (k, nv) array holds k vectors."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def factor_inertia(M, parents):  # type: ignore[no-untyped-def]
    """Return the lower triangular L with ``M = L^T L``, zero wherever the tree's branches make M zero.

    Featherstone, Rigid Body Dynamics Algorithms, table 6.3. A non-positive pivot gives NaN.

    Args:
        M: (nv, nv) symmetric positive definite.
        parents: (nv,) parent of each degree of freedom, -1 at a root; a chain (i - 1) for a matrix without branches.
    """
    L = np.tril(M)
    for k in range(L.shape[0] - 1, -1, -1):
        L[k, k] = np.sqrt(L[k, k]) if L[k, k] > 0.0 else np.nan
        i = parents[k]
        while i >= 0:
            L[k, i] /= L[k, k]
            i = parents[i]
        i = parents[k]
        while i >= 0:
            j = i
            while j >= 0:
                L[i, j] -= L[k, i] * L[k, j]
                j = parents[j]
            i = parents[i]
    return L


@numba.njit(cache=True)
def whiten(L, parents, rows):  # type: ignore[no-untyped-def]
    """Return ``L^-T r`` of every row r (Featherstone, table 6.5); those of J give the Delassus matrix."""
    solved = rows.copy()
    for row in solved:
        for i in range(L.shape[0] - 1, -1, -1):
            if row[i] != 0.0:
                row[i] /= L[i, i]
                j = parents[i]
                while j >= 0:
                    row[j] -= L[i, j] * row[i]
                    j = parents[j]
    return solved


@numba.njit(cache=True)
def unwhiten(L, parents, rows):  # type: ignore[no-untyped-def]
    """Return ``L^-1 r`` for every row r, so that ``unwhiten(whiten(r)) = M^-1 r``."""
    solved = rows.copy()
    for row in solved:
        for i in range(L.shape[0]):
            j = parents[i]
            while j >= 0:
                row[i] -= L[i, j] * row[j]
                j = parents[j]
            row[i] /= L[i, i]
    return solved


@numba.njit(cache=True)
def free_response(M, parents, f, rows):  # type: ignore[no-untyped-def]
    """Return ``M^-1 f`` (nv,) and ``M^-1 r`` for every row r of `rows` (k, nv): the motion without constraints."""
    L = factor_inertia(M, parents)
    loads = np.empty((rows.shape[0] + 1, f.shape[0]))
    loads[0] = f
    loads[1:] = rows
    moved = unwhiten(L, parents, whiten(L, parents, loads))
    return moved[0], moved[1:]


@numba.njit(cache=True)
def pivoted_rows(rows, responses, tolerance):  # type: ignore[no-untyped-def]
    """Order rows by pivoted modified Gram-Schmidt in the metric of M^-1, and find how many are independent.

    Rows are scaled to unit length first (a zero row keeps its length), so that `tolerance` is relative and metres
    compare with radians: ``rows / scale = R^T Q`` in the returned order, Q with orthonormal rows.

    Args:
        rows: (m, nv) the rows of J.
        responses: (m, nv) ``M^-1 J^T``, transposed; or, with whitened rows, these again.
        tolerance: relative length of a remainder that counts as zero.

    Returns:
        (scale (m,), order (m,), R (m, m) upper trapezoidal in that order, rank).
    """
    count, size = rows.shape
    scale = np.ones(count)
    q, d = rows.copy(), responses.copy()
    for i in range(count):
        square = np.dot(rows[i], responses[i])
        if square > 0.0:
            scale[i] = np.sqrt(square)
            q[i] /= scale[i]
            d[i] /= scale[i]
    order = np.arange(count)
    R = np.zeros((count, count))
    rank = 0
    for k in range(min(count, size)):
        best, longest = k, -1.0
        for i in range(k, count):
            square = np.dot(q[i], d[i])
            if square > longest * (1.0 + 1e-9):
                best, longest = i, square
        if not longest > tolerance**2:
            break
        longest = np.sqrt(longest)
        for j in range(size):
            q[k, j], q[best, j] = q[best, j], q[k, j]
            d[k, j], d[best, j] = d[best, j], d[k, j]
        for j in range(k):
            R[j, k], R[j, best] = R[j, best], R[j, k]
        order[k], order[best] = order[best], order[k]
        R[k, k] = longest
        q[k] /= longest
        d[k] /= longest
        for i in range(k + 1, count):
            R[k, i] = np.dot(d[k], q[i])
            q[i] -= R[k, i] * q[k]
            d[i] -= R[k, i] * d[k]
        rank += 1
    return scale, order, R, rank

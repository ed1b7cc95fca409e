"""The factorisation M = L^T L of the joint-space inertia. Vectors are rows: a (k, nv) array holds k vectors."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel


@kernel(error_model="numpy")
def factor_inertia(M, parents):
    """Return the lower triangular L with ``M = L^T L``, zero wherever the tree's branches make M zero.

    Featherstone, Rigid Body Dynamics Algorithms, table 6.3. A non-positive pivot gives NaN.

    Args:
        M: (nv, nv) symmetric positive definite.
        parents: (nv,) parent of each degree of freedom, -1 at a root; a chain (i - 1) for a matrix without branches.
    """
    L = np.zeros(M.shape)
    for i in range(L.shape[0]):
        for j in range(i + 1):  # np.tril takes longer than all that follows
            L[i, j] = M[i, j]
    for k in range(L.shape[0] - 1, -1, -1):
        row = L[k]
        row[k] = np.sqrt(row[k]) if row[k] > 0.0 else np.nan
        i = parents[k]
        while i >= 0:
            row[i] /= row[k]
            i = parents[i]
        i = parents[k]
        while i >= 0:
            target, factor = L[i], row[i]
            j = i
            while j >= 0:
                target[j] -= factor * row[j]
                j = parents[j]
            i = parents[i]
    return L


@kernel(error_model="numpy")
def whiten(L, parents, rows):
    """Return ``L^-T r`` of every row r (Featherstone, table 6.5); those of J give the Delassus matrix."""
    columns = rows.T.copy()  # all rows at once: their entries lie side by side
    for i in range(L.shape[0] - 1, -1, -1):
        pivot = L[i, i]
        for k in range(columns.shape[1]):
            columns[i, k] /= pivot
        j = parents[i]
        while j >= 0:
            factor = L[i, j]
            for k in range(columns.shape[1]):
                columns[j, k] -= factor * columns[i, k]
            j = parents[j]
    return np.ascontiguousarray(columns.T)


@kernel(error_model="numpy")
def unwhiten(L, parents, rows):
    """Return ``L^-1 r`` for every row r, so that ``unwhiten(whiten(r)) = M^-1 r``."""
    columns = rows.T.copy()
    for i in range(L.shape[0]):
        j = parents[i]
        while j >= 0:
            factor = L[i, j]
            for k in range(columns.shape[1]):
                columns[i, k] -= factor * columns[j, k]
            j = parents[j]
        pivot = L[i, i]
        for k in range(columns.shape[1]):
            columns[i, k] /= pivot
    return np.ascontiguousarray(columns.T)


@kernel(error_model="numpy")
def whiten_one(L, parents, f):
    """Return ``L^-T f`` (nv,), see :func:`whiten`."""
    solved = f.copy()
    for i in range(L.shape[0] - 1, -1, -1):
        solved[i] /= L[i, i]
        j = parents[i]
        while j >= 0:
            solved[j] -= L[i, j] * solved[i]
            j = parents[j]
    return solved


@kernel(error_model="numpy")
def unwhiten_one(L, parents, f):
    """Return ``L^-1 f`` (nv,), see :func:`unwhiten`."""
    solved = f.copy()
    for i in range(L.shape[0]):
        j = parents[i]
        while j >= 0:
            solved[i] -= L[i, j] * solved[j]
            j = parents[j]
        solved[i] /= L[i, i]
    return solved


@kernel
def solve_inertia(M, parents, f):
    """Return the x (nv,) with ``M x = f``; the arguments are those of :func:`factor_inertia`."""
    L = factor_inertia(M, parents)
    return unwhiten_one(L, parents, whiten_one(L, parents, f))

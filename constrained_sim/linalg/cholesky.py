"""Cholesky's factorisation, compiled: plain, with a check for dependent rows, and with diagonal pivoting."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.rank import LARGE_PIVOT, ROW_TOLERANCE, TIE


@kernel
def pivoted_factor(G, units):
    """Return L (n, rank) with ``G = L L^T``, by Cholesky's factorisation with diagonal pivoting, and pivots (rank,).

    Pivots are rows that do not depend on each other, and that all others depend on. What is left of a diagonal entry
    compares with its entry of `units` (n,), positive, so that rows of metres compare with rows of radians.
    """
    n = G.shape[0]
    pivots = np.empty(n, dtype=np.int64)
    columns, rest = np.empty((n, n)), np.diag(G).copy()
    rank = 0
    while rank < n:
        pivot, largest = 0, -1.0
        for i in range(n):
            share = rest[i] / units[i]
            if share > largest * (1.0 + TIE):
                pivot, largest = i, share
        if rest[pivot] <= ROW_TOLERANCE**2 * units[pivot]:
            break
        column = columns[rank]
        column[:] = G[pivot]
        for k in range(rank):
            other, factor = columns[k], columns[k, pivot]
            for i in range(n):
                column[i] -= factor * other[i]
        column /= np.sqrt(rest[pivot])
        for i in range(n):
            rest[i] = max(rest[i] - column[i] ** 2, 0.0)
        rest[pivot] = 0.0
        pivots[rank] = pivot
        rank += 1
    return np.ascontiguousarray(columns[:rank].T), pivots[:rank].copy()


@kernel
def row_factor(G):
    """Return what :func:`pivoted_factor` does, each row compared with its own diagonal entry; zero rows depend."""
    own = np.diag(G).copy()
    for i in range(own.shape[0]):
        if not own[i] > 0.0:
            own[i] = 1.0
    return pivoted_factor(G, own)


@kernel
def range_factor(G):
    """Return L (n, rank) with ``G = L L^T``, see :func:`row_factor`."""
    return row_factor(G)[0]


@kernel
def independent_factor(G):
    """Return U (n, n), upper triangular, with ``G = U^T U``, and whether its pivots are large; else it is of no use.

    Each pivot compares with the diagonal entry it began as. Rows of zeros do not count; their pivot is infinite, so
    that their unknowns come out as zero.
    """
    n = G.shape[0]
    U = np.zeros((n, n))
    for i in range(n):
        if not G[i, i] > 0.0:
            U[i, i] = np.inf
            continue
        row, given = U[i, i:], G[i, i:]
        for j in range(row.shape[0]):
            row[j] = given[j]
        for k in range(i):
            other = U[k, i:]
            factor = other[0]
            for j in range(row.shape[0]):
                row[j] -= factor * other[j]
        if row[0] <= LARGE_PIVOT * G[i, i]:
            return U, False
        pivot = np.sqrt(row[0])
        for j in range(row.shape[0]):
            row[j] /= pivot
    return U, True


@kernel
def substitute_twice(U, b):
    """Return the x with ``U^T U x = b``, for U upper triangular."""
    x, n = b.copy(), b.shape[0]
    for k in range(n):
        x[k] /= U[k, k]
        for j in range(k + 1, n):
            x[j] -= x[k] * U[k, j]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= U[i, j] * x[j]
        x[i] = total / U[i, i]
    return x


@kernel
def cholesky(A):
    """Return the lower triangular C with ``A = C C^T``; only the lower triangle of A is read. No check of pivots."""
    C = np.zeros_like(A)
    for i in range(A.shape[0]):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= C[i, k] * C[j, k]
            C[i, j] = np.sqrt(total) if i == j else total / C[j, j]
    return C


@kernel
def solve_lower(C, rows):
    """Return ``C^-1 r`` of every row r, C lower triangular."""
    solved = rows.copy()
    for row in solved:
        for i in range(C.shape[0]):
            for j in range(i):
                row[i] -= C[i, j] * row[j]
            row[i] /= C[i, i]
    return solved


@kernel
def solve_upper(C, rows):
    """Return ``C^-T r`` of every row r, C lower triangular."""
    solved = rows.copy()
    for row in solved:
        for i in range(C.shape[0] - 1, -1, -1):
            row[i] /= C[i, i]
            for j in range(i):
                row[j] -= C[i, j] * row[i]
    return solved

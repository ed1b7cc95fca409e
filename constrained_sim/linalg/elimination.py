"""Gaussian elimination with row pivoting, compiled: for the small matrices of contact problems."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel


@kernel
def eliminate(A):
    """Return the triangular factors of A in one matrix, and which row was the pivot of each column.

    For the small matrices of contact problems; NumPy's takes seconds to compile wherever it is used.
    """
    factors, pivots = A.copy(), np.empty(A.shape[0], dtype=np.int64)
    n = A.shape[0]
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(factors[i, k]) > abs(factors[pivot, k]):
                pivot = i
        pivots[k] = pivot
        if pivot != k:
            for j in range(n):
                factors[k, j], factors[pivot, j] = factors[pivot, j], factors[k, j]
        if factors[k, k] == 0.0:
            continue
        for i in range(k + 1, n):
            factor = factors[i, k] / factors[k, k]
            factors[i, k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    factors[i, j] -= factor * factors[k, j]
    return factors, pivots


@kernel
def substitute(factors, pivots, b):
    """Return the x with ``A x = b``, for A from :func:`eliminate`; a pivot of zero leaves its unknown zero."""
    x, n = b.copy(), b.shape[0]
    for k in range(n):
        x[k], x[pivots[k]] = x[pivots[k]], x[k]
    for k in range(n):
        for j in range(k):
            x[k] -= factors[k, j] * x[j]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, n):
            total -= factors[k, j] * x[j]
        x[k] = total / factors[k, k] if factors[k, k] != 0.0 else 0.0
    return x


@kernel
def solve(A, b):
    """Return ``A^-1 b`` by elimination with row pivoting."""
    factors, pivots = eliminate(A)
    return substitute(factors, pivots, b)

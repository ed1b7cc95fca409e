"""Compiled products of small matrices and vectors, under NumPy's names for them.

NumPy's go through BLAS, whose call alone takes longer than a product of twenty rows.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel

ANY_ORDER = {"reassoc", "contract", "nsz"}
"""Sums in the order that the processor adds fastest, as in BLAS; NaN and infinity stay what they are."""

FEW = 16
"""Rows up to which their products take less time without BLAS."""


@kernel(inline=True, fastmath=ANY_ORDER)
def matvec(A, x):
    """Return (m,) ``A x`` for A (m, n) and x (n,)."""
    product = np.empty(A.shape[0])
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j] * x[j]
        product[i] = total
    return product


@kernel(inline=True)
def vecmat(x, A):
    """Return (n,) ``x A``, the sum of the rows of A (m, n) times those of x (m,)."""
    product = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        factor = x[i]
        for j in range(A.shape[1]):
            product[j] += factor * A[i, j]
    return product


@kernel(inline=True, fastmath=ANY_ORDER)
def vecdot(x, y):
    """Return the scalar product of x and y, both (n,)."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@kernel(fastmath=ANY_ORDER)
def gram(A):
    """Return (m, m) the scalar products ``A A^T`` of the rows of A (m, n); symmetric to the last bit."""
    m = A.shape[0]
    product = np.empty((m, m)) if m <= FEW else A @ A.T
    for i in range(m):
        for k in range(i + 1):
            if m <= FEW:
                total = 0.0
                for j in range(A.shape[1]):
                    total += A[i, j] * A[k, j]
                product[i, k] = total
            product[k, i] = product[i, k]
    return product


@kernel
def entries(A, rows, columns):
    """Return the entries of a matrix that are in these rows and columns."""
    chosen = np.empty((rows.shape[0], columns.shape[0]))
    for i in range(rows.shape[0]):
        for j in range(columns.shape[0]):
            chosen[i, j] = A[rows[i], columns[j]]
    return chosen


@kernel(inline=True)
def largest_entry(x):
    """Return the largest magnitude of the entries of x (n,); NaN if there is one among them, 0 if there is none."""
    largest = 0.0
    for value in x:
        if not abs(value) <= largest:
            largest = abs(value)
            if np.isnan(value):
                break
    return largest

"""The rank of rows, and the tolerances that decide it."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.validation import Array

EPSILON = float(np.finfo(np.float64).eps)
"""Rounding of a number near 1."""

SUM_ROUNDING = 100.0 * EPSILON
"""Rounding of a sum of some hundred terms, relative to the sum of their magnitudes."""

TINY = float(np.finfo(np.float64).tiny)
"""In the place of a zero that divides."""

ROW_TOLERANCE = 1e-6
"""Remainder of a row, relative to its length in the metric of M^-1, from which on it is independent.

Solvers that form the Delassus matrix, or eliminate without orthogonal transformations, see the square of it: at 1e-8
that is rounding.
"""

LARGE_PIVOT = 1e-6
"""Pivot, relative to the diagonal entry it began as, that rounding cannot have made, whatever came before it."""

OFF_CONSTRAINTS = 4.0
"""Remainder of a row that only the distance from the constraints leaves, in units of its change within a step times the
relative change of all rows: 0.4 at most in Bennett's linkage, some hundreds and more where rows are independent."""

DELASSUS_TOLERANCE = 1e-11
"""Entry of a Delassus matrix, relative to what it was before bilateral rows were held, below which it is rounding."""

MOTION_ROUNDING = 1e-15
"""Rounding of a row velocity, relative to the largest one that a motion of the same kinetic energy can have."""

CONSISTENT = 1e-9
"""Relative residual up to which rows do not contradict each other; more where rounding alone makes more of it."""

BASIS_TOLERANCE = 1e-12
"""Length, relative to the largest of its kind, of what is left of a column that depends on those before it."""

TIE = 1e-9
"""By how much, relative to its square, a row is longer than one before it to be the pivot in its stead: of rows that
are equally long but for rounding the first one declared is taken."""


@kernel
def regular_rows(rows, responses):
    """Find out cheaply whether rows are far from depending on each other.

    Cholesky factorisation of the Delassus matrix of the rows, scaled to a unit diagonal, with a check of its pivots.

    Args:
        rows: (m, nv) the rows of J.
        responses: (m, nv) ``M^-1 J^T``, transposed; or, with whitened rows, these again.

    Returns:
        (scale (m,): square roots of the diagonal, 1 for a zero row; C (m, m), of use only if the third is true;
        whether all pivots are large).
    """
    count, size = rows.shape
    scale, C = np.ones(count), np.zeros((count, count))
    regular = count <= size
    for i in range(count):
        square = np.dot(rows[i], responses[i])
        if square > 0.0:
            scale[i] = np.sqrt(square)
    for i in range(count):
        if not regular:
            break
        for j in range(i + 1):
            total = np.dot(rows[i], responses[j]) / (scale[i] * scale[j])
            for k in range(j):
                total -= C[i, k] * C[j, k]
            if j < i:
                C[i, j] = total / C[j, j]
            else:
                regular = total > LARGE_PIVOT
                C[i, i] = np.sqrt(total) if regular else 1.0
    return scale, C, regular


@kernel
def scaled_rows(rows, independent, scale):
    """Return (rank, nv) the `independent` ones of `rows`, each divided by its entry of `scale`."""
    chosen = np.empty((independent.shape[0], rows.shape[1]))
    for i in range(independent.shape[0]):
        chosen[i] = rows[independent[i]] / scale[independent[i]]
    return chosen


@kernel
def pivoted_rows(rows, responses, tolerance):
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
            if square > longest * (1.0 + TIE):
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


def without_rounding(A: Array, terms: Array) -> Array:
    """Return A with zeros where its entries are rounding of sums whose `terms` have these magnitudes."""
    return np.where(np.abs(A) <= SUM_ROUNDING * terms, 0.0, A)


def unit_columns(A: Array) -> tuple[Array, Array]:
    """Return A (m, n) with columns of unit length, and their lengths (n,); 1 of a column of zeros, which stays."""
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths == 0.0] = 1.0
    return A / lengths, lengths


def least_squares(A: Array, b: Array) -> Array:
    """Return the x (n,) of least 2-norm that minimises ``|A x - b|``, of rank as everywhere.

    The rank is that of columns of unit length: it does not depend on the units of the entries of x. With
    ``A = A_s D`` and an orthonormal basis Q of the null space of A, ``x = (1 - Q Q^T) D^-1 A_s^+ b``.

    Args:
        A: (m, n).
        b: (m,).
    """
    unit, lengths = unit_columns(A)
    U, s, Vt = np.linalg.svd(unit)
    rank = int((s > ROW_TOLERANCE * s.max(initial=0.0)).sum())
    x = Vt[:rank].T @ (U[:, :rank].T @ b / s[:rank]) / lengths
    if rank < len(x):
        Q = np.linalg.qr(Vt[rank:].T / lengths[:, None])[0]
        x -= Q @ (Q.T @ x)
    return np.asarray(x, dtype=np.float64)

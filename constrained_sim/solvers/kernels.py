"""Compiled kernels of the solvers. Vectors are rows: a (k, nv) array holds k vectors."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel

LARGE_PIVOT = 1e-6
"""Pivot of a matrix with unit diagonal that rounding cannot have made."""


@kernel(error_model="numpy")
def factor_inertia(M, parents):  # type: ignore[no-untyped-def]
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
def whiten(L, parents, rows):  # type: ignore[no-untyped-def]
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
def unwhiten(L, parents, rows):  # type: ignore[no-untyped-def]
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
def whiten_one(L, parents, f):  # type: ignore[no-untyped-def]
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
def unwhiten_one(L, parents, f):  # type: ignore[no-untyped-def]
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
def cholesky(A):  # type: ignore[no-untyped-def]
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
def solve_lower(C, rows):  # type: ignore[no-untyped-def]
    """Return ``C^-1 r`` of every row r, C lower triangular."""
    solved = rows.copy()
    for row in solved:
        for i in range(C.shape[0]):
            for j in range(i):
                row[i] -= C[i, j] * row[j]
            row[i] /= C[i, i]
    return solved


@kernel
def solve_upper(C, rows):  # type: ignore[no-untyped-def]
    """Return ``C^-T r`` of every row r, C lower triangular."""
    solved = rows.copy()
    for row in solved:
        for i in range(C.shape[0] - 1, -1, -1):
            row[i] /= C[i, i]
            for j in range(i):
                row[j] -= C[i, j] * row[i]
    return solved


@kernel
def analyse(M, parents, J):  # type: ignore[no-untyped-def]
    """Return what all solvers need of M (nv, nv) and J (m, nv).

    Returns:
        (L of :func:`factor_inertia`, whitened rows of J, and scale, C and whether they are regular as from
        :func:`regular_rows`).
    """
    L = factor_inertia(M, parents)
    whitened = whiten(L, parents, J)
    scale, C, regular = regular_rows(whitened, whitened)
    return L, whitened, scale, C, regular


@kernel
def regular_rows(rows, responses):  # type: ignore[no-untyped-def]
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
def scaled_rows(rows, independent, scale):  # type: ignore[no-untyped-def]
    """Return (rank, nv) the `independent` ones of `rows`, each divided by its entry of `scale`."""
    chosen = np.empty((independent.shape[0], rows.shape[1]))
    for i in range(independent.shape[0]):
        chosen[i] = rows[independent[i]] / scale[independent[i]]
    return chosen


@kernel
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


@kernel
def range_space_solve(L, parents, whitened, C, f, b):  # type: ignore[no-untyped-def]
    """Return x (k, nv) and multipliers (k, r) of the range-space method.

    Args:
        L: (nv, nv) factor of M.
        parents: see :func:`factor_inertia`.
        whitened: (r, nv) whitened rows.
        C: (r, r) Cholesky factor of their Delassus matrix.
        f: (k, nv).
        b: (k, r).
    """
    free = whiten(L, parents, f)
    lam = solve_upper(C, solve_lower(C, b - free @ whitened.T))
    return unwhiten(L, parents, free + lam @ whitened), lam


@kernel
def assemble_kkt(M, rows, independent, scale, sign):  # type: ignore[no-untyped-def]
    """Return the transpose of ``[[M, sign J^T], [J, 0]]``, rows first: for LAPACK, the matrix itself.

    J are the `independent` ones of `rows`, each divided by its entry of `scale`.
    """
    J = scaled_rows(rows, independent, scale)
    nv, count = M.shape[0], J.shape[0]
    kkt = np.zeros((nv + count, nv + count))
    kkt[:nv, :nv] = M
    for i in range(count):
        for j in range(nv):
            kkt[j, nv + i] = J[i, j]
            kkt[nv + i, j] = sign * J[i, j]
    return kkt


@kernel
def null_space_bases(M, rows):  # type: ignore[no-untyped-def]
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
def _reflect(rows, v, first, factor):  # type: ignore[no-untyped-def]
    """Apply ``I - factor v v^T`` to each of `rows` in place; v is zero before its entry `first`."""
    for row in rows:
        along = 0.0
        for j in range(first, v.shape[0]):
            along += row[j] * v[j]
        along *= factor
        for j in range(first, v.shape[0]):
            row[j] -= along * v[j]


@kernel
def null_space_solve(M, Yt, Zt, C, free_inertia, f, b):  # type: ignore[no-untyped-def]
    """Return x (k, nv) and multipliers (k, r) of the null-space method.

    Args:
        M: (nv, nv).
        Yt: see :func:`null_space_bases`.
        Zt: likewise.
        C: likewise.
        free_inertia: Cholesky factor of ``Z^T M Z``.
        f: (k, nv).
        b: (k, r).
    """
    x = solve_lower(C, b) @ Yt
    if Zt.shape[0]:
        force = (f - x @ M) @ Zt.T
        x = x + solve_upper(free_inertia, solve_lower(free_inertia, force)) @ Zt
    return x, solve_upper(C, (x @ M - f) @ Yt.T)

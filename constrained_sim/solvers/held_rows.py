"""The equality problem ``M x - J^T y = f, J x = b`` in one kernel, by the factorisation that the user chose.

Every contact problem begins with it: all rows that may carry force are held. If the forces obey the contact law, that
is the solution.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.cholesky import independent_factor, pivoted_factor, substitute_twice
from constrained_sim.linalg.elimination import eliminate, substitute
from constrained_sim.linalg.householder import null_space_bases, null_space_solve
from constrained_sim.linalg.inertia_factor import factor_inertia, unwhiten_one, whiten, whiten_one
from constrained_sim.linalg.products import gram, matvec, vecmat

DIRECT, RANGE_SPACE, NULL_SPACE = range(3)
"""Factorisations that kernels have: LU of the whole matrix, Cholesky of the Delassus matrix, QR of the rows."""


@kernel
def hold_rows(factorization, M, parents, J, f, b):  # type: ignore[no-untyped-def]
    """Solve ``M x - J^T y = f, J x = b`` for rows that may depend on each other.

    Rows that depend on others are left to them, and y is then the one of least norm with the same ``J^T y``: with
    the factor ``G = F F^T`` of the Delassus matrix, I the independent rows and y_I their multipliers,
    ``y = F (F^T F)^-1 F_I^T y_I``. Rows that contradict each other are not met.

    Args:
        factorization: of the independent rows, one of those above.
        M: (nv, nv) inertia.
        parents: (nv,) see :func:`~constrained_sim.linalg.inertia_factor.factor_inertia`.
        J: (m, nv) rows.
        f: (nv,) generalised force or momentum.
        b: (m,) what the rows are to have.

    Returns:
        (x (nv,), y (m,), ``J M^-1 f`` (m,), the Delassus matrix (m, m), whether all rows but zero ones
        are independent).
    """
    L = factor_inertia(M, parents)
    rows, free = whiten(L, parents, J), whiten_one(L, parents, f)
    G, before = gram(rows), matvec(rows, free)
    U, is_regular = independent_factor(G)
    if factorization == RANGE_SPACE and is_regular:
        y = substitute_twice(U, b - before)
        return unwhiten_one(L, parents, free + vecmat(y, rows)), y, before, G, True
    F = U
    if is_regular:
        chosen = np.flatnonzero(np.isfinite(np.diag(U)))
    else:
        F, chosen = pivoted_factor(G)
    scale = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        scale[i] = 1.0 / np.sqrt(G[chosen[i], chosen[i]])
    if factorization == RANGE_SPACE:
        U = np.ascontiguousarray(F[chosen].T)
        some = substitute_twice(U, (b - before)[chosen])
        x = unwhiten_one(L, parents, free + vecmat(some, rows[chosen]))
    elif factorization == DIRECT:
        x, some = _direct(M, _scaled(J, chosen, scale), f, b[chosen] * scale)
        some *= scale
    else:
        x, some = _null_space(M, _scaled(J, chosen, scale), f, b[chosen] * scale)
        some *= scale
    y = np.zeros(b.shape[0])
    if is_regular:
        y[chosen] = some
    else:
        factors, pivots = eliminate(F.T @ F)
        y[:] = F @ substitute(factors, pivots, vecmat(some, F[chosen]))
    return x, y, before, G, is_regular


@kernel
def _direct(M, J, f, b):  # type: ignore[no-untyped-def]
    """Return x and y by elimination in ``[[M, -J^T], [J, 0]]``."""
    n, m = f.shape[0], b.shape[0]
    kkt, right = np.zeros((n + m, n + m)), np.empty(n + m)
    right[:n], right[n:] = f, b
    for i in range(n):
        for j in range(n):
            kkt[i, j] = M[i, j]
        for k in range(m):
            kkt[i, n + k], kkt[n + k, i] = -J[k, i], J[k, i]
    factors, pivots = eliminate(kkt)
    unknowns = substitute(factors, pivots, right)
    return unknowns[:n].copy(), unknowns[n:].copy()


@kernel
def _null_space(M, J, f, b):  # type: ignore[no-untyped-def]
    """Return x and y through bases of the motions that the rows leave and of those that they take."""
    x, y = null_space_solve(M, *null_space_bases(M, J), f.reshape((1, -1)), b.reshape((1, -1)))
    return x[0].copy(), y[0].copy()


@kernel
def _scaled(J, chosen, scale):  # type: ignore[no-untyped-def]
    """Return the `chosen` rows of J, each times its `scale`."""
    part = np.empty((chosen.shape[0], J.shape[1]))
    for i in range(chosen.shape[0]):
        for j in range(J.shape[1]):
            part[i, j] = scale[i] * J[chosen[i], j]
    return part

"""The equality problem ``M x - J^T y = f, J x = b`` in one kernel, by the factorisation that the user chose.

Every contact problem begins with it: all rows that may carry force are held. If the forces obey the contact law, that
is the solution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.cholesky import independent_factor, row_factor, solve_lower, substitute_twice
from constrained_sim.linalg.elimination import eliminate, substitute
from constrained_sim.linalg.householder import null_space_bases, null_space_solve
from constrained_sim.linalg.inertia_factor import factor_inertia, unwhiten_one, whiten, whiten_one
from constrained_sim.linalg.products import entries, gram, largest_entry, matvec, vecmat
from constrained_sim.linalg.rank import CONSISTENT, scaled_rows
from constrained_sim.validation import Array

DIRECT, RANGE_SPACE, NULL_SPACE = range(3)
"""Factorisations that kernels have: LU of the whole matrix, Cholesky of the Delassus matrix, QR of the rows."""


class HeldMotion(NamedTuple):
    """The motion with rows held, and what they are without that.

    Attributes:
        x: (nv,) acceleration or velocity.
        y: (m,) multipliers.
        free: (m,) ``J M^-1 f``, what the rows would have.
        delassus: (m, m) ``J M^-1 J^T``.
        is_independent: whether all rows but zero ones are.
    """

    x: Array
    y: Array
    free: Array
    delassus: Array
    is_independent: bool


@kernel
def hold_rows(factorization, M, parents, J, f, b):
    """Solve ``M x - J^T y = f, J x = b`` for rows that may depend on each other.

    Rows that depend on others are left to them, and y is then the one of least norm with the same ``J^T y``: with
    the factor ``G = F F^T`` of the Delassus matrix, I the independent rows and y_I their multipliers,
    ``y = F (F^T F)^-1 F_I^T y_I``. Rows that contradict each other are met as well as can be, in least squares.

    Args:
        factorization: of the independent rows, one of those above.
        M: (nv, nv) inertia.
        parents: (nv,) see :func:`~constrained_sim.linalg.inertia_factor.factor_inertia`.
        J: (m, nv) rows.
        f: (nv,) generalised force or momentum.
        b: (m,) what the rows are to have.

    Returns:
        The :class:`HeldMotion`.
    """
    L = factor_inertia(M, parents)
    rows, free = whiten(L, parents, J), whiten_one(L, parents, f)
    G, before = gram(rows), matvec(rows, free)
    U, is_regular = independent_factor(G)
    if factorization == RANGE_SPACE and is_regular:
        y = substitute_twice(U, b - before)
        return HeldMotion(unwhiten_one(L, parents, free + vecmat(y, rows)), y, before, G, True)
    F, chosen, goal = _independent(G, U, is_regular, b)
    scale = np.sqrt(np.diag(G))
    if factorization == RANGE_SPACE:
        some = substitute_twice(np.ascontiguousarray(F[chosen].T), goal - before[chosen])
        x = unwhiten_one(L, parents, free + vecmat(some, rows[chosen]))
    elif factorization == DIRECT:
        x, some = _direct(M, scaled_rows(J, chosen, scale), f, goal / scale[chosen])
        some /= scale[chosen]
    else:
        x, some = _null_space(M, scaled_rows(J, chosen, scale), f, goal / scale[chosen])
        some /= scale[chosen]
    y = np.zeros(b.shape[0])
    if is_regular:
        y[chosen] = some
    else:
        factors, pivots = eliminate(F.T @ F)
        y[:] = F @ substitute(factors, pivots, vecmat(some, F[chosen]))
    return HeldMotion(x, y, before, G, is_regular)


@kernel
def _independent(G, U, is_regular, b):
    """Choose rows that do not depend on each other, and what they are to have.

    All rows are ``F F_I^-1`` times those, so they can have ``F c`` alone. Rows that agree have it with
    ``F_I c = b_I``. Rows that contradict each other are met in least squares: ``c = (F^T F)^-1 F^T b``.

    Args:
        G: (m, m) the Delassus matrix.
        U: (m, m) what :func:`~constrained_sim.linalg.cholesky.independent_factor` has found of it.
        is_regular: and whether rows are independent.
        b: (m,) what all rows are to have.

    Returns:
        (F (m, r) with ``G = F F^T``, of use where rows depend on each other; I (r,); ``F_I c`` (r,)).
    """
    if is_regular:
        chosen = np.flatnonzero(np.isfinite(np.diag(U)))
        return U, chosen, b[chosen]
    F, chosen = row_factor(G)
    goal = b[chosen]
    contradiction = b - matvec(F, solve_lower(F[chosen], goal.reshape((1, -1)))[0])
    if largest_entry(contradiction) > CONSISTENT * largest_entry(b):
        factors, pivots = eliminate(F.T @ F)
        goal += matvec(F[chosen], substitute(factors, pivots, vecmat(contradiction, F)))
    return F, chosen, goal


@kernel
def hold_first(W, b, rows, free):
    """Take what other rows hold out of `rows`, and of the motion that is free of these, in place.

    All are whitened. With the independent rows ``W_I = U^T Q``, Q of orthonormal rows, the motion becomes
    ``free + Q^T (U^-T b_I - Q free)``, and each row ``row - row Q^T Q``: their products are the Delassus matrix of what
    is left to them.

    Args:
        W: (m, nv) rows that are held.
        b: (m,) what they are to have.
        rows: (n, nv) changes.
        free: (nv,) changes.
    """
    G = gram(W)
    U, is_regular = independent_factor(G)
    F, chosen, goal = _independent(G, U, is_regular, b)
    U = entries(U, chosen, chosen) if is_regular else np.ascontiguousarray(F[chosen].T)
    Q = W[chosen]
    for i in range(chosen.shape[0]):
        for k in range(i):
            goal[i] -= U[k, i] * goal[k]
            for j in range(Q.shape[1]):
                Q[i, j] -= U[k, i] * Q[k, j]
        goal[i] /= U[i, i]
        for j in range(Q.shape[1]):
            Q[i, j] /= U[i, i]
    free += vecmat(goal - matvec(Q, free), Q)
    for row in rows:
        row -= vecmat(matvec(Q, row), Q)


@kernel
def _direct(M, J, f, b):
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
def _null_space(M, J, f, b):
    """Return x and y through bases of the motions that the rows leave and of those that they take."""
    x, y = null_space_solve(M, *null_space_bases(M, J), f.reshape((1, -1)), b.reshape((1, -1)))
    return x[0].copy(), y[0].copy()

"""Rows that depend on each other wherever the constraints hold, looked at where these hold nearly."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.cholesky import independent_factor, row_factor, solve_upper
from constrained_sim.linalg.inertia_factor import factor_inertia, whiten
from constrained_sim.linalg.products import gram, vecdot, vecmat
from constrained_sim.linalg.rank import OFF_CONSTRAINTS, TINY


@kernel
def keep_dependence(M, parents, before, J, goal):
    """Return rows that depend on each other again where only the distance from the constraints tells them apart.

    In the middle of a step a mechanism is off its constraints by the square of what it moved. Rows that depend on each
    other on them leave a remainder as small there. Taken for a row, it would hold the one motion that they leave. With
    the independent rows I and ``J_j = c J_I + r``, a remainder r is one of these where it is small against the change
    of ``J_j - c J_I`` since the beginning of the step, times the change of all rows relative to them. So is what is
    left of a row that passes a singular position within the step.

    Lengths of rows are those in the metric of M^-1, as everywhere.

    Args:
        M: (nv, nv) inertia.
        parents: (nv,) see :func:`~constrained_sim.linalg.inertia_factor.factor_inertia`.
        before: (m, nv) rows at the beginning of the step, where the constraints hold.
        J: (m, nv) rows now.
        goal: (m,) what they are to have.

    Returns:
        The rows and what they are to have; those without a remainder of their own are combinations of the others.
    """
    if not J.shape[0] or independent_factor(gram(J))[1]:
        return J, goal
    L = factor_inertia(M, parents)
    whitened = whiten(L, parents, J)
    F, chosen = row_factor(gram(whitened))
    change, rank = whitened - whiten(L, parents, before), chosen.shape[0]
    turned = np.sqrt((change * change).sum() / max((whitened * whitened).sum(), TINY))
    while rank:
        last = chosen[rank - 1]
        difference = change[last] - vecmat(_weights(F, chosen, rank - 1)[last], change[chosen[: rank - 1]])
        if F[last, rank - 1] > OFF_CONSTRAINTS * turned * np.sqrt(vecdot(difference, difference)):
            break
        rank -= 1
    if rank == chosen.shape[0]:
        return J, goal
    weights, rows, goals = _weights(F, chosen, rank), J[chosen[:rank]], goal[chosen[:rank]]
    combined, combined_goal = np.empty_like(J), np.empty_like(goal)
    for j in range(J.shape[0]):
        combined[j], combined_goal[j] = vecmat(weights[j], rows), vecdot(weights[j], goals)
    return combined, combined_goal


@kernel
def _weights(F, chosen, rank):
    """Return c (m, rank) with ``F = c F_I`` in the first columns, for the first `rank` of the rows `chosen`."""
    columns = np.ascontiguousarray(F[:, :rank])
    return solve_upper(columns[chosen[:rank]], columns)

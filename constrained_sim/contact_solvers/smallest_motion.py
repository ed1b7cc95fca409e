"""The smallest motion that takes drift out of rows, in the metric of the kinetic energy."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.delassus import delassus_system, drop_held
from constrained_sim.contact_solvers.reduced_rows import reduce_rows, reduce_vector
from constrained_sim.contact_solvers.sticking import solve_sticking
from constrained_sim.linalg.cholesky import independent_factor, substitute_twice
from constrained_sim.linalg.inertia_factor import factor_inertia, unwhiten_one, whiten
from constrained_sim.linalg.products import gram, vecmat


@kernel
def smallest_motion(M, parents, J, target):
    """Return the x (nv,) of least ``x^T M x`` with ``J x = -target``; least squares where the rows clash."""
    rest = np.zeros(M.shape[0])
    L = factor_inertia(M, parents)
    rows = whiten(L, parents, J)
    G, b = delassus_system(rows, rows, rest, target)
    drop_held(G, b, J, rest, np.diag(G))
    return unwhiten_one(L, parents, vecmat(solve_sticking(G, b), rows))


@kernel
def smallest_reduced_motion(M, parents, J, basis, target):
    """Return what :func:`smallest_motion` does, by fewer combinations of the rows.

    Those of a `basis`, see :class:`~constrained_sim.contact_solvers.reduced_rows.RowBasis`.
    """
    L = factor_inertia(M, parents)
    rows = whiten(L, parents, reduce_rows(basis, J))
    U, is_regular = independent_factor(gram(rows))
    if not is_regular:
        return smallest_motion(M, parents, J, target)
    combined = substitute_twice(U, -reduce_vector(basis, target))
    return unwhiten_one(L, parents, vecmat(combined, rows))

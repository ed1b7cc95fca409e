"""Range-space solver: the multipliers first, through the Delassus matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from constrained_sim.solvers.row_space import RowSpace
from constrained_sim.solvers.solver import FullRankFactorization, Solver, System
from constrained_sim.validation import Array


class RangeSpace(Solver):
    """Solve ``(J M^-1 J^T) lam = b - J M^-1 f``, then ``x = M^-1 (f + J^T lam)``.

    M is factored as ``L^T L`` without fill-in, which keeps the zeros that branches of the tree put into it
    (Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5 and 8.5; RBDL, range-space method). With W the rows
    ``L^-T J^T``, the Delassus matrix is ``W W^T``, and M^-1 is never formed.
    """

    name = "range_space"

    def _factor(self, system: System, space: RowSpace, rows: Array) -> FullRankFactorization:
        return _Delassus(system, system.whitened_rows[space.independent] / space.scale[space.independent, None])


class _Delassus(FullRankFactorization):
    def __init__(self, system: System, whitened: Array) -> None:
        self._system, self._rows = system, whitened
        self._cholesky = lapack.dpotrf(whitened @ whitened.T, lower=True)[0]

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        free = self._system.whiten(np.ascontiguousarray(f))
        lam = lapack.dpotrs(self._cholesky, (b - free @ self._rows.T).T, lower=True)[0].T
        return self._system.unwhiten(free + lam @ self._rows), lam

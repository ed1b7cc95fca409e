"""Range-space solver: the multipliers first, through the Delassus matrix."""

from __future__ import annotations

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.cholesky import solve_lower, solve_upper
from constrained_sim.linalg.inertia_factor import unwhiten, whiten
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.solvers.held_rows import RANGE_SPACE
from constrained_sim.solvers.solver import FullRankFactorization, FullRankSolver, System
from constrained_sim.validation import Array


class RangeSpace(FullRankSolver):
    """Solve ``(J M^-1 J^T) lam = b - J M^-1 f``, then ``x = M^-1 (f + J^T lam)``.

    M is factored as ``L^T L`` without fill-in, which keeps the zeros that branches of the tree put into it
    (Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5 and 8.5; RBDL, range-space method). With W the rows
    ``L^-T J^T``, the Delassus matrix is ``W W^T``, and M^-1 is never formed. Its Cholesky factor is the one by which
    the rank was decided.
    """

    name = "range_space"
    compiled_factorization = RANGE_SPACE

    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        return _Delassus(system, space)


class _Delassus(FullRankFactorization):
    def __init__(self, system: System, space: RowSpace) -> None:
        rows = space.scaled(system.whitened_rows)
        self._factors = system.inertia_factor, system.parents, rows, space.cholesky

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        return range_space_solve(*self._factors, f, b)


@kernel
def range_space_solve(L, parents, whitened, C, f, b):
    """Return x (k, nv) and multipliers (k, r) of the range-space method.

    Args:
        L: (nv, nv) factor of M.
        parents: see :func:`~constrained_sim.linalg.inertia_factor.factor_inertia`.
        whitened: (r, nv) whitened rows.
        C: (r, r) Cholesky factor of their Delassus matrix.
        f: (k, nv).
        b: (k, r).
    """
    free = whiten(L, parents, f)
    lam = solve_upper(C, solve_lower(C, b - free @ whitened.T))
    return unwhiten(L, parents, free + lam @ whitened), lam

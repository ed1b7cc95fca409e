"""Null-space solver: the motion first, then the multipliers."""

from __future__ import annotations

from constrained_sim.linalg.householder import null_space_bases, null_space_solve
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.solvers.held_rows import NULL_SPACE
from constrained_sim.solvers.solver import FullRankFactorization, FullRankSolver, System
from constrained_sim.validation import Array


class NullSpace(FullRankSolver):
    """Split ``x = Y y + Z z`` with ``J Z = 0``; y follows from the constraints, z from the dynamics, lam last.

    From ``J = C Y^T`` with orthonormal columns [Y Z]: ``C y = b``, ``(Z^T M Z) z = Z^T (f - M Y y)``,
    ``C^T lam = Y^T (M x - f)``. The transpose in the last line matters as soon as there are two rows: C is triangular,
    not symmetric.
    """

    name = "null_space"
    compiled_factorization = NULL_SPACE

    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        return _Bases(system.M, space.scaled(system.J))


class _Bases(FullRankFactorization):
    def __init__(self, M: Array, rows: Array) -> None:
        self._factors = (M, *null_space_bases(M, rows))

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        return null_space_solve(*self._factors, f, b)

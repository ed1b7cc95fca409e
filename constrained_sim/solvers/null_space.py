"""Null-space solver: the motion first, then the multipliers."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular

from constrained_sim.solvers.row_space import RowSpace
from constrained_sim.solvers.solver import FullRankFactorization, Solver, System
from constrained_sim.validation import Array


class NullSpace(Solver):
    """Split ``x = Y y + Z z`` with ``J Z = 0``; y follows from the constraints, z from the dynamics, lam last.

    From ``J^T = [Y Z] [R; 0]``: ``R^T y = b``, ``(Z^T M Z) z = Z^T (f - M Y y)``, ``(J Y)^T lam = Y^T (M x - f)``. The
    transpose in the last line matters as soon as there are two rows: ``J Y = R^T`` is triangular, not symmetric.
    """

    name = "null_space"

    def _factor(self, system: System, space: RowSpace, rows: Array) -> FullRankFactorization:
        return _Bases(system.M, rows)


class _Bases(FullRankFactorization):
    def __init__(self, M: Array, rows: Array) -> None:
        rank = len(rows)
        basis, upper = qr(rows.T, check_finite=False)
        self._M = M
        self._Y, self._Z = basis[:, :rank], basis[:, rank:]
        self._R = upper[:rank]
        self._free_inertia = lapack.dpotrf(self._Z.T @ self._M @ self._Z, lower=True)[0]

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        particular = solve_triangular(self._R, b.T, trans="T", check_finite=False).T @ self._Y.T
        x = particular
        if self._Z.shape[1]:
            force = (f - particular @ self._M) @ self._Z
            x = particular + lapack.dpotrs(self._free_inertia, force.T, lower=True)[0].T @ self._Z.T
        lam = solve_triangular(self._R, ((x @ self._M - f) @ self._Y).T, check_finite=False).T
        return x, np.ascontiguousarray(lam)

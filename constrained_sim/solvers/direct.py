"""Direct solver: the whole KKT matrix at once."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, ldl, qr, solve_banded, solve_triangular

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.rank import scaled_rows
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.solvers.held_rows import DIRECT
from constrained_sim.solvers.solver import FullRankFactorization, FullRankSolver, System
from constrained_sim.validation import Array, lookup


class Direct(FullRankSolver):
    """Factor ``[[M, -J^T], [J, 0]]`` with unknowns (x, lam), or its symmetric form with unknowns (x, -lam).

    RBDL, module Contacts, "Linear System of the Constrained Dynamics".

    Attributes:
        factorization: ``lu``, ``qr_pivoting`` (column-pivoted QR), ``qr`` (Householder QR) or ``ldlt`` (Bunch-Kaufman,
            symmetric form).
    """

    name = "direct"

    def __init__(self, factorization: str = "lu") -> None:
        """Choose the factorisation.

        Raises:
            UnknownName: no such factorisation.
        """
        self._factorize = lookup("factorization", factorization, FACTORIZATIONS)
        self.factorization = factorization
        self.compiled_factorization = DIRECT if factorization == "lu" else None

    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        return self._factorize(system, space)


class _KKT(FullRankFactorization):
    """The assembled matrix, columns first for LAPACK, and the split of its unknowns."""

    sign = -1.0

    def __init__(self, system: System, space: RowSpace) -> None:
        self._nv = len(system.M)
        rows = system.J, space.independent, space.scale
        self._factor(assemble_kkt(system.M, *rows, self.sign).T)

    def _factor(self, kkt: Array) -> None:
        raise NotImplementedError

    def _solve(self, rhs: Array) -> Array:
        raise NotImplementedError

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        unknowns = self._solve(np.concatenate([f, b], axis=1).T).T
        return np.ascontiguousarray(unknowns[:, : self._nv]), -self.sign * unknowns[:, self._nv :]


class _LU(_KKT):
    def _factor(self, kkt: Array) -> None:
        self._lu, self._pivots, _ = lapack.dgetrf(kkt, overwrite_a=True)

    def _solve(self, rhs: Array) -> Array:
        return lapack.dgetrs(self._lu, self._pivots, rhs)[0]


class _QR(_KKT):
    def _factor(self, kkt: Array) -> None:
        self._q, self._r = qr(kkt, overwrite_a=True, check_finite=False)

    def _solve(self, rhs: Array) -> Array:
        return solve_triangular(self._r, self._q.T @ rhs, check_finite=False)


class _PivotedQR(_KKT):
    def _factor(self, kkt: Array) -> None:
        self._q, self._r, self._order = qr(kkt, overwrite_a=True, pivoting=True, check_finite=False)

    def _solve(self, rhs: Array) -> Array:
        unknowns = np.empty_like(rhs)
        unknowns[self._order] = solve_triangular(self._r, self._q.T @ rhs, check_finite=False)
        return unknowns


class _LDLT(_KKT):
    sign = 1.0

    def _factor(self, kkt: Array) -> None:
        factor, blocks, self._order = ldl(kkt, overwrite_a=True, check_finite=False)
        self._l, beside = factor[self._order], np.append(np.diag(blocks, -1), 0.0)
        self._d = np.array([np.roll(beside, 1), np.diag(blocks), beside])

    def _solve(self, rhs: Array) -> Array:
        options = {"lower": True, "unit_diagonal": True, "check_finite": False}
        inner = solve_banded((1, 1), self._d, solve_triangular(self._l, rhs[self._order], **options))
        unknowns = np.empty_like(rhs)
        unknowns[self._order] = solve_triangular(self._l, inner, trans=1, **options)
        return unknowns


FACTORIZATIONS = {"lu": _LU, "qr_pivoting": _PivotedQR, "qr": _QR, "ldlt": _LDLT}


@kernel
def assemble_kkt(M, rows, independent, scale, sign):
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

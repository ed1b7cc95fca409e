"""The rank of a set of constraint rows, decided here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from constrained_sim.solvers import kernels
from constrained_sim.validation import Array

RANK_TOLERANCE = 1e-10


def least_squares(A: Array, b: Array) -> Array:
    """Return the x of least 2-norm that minimises ``|A x - b|``, of rank as everywhere."""
    return np.asarray(np.linalg.lstsq(A, b, rcond=RANK_TOLERANCE)[0], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Independent rows of J, and the map between them and all rows.

    With ``J = C J_I`` (C: m x rank, identity on the independent rows) and P the pseudo-inverse of C, the right-hand
    side ``P b`` on the independent rows gives the least-squares solution of ``J x = b``, and ``P^T lam_I`` is the
    multiplier of all rows with the least 2-norm (SI units, in the rows' order) that gives the same ``J^T lam``. This
    is the Moore-Penrose inverse of the Delassus matrix: ``(C D C^T)^+ = P^T D^-1 P``.

    Attributes:
        independent: (rank,) indices of the independent rows.
        scale: (m,) ``sqrt(diag(J M^-1 J^T))``, 1 for a zero row.
        combination: C, (m, rank); None if all rows are independent.
    """

    independent: npt.NDArray[np.int64]
    scale: Array
    combination: Array | None

    @classmethod
    def of(cls, rows: Array, responses: Array) -> RowSpace:
        """Decide the rank of rows, given with their responses ``M^-1 J^T``, or whitened: then both are the same.

        The rows are scaled to unit length in the metric of M^-1 and ordered by a pivoted QR factorisation; rows whose
        remainder is below 1e-10 are combinations of those before.
        """
        scale, order, R, rank = kernels.pivoted_rows(rows, responses, RANK_TOLERANCE)
        count = len(scale)
        if rank == count:
            return cls(np.arange(count), scale, None)
        independent, dependent = order[:rank], order[rank:]
        combination = np.zeros((count, rank))
        combination[independent, np.arange(rank)] = 1.0
        weights = solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
        combination[dependent] = scale[dependent, None] * weights.T / scale[independent]
        return cls(independent, scale, combination)

    @property
    def rank(self) -> int:
        """Number of independent rows."""
        return len(self.independent)

    def reduce(self, b: Array) -> Array:
        """Return the least-squares right-hand sides (k, rank) of the independent rows for `b` (k, m)."""
        return b if self.combination is None else b @ self._pseudo_inverse.T

    def expand(self, multipliers: Array) -> Array:
        """Return the minimum-norm multipliers (k, m) of all rows for those of the independent rows (k, rank)."""
        return multipliers if self.combination is None else multipliers @ self._pseudo_inverse

    @cached_property
    def _pseudo_inverse(self) -> Array:
        combination = np.eye(self.rank) if self.combination is None else self.combination
        if np.count_nonzero(combination) == self.rank:
            return combination.T  # the other rows are zero, so the columns are orthonormal
        return np.asarray(np.linalg.pinv(combination), dtype=np.float64)

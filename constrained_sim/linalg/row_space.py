"""Independent rows among constraint rows, and the map between these and all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from constrained_sim.linalg.rank import ROW_TOLERANCE, pivoted_rows, regular_rows, scaled_rows
from constrained_sim.validation import Array


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
        cholesky: (rank, rank) lower triangular factor of the Delassus matrix of the independent rows, scaled.
        combination: C, (m, rank); None if it is the identity.
    """

    independent: npt.NDArray[np.int64]
    scale: Array
    cholesky: Array
    combination: Array | None = None

    @classmethod
    def of(cls, rows: Array, responses: Array) -> RowSpace:
        """Decide the rank of rows, given with their responses ``M^-1 J^T``, or whitened: then both are the same.

        The rows are scaled to unit length in the metric of M^-1. Where a Cholesky factorisation finds them far from
        dependent, that is all; else they are ordered by a pivoted QR factorisation, and rows whose remainder is below
        ``ROW_TOLERANCE`` are combinations of those before.
        """
        scale, cholesky, is_regular = regular_rows(rows, responses)
        return cls.regular(scale, cholesky) if is_regular else cls.pivoted(rows, responses)

    @classmethod
    def regular(cls, scale: Array, cholesky: Array) -> RowSpace:
        """Return the row space of rows that are all independent."""
        return cls(np.arange(len(scale)), scale, cholesky)

    @classmethod
    def pivoted(cls, rows: Array, responses: Array) -> RowSpace:
        """Return the row space of rows that may depend on each other, given as in :meth:`of`."""
        scale, order, R, rank = pivoted_rows(rows, responses, ROW_TOLERANCE)
        independent, dependent = order[:rank], order[rank:]
        combination = np.zeros((len(scale), rank))
        combination[independent, np.arange(rank)] = 1.0
        if rank and len(dependent):  # LAPACK refuses what is empty
            weights = solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
            combination[dependent] = scale[dependent, None] * weights.T / scale[independent]
        return cls(independent, scale, np.ascontiguousarray(R[:rank, :rank].T), combination)

    @property
    def rank(self) -> int:
        """Number of independent rows."""
        return len(self.independent)

    @property
    def independent_scale(self) -> Array:
        """(rank,) scale of the independent rows."""
        return self.scale if self.combination is None else self.scale[self.independent]

    @cached_property
    def condition(self) -> float:
        """Condition of ``J M^-1 J^T`` over its range; 1 for rank 0."""
        if not self.rank:
            return 1.0
        factor = self.independent_scale[:, None] * self.cholesky
        whole = factor if self.combination is None else self.combination @ factor
        singular = np.linalg.svd(whole, compute_uv=False)
        return float((singular[0] / singular[self.rank - 1]) ** 2)

    def scaled(self, rows: Array) -> Array:
        """Return (rank, nv) the independent ones of `rows` (m, nv), of unit length in the metric of M^-1."""
        return scaled_rows(rows, self.independent, self.scale)

    def reduce(self, b: Array) -> Array:
        """Return the least-squares right-hand sides (k, rank) of the independent rows for `b` (k, m)."""
        return b if self.combination is None else b @ self._pseudo_inverse.T

    def expand(self, multipliers: Array) -> Array:
        """Return the minimum-norm multipliers (k, m) of all rows for those of the independent rows (k, rank)."""
        return multipliers if self.combination is None else multipliers @ self._pseudo_inverse

    def project(self, values: Array) -> Array:
        """Return the part of `values` (k, m) of all rows that lies in the column space of J."""
        if self.combination is None:
            return values
        return values @ (self.combination @ self._pseudo_inverse)

    @cached_property
    def _pseudo_inverse(self) -> Array:
        combination = np.eye(self.rank) if self.combination is None else self.combination
        if np.count_nonzero(combination) == self.rank:
            return combination.T  # the other rows are zero, so the columns are orthonormal
        return np.asarray(np.linalg.pinv(combination), dtype=np.float64)

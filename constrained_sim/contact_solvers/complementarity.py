"""Linear complementarity problems: unilateral rows without friction, solved exactly by pivoting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.exceptions import ContactNotSolved
from constrained_sim.linalg.rank import TINY
from constrained_sim.validation import Array, finite_array


@dataclass(frozen=True, eq=False)
class LinearComplementarity:
    """Find z with ``0 <= z _|_ A z + b >= 0``.

    With A the Delassus matrix of unilateral rows and b their accelerations (or velocities) without forces, z are the
    forces (or impulses): Tedrake, Drake implementation of rigid body dynamics algorithms with constraints, sec. 3.1.

    Attributes:
        A: (n, n) symmetric positive semidefinite.
        b: (n,).

    Raises:
        InvalidValue: shapes that do not fit, NaN or infinity.
    """

    A: Array
    b: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        size = len(np.atleast_1d(self.b))
        object.__setattr__(self, "b", finite_array("b", self.b, (size,)))
        object.__setattr__(self, "A", finite_array("A", self.A, (size, size)))

    def residual(self, z: Any) -> float:
        """Return the largest ``|min(z, p (A z + b))|`` relative to the largest entry in play; 0 for a solution.

        p is the inverse of A's diagonal, so that all entries are in the unit of z.
        """
        z = finite_array("z", z, self.b.shape)
        scale = _inverse_diagonal(self.A)
        magnitude = max(np.abs(z).max(initial=0.0), np.abs(scale * self.b).max(initial=0.0), TINY)
        return float(np.abs(np.minimum(z, scale * (self.A @ z + self.b))).max(initial=0.0) / magnitude)

    def solve(self) -> Array:
        """Return a solution (n,).

        Lemke's complementary pivoting; then the rows that push are solved once more, directly, so that the rounding of
        the pivots does not stay. Among rows that tie, first the largest pivot is taken, which keeps rounding small, and
        where this leads nowhere the first in lexicographic order, with which no basis comes twice.

        Raises:
            ContactNotSolved: there is no solution: the rows contradict each other.
        """
        if (self.b >= 0.0).all():
            return np.zeros_like(self.b)
        scale = np.sqrt(_inverse_diagonal(self.A))
        A, b = scale[:, None] * self.A * scale, scale * self.b
        b = b / np.abs(b).max()
        found, basis = _lemke(A, b, OPTIONS.pivots * (len(b) + 1), False)
        if not found:
            found, basis = _lemke(A, b, OPTIONS.pivots * (len(b) + 1), True)
        if not found:
            raise ContactNotSolved(1.0)
        pushing = np.flatnonzero(basis)
        z = np.zeros_like(self.b)
        z[pushing] = np.linalg.lstsq(self.A[np.ix_(pushing, pushing)], -self.b[pushing], OPTIONS.pivot)[0]
        return np.maximum(z, 0.0)


def _inverse_diagonal(A: Array) -> Array:
    diagonal = np.diag(A)
    return np.asarray(1.0 / np.where(diagonal > 0.0, diagonal, max(diagonal.max(initial=0.0), TINY)))


@kernel
def _lemke(A, b, most, in_order):
    """Return whether a solution was found, and (n,) which z are in its basis.

    Cottle, Pang and Stone, The Linear Complementarity Problem, algorithm 4.4.5. Columns: w, z, the artificial variable,
    and the right-hand side. Ties of the ratio test are broken `in_order`, or by the largest pivot.
    """
    n = b.shape[0]
    T = np.zeros((n, 2 * n + 2))
    for i in range(n):
        T[i, i] = 1.0
        T[i, n : 2 * n] = -A[i]
        T[i, 2 * n] = -1.0
        T[i, 2 * n + 1] = b[i]
    basis = np.arange(n)
    entering, row = 2 * n, int(np.argmin(b))
    for _ in range(most):
        leaving = basis[row]
        T[row] /= T[row, entering]
        for i in range(n):
            if i != row and T[i, entering] != 0.0:
                T[i] -= T[i, entering] * T[row]
        basis[row] = entering
        if leaving == 2 * n:
            in_basis = np.zeros(n, dtype=np.bool_)
            for variable in basis:
                if n <= variable < 2 * n:
                    in_basis[variable - n] = True
            return True, in_basis
        entering = leaving + n if leaving < n else leaving - n
        row = _first_row(T, basis, entering) if in_order else _largest_pivot(T, basis, entering)
        if row < 0:
            break
    return False, np.zeros(n, dtype=np.bool_)


@kernel
def _largest_pivot(T, basis, entering):
    """Return the row whose variable leaves, the artificial one where it can; -1 for a ray.

    Of the rows whose ratio is least, but for rounding, that of the largest pivot (Harris, Pivot selection methods of
    the Devex LP code, 1973).
    """
    n = T.shape[0]
    least, best = np.inf, -1
    for i in range(n):
        if T[i, entering] > OPTIONS.pivot:
            least = min(least, (max(T[i, 2 * n + 1], 0.0) + OPTIONS.accuracy) / T[i, entering])
    for i in range(n):
        if T[i, entering] > OPTIONS.pivot and T[i, 2 * n + 1] / T[i, entering] <= least:
            if basis[i] == 2 * n:
                return i
            if best < 0 or T[i, entering] > T[best, entering]:
                best = i
    return best


@kernel
def _first_row(T, basis, entering):
    """Return the same, of rows that tie the first in lexicographic order."""
    n = T.shape[0]
    best = -1
    for i in range(n):
        if T[i, entering] <= OPTIONS.pivot:
            continue
        if best < 0:
            best = i
            continue
        difference = T[i, 2 * n + 1] / T[i, entering] - T[best, 2 * n + 1] / T[best, entering]
        if abs(difference) < OPTIONS.pivot:
            if basis[i] == 2 * n:
                best = i
                continue
            if basis[best] == 2 * n:
                continue
            for j in range(n):
                difference = T[i, j] / T[i, entering] - T[best, j] / T[best, entering]
                if abs(difference) > OPTIONS.pivot:
                    break
        if difference < 0.0:
            best = i
    return best

"""Aghili's projection of the dynamics by the orthogonal, unweighted projector."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from constrained_sim.linalg.rank import least_squares
from constrained_sim.solvers.solver import checked_system, sizes_of
from constrained_sim.textbook.spaces import null_space_basis
from constrained_sim.validation import Array, finite_array, read_only


@dataclass(frozen=True, eq=False)
class UnweightedProjection:
    """The operators of a set of rows of any rank: P projects onto the null space of J, so that ``P J^T = 0``.

    ``P (M a - f) = 0`` and ``(I - P) a = J^+ b`` together are ``Mc a = P f + J^+ b`` with ``Mc = P M + I - P``, which
    can be inverted for every positive definite M: what "N M" of the lecture cannot.

    Attributes:
        M: (n, n) joint-space inertia.
        J: (m, n) constraint Jacobian.

    Raises:
        InvalidValue: wrong shapes, NaN or infinity, M not symmetric positive definite.

    Source: Aghili, A unified approach for inverse and direct dynamics of constrained multibody systems based on linear
    projection operator, 2005; cited by the lecture "Building a simulator".
    """

    M: Array
    J: Array
    _size: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the matrices, and take copies of them."""
        system = checked_system(self.M, self.J, *sizes_of(self.M, self.J))
        object.__setattr__(self, "M", read_only(system.M))
        object.__setattr__(self, "J", read_only(system.J))
        object.__setattr__(self, "_size", len(system.M))

    @cached_property
    def P(self) -> Array:
        """(n, n) ``I - J^+ J``, symmetric: ``P P = P``."""
        N = null_space_basis(self.J)
        return N @ N.T

    @cached_property
    def Mc(self) -> Array:
        """(n, n) ``P M + I - P``; regular, not symmetric."""
        return self.P @ self.M + np.eye(self._size) - self.P

    def acceleration(self, f: Any, b: Any) -> Array:
        """Return x (n,) of ``M x - J^T lam = f, J x = b``: least squares where rows contradict each other.

        Args:
            f: (n,) generalised force.
            b: (m,) right-hand side of the rows; ``-gamma`` at acceleration level.
        """
        f, b = finite_array("f", f, (self._size,)), finite_array("b", b, (len(self.J),))
        return np.asarray(np.linalg.solve(self.Mc, self.P @ f + least_squares(self.J, b)))

    def multipliers(self, x: Any, f: Any) -> Array:
        """Return lam (m,), the least-norm solution of ``J^T lam = M x - f``, the part that P takes away.

        Args:
            x: (n,) solution, of :meth:`acceleration`.
            f: (n,) generalised force.

        Raises:
            InvalidValue: wrong lengths, NaN or infinity.
        """
        x, f = finite_array("x", x, (self._size,)), finite_array("f", f, (self._size,))
        return least_squares(self.J.T, self.M @ x - f)

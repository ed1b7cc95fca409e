"""The problem ``M x - J^T lam = f, J x = b`` and the contract of everything that solves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from constrained_sim.exceptions import InvalidValue
from constrained_sim.solvers import kernels
from constrained_sim.solvers.row_space import RowSpace
from constrained_sim.validation import Array


class System:
    """The matrices of one problem, and what all solvers need to know of them.

    Attributes:
        M: (nv, nv) symmetric positive definite inertia.
        J: (m, nv) constraint Jacobian; m may be 0, larger than nv, and rows may depend on each other.
        parents: (nv,) parent of each degree of freedom: where M is zero.
        respond: from rows r (k, nv) to ``M^-1 r`` by the articulated-body algorithm; None if there is no robot.
    """

    def __init__(
        self,
        M: Array,
        J: Array,
        parents: npt.NDArray[np.int64] | None = None,
        respond: Callable[[Array], Array] | None = None,
    ) -> None:
        """Take the matrices as they are; `parents` None: M may be full."""
        self.M, self.J, self.respond = M, J, respond
        self.parents = np.arange(-1, M.shape[0] - 1) if parents is None else parents

    @cached_property
    def inertia_factor(self) -> Array:
        """(nv, nv) lower triangular L, ``M = L^T L``."""
        return kernels.factor_inertia(self.M, self.parents)

    def whiten(self, rows: Array) -> Array:
        """Return ``L^-T r`` for every row r of `rows` (k, nv)."""
        return kernels.whiten(self.inertia_factor, self.parents, rows)

    def unwhiten(self, rows: Array) -> Array:
        """Return ``L^-1 r`` for every row r of `rows` (k, nv)."""
        return kernels.unwhiten(self.inertia_factor, self.parents, rows)

    @cached_property
    def whitened_rows(self) -> Array:
        """(m, nv) rows ``L^-T J^T`` transposed; times their own transpose they are the Delassus matrix."""
        return self.whiten(self.J)

    @cached_property
    def row_space(self) -> RowSpace:
        """Which rows of J are independent."""
        return RowSpace.of(self.whitened_rows, self.whitened_rows)


class Solver(ABC):
    """A way to solve ``M x - J^T lam = f, J x = b``; one instance per configuration of options.

    A subclass factors the full-rank problem of the independent rows once and solves it for many right-hand sides. This
    class makes of it the treatment of dependent rows, which is so the same for every solver.

    Attributes:
        name: in the registry.
        needs_robot: whether matrices alone are not enough.
    """

    name: str
    needs_robot = False

    def factor(self, system: System) -> Factorization:
        """Factor the matrices of `system`.

        Raises:
            InvalidValue: a system that this solver cannot do.
        """
        if self.needs_robot and system.respond is None:
            raise InvalidValue(f"problem for solver {self.name!r}", "matrices alone", "one of a robot")
        space = self._row_space(system)
        rows = system.J[space.independent] / space.scale[space.independent, None]
        return Factorization(space, self._factor(system, space, rows) if space.rank else _Free(system))

    def _row_space(self, system: System) -> RowSpace:
        """Return which rows are independent."""
        return system.row_space

    @abstractmethod
    def _factor(self, system: System, space: RowSpace, rows: Array) -> FullRankFactorization:
        """Factor M and the independent `rows` (rank, nv), each of unit length in the metric of M^-1."""


class FullRankFactorization(ABC):
    """M and the scaled, independent rows of J, factored."""

    @abstractmethod
    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Return x (k, nv) and the scaled rows' multipliers (k, rank) for `f` (k, nv), `b` (k, rank)."""


class Factorization:
    """A factored system, dependent rows included."""

    def __init__(self, space: RowSpace, full_rank: FullRankFactorization) -> None:
        """Wrap the factorisation of the independent rows."""
        self._space = space
        self._full_rank = full_rank

    @property
    def rank(self) -> int:
        """Number of independent rows of J."""
        return self._space.rank

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Solve for one right-hand side, `f` (nv,) and `b` (m,), or for k at once, (k, nv) and (k, m).

        Returns:
            x of the shape of f and lam of the shape of b: the least-squares x where the rows of J contradict each
            other, the lam of least norm where they repeat each other.
        """
        space = self._space
        scale = space.scale[space.independent]
        x, scaled = self._full_rank.solve(np.atleast_2d(f), space.reduce(np.atleast_2d(b)) / scale)
        lam = space.expand(scaled / scale)
        return (x, lam) if f.ndim == 2 else (x[0], lam[0])


class _Free(FullRankFactorization):
    """No constraint at all: ``x = M^-1 f``."""

    def __init__(self, system: System) -> None:
        self._system = system

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        return self._system.unwhiten(self._system.whiten(f)), b

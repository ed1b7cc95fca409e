"""The problem ``M x - J^T lam = f, J x = b`` and the contract of everything that solves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.constraints.constraint import SupportsSome
from constrained_sim.exceptions import InconsistentConstraints, InvalidValue
from constrained_sim.linalg.inertia_factor import factor_inertia, unwhiten, whiten
from constrained_sim.linalg.products import vecdot
from constrained_sim.linalg.rank import CONSISTENT, EPSILON, SUM_ROUNDING, TINY, regular_rows
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.validation import Array, finite_array, shape_of

ASYMMETRY = 1e-12
"""Difference from its transposed, relative to the largest entry, up to which the user's inertia is symmetric."""


class System:
    """The matrices of one problem, and what all solvers need to know of them.

    Attributes:
        M: (nv, nv) symmetric positive definite inertia.
        J: (m, nv) constraint Jacobian; m may be 0, larger than nv, and rows may depend on each other.
        parents: (nv,) parent of each degree of freedom: where M is zero.
        is_of_robot: whether it knows the robot that the matrices are of.
    """

    is_of_robot = False

    def __init__(self, M: Array, J: Array, parents: npt.NDArray[np.int64] | None = None) -> None:
        """Take the matrices as they are; `parents` None: M may be full."""
        self.M, self.J = M, J
        self.parents = np.arange(-1, M.shape[0] - 1) if parents is None else parents

    @cached_property
    def _analysis(self) -> Analysis:
        found: Analysis = analyse(self.M, self.parents, self.J)
        return found

    @property
    def inertia_factor(self) -> Array:
        """(nv, nv) lower triangular L, ``M = L^T L``."""
        return self._analysis.inertia_factor

    @property
    def whitened_rows(self) -> Array:
        """(m, nv) rows ``L^-T J^T`` transposed; times their own transpose they are the Delassus matrix."""
        return self._analysis.whitened_rows

    @cached_property
    def row_space(self) -> RowSpace:
        """Which rows of J are independent."""
        found, rows = self._analysis, self.whitened_rows
        return RowSpace.regular(found.scale, found.cholesky) if found.is_regular else RowSpace.pivoted(rows, rows)

    def with_rows(self, rows: Array) -> System:
        """Return the same system with more `rows` (k, nv) after its own."""
        other = copy(self)
        other.J = np.vstack([self.J, rows])
        for known in ("_analysis", "row_space"):
            vars(other).pop(known, None)
        return other

    def free_diagonal(self, rows: Array) -> Array:
        """Return (k,) the diagonal of the Delassus matrix of `rows` (k, nv), of a motion that nothing holds."""
        whitened = self.whiten(rows)
        return np.asarray(np.einsum("ij,ij->i", whitened, whitened))

    def whiten(self, rows: Array) -> Array:
        """Return ``L^-T r`` for every row r of `rows` (k, nv)."""
        return whiten(self.inertia_factor, self.parents, rows)

    def unwhiten(self, rows: Array) -> Array:
        """Return ``L^-1 r`` for every row r of `rows` (k, nv)."""
        return unwhiten(self.inertia_factor, self.parents, rows)


def sizes_of(M: Any, J: Any) -> tuple[int, int]:
    """Return the numbers of velocities and of rows of matrices of the caller; -1 where there are none to count."""
    return (*shape_of(M), -1)[0], (*shape_of(J), -1)[0]


def checked_parents(what: str, M: Array, parents: Any) -> npt.NDArray[np.int64]:
    """Return (n,) the parent of each degree of freedom, of a tree that explains the zeros of M (n, n), called `what`.

    Raises:
        InvalidValue: no tree, or an entry of M between degrees of freedom on different branches.
    """
    given = finite_array("parents", parents, (len(M),)).astype(np.int64)
    if not np.array_equal(given, np.asarray(parents)) or not all(-1 <= parent < i for i, parent in enumerate(given)):
        raise InvalidValue("parents", parents, "for each degree of freedom an index below its own, or -1")
    carried = np.eye(len(M), dtype=bool)
    for i, parent in enumerate(given):
        carried[i] |= carried[parent] if parent >= 0 else False
    if M[~(carried | carried.T)].any():
        raise InvalidValue(what, M.tolist(), "a matrix that is zero between branches, as parents give them")
    return given


def checked_system(M: Any, J: Any, size: int, rows: int, parents: Any = None) -> System:
    """Return the system of matrices of the caller, copied: M (size, size) and J (rows, size).

    Raises:
        InvalidValue: other shapes, NaN or infinity, M not symmetric positive definite, or `parents` that do not fit.
    """
    M = finite_array("M", M, (size, size))
    if not size:
        raise InvalidValue("M", M, "a matrix of one row or more")
    J = np.zeros((0, size)) if rows == 0 and np.size(J) == 0 else finite_array("J", J, (rows, size))
    system = System(M, J, None if parents is None else checked_parents("M", M, parents))
    is_symmetric = np.abs(M - M.T).max(initial=0.0) <= ASYMMETRY * np.abs(M).max(initial=0.0)
    if not (is_symmetric and np.isfinite(system.inertia_factor).all()):
        raise InvalidValue("M", M.tolist(), "a symmetric positive definite matrix")
    return system


class Solver(SupportsSome, ABC):
    """A way to solve ``M x - J^T lam = f, J x = b``; one instance per configuration of options.

    Attributes:
        needs_robot: whether matrices alone are not enough.
        decides_contacts: whether it solves contacts itself, in :meth:`solve_normal_contacts`.
        compiled_factorization: that of its kernel, see :mod:`~constrained_sim.solvers.held_rows`; None: it has none.
        calls: how many systems it has factored.
    """

    role = "solver"
    needs_robot = False
    decides_contacts = False
    compiled_factorization: int | None = None
    calls = 0

    def factor(self, system: System) -> Factorization:
        """Factor the matrices of `system`, once for many right-hand sides.

        Raises:
            InvalidValue: a system that this solver cannot do.
        """
        if self.needs_robot and not system.is_of_robot:
            raise InvalidValue(f"problem for solver {self.name!r}", "matrices alone", "one of a robot")
        self.calls += 1
        return self._factorization(system)

    def solve_normal_contacts(
        self, system: System, f: Array, b: Array, normals: Array, offset: Array
    ) -> tuple[Array, Array, Array]:
        """Solve one problem with unilateral rows; only of solvers that decide contacts."""
        raise NotImplementedError

    @abstractmethod
    def _factorization(self, system: System) -> Factorization:
        """Factor the matrices of a system that fits."""


class FullRankSolver(Solver):
    """A solver that is told which rows are independent.

    A subclass factors the full-rank problem of these rows. This class makes of it the treatment of dependent rows,
    which is so the same for all.
    """

    def _factorization(self, system: System) -> Factorization:
        space = self._row_space(system)
        return Factorization(space, self._factor(system, space) if space.rank else FreeMotion(system))

    def _row_space(self, system: System) -> RowSpace:
        """Return which rows are independent."""
        return system.row_space

    @abstractmethod
    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        """Factor M and the independent rows, at least one."""


class FullRankFactorization(ABC):
    """M and the scaled, independent rows of J, factored."""

    @abstractmethod
    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Return x (k, nv) and the scaled rows' multipliers (k, rank) for `f` (k, nv), `b` (k, rank)."""


@dataclass(frozen=True, eq=False)
class KKTInverse:
    """The blocks of the inverse of the KKT matrix: ``x = L11 f + L12 b``, ``lam = L21 f + L22 b``.

    At acceleration level ``a = L11 (tau - c) - L12 Jdot v`` and ``lam = L21 (tau - c) - L22 Jdot v``. For rows that
    depend on each other these are the blocks that give the least-squares x and the multipliers of least norm:
    ``L22 = (J M^-1 J^T)^+``, ``L12 = M^-1 J^T L22 = -L21^T``, ``L11 = M^-1 - L12 J M^-1``.

    Attributes:
        L11: (nv, nv) symmetric; inverse inertia of the motions that the constraints leave: ``J L11 = 0``.
        L12: (nv, m) dynamically consistent pseudo-inverse of J.
        L21: (m, nv) what of a force the constraints take up, with the opposite sign.
        L22: (m, m) symmetric; inertia seen at the constraints.

    Source: Savin, Contact-aware Control, lecture 5, eq. 10.
    """

    L11: Array
    L12: Array
    L21: Array
    L22: Array


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

    @property
    def condition(self) -> float:
        """Condition of the Delassus matrix over its range: digits that the multipliers may lose."""
        return self._space.condition

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Solve for one right-hand side, `f` (nv,) and `b` (m,), or for k at once, (k, nv) and (k, m).

        Returns:
            x of the shape of f and lam of the shape of b: the least-squares x where the rows of J contradict each
            other, the lam of least norm where they repeat each other.
        """
        if f.ndim == 1:
            x, lam = self._solve(f[None], b[None])
            return x[0], lam[0]
        return self._solve(f, b)

    def inverse(self, nv: int, rows: int) -> KKTInverse:
        """Return the blocks of the inverse for `nv` velocities and `rows` rows."""
        f, b = np.eye(nv + rows)[:, :nv], np.eye(nv + rows)[:, nv:]
        x, lam = self._solve(np.ascontiguousarray(f), np.ascontiguousarray(b))
        return KKTInverse(x[:nv].T, x[nv:].T, lam[:nv].T, lam[nv:].T)

    def _solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        space = self._space
        scale = space.independent_scale
        x, scaled = self._full_rank.solve(f, space.reduce(b) / scale)
        return x, space.expand(scaled / scale)


class FreeMotion(FullRankFactorization):
    """No constraint at all: ``x = M^-1 f``."""

    def __init__(self, system: System) -> None:
        """Take M of `system`."""
        self._system = system

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Return ``M^-1 f`` (k, nv) and no multipliers."""
        return self._system.unwhiten(self._system.whiten(f)), b


def row_residual(system: System, f: Array, b: Array, x: Array) -> float:
    """Return the largest ``|J x - b|`` relative to b and to what x is the remainder of; 0 without rows."""
    if not len(b):
        return 0.0
    unconstrained = system.unwhiten(system.whiten(f[None]))[0]
    return float(largest_row_error(system.M, f, system.J, b, x, unconstrained))


@kernel
def largest_row_error(M, f, J, b, x, unconstrained):
    """Return the largest ``|J x - b|`` relative to b and to what x is the remainder of.

    The rows of a loop are differences of those of its two ends: of a mechanism that falls freely, all but rounding of
    both J and x may cancel. With E the energy ``f^T M^-1 f`` of the motion without rows, it moves a row by
    ``sqrt(E J M^-1 J^T)`` at most, here about, with the diagonal of M; rounding of this size is no error.

    Args:
        M: (nv, nv) inertia.
        f: (nv,) forces or momentum.
        J: (m, nv) rows.
        b: (m,) what they are to have.
        x: (nv,) motion.
        unconstrained: (nv,) ``M^-1 f``: what constraints cut away of it leaves rounding of its size, however small the
            rest is.
    """
    worst = largest = lightest = 0.0
    for i in range(b.shape[0]):
        total = size = lightness = 0.0
        for j in range(x.shape[0]):
            total += J[i, j] * x[j]
            size += abs(J[i, j]) * max(abs(x[j]), abs(unconstrained[j]))
            lightness += J[i, j] ** 2 / max(M[j, j], TINY)
        worst, largest = max(worst, abs(total - b[i])), max(largest, abs(b[i]), size)
        lightest = max(lightest, lightness)
    rounding = SUM_ROUNDING * np.sqrt(max(vecdot(f, unconstrained), 0.0) * lightest)
    return worst / largest if worst > rounding else 0.0


def check_consistency(system: System, residual: float) -> None:
    """Refuse rows of `system` that contradict each other, by the `residual` of their least-squares solution.

    Raises:
        InconsistentConstraints: it is more than rounding, times the condition of the Delassus matrix.
    """
    if residual > CONSISTENT and residual > 10.0 * EPSILON * system.row_space.condition:
        raise InconsistentConstraints(residual)


class Analysis(NamedTuple):
    """What all solvers need of M (nv, nv) and J (m, nv).

    Attributes:
        inertia_factor: (nv, nv) L of :func:`~constrained_sim.linalg.inertia_factor.factor_inertia`.
        whitened_rows: (m, nv) of J.
        scale: (m,) lengths of the rows in the metric of M^-1; 1 of a zero row.
        cholesky: (m, m) lower triangular factor of the Delassus matrix of rows of length 1, if that is regular.
        is_regular: whether the rows are far from depending on each other.
    """

    inertia_factor: Array
    whitened_rows: Array
    scale: Array
    cholesky: Array
    is_regular: bool


@kernel
def analyse(M, parents, J):
    """Return the :class:`Analysis` of M (nv, nv) and J (m, nv)."""
    L = factor_inertia(M, parents)
    whitened = whiten(L, parents, J)
    scale, C, regular = regular_rows(whitened, whitened)
    return Analysis(L, whitened, scale, C, regular)

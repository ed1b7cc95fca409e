"""The factorisation of M that keeps branch-induced sparsity, and its solves, for matrices of the caller."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.inertia_factor import unwhiten_one, whiten_one
from constrained_sim.solvers.solver import checked_parents, checked_system, sizes_of
from constrained_sim.validation import Array, finite_array, shape_of


def sparse_factorize_ltl(H: Any, parents: Any) -> Array:
    """Return the lower triangular L with ``H = L^T L``, zero wherever H is: no fill-in.

    Args:
        H: (n, n) joint-space inertia, symmetric positive definite, zero where neither degree of freedom carries the
            other.
        parents: (n,) for each degree of freedom the one that carries it; -1 at a root (RBDL's lambda less one).

    Raises:
        InvalidValue: shapes that do not fit, NaN or infinity, no tree, an H that has entries between branches, or that
            is not positive definite.

    Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5; RBDL, SparseFactorizeLTL.
    """
    size, _ = sizes_of(H, H)
    system = checked_system(H, np.zeros((0, max(size, 0))), size, 0, parents)
    return system.inertia_factor


def sparse_solve_ltx(L: Any, parents: Any, x: Any) -> Array:
    """Return ``L^-T x`` (n,) for a factor of :func:`sparse_factorize_ltl` with the same `parents`.

    Args:
        L: (n, n) lower triangular factor.
        parents: (n,) for each degree of freedom the one that carries it; -1 at a root.
        x: (n,) right-hand side.

    Raises:
        InvalidValue: shapes that do not fit, NaN, infinity or a zero on the diagonal.

    Source: RBDL, SparseSolveLTx.
    """
    return np.asarray(whiten_one(*_factor(L, parents, x)))


def sparse_solve_lx(L: Any, parents: Any, x: Any) -> Array:
    """Return ``L^-1 x`` (n,) for a factor of :func:`sparse_factorize_ltl` with the same `parents`.

    Args:
        L: (n, n) lower triangular factor.
        parents: (n,) for each degree of freedom the one that carries it; -1 at a root.
        x: (n,) right-hand side.

    Raises:
        InvalidValue: shapes that do not fit, NaN, infinity or a zero on the diagonal.

    Source: RBDL, SparseSolveLx.
    """
    return np.asarray(unwhiten_one(*_factor(L, parents, x)))


def _factor(L: Any, parents: Any, x: Any) -> tuple[Array, npt.NDArray[np.int64], Array]:
    size = (*shape_of(L), -1)[0]
    L, x = finite_array("L", L, (size, size)), finite_array("x", x, (size,))
    if not np.diag(L).all() or np.triu(L, 1).any():
        raise InvalidValue("L", L.tolist(), "a lower triangular matrix without zeros on its diagonal")
    return L, checked_parents("L", np.tril(L) + np.tril(L, -1).T, parents), x

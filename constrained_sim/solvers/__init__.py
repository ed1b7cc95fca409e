"""Ways to solve ``M x - J^T lam = f, J x = b``, one file each, and their registry."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.solvers.direct import Direct
from constrained_sim.solvers.kokkevis import Kokkevis
from constrained_sim.solvers.null_space import NullSpace
from constrained_sim.solvers.projected import ContactConsistentDynamics, Projected
from constrained_sim.solvers.range_space import RangeSpace
from constrained_sim.solvers.solver import Factorization, Solver, System
from constrained_sim.validation import Array, finite_array, lookup

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (Direct, RangeSpace, NullSpace, Kokkevis, Projected)
}


def make_solver(name: str, **options: Any) -> Solver:
    """Return the solver `name`, configured with its options (``factorization`` of ``direct``).

    Raises:
        UnknownName: no such solver or factorization.
        InvalidValue: an option that this solver does not have.
    """
    kind = lookup("solver", name, SOLVERS)
    try:
        return kind(**options)
    except TypeError:
        raise InvalidValue(f"options of solver {name!r}", options, "those of its constructor") from None


def as_solver(solver: str | Solver, **options: Any) -> Solver:
    """Return `solver` itself, or the one of that name.

    Raises:
        UnknownName: no such solver or factorization.
        InvalidValue: neither a name nor a solver, or an option that it does not have.
    """
    if isinstance(solver, str):
        return make_solver(solver, **options)
    if not isinstance(solver, Solver) or options:
        raise InvalidValue("solver", solver, "a name in SOLVERS with its options, or a configured solver")
    return solver


def solve_kkt(M: Array, J: Array, f: Array, b: Array, method: str = "direct", **options: Any) -> tuple[Array, Array]:
    """Solve ``M x - J^T lam = f, J x = b`` for matrices of the caller.

    Args:
        M: (n, n) symmetric positive definite.
        J: (m, n) of any rank, m = 0 and m > n included.
        f: (n,) generalised force.
        b: (m,) right-hand side of the constraints.
        method: a name in ``SOLVERS``.
        **options: of that solver.

    Returns:
        x (n,) and lam (m,): least squares where rows contradict each other, least norm where they repeat each other.

    Raises:
        InvalidValue: shapes that do not fit, NaN or infinity, M not symmetric positive definite.
        UnknownName: no such method.

    Source: RBDL, module Contacts, SolveContactSystemDirect, -RangeSpaceSparse and -NullSpace (lam positive on the
    robot; RBDL's gamma is b).
    """
    size, rows = np.shape(f)[0] if np.ndim(f) else 0, np.shape(b)[0] if np.ndim(b) else 0
    M = finite_array("M", M, (size, size))
    J = np.zeros((0, size)) if rows == 0 and np.size(J) == 0 else finite_array("J", J, (rows, size))
    system = System(M, J)
    if (
        not np.allclose(M, M.T, rtol=0.0, atol=1e-12 * np.abs(M).max(initial=0.0))
        or not np.isfinite(system.inertia_factor).all()
    ):
        raise InvalidValue("M", M.tolist(), "a symmetric positive definite matrix")
    return (
        make_solver(method, **options)
        .factor(system)
        .solve(finite_array("f", f, (size,)), finite_array("b", b, (rows,)))
    )


__all__ = [
    "SOLVERS",
    "ContactConsistentDynamics",
    "Factorization",
    "Solver",
    "System",
    "as_solver",
    "make_solver",
    "solve_kkt",
]

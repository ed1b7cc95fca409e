"""Ways to solve ``M x - J^T lam = f, J x = b``, one file each, and their registry."""

from __future__ import annotations

import inspect
from typing import Any

from constrained_sim.exceptions import InvalidValue
from constrained_sim.solvers.direct import Direct
from constrained_sim.solvers.gauss import Gauss
from constrained_sim.solvers.kokkevis import Kokkevis
from constrained_sim.solvers.null_space import NullSpace
from constrained_sim.solvers.projected import ContactConsistentDynamics, Projected
from constrained_sim.solvers.proximal import Proximal
from constrained_sim.solvers.range_space import RangeSpace
from constrained_sim.solvers.robot_system import RobotSystem
from constrained_sim.solvers.solver import (
    Factorization,
    KKTInverse,
    Solver,
    System,
    check_consistency,
    checked_system,
    row_residual,
    sizes_of,
)
from constrained_sim.validation import Array, check_result, finite_array, flag, lookup, shape_of

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (Direct, RangeSpace, NullSpace, Kokkevis, Projected, Gauss, Proximal)
}

DEFAULT = RangeSpace.name
"""The fastest for robots (the rows of the solvers in ``benchmarks/run.py``)."""


def make_solver(name: str, **options: Any) -> Solver:
    """Return the solver `name`, configured with its options (``factorization`` of ``direct``).

    Raises:
        UnknownName: no such solver or factorization.
        InvalidValue: an option that this solver does not have.
    """
    kind = lookup("solver", name, SOLVERS)
    allowed = inspect.signature(kind).parameters
    if not options.keys() <= allowed.keys():
        raise InvalidValue(f"options of solver {name!r}", sorted(options), ", ".join(allowed) or "none")
    return kind(**options)


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


def solve_kkt(
    M: Array,
    J: Array,
    f: Array,
    b: Array,
    method: str | Solver = "direct",
    refuse_inconsistent: bool = False,
    parents: Any = None,
    **options: Any,
) -> tuple[Array, Array]:
    """Solve ``M x - J^T lam = f, J x = b`` for matrices of the caller.

    Args:
        M: (n, n) symmetric positive definite.
        J: (m, n) of any rank, m = 0 and m > n included.
        f: (n,) generalised force.
        b: (m,) right-hand side of the constraints.
        method: a solver that needs no robot, or its name in ``SOLVERS``: not kokkevis, proximal.
        refuse_inconsistent: raise where rows contradict each other.
        parents: (n,) for each degree of freedom the one that carries it, -1 at a root: then the zeros that branches put
            into M are used (by ``range_space``, and wherever M is factored); None: M may be full.
        **options: of that solver.

    Returns:
        x (n,) and lam (m,): least squares where rows contradict each other, least norm where they repeat each other.

    Raises:
        InvalidValue: shapes that do not fit, NaN or infinity, M not symmetric positive definite.
        UnknownName: no such method.
        InconsistentConstraints: on request, see above.
        NonFiniteMotion: values so large that the result is not finite.

    Source: RBDL, module Contacts, SolveContactSystemDirect, -RangeSpaceSparse and -NullSpace (lam positive on the
    robot; RBDL's gamma is b).
    """
    size, rows = (*shape_of(f), 0)[0], (*shape_of(b), 0)[0]
    system = checked_system(M, J, size, rows, parents)
    f, b = finite_array("f", f, (size,)), finite_array("b", b, (rows,))
    x, lam = as_solver(method, **options).factor(system).solve(f, b)
    check_result("solution of the linear problem", x, lam)
    if flag("refuse_inconsistent", refuse_inconsistent):
        check_consistency(system, row_residual(system, f, b, x))
    return x, lam


def kkt_inverse(M: Array, J: Array, method: str | Solver = "direct", **options: Any) -> KKTInverse:
    """Return the blocks of the inverse of the KKT matrix, ``x = L11 f + L12 b`` and ``lam = L21 f + L22 b``.

    Args:
        M: (n, n) symmetric positive definite.
        J: (m, n) of any rank.
        method: a solver that needs no robot, or its name in ``SOLVERS``: not kokkevis, proximal.
        **options: of that solver.

    Raises:
        InvalidValue: shapes that do not fit, NaN or infinity, M not symmetric positive definite.
        UnknownName: no such method.
    """
    system = checked_system(M, J, *sizes_of(M, J))
    return as_solver(method, **options).factor(system).inverse(*system.J.T.shape)


__all__ = [
    "DEFAULT",
    "SOLVERS",
    "ContactConsistentDynamics",
    "Factorization",
    "Gauss",
    "KKTInverse",
    "RobotSystem",
    "Solver",
    "System",
    "as_solver",
    "check_consistency",
    "kkt_inverse",
    "make_solver",
    "row_residual",
    "solve_kkt",
]

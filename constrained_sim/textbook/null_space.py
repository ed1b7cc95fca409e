"""The null-space method with bases of the caller."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.householder import null_space_bases
from constrained_sim.linalg.rank import ROW_TOLERANCE
from constrained_sim.solvers.solver import System, checked_system, sizes_of
from constrained_sim.validation import Array, finite_array


class NullSpaceSolution(NamedTuple):
    """Result of :func:`null_space_method`; with f and b of an acceleration, x is qddot.

    Attributes:
        x: (n,) ``Y x_y + Z x_z``.
        lam: (m,) multipliers, positive as they push along J.
        x_y: (m,) RBDL's qddot_y.
        x_z: (n - m,) RBDL's qddot_z.
        Y: (n, m) basis for the range of J^T.
        Z: (n, n - m) basis of the null space of J.
    """

    x: Array
    lam: Array
    x_y: Array
    x_z: Array
    Y: Array
    Z: Array


def null_space_method(M: Any, J: Any, f: Any, b: Any, Y: Any = None, Z: Any = None) -> NullSpaceSolution:
    """Solve ``M x - J^T lam = f, J x = b``, the motion first: ``x = Y x_y + Z x_z`` with ``J Z = 0``.

    ``(J Y) x_y = b``, then ``(Z^T M Z) x_z = Z^T (f - M Y x_y)``, then ``(J Y)^T lam = Y^T (M x - f)``. RBDL 3.3.1
    solves the last with J Y in place of its transpose, which is right for one row only. Its impact system has the
    unknown Lambda where ours is the impulse with the opposite sign: ``H qd+ + G^T Lambda = H qd-``.

    The solver ``null_space`` is this with orthonormal bases, for which J Y is triangular, and for rows of any rank.

    Args:
        M: (n, n) symmetric positive definite.
        J: (m, n) of full row rank.
        f: (n,).
        b: (m,).
        Y: (n, m), any with J Y regular; None: orthonormal, from Householder reflections of J^T.
        Z: (n, n - m), any of full rank with J Z = 0; None: orthonormal, from the same reflections.

    Raises:
        InvalidValue: shapes that do not fit, NaN or infinity, M not symmetric positive definite, dependent rows, or
            bases that are none.

    Source: RBDL, module Contacts, SolveContactSystemNullSpace.
    """
    system = checked_system(M, J, *sizes_of(M, J))
    m, n = system.J.shape
    f, b = finite_array("f", f, (n,)), finite_array("b", b, (m,))
    if system.row_space.rank < m:
        raise InvalidValue("J", system.J.tolist(), "independent rows")
    Yt, Zt, *_ = null_space_bases(system.M, system.J)
    Y = Yt.T if Y is None else finite_array("Y", Y, (n, m))
    Z = Zt.T if Z is None else finite_array("Z", Z, (n, n - m))
    _check_bases(system, Y, Z)
    JY = system.J @ Y
    x_y = np.linalg.solve(JY, b)
    x_z = np.linalg.solve(Z.T @ system.M @ Z, Z.T @ (f - system.M @ (Y @ x_y)))
    x = Y @ x_y + Z @ x_z
    lam = np.linalg.solve(JY.T, Y.T @ (system.M @ x - f))
    return NullSpaceSolution(x, lam, x_y, x_z, Y, Z)


def _check_bases(system: System, Y: Array, Z: Array) -> None:
    """Refuse Y and Z that do not split the space.

    Raises:
        InvalidValue: they do not.
    """
    J = system.J
    large = ROW_TOLERANCE * np.linalg.norm(J)
    if np.linalg.norm(J @ Z) > large * np.linalg.norm(Z):
        raise InvalidValue("Z", Z.tolist(), "a basis of the null space of J: J Z = 0")
    if Y.size and np.linalg.svd(J @ Y, compute_uv=False)[-1] <= large * np.linalg.norm(Y):
        raise InvalidValue("Y", Y.tolist(), "columns with which J Y is regular")
    if Z.size and np.linalg.cond(Z) > 1.0 / ROW_TOLERANCE:
        raise InvalidValue("Z", Z.tolist(), "columns that do not depend on each other")

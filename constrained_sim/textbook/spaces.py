"""The null space of a Jacobian, a matrix of full rank with the same, left inverses, and how a Jacobian changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy

from constrained_sim.constraints import Constraint
from constrained_sim.constraints.check import difference_of
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics, integrate
from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.rank import ROW_TOLERANCE
from constrained_sim.robot import Robot, checked_state
from constrained_sim.validation import Array, finite_array, number, shape_of

SYMMETRIC = 1e-12
"""Difference of entries, relative to the largest, that rounding makes between the halves of a symmetric matrix."""


def null_space_basis(F: Any) -> Array:
    """Return N (n, n - rank), orthonormal columns with ``F N = 0``, by one singular value decomposition.

    ``N^+ = N^T``; the Euclidean projection of a velocity is ``N N^T v``.

    Args:
        F: (m, n) of any rank, such as a constraint Jacobian.

    Raises:
        InvalidValue: no matrix, NaN or infinity.

    Source: Savin, Contact-aware Control, lecture 5, eq. 12 and 20.
    """
    return np.asarray(scipy.linalg.null_space(_matrix("F", F), rcond=ROW_TOLERANCE))


def weighted_pseudo_inverse(A: Any, W: Any) -> Array:
    """Return ``(A^T W A)^-1 A^T W`` (n, m), the left inverse of A that is least squares in the metric of W.

    With ``A = J^T`` it gives the lecture's ``J_W^T# = (J W J^T)^-1 J W``, and ``N_W = I - J^T J_W^T#`` with
    ``N_W J^T = 0`` for every W. ``W = M^-1`` is the dynamically consistent one
    (:class:`~constrained_sim.ContactConsistentDynamics`), ``W = I`` that of Moore and Penrose. The lecture notes
    ``A A_W# = I_m``; for the tall A of its sketch it is ``A_W# A`` that is the identity, and the other product the
    projector onto the columns of A.

    Args:
        A: (m, n) with columns that do not depend on each other.
        W: (m, m) symmetric positive definite.

    Raises:
        InvalidValue: no matrix, other shapes, NaN or infinity, dependent columns, or a W that is not symmetric positive
            definite.

    Source: the lecture "Building a simulator", dynamically consistent pseudo-inverse.
    """
    A = _matrix("A", A)
    W = finite_array("W", W, (len(A), len(A)))
    is_symmetric = np.abs(W - W.T).max(initial=0.0) <= SYMMETRIC * np.abs(W).max(initial=0.0)
    if not (is_symmetric and np.all(np.linalg.eigvalsh(W) > 0.0)):
        raise InvalidValue("W", W.tolist(), "a symmetric positive definite matrix")
    if np.linalg.matrix_rank(A, ROW_TOLERANCE * np.linalg.norm(A)) < A.shape[1]:
        raise InvalidValue("A", A.tolist(), "columns that do not depend on each other")
    root = np.linalg.cholesky(W).T
    return np.asarray(scipy.linalg.lstsq(root @ A, root)[0])


def row_equivalent(G: Any) -> Array:
    """Return R (rank, n) of full row rank with the null space of G, by the orthogonal decomposition ``G = Q [R; 0]``.

    R comes from a QR factorisation with pivoted columns, put back into their order.

    Args:
        G: (m, n) of any rank, such as a constraint Jacobian.

    Raises:
        InvalidValue: no matrix, NaN or infinity.

    Source: Inverse dynamics with holonomic constraints, "Rank deficient constraint Jacobian".
    """
    G = _matrix("G", G)
    if not G.size:
        return np.zeros((0, G.shape[1]))
    R, order = scipy.linalg.qr(G, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int(np.sum(diagonal > ROW_TOLERANCE * diagonal.max(initial=0.0)))
    rows = np.zeros((rank, G.shape[1]))
    rows[:, order] = R[:rank]
    return rows


def jacobian_rate(robot: Robot, q: Any, v: Any, constraints: Iterable[Constraint], t: float = 0.0) -> Array:
    """Return Jdot (rows, nv), the rate of the Jacobian along the motion with velocity `v`.

    By differences of fourth order along ``q + h v``, exact to about 1e-10. ``Jdot v`` is the gamma of
    ``constraint_system`` wherever rows do not depend on time and, for contacts, the point that touches stays the same
    point of the body.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity.
        constraints: bilateral constraints and contacts.
        t: time [s].

    Raises:
        InvalidValue: wrong lengths, NaN or infinity.
        UnknownName: a link or joint that does not exist.
    """
    q, v = checked_state(robot, q, v)
    bound, dynamics, t = ConstraintSet.bind(robot, q, constraints), Dynamics(robot), number("t", t)

    def jacobian(h: float) -> Array:
        dynamics.update(integrate(robot, q, h * v), v, t + h)
        return bound.rows_jacobian(bound.bilateral.jacobian(dynamics), bound.contacts.rows(dynamics, v).J)

    return difference_of(jacobian)[0]


def _matrix(what: str, value: Any) -> Array:
    shape = shape_of(value)
    return finite_array(what, value, shape if len(shape) == 2 else (1, 1))

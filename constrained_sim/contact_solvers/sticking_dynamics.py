"""The motion if all contacts stick: an equality problem, with all rows held."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.reduced_rows import (
    expand_rows,
    expanded_diagonal,
    leading_rows,
    reduce_rows,
    reduce_vector,
)
from constrained_sim.contact_solvers.scaled_problem import inverse_diagonal
from constrained_sim.contact_solvers.sticking import judge_sticking
from constrained_sim.linalg.products import entries, matvec, vecmat
from constrained_sim.linalg.rank import LARGE_PIVOT
from constrained_sim.solvers.held_dynamics import dynamics_residual
from constrained_sim.solvers.held_rows import hold_rows

NO_DRY_FRICTION = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
"""No degree of freedom with dry friction is taken out: its row is one of all."""


@kernel
def sticking_dynamics(factorization, inertia, f, every_row, basis, joint_friction, laws, tolerance):
    """Solve for the motion if all contacts stick, limits hold, and dry friction holds all joints that have it.

    This is the equality problem with all rows held, see :func:`~constrained_sim.solvers.held_rows.hold_rows`. What dry
    friction holds has a known velocity, and its impulse is what is missing in its equation of motion: where contacts
    leave that unique, these joints take no part in the factorisation.

    Args:
        factorization: one of :mod:`~constrained_sim.solvers.held_rows`.
        inertia: a :class:`TreeInertia`.
        f: (nv,) momentum or force.
        every_row: J (n, nv), of which the last d are those of dry friction, and what is added to ``J x`` (n,).
        basis: of all rows, a :class:`~constrained_sim.contact_solvers.reduced_rows.RowBasis`.
        joint_friction: (d,) degrees of freedom with dry friction; the others, and the parent of each of these among
            them, see :func:`~constrained_sim.dynamics.tree.contract`.
        laws: the :class:`~constrained_sim.contact_solvers.scaled_problem.ContactLaws`.
        tolerance: error of impulses that is good enough [N s].

    Returns:
        (x, :class:`~constrained_sim.contact_solvers.quick_solution.QuickSolution`, relative residual of the equation of
        motion).
    """
    (M, parents), (J, offset) = inertia, every_row
    x, impulse, b, scale, is_unique = _without_held(factorization, M, f, J, basis, offset, joint_friction)
    if not is_unique:
        rows, target = reduce_rows(basis, J), -reduce_vector(basis, offset)
        held = hold_rows(factorization, M, parents, rows, f, target)
        x, impulse = held.x, expand_rows(basis, held.y)
        b, scale = expand_rows(basis, held.free) + offset, expanded_diagonal(basis, held.delassus)
    u = matvec(J, x) + offset
    found = judge_sticking(laws, inverse_diagonal(scale, laws), b, u, impulse, tolerance)
    return x, found, dynamics_residual(M, x, f, vecmat(found.impulse, J))


@kernel
def _without_held(factorization, M, f, J, basis, offset, joint_friction):
    """Solve with all rows held, without the degrees of freedom that dry friction holds.

    Returns:
        (x, impulses of all rows, their velocities without impulses, diagonal of their Delassus matrix, whether that is
        so and these are unique: if not, nothing else is of use).
    """
    held, others, parents_of_others = joint_friction
    d, size = held.shape[0], offset.shape[0]
    n, x, impulse = size - d, np.zeros(f.shape[0]), np.empty(size)
    b, scale = np.empty(size), np.empty(size)
    if not d:
        return x, impulse, b, scale, False
    rows = reduce_rows(basis, J)
    rows = rows[: rows.shape[0] - d].copy()
    if _is_held(rows, held, M):
        return x, impulse, b, scale, False
    for i in range(d):
        x[held[i]] = -offset[n + i]
    given, columns = offset[:n] + matvec(J[:n], x), np.arange(rows.shape[0])
    inertia, force = entries(M, others, others), (f - matvec(M, x))[others]
    alone = leading_rows(basis, n, rows.shape[0])
    left = hold_rows(
        factorization, inertia, parents_of_others, entries(rows, columns, others), force, -reduce_vector(alone, given)
    )
    if not left.is_independent:
        return x, impulse, b, scale, False
    x[others], impulse[:n] = left.x, expand_rows(alone, left.y)
    b[:n], scale[:n] = expand_rows(alone, left.free) + given, expanded_diagonal(alone, left.delassus)
    missing = matvec(M, x) - f - vecmat(impulse[:n], J[:n])
    for i in range(d):
        impulse[n + i], scale[n + i] = missing[held[i]], 1.0 / M[held[i], held[i]]
        b[n + i] = -scale[n + i] * impulse[n + i]
    return x, impulse, b, scale, True


@kernel
def _is_held(rows, held, M):
    """Return whether one of `rows` (k, nv) hardly moves unless one of the degrees of freedom `held` (d,) does."""
    for row in rows:
        part = whole = 0.0
        for j in held:
            if row[j] != 0.0:
                part += row[j] * row[j] / M[j, j]
        if part == 0.0:
            continue
        for j in range(row.shape[0]):
            whole += row[j] * row[j] / M[j, j]
        if whole - part <= LARGE_PIVOT * whole:
            return True
    return False

"""All rows of a compiled step at once: held first, and where the contact law forbids that, by contact methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.constrained_dynamics import dynamics_residual, free_motion, quick_contacts, sticking_dynamics
from constrained_sim.contact_solvers.reduced_rows import reduce_contact_rows
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.contact_solvers.solve import BY_STICKING
from constrained_sim.linalg.products import vecmat
from constrained_sim.solvers.held_rows import hold_rows
from constrained_sim.solvers.solver import largest_row_error
from constrained_sim.validation import Array

NO_ROLLING = no_rolling()


class RowSolution(NamedTuple):
    """What all rows of a step come to.

    Attributes:
        x: (nv,) velocity.
        impulse: (n + d,) of contacts and one-sided rows that take part, and of dry friction [N s, N m s].
        lam: (m,) of the bilateral rows [N s, N m s].
        status: of the contacts, one-sided rows and degrees of freedom with dry friction that take part.
        how: which method found them, and steps.
        residual: relative, of the contact law.
        magnitude: impulse scale [N s].
        solved: whether the contact problem is.
        dynamics_residual: relative, of the equation of motion.
        constraint_residual: relative, of the bilateral rows.
    """

    x: Array
    impulse: Array
    lam: Array
    status: npt.NDArray[np.int64]
    how: tuple[int, int]
    residual: float
    magnitude: float
    solved: bool
    dynamics_residual: float
    constraint_residual: float


@kernel
def solve_rows(  # type: ignore[no-untyped-def]
    factorization, M, parents, f, J, offset, bilateral, friction, chosen, rows, where, joint_friction, start, tolerance,
    steps,
):  # fmt: skip
    """Solve for the velocity: first with all rows held, and where the contact law forbids that, by contact methods.

    Args:
        factorization: of the rows held, one of :mod:`~constrained_sim.solvers.held_rows`.
        M: (nv, nv) inertia.
        parents: (nv,) parent of each degree of freedom.
        f: (nv,) momentum.
        J: (n + d, nv) rows of what is `chosen`, then of dry friction.
        offset: (n + d,) what is added to ``J x``.
        bilateral: (m, nv) rows, and what their ``J x`` is to be (m,).
        friction: (k,) coefficients of all contacts.
        chosen: contacts and one-sided rows, ascending.
        rows: (n,) of what is `chosen`, among those of all contacts.
        where: (k, 2) bodies of the contacts, and where their rows are taken their axes (k, 3, 3) and points (k, 3).
        joint_friction: as in the laws of :func:`~constrained_sim.steppers.rigid.predict`.
        start: impulses near those of the rows; (0,): nothing is known.
        tolerance: error of impulses that is good enough [N s].
        steps: of Newton's method.

    Returns:
        A :class:`RowSolution`.
    """
    held_J, b = bilateral
    m, n, d = b.shape[0], rows.shape[0], offset.shape[0] - rows.shape[0]
    if not (n + d + m):
        x, dynamics = free_motion(M, parents, f)
        return RowSolution(
            x, np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), (BY_STICKING, 0), 0.0, 1.0, True, dynamics, 0.0
        )
    held, most, others, parents_of_others = joint_friction
    contacts = np.searchsorted(chosen, friction.shape[0])
    one_sided = chosen.shape[0] - contacts
    lower, upper = np.zeros(one_sided + m + d), np.full(one_sided + m + d, np.inf)
    lower[one_sided : one_sided + m] = -np.inf
    lower[one_sided + m :], upper[one_sided + m :] = -most, most
    slip, coefficients = np.zeros((contacts, 2)), friction[chosen[:contacts]]
    reduced = reduce_contact_rows(np.append(rows, np.full(m + d, 3 * friction.shape[0])), *where)
    every, offsets = J, offset
    if m:
        every = np.concatenate((J[:n], held_J, J[n:]))
        offsets = np.concatenate((offset[:n], -b, offset[n:]))
    x, forces, status, residual, magnitude, solved, dynamics = sticking_dynamics(
        factorization, M, parents, f, every, reduced, offsets, (held, others, parents_of_others), coefficients, slip,
        lower, upper, NO_ROLLING, tolerance,
    )  # fmt: skip
    if not m:
        impulse, lam = forces, np.empty(0)
    else:
        impulse, lam = np.concatenate((forces[:n], forces[n + m :])), forces[n : n + m].copy()
        status = np.concatenate((status[: chosen.shape[0]], status[chosen.shape[0] + m :]))
    how, inconsistent = (BY_STICKING, 0), 0.0
    if not (n + d):
        residual, magnitude, solved = 0.0, 1.0, True
    elif not solved:
        lower, upper = np.append(lower[:one_sided], -most), np.append(upper[:one_sided], most)
        x, _, _, impulse, status, how, residual, magnitude, solved = quick_contacts(
            M, parents, f, held_J, b, J, offset, offset[:0], coefficients, slip, lower, upper, NO_ROLLING, start,
            tolerance, steps, steps == 0 or m > 0,
        )  # fmt: skip
        total = f + vecmat(impulse, J)
        if m:
            x, lam, _, _, _ = hold_rows(factorization, M, parents, held_J, total, b)
        dynamics = dynamics_residual(M, x, f, total - f + vecmat(lam, held_J))
    if m:
        inconsistent = largest_row_error(held_J, b, x, free_motion(M, parents, f)[0])
    return RowSolution(x, impulse, lam, status, how, residual, magnitude, solved, dynamics, inconsistent)

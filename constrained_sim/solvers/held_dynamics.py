"""The motion with bilateral rows only, or without any, and how far it obeys the equation of motion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.inertia_factor import solve_inertia
from constrained_sim.linalg.products import vecdot, vecmat
from constrained_sim.solvers.held_rows import hold_rows
from constrained_sim.solvers.solver import largest_row_error
from constrained_sim.validation import Array


class TreeInertia(NamedTuple):
    """The inertia of a tree of joints.

    Attributes:
        M: (nv, nv).
        parents: (nv,) the parent of each degree of freedom, see :mod:`~constrained_sim.linalg.inertia_factor`.
    """

    M: Array
    parents: npt.NDArray[np.int64]


@kernel
def free_motion(M, parents, f):
    """Return the x (nv,) with ``M x = f``, and the relative residual of that."""
    x = solve_inertia(M, parents, f)
    return x, dynamics_residual(M, x, f, np.zeros_like(f))


@kernel
def held_dynamics(factorization, inertia, f, J, b):
    """Solve for the motion with bilateral rows only.

    Args:
        factorization: one of :mod:`~constrained_sim.solvers.held_rows`.
        inertia: a :class:`TreeInertia`.
        f: (nv,) force or momentum.
        J: (m, nv) rows.
        b: (m,) what they are to be, times x.

    Returns:
        (x, multipliers, relative residual of the equation of motion, relative residual of the rows).
    """
    M, parents = inertia
    held = hold_rows(factorization, M, parents, J, f, b)
    dynamics = dynamics_residual(M, held.x, f, vecmat(held.y, J))
    return held.x, held.y, dynamics, largest_row_error(M, f, J, b, held.x, solve_inertia(M, parents, f))


@kernel(inline=True)
def dynamics_residual(M, x, f, reaction):
    """Return ``|M x - f - reaction|`` relative to its largest term."""
    worst = largest = 0.0
    for i in range(x.shape[0]):
        momentum = vecdot(M[i], x)
        worst = max(worst, abs(momentum - reaction[i] - f[i]))
        largest = max(largest, abs(momentum), abs(reaction[i]), abs(f[i]))
    return worst / largest if largest > 0.0 else worst

"""The solution of a contact problem in which every contact sticks: a linear problem."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.natural_map import natural_map_at
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.quick_solution import BY_STICKING, QuickSolution
from constrained_sim.contact_solvers.scaled_problem import impulse_scale
from constrained_sim.contact_solvers.status import classify, without_open
from constrained_sim.linalg.cholesky import independent_factor, range_factor, substitute_twice
from constrained_sim.linalg.elimination import eliminate, substitute
from constrained_sim.linalg.products import largest_entry


@kernel
def solve_sticking(G, b):
    """Return r with ``G r + b = 0`` (least 2-norm where G is singular): what holds if every contact sticks."""
    U, is_independent = independent_factor(G)
    return substitute_twice(U, -b) if is_independent else of_least_norm(G, range_factor(G), -b)


@kernel
def of_least_norm(G, L, goal):
    """Return the r (n,) of least norm with ``G r = goal`` (in the least-squares sense), for ``G = L L^T``.

    ``r = L (L^T L)^-2 L^T goal``, refined once.
    """
    factors, pivots = eliminate(L.T @ L)
    r = np.zeros_like(goal)
    for _ in range(2):
        r += L @ substitute(factors, pivots, substitute(factors, pivots, (goal - G @ r) @ L))
    return r


@kernel
def judge_sticking(laws, p, b, u, r, tolerance):
    """Judge impulses r (n,), with the row velocities u (n,), with which all contacts stick.

    Other arguments as in :func:`~constrained_sim.contact_solvers.natural_map.natural_map_at`.

    Returns:
        A :class:`QuickSolution`, in which what pulls is open.
    """
    magnitude = impulse_scale(laws, p, b, r)
    error = largest_entry(natural_map_at(laws, p, b, u, r))
    status = classify(laws, p, u, r, OPTIONS.slack * OPTIONS.accuracy * magnitude)
    solved = error <= max(OPTIONS.accuracy * magnitude, tolerance)
    return QuickSolution(without_open(laws, status, r), status, BY_STICKING, 0, error / magnitude, magnitude, solved)

"""Projected Gauss-Seidel: row by row, contact by contact, each for the present impulses of all others."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.friction_disc import nearest_in_disc
from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.rolling_rows import sweep_rolling


@kernel
def projected_gauss_seidel(problem, r, tolerance, iterations):
    """Go on from r (n,): ``r - p u`` of each row, projected onto what the laws allow for the others' impulses.

    A few iterations tell roughly what is active and what slides. It ends where no impulse changes by more than the
    `tolerance` [N s].

    Returns:
        (r, largest entry of the natural map [N s], iterations done).

    Source: Acary and Brogliato, Numerical methods for nonsmooth dynamical systems, 2008, chapter 13.
    """
    G, b, laws, p = problem
    friction, slip, lower, upper, rolling = laws
    r, done, change = r.copy(), 0, np.inf
    while done < iterations and change > tolerance:
        done += 1
        change = 0.0
        before = r.copy()
        for c in range(friction.shape[0]):
            i = 3 * c
            r[i + 2] = max(0.0, r[i + 2] - p[i + 2] * (np.dot(G[i + 2], r) + b[i + 2]))
            z0 = r[i] - p[i] * (np.dot(G[i], r) + b[i])
            z1 = r[i + 1] - p[i + 1] * (np.dot(G[i + 1], r) + b[i + 1])
            r[i], r[i + 1] = nearest_in_disc(z0, z1, friction[c] * r[i + 2] if r[i + 2] > 0.0 else 0.0, slip[c])
        for j in range(lower.shape[0]):
            i = 3 * friction.shape[0] + j
            r[i] = min(max(r[i] - p[i] * (np.dot(G[i], r) + b[i]), lower[j]), upper[j])
        if rolling.shape[0]:
            sweep_rolling(rolling, G, b, r)
        for i in range(r.shape[0]):
            change = max(change, abs(r[i] - before[i]))
    return r, error_of(problem, r), done

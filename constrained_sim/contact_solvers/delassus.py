"""The contact problem's matrix and bias from the rows and the motion without contact."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.products import matvec
from constrained_sim.linalg.rank import DELASSUS_TOLERANCE


@kernel
def delassus_system(J, response, x, offset):
    """Return G (n, n), symmetrised, and b (n,), for rows J, the responses to them, and the motion without contact."""
    G = J @ response.T
    for i in range(G.shape[0]):
        for j in range(i):
            G[i, j] = G[j, i] = 0.5 * (G[i, j] + G[j, i])
    return G, matvec(J, x) + offset


@kernel
def drop_held(G, b, J, terms, free_diagonal):
    """Set to zero, in place, what of G and b is rounding, in directions that the bilateral rows hold already.

    Args:
        G: (n, n) Delassus matrix, bilateral rows held.
        b: (n,) row velocities without contact impulses.
        J: (n, nv) the rows.
        terms: (nv,) magnitudes of what the motion without contact impulses is the remainder of.
        free_diagonal: (n,) diagonal of the Delassus matrix without bilateral rows.
    """
    for i in range(G.shape[0]):
        for j in range(G.shape[0]):
            if abs(G[i, j]) <= DELASSUS_TOLERANCE * np.sqrt(free_diagonal[i] * free_diagonal[j]):
                G[i, j] = 0.0
        if G[i, i] == 0.0 and abs(b[i]) <= DELASSUS_TOLERANCE * np.dot(np.abs(J[i]), terms):
            b[i] = 0.0

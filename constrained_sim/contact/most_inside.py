"""Indeterminate forces well inside their cones: what sticks goes on sticking as long as any forces inside do."""

from __future__ import annotations

import numpy as np
import scipy

from constrained_sim.validation import Array

DEPENDENT = 1e-9
"""Singular value of rows of unit length below which forces along them balance each other."""

MOST_CUTS = 50

CLOSE = 0.1
"""Share of the largest possible margin that may be missing."""


def most_inside(J: Array, forces: Array, friction: Array, most: Array) -> Array:
    """Return forces with the same effect ``J^T r`` whose least margin to their bounds is largest.

    Forces of least norm may lie on a cone though others, with the same effect, are well inside it: then nothing is
    about to slip. The margin of a contact is ``friction f_n - |f_t|``, of a force that pushes the force itself, of dry
    friction what is left of it. In the forces that balance each other this is a linear program but for the cones, which
    are cut out by the planes that the solution before would have passed (Kelley, The cutting-plane method for solving
    convex programs, 1960).

    Args:
        J: (n, nv) rows [t1, t2, n] of k sticking contacts, then of l forces that push, then of d of dry friction.
        forces: (n,) of these rows [N, N m].
        friction: (k,) coefficients; infinite where nothing slips.
        most: (d,) the largest efforts of dry friction [N m, N].
    """
    lengths = np.linalg.norm(J, axis=1)
    lengths[lengths == 0.0] = 1.0
    left, singular, _ = np.linalg.svd(J / lengths[:, None])
    balanced = left[:, int((singular > DEPENDENT).sum()) :] / lengths[:, None]
    if not balanced.shape[1]:
        return forces
    planes, limits = _planes(len(forces), friction, most)
    best, margin, cuts = forces, -np.inf, np.zeros((0, len(forces)))
    found, reachable = forces, np.inf
    for _ in range(MOST_CUTS):
        new = _cuts(found, friction)
        reached = float(np.concatenate([planes @ found + limits, new @ found]).min())
        if reached > margin:
            best, margin = found, reached
        if np.isfinite(reachable) and reached >= reachable - CLOSE * abs(reachable):
            break
        cuts = np.vstack([cuts, new])
        # rows (forces + balanced z) + limits >= t, the limits of the cones being zero
        rows = np.vstack([planes, cuts])
        program = scipy.optimize.linprog(
            np.append(np.zeros(balanced.shape[1]), -1.0),
            np.hstack([-rows @ balanced, np.ones((len(rows), 1))]),
            np.concatenate([planes @ forces + limits, cuts @ forces]),
            bounds=[(None, None)] * balanced.shape[1] + [(None, float(np.abs(forces).max()))],
        )
        if not program.success:
            break
        found, reachable = forces + balanced @ program.x[:-1], float(program.x[-1])
    return best


def _planes(size: int, friction: Array, most: Array) -> tuple[Array, Array]:
    """Return rows and limits of ``rows @ forces + limits >= margin`` for all that is no cone."""
    contacts, end = len(friction), size - len(most)
    pushes, dry = np.concatenate([np.arange(2, 3 * contacts, 3), np.arange(3 * contacts, end)]), np.arange(end, size)
    unit = np.eye(size)
    return np.vstack([unit[pushes], unit[dry], -unit[dry]]), np.concatenate([np.zeros(len(pushes)), most, most])


def _cuts(forces: Array, friction: Array) -> Array:
    """Return a row for each cone: the plane that touches it in the direction of the present friction."""
    cuts = []
    for i in np.flatnonzero(np.isfinite(friction)):
        along = forces[3 * i : 3 * i + 2]
        length = np.hypot(*along)
        cut = np.zeros(len(forces))
        cut[3 * i : 3 * i + 2] = -along / length if length else (-1.0, 0.0)
        cut[3 * i + 2] = friction[i]
        cuts.append(cut)
    return np.array(cuts).reshape(-1, len(forces))

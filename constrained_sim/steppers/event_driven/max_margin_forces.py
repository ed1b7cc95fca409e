"""Indeterminate forces well inside their cones: what sticks goes on sticking as long as any forces inside do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.linalg.rank import ROW_TOLERANCE
from constrained_sim.steppers.event_driven.contact_modes import FrictionBlocks
from constrained_sim.steppers.event_driven.options import EVENTS
from constrained_sim.validation import Array


def max_margin_forces(
    rows: tuple[Array, Array], forces: Array, one_sided: npt.NDArray[np.intp], blocks: FrictionBlocks, most: Array
) -> Array:
    """Return forces with the same effect ``J^T r`` whose least margin to their bounds is largest.

    It is the same on all motions that bilateral rows leave: what is missing else, these take up.

    Forces of least norm may lie on a cone though others, with the same effect, are well inside it: then nothing is
    about to slip or to turn. The margin of a force that pushes is the force itself, of friction and moments that hold
    how much less the normal force could be, ``f_n - |f| / c``, of dry friction what is left of it. In the forces that
    balance each other this is a linear program but for the cones, which are cut out by the planes that the solution
    before would have passed (Kelley, The cutting-plane method for solving convex programs, 1960).

    Args:
        rows: J (n, nv) of forces, those of dry joint friction last; and bilateral rows (m, nv).
        forces: (n,) of these rows [N, N m].
        one_sided: (p,) which of them push.
        blocks: friction that holds, its rows among these.
        most: (d,) the largest efforts of dry friction [N m, N].
    """
    J, bilateral = rows
    lengths = np.linalg.norm(J, axis=1)
    lengths[lengths == 0.0] = 1.0
    if len(bilateral):
        J = J @ scipy.linalg.null_space(bilateral, rcond=ROW_TOLERANCE)
    left, singular, _ = np.linalg.svd(J / lengths[:, None])
    balanced = left[:, int((singular > EVENTS.balanced).sum()) :] / lengths[:, None]
    if not balanced.shape[1]:
        return forces
    planes, limits = _planes(len(forces), one_sided, most)
    best, margin, cuts = forces, -np.inf, np.zeros((0, len(forces)))
    found, reachable = forces, np.inf
    for _ in range(EVENTS.cuts):
        new = _cuts(found, blocks)
        reached = float(np.concatenate([planes @ found + limits, new @ found]).min())
        if reached > margin:
            best, margin = found, reached
        if np.isfinite(reachable) and reached >= reachable - EVENTS.missing_margin * abs(reachable):
            break
        cuts = np.vstack([cuts, new])
        # sides (forces + balanced z) + limits >= t, the limits of the cones being zero
        sides = np.vstack([planes, cuts])
        program = scipy.optimize.linprog(
            np.append(np.zeros(balanced.shape[1]), -1.0),
            np.hstack([-sides @ balanced, np.ones((len(sides), 1))]),
            np.concatenate([planes @ forces + limits, cuts @ forces]),
            bounds=[(None, None)] * balanced.shape[1] + [(None, float(np.abs(forces).max()))],
        )
        if not program.success:
            break
        found, reachable = forces + balanced @ program.x[:-1], float(program.x[-1])
    return best


def _planes(size: int, one_sided: npt.NDArray[np.intp], most: Array) -> tuple[Array, Array]:
    """Return rows and limits of ``rows @ forces + limits >= margin`` for all that is no cone."""
    unit = np.eye(size)
    friction = unit[size - len(most) :]
    return np.vstack([unit[one_sided], friction, -friction]), np.concatenate([np.zeros(len(one_sided)), most, most])


def _cuts(forces: Array, blocks: FrictionBlocks) -> Array:
    """Return a row for each cone: the plane that touches it in the direction of the present friction."""
    along, cuts = blocks.components(forces), np.zeros((len(blocks.normal), len(forces)))
    length = np.hypot(*along.T)
    direction = np.where(length[:, None] > 0.0, along / np.where(length > 0.0, length, 1.0)[:, None], [1.0, 0.0])
    each = np.arange(len(cuts))
    cuts[each, blocks.normal] = 1.0
    for column in range(2):
        cuts[each, blocks.rows[:, column]] -= direction[:, column] / blocks.coefficient
    return cuts

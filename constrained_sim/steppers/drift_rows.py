"""The rows whose drift a projection takes out, and those whose position is to stay meanwhile, as far as it can."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.status import STICKING
from constrained_sim.linalg.inertia_factor import factor_inertia, whiten
from constrained_sim.linalg.products import vecdot
from constrained_sim.linalg.rank import ROW_TOLERANCE


@kernel
def position_rows(held, normals, status):
    """Return the rows whose position is to stay: normal ones of what is `held`, all rows of contacts that stick."""
    contacts = (normals[-1] + 1 - normals.shape[0]) // 2 if normals.shape[0] else 0
    rows = np.empty(3 * held.shape[0], dtype=np.int64)
    count = 0
    for c in held:
        n = normals[c]
        for row in range(n - 2 if c < contacts and status[c] == STICKING else n, n + 1):
            rows[count] = row
            count += 1
    return rows[:count]


@kernel
def takes_out(back, bilateral, phi, J, gaps, normals, held, tolerance):
    """Return whether a motion takes the drift out of bilateral rows and of gaps, to first order.

    Args:
        back: (nv,) the motion.
        bilateral: (m, nv) rows.
        phi: (m,) their drift [m, rad].
        J: (n, nv) rows of contacts and limits.
        gaps: (k + l,) of the contacts and limits [m, rad].
        normals: (k + l,) which rows open and close.
        held: those whose gap is to vanish.
        tolerance: drift that may stay [m, rad].
    """
    for i in range(phi.shape[0]):
        if not abs(vecdot(bilateral[i], back) + phi[i]) <= tolerance:
            return False
    for c in held:
        if not abs(vecdot(J[normals[c]], back) + gaps[c]) <= tolerance:
            return False
    return True


@kernel
def without_clashes(M, parents, bilateral, J, rows, normals):
    """Return of `rows` (k,) those whose position can stay while drift is taken out, ascending.

    A tangential row of a contact that sticks may depend on bilateral rows and on normal ones. Its position cannot stay
    where these have drifted: as a row among the others it would keep some of their drift. So it is left out.

    Args:
        M: (nv, nv) inertia.
        parents: (nv,) see :func:`~constrained_sim.linalg.inertia_factor.factor_inertia`.
        bilateral: (m, nv) rows, whose drift is taken out.
        J: (n, nv) rows of contacts and limits.
        rows: (k,) some of these, ascending.
        normals: which of these open and close; the drift of those among `rows` is taken out too.
    """
    is_firm = np.zeros(J.shape[0], dtype=np.bool_)
    is_firm[normals] = True
    firm, others = rows[is_firm[rows]], rows[~is_firm[rows]]
    every = whiten(factor_inertia(M, parents), parents, np.concatenate((bilateral, J[firm], J[others])))
    first, kept, basis, rank = every.shape[0] - others.shape[0], is_firm[rows], np.empty_like(M), 0
    stays = np.empty(every.shape[0], dtype=np.bool_)
    for i in range(every.shape[0]):
        rest = every[i].copy()
        for j in range(rank):
            rest -= vecdot(basis[j], rest) * basis[j]
        left = np.sqrt(vecdot(rest, rest))
        stays[i] = rank < M.shape[0] and left > ROW_TOLERANCE * np.sqrt(vecdot(every[i], every[i]))
        if stays[i]:
            basis[rank] = rest / left
            rank += 1
    kept[~kept] = stays[first:]
    return rows[kept]

"""Contacts of the motion that bilateral rows leave, by the quick methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.delassus import drop_held
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.quick_solution import QuickSolution
from constrained_sim.contact_solvers.scaled_problem import inverse_diagonal
from constrained_sim.contact_solvers.solve import solve_quick
from constrained_sim.linalg.inertia_factor import factor_inertia, unwhiten_one, whiten, whiten_one
from constrained_sim.linalg.products import gram, matvec, vecdot, vecmat
from constrained_sim.linalg.rank import MOTION_ROUNDING
from constrained_sim.solvers.held_rows import hold_first
from constrained_sim.validation import Array


class QuickBudget(NamedTuple):
    """Tolerance and allowed methods of :func:`quick_contacts`.

    Attributes:
        tolerance: error of impulses that is good enough [N s].
        newton_first: see :func:`~constrained_sim.contact_solvers.solve.solve_quick`.
        may_stick: whether all contacts may stick.
    """

    tolerance: float
    newton_first: bool
    may_stick: bool


class ContactMotion(NamedTuple):
    """The motion under contact impulses, and the problem that gave them.

    Attributes:
        x: (nv,) acceleration or velocity.
        delassus: (n, n) of the contact rows, bilateral ones held.
        free: (n,) what their quantities are without impulses.
        tolerance: error of impulses that is good enough [N s]: the budget's, or rounding of the motion.
        solution: of the contact problem.
    """

    x: Array
    delassus: Array
    free: Array
    tolerance: float
    solution: QuickSolution


@kernel
def quick_contacts(inertia, f, bilateral, rows, compliance, laws, start, budget):
    """Solve the contact problem of the motion that bilateral rows leave, as ``solve_quick`` does.

    The compliance may be that of the first rows only; others have none.

    Args:
        inertia: a :class:`TreeInertia`.
        f: (nv,) force or momentum.
        bilateral: rows (m, nv), and what they are to be (m,), times x.
        rows: J (n, nv) of the contacts, and so on, and what is added to ``J x`` (n,).
        compliance: (n,) or fewer, added to the diagonal of G.
        laws: the :class:`~constrained_sim.contact_solvers.scaled_problem.ContactLaws`.
        start: (n,) impulses to begin from; (0,): nothing is known.
        budget: a :class:`QuickBudget`.

    Returns:
        The :class:`ContactMotion`.
    """
    (M, parents), (held, b), (J, offset) = inertia, bilateral, rows
    L = factor_inertia(M, parents)
    whitened, free = whiten(L, parents, J), whiten_one(L, parents, f)
    rounding = MOTION_ROUNDING * np.sqrt(vecdot(free, free))
    if b.shape[0]:
        diagonal, unconstrained = np.diag(gram(whitened)).copy(), unwhiten_one(L, parents, free)
        hold_first(whiten(L, parents, held), b, whitened, free)
        x = unwhiten_one(L, parents, free)
        G, bias = gram(whitened), matvec(J, x)
        bias += offset
        drop_held(G, bias, J, np.maximum(np.abs(x), np.abs(unconstrained)), diagonal)
    else:
        G, bias = gram(whitened), matvec(whitened, free)
        bias += offset
        diagonal = np.diag(G).copy()
    rounding *= (inverse_diagonal(np.diag(G), laws) * np.sqrt(diagonal)).max()
    if not rounding < np.inf:  # squares that overflow, or NaN, excuse no error
        rounding = 0.0
    for i in range(compliance.shape[0]):
        G[i, i] += compliance[i]
    enough, least = max(budget.tolerance, rounding), rounding / OPTIONS.accuracy
    found = solve_quick(G, bias, laws, start, enough, budget.newton_first, budget.may_stick)
    impulse, status, method, iterations, residual, magnitude, solved = found
    if magnitude < least:  # where a whole robot falls freely, its joints need no impulse but rounding
        found = QuickSolution(impulse, status, method, iterations, residual * magnitude / least, least, solved)
    free += vecmat(impulse, whitened)
    return ContactMotion(unwhiten_one(L, parents, free), G, bias, enough, found)

"""The one solution that is taken where the contact laws allow several: that of contacts of vanishing compliance.

Where rows depend on each other, the laws of rigid contacts leave a choice: of forces, as under the four legs of a
table; of motions too, where friction drags by how contacts share a load, as where a body that is held by too little
force begins to slip at four points; and of what each contact does, as one of them may stick with all the load. Which
of these a method finds depends on its way, and a body in a symmetric grasp begins to turn.

Real contacts are a little compliant, all alike as far as the model knows. With a compliance c in every row, the same
for all, ``u = (G + c) r + b``, rows do not depend on each other any more, and where c is large there is one solution,
the one of contacts that do not feel each other. It is followed to c = 0: Newton's method goes from where the secant
through the solutions of the last two compliances leads to the solution of a smaller one. The limit tells what opens,
sticks and slides, and how. It depends on the problem only, so it is the same whichever method is chosen and wherever
that begins; what is symmetric stays symmetric; and where only forces are open, and their bounds are those of normal
forces, it has the forces of least norm. Others at rest are of least norm too, and what slides has the forces of equal
springs to rounding: see :mod:`~constrained_sim.contact_solvers.least_norm`.

With rolling and torsional friction it is this limit itself: least norm is not asked for then.

It costs more than most solutions, and is looked for only where rows that are active, or would be without others, depend
on each other, unless all contacts rest well inside their cones: then only forces are open. Where the way turns back
before c = 0, the solution that the method found stays.

Sources: Tikhonov and Arsenin, Solutions of ill-posed problems, 1977, for limits of this kind; Allgower and Georg,
Numerical continuation methods, 1990, for the way there.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import factored_newton
from constrained_sim.contact_solvers.least_norm import by_motion, rows_at_rest, with_least_norm
from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import lengths_of
from constrained_sim.contact_solvers.scaled_problem import ContactLaws, accuracy_of, impulse_scale, scaled_problem
from constrained_sim.contact_solvers.semismooth_newton import DelassusFactor
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.linalg.cholesky import independent_factor, range_factor


@kernel
def choose_solution(problem, r, error, most):
    """Return the solution that is taken, see the module; r itself where there is no choice.

    Args:
        problem: a :class:`~constrained_sim.contact_solvers.scaled_problem.ScaledProblem`.
        r: (n,) impulses of a solution.
        error: of r [N s].
        most: what the forces returned may have.
    """
    G, b, laws, p = problem
    friction, rolls = laws.friction, laws.rolling.shape[0] > 0
    status = by_motion(problem, G @ r + b, OPTIONS.slack * error)
    rows = np.arange(r.shape[0]) if rolls else _rows_that_may_press(status, b, friction.shape[0])
    if independent_factor(G[rows][:, rows])[1]:
        return r
    if not rolls and (status[: friction.shape[0]] == STICKING).all():
        x = with_least_norm(problem, r, error, most)
        if _is_inside(friction, x):
            return x
    limit, left, _ = rigid_limit(problem, OPTIONS.compliances)
    if left <= OPTIONS.sufficient * impulse_scale(laws, p, b, limit):
        r, error = limit, max(left, accuracy_of(laws, p, b, 0.0))
        most = max(most, OPTIONS.slack * error)
    return with_least_norm(problem, r, error, most)


@kernel
def rigid_limit(problem, compliances):
    """Return the solution (n,) to which those of vanishing compliance lead, its error [N s], and compliances tried.

    Where they lead to none within so many `compliances`, the error is infinite. An impulse in a row of a moment counts
    as a force at the distance of its coefficient [m], so that all rows have one unit, and a contact turns as
    compliantly as a patch of this radius.
    """
    G, b, laws, _ = problem
    lengths, rolling = lengths_of(laws.rolling, b.shape[0])
    laws = ContactLaws(laws.friction, laws.slip, laws.lower, laws.upper, rolling)
    same_unit = scaled_problem(G * lengths * lengths.reshape((-1, 1)), b * lengths, laws)
    limit, left, tried = _limit_of_forces(same_unit, compliances)
    limit = limit * lengths
    return limit, error_of(problem, limit) if np.isfinite(left) else left, tried


@kernel
def _limit_of_forces(problem, compliances):
    """Return the same of a problem whose rows all have one unit.

    From :attr:`stiff` compliances on each may lead to the limit. Where rows nearly depend on each other, only one that
    is small against what they differ by does; the solution of one that is next to nothing is that of rigid contacts.
    """
    G, b, laws, _ = problem
    n = b.shape[0]
    unit, L = np.trace(G) / n, range_factor(G)
    r = secant = np.zeros(n)
    limit, left = r, np.inf
    softer, step = OPTIONS.softest * OPTIONS.stiffer, OPTIONS.stiffer
    for tried in range(compliances):
        compliance = softer / step
        if OPTIONS.stiff < softer and compliance < 2.0 * OPTIONS.stiff:
            compliance = OPTIONS.stiff
        factor = DelassusFactor(L, compliance * unit)
        compliant = scaled_problem(G + factor.compliance * np.eye(n), b, laws)
        tolerance = accuracy_of(laws, compliant.p, b, 0.0)
        start = r + (compliance - softer) * secant
        found, error, _ = factored_newton(compliant, factor, start, tolerance, OPTIONS.newton_steps)
        if not error <= OPTIONS.sufficient * impulse_scale(laws, compliant.p, b, found):
            step = np.sqrt(step)
            continue
        r, secant, softer = found, (found - r) / (compliance - softer), compliance
        if compliance <= OPTIONS.stiff:
            found, error, is_enough = _without_compliance(problem, factor, r - compliance * secant)
            if error < left:
                limit, left = found, error
            if is_enough or compliance <= OPTIONS.stiffest:
                return limit, left, tried + 1
    return limit, left, compliances


@kernel
def _without_compliance(problem, factor, start):
    """Return where Newton's method leads from a `start` (n,) near the limit, its error, and whether that is enough.

    The `factor` of the last compliance leaves alone what rounding would move where rows depend on each other.
    """
    _, b, laws, p = problem
    limit, error, wanted = start, np.inf, accuracy_of(laws, p, b, 0.0)
    # Once more: on the way across a kink a step may lead farther, and from where that ended it may not.
    for _ in range(2):
        limit, error, _ = factored_newton(problem, factor, limit, wanted, OPTIONS.newton_steps)
    return limit, error, error <= OPTIONS.sufficient * impulse_scale(laws, p, b, limit)


@kernel
def _rows_that_may_press(status, b, contacts):
    """Return the rows that a solution of this `status` (k + m,) holds, and the normal ones of what would sink.

    What would sink does so without any forces, with the row velocities b (n,); another solution may hold it.
    """
    status = status.copy()
    for j in range(status.shape[0]):
        if status[j] == OPEN and b[3 * j + 2 if j < contacts else 2 * contacts + j] < 0.0:
            status[j] = SLIDING if j < contacts else STICKING
    return rows_at_rest(status, contacts)


@kernel
def _is_inside(friction, r):
    """Return whether the forces r (n,) of all contacts are inside their cones, or zero."""
    for c in range(friction.shape[0]):
        i = 3 * c
        if np.hypot(r[i], r[i + 1]) > (1.0 - OPTIONS.margin) * friction[c] * r[i + 2]:
            return False
    return True

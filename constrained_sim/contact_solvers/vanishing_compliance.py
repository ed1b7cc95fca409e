"""The one solution that is taken where the contact laws allow several: that of contacts of vanishing compliance.

Where rows depend on each other, the laws of rigid contacts leave a choice: of forces, as under the four legs of a
table; of motions too, where friction drags by how contacts share a load, as where a body that is held by too little
force begins to slip at four points; and of what each contact does, as one of them may stick with all the load. Which
of these a method finds depends on its way, and a body in a symmetric grasp begins to turn.

Real contacts are a little compliant, all alike as far as the model knows. With a compliance c in every row, the same
for all, ``u = (G + c) r + b``, rows do not depend on each other any more, and where c is large there is one solution,
the one of contacts that do not feel each other. It is followed to c = 0: Newton's method goes from the solution of one
compliance to that of a smaller one. The limit tells what opens, sticks and slides, and how. It depends on the problem
only, so it is the same whichever method is chosen and wherever that begins; what is symmetric stays symmetric; and
where only forces are open, and their bounds are those of pressing, it has the forces of least norm. Others at rest, or
with the same slip, are of least norm too: see :mod:`~constrained_sim.contact_solvers.least_norm`.

It costs more than most solutions, and is looked for only where rows that press, or would without others, depend on
each other, unless all contacts rest well inside their cones: then only forces are open. Where the way turns back before
c = 0, the solution that the method found stays.

Source: Tikhonov and Arsenin, Solutions of ill-posed problems, 1977, for limits of this kind.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import finish
from constrained_sim.contact_solvers.least_norm import by_motion, rows_at_rest, with_least_norm
from constrained_sim.contact_solvers.natural_map import inverse_diagonal
from constrained_sim.contact_solvers.problem import RELATIVE_TOLERANCE, SUFFICIENT
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING, largest_impulse
from constrained_sim.linalg.cholesky import independent_factor

MOST, LEAST, STIFFER = 0.1, 1e-6, 100.0
"""The first and the last compliance, relative to the mean diagonal entry of the Delassus matrix, and how many times
stiffer the next is: less where that leads too far. What is left to the limit is extrapolated."""

MARGIN = 1e-6
"""Of friction, relative to the largest, with which nothing is about to slip."""

COMPLIANCES, STEPS = 16, 20
"""How many compliances are tried at most, and the steps of Newton's method for each."""


@kernel
def choose_solution(G, b, friction, slip, lower, upper, rolling, p, r, error, most):  # type: ignore[no-untyped-def]
    """Return the solution that is taken, see the module; r itself where there is no choice, or with rolling friction.

    Args:
        G: (n, n) Delassus matrix of the contact rows.
        b: (n,) row velocities at zero impulse.
        friction: (k,) Coulomb coefficient of each contact.
        slip: (k, 2) known direction of slip, zero where the row velocity decides.
        lower: (m,) lower bounds of the box rows.
        upper: (m,) upper bounds of the box rows.
        rolling: (d, 6) rolling and torsional friction, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
        p: (n,) scale of the rows.
        r: (n,) impulses of a solution.
        error: of r [N s].
        most: what the forces returned may have.
    """
    if rolling.shape[0]:
        return r
    status = by_motion(G @ r + b, friction, slip, lower, upper, p, 10.0 * error)
    rows = _rows_that_may_press(status, b, friction.shape[0])
    if independent_factor(G[rows][:, rows])[1]:
        return r
    if (status[: friction.shape[0]] == STICKING).all():
        x = with_least_norm(G, b, friction, slip, lower, upper, rolling, p, r, error, most)
        if _is_inside(friction, x):
            return x
    limit, left = rigid_limit(G, b, friction, slip, lower, upper, rolling, p)
    if left <= SUFFICIENT * largest_impulse(p, b, limit):
        r, error = limit, max(left, RELATIVE_TOLERANCE * np.abs(p * b).max())
        most = max(most, 10.0 * error)
    return with_least_norm(G, b, friction, slip, lower, upper, rolling, p, r, error, most)


@kernel
def rigid_limit(G, b, friction, slip, lower, upper, rolling, p):  # type: ignore[no-untyped-def]
    """Return the solution (n,) to which those of vanishing compliance lead, and its error [N s].

    Where they lead to none, that is infinite. Arguments as in :func:`choose_solution`.
    """
    n = b.shape[0]
    unit = np.trace(G) / n
    r = before = np.zeros(n)
    softer, step = MOST * STIFFER, STIFFER
    for _ in range(COMPLIANCES):
        compliance = max(softer / step, LEAST)
        compliant = G + compliance * unit * np.eye(n)
        scale = inverse_diagonal(np.diag(compliant), friction.shape[0], rolling)
        tolerance = RELATIVE_TOLERANCE * np.abs(scale * b).max()
        found, error, _ = finish(compliant, b, friction, slip, lower, upper, rolling, scale, r, tolerance, STEPS)
        if not error <= SUFFICIENT * largest_impulse(scale, b, found):
            step = np.sqrt(step)
            continue
        r, before = found, r
        if compliance == LEAST:
            r = r + (r - before) / (softer / compliance - 1.0)
            tolerance = RELATIVE_TOLERANCE * np.abs(p * b).max()
            limit, error, _ = finish(G, b, friction, slip, lower, upper, rolling, p, r, tolerance, STEPS)
            return limit, error
        softer = compliance
    return r, np.inf


@kernel
def _rows_that_may_press(status, b, contacts):  # type: ignore[no-untyped-def]
    """Return the rows that a solution of this `status` (k + m,) holds, and the normal ones of what would sink.

    What would sink does so without any forces, with the row velocities b (n,); another solution may hold it.
    """
    status = status.copy()
    for j in range(status.shape[0]):
        if status[j] == OPEN and b[3 * j + 2 if j < contacts else 2 * contacts + j] < 0.0:
            status[j] = SLIDING if j < contacts else STICKING
    return rows_at_rest(status, contacts)


@kernel
def _is_inside(friction, r):  # type: ignore[no-untyped-def]
    """Return whether the forces r (n,) of all contacts are inside their cones, or zero."""
    for c in range(friction.shape[0]):
        i = 3 * c
        if np.hypot(r[i], r[i + 1]) > (1.0 - MARGIN) * friction[c] * r[i + 2]:
            return False
    return True

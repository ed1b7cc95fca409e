"""The quick methods for a contact problem, in one kernel: all contacts stick, or it is found which slide."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import finish
from constrained_sim.contact_solvers.interior_point import SMOOTHING, solve_from_center
from constrained_sim.contact_solvers.natural_map import inverse_scale, natural_map
from constrained_sim.contact_solvers.problem import ACCEPTABLE_RESIDUAL, RELATIVE_TOLERANCE, SUFFICIENT
from constrained_sim.contact_solvers.projected_gauss_seidel import projected_gauss_seidel
from constrained_sim.contact_solvers.semismooth_newton import semismooth_newton
from constrained_sim.contact_solvers.status import classify, largest_impulse
from constrained_sim.contact_solvers.sticking import judge_sticking, solve_sticking
from constrained_sim.contact_solvers.vanishing_compliance import choose_solution
from constrained_sim.linalg.products import matvec

NEWTON_STEPS, INTERIOR_STEPS = 12, 50
"""Steps of Newton's method before the interior-point method is tried, which what takes more takes less time; and of
that, from each of its beginnings."""

MORE_ITERATIONS, MORE_STEPS = 300, 30
"""Gauss-Seidel steps from where each beginning of that has come to no end, and the steps of Newton's method after."""

QUICK_METHODS = "stick", "newton", "interior_point"
BY_STICKING, BY_NEWTON, BY_INTERIOR_POINT = range(len(QUICK_METHODS))

GAUSS_SEIDEL_ITERATIONS = 20
"""Before Newton's method begins; they take less time than two of its steps, and save it more than half of them."""


@kernel(inline=True)
def acceptable(tolerance, magnitude):  # type: ignore[no-untyped-def]
    """Return the largest relative residual that counts as solved, for a tolerance and impulses of `magnitude` [N s]."""
    return max(ACCEPTABLE_RESIDUAL, 10.0 * tolerance / magnitude)


@kernel
def solve_quick(G, b, friction, slip, lower, upper, rolling, start, tolerance, steps, may_stick):  # type: ignore[no-untyped-def]
    """Solve a contact problem as :func:`~constrained_sim.contact_solvers.solve.solve_contacts` begins.

    Args:
        G: (n, n) Delassus matrix of the contact rows.
        b: (n,) row velocities at zero impulse.
        friction: (k,) Coulomb coefficient of each contact.
        slip: (k, 2) known direction of slip, zero where the row velocity decides.
        lower: (m,) lower bounds of the box rows.
        upper: (m,) upper bounds of the box rows.
        rolling: (d, 6) rolling and torsional friction, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
        start: (n,) impulses from which Newton's method begins; (0,): from a few sweeps.
        tolerance: error of impulses that is good enough [N s].
        steps: of Newton's method at most; 0: all contacts stick, or the problem is left to others.
        may_stick: whether all contacts may stick; if it is known that not all do, it is Newton's turn.

    Returns:
        (r (n,), status (k + m + d,), which of the methods found r and how many steps it took all of them, relative
        residual, impulse scale, whether r solves the problem); if it does not, r is where this
        ended.
    """
    p = inverse_scale(G, friction.shape[0], rolling)
    problem = G, b, friction, slip, lower, upper, rolling, p
    if may_stick:
        stuck = solve_sticking(G, b)
        r, u = stuck.copy(), matvec(G, stuck)
        u += b
        status, error, magnitude = judge_sticking(u, b, friction, slip, lower, upper, rolling, p, r, RELATIVE_TOLERANCE)
        if error <= max(RELATIVE_TOLERANCE * magnitude, tolerance):
            return r, status, (BY_STICKING, 0), error / magnitude, magnitude, True
        if not steps:
            return stuck, status, (BY_STICKING, 0), error / magnitude, magnitude, False
    # Not the magnitude of the sticking solution: where rows nearly depend on each other it may be a million times more.
    rounding = RELATIVE_TOLERANCE * np.abs(p * b).max()
    wanted = max(rounding, tolerance)
    begin = (
        start
        if start.shape[0]
        else projected_gauss_seidel(*problem, np.zeros_like(b), wanted, GAUSS_SEIDEL_ITERATIONS)[0]
    )
    r, error, done = semismooth_newton(*problem, begin, wanted, steps)
    method = BY_NEWTON
    slack = 10.0 if start.shape[0] else 1.0  # forces of least norm, with which it may begin, err by that much more
    for attempt in range(2 * len(SMOOTHING)):
        beginning, with_gauss_seidel = attempt // 2, attempt % 2 == 1
        magnitude = largest_impulse(p, b, r)
        largest = acceptable(tolerance, magnitude) * magnitude
        if error <= (largest if attempt > 1 else max(slack * wanted, SUFFICIENT * magnitude)):
            break
        if with_gauss_seidel:
            other, _, _ = projected_gauss_seidel(*problem, r, wanted, MORE_ITERATIONS)
            other, left, more = finish(*problem, other, wanted, MORE_STEPS)
        else:
            other, left, more = solve_from_center(*problem, r, wanted, INTERIOR_STEPS, SMOOTHING[beginning])
        done += more
        if left < error:
            r, error, method = other, left, BY_NEWTON if with_gauss_seidel else BY_INTERIOR_POINT
    how, magnitude = (method, done), largest_impulse(p, b, r)
    largest = acceptable(tolerance, magnitude) * magnitude
    if not error <= largest:
        status = classify(G @ r + b, friction, slip, lower, upper, rolling, p, r.copy(), 10.0 * error)
        return r, status, how, error / magnitude, magnitude, False
    reached = max(rounding, error)
    r = choose_solution(*problem, r, reached, min(max(wanted, 10.0 * reached), largest))
    u = G @ r + b
    status = classify(u, friction, slip, lower, upper, rolling, p, r, 10.0 * RELATIVE_TOLERANCE * magnitude)
    error, magnitude = np.abs(natural_map(*problem, r)).max(), largest_impulse(p, b, r)
    return r, status, how, error / magnitude, magnitude, error <= acceptable(tolerance, magnitude) * magnitude

"""The usual way to solve a contact problem, in one kernel: all contacts stick, or it is found which slide."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import finish
from constrained_sim.contact_solvers.interior_point import BLURS, from_inside
from constrained_sim.contact_solvers.least_norm import with_least_norm
from constrained_sim.contact_solvers.natural_map import inverse_scale, natural_map
from constrained_sim.contact_solvers.problem import ACCEPTABLE_RESIDUAL, RELATIVE_TOLERANCE, SUFFICIENT
from constrained_sim.contact_solvers.projected_gauss_seidel import plain_sweeps
from constrained_sim.contact_solvers.semismooth_newton import semismooth_newton
from constrained_sim.contact_solvers.status import classify, largest_impulse
from constrained_sim.contact_solvers.sticking import judge_sticking, stick
from constrained_sim.linalg.products import matvec

NEWTON_STEPS, INTERIOR_STEPS = 12, 50
"""Steps of Newton's method before the interior-point method is tried, which what takes more takes less time; and of
that, from each of its beginnings."""

MORE_SWEEPS, MORE_STEPS = 300, 30
"""Sweeps that go on from where each beginning of that has come to no end, and the steps of Newton's method after."""

USUAL_METHODS = "stick", "newton", "interior_point"
STICK, NEWTON, INTERIOR = range(len(USUAL_METHODS))

SWEEPS = 20
"""Before Newton's method begins; they take less time than two of its steps, and save it more than half of them."""


@kernel(inline=True)
def acceptable(tolerance, magnitude):  # type: ignore[no-untyped-def]
    """Return the largest relative residual that counts as solved, for a tolerance and impulses of `magnitude` [N s]."""
    return max(ACCEPTABLE_RESIDUAL, 10.0 * tolerance / magnitude)


@kernel
def solve_usually(G, b, friction, slip, lower, upper, discs, start, tolerance, steps, may_stick):  # type: ignore[no-untyped-def]
    """Solve a contact problem as :func:`~constrained_sim.contact_solvers.solve.solve_contacts` begins.

    Args:
        G: this and the following six, see :func:`~constrained_sim.contact_solvers.natural_map.natural_map`.
        b: likewise.
        friction: likewise.
        slip: likewise.
        lower: likewise.
        upper: likewise.
        discs: likewise.
        start: (n,) impulses from which Newton's method begins; (0,): from a few sweeps.
        tolerance: error of impulses that is good enough [N s].
        steps: of Newton's method at most; 0: all contacts stick, or the problem is left to others.
        may_stick: whether all contacts may stick; if it is known that not all do, it is Newton's turn.

    Returns:
        (r (n,), status (k + m + d,), which of the methods found r and how many steps it took all of them, relative
        residual, magnitude of the impulses in play, whether r solves the problem); if it does not, r is where this
        ended.
    """
    p = inverse_scale(G, friction.shape[0], discs)
    problem = G, b, friction, slip, lower, upper, discs, p
    if may_stick:
        stuck = stick(G, b)
        r, u = stuck.copy(), matvec(G, stuck)
        u += b
        status, error, magnitude = judge_sticking(u, b, friction, slip, lower, upper, discs, p, r, RELATIVE_TOLERANCE)
        if error <= max(RELATIVE_TOLERANCE * magnitude, tolerance):
            return r, status, (STICK, 0), error / magnitude, magnitude, True
        if not steps:
            return stuck, status, (STICK, 0), error / magnitude, magnitude, False
    # Not the magnitude of the sticking solution: where rows nearly depend on each other it may be a million times more.
    rounding = RELATIVE_TOLERANCE * np.abs(p * b).max()
    wanted = max(rounding, tolerance)
    begin = start if start.shape[0] else plain_sweeps(*problem, np.zeros_like(b), wanted, SWEEPS)[0]
    r, error, done = semismooth_newton(*problem, begin, wanted, steps)
    method = NEWTON
    slack = 10.0 if start.shape[0] else 1.0  # forces of least norm, with which it may begin, err by that much more
    for attempt in range(2 * len(BLURS)):
        beginning, sweeps_on = attempt // 2, attempt % 2 == 1
        magnitude = largest_impulse(p, b, r)
        largest = acceptable(tolerance, magnitude) * magnitude
        if error <= (largest if attempt > 1 else max(slack * wanted, SUFFICIENT * magnitude)):
            break
        if sweeps_on:
            other, _, _ = plain_sweeps(*problem, r, wanted, MORE_SWEEPS)
            other, left, more = finish(*problem, other, wanted, MORE_STEPS)
        else:
            other, left, more = from_inside(*problem, r, wanted, INTERIOR_STEPS, BLURS[beginning])
        done += more
        if left < error:
            r, error, method = other, left, NEWTON if sweeps_on else INTERIOR
    how, magnitude = (method, done), largest_impulse(p, b, r)
    largest = acceptable(tolerance, magnitude) * magnitude
    if not error <= largest:
        status = classify(G @ r + b, friction, slip, lower, upper, discs, p, r.copy(), 10.0 * error)
        return r, status, how, error / magnitude, magnitude, False
    reached = max(rounding, error)
    r = with_least_norm(*problem, r, reached, min(max(wanted, 10.0 * reached), largest))
    u = G @ r + b
    status = classify(u, friction, slip, lower, upper, discs, p, r, 10.0 * RELATIVE_TOLERANCE * magnitude)
    error, magnitude = np.abs(natural_map(*problem, r)).max(), largest_impulse(p, b, r)
    return r, status, how, error / magnitude, magnitude, error <= acceptable(tolerance, magnitude) * magnitude

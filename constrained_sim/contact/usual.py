"""The usual way to solve a contact problem, in one kernel: all contacts stick, or Newton's method finds which slide."""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.kernels import (
    classify,
    inverse_scale,
    judge_sticking,
    largest_impulse,
    natural_map,
    newton,
    stick,
)
from constrained_sim.contact.least_norm import with_least_norm
from constrained_sim.contact.problem import ACCEPTABLE_RESIDUAL, RELATIVE_TOLERANCE, SUFFICIENT
from constrained_sim.contact.sweeps import plain_sweeps
from constrained_sim.products import matvec

NEWTON_STEPS = 30
"""Steps of Newton's method before others are tried: what takes more takes an interior-point method less time."""

SWEEPS = 20
"""Before Newton's method begins; they take less time than two of its steps, and save it more than half of them."""


@numba.njit(cache=True)
def acceptable(tolerance, magnitude):  # type: ignore[no-untyped-def]
    """Return the largest relative residual that counts as solved, for a tolerance and impulses of `magnitude` [N s]."""
    return max(ACCEPTABLE_RESIDUAL, 10.0 * tolerance / magnitude)


@numba.njit(cache=True)
def solve_usually(G, b, friction, slip, lower, upper, discs, start, tolerance, steps, may_stick):  # type: ignore[no-untyped-def]
    """Solve a contact problem as :func:`~constrained_sim.contact.methods.solve_contacts` begins.

    Args:
        G: this and the following six, see :func:`~constrained_sim.contact.kernels.natural_map`.
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
        (r (n,), status (k + m + d,), steps of Newton's method (0: all contacts stick; 1: one, or none from a start that
        is good enough), relative residual, magnitude of the impulses in play, whether r solves the problem); if it
        does not, r is where this ended.
    """
    p = inverse_scale(G, friction.shape[0], discs)
    if may_stick:
        stuck = stick(G, b)
        r, u = stuck.copy(), matvec(G, stuck)
        u += b
        status, error, magnitude = judge_sticking(u, b, friction, slip, lower, upper, discs, p, r, RELATIVE_TOLERANCE)
        if error <= max(RELATIVE_TOLERANCE * magnitude, tolerance):
            return r, status, 0, error / magnitude, magnitude, True
        if not steps:
            return stuck, status, 0, error / magnitude, magnitude, False
    # Not the magnitude of the sticking solution: where rows nearly depend on each other it may be a million times more.
    rounding = RELATIVE_TOLERANCE * np.abs(p * b).max()
    wanted = max(rounding, tolerance)
    begin = start if start.shape[0] else plain_sweeps(G, b, friction, slip, lower, upper, discs, p, SWEEPS)
    r, error, done = newton(G, b, friction, slip, lower, upper, discs, p, begin, wanted, steps)
    done = max(done, 1)
    magnitude = largest_impulse(p, b, r)
    if not error <= max(wanted, SUFFICIENT * magnitude):
        status = np.zeros(friction.shape[0] + lower.shape[0] + discs.shape[0], dtype=np.int64)
        return r, status, done, error / magnitude, magnitude, False
    reached = max(rounding, error)
    r = with_least_norm(G, b, friction, slip, lower, upper, discs, p, r, reached, max(wanted, 10.0 * reached))
    u = G @ r + b
    status = classify(u, friction, slip, lower, upper, discs, p, r, 10.0 * RELATIVE_TOLERANCE * magnitude)
    error = np.abs(natural_map(G, b, friction, slip, lower, upper, discs, p, r)).max()
    residual = error / largest_impulse(p, b, r)
    return r, status, done, residual, magnitude, residual <= acceptable(tolerance, magnitude)

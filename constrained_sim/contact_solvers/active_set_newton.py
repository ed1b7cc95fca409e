"""Newton's method on one smooth piece of the natural map at a time: it goes on where kinks hold up the semi-smooth one.

The natural map is smooth as long as every contact goes on being open, sticking or sliding, and every box row at a
bound or between. Newton's method on the map itself changes the piece of all contacts at once wherever a step leads over
a kink, and may go to and fro there. Here all stay what they are until the equations of that piece are solved. Where the
solution is not one of the problem, since a contact pulls, sinks, or its friction is too large or drives it on, the one
of which that is most true goes over to another piece, as a pivot of an exact method does; and so on.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.natural_map import active_set_at, derivative_on, drag_of, error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.scaled_problem import impulse_scale
from constrained_sim.contact_solvers.semismooth_newton import DelassusFactor, newton_step, semismooth_newton
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.linalg.cholesky import range_factor
from constrained_sim.linalg.products import largest_entry
from constrained_sim.linalg.rank import TINY


@kernel
def newton(problem, r, tolerance, steps):
    """Newton's method on rigid contacts from r (n,), see :func:`factored_newton`."""
    return factored_newton(problem, DelassusFactor(range_factor(problem.G), 0.0), r, tolerance, steps)


@kernel
def factored_newton(problem, factor, r, tolerance, steps):
    """Newton's method from r (n,): the semi-smooth one, then active set by active set where that comes to no end.

    Arguments and result are those of :func:`~constrained_sim.contact_solvers.semismooth_newton.semismooth_newton`.
    """
    r, error, done = semismooth_newton(problem, factor, r, tolerance, steps)
    wanted = max(tolerance, OPTIONS.sufficient * impulse_scale(problem.laws, problem.p, problem.b, r))
    if error > wanted:
        r, error, more = active_set_newton(problem, factor, r, wanted, OPTIONS.active_sets)
        done += more
    return r, error, done


@kernel
def active_set_newton(problem, factor, r, tolerance, changes):
    """Look for a solution near r, as the module says; it ends where the next change would take back the last.

    Or where impulses grow ``max_amplification`` times beyond the impulse scale.

    Problems with rolling friction are left as they are. Arguments and result are those of
    :func:`~constrained_sim.contact_solvers.semismooth_newton.semismooth_newton`.
    """
    G, b, laws, p = problem
    best, least = r, error_of(problem, r)
    if laws.rolling.shape[0]:
        return best, least, 0
    active_set = active_set_at(problem, G @ r + b, r)
    far, last, before, done = OPTIONS.max_amplification * impulse_scale(laws, p, b, r), -1, -1, 0
    while least > tolerance and done < changes:
        done += 1
        r = _solve_on_active_set(problem, factor, active_set, r, tolerance, far)
        error = error_of(problem, r)
        if error < least:
            best, least = r, error
        member, status = _most_violated(problem, active_set, r)
        if member < 0 or (member == last and status == before) or not error < far:
            break
        last, before = member, active_set[member]
        active_set[member] = status
    return best, least, done


@kernel
def _solve_on_active_set(problem, factor, active_set, r, tolerance, far):
    """Return where Newton's method on the map of the `active_set` leads from r, solved or not.

    Where there is no solution, that is away on the side from which contacts pull, which tells which of them opens; but
    it does not go on where the error is `far` beyond all impulses.
    """
    for step in range(OPTIONS.settling + 1):
        u = problem.G @ r + problem.b
        F = _map_on(problem, active_set, u, r)
        error = largest_entry(F)
        if error <= tolerance or not error < far or step == OPTIONS.settling:
            break
        B, C = derivative_on(problem, active_set, u, r)
        r = r + newton_step(problem, factor, B, C, F, OPTIONS.least_shift)
    return r


@kernel
def _map_on(problem, active_set, u, r):
    """Return F (n,) of this `active_set`, wherever r is."""
    friction, slip, lower, upper, _ = problem.laws
    p = problem.p
    F = np.empty(r.shape[0])
    for c in range(friction.shape[0]):
        i = 3 * c
        if active_set[c] == OPEN:
            F[i], F[i + 1], F[i + 2] = r[i], r[i + 1], r[i + 2]
            continue
        F[i], F[i + 1], F[i + 2] = p[i] * u[i], p[i] * u[i + 1], p[i + 2] * u[i + 2]
        if active_set[c] == SLIDING:
            d0, d1, _ = drag_of(u, friction[c], slip[c], p, r, i)
            radius = friction[c] * (r[i + 2] - p[i + 2] * u[i + 2])
            F[i], F[i + 1] = r[i] - radius * d0, r[i + 1] - radius * d1
    for j in range(lower.shape[0]):
        i, status = 3 * friction.shape[0] + j, active_set[friction.shape[0] + j]
        if status == STICKING:
            F[i] = p[i] * u[i]
        else:
            F[i] = r[i] - (lower[j] if status == OPEN else upper[j])
    return F


@kernel
def _most_violated(problem, active_set, r):
    """Return which contact or box row violates its laws by the most [N s] if it stays on its piece; the next.

    Which is -1 if none does. A contact that sinks will slide to begin with: where others stick, it may be unable to.
    """
    G, b, laws, p = problem
    friction, slip, lower, upper, _ = laws
    u = G @ r + b
    most, which, then, contacts = 0.0, -1, OPEN, friction.shape[0]
    for c in range(contacts):
        i = 3 * c
        if active_set[c] == OPEN:
            wrong, status = -p[i + 2] * u[i + 2], SLIDING
        elif r[i + 2] < 0.0:
            wrong, status = -r[i + 2], OPEN
        elif active_set[c] == STICKING:
            wrong, status = np.hypot(r[i], r[i + 1]) - friction[c] * r[i + 2], SLIDING
        elif slip[c, 0] != 0.0 or slip[c, 1] != 0.0:
            continue
        else:
            length = max(np.hypot(r[i], r[i + 1]), TINY)
            wrong, status = p[i] * (r[i] * u[i] + r[i + 1] * u[i + 1]) / length, STICKING
        if wrong > most:
            most, which, then = wrong, c, status
    for j in range(lower.shape[0]):
        i, status = 3 * contacts + j, STICKING
        if active_set[contacts + j] == OPEN:
            wrong = -p[i] * u[i]
        elif active_set[contacts + j] == SLIDING:
            wrong = p[i] * u[i]
        else:
            wrong = max(lower[j] - r[i], r[i] - upper[j])
            status = OPEN if r[i] < lower[j] else SLIDING
        if wrong > most:
            most, which, then = wrong, contacts + j, status
    return which, then

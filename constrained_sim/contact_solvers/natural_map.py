"""The natural map of contact problems: k contacts of three rows [t1, t2, n], m box rows, then rolling friction.

The problem: find r with ``u = G r + b`` such that for every contact ``0 <= u_n _|_ r_n >= 0``, ``|r_t| <= c r_n``, and
``r_t = -c r_n u_t / |u_t|`` where it slides; and for every box row ``lower <= r <= upper``, with ``u >= 0`` where
r is at the lower bound, ``u <= 0`` at the upper one, ``u = 0`` between. (A joint limit has the interval 0 to infinity,
dry joint friction that of its Coulomb effort.) This is Signorini's condition with Coulomb's law (De Saxce and Feng,
The bipotential method, 1998), not its convex relaxation: a sliding contact does not lift off.

Its zero-finding form (Alart and Curnier, A mixed formulation for frictional contact problems, 1991), for any p > 0:

    F_n = r_n - max(0, y),            y = r_n - p_n u_n
    F_t = r_t - proj(z, c max(0, y)), z = r_t - p_t u_t,   proj onto the disc of that radius
    F   = r - proj(r - p u, [lower, upper])                of a box row

with p the inverse of the diagonal of G, so that F is in newton seconds. At acceleration level u is an acceleration
and r a force; a contact that slips already, in the unit direction d, has ``r_t = -c r_n d`` whatever u_t is.
Resistance to rolling and spinning adds rows that :mod:`~constrained_sim.contact_solvers.rolling_rows` explains.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.friction_disc import differentiate_disc, nearest_in_disc
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import differentiate_rolling, map_rolling
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.linalg.products import largest_entry
from constrained_sim.linalg.rank import EPSILON, TINY


@kernel
def natural_map(problem, r):
    """Return F (n,) at the impulses r (n,); zero exactly where they solve the `problem`, a ``ScaledProblem``."""
    return natural_map_at(problem.laws, problem.p, problem.b, problem.G @ r + problem.b, r)


@kernel
def error_of(problem, r):
    """Return the largest entry of the natural map at r (n,) [N s]."""
    return largest_entry(natural_map(problem, r))


@kernel
def natural_map_at(laws, p, b, u, r):
    """Return F (n,) at r with the row velocities u (n,), see :func:`natural_map`.

    Where there is no solution, impulses may grow until rounding hides that they are none: what they hide beyond
    ``max_amplification`` times those that stop the rows one by one counts as error.

    Args:
        laws: of the rows, a :class:`~constrained_sim.contact_solvers.scaled_problem.ContactLaws`.
        p: (n,) scale of each row.
        b: (n,) row velocities at r = 0.
        u: (n,) row velocities.
        r: (n,) impulses.
    """
    friction, slip, lower, upper, rolling = laws
    F = np.empty(r.shape[0])
    for c in range(friction.shape[0]):
        i = 3 * c
        y = r[i + 2] - p[i + 2] * u[i + 2]
        F[i + 2] = r[i + 2] - max(0.0, y)
        radius = friction[c] * y if y > 0.0 else 0.0
        t0, t1 = nearest_in_disc(r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1], radius, slip[c])
        F[i], F[i + 1] = r[i] - t0, r[i + 1] - t1
    for j in range(lower.shape[0]):
        i = 3 * friction.shape[0] + j
        F[i] = r[i] - min(max(r[i] - p[i] * u[i], lower[j]), upper[j])
    if rolling.shape[0]:
        map_rolling(rolling, u, p, r, F)
    stopping = TINY
    for i in range(r.shape[0]):
        stopping = max(stopping, abs(p[i] * b[i]))
    for i in range(r.shape[0]):
        beyond = abs(r[i]) - OPTIONS.max_amplification * stopping
        if beyond > 0.0:
            F[i] += EPSILON * beyond if F[i] >= 0.0 else -EPSILON * beyond
    return F


@kernel
def active_set_at(problem, u, r):
    """Return (k + m,) which smooth piece of the natural map r is on, for each contact and box row.

    ``OPEN``: no force acts, or a box row is at its lower bound; ``SLIDING``: friction or a box row is at
    its (upper) bound; ``STICKING``: neither. With the row velocities u (n,).
    """
    friction, slip, lower, upper, _ = problem.laws
    p = problem.p
    contacts = friction.shape[0]
    active_set = np.empty(contacts + lower.shape[0], dtype=np.int64)
    for c in range(contacts):
        i = 3 * c
        y = r[i + 2] - p[i + 2] * u[i + 2]
        if y <= 0.0:
            active_set[c] = OPEN
            continue
        length = np.hypot(r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1])
        slips = slip[c, 0] != 0.0 or slip[c, 1] != 0.0
        active_set[c] = STICKING if not slips and length <= friction[c] * y else SLIDING
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        z = r[i] - p[i] * u[i]
        active_set[contacts + j] = STICKING if lower[j] < z < upper[j] else OPEN if z <= lower[j] else SLIDING
    return active_set


@kernel
def derivative_on(problem, active_set, u, r):
    """Return blocks B and C (k + m + d, 3, 3) of the derivative ``dF/dr = B + C G`` of these `active_set` at r.

    Box rows use entry [0, 0] of their blocks; rolling friction is on the smooth piece on which r is. With the row
    velocities u (n,).
    """
    friction, slip, lower, _, rolling = problem.laws
    p = problem.p
    contacts = friction.shape[0]
    blocks = contacts + lower.shape[0] + rolling.shape[0]
    B, C = np.zeros((blocks, 3, 3)), np.zeros((blocks, 3, 3))
    for c in range(contacts):
        i = 3 * c
        if active_set[c] == OPEN:
            B[c, 0, 0] = B[c, 1, 1] = B[c, 2, 2] = 1.0
            continue
        C[c, 2, 2] = p[i + 2]
        if active_set[c] == STICKING:
            C[c, 0, 0] = C[c, 1, 1] = p[i]
            continue
        d0, d1, shrink = drag_of(u, friction[c], slip[c], p, r, i)
        differentiate_disc(d0, d1, shrink, friction[c], p[i], p[i + 2], B[c], C[c])
    for j in range(contacts, contacts + lower.shape[0]):
        if active_set[j] == STICKING:
            C[j, 0, 0] = p[2 * contacts + j]
        else:
            B[j, 0, 0] = 1.0
    if rolling.shape[0]:
        differentiate_rolling(rolling, u, p, r, B, C)
    return B, C


@kernel(inline=True)
def drag_of(u, friction, slip, p, r, i):
    """Return the direction of friction on a contact that slides, and how long that is to ``|z|``, see the module.

    Its first row is the i-th; `slip` (2,) is its direction of slip, where that is known.
    """
    if slip[0] != 0.0 or slip[1] != 0.0:
        return -slip[0], -slip[1], 0.0
    z0, z1 = r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1]
    length = max(np.hypot(z0, z1), TINY)
    return z0 / length, z1 / length, friction * (r[i + 2] - p[i + 2] * u[i + 2]) / length

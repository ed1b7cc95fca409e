"""Among all contact forces that obey the contact laws with the same slip, those of least norm or of equal springs.

Where dependent rows carry force, as the four legs of a table do, the laws do not tell the forces; where such rows
slide, nor the motion: the friction of a box that turns on its four corners depends on how they share its weight. What
opens, sticks and slides is not chosen here but in :mod:`~constrained_sim.contact_solvers.vanishing_compliance`. For
that, this choice depends on neither the method that found a solution nor where that began, but in the last case below.

With a solution r and its row velocities u known, let K be the product of convex sets: nothing where a contact opens, a
ray opposite to the slip where it slides, Coulomb's cone where it is at rest. Of these forces x those are wanted for
which ``(G x)_h = (G r)_h`` in the rows h that are held: normal rows of active contacts, and all of what is at rest.
With Q an orthonormal basis of the columns h of G, ``x = P(Q y)``: P projects onto the cones, and gives what slides the
normal force ``z_n``, not below zero, of ``z = Q y``, with the friction that belongs to it. So forces go with a motion,
``x_h = G_hh y``, as those of equal springs under all held rows do in the limit of ever stiffer ones; at a bound they
are the nearest ones there. Newton's method solves ``Q^T P(Q y) = Q^T r``. Where nothing slides that is the gradient of
a smooth and convex function of y, ``z^T P(z) - |P(z)|^2 / 2 - y^T Q^T r``, the dual of ``minimise |x|^2 / 2``: forces
are of least norm. What slides has another velocity with x than with r, which may turn the rays: they are followed until
x obeys the laws. Where that leads nowhere, as where a slip comes to its end, all rows are held, and the motion is that
of r. It begins where the equation is linear: as if all that is at rest were inside its cone, and all that slides
carried force. So most often it ends there too. Else it may begin as if all that is at a bound with r stayed there,
which is where it ends if r is what is wanted already, as where a problem is solved again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.contact_solvers.scaled_problem import ContactLaws
from constrained_sim.contact_solvers.semismooth_newton import block_times
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.linalg.cholesky import independent_factor, pivoted_factor, range_factor
from constrained_sim.linalg.elimination import solve
from constrained_sim.linalg.products import largest_entry
from constrained_sim.linalg.rank import TINY
from constrained_sim.validation import Array

NO_ROLLING = no_rolling()


class ForceSet(NamedTuple):
    """The set K of forces that the laws allow at one motion, see the module.

    Attributes:
        laws: of the rows.
        u: (n,) row velocities, which tell the rays of what slides.
        status: (k + m,) that the motion allows, see :func:`by_motion`.
    """

    laws: ContactLaws
    u: Array
    status: npt.NDArray[np.int64]


@kernel
def with_least_norm(problem, r, error, most):
    """Return the forces that are taken with the slip of r; r itself where there is no choice, or with rolling friction.

    Args:
        problem: a :class:`~constrained_sim.contact_solvers.scaled_problem.ScaledProblem`.
        r: (n,) impulses of a solution.
        error: of r [N s].
        most: what the forces returned may have.
    """
    G, b, laws, _ = problem
    if laws.rolling.shape[0]:
        return r
    status = by_motion(problem, G @ r + b, OPTIONS.slack * error)
    held, every = rows_at_rest(status, laws.friction.shape[0]), np.arange(r.shape[0])
    if independent_factor(G[held][:, held])[1]:
        return r
    L = range_factor(G)
    for rows, turns in ((held, OPTIONS.turns), (every, 1)):
        transposed = _orthonormal(L if rows.shape[0] == r.shape[0] else _columns_in(L, rows))
        goal = transposed @ r
        x, y, before = r, goal.copy(), np.inf
        for _ in range(turns):
            x, y = least_norm(ForceSet(laws, G @ x + b, status), transposed, goal, r, y, error)
            left = error_of(problem, x)
            if left <= OPTIONS.slack * error or not left < 0.5 * before:
                break
            before = left
        if left <= most:
            return x
        if rows.shape[0] == r.shape[0]:
            break
    return r


@kernel
def by_motion(problem, u, tolerance):
    """Return (k + m,) the status that the row velocities u alone allow: a contact at rest may carry force, or not.

    Args:
        problem: a :class:`~constrained_sim.contact_solvers.scaled_problem.ScaledProblem`.
        u: (n,) row velocities.
        tolerance: one of impulses [N s].
    """
    friction, slip, lower, _, _ = problem.laws
    p, contacts = problem.p, friction.shape[0]
    status = np.full(contacts + lower.shape[0], STICKING)
    for c in range(contacts):
        i = 3 * c
        if p[i + 2] * u[i + 2] > tolerance:
            status[c] = OPEN
        elif friction[c] == 0.0 or slip[c].any() or p[i] * np.hypot(u[i], u[i + 1]) > tolerance:
            status[c] = SLIDING
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        if p[i] * abs(u[i]) > tolerance:
            at_zero = lower[j] == 0.0 and u[i] > 0.0
            status[contacts + j] = OPEN if at_zero else SLIDING
    return status


@kernel
def rows_at_rest(status, contacts):
    """Return the rows that are held, ascending: of a contact at rest three, of one that slides the normal one."""
    rows, count = np.empty(3 * contacts + status.shape[0], dtype=np.int64), 0
    for c in range(contacts):
        if status[c] != OPEN:
            for i in range(3 * c if status[c] == STICKING else 3 * c + 2, 3 * c + 3):
                rows[count] = i
                count += 1
    for j in range(contacts, status.shape[0]):
        if status[j] == STICKING:
            rows[count] = j + 2 * contacts
            count += 1
    return rows[:count]


@kernel
def least_norm(allowed, transposed, goal, r, y, tolerance):
    """Return the ``x = P(Q y)`` with ``Q^T x = goal``, as near as rounding lets it come to that, and its y.

    A solution r has the directions that its motion demands only up to its own error, so there is a rest that does not
    get less.

    Args:
        allowed: K, a :class:`ForceSet`.
        transposed: (q, n) ``Q^T``, see above.
        goal: (q,) ``Q^T r`` of a solution r.
        r: (n,) that solution.
        y: (q,) where Newton's method begins.
        tolerance: error of r [N s].
    """
    Q = np.ascontiguousarray(transposed.T)
    largest = largest_entry(goal)
    settled = max(OPTIONS.norm_settled * largest, OPTIONS.slack * tolerance)
    y = _beginning(allowed, transposed, goal, r, y, settled)
    x, slope = _project(allowed, Q @ y)
    F = transposed @ x - goal
    best, chosen, least, before = x, y, np.inf, np.inf
    for _ in range(OPTIONS.norm_steps):
        error = largest_entry(F)
        if error < least:
            best, chosen, least = x, y, error
        if error <= OPTIONS.norm_accuracy * largest or (error <= settled and error > 0.5 * before):
            break
        before = error
        H = transposed @ block_times(slope, Q, allowed.laws.friction.shape[0], NO_ROLLING)
        H += (OPTIONS.accuracy + OPTIONS.norm_damping * min(error / largest, 1.0)) * np.eye(H.shape[0])
        step = solve(H, -F)
        length, x, slope = _minimum_along(allowed, Q @ y, Q @ step, np.dot(goal, step), x)
        y = y + length * step
        F = transposed @ x - goal
    return best, chosen


@kernel
def _beginning(allowed, transposed, goal, r, y, settled):
    """Return the y (q,) that comes nearest: the one given, or where the equation is linear; arguments as above.

    Those at a bound with r are looked at where the others leave an error above `settled` [N s].
    """
    Q = np.ascontiguousarray(transposed.T)
    error, begin = np.inf, y
    for distance in (-np.inf, OPTIONS.at_bound * largest_entry(goal)):
        for candidate in (y, _where_linear(allowed, transposed, goal, r, distance)):
            left = largest_entry(transposed @ _project(allowed, Q @ candidate)[0] - goal)
            if left < error:
                error, begin = left, candidate
        if error <= settled:
            break
    return begin


@kernel
def _minimum_along(allowed, z, change, goal_ahead, x):
    """Return the length of a step at which the dual is least, by bisection; the forces there and their slope.

    Where something slides there is no dual: then its slope along the step has a root there, or it is the whole step.

    Args:
        allowed: K, a :class:`ForceSet`.
        z: (n,) ``Q y``.
        change: (n,) ``Q step``.
        goal_ahead: goal times the step.
        x: (n,) the projection of z.
    """
    descent = goal_ahead - np.dot(x, change)
    near, far = 0.0, 2.0
    length, slope = 1.0, np.zeros((0, 3, 3))
    for _ in range(OPTIONS.norm_steps):
        length = 0.5 * (near + far)
        x, slope = _project(allowed, z + length * change)
        ascent = np.dot(x, change) - goal_ahead
        if abs(ascent) <= OPTIONS.norm_flatness * descent or (length == 1.0 and (ascent < 0.0 or not descent > 0.0)):
            break
        near, far = (length, far) if ascent < 0.0 else (near, length)
    return length, x, slope


@kernel
def _where_linear(allowed, transposed, goal, x, distance):
    """Return the y (q,) that would solve the equation if forces stayed at the bounds of their sets where x (n,) is.

    At bounds, that is up to this `distance` [N s] from them: at the apex of a cone or on its side, at the end of a ray
    or of an interval. Other arguments as in :func:`least_norm`.
    """
    (friction, slip, lower, upper, _), u, status = allowed
    Q = np.ascontiguousarray(transposed.T)
    slope, fixed = np.zeros((status.shape[0], 3, 3)), np.zeros(u.shape)
    for c in range(friction.shape[0]):
        i = 3 * c
        if status[c] == OPEN or x[i + 2] <= distance:
            continue
        if status[c] == SLIDING:
            slope[c, 0, 2], slope[c, 1, 2] = _drag(u[i], u[i + 1], friction[c], slip[c])
            slope[c, 2, 2] = 1.0
            continue
        length, square = np.hypot(x[i], x[i + 1]), 1.0 + friction[c] ** 2
        on_side = length >= friction[c] * x[i + 2] - distance and length > 0.0
        outward = (x[i] / length, x[i + 1] / length, -friction[c]) if on_side else (0.0, 0.0, 0.0)
        for j in range(3):
            for k in range(3):
                slope[c, j, k] = (1.0 if j == k else 0.0) - outward[j] * outward[k] / square
    for j in range(friction.shape[0], status.shape[0]):
        i, m = j + 2 * friction.shape[0], j - friction.shape[0]
        if status[j] == SLIDING:
            fixed[i] = lower[m] if u[i] > 0.0 else upper[m]
        elif status[j] == STICKING:
            if x[i] <= lower[m] + distance:
                fixed[i] = lower[m]
            elif x[i] >= upper[m] - distance:
                fixed[i] = upper[m]
            else:
                slope[j, 0, 0] = 1.0
    H = transposed @ block_times(slope, Q, friction.shape[0], NO_ROLLING)
    H += OPTIONS.accuracy * np.eye(H.shape[0])
    return solve(H, goal - transposed @ fixed)


@kernel
def _columns_in(L, rows):
    """Return a matrix (n, q) whose columns span the columns `rows` of ``L L^T``, for L (n, k)."""
    chosen = L[rows]
    squares = chosen.T @ chosen
    common = np.full(squares.shape[0], max(np.trace(squares), TINY))
    return L @ np.ascontiguousarray(_orthonormal(pivoted_factor(squares, common)[0]).T)


@kernel
def _orthonormal(L):
    """Return rows (k, n), an orthonormal basis of the columns of L (n, k), by Gram and Schmidt's method done twice."""
    rows = L.T.copy()
    for j in range(rows.shape[0]):
        row, before = rows[j], rows[:j]
        for _ in range(2):
            row -= (before @ row) @ before
        row /= np.sqrt(np.dot(row, row))
    return rows


@kernel
def _project(allowed, z):
    """Return P(z) (n,), see the module: the point of K nearest to z (n,) but for what slides, and its derivative."""
    (friction, slip, lower, upper, _), u, status = allowed
    x, slope = np.zeros(z.shape[0]), np.zeros((status.shape[0], 3, 3))
    for c in range(friction.shape[0]):
        i = 3 * c
        if status[c] == OPEN:
            continue
        if status[c] == SLIDING:
            t0, t1 = _drag(u[i], u[i + 1], friction[c], slip[c])
            if z[i + 2] > 0.0:
                x[i], x[i + 1], x[i + 2] = z[i + 2] * t0, z[i + 2] * t1, z[i + 2]
                slope[c, 0, 2], slope[c, 1, 2], slope[c, 2, 2] = t0, t1, 1.0
        else:
            _project_cone(z[i : i + 3], friction[c], x[i : i + 3], slope[c])
    for j in range(lower.shape[0]):
        i, member = 3 * friction.shape[0] + j, friction.shape[0] + j
        if status[member] == SLIDING:
            x[i] = lower[j] if u[i] > 0.0 else upper[j]
        elif status[member] == STICKING:
            x[i] = min(max(z[i], lower[j]), upper[j])
            slope[member, 0, 0] = 1.0 if lower[j] < z[i] < upper[j] else 0.0
    return x, slope


@kernel(inline=True)
def _drag(u0, u1, friction, slip):
    """Return the tangential force, per unit of the normal one, of a contact that slides with u or along `slip`."""
    d0, d1 = slip
    speed = np.hypot(u0, u1)
    if d0 == 0.0 and d1 == 0.0 and speed > 0.0:
        d0, d1 = u0 / speed, u1 / speed
    return -friction * d0, -friction * d1


@kernel(inline=True)
def _set_ray(slope, t0, t1, square):
    """Set `slope` (3, 3) to the projection onto the direction (t0, t1, 1), whose length has this `square`."""
    slope[0, 0], slope[0, 1], slope[0, 2] = t0 * t0 / square, t0 * t1 / square, t0 / square
    slope[1, 0], slope[1, 1], slope[1, 2] = slope[0, 1], t1 * t1 / square, t1 / square
    slope[2, 0], slope[2, 1], slope[2, 2] = slope[0, 2], slope[1, 2], 1.0 / square


@kernel
def _project_cone(z, friction, x, slope):
    """Set x to the point of ``|x_t| <= c x_n`` nearest to z, and slope to the derivative, in place."""
    length = np.hypot(z[0], z[1])
    if np.isinf(friction):
        x[:2], x[2] = z[:2], max(z[2], 0.0)
        slope[0, 0] = slope[1, 1] = 1.0
        slope[2, 2] = 1.0 if z[2] > 0.0 else 0.0
        return
    if length <= friction * z[2]:
        x[:] = z
        slope[0, 0] = slope[1, 1] = slope[2, 2] = 1.0
        return
    height = (z[2] + friction * length) / (1.0 + friction**2)
    if height <= 0.0:
        return
    d0, d1 = z[0] / length, z[1] / length
    x[0], x[1], x[2] = friction * height * d0, friction * height * d1, height
    _set_ray(slope, friction * d0, friction * d1, 1.0 + friction**2)
    around = friction * height / length
    slope[0, 0] += around * d1 * d1
    slope[1, 1] += around * d0 * d0
    slope[0, 1] -= around * d0 * d1
    slope[1, 0] -= around * d0 * d1

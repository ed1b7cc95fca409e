"""An interior-point method for contact problems: few iterations, however many rows depend on each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import newton
from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.second_order_cone import (
    are_inside,
    block_products,
    inverse_step_length,
    jordan_product,
    jordan_quotient,
    nesterov_todd_scaling,
)
from constrained_sim.linalg.cholesky import range_factor
from constrained_sim.linalg.elimination import eliminate, substitute
from constrained_sim.linalg.rank import EPSILON, TINY
from constrained_sim.validation import Array


class Interior(NamedTuple):
    """A point inside all cones and intervals, scaled so that its numbers are of the order of 1.

    Rows of contacts with friction come first, [n, t1, t2] each: x and y. Then those in intervals, z: normal rows of
    other contacts, and the box rows. Each finite bound has a slack, its distance from z, and a multiplier.

    Attributes:
        A: (n, n) Delassus matrix.
        L: (n, rank) its factor, ``A = L L^T``.
        q: (n,) velocities without impulses.
        rows: (n,) of the problem that these are.
        unscale: (n,) their impulses in units of the problem [N s].
        x: (k, 3) impulses of contacts with friction, inside their cones.
        y: (k, 3) velocities of these, with the slip added to the normal one.
        z: (m,) impulses of the other rows.
        bounds: (w,) which entry of z each bound limits.
        sides: (w,) 1 of a lower bound, -1 of an upper one.
        ends: (w,) values of the bounds, times their sides.
        multipliers: (w,) velocities that they allow.
    """

    A: Array
    L: Array
    q: Array
    rows: npt.NDArray[np.int64]
    unscale: Array
    x: Array
    y: Array
    z: Array
    bounds: npt.NDArray[np.int64]
    sides: Array
    ends: Array
    multipliers: Array


class Linear(NamedTuple):
    """Newton's equations at a point, see :func:`_solve`.

    Attributes:
        slack: (w,) distance of z from each bound.
        slip: (k, 2) derivative of what the slip adds to the normal velocity.
        W: (k, 3, 3) scaling of the cones, ``W x = W^-1 y``.
        inverse: (k, 3, 3) of W.
        point: (k, 3) ``W x``.
        stiffness: (m,) of the bounds.
        X: (n, rank) ``D^-1 P L``.
        factors: (rank, rank) of ``1 + L^T X``.
        pivots: (rank,) of these.
    """

    slack: Array
    slip: Array
    W: Array
    inverse: Array
    point: Array
    stiffness: Array
    X: Array
    factors: Array
    pivots: npt.NDArray[np.int64]


class Step(NamedTuple):
    """Changes of x (k, 3), y (k, 3), z (m,) and of the multipliers (w,)."""

    x: Array
    y: Array
    z: Array
    multipliers: Array


@kernel
def interior_point(problem, r, tolerance, steps):
    """Solve contacts and box rows from inside all cones; r itself if this does not come nearer than r (n,) is.

    Problems with known slip, rolling friction, or friction without bound are left as they are.

    With x = (c r_n, r_t) and y = (u_n / c + |u_t|, u_t), Signorini's and Coulomb's laws say that x and y lie in the
    cone ``|z_t| <= z_0``, at right angles (De Saxce and Feng, 1998). The method follows the points at which their
    Jordan product is mu times the cone's unit, mu towards 0. What couples the normal velocity to the slip, ``|u_t|``,
    is differentiated too, so that this solves the problem itself and not its convex relaxation; less so after a step
    that had to be short, as where contacts come to rest whose slip may have any direction. A row in an interval has,
    inside, a multiplier for each finite bound, whose product with the distance from it is mu.

    Each step is Newton's with both cones scaled alike (Nesterov and Todd, Self-scaled barriers and interior-point
    methods for convex programming, 1997), predicted and corrected (Mehrotra, On the implementation of a primal-dual
    interior point method, 1992). Its matrix is the Delassus matrix plus one that is positive definite as long as mu is
    positive: that rows depend on each other does no harm, and makes what is factored as small as their rank.

    A few steps of Newton's method on the natural map end it. It always begins anew, not from r. Arguments and result
    are those of :func:`~constrained_sim.contact_solvers.semismooth_newton.semismooth_newton`.

    Source: Acary, Armand, Nguyen and Shpakovych, Second-order cone programming for frictional contact mechanics using
    interior point algorithm, 2023.
    """
    laws, least = problem.laws, error_of(problem, r)
    if laws.slip.any() or laws.rolling.shape[0] or np.isinf(laws.friction).any() or (laws.lower >= laws.upper).any():
        return r, least, 0
    best, last = r, r
    interior, length, coupling, done = _begin(problem), 1.0, 1.0, 0
    while length > OPTIONS.stalled and least > tolerance and done < steps:
        length, done = _advance(interior, coupling), done + 1
        coupling = OPTIONS.caution * coupling if length < OPTIONS.short_step else min(1.0, 2.0 * coupling)
        last = _impulse(interior, r.shape[0])
        error = error_of(problem, last)
        if error < least:
            best, least = last, error
    last, error, more = newton(problem, last, tolerance, OPTIONS.newton_steps)
    return (last, error, done + more) if error < least else (best, least, done + more)


@kernel
def _begin(problem):
    """Return the units of all cones, and the middle of all intervals, or a unit away from their only bound."""
    G, b, _, _ = problem
    rows, size, low, high, cones = _scaled_rows(problem)
    end = rows.shape[0]
    A, q, unit = np.empty((end, end)), np.empty(end), TINY
    for i in range(end):
        q[i] = size[i] * b[rows[i]]
        unit = max(unit, abs(q[i]))
        for j in range(end):
            A[i, j] = size[i] * G[rows[i], rows[j]] * size[j]
    x, y = np.zeros((cones // 3, 3)), np.zeros((cones // 3, 3))
    x[:, 0] = y[:, 0] = 1.0
    z = np.empty(end - cones)
    bounds, sides, ends = np.empty(2 * z.shape[0], dtype=np.int64), np.empty(2 * z.shape[0]), np.empty(2 * z.shape[0])
    w = 0
    for k in range(z.shape[0]):
        scale = unit * size[cones + k]
        bottom, top = low[cones + k] / scale, high[cones + k] / scale
        for side, bound in ((1.0, bottom), (-1.0, top)):
            if np.isfinite(bound):
                bounds[w], sides[w], ends[w] = k, side, side * bound
                w += 1
        z[k] = _inner(bottom, top)
    return Interior(
        A, range_factor(A), q / unit, rows, unit * size, x, y, z, bounds[:w], sides[:w], ends[:w], np.ones(w)
    )


@kernel
def _scaled_rows(problem):
    """Return the rows of a point in their order, their scales, lower and upper bounds, and how many are of cones."""
    friction, _, lower, upper, _ = problem.laws
    p, contacts, n = problem.p, friction.shape[0], problem.b.shape[0]
    rows, size = np.empty(n, dtype=np.int64), np.empty(n)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    end = 0
    for c in range(contacts):
        if friction[c] > 0.0:
            for row, divisor in ((3 * c + 2, friction[c]), (3 * c, 1.0), (3 * c + 1, 1.0)):
                rows[end], size[end] = row, np.sqrt(p[3 * c + 2]) / divisor
                end += 1
    cones = end
    for c in range(contacts):
        if friction[c] == 0.0:
            rows[end], size[end], low[end] = 3 * c + 2, np.sqrt(p[3 * c + 2]), 0.0
            end += 1
    for j in range(lower.shape[0]):
        row = 3 * contacts + j
        rows[end], size[end], low[end], high[end] = row, np.sqrt(p[row]), lower[j], upper[j]
        end += 1
    return rows[:end].copy(), size[:end].copy(), low, high, cones


@kernel(inline=True)
def _inner(bottom, top):
    """Return the middle of an interval, or what is a unit away from its only bound; 0 if it has none."""
    if np.isfinite(bottom):
        return 0.5 * (bottom + top) if np.isfinite(top) else bottom + 1.0
    return top - 1.0 if np.isfinite(top) else 0.0


@kernel(inline=True)
def _impulse(interior, size):
    """Return (size,) the impulses of all rows of the problem [N s]."""
    r, cones = np.zeros(size), interior.x.size
    for i in range(interior.rows.shape[0]):
        value = interior.x[i // 3, i % 3] if i < cones else interior.z[i - cones]
        r[interior.rows[i]] = interior.unscale[i] * value
    return r


@kernel
def _advance(interior, coupling):
    """Move the point by one step, in place; return which part of it was possible, none where rounding ends the way."""
    x, y, z, multipliers = interior.x, interior.y, interior.z, interior.multipliers
    bounds, sides = interior.bounds, interior.sides
    slack = sides * z[bounds] - interior.ends
    mu = (np.sum(x * y) + np.dot(slack, multipliers)) / max(x.shape[0] + multipliers.shape[0], 1)
    if not (are_inside(x) and are_inside(y) and (slack > 0.0).all() and (multipliers > 0.0).all() and mu > EPSILON):
        return 0.0
    linear, rest = _linearize(interior, slack, coupling)
    if not are_inside(linear.point):
        return 0.0
    products, slack_products = -jordan_product(linear.point, linear.point), -slack * multipliers
    step = _towards(interior, linear, rest, products, slack_products)
    centring = (1.0 - _possible(interior, slack, step)) ** OPTIONS.centring
    products -= jordan_product(block_products(linear.W, step.x), block_products(linear.inverse, step.y))
    products[:, 0] += centring * mu
    slack_products += centring * mu - sides * step.z[bounds] * step.multipliers
    step = _towards(interior, linear, (1.0 - centring) * rest, products, slack_products)
    length = _possible(interior, slack, step)
    x += length * step.x
    y += length * step.y
    z += length * step.z
    multipliers += length * step.multipliers
    return length


@kernel
def _linearize(interior, slack, coupling):
    """Return Newton's equations at the point, and by how much its velocities miss those of its impulses."""
    x, y, z, multipliers = interior.x, interior.y, interior.z, interior.multipliers
    bounds, sides, count = interior.bounds, interior.sides, interior.x.shape[0]
    slip, W, inverse = np.empty((count, 2)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    rest = -interior.q - interior.A @ np.concatenate((x.ravel(), z))
    rest[: x.size] += y.ravel()
    stiffness = np.zeros(z.shape[0])
    for w in range(multipliers.shape[0]):
        rest[x.size + bounds[w]] += sides[w] * multipliers[w]
        stiffness[bounds[w]] += multipliers[w] / slack[w]
    for c in range(count):
        speed = max(np.hypot(y[c, 1], y[c, 2]), TINY)
        rest[3 * c] -= speed
        slip[c, 0], slip[c, 1] = coupling * y[c, 1] / speed, coupling * y[c, 2] / speed
        nesterov_todd_scaling(x[c], y[c], W[c], inverse[c])
    _couple(slip, rest)
    X, factors, pivots = _reduced(interior.L, slip, inverse, stiffness)
    return Linear(slack, slip, W, inverse, block_products(W, x), stiffness, X, factors, pivots), rest


@kernel
def _reduced(L, slip, inverse, stiffness):
    """Return ``X = D^-1 P L`` and the factors of ``1 + L^T X``, see :func:`_solve`."""
    X = np.empty_like(L)
    for c in range(slip.shape[0]):
        i, V = 3 * c, inverse[c]
        for j in range(L.shape[1]):
            l1, l2 = L[i + 1, j], L[i + 2, j]
            l0 = L[i, j] + slip[c, 0] * l1 + slip[c, 1] * l2
            h0 = V[0, 0] * l0 + V[0, 1] * l1 + V[0, 2] * l2
            h1 = V[1, 0] * l0 + V[1, 1] * l1 + V[1, 2] * l2
            h2 = V[2, 0] * l0 + V[2, 1] * l1 + V[2, 2] * l2
            X[i, j] = V[0, 0] * h0 + V[0, 1] * h1 + V[0, 2] * h2
            X[i + 1, j] = V[1, 0] * h0 + V[1, 1] * h1 + V[1, 2] * h2
            X[i + 2, j] = V[2, 0] * h0 + V[2, 1] * h1 + V[2, 2] * h2
    for k in range(stiffness.shape[0]):
        i, divisor = 3 * slip.shape[0] + k, max(stiffness[k], OPTIONS.least_stiffness)
        for j in range(L.shape[1]):
            X[i, j] = L[i, j] / divisor
    H = L.T @ X
    for i in range(H.shape[0]):
        H[i, i] += 1.0
    factors, pivots = eliminate(H)
    return X, factors, pivots


@kernel
def _solve(interior, linear, right):
    """Return the d (n,) with ``(P A + D) d = right``.

    D has the blocks ``W W`` of the cones, then the stiffness of the bounds; P adds the slip's part of the tangential
    rows to the normal ones. With ``A = L L^T``, what is factored has the size of the rank (Woodbury). A second pass
    takes back what rounding left, and that rows without bounds were given a little stiffness.
    """
    flexible = 1.0 / np.maximum(linear.stiffness, OPTIONS.least_stiffness)
    d, rest = np.zeros_like(right), right
    for again in range(2):
        if again:
            change = interior.A @ d
            _couple(linear.slip, change)
            rest = right - change - _squares_times(linear.W, linear.stiffness, d)
        y = _squares_times(linear.inverse, flexible, rest)
        d += y - linear.X @ substitute(linear.factors, linear.pivots, y @ interior.L)
    return d


@kernel(inline=True)
def _couple(slip, v):
    """Add the slip's part of the tangential rows of v (n,) to the normal ones, in place."""
    for c in range(slip.shape[0]):
        v[3 * c] += slip[c, 0] * v[3 * c + 1] + slip[c, 1] * v[3 * c + 2]


@kernel
def _squares_times(W, diagonal, v):
    """Return (n,) the products of the squares of W (k, 3, 3), then of the `diagonal` (m,), with v (n,)."""
    product, cones = np.empty_like(v), 3 * W.shape[0]
    product[:cones] = block_products(W, block_products(W, v[:cones].reshape(-1, 3))).ravel()
    product[cones:] = diagonal * v[cones:]
    return product


@kernel
def _towards(interior, linear, rest, products, slack_products):
    """Return the step that changes the products of both kinds thus, and the velocities by `rest` (n,)."""
    bounds, sides, W, cones = interior.bounds, interior.sides, linear.W, linear.point.size
    goal = block_products(W, jordan_quotient(products, linear.point))
    right = rest.copy()
    right[:cones] += goal.ravel()
    for w in range(bounds.shape[0]):
        right[cones + bounds[w]] += sides[w] * slack_products[w] / linear.slack[w]
    step = _solve(interior, linear, right)
    dx, dz = step[:cones].copy().reshape(goal.shape), step[cones:].copy()
    allowed = (slack_products - interior.multipliers * sides * dz[bounds]) / linear.slack
    return Step(dx, goal - block_products(W, block_products(W, dx)), dz, allowed)


@kernel
def _possible(interior, slack, step):
    """Return which part of a step can be done, at most 1."""
    loss = OPTIONS.inside
    for c in range(interior.x.shape[0]):
        loss = max(loss, inverse_step_length(interior.x[c], step.x[c]), inverse_step_length(interior.y[c], step.y[c]))
    for w in range(slack.shape[0]):
        of_slack = interior.sides[w] * step.z[interior.bounds[w]] / slack[w]
        loss = max(loss, -of_slack, -step.multipliers[w] / interior.multipliers[w])
    return OPTIONS.inside / loss

"""An interior-point method for contact problems: few iterations, however many rows depend on each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import finish
from constrained_sim.contact_solvers.natural_map import natural_map
from constrained_sim.contact_solvers.problem import SUFFICIENT
from constrained_sim.contact_solvers.status import largest_impulse
from constrained_sim.linalg.cholesky import range_factor
from constrained_sim.linalg.elimination import eliminate, substitute
from constrained_sim.linalg.products import largest_entry
from constrained_sim.validation import Array

INSIDE = 0.99
"""Share of the way to the boundary of the cones that a step goes at most."""

SHORT, LONG = 0.3, 0.9
"""Parts of a step after which the derivative of the slip counts less, or more again."""

STALLED = 1e-6
"""Part of a step from which on no further one leads nearer."""

EXACT = 1e-16
"""Mean product of forces and velocities, in units of the problem, that is rounding."""

ENDLESS = 1e10
"""Largest impulse, in units of the problem: where there is no solution they grow without end."""

LEAST_STIFFNESS = 1e-9
"""Least stiffness of a row without bounds, in units of the problem, while the matrix is factored."""

FINISH = 10
"""Steps of Newton's method from where this ends."""

SMOOTHING = 0.0, 0.3
"""How smooth the slip is where it begins, and where it begins again since that led nowhere."""


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


@kernel
def interior_point(G, b, friction, slip, lower, upper, rolling, p, r, tolerance, steps):  # type: ignore[no-untyped-def]
    """Solve contacts and box rows from inside all cones.

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

    A few steps of Newton's method on the natural map end it, see
    :func:`~constrained_sim.contact_solvers.active_set_newton.finish`. It always begins anew, not from r. Where it came
    to no end within `steps` it begins again, the slip smoothed, see :func:`solve_from_center`. Arguments and result are
    those of :func:`~constrained_sim.contact_solvers.semismooth_newton.semismooth_newton`.

    Source: Acary, Armand, Nguyen and Shpakovych, Second-order cone programming for frictional contact mechanics using
    interior point algorithm, 2023.
    """
    best, least, done = r, np.inf, 0
    for smoothing in SMOOTHING:
        best, least, more = solve_from_center(
            G, b, friction, slip, lower, upper, rolling, p, best, tolerance, steps, smoothing
        )
        done += more
        if least <= max(tolerance, SUFFICIENT * largest_impulse(p, b, best)):
            break
    return best, least, done


@kernel
def solve_from_center(G, b, friction, slip, lower, upper, rolling, p, r, tolerance, steps, smoothing):  # type: ignore[no-untyped-def]
    """Return the better one of r and what one beginning of :func:`interior_point` leads to, its error, and the steps.

    The slip is ``|u_t|^2 / sqrt(|u_t|^2 + smoothing mu)``: with a `smoothing` it is smooth on the way, and right in the
    end, at rest as well as in motion.
    """
    least = largest_entry(natural_map(G, b, friction, slip, lower, upper, rolling, p, r))
    if slip.any() or rolling.shape[0] or np.isinf(friction).any() or (lower >= upper).any():
        return r, least, 0
    interior = _begin(G, b, friction, lower, upper, p)
    found, error, done = _follow(interior, G, b, friction, slip, lower, upper, rolling, p, smoothing, tolerance, steps)
    return (found, error, done) if error < least else (r, least, done)


@kernel
def _follow(interior, G, b, friction, slip, lower, upper, rolling, p, smoothing, tolerance, steps):  # type: ignore[no-untyped-def]
    """Return the impulses to which the way from a point `interior` leads, their error, and the steps that it took.

    The point is changed in place.
    """
    best, least, length, coupling, done = np.zeros_like(b), np.inf, 1.0, 1.0, 0
    r = best
    while length > STALLED and least > tolerance and done < steps:
        length, done = _advance(interior, coupling, smoothing), done + 1
        if length < SHORT:
            coupling *= 0.1
        elif length > LONG:
            coupling = min(1.0, 2.0 * coupling)
        r = _impulse(interior, b.shape[0])
        error = largest_entry(natural_map(G, b, friction, slip, lower, upper, rolling, p, r))
        if error < least:
            best, least = r, error
    r, error, more = finish(G, b, friction, slip, lower, upper, rolling, p, r, tolerance, FINISH)
    done += more
    if error < least:
        best, least = r, error
    return best, least, done


@kernel
def _begin(G, b, friction, lower, upper, p):  # type: ignore[no-untyped-def]
    """Return the units of all cones, and the middle of all intervals, or a unit away from their only bound."""
    n, contacts = b.shape[0], friction.shape[0]
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
    rows, size = rows[:end], size[:end]
    A, q, unit = np.empty((end, end)), np.empty(end), 1e-300
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
        if np.isfinite(bottom):
            bounds[w], sides[w], ends[w] = k, 1.0, bottom
            w += 1
        if np.isfinite(top):
            bounds[w], sides[w], ends[w] = k, -1.0, -top
            w += 1
        z[k] = _inner(bottom, top)
    return Interior(
        A, range_factor(A), q / unit, rows, unit * size, x, y, z, bounds[:w], sides[:w], ends[:w], np.ones(w)
    )


@kernel(inline=True)
def _inner(bottom, top):  # type: ignore[no-untyped-def]
    """Return the middle of an interval, or what is a unit away from its only bound; 0 if it has none."""
    if np.isfinite(bottom):
        return 0.5 * (bottom + top) if np.isfinite(top) else bottom + 1.0
    return top - 1.0 if np.isfinite(top) else 0.0


@kernel(inline=True)
def _impulse(interior, size):  # type: ignore[no-untyped-def]
    """Return (size,) the impulses of all rows of the problem [N s]."""
    r, cones = np.zeros(size), interior.x.size
    for i in range(interior.rows.shape[0]):
        value = interior.x[i // 3, i % 3] if i < cones else interior.z[i - cones]
        r[interior.rows[i]] = interior.unscale[i] * value
    return r


@kernel
def _advance(interior, coupling, smoothing):  # type: ignore[no-untyped-def]
    """Move the point by one step, in place; return which part of it was possible, none where rounding ends the way."""
    A, L, q, x, y, z = interior.A, interior.L, interior.q, interior.x, interior.y, interior.z
    bounds, sides, ends, multipliers = interior.bounds, interior.sides, interior.ends, interior.multipliers
    slack = sides * z[bounds] - ends
    mu = (np.sum(x * y) + np.dot(slack, multipliers)) / max(x.shape[0] + multipliers.shape[0], 1)
    largest = 0.0
    for c in range(x.shape[0]):
        largest = max(largest, x[c, 0])
        if not (_determinant(x[c]) > 0.0 and _determinant(y[c]) > 0.0):
            return 0.0
    for value in z:
        largest = max(largest, abs(value))
    for w in range(multipliers.shape[0]):
        if not (slack[w] > 0.0 and multipliers[w] > 0.0):
            return 0.0
    if not (mu > EXACT and largest < ENDLESS):
        return 0.0

    slip = np.empty((x.shape[0], 2))
    W, inverse = np.empty((x.shape[0], 3, 3)), np.empty((x.shape[0], 3, 3))
    cones = x.size
    rest = -q - A @ np.concatenate((x.ravel(), z))
    rest[:cones] += y.ravel()
    for w in range(multipliers.shape[0]):
        rest[cones + bounds[w]] += sides[w] * multipliers[w]
    for c in range(x.shape[0]):
        square = y[c, 1] ** 2 + y[c, 2] ** 2
        smoothed = max(square + smoothing * mu, 1e-300)
        rest[3 * c] -= square / np.sqrt(smoothed)
        for i in range(2):
            slip[c, i] = coupling * (2.0 - square / smoothed) * y[c, 1 + i] / np.sqrt(smoothed)
        _scale(x[c], y[c], W[c], inverse[c])
    _couple(slip, rest)
    stiffness = np.zeros(z.shape[0])
    for w in range(multipliers.shape[0]):
        stiffness[bounds[w]] += multipliers[w] / slack[w]
    point = _times(W, x)
    for c in range(x.shape[0]):
        if not _determinant(point[c]) > 0.0:
            return 0.0
    matrix = A, L, slip, W, inverse, stiffness, *_reduced(L, slip, inverse, stiffness)

    products, slack_products = -_product(point, point), -slack * multipliers
    dx, dz, dy, d_multipliers = _towards(
        matrix, rest, W, point, products, bounds, sides, slack, multipliers, slack_products
    )
    centring = (1.0 - _possible(x, dx, y, dy, sides * dz[bounds] / slack, d_multipliers / multipliers)) ** 1.5
    products -= _product(_times(W, dx), _times(inverse, dy))
    products[:, 0] += centring * mu
    slack_products += centring * mu - sides * dz[bounds] * d_multipliers
    dx, dz, dy, d_multipliers = _towards(
        matrix, (1.0 - centring) * rest, W, point, products, bounds, sides, slack, multipliers, slack_products
    )
    length = _possible(x, dx, y, dy, sides * dz[bounds] / slack, d_multipliers / multipliers)
    x += length * dx
    y += length * dy
    z += length * dz
    multipliers += length * d_multipliers
    return length


@kernel
def _reduced(L, slip, inverse, stiffness):  # type: ignore[no-untyped-def]
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
        i, divisor = 3 * slip.shape[0] + k, max(stiffness[k], LEAST_STIFFNESS)
        for j in range(L.shape[1]):
            X[i, j] = L[i, j] / divisor
    H = L.T @ X
    for i in range(H.shape[0]):
        H[i, i] += 1.0
    factors, pivots = eliminate(H)
    return X, factors, pivots


@kernel
def _solve(matrix, right):  # type: ignore[no-untyped-def]
    """Return the d (n,) with ``(P A + D) d = right``.

    D has the blocks ``W W`` of the cones, then the stiffness of the bounds; P adds the slip's part of the tangential
    rows to the normal ones. With ``A = L L^T``, what is factored has the size of the rank (Woodbury). A second pass
    takes back what rounding left, and that rows without bounds were given a little stiffness.
    """
    A, L, slip, W, inverse, stiffness, X, factors, pivots = matrix
    flexible = 1.0 / np.maximum(stiffness, LEAST_STIFFNESS)
    d, rest = np.zeros_like(right), right
    for again in range(2):
        if again:
            change = A @ d
            _couple(slip, change)
            rest = right - change - _squares_times(W, stiffness, d)
        y = _squares_times(inverse, flexible, rest)
        d += y - X @ substitute(factors, pivots, y @ L)
    return d


@kernel(inline=True)
def _couple(slip, v):  # type: ignore[no-untyped-def]
    """Add the slip's part of the tangential rows of v (n,) to the normal ones, in place."""
    for c in range(slip.shape[0]):
        v[3 * c] += slip[c, 0] * v[3 * c + 1] + slip[c, 1] * v[3 * c + 2]


@kernel
def _squares_times(W, diagonal, v):  # type: ignore[no-untyped-def]
    """Return (n,) the products of the squares of W (k, 3, 3), then of the `diagonal` (m,), with v (n,)."""
    product, cones = np.empty_like(v), 3 * W.shape[0]
    product[:cones] = _times(W, _times(W, v[:cones].reshape(-1, 3))).ravel()
    product[cones:] = diagonal * v[cones:]
    return product


@kernel
def _towards(matrix, rest, W, point, products, bounds, sides, slack, multipliers, slack_products):  # type: ignore[no-untyped-def]
    """Return the step (x, z, y, push) that changes the products of both kinds thus, and the velocities by `rest`."""
    right, cones = rest.copy(), point.size
    goal = _times(W, _divided(products, point))
    right[:cones] += goal.ravel()
    for w in range(multipliers.shape[0]):
        right[cones + bounds[w]] += sides[w] * slack_products[w] / slack[w]
    step = _solve(matrix, right)
    dx, dz = step[:cones].copy().reshape(point.shape), step[cones:]
    return dx, dz, goal - _times(W, _times(W, dx)), (slack_products - multipliers * sides * dz[bounds]) / slack


@kernel
def _possible(x, dx, y, dy, of_slack, of_multipliers):  # type: ignore[no-untyped-def]
    """Return which part of a step can be done, at most 1, for the parts by which slack and multipliers change."""
    loss = INSIDE
    for c in range(x.shape[0]):
        loss = max(loss, _loss(x[c], dx[c]), _loss(y[c], dy[c]))
    for w in range(of_slack.shape[0]):
        loss = max(loss, -of_slack[w], -of_multipliers[w])
    return INSIDE / loss


@kernel(inline=True)
def _scale(x, y, W, inverse):  # type: ignore[no-untyped-def]
    """Set W (3, 3), symmetric with ``W x = W^-1 y``, and its inverse, for points inside the cone (3,)."""
    size_x, size_y = np.sqrt(_determinant(x)), np.sqrt(_determinant(y))
    ratio = np.sqrt(size_y / size_x)
    x0, x1, x2, y0, y1, y2 = x[0] / size_x, x[1] / size_x, x[2] / size_x, y[0] / size_y, y[1] / size_y, y[2] / size_y
    twice = np.sqrt(2.0 * (1.0 + x0 * y0 + x1 * y1 + x2 * y2))
    w0, w1, w2 = (x0 + y0) / twice, (y1 - x1) / twice, (y2 - x2) / twice
    across = 1.0 / (1.0 + w0)
    for sign, factor, matrix in ((1.0, ratio, W), (-1.0, 1.0 / ratio, inverse)):
        matrix[0, 0] = factor * w0
        matrix[0, 1] = matrix[1, 0] = sign * factor * w1
        matrix[0, 2] = matrix[2, 0] = sign * factor * w2
        matrix[1, 1], matrix[2, 2] = factor * (1.0 + w1 * w1 * across), factor * (1.0 + w2 * w2 * across)
        matrix[1, 2] = matrix[2, 1] = factor * w1 * w2 * across


@kernel(inline=True)
def _determinant(x):  # type: ignore[no-untyped-def]
    """Return ``x_0^2 - |x_t|^2`` of x (3,)."""
    length = np.hypot(x[1], x[2])
    return (x[0] - length) * (x[0] + length)


@kernel(inline=True)
def _product(x, y):  # type: ignore[no-untyped-def]
    """Return the Jordan products ``(x . y, x_0 y_t + y_0 x_t)`` (k, 3)."""
    z = np.empty_like(x)
    for c in range(x.shape[0]):
        z[c, 0] = x[c, 0] * y[c, 0] + x[c, 1] * y[c, 1] + x[c, 2] * y[c, 2]
        z[c, 1], z[c, 2] = x[c, 0] * y[c, 1] + y[c, 0] * x[c, 1], x[c, 0] * y[c, 2] + y[c, 0] * x[c, 2]
    return z


@kernel(inline=True)
def _divided(z, x):  # type: ignore[no-untyped-def]
    """Return the y (k, 3) whose Jordan product with x is z."""
    y = np.empty_like(z)
    for c in range(x.shape[0]):
        along = x[c, 1] * z[c, 1] + x[c, 2] * z[c, 2]
        y[c, 0] = (x[c, 0] * z[c, 0] - along) / _determinant(x[c])
        y[c, 1], y[c, 2] = (z[c, 1] - y[c, 0] * x[c, 1]) / x[c, 0], (z[c, 2] - y[c, 0] * x[c, 2]) / x[c, 0]
    return y


@kernel(inline=True)
def _times(W, x):  # type: ignore[no-untyped-def]
    """Return the products (k, 3) of the matrices W (k, 3, 3) and x (k, 3)."""
    product = np.empty_like(x)
    for c in range(x.shape[0]):
        for i in range(3):
            product[c, i] = W[c, i, 0] * x[c, 0] + W[c, i, 1] * x[c, 1] + W[c, i, 2] * x[c, 2]
    return product


@kernel(inline=True)
def _loss(x, change):  # type: ignore[no-untyped-def]
    """Return the inverse of how many times `change` can be added to x (3,) before it leaves its cone; 0 for ever.

    In the axes in which x is a multiple of the cone's unit, the smallest eigenvalue of the change tells.
    """
    size = np.sqrt(_determinant(x))
    u0, u1, u2 = x[0] / size, x[1] / size, x[2] / size
    along = u0 * change[0] - u1 * change[1] - u2 * change[2]
    across = (along + change[0]) / (u0 + 1.0)
    return (np.hypot(change[1] - across * u1, change[2] - across * u2) - along) / size

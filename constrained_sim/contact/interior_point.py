"""An interior-point method for contact problems: few iterations, however many rows depend on each other."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from constrained_sim.contact.kernels import newton
from constrained_sim.contact.problem import ContactProblem
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
"""Largest impulse, likewise: where there is no solution they grow without end."""

FINISH = 10
"""Steps of Newton's method from where this ends."""


def interior_point(
    problem: ContactProblem, scale: Array, impulse: Array, tolerance: float, budget: int
) -> tuple[Array, float, int]:
    """Solve contacts and interval rows from inside all cones; problems with known slip or discs are left as they are.

    With x = (c r_n, r_t) and y = (u_n / c + |u_t|, u_t), Signorini's and Coulomb's laws say that x and y lie in the
    cone ``|z_t| <= z_0``, at right angles (De Saxce and Feng, 1998). The method follows the points at which their
    Jordan product is mu times the cone's unit, mu towards 0. What couples the normal velocity to the slip, ``|u_t|``,
    is differentiated too, so that this solves the problem itself and not its convex relaxation; less so after a step
    that had to be short, as where contacts come to rest whose slip may have any direction. A row in an interval has,
    inside, a multiplier for each finite bound, whose product with the distance from it is mu.

    Each step is Newton's with both cones scaled alike (Nesterov and Todd, Self-scaled barriers and interior-point
    methods for convex programming, 1997), predicted and corrected (Mehrotra, On the implementation of a primal-dual
    interior point method, 1992). Its matrix is the Delassus matrix plus one that is positive definite as long as mu is
    positive: that rows depend on each other does no harm. A few steps of Newton's method on the natural map end it.

    It always begins anew.

    Source: Acary, Armand, Nguyen and Shpakovych, Second-order cone programming for frictional contact mechanics using
    interior point algorithm, 2023.
    """
    if problem.slip.any() or len(problem.discs) or (problem.lower >= problem.upper).any():
        return impulse, problem.error(scale, impulse), 0
    inside, length, done = _Interior(problem, scale), 1.0, 0
    best, least = inside.impulse, np.inf
    while length > STALLED and least > tolerance and done < budget:
        length, done = inside.advance(), done + 1
        r = inside.impulse
        error = problem.error(scale, r)
        if error < least:
            best, least = r, error
    r, error, more = newton(problem.G, problem.b, *problem.laws, scale, best, tolerance, FINISH)
    return (r, error, done + more) if error < least else (best, least, done)


class _Interior:
    """A point inside all cones and intervals, scaled so that its numbers are of the order of 1.

    Rows of contacts with friction come first, [n, t1, t2] each: x and y. Then those in intervals, z: normal rows of
    other contacts, tangential ones of infinite friction, and the interval rows. Each finite bound is a wall, at a
    distance from z, that pushes.
    """

    def __init__(self, problem: ContactProblem, scale: Array) -> None:
        """Begin at the units of all cones and in the middle of all intervals, or a unit away from their only bound."""
        G, b, friction = problem.G, problem.b, problem.friction
        triples = np.arange(3 * len(friction)).reshape(-1, 3)
        has_cone = (friction > 0.0) & np.isfinite(friction)
        cones, pushing, held = triples[has_cone][:, [2, 0, 1]], triples[~has_cone, 2], triples[np.isinf(friction), :2]
        self._rows = np.concatenate([cones.ravel(), pushing, held.ravel(), np.arange(triples.size, len(b))])
        size = np.sqrt(scale[self._rows])
        size[: cones.size] = np.repeat(size[: cones.size : 3], 3)
        size[: cones.size : 3] /= friction[has_cone]
        q = size * b[self._rows]
        unit = max(np.abs(q).max(initial=0.0), 1e-300)
        self._unscale, self._size = unit * size, len(b)
        self._A, self._q = size[:, None] * G[np.ix_(self._rows, self._rows)] * size, q / unit
        self._x, self._y = np.zeros((2, len(cones), 3))
        self._x[:, 0] = self._y[:, 0] = 1.0
        bounds, free = self._unscale[cones.size :], np.full(held.size, np.inf)
        low = np.concatenate([np.zeros(len(pushing)), -free, problem.lower]) / bounds
        high = np.concatenate([np.full(len(pushing), np.inf), free, problem.upper]) / bounds
        below, above, rows = np.isfinite(low), np.isfinite(high), np.eye(len(bounds))
        self._walls = np.vstack([rows[below], -rows[above]])
        self._ends = np.concatenate([low[below], -high[above]])
        inner = np.where(below, low, 0.0) + np.where(above, high, 0.0)
        self._z = np.where(below & above, 0.5 * inner, inner + below - 1.0 * above)
        self._push = np.ones(len(self._ends))
        self._coupling = 1.0

    @property
    def impulse(self) -> Array:
        """(n,) impulses of all rows [N s]."""
        r = np.zeros(self._size)
        r[self._rows] = self._unscale * np.concatenate([self._x.ravel(), self._z])
        return r

    def advance(self) -> float:
        """Do one step; return which part of it was possible, none where rounding ends the way."""
        x, y, walls, push, cones = self._x, self._y, self._walls, self._push, self._x.size
        room = walls @ self._z - self._ends
        speed = np.hypot(y[:, 1], y[:, 2])
        rest = np.concatenate([y.ravel(), push @ walls]) - self._A @ np.concatenate([x.ravel(), self._z]) - self._q
        rest[:cones:3] -= speed
        mu = ((x * y).sum() + room @ push) / max(len(x) + len(push), 1)
        inside = np.concatenate([_determinant(x), _determinant(y), room, push])
        size = max(x[:, 0].max(initial=0.0), np.abs(self._z).max(initial=0.0))
        if not (mu > EXACT and inside.min(initial=1.0) > 0.0 and size < ENDLESS):
            return 0.0

        slip = self._coupling * y[:, 1:] / np.maximum(speed, 1e-300)[:, None]
        W, inverse = _scaling(x, y)
        point, squares = _times(W, x), W @ W
        if not _determinant(point).min(initial=1.0) > 0.0:
            return 0.0
        matrix = _with_slip(self._A, slip)
        blocks = np.arange(cones).reshape(-1, 3)
        matrix[blocks[:, :, None], blocks[:, None, :]] += squares
        matrix[cones:, cones:] += (walls.T * (push / room)) @ walls
        factors, pivots, is_singular = lapack.dgetrf(matrix)
        if is_singular:
            return 0.0

        def towards(products: Array, pushes: Array, share: float) -> tuple[Array, Array, Array, Array]:
            """Return the step (x, z, y, push) that changes the products of both kinds thus, and mends the velocities.

            These by `share` of what they miss.
            """
            goal = _times(W, _divided(products, point))
            right = np.concatenate([goal.ravel(), (pushes / room) @ walls]) + _with_slip(share * rest, slip)
            step, _ = lapack.dgetrs(factors, pivots, right)
            dx, dz = step[:cones].reshape(-1, 3), step[cones:]
            return dx, dz, goal - _times(squares, dx), (pushes - push * (walls @ dz)) / room

        def possible(dx: Array, dz: Array, dy: Array, d_push: Array) -> float:
            """Return which part of a step can be done, at most 1."""
            shrinking = np.concatenate([-(walls @ dz) / room, -d_push / push])
            return min(1.0, INSIDE / max(shrinking.max(initial=0.0), _loss(x, dx), _loss(y, dy), INSIDE))

        products, pushes = -_product(point, point), -room * push
        dx, dz, dy, d_push = predicted = towards(products, pushes, 1.0)
        centring = (1.0 - possible(*predicted)) ** 1.5
        products -= _product(_times(W, dx), _times(inverse, dy))
        products[:, 0] += centring * mu
        pushes += centring * mu - (walls @ dz) * d_push
        dx, dz, dy, d_push = step = towards(products, pushes, 1.0 - centring)
        length = possible(*step)
        self._x, self._z = x + length * dx, self._z + length * dz
        self._y, self._push = y + length * dy, push + length * d_push
        if length < SHORT:
            self._coupling *= 0.1
        elif length > LONG:
            self._coupling = min(1.0, 2.0 * self._coupling)
        return length


def _with_slip(rows: Array, slip: Array) -> Array:
    """Return `rows` with those of the slip, along its direction (k, 2), added to the normal ones."""
    changed, end = rows.copy(), 3 * len(slip)
    changed[0:end:3] += (slip[:, 0] * rows[1:end:3].T + slip[:, 1] * rows[2:end:3].T).T
    return changed


def _scaling(x: Array, y: Array) -> tuple[Array, Array]:
    """Return W (k, 3, 3), symmetric with ``W x = W^-1 y``, and its inverse, for points inside the cones (k, 3)."""
    size_x, size_y = np.sqrt(_determinant(x)), np.sqrt(_determinant(y))
    unit_x, unit_y = x / size_x[:, None], y / size_y[:, None]
    twice = np.sqrt(2.0 * (1.0 + np.einsum("ki,ki->k", unit_x, unit_y)))
    w0, w1 = (unit_x[:, 0] + unit_y[:, 0]) / twice, (unit_y[:, 1:] - unit_x[:, 1:]) / twice[:, None]
    W = np.empty((len(x), 3, 3))
    W[:, 0, 0], W[:, 0, 1:], W[:, 1:, 0] = w0, w1, w1
    W[:, 1:, 1:] = np.eye(2) + w1[:, :, None] * w1[:, None, :] / (1.0 + w0)[:, None, None]
    inverse = W.copy()
    inverse[:, 0, 1:], inverse[:, 1:, 0] = -w1, -w1
    ratio = np.sqrt(size_y / size_x)[:, None, None]
    return ratio * W, inverse / ratio


def _determinant(x: Array) -> Array:
    """Return ``x_0^2 - |x_t|^2`` (k,)."""
    length = np.hypot(x[:, 1], x[:, 2])
    return np.asarray((x[:, 0] - length) * (x[:, 0] + length))


def _product(x: Array, y: Array) -> Array:
    """Return the Jordan product ``(x . y, x_0 y_t + y_0 x_t)`` (k, 3)."""
    z = x[:, :1] * y + y[:, :1] * x
    z[:, 0] = np.einsum("ki,ki->k", x, y)
    return z


def _divided(z: Array, x: Array) -> Array:
    """Return the y (k, 3) whose Jordan product with x is z."""
    along = np.einsum("ki,ki->k", x[:, 1:], z[:, 1:])
    y = np.empty_like(z)
    y[:, 0] = (x[:, 0] * z[:, 0] - along) / _determinant(x)
    y[:, 1:] = (z[:, 1:] - y[:, :1] * x[:, 1:]) / x[:, :1]
    return y


def _times(matrices: Array, x: Array) -> Array:
    return np.einsum("kij,kj->ki", matrices, x)


def _loss(x: Array, change: Array) -> float:
    """Return the inverse of how many times `change` can be added to x (k, 3) before one leaves its cone; 0 for ever.

    In the axes in which x is a multiple of the cone's unit, the smallest eigenvalue of the change tells.
    """
    size = np.sqrt(_determinant(x))
    unit = x / size[:, None]
    along = unit[:, 0] * change[:, 0] - np.einsum("ki,ki->k", unit[:, 1:], change[:, 1:])
    across = change[:, 1:] - ((along + change[:, 0]) / (unit[:, 0] + 1.0))[:, None] * unit[:, 1:]
    return float(((np.hypot(across[:, 0], across[:, 1]) - along) / size).max(initial=0.0))

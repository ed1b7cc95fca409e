"""An interior-point method for contact problems: few iterations, however many rows depend on each other."""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.kernels import newton
from constrained_sim.contact.problem import SUFFICIENT, ContactProblem
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

COUPLINGS = 1.0, 0.2, 0.1
"""How much the derivative of the slip counts where it begins, and where it begins again since that led nowhere."""


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

    It always begins anew; and again with less of that derivative where it came to no end within `budget` steps.

    Source: Acary, Armand, Nguyen and Shpakovych, Second-order cone programming for frictional contact mechanics using
    interior point algorithm, 2023.
    """
    if problem.slip.any() or len(problem.discs) or (problem.lower >= problem.upper).any():
        return impulse, problem.error(scale, impulse), 0
    best, least, done = impulse, np.inf, 0
    for coupling in COUPLINGS:
        r, error, more = _follow(_Interior(problem, scale, coupling), problem, scale, tolerance, budget)
        done += more
        if error < least:
            best, least = r, error
        if least <= max(tolerance, SUFFICIENT * problem.magnitude(scale, best)):
            break
    return best, least, done


def _follow(
    inside: _Interior, problem: ContactProblem, scale: Array, tolerance: float, budget: int
) -> tuple[Array, float, int]:
    """Return the impulses to which the way from a point `inside` leads, their error, and the steps that it took."""
    best, least, length, done = inside.impulse, np.inf, 1.0, 0
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

    def __init__(self, problem: ContactProblem, scale: Array, coupling: float) -> None:
        """Begin at the units of all cones and in the middle of all intervals, or a unit away from their only bound.

        The derivative of the slip counts `coupling` at first.
        """
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
        below, above = np.isfinite(low), np.isfinite(high)
        rows = np.concatenate([np.flatnonzero(below), np.flatnonzero(above)])
        sides = np.concatenate([np.ones(below.sum()), -np.ones(above.sum())])
        self._walls = rows, sides, np.concatenate([low[below], -high[above]])
        inner = np.where(below, low, 0.0) + np.where(above, high, 0.0)
        self._z = np.where(below & above, 0.5 * inner, inner + below - 1.0 * above)
        self._push = np.ones(len(rows))
        self._coupling = coupling

    @property
    def impulse(self) -> Array:
        """(n,) impulses of all rows [N s]."""
        r = np.zeros(self._size)
        r[self._rows] = self._unscale * np.concatenate([self._x.ravel(), self._z])
        return r

    def advance(self) -> float:
        """Do one step; return which part of it was possible, none where rounding ends the way."""
        try:
            length = _advance(self._A, self._q, self._x, self._y, self._z, *self._walls, self._push, self._coupling)
        except np.linalg.LinAlgError:
            return 0.0
        if length < SHORT:
            self._coupling *= 0.1
        elif length > LONG:
            self._coupling = min(1.0, 2.0 * self._coupling)
        return float(length)


@numba.njit(cache=True)
def _advance(A, q, x, y, z, walls, sides, ends, push, coupling):  # type: ignore[no-untyped-def]
    """Change x, y (k, 3), z and push in place, by one step; return which part of it was possible.

    Wall w stands at ``ends[w]`` on one of the `sides` of the row ``walls[w]`` of z, and pushes.

    Raises:
        LinAlgError: the matrix is singular.
    """
    room = sides * z[walls] - ends
    lengths = np.hypot(y[:, 1], y[:, 2])
    mu = (np.sum(x * y) + np.dot(room, push)) / max(x.shape[0] + push.shape[0], 1)
    largest = 0.0
    for c in range(x.shape[0]):
        largest = max(largest, x[c, 0])
        if not (_determinant(x[c]) > 0.0 and _determinant(y[c]) > 0.0):
            return 0.0
    for value in z:
        largest = max(largest, abs(value))
    for w in range(push.shape[0]):
        if not (room[w] > 0.0 and push[w] > 0.0):
            return 0.0
    if not (mu > EXACT and largest < ENDLESS):
        return 0.0

    slip = np.empty((x.shape[0], 2))
    W, inverse = np.empty((x.shape[0], 3, 3)), np.empty((x.shape[0], 3, 3))
    cones = x.size
    rest = -q - A @ np.concatenate((x.ravel(), z))
    rest[:cones] += y.ravel()
    for w in range(push.shape[0]):
        rest[cones + walls[w]] += sides[w] * push[w]
    for c in range(x.shape[0]):
        rest[3 * c] -= lengths[c]
        slip[c] = coupling * y[c, 1:] / max(lengths[c], 1e-300)
        _scale(x[c], y[c], W[c], inverse[c])
    point = _times(W, x)
    for c in range(x.shape[0]):
        if not _determinant(point[c]) > 0.0:
            return 0.0
    matrix = A.copy()
    for c in range(x.shape[0]):
        i = 3 * c
        matrix[i] += slip[c, 0] * A[i + 1] + slip[c, 1] * A[i + 2]
        for j in range(3):
            for k in range(3):
                matrix[i + j, i + k] += W[c, j, 0] * W[c, 0, k] + W[c, j, 1] * W[c, 1, k] + W[c, j, 2] * W[c, 2, k]
        rest[i] += slip[c, 0] * rest[i + 1] + slip[c, 1] * rest[i + 2]
    for w in range(push.shape[0]):
        matrix[cones + walls[w], cones + walls[w]] += push[w] / room[w]

    products, pushes = -_product(point, point), -room * push
    dx, dz, dy, d_push = _towards(matrix, rest, W, point, products, walls, sides, room, push, pushes)
    centring = (1.0 - _possible(x, dx, y, dy, sides * dz[walls] / room, d_push / push)) ** 1.5
    products -= _product(_times(W, dx), _times(inverse, dy))
    products[:, 0] += centring * mu
    pushes += centring * mu - sides * dz[walls] * d_push
    dx, dz, dy, d_push = _towards(matrix, (1.0 - centring) * rest, W, point, products, walls, sides, room, push, pushes)
    length = _possible(x, dx, y, dy, sides * dz[walls] / room, d_push / push)
    x += length * dx
    y += length * dy
    z += length * dz
    push += length * d_push
    return length


@numba.njit(cache=True)
def _towards(matrix, rest, W, point, products, walls, sides, room, push, pushes):  # type: ignore[no-untyped-def]
    """Return the step (x, z, y, push) that changes the products of both kinds thus, and the velocities by `rest`."""
    right, cones = rest.copy(), point.size
    goal = _times(W, _divided(products, point))
    right[:cones] += goal.ravel()
    for w in range(push.shape[0]):
        right[cones + walls[w]] += sides[w] * pushes[w] / room[w]
    step = np.linalg.solve(matrix, right)
    dx, dz = step[:cones].copy().reshape(point.shape), step[cones:]
    return dx, dz, goal - _times(W, _times(W, dx)), (pushes - push * sides * dz[walls]) / room


@numba.njit(cache=True)
def _possible(x, dx, y, dy, of_room, of_push):  # type: ignore[no-untyped-def]
    """Return which part of a step can be done, at most 1, for the parts by which walls change their room and push."""
    loss = INSIDE
    for c in range(x.shape[0]):
        loss = max(loss, _loss(x[c], dx[c]), _loss(y[c], dy[c]))
    for w in range(of_room.shape[0]):
        loss = max(loss, -of_room[w], -of_push[w])
    return INSIDE / loss


@numba.njit(cache=True)
def _scale(x, y, W, inverse):  # type: ignore[no-untyped-def]
    """Set W (3, 3), symmetric with ``W x = W^-1 y``, and its inverse, for points inside the cone (3,)."""
    size_x, size_y = np.sqrt(_determinant(x)), np.sqrt(_determinant(y))
    unit_x, unit_y = x / size_x, y / size_y
    twice = np.sqrt(2.0 * (1.0 + np.dot(unit_x, unit_y)))
    w0, w1 = (unit_x[0] + unit_y[0]) / twice, (unit_y[1:] - unit_x[1:]) / twice
    W[0, 0] = w0
    for i in range(2):
        W[0, 1 + i] = W[1 + i, 0] = w1[i]
        for j in range(2):
            W[1 + i, 1 + j] = (1.0 if i == j else 0.0) + w1[i] * w1[j] / (1.0 + w0)
    inverse[:] = W
    inverse[0, 1:] = inverse[1:, 0] = -w1
    ratio = np.sqrt(size_y / size_x)
    W *= ratio
    inverse /= ratio


@numba.njit(cache=True)
def _determinant(x):  # type: ignore[no-untyped-def]
    """Return ``x_0^2 - |x_t|^2`` of x (3,)."""
    length = np.hypot(x[1], x[2])
    return (x[0] - length) * (x[0] + length)


@numba.njit(cache=True)
def _product(x, y):  # type: ignore[no-untyped-def]
    """Return the Jordan products ``(x . y, x_0 y_t + y_0 x_t)`` (k, 3)."""
    z = np.empty_like(x)
    for c in range(x.shape[0]):
        z[c, 0] = x[c, 0] * y[c, 0] + x[c, 1] * y[c, 1] + x[c, 2] * y[c, 2]
        z[c, 1], z[c, 2] = x[c, 0] * y[c, 1] + y[c, 0] * x[c, 1], x[c, 0] * y[c, 2] + y[c, 0] * x[c, 2]
    return z


@numba.njit(cache=True)
def _divided(z, x):  # type: ignore[no-untyped-def]
    """Return the y (k, 3) whose Jordan product with x is z."""
    y = np.empty_like(z)
    for c in range(x.shape[0]):
        along = x[c, 1] * z[c, 1] + x[c, 2] * z[c, 2]
        y[c, 0] = (x[c, 0] * z[c, 0] - along) / _determinant(x[c])
        y[c, 1], y[c, 2] = (z[c, 1] - y[c, 0] * x[c, 1]) / x[c, 0], (z[c, 2] - y[c, 0] * x[c, 2]) / x[c, 0]
    return y


@numba.njit(cache=True)
def _times(W, x):  # type: ignore[no-untyped-def]
    """Return the products (k, 3) of the matrices W (k, 3, 3) and x (k, 3)."""
    product = np.empty_like(x)
    for c in range(x.shape[0]):
        for i in range(3):
            product[c, i] = W[c, i, 0] * x[c, 0] + W[c, i, 1] * x[c, 1] + W[c, i, 2] * x[c, 2]
    return product


@numba.njit(cache=True)
def _loss(x, change):  # type: ignore[no-untyped-def]
    """Return the inverse of how many times `change` can be added to x (3,) before it leaves its cone; 0 for ever.

    In the axes in which x is a multiple of the cone's unit, the smallest eigenvalue of the change tells.
    """
    size = np.sqrt(_determinant(x))
    unit = x / size
    along = unit[0] * change[0] - unit[1] * change[1] - unit[2] * change[2]
    across = (along + change[0]) / (unit[0] + 1.0)
    return (np.hypot(change[1] - across * unit[1], change[2] - across * unit[2]) - along) / size

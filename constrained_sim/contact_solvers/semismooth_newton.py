"""Semi-smooth Newton method on the natural map of a contact problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.natural_map import active_set_at, derivative_on, natural_map
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import rolling_times
from constrained_sim.linalg.elimination import eliminate, substitute
from constrained_sim.linalg.products import largest_entry
from constrained_sim.validation import Array


class DelassusFactor(NamedTuple):
    """The Delassus matrix in parts, ``G = L L^T + compliance I``.

    Attributes:
        L: (n, rank) what the inertia of the bodies gives.
        compliance: of every row; 0: contacts are rigid.
    """

    L: Array
    compliance: float


@kernel(inline=True)
def _invert(block, shift, inverse):
    """Set `inverse` (3, 3) to that of ``block + shift``, by cofactors."""
    a0, a1, a2 = block[0, 0] + shift, block[1, 1] + shift, block[2, 2] + shift
    b01, b02, b10, b12, b20, b21 = block[0, 1], block[0, 2], block[1, 0], block[1, 2], block[2, 0], block[2, 1]
    c00, c10, c20 = a1 * a2 - b12 * b21, b12 * b20 - b10 * a2, b10 * b21 - a1 * b20
    part = 1.0 / (a0 * c00 + b01 * c10 + b02 * c20)
    inverse[0, 0], inverse[0, 1], inverse[0, 2] = (
        part * c00,
        part * (b02 * b21 - b01 * a2),
        part * (b01 * b12 - b02 * a1),
    )
    inverse[1, 0], inverse[1, 1], inverse[1, 2] = (
        part * c10,
        part * (a0 * a2 - b02 * b20),
        part * (b02 * b10 - a0 * b12),
    )
    inverse[2, 0], inverse[2, 1], inverse[2, 2] = (
        part * c20,
        part * (b01 * b20 - a0 * b21),
        part * (a0 * a1 - b01 * b10),
    )


@kernel
def block_times(blocks, x, contacts, rolling):
    """Return the product (n, k) of a matrix of blocks, diagonal but for those of rolling friction, with x (n, k)."""
    product = np.empty_like(x)
    for c in range(contacts):
        block, i = blocks[c], 3 * c
        for k in range(x.shape[1]):
            x0, x1, x2 = x[i, k], x[i + 1, k], x[i + 2, k]
            for row in range(3):
                product[i + row, k] = block[row, 0] * x0 + block[row, 1] * x1 + block[row, 2] * x2
    for j in range(contacts, blocks.shape[0] - rolling.shape[0]):
        product[2 * contacts + j] = blocks[j, 0, 0] * x[2 * contacts + j]
    if rolling.shape[0]:
        rolling_times(rolling, blocks, x, product)
    return product


@kernel
def newton_step(problem, factor, B, C, F, shift):
    """Return the step d with ``(B + C G) d = -F``, small in directions in which this is singular.

    ``B + compliance C + shift`` is inverted block by block, and ``C L L^T`` has the rank of L: the matrix that is
    eliminated has the size of the rank (Woodbury), however many contacts there are. A second pass takes back what the
    shift changed.

    Args:
        problem: a :class:`~constrained_sim.contact_solvers.scaled_problem.ScaledProblem`.
        factor: of G, a :class:`DelassusFactor`.
        B: (k + m + d, 3, 3) blocks of the derivative, see
            :func:`~constrained_sim.contact_solvers.natural_map.derivative_on`.
        C: the same of what multiplies G.
        F: (n,) natural map [N s].
        shift: added to B.
    """
    L, compliance = factor
    contacts, rolling = problem.laws.friction.shape[0], problem.laws.rolling
    blocks, inverse = B + compliance * C, np.zeros_like(B)
    for c in range(contacts):
        _invert(blocks[c], shift, inverse[c])
    for j in range(contacts, B.shape[0] - rolling.shape[0]):
        inverse[j, 0, 0] = 1.0 / (blocks[j, 0, 0] + shift)
    for j in range(B.shape[0] - rolling.shape[0], B.shape[0]):
        _invert(blocks[j], shift, inverse[j])
    X = block_times(inverse, block_times(C, L, contacts, rolling), contacts, rolling)
    H = L.T @ X
    for i in range(H.shape[0]):
        H[i, i] += 1.0
    factors, pivots = eliminate(H)
    d, rest = np.zeros_like(F), F
    for again in range(2):
        if again:
            rest = F + block_times(B, d.reshape(-1, 1), contacts, rolling).ravel()
            rest += block_times(C, (problem.G @ d).reshape(-1, 1), contacts, rolling).ravel()
        y = block_times(inverse, rest.reshape(-1, 1), contacts, rolling).ravel()
        d -= y - X @ substitute(factors, pivots, y @ L)
    return d


@kernel
def semismooth_newton(problem, factor, r, tolerance, iterations):
    """Semi-smooth Newton on the natural map, from r (n,).

    The :class:`DelassusFactor` is that of the problem, or of one a little more compliant: its steps are shorter in
    directions in which rows depend on each other.

    A step has to lead nearer than the farthest of the last points, not than the last: on the way across a kink there
    are points that are farther than both its ends (Grippo, Lampariello and Lucidi, A nonmonotone line search technique
    for Newton's method, 1986). It ends where ``memory`` steps have not halved the error.

    Returns:
        (r, largest |F| [N s], iterations done).
    """
    memory = OPTIONS.memory
    F = natural_map(problem, r)
    error = largest_entry(F)
    best, least, recent, earlier = r, error, np.full(memory, error), np.full(memory, np.inf)
    for done in range(iterations):
        if error <= tolerance or least > 0.5 * earlier[done % memory]:
            return best, least, done
        earlier[done % memory] = least
        nearer, r, F = _step_nearer(problem, factor, r, F, recent.max())
        if not nearer:
            return best, least, done
        error = largest_entry(F)
        recent[done % memory] = error
        if error < least:
            best, least = r, error
    return best, least, iterations


@kernel
def _step_nearer(problem, factor, r, F, farthest):
    """Return whether a step from r leads nearer than an error `farthest` [N s], where it leads, and the map there."""
    u = problem.G @ r + problem.b
    B, C = derivative_on(problem, active_set_at(problem, u, r), u, r)
    for shift in (OPTIONS.least_shift, OPTIONS.large_shift):
        length, direction = 1.0, newton_step(problem, factor, B, C, F, shift)
        for _ in range(OPTIONS.line_search):
            candidate = r + length * direction
            F_candidate = natural_map(problem, candidate)
            if largest_entry(F_candidate) < (1.0 - OPTIONS.decrease * length) * farthest:
                return True, candidate, F_candidate
            length *= 0.5
    return False, r, F

"""Compiled kernels of the contact problem: k contacts of three rows each, [t1, t2, n], m interval rows, then discs.

The problem: find r with ``u = G r + b`` such that for every contact ``0 <= u_n _|_ r_n >= 0``, ``|r_t| <= c r_n``, and
``r_t = -c r_n u_t / |u_t|`` where it slides; and for every interval row ``lower <= r <= upper``, with ``u >= 0`` where
r is at the lower bound, ``u <= 0`` at the upper one, ``u = 0`` between. (A joint limit has the interval 0 to infinity,
dry joint friction that of its breakaway effort.) This is Signorini's condition with Coulomb's law (De Saxce and Feng,
The bipotential method, 1998), not its convex relaxation: a sliding contact does not lift off.

Its zero-finding form (Alart and Curnier, A mixed formulation for frictional contact problems, 1991), for any p > 0:

    F_n = r_n - max(0, y),            y = r_n - p_n u_n
    F_t = r_t - proj(z, c max(0, y)), z = r_t - p_t u_t,   proj onto the disc of that radius
    F   = r - proj(r - p u, [lower, upper])                of an interval row

with p the inverse of the diagonal of G, so that F is in newton seconds. At acceleration level u is an acceleration
and r a force; a contact that slips already, in the unit direction d, has ``r_t = -c r_n d`` whatever u_t is.
Resistance to rolling and spinning adds rows that :mod:`~constrained_sim.contact.discs` explains.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.discs import (
    CONTACT,
    DIRECTION,
    RADIUS,
    SIZE,
    differentiate_discs,
    discs_times,
    map_discs,
    nearest,
    radius_of,
)
from constrained_sim.products import largest_entry, matvec

RANK_TOLERANCE = 1e-11
LEAST_SHIFT = 1e-9
TRIALS = ((LEAST_SHIFT, 1), (1e-6, 8), (LEAST_SHIFT, 8), (1e-4, 8), (1e-2, 8))
"""Regularisations of a Newton step, whose rows are without dimension, and how many lengths of it are tried: the next
where the last did not lead nearer. Where forces are indeterminate, the least shift lets rounding lead far aside."""

MEMORY = 3
"""Number of points that a Newton step is compared with: more let it wander."""

GAIN = 0.5
"""What part of the error as many steps leave at most: where they leave more, other methods get on faster."""

EPSILON = 2.2e-16
AMPLIFIED = 1e3
"""Ratio of impulses, to those that stop the rows one by one, up to which errors are judged relative to them."""

OPEN, STICKING, SLIDING = 0, 1, 2


@kernel(inline=True)
def inverse_scale(G, contacts, discs):  # type: ignore[no-untyped-def]
    """Return (n,) the p of each row of the Delassus matrix G (n, n), see :func:`inverse_diagonal`."""
    return inverse_diagonal(np.diag(G), contacts, discs)


@kernel
def inverse_diagonal(diagonal, contacts, discs):  # type: ignore[no-untyped-def]
    """Return (n,) the p of each row: one value for both tangential rows; zero rows take the largest of all rows.

    The two rows of a disc share one value likewise. The `diagonal` (n,) is that of the Delassus matrix.
    """
    largest = 0.0
    for value in diagonal:
        largest = max(largest, value)
    p = np.ones(diagonal.shape[0])
    if largest == 0.0:
        return p
    floor = RANK_TOLERANCE * largest
    for i in range(p.shape[0]):
        p[i] = 1.0 / (diagonal[i] if diagonal[i] > floor else largest)
    for c in range(0, 3 * contacts, 3):
        tangential = max(diagonal[c], diagonal[c + 1])
        p[c] = p[c + 1] = 1.0 / (tangential if tangential > floor else largest)
    i = p.shape[0]
    for disc in discs:
        i -= int(disc[SIZE])
    for disc in discs:
        if disc[SIZE] > 1.0:
            p[i] = p[i + 1] = min(p[i], p[i + 1])
        i += int(disc[SIZE])
    return p


@kernel
def natural_map(G, b, friction, slip, lower, upper, discs, p, r):  # type: ignore[no-untyped-def]
    """Return F (n,) at r; zero exactly where r solves the problem.

    Args:
        G: (n, n) Delassus matrix of the contact rows.
        b: (n,) row velocities at r = 0.
        friction: (k,) coefficient c of each contact.
        slip: (k, 2) known direction of slip, zero where u_t decides.
        lower: (m,) bounds of the interval rows.
        upper: (m,) likewise.
        discs: (d, 6), see :mod:`~constrained_sim.contact.discs`.
        p: (n,) scale of each row.
        r: (n,) impulses.
    """
    return natural_map_at(G @ r + b, b, friction, slip, lower, upper, discs, p, r)


@kernel
def natural_map_at(u, b, friction, slip, lower, upper, discs, p, r):  # type: ignore[no-untyped-def]
    """Return F (n,) at r with the row velocities u (n,), see :func:`natural_map`.

    Where there is no solution, impulses may grow until rounding hides that they are none: what they hide beyond
    :data:`AMPLIFIED` times those that stop the rows one by one counts as error.
    """
    F = np.empty(r.shape[0])
    for c in range(friction.shape[0]):
        i = 3 * c
        y = r[i + 2] - p[i + 2] * u[i + 2]
        F[i + 2] = r[i + 2] - max(0.0, y)
        radius = friction[c] * y if y > 0.0 else 0.0
        t0, t1 = nearest(r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1], radius, slip[c])
        F[i], F[i + 1] = r[i] - t0, r[i + 1] - t1
    for j in range(lower.shape[0]):
        i = 3 * friction.shape[0] + j
        F[i] = r[i] - min(max(r[i] - p[i] * u[i], lower[j]), upper[j])
    if discs.shape[0]:
        map_discs(discs, u, p, r, F)
    stopping = 1e-300
    for i in range(r.shape[0]):
        stopping = max(stopping, abs(p[i] * b[i]))
    for i in range(r.shape[0]):
        if abs(r[i]) > AMPLIFIED * stopping:
            hidden = EPSILON * (abs(r[i]) - AMPLIFIED * stopping)
            F[i] += hidden if F[i] >= 0.0 else -hidden
    return F


@kernel
def pieces_at(u, friction, slip, lower, upper, p, r):  # type: ignore[no-untyped-def]
    """Return (k + m,) which smooth piece of the natural map r is on, for each contact and interval row.

    ``OPEN``: nothing presses, or an interval row is at its lower bound; ``SLIDING``: friction or an interval row is at
    its (upper) bound; ``STICKING``: neither. Arguments as in :func:`natural_map_at`.
    """
    contacts = friction.shape[0]
    pieces = np.empty(contacts + lower.shape[0], dtype=np.int64)
    for c in range(contacts):
        i = 3 * c
        y = r[i + 2] - p[i + 2] * u[i + 2]
        if y <= 0.0:
            pieces[c] = OPEN
            continue
        length = np.hypot(r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1])
        slips = slip[c, 0] != 0.0 or slip[c, 1] != 0.0
        pieces[c] = STICKING if not slips and length <= friction[c] * y else SLIDING
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        z = r[i] - p[i] * u[i]
        pieces[contacts + j] = STICKING if lower[j] < z < upper[j] else OPEN if z <= lower[j] else SLIDING
    return pieces


@kernel
def derivative_on(pieces, u, friction, slip, lower, upper, discs, p, r):  # type: ignore[no-untyped-def]
    """Return blocks B and C (k + m + d, 3, 3) of the derivative ``dF/dr = B + C G`` of these `pieces` at r.

    Intervals use entry [0, 0] of their blocks; discs are on the piece on which r is. Arguments as in
    :func:`natural_map_at`.
    """
    contacts = friction.shape[0]
    blocks = contacts + lower.shape[0] + discs.shape[0]
    B, C = np.zeros((blocks, 3, 3)), np.zeros((blocks, 3, 3))
    for c in range(contacts):
        i = 3 * c
        if pieces[c] == OPEN:
            B[c, 0, 0] = B[c, 1, 1] = B[c, 2, 2] = 1.0
            continue
        C[c, 2, 2] = p[i + 2]
        if pieces[c] == STICKING:
            C[c, 0, 0] = C[c, 1, 1] = p[i]
            continue
        d0, d1, shrink = drag_of(u, friction[c], slip[c], p, r, i)
        B[c, 0, 0], B[c, 0, 1] = 1.0 - shrink * d1 * d1, shrink * d0 * d1
        B[c, 1, 0], B[c, 1, 1] = shrink * d0 * d1, 1.0 - shrink * d0 * d0
        C[c, 0, 0], C[c, 0, 1] = shrink * p[i] * d1 * d1, -shrink * p[i] * d0 * d1
        C[c, 1, 0], C[c, 1, 1] = -shrink * p[i] * d0 * d1, shrink * p[i] * d0 * d0
        B[c, 0, 2], B[c, 1, 2] = -friction[c] * d0, -friction[c] * d1
        C[c, 0, 2], C[c, 1, 2] = friction[c] * p[i + 2] * d0, friction[c] * p[i + 2] * d1
    for j in range(contacts, contacts + lower.shape[0]):
        if pieces[j] == STICKING:
            C[j, 0, 0] = p[2 * contacts + j]
        else:
            B[j, 0, 0] = 1.0
    if discs.shape[0]:
        differentiate_discs(discs, u, p, r, B, C)
    return B, C


@kernel(inline=True)
def drag_of(u, friction, slip, p, r, i):  # type: ignore[no-untyped-def]
    """Return the direction of friction on a contact that slides, and how long that is to ``|z|``, see the module.

    Its first row is the i-th; `slip` (2,) is its direction of slip, where that is known.
    """
    if slip[0] != 0.0 or slip[1] != 0.0:
        return -slip[0], -slip[1], 0.0
    z0, z1 = r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1]
    length = max(np.hypot(z0, z1), 1e-300)
    return z0 / length, z1 / length, friction * (r[i + 2] - p[i + 2] * u[i + 2]) / length


@kernel
def range_factor(G):  # type: ignore[no-untyped-def]
    """Return L (n, rank) with ``G = L L^T``, see :func:`pivoted_factor`."""
    return pivoted_factor(G)[0]


@kernel
def pivoted_factor(G):  # type: ignore[no-untyped-def]
    """Return L (n, rank) with ``G = L L^T``, by Cholesky's factorisation with diagonal pivoting, and pivots (rank,).

    Pivots are rows that do not depend on each other, and that all others depend on.
    """
    n = G.shape[0]
    pivots = np.empty(n, dtype=np.int64)
    columns, rest = np.empty((n, n)), np.diag(G).copy()
    largest = rest.max() if n else 0.0
    rank = 0
    while rank < n:
        pivot = int(np.argmax(rest))
        if rest[pivot] <= RANK_TOLERANCE * largest:
            break
        column = columns[rank]
        column[:] = G[pivot]
        for k in range(rank):
            other, factor = columns[k], columns[k, pivot]
            for i in range(n):
                column[i] -= factor * other[i]
        column /= np.sqrt(rest[pivot])
        for i in range(n):
            rest[i] = max(rest[i] - column[i] ** 2, 0.0)
        rest[pivot] = 0.0
        pivots[rank] = pivot
        rank += 1
    return np.ascontiguousarray(columns[:rank].T), pivots[:rank].copy()


@kernel
def eliminate(A):  # type: ignore[no-untyped-def]
    """Return the triangular factors of A in one matrix, and which row was the pivot of each column.

    For the small matrices of contact problems; NumPy's takes seconds to compile wherever it is used.
    """
    factors, pivots = A.copy(), np.empty(A.shape[0], dtype=np.int64)
    n = A.shape[0]
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(factors[i, k]) > abs(factors[pivot, k]):
                pivot = i
        pivots[k] = pivot
        if pivot != k:
            for j in range(n):
                factors[k, j], factors[pivot, j] = factors[pivot, j], factors[k, j]
        if factors[k, k] == 0.0:
            continue
        for i in range(k + 1, n):
            factor = factors[i, k] / factors[k, k]
            factors[i, k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    factors[i, j] -= factor * factors[k, j]
    return factors, pivots


@kernel
def substitute(factors, pivots, b):  # type: ignore[no-untyped-def]
    """Return the x with ``A x = b``, for A from :func:`eliminate`; a pivot of zero leaves its unknown zero."""
    x, n = b.copy(), b.shape[0]
    for k in range(n):
        x[k], x[pivots[k]] = x[pivots[k]], x[k]
    for k in range(n):
        for j in range(k):
            x[k] -= factors[k, j] * x[j]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, n):
            total -= factors[k, j] * x[j]
        x[k] = total / factors[k, k] if factors[k, k] != 0.0 else 0.0
    return x


@kernel
def solve(A, b):  # type: ignore[no-untyped-def]
    """Return ``A^-1 b`` by elimination with row pivoting."""
    factors, pivots = eliminate(A)
    return substitute(factors, pivots, b)


@kernel(inline=True)
def _invert(block, shift, inverse):  # type: ignore[no-untyped-def]
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
def block_times(blocks, x, contacts, discs):  # type: ignore[no-untyped-def]
    """Return the product (n, k) of a matrix of blocks, diagonal but for those of the discs, with x (n, k)."""
    product = np.empty_like(x)
    for c in range(contacts):
        block, i = blocks[c], 3 * c
        for k in range(x.shape[1]):
            x0, x1, x2 = x[i, k], x[i + 1, k], x[i + 2, k]
            for row in range(3):
                product[i + row, k] = block[row, 0] * x0 + block[row, 1] * x1 + block[row, 2] * x2
    for j in range(contacts, blocks.shape[0] - discs.shape[0]):
        product[2 * contacts + j] = blocks[j, 0, 0] * x[2 * contacts + j]
    if discs.shape[0]:
        discs_times(discs, blocks, x, product)
    return product


@kernel
def newton_step(G, L, B, C, F, contacts, discs, shift):  # type: ignore[no-untyped-def]
    """Return the step d with ``(B + C G) d = -F``, small in directions in which this is singular.

    ``B + shift`` is inverted block by block, ``C G = C L L^T`` has the rank of G: the matrix that is factored has the
    size of the rank (Woodbury), however many contacts there are. A second pass takes back what the shift changed.
    """
    inverse = np.zeros_like(B)
    for c in range(contacts):
        _invert(B[c], shift, inverse[c])
    for j in range(contacts, B.shape[0] - discs.shape[0]):
        inverse[j, 0, 0] = 1.0 / (B[j, 0, 0] + shift)
    for j in range(B.shape[0] - discs.shape[0], B.shape[0]):
        _invert(B[j], shift, inverse[j])
    X = block_times(inverse, block_times(C, L, contacts, discs), contacts, discs)
    H = L.T @ X
    for i in range(H.shape[0]):
        H[i, i] += 1.0
    factors, pivots = eliminate(H)
    d, rest = np.zeros_like(F), F
    for again in range(2):
        if again:
            rest = F + block_times(B, d.reshape(-1, 1), contacts, discs).ravel()
            rest += block_times(C, (G @ d).reshape(-1, 1), contacts, discs).ravel()
        y = block_times(inverse, rest.reshape(-1, 1), contacts, discs).ravel()
        d -= y - X @ substitute(factors, pivots, y @ L)
    return d


@kernel
def independent_factor(G):  # type: ignore[no-untyped-def]
    """Return U (n, n), upper triangular, with ``G = U^T U``, and whether rows are independent; else it is of no use.

    Rows of zeros do not count; their pivot is infinite, so that their unknowns come out as zero.
    """
    n = G.shape[0]
    largest = 0.0
    for i in range(n):
        largest = max(largest, G[i, i])
    U = np.zeros((n, n))
    for i in range(n):
        if G[i, i] <= RANK_TOLERANCE * largest:
            U[i, i] = np.inf
            continue
        row, given = U[i, i:], G[i, i:]
        for j in range(row.shape[0]):
            row[j] = given[j]
        for k in range(i):
            other = U[k, i:]
            factor = other[0]
            for j in range(row.shape[0]):
                row[j] -= factor * other[j]
        if row[0] <= 1e-9 * G[i, i]:
            return U, False
        pivot = np.sqrt(row[0])
        for j in range(row.shape[0]):
            row[j] /= pivot
    return U, True


@kernel
def substitute_twice(U, b):  # type: ignore[no-untyped-def]
    """Return the x with ``U^T U x = b``, for U upper triangular."""
    x, n = b.copy(), b.shape[0]
    for k in range(n):
        x[k] /= U[k, k]
        for j in range(k + 1, n):
            x[j] -= x[k] * U[k, j]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= U[i, j] * x[j]
        x[i] = total / U[i, i]
    return x


@kernel
def stick(G, b):  # type: ignore[no-untyped-def]
    """Return r with ``G r + b = 0`` (least 2-norm where G is singular): what holds if every contact sticks."""
    U, is_independent = independent_factor(G)
    return substitute_twice(U, -b) if is_independent else of_least_norm(G, range_factor(G), -b)


@kernel
def of_least_norm(G, L, goal):  # type: ignore[no-untyped-def]
    """Return the r (n,) of least norm with ``G r = goal`` (in the least-squares sense), for ``G = L L^T``.

    ``r = L (L^T L)^-2 L^T goal``, refined once.
    """
    factors, pivots = eliminate(L.T @ L)
    r = np.zeros_like(goal)
    for _ in range(2):
        r += L @ substitute(factors, pivots, substitute(factors, pivots, (goal - G @ r) @ L))
    return r


@kernel
def newton(G, b, friction, slip, lower, upper, discs, p, r, tolerance, iterations):  # type: ignore[no-untyped-def]
    """Semi-smooth Newton on the natural map, from r.

    A step has to lead nearer than the farthest of the last points, not than the last: on the way across a kink there
    are points that are farther than both its ends (Grippo, Lampariello and Lucidi, A nonmonotone line search technique
    for Newton's method, 1986). It ends where :data:`MEMORY` steps have not left less than :data:`GAIN` of the error.

    Returns:
        (r, largest |F|, iterations done).
    """
    F = natural_map(G, b, friction, slip, lower, upper, discs, p, r)
    error = np.abs(F).max()
    best, least, recent, earlier = r, error, np.full(MEMORY, error), np.full(MEMORY, np.inf)
    L = range_factor(G)
    for done in range(iterations):
        if error <= tolerance:
            return r, error, done
        if least > GAIN * earlier[done % MEMORY]:
            return best, least, done
        earlier[done % MEMORY] = least
        u = G @ r + b
        pieces = pieces_at(u, friction, slip, lower, upper, p, r)
        B, C = derivative_on(pieces, u, friction, slip, lower, upper, discs, p, r)
        nearer = False
        plain = newton_step(G, L, B, C, F, friction.shape[0], discs, LEAST_SHIFT)
        for shift, lengths in TRIALS:
            length, direction = 1.0, plain
            if shift != LEAST_SHIFT:
                direction = newton_step(G, L, B, C, F, friction.shape[0], discs, shift)
            for _ in range(lengths):
                candidate = r + length * direction
                F_candidate = natural_map(G, b, friction, slip, lower, upper, discs, p, candidate)
                error_candidate = np.abs(F_candidate).max()
                nearer = error_candidate < (1.0 - 0.1 * length) * recent.max()
                if nearer:
                    break
                length *= 0.5
            if nearer:
                break
        if not nearer:
            return best, least, done
        r, F, error = candidate, F_candidate, error_candidate
        recent[done % MEMORY] = error
        if error < least:
            best, least = r, error
    return best, least, iterations


@kernel
def classify(u, friction, slip, lower, upper, discs, p, r, tolerance):  # type: ignore[no-untyped-def]
    """Return (k + m + d,) status of contacts, interval rows and discs: OPEN, STICKING or SLIDING.

    At the row velocities u (n,) that the impulses r (n,) lead to, which are right up to the `tolerance` [N s]; the
    other arguments are those of :func:`natural_map`.

    An interval row is open at a lower bound of 0, slides at any other bound, and sticks between; a disc without radius
    of its own is open with its contact. What is open is cleared in r.
    """
    contacts = friction.shape[0]
    first = contacts + lower.shape[0]
    status = np.empty(first + discs.shape[0], dtype=np.int64)
    for c in range(friction.shape[0]):
        i = 3 * c
        if r[i + 2] <= tolerance:
            status[c] = OPEN
            r[i] = r[i + 1] = r[i + 2] = 0.0
            continue
        length = np.hypot(r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1])
        slides = length > friction[c] * r[i + 2] + tolerance or friction[c] == 0.0 or slip[c].any()
        status[c] = SLIDING if slides else STICKING
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        if lower[j] == 0.0 and r[i] <= tolerance:
            status[contacts + j] = OPEN
            r[i] = 0.0
        else:
            inside = lower[j] + tolerance < r[i] < upper[j] - tolerance
            status[contacts + j] = STICKING if inside else SLIDING
    i = r.shape[0] - int(discs[:, SIZE].sum())
    for j in range(discs.shape[0]):
        disc, contact, end = discs[j], int(discs[j, CONTACT]), i + int(discs[j, SIZE])
        if disc[RADIUS] == 0.0 and status[contact] == OPEN:
            status[first + j] = OPEN
            r[i:end] = 0.0
        else:
            length = np.linalg.norm(r[i:end] - p[i:end] * u[i:end])
            moves = length > radius_of(disc, r[3 * contact + 2]) + tolerance or disc[DIRECTION:].any()
            status[first + j] = SLIDING if moves else STICKING
        i = end
    return status


@kernel
def delassus(J, response, x, offset):  # type: ignore[no-untyped-def]
    """Return G (n, n), symmetrised, and b (n,), for rows J, the responses to them, and the motion without contact."""
    G = J @ response.T
    for i in range(G.shape[0]):
        for j in range(i):
            G[i, j] = G[j, i] = 0.5 * (G[i, j] + G[j, i])
    return G, matvec(J, x) + offset


@kernel
def drop_held(G, b, J, terms, free_diagonal):  # type: ignore[no-untyped-def]
    """Set to zero, in place, what of G and b is rounding, in directions that the bilateral rows hold already.

    Args:
        G: (n, n) Delassus matrix, bilateral rows held.
        b: (n,) row velocities without contact impulses.
        J: (n, nv) the rows.
        terms: (nv,) magnitudes of what the motion without contact impulses is the remainder of.
        free_diagonal: (n,) diagonal of the Delassus matrix without bilateral rows.
    """
    for i in range(G.shape[0]):
        for j in range(G.shape[0]):
            if abs(G[i, j]) <= RANK_TOLERANCE * np.sqrt(free_diagonal[i] * free_diagonal[j]):
                G[i, j] = 0.0
        if G[i, i] == 0.0 and abs(b[i]) <= RANK_TOLERANCE * np.dot(np.abs(J[i]), terms):
            b[i] = 0.0


@kernel(inline=True)
def largest_impulse(p, b, r):  # type: ignore[no-untyped-def]
    """Return the largest impulse in play [N s]: of r (n,), or that stops a row of velocity b (n,) by itself; positive.

    Those of r count up to :data:`AMPLIFIED` times those that stop a row: where there is no solution, impulses grow
    without bound towards ever smaller errors relative to themselves.

    Args:
        p: (n,) scale of each row, see :func:`inverse_scale`.
        b: (n,) row velocities without impulses.
        r: (n,) impulses.
    """
    stopping = largest = 1e-300
    for i in range(r.shape[0]):
        stopping, largest = max(stopping, abs(p[i] * b[i])), max(largest, abs(r[i]))
    return max(stopping, min(largest, AMPLIFIED * stopping))


@kernel
def judge_sticking(u, b, friction, slip, lower, upper, discs, p, r, relative_tolerance):  # type: ignore[no-untyped-def]
    """Judge impulses r (n,), with the row velocities u (n,), with which all contacts stick; what pulls is cleared in r.

    Returns:
        (status (k + m + d,), largest |F|, magnitude of the impulses in play).
    """
    magnitude = largest_impulse(p, b, r)
    error = largest_entry(natural_map_at(u, b, friction, slip, lower, upper, discs, p, r))
    status = classify(u, friction, slip, lower, upper, discs, p, r, 10.0 * relative_tolerance * magnitude)
    return status, error, magnitude

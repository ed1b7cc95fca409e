"""Contacts of the same two bodies: their rows are combinations of six at most, in which sticking is a regular problem.

The row of a contact at the point p, in the direction a, is ``[a, (p - c) x a]`` times the relative twist B of its
bodies about a point c. So the rows of all contacts of one pair are ``J = A B``, and with an orthonormal basis Q of the
columns of A also ``J = Q R`` with ``R = Q^T J``. The Delassus matrix is ``G = Q H Q^T`` with ``H = R M^-1 R^T``, which
is singular only where more depends on each other than contacts of one pair. Else ``pinv(G) = Q H^-1 Q^T`` gives the
forces of least norm of contacts that stick, without a search for what is independent: four points of each of two soles
have 24 rows, and H has 12.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.rank import BASIS_TOLERANCE
from constrained_sim.validation import Array

OWN = 3
"""Rows of one contact, which are independent."""


class RowBasis(NamedTuple):
    """The basis Q (n, q) of n rows, of which each has up to six entries, side by side.

    Attributes:
        first: (n,) column in which a row has its first entry.
        width: (n,) how many it has.
        entries: (n, 6).
        columns: their number q.
    """

    first: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]
    entries: Array
    columns: int


@kernel
def reduce_contact_rows(rows, bodies, axes, points):
    """Return a :class:`RowBasis`, which neighbouring contacts of the same two bodies share; other rows stay.

    Args:
        rows: (n,) ascending, of k contacts, three each, then of one-sided rows.
        bodies: (k, 2), see :class:`~constrained_sim.contact.features.ContactFeatures`.
        axes: (k, 3, 3) rows t1, t2, n, world axes.
        points: (k, 3) contact points [m], world frame.
    """
    n = rows.shape[0]
    first, width, entries = np.empty(n, dtype=np.int64), np.ones(n, dtype=np.int64), np.zeros((n, 6))
    begin = column = 0
    while begin < n:
        end = _end_of_pair(rows, begin, bodies)
        rank = end - begin
        if rank > OWN:
            rank = _basis(rows[begin:end], axes, points, entries[begin:end])
        if rank < end - begin:
            first[begin:end], width[begin:end] = column, rank
        else:
            for i in range(begin, end):
                first[i], entries[i, 0] = column + i - begin, 1.0
        begin, column = end, column + rank
    return RowBasis(first, width, entries, column)


@kernel
def own_rows(n):
    """Return the basis of n rows that stay what they are."""
    entries = np.zeros((n, 6))
    entries[:, 0] = 1.0
    return RowBasis(np.arange(n), np.ones(n, dtype=np.int64), entries, n)


@kernel(inline=True)
def leading_rows(basis, n, columns):
    """Return the basis of the first n rows alone, which have entries in the first `columns` only."""
    return RowBasis(basis.first[:n], basis.width[:n], basis.entries[:n], columns)


@kernel(inline=True)
def _end_of_pair(rows, begin, bodies):
    """Return where, from `begin` on, the rows of the same two bodies end."""
    contacts, end = bodies.shape[0], begin + 1
    if rows[begin] >= 3 * contacts:
        return end
    c = rows[begin] // 3
    while end < rows.shape[0] and rows[end] < 3 * contacts:
        other = rows[end] // 3
        if bodies[other, 0] != bodies[c, 0] or bodies[other, 1] != bodies[c, 1]:
            break
        end += 1
    return end


@kernel
def _basis(rows, axes, points, entries):
    """Fill `entries` (n, 6) with an orthonormal basis of the columns of A, and return how many there are.

    By Gram and Schmidt's method, done again where much is taken out. Moments are about the mean point.
    """
    n, columns = rows.shape[0], np.empty((6, rows.shape[0]))
    c0 = c1 = c2 = 0.0
    for row in rows:
        c = row // 3
        c0, c1, c2 = c0 + points[c, 0] / n, c1 + points[c, 1] / n, c2 + points[c, 2] / n
    for i in range(n):
        c, axis = rows[i] // 3, rows[i] % 3
        a0, a1, a2 = axes[c, axis, 0], axes[c, axis, 1], axes[c, axis, 2]
        x, y, z = points[c, 0] - c0, points[c, 1] - c1, points[c, 2] - c2
        columns[0, i], columns[1, i], columns[2, i] = a0, a1, a2
        columns[3, i], columns[4, i], columns[5, i] = y * a2 - z * a1, z * a0 - x * a2, x * a1 - y * a0
    rank, longest = 0, (_longest(columns[:3]), _longest(columns[3:]))
    for k in range(6):
        before = _square(columns, k)
        for _ in range(2):
            for other in range(rank):
                _remove(columns, other, k)
            square = _square(columns, k)
            if square > 0.5 * before:
                break
        length = np.sqrt(square)
        if length > BASIS_TOLERANCE * longest[k // 3]:
            for i in range(n):
                columns[rank, i] = entries[i, rank] = columns[k, i] / length
            rank += 1
    return rank


@kernel(inline=True)
def _remove(columns, other, k):
    """Take what is along the `other` one of `columns` (6, n), a unit vector, out of the k-th, in place."""
    along = 0.0
    for i in range(columns.shape[1]):
        along += columns[other, i] * columns[k, i]
    for i in range(columns.shape[1]):
        columns[k, i] -= along * columns[other, i]


@kernel(inline=True)
def _square(columns, k):
    """Return the square of the length of the k-th of `columns` (m, n)."""
    square = 0.0
    for i in range(columns.shape[1]):
        square += columns[k, i] * columns[k, i]
    return square


@kernel(inline=True)
def _longest(columns):
    """Return the length of the longest of `columns` (m, n)."""
    longest = 0.0
    for k in range(columns.shape[0]):
        longest = max(longest, _square(columns, k))
    return np.sqrt(longest)


@kernel
def reduce_rows(basis, J):
    """Return ``Q^T J`` for J (n, m) and a :class:`RowBasis`."""
    first, width, entries, columns = basis
    combined = np.zeros((columns, J.shape[1]))
    for i in range(J.shape[0]):
        for k in range(width[i]):
            row, share = first[i] + k, entries[i, k]
            for j in range(J.shape[1]):
                combined[row, j] += share * J[i, j]
    return combined


@kernel
def reduce_vector(basis, values):
    """Return ``Q^T values`` for values (n,)."""
    first, width, entries, columns = basis
    combined = np.zeros(columns)
    for i in range(values.shape[0]):
        for k in range(width[i]):
            combined[first[i] + k] += entries[i, k] * values[i]
    return combined


@kernel
def expand_rows(basis, combined):
    """Return (n,) ``Q combined`` for values `combined` (q,)."""
    first, width, entries, _ = basis
    values = np.zeros(first.shape[0])
    for i in range(values.shape[0]):
        for k in range(width[i]):
            values[i] += entries[i, k] * combined[first[i] + k]
    return values


@kernel
def expanded_diagonal(basis, H):
    """Return (n,) the diagonal of ``Q H Q^T``."""
    first, width, entries, _ = basis
    values = np.zeros(first.shape[0])
    for i in range(values.shape[0]):
        for k in range(width[i]):
            row = first[i] + k
            along = 0.5 * H[row, row] * entries[i, k]
            for m in range(k):
                along += H[row, first[i] + m] * entries[i, m]
            values[i] += 2.0 * along * entries[i, k]
    return values

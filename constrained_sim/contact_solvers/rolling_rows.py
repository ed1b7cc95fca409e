"""Rolling and torsional friction in a contact problem: rows whose impulse has a bounded length.

After the contacts and the box rows there may be d moments of one or two rows each. A moment belongs to a contact c,
and obeys the principle of maximum dissipation within a radius that grows with the normal impulse of that contact::

    |r| <= R,   R = coefficient r_n + radius,   u = 0 where |r| < R,   r = -R u / |u| where it moves

For the tangential rows this is Coulomb's law; for the relative angular velocity about the tangents it is resistance to
rolling, and about the normal resistance to spinning, with coefficients in metres. Without coefficient, and with the
tangential rows, it is friction under a normal impulse that is known already.

Its zero-finding form, in the notation of :mod:`~constrained_sim.contact_solvers.natural_map`:

    F = r - proj(z, coefficient max(0, y) + radius),   z = r - p u,   y = r_n - p_n u_n of the contact

They are rows of an array (d, 6): the contact, the number of rows, the coefficient [1, or m], the radius [N s, or
N m s], and at acceleration level the unit direction of the present motion (two entries; zero where there is none).

Sources: Leine and van de Wouw, Stability and convergence of mechanical systems with unilateral constraints, 2008,
sec. 5.3 (set-valued laws of friction, drilling and rolling friction); Todorov, MuJoCo, for coefficients in metres.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.friction_disc import differentiate_disc, nearest_in_disc
from constrained_sim.linalg.rank import TINY
from constrained_sim.validation import Array

CONTACT, SIZE, COEFFICIENT, RADIUS, DIRECTION, COLUMNS = 0, 1, 2, 3, 4, 6


def no_rolling() -> Array:
    """Return (0, 6)."""
    return np.zeros((0, COLUMNS))


@kernel(inline=True)
def first_rolling_row(rolling, rows):
    """Return the first of those of so many `rows` that `rolling` (d, 6) has: they are the last."""
    first = rows
    for moment in rolling:
        first -= int(moment[SIZE])
    return first


@kernel
def lengths_of(rolling, count):
    """Return (count,) the lengths of all rows: the coefficient [m] of a moment, 1 of other rows; and `rolling` in them.

    An impulse in a row of a moment is then a force at this distance, and its bound the normal impulse.
    """
    lengths, forces, first = np.ones(count), rolling.copy(), first_rolling_row(rolling, count)
    for moment in forces:
        size = int(moment[SIZE])
        if moment[COEFFICIENT] > 0.0:
            lengths[first : first + size] = moment[COEFFICIENT]
            moment[RADIUS] /= moment[COEFFICIENT]
            moment[COEFFICIENT] = 1.0
        first += size
    return lengths, forces


@kernel(inline=True)
def moment_limit(moment, push):
    """Return the bound of a moment under the normal impulse max(0, push)."""
    return moment[RADIUS] + moment[COEFFICIENT] * max(push, 0.0)


@kernel
def map_rolling(rolling, u, p, r, F):
    """Set the entries of F (n,), which the rows of the moments end, in place; arguments as in the natural map."""
    i = first_rolling_row(rolling, r.shape[0])
    for moment in rolling:
        n, both = 3 * int(moment[CONTACT]) + 2, moment[SIZE] > 1.0
        z0, z1 = r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1] if both else 0.0
        x0, x1 = nearest_in_disc(z0, z1, moment_limit(moment, r[n] - p[n] * u[n]), moment[DIRECTION:])
        F[i] = r[i] - x0
        if both:
            F[i + 1] = r[i + 1] - x1
        i += int(moment[SIZE])


@kernel
def differentiate_rolling(rolling, u, p, r, B, C):
    """Set the blocks of the moments, the last of B and C (.., 3, 3), to a generalised Jacobian ``B + C G``, in place.

    The third column of a block multiplies the normal row of the moment's contact; the third row repeats what the block
    of that contact has there, so that the inverse of such blocks is the inverse of the whole.
    """
    i = first_rolling_row(rolling, r.shape[0])
    for j in range(rolling.shape[0]):
        moment, block = rolling[j], B.shape[0] - rolling.shape[0] + j
        n, both = 3 * int(moment[CONTACT]) + 2, moment[SIZE] > 1.0
        y = r[n] - p[n] * u[n]
        radius, coefficient = moment_limit(moment, y), moment[COEFFICIENT] if y > 0.0 else 0.0
        z0, z1 = r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1] if both else 0.0
        length = np.hypot(z0, z1)
        moves = moment[DIRECTION] != 0.0 or moment[DIRECTION + 1] != 0.0
        B[block, 2, 2], C[block, 2, 2] = (1.0, 0.0) if y <= 0.0 else (0.0, p[n])
        if radius == 0.0 or moves or length > radius:
            d0, d1 = (-moment[DIRECTION], -moment[DIRECTION + 1]) if moves else (z0 / max(length, TINY), 0.0)
            if both and not moves:
                d1 = z1 / max(length, TINY)
            shrink = 0.0 if moves or radius == 0.0 else radius / length
            differentiate_disc(d0, d1, shrink, coefficient, p[i], p[n], B[block], C[block])
        else:
            C[block, 0, 0] = C[block, 1, 1] = p[i]
        if not both:
            B[block, 1, 1], C[block, 1, 1] = 1.0, 0.0
        i += int(moment[SIZE])


@kernel
def rolling_times(rolling, blocks, x, product):
    """Set their rows, the last of `product` (n, k), to those of their `blocks` times x (n, k), in place."""
    i = first_rolling_row(rolling, x.shape[0])
    for j in range(rolling.shape[0]):
        block = blocks[blocks.shape[0] - rolling.shape[0] + j]
        n = 3 * int(rolling[j, CONTACT]) + 2
        product[i] = block[0, 0] * x[i] + block[0, 2] * x[n]
        if rolling[j, SIZE] > 1.0:
            product[i] += block[0, 1] * x[i + 1]
            product[i + 1] = block[1, 0] * x[i] + block[1, 1] * x[i + 1] + block[1, 2] * x[n]
        i += int(rolling[j, SIZE])


@kernel
def sweep_rolling(rolling, G, b, r):
    """Take one projected step along each moment's own rows, in place, in steps short enough for any block of G."""
    i = first_rolling_row(rolling, r.shape[0])
    for moment in rolling:
        size = int(moment[SIZE])
        radius, stiffness = moment_limit(moment, r[3 * int(moment[CONTACT]) + 2]), 0.0
        for row in range(i, i + size):
            stiffness += G[row, row]
        step = 1.0 / stiffness if stiffness > 0.0 else 0.0
        z0 = r[i] - step * (np.dot(G[i], r) + b[i])
        z1 = r[i + 1] - step * (np.dot(G[i + 1], r) + b[i + 1]) if size > 1 else 0.0
        x0, x1 = nearest_in_disc(z0, z1, radius, moment[DIRECTION:])
        r[i] = x0
        if size > 1:
            r[i + 1] = x1
        i += size

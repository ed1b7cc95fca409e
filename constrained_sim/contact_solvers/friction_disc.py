"""The disc in which friction is, of a radius that the normal impulse gives: a section of Coulomb's cone."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel


@kernel(inline=True)
def nearest_in_disc(z0, z1, radius, direction):
    """Return the point of the disc of `radius` nearest to z, or the one opposite to a known direction of motion."""
    if direction[0] != 0.0 or direction[1] != 0.0:
        return -radius * direction[0], -radius * direction[1]
    length = np.hypot(z0, z1)
    shrink = radius / length if length > radius else 1.0
    return shrink * z0, shrink * z1


@kernel(inline=True)
def differentiate_disc(d0, d1, shrink, coefficient, p_t, p_n, B, C):
    """Set the first two rows of B and C (3, 3) where the force of two rows is at its limit, in place.

    That is ``r - radius d`` with ``d = z / |z|`` the direction of ``z = r_t - p_t u_t``, and a radius that is the
    `coefficient` times ``r_n - p_n u_n``.

    Args:
        d0: of d.
        d1: of d.
        shrink: radius per length of z; 0 where d is fixed.
        coefficient: of friction.
        p_t: scale of both rows.
        p_n: scale of the normal row.
        B: what multiplies a change of r.
        C: what multiplies a change of u.
    """
    B[0, 0], B[0, 1] = 1.0 - shrink * d1 * d1, shrink * d0 * d1
    B[1, 0], B[1, 1] = shrink * d0 * d1, 1.0 - shrink * d0 * d0
    C[0, 0], C[0, 1] = shrink * p_t * d1 * d1, -shrink * p_t * d0 * d1
    C[1, 0], C[1, 1] = -shrink * p_t * d0 * d1, shrink * p_t * d0 * d0
    B[0, 2], B[1, 2] = -coefficient * d0, -coefficient * d1
    C[0, 2], C[1, 2] = coefficient * p_n * d0, coefficient * p_n * d1

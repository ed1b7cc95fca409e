"""Checks of a state: constraint violations, and whether it is finite."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.products import largest_entry


@kernel(inline=True)
def largest_drift(phi, gaps, held):
    """Return by how much a bilateral row (violation phi) or a held contact (its gap) is off at most [m, rad].

    NaN if a violation is: a rod of no length has no direction.
    """
    largest = largest_entry(phi)
    for c in held:
        if abs(gaps[c]) > largest:
            largest = abs(gaps[c])
    return largest


@kernel
def largest_violation(phi, gaps, s):
    """Return the largest of ``|phi|`` (m,) and the depths ``-gaps`` (k + l,), and the largest ``|s|`` (m,)."""
    position = largest_entry(phi)
    for gap in gaps:
        if -gap > position:
            position = -gap
    return position, largest_entry(s)


@kernel(inline=True)
def are_finite(q, v):
    """Return whether all entries of q (nq,) and v (nv,) are finite."""
    for value in q:
        if not np.isfinite(value):
            return False
    for value in v:
        if not np.isfinite(value):
            return False
    return True


@kernel(inline=True)
def exceeds(values, limit):
    """Return whether any of `values` is larger than `limit` in magnitude."""
    for value in values:
        if abs(value) > limit:
            return True
    return False

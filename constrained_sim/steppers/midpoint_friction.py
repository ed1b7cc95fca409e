"""Friction that opposes the mean slip of a step: the midpoint friction law."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.rolling_rows import SIZE

POSITIVE_WORK = 1e-13
"""[J] of friction in one step that is not rounding."""

LEAST_SLIP, LEFT = 1e-6, 0.5
"""Slip [m/s, rad/s] that goes on through a step if this part of it is left at its end."""

REVERSED = 1e-3
"""Part of a slip that is left of its sum with the slip a step before, if it is the opposite of that."""


@kernel
def predict_midpoint_friction(s, s_plus, contacts, rolling, offset):  # type: ignore[no-untyped-def]
    """Let friction of what slides on through the step oppose the mean slip: offset += s, in place.

    Opposed to the slip at the end, it would be of first order where the slip turns. Arguments as in
    :func:`correct_midpoint_friction`, with velocities near those at the end.
    """
    for c in range(contacts):
        _follow(s, s_plus, 3 * c, 3 * c + 2, offset)
    first = _begin_of(rolling, offset.shape[0])
    for moment in rolling:
        end = first + int(moment[SIZE])
        _follow(s, s_plus, first, end, offset)
        first = end


@kernel
def _follow(s, s_plus, first, end, offset):  # type: ignore[no-untyped-def]
    """Let friction in these rows oppose the mean slip, if that goes on through the step."""
    squared = _dot(s, s, first, end)
    if squared > LEAST_SLIP**2 and _dot(s, s_plus, first, end) > LEFT * squared:
        for i in range(first, end):
            offset[i] += s[i]


@kernel
def correct_midpoint_friction(s, s_plus, change, contacts, joint_friction, rolling, offset, impulse, tolerance):  # type: ignore[no-untyped-def]
    """Find where friction would do positive work, and let it oppose the mean slip: offset += s, in place.

    The work of friction over a step is ``r_t (s + s') / 2``. What it holds in the mean ends the step with ``s' = -s``.
    If s has become the opposite of itself in that way, it is to come to rest now, whatever the work: forces that are
    not unique may change from step to step so that it would go to and fro for ever.

    Args:
        s: (n,) row velocities at the beginning of the step [m/s].
        s_plus: (n,) those found for its end [m/s].
        change: (n,) by how much s has changed in the last step, if that was as long as this one [m/s].
        contacts: number of contacts, whose rows come first, three each.
        joint_friction: number of rows of dry joint friction, the last but those of rolling friction.
        rolling: (d, 6), whose rows come last.
        offset: (n,) of the rows.
        impulse: (n,) impulses found [N s].
        tolerance: error of impulses that is good enough [N s], and whose work does not count.

    Returns:
        Whether any offset was changed, so that the problem has to be solved again.
    """
    changed, first = False, _begin_of(rolling, offset.shape[0])
    for c in range(contacts):
        changed |= _oppose(s, s_plus, change, 3 * c, 3 * c + 2, offset, impulse, tolerance)
    for i in range(first - joint_friction, first):
        changed |= _oppose(s, s_plus, change, i, i + 1, offset, impulse, tolerance)
    for moment in rolling:
        end = first + int(moment[SIZE])
        changed |= _oppose(s, s_plus, change, first, end, offset, impulse, tolerance)
        first = end
    return changed


@kernel(inline=True)
def _oppose(s, s_plus, change, first, end, offset, impulse, tolerance):  # type: ignore[no-untyped-def]
    """Let friction in these rows oppose the mean slip, if that is to be; return whether it is."""
    work = slip = begin = left = 0.0
    for i in range(first, end):
        mean, kept = 0.5 * (s[i] + s_plus[i]), 2.0 * s[i] - change[i]
        work, slip, begin, left = work + impulse[i] * mean, slip + mean * mean, begin + s[i] * s[i], left + kept * kept
    if not work > POSITIVE_WORK + tolerance * np.sqrt(slip) or left < REVERSED**2 * begin:
        return False
    for i in range(first, end):
        offset[i] += s[i]
    return True


@kernel(inline=True)
def _begin_of(rolling, rows):  # type: ignore[no-untyped-def]
    """Return the first row of `rolling` (d, 6), whose rows are the last."""
    first = rows
    for moment in rolling:
        first -= int(moment[SIZE])
    return first


@kernel(inline=True)
def _dot(a, b, first, end):  # type: ignore[no-untyped-def]
    """Return the scalar product of these entries of a and b, few of them."""
    total = 0.0
    for i in range(first, end):
        total += a[i] * b[i]
    return total

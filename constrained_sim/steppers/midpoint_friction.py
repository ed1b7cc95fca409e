"""Friction that opposes the mean slip of a step, the midpoint friction law; and where that has to be split."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.rolling_rows import SIZE, first_rolling_row
from constrained_sim.steppers.options import STEPPING


@kernel
def predict_midpoint_friction(s, s_plus, contacts, rolling, offset):
    """Let friction of what slides on through the step oppose the mean slip: offset += s, in place.

    Opposed to the slip at the end, it would be of first order where the slip turns. Arguments as in
    :func:`correct_midpoint_friction`, with velocities near those at the end.
    """
    for c in range(contacts):
        _follow(s, s_plus, 3 * c, 3 * c + 2, offset)
    first = first_rolling_row(rolling, offset.shape[0])
    for moment in rolling:
        end = first + int(moment[SIZE])
        _follow(s, s_plus, first, end, offset)
        first = end


@kernel
def _follow(s, s_plus, first, end, offset):
    """Let friction in these rows oppose the mean slip, if that goes on through the step."""
    squared = _dot(s, s, first, end)
    if squared > STEPPING.followed_slip**2 and _dot(s, s_plus, first, end) > STEPPING.remaining_slip * squared:
        for i in range(first, end):
            offset[i] += s[i]


@kernel
def correct_midpoint_friction(s, s_plus, change, counts, rolling, offset, impulse, tolerance):
    """Find where friction would do positive work, and let it oppose the mean slip: offset += s, in place.

    The work of friction over a step is ``r_t (s + s') / 2``. What it holds in the mean ends the step with ``s' = -s``.
    If s has become the opposite of itself in that way, it is to come to rest now, whatever the work: forces that are
    not unique may change from step to step so that it would go to and fro for ever.

    Args:
        s: (n,) row velocities at the beginning of the step [m/s].
        s_plus: (n,) those found for its end [m/s].
        change: (n,) by how much s has changed in the last step, if that was as long as this one [m/s].
        counts: number of contacts, whose rows come first, three each; number of rows of dry joint friction, the last
            but those of rolling friction.
        rolling: (d, 6), whose rows come last.
        offset: (n,) of the rows.
        impulse: (n,) impulses found [N s].
        tolerance: error of impulses that is good enough [N s], and whose work does not count.

    Returns:
        Whether any offset was changed, so that the problem has to be solved again.
    """
    changed, first, (contacts, joint_friction) = False, first_rolling_row(rolling, offset.shape[0]), counts
    for c in range(contacts):
        changed |= _oppose(s, s_plus, change, 3 * c, 3 * c + 2, offset, impulse, tolerance)
    for i in range(first - joint_friction, first):
        changed |= _oppose(s, s_plus, change, i, i + 1, offset, impulse, tolerance)
    for moment in rolling:
        end = first + int(moment[SIZE])
        changed |= _oppose(s, s_plus, change, first, end, offset, impulse, tolerance)
        first = end
    return changed


@kernel
def first_reversal(s, s_plus, gained, friction, impulse, status, joints, least):
    """Find the slip that turns back first within a step: friction turns there, and forces jump.

    It has turned back where it is the other way at the end. Where friction holds it at the end, it has too if friction
    cannot: as it slows down, it stops after a share x of the step. Until then friction was at its limit; what is left
    of the impulse has to be within the limit of the rest, ``|r + x mu r_n s / |s|| <= (1 - x) mu r_n``.

    Args:
        s: (3 k + l,) row velocities at the beginning of the step [m/s].
        s_plus: (3 k + l,) at its end.
        gained: (3 k + l,) what they would change by at the acceleration of the step before.
        friction: (k,) coefficients.
        impulse: (3 k + l,) impulses of the rows [N s].
        status: (k + l,) of the contacts and one-sided rows, 0 of what carries no force.
        joints: the same of the d joints with dry friction: velocities (d,) at the beginning, at the end, and gained
            [rad/s, m/s]; their impulses (d,), and the largest ones (d,) [N m s, N s].
        least: share of the step at its beginning and at its end within which it may turn.

    Returns:
        The contact, or k + i for the i-th of the joints; -1 if there is none. And after what share of the step it
        turns, if it changes evenly.
    """
    which, share, contacts = -1, 1.0, friction.shape[0]
    for c in range(contacts):
        if status[c] > 0 and friction[c] > 0.0:
            i = 3 * c
            x = _turning_point(
                s[i : i + 2], s_plus[i : i + 2], gained[i : i + 2], impulse[i : i + 2], friction[c] * impulse[i + 2]
            )
            if x < (1.0 - STEPPING.clear) * share and least < x < 1.0 - least:
                which, share = c, x
    v, v_plus, v_gained, friction_impulse, most = joints
    for i in range(v.shape[0]):
        x = _turning_point(v[i : i + 1], v_plus[i : i + 1], v_gained[i : i + 1], friction_impulse[i : i + 1], most[i])
        if x < (1.0 - STEPPING.clear) * share and least < x < 1.0 - least:
            which, share = contacts + i, x
    return which, share


@kernel
def _turning_point(s, s_plus, gained, impulse, most):
    """Return after what share of a step slip turns back, see :func:`first_reversal`; 1.0: it does not."""
    count = s.shape[0]
    squared, left, slowing = _dot(s, s, 0, count), _dot(s, s_plus, 0, count), -_dot(s, gained, 0, count)
    if not squared > STEPPING.followed_slip**2:
        return 1.0
    size, stops = np.sqrt(squared), slowing > squared
    if left < -STEPPING.followed_slip * size:
        return squared / (slowing if stops else squared - left)
    if left > STEPPING.followed_slip * size or not stops:
        return 1.0
    x, rest = squared / slowing, 0.0
    for i in range(count):
        rest += (impulse[i] + x * most * s[i] / size) ** 2
    return x if np.sqrt(rest) > (1.0 - x) * most * (1.0 + STEPPING.clear) else 1.0


@kernel(inline=True)
def _oppose(s, s_plus, change, first, end, offset, impulse, tolerance):
    """Let friction in these rows oppose the mean slip, if that is to be; return whether it is."""
    work = slip = begin = left = 0.0
    for i in range(first, end):
        mean, kept = 0.5 * (s[i] + s_plus[i]), 2.0 * s[i] - change[i]
        work, slip, begin, left = work + impulse[i] * mean, slip + mean * mean, begin + s[i] * s[i], left + kept * kept
    if not work > STEPPING.positive_work + tolerance * np.sqrt(slip) or left < STEPPING.opposite**2 * begin:
        return False
    for i in range(first, end):
        offset[i] += s[i]
    return True


@kernel(inline=True)
def _dot(a, b, first, end):
    """Return the scalar product of these entries of a and b, few of them."""
    total = 0.0
    for i in range(first, end):
        total += a[i] * b[i]
    return total

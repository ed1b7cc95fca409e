"""Compiled kernels of the time stepper: which contacts matter, and what the impulses of a step do."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.discs import SIZE
from constrained_sim.contact.kernels import STICKING
from constrained_sim.contact.table import TOUCHING
from constrained_sim.products import ANY_ORDER, matvec, vecdot

POSITIVE_WORK = 1e-13
"""[J] of friction in one step that is not rounding."""

LEAST_SLIP, LEFT = 1e-6, 0.5
"""Slip [m/s, rad/s] that goes on through a step if this part of it is left at its end."""

REVERSED = 1e-3
"""Part of a slip that is left of its sum with the slip a step before, if it is the opposite of that."""

MOST_PROJECTIONS = 5
"""Tangent steps onto the constraints in one step; each squares the violation that is left."""

LEVER = 1e4
"""Most motion [rad, m] per drift [m] that is taken back for the sake of contacts."""


@kernel
def closing_contacts(gaps, normals, s, J, acceleration, rest, impact_speed, closing):  # type: ignore[no-untyped-def]
    """Find the contacts and limits predicted to close within `rest` [s], in the order of their linear closing times.

    Args:
        gaps: (k + l,) [m, rad].
        normals: (k + l,) which rows close.
        s: (3 k + l,) row velocities [m/s, rad/s].
        J: (3 k + l, nv) rows.
        acceleration: (nv,) of the last step; only what brings a contact nearer counts.
        rest: [s].
        impact_speed: approach speed [m/s] below which nothing is an impact.
        closing: (k + l,) is filled with them, from its beginning.

    Returns:
        How many.
    """
    count = 0
    for c in range(gaps.shape[0]):
        speed = s[normals[c]]
        if speed < -impact_speed:
            fall = rest * speed + 0.5 * rest**2 * min(vecdot(J[normals[c]], acceleration), 0.0)
            if gaps[c] + fall < 0.0:
                closing[count] = c
                count += 1
    if count > 1:
        first = closing[:count]
        closing[:count] = first[np.argsort(-gaps[first] / s[normals[first]], kind="mergesort")]
    return count


@kernel
def candidate_rows(gaps, normals, s, v, J_middle, excluded, h, share, reach, friction_dofs):  # type: ignore[no-untyped-def]
    """Choose what may carry force, and give its rows the offset that makes ``J v' + offset`` = s'.

    Args:
        gaps: (k + l,) of contacts and one-sided rows at the beginning of the step [m, rad].
        normals: (k + l,) which rows open and close.
        s: (3 k + l,) row velocities there [m/s, rad/s].
        v: (nv,) velocity there.
        J_middle: (3 k + l, nv) rows at the evaluation point.
        excluded: contacts that may not.
        h: length of the step [s].
        share: see :func:`allow_approach`.
        reach: predicted gap [m] up to which a contact takes part.
        friction_dofs: (d,) degrees of freedom with dry friction; a row of each, without offset, comes after theirs.

    Returns:
        (candidates (c,), their rows (n,), J (n + d, nv) and offset (n + d,) of these and of dry friction).
    """
    contacts = (s.shape[0] - gaps.shape[0]) // 2
    candidates, count = np.empty(gaps.shape[0], dtype=np.int64), 0
    for c in range(gaps.shape[0]):
        takes_part = gaps[c] + h * min(s[normals[c]], 0.0) <= reach
        for other in excluded:
            takes_part = takes_part and other != c
        if takes_part:
            candidates[count] = c
            count += 1
    candidates = candidates[:count]
    rows = rows_of(candidates, normals, contacts)
    J = np.zeros((rows.shape[0] + friction_dofs.shape[0], v.shape[0]))
    offset = np.zeros(J.shape[0])
    for i in range(rows.shape[0]):
        for j in range(v.shape[0]):
            J[i, j] = J_middle[rows[i], j]
        offset[i] = vecdot(J[i], v) - s[rows[i]]
    for i in range(friction_dofs.shape[0]):
        J[rows.shape[0] + i, friction_dofs[i]] = 1.0
    allow_approach(candidates, contacts, gaps, normals, s, h, share, offset)
    return candidates, rows, J, offset


@kernel
def allow_approach(chosen, contacts, gaps, normals, s, h, share, offset):  # type: ignore[no-untyped-def]
    """Let what is `chosen` (c,) close as fast as it opened, or as a gap allows: added to its `offset`, in place.

    Positions move with the mean velocity ``(1 - share) s + share s'``, so an open gap allows
    ``-s' <= (gap / h + (1 - share) s) / share``.

    Args:
        chosen: contacts and one-sided rows, ascending; their rows come in this order, three of each contact.
        contacts: the number k of all contacts.
        gaps: (k + l,) at the beginning of a step [m, rad].
        normals: (k + l,) which rows open and close.
        s: (3 k + l,) velocities of the rows there [m/s, rad/s].
        h: length of the step [s].
        share: of the velocity at the end in the mean velocity, ``SteppingScheme.share``.
        offset: of the rows of what is chosen, and perhaps of others after them.
    """
    row = -1
    for c in chosen:
        row += 3 if c < contacts else 1
        gap, opening = gaps[c], s[normals[c]]
        kept = (gap / h + (1.0 - share) * opening) / share if gap > TOUCHING else 0.0
        offset[row] += max(kept, opening, 0.0)


@kernel
def rows_of(chosen, normals, contacts):  # type: ignore[no-untyped-def]
    """Return the rows (n,) of contacts and one-sided rows, `chosen` (c,) among them: three of each contact.

    Args:
        chosen: ascending.
        normals: (k + l,) which rows open and close.
        contacts: their number k.
    """
    rows = np.empty(3 * chosen.shape[0], dtype=np.int64)
    count = 0
    for c in chosen:
        for row in range(normals[c] - 2 if c < contacts else normals[c], normals[c] + 1):
            rows[count] = row
            count += 1
    return rows[:count]


@kernel
def follow_mean_slip(s, s_plus, contacts, discs, offset):  # type: ignore[no-untyped-def]
    """Let friction of what slides on through the step oppose the mean slip: offset += s, in place.

    Opposed to the slip at the end, it would be of first order where the slip turns. Arguments as in
    :func:`oppose_mean_slip`, with velocities near those at the end.
    """
    for c in range(contacts):
        _follow(s, s_plus, 3 * c, 3 * c + 2, offset)
    first = _begin_of(discs, offset.shape[0])
    for disc in discs:
        end = first + int(disc[SIZE])
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
def oppose_mean_slip(s, s_plus, change, contacts, dry, discs, offset, impulse, tolerance):  # type: ignore[no-untyped-def]
    """Find where friction would do positive work, and let it oppose the mean slip: offset += s, in place.

    The work of friction over a step is ``r_t (s + s') / 2``. What it holds in the mean ends the step with ``s' = -s``.
    If s has become the opposite of itself in that way, it is to come to rest now, whatever the work: forces that are
    not unique may change from step to step so that it would go to and fro for ever.

    Args:
        s: (n,) row velocities at the beginning of the step [m/s].
        s_plus: (n,) those found for its end [m/s].
        change: (n,) by how much s has changed in the last step, if that was as long as this one [m/s].
        contacts: number of contacts, whose rows come first, three each.
        dry: number of rows of dry joint friction, the last but those of discs.
        discs: (d, 6), whose rows come last.
        offset: (n,) of the rows.
        impulse: (n,) impulses found [N s].
        tolerance: error of impulses that is good enough [N s], and whose work does not count.

    Returns:
        Whether any offset was changed, so that the problem has to be solved again.
    """
    changed, first = False, _begin_of(discs, offset.shape[0])
    for c in range(contacts):
        changed |= _oppose(s, s_plus, change, 3 * c, 3 * c + 2, offset, impulse, tolerance)
    for i in range(first - dry, first):
        changed |= _oppose(s, s_plus, change, i, i + 1, offset, impulse, tolerance)
    for disc in discs:
        end = first + int(disc[SIZE])
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
def _begin_of(discs, rows):  # type: ignore[no-untyped-def]
    """Return the first row of `discs` (d, 6), whose rows are the last."""
    first = rows
    for disc in discs:
        first -= int(disc[SIZE])
    return first


@kernel(inline=True)
def _dot(a, b, first, end):  # type: ignore[no-untyped-def]
    """Return the scalar product of these entries of a and b, few of them."""
    total = 0.0
    for i in range(first, end):
        total += a[i] * b[i]
    return total


@kernel
def pressing(status, gaps, end, excluded):  # type: ignore[no-untyped-def]
    """Find what carries force, and whose position is to be held.

    Args:
        status: (k + l,) of contacts and one-sided rows at the end of a step.
        gaps: (k + l,) at its beginning [m, rad]; infinite of soft contacts.
        end: (k + l,) at its end [m, rad].
        excluded: what neither carries force nor is held.

    Returns:
        (what carries force, what of it touched at the beginning, or sank within the step with or without force).
    """
    presses, held = np.empty(gaps.shape[0], dtype=np.int64), np.empty(gaps.shape[0], dtype=np.int64)
    pressing = holding = 0
    for c in range(gaps.shape[0]):
        is_pressed, sank = status[c] > 0 and gaps[c] < np.inf, gaps[c] >= -TOUCHING and end[c] < -TOUCHING
        for other in excluded:
            sank = sank and other != c
        if is_pressed:
            presses[pressing] = c
            pressing += 1
        if (is_pressed and gaps[c] <= TOUCHING) or sank:
            held[holding] = c
            holding += 1
    return presses[:pressing], held[:holding]


@kernel
def spread(candidates, normals, impulse, status, all_impulses, all_status):  # type: ignore[no-untyped-def]
    """Fill in impulses and status of all contacts and one-sided rows.

    Args:
        candidates: (c,) those that might carry force.
        normals: (k + l,) which rows open and close.
        impulse: impulses of the candidates' rows.
        status: (c,) of the candidates.
        all_impulses: (3 k + l,) filled, zero of what is no candidate.
        all_status: (k + l,) likewise.
    """
    contacts, row = (all_impulses.shape[0] - normals.shape[0]) // 2, 0
    all_impulses[:], all_status[:] = 0.0, 0
    for i in range(candidates.shape[0]):
        c = candidates[i]
        n = normals[c]
        for target in range(n - 2 if c < contacts else n, n + 1):
            all_impulses[target] = impulse[row]
            row += 1
        all_status[c] = status[i]


@kernel
def held_rows(held, normals, status):  # type: ignore[no-untyped-def]
    """Return the rows whose position is to stay: normal ones of what is `held`, all rows of contacts that stick."""
    contacts = (normals[-1] + 1 - normals.shape[0]) // 2 if normals.shape[0] else 0
    rows = np.empty(3 * held.shape[0], dtype=np.int64)
    count = 0
    for c in held:
        n = normals[c]
        for row in range(n - 2 if c < contacts and status[c] == STICKING else n, n + 1):
            rows[count] = row
            count += 1
    return rows[:count]


@kernel(inline=True)
def largest_drift(phi, gaps, held):  # type: ignore[no-untyped-def]
    """Return by how much a bilateral row (violation phi) or a held contact (its gap) is off at most [m, rad]."""
    largest = 0.0
    for value in phi:
        largest = max(largest, abs(value))
    for c in held:
        largest = max(largest, abs(gaps[c]))
    return largest


@kernel
def largest_violation(phi, gaps, s):  # type: ignore[no-untyped-def]
    """Return the largest of ``|phi|`` (m,) and the depths ``-gaps`` (k + l,), and the largest ``|s|`` (m,)."""
    position = velocity = 0.0
    for value in phi:
        position = max(position, abs(value))
    for gap in gaps:
        position = max(position, -gap)
    for value in s:
        velocity = max(velocity, abs(value))
    return position, velocity


@kernel
def attribute_work(energy, contacts, constraints):  # type: ignore[no-untyped-def]
    """Set the work of contacts and constraints in `energy` (9,) to that of their whole impulses, in place.

    Prediction and correction each close on their own, but a force that is predicted and then withdrawn would show as
    work though it never acted: the difference belongs to the inertial forces, which the correction is about.
    """
    energy[0] += energy[4] + energy[5] - contacts - constraints
    energy[4], energy[5] = contacts, constraints


@kernel
def attribute_dry_work(energy, begin, predicted, end, first, whole):  # type: ignore[no-untyped-def]
    """Set the work of dry joint friction in `energy` (9,) likewise to that of its whole impulse, in place.

    Args:
        energy: terms of the step.
        begin: (d,) velocities at the beginning [rad/s, m/s].
        predicted: (d,) as predicted for the end.
        end: (d,) at the end.
        first: (d,) impulses of the prediction [N m s, N s].
        whole: (d,) impulses of the step.
    """
    missing = 0.0
    for i in range(whole.shape[0]):
        counted = first[i] * (begin[i] + predicted[i]) + (whole[i] - first[i]) * (predicted[i] + end[i])
        missing += 0.5 * (whole[i] * (begin[i] + end[i]) - counted)
    energy[0] -= missing
    energy[3] += missing


@kernel
def momentum(M, v, impulses):  # type: ignore[no-untyped-def]
    """Return (nv,) ``M v`` plus the sum of `impulses` (6, nv)."""
    total = matvec(M, v)
    for cause in range(impulses.shape[0]):
        for i in range(total.shape[0]):
            total[i] += impulses[cause, i]
    return total


@kernel(inline=True)
def are_finite(q, v):  # type: ignore[no-untyped-def]
    """Return whether all entries of q (nq,) and v (nv,) are finite."""
    for value in q:
        if not np.isfinite(value):
            return False
    for value in v:
        if not np.isfinite(value):
            return False
    return True


@kernel(inline=True)
def exceeds(values, limit):  # type: ignore[no-untyped-def]
    """Return whether any of `values` is larger than `limit` in magnitude."""
    for value in values:
        if abs(value) > limit:
            return True
    return False


@kernel(fastmath=ANY_ORDER)
def energy_of(v, v_plus, M, impulses):  # type: ignore[no-untyped-def]
    """Return (9,) the terms of :class:`~constrained_sim.energy.EnergyTerms` of a change of velocity at constant M.

    Args:
        v: (nv,) at its beginning.
        v_plus: (nv,) at its end.
        M: (nv, nv) inertia.
        impulses: (6, nv) generalised impulses [N m s, N s] of the causes in the order of ``FORCES``.
    """
    terms = np.zeros(9)
    for i in range(v.shape[0]):
        mean, change = 0.5 * (v[i] + v_plus[i]), 0.0
        for cause in range(6):
            terms[cause] += impulses[cause, i] * mean
        for j in range(v.shape[0]):
            change += M[i, j] * (v_plus[j] - v[j])
        terms[6] += mean * change
    return terms

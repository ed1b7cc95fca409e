"""Compiled kernels of the time stepper: which contacts matter, and what the impulses of a step do."""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.discs import SIZE
from constrained_sim.contact.kernels import STICKING
from constrained_sim.contact.table import TOUCHING
from constrained_sim.products import matvec, vecdot

POSITIVE_WORK = 1e-13
"""[J] of friction in one step that is not rounding."""

LEAST_SLIP, LEFT = 1e-6, 0.5
"""Slip [m/s, rad/s] that goes on through a step if this part of it is left at its end."""

MOST_PROJECTIONS = 5
"""Tangent steps onto the constraints in one step; each squares the violation that is left."""

LEVER = 1e4
"""Most motion [rad, m] per drift [m] that is taken back for the sake of contacts."""


@numba.njit(cache=True)
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
    times = np.full(gaps.shape[0], np.inf)
    count = 0
    for c in range(gaps.shape[0]):
        speed = s[normals[c]]
        if speed < -impact_speed:
            fall = rest * speed + 0.5 * rest**2 * min(vecdot(J[normals[c]], acceleration), 0.0)
            if gaps[c] + fall < 0.0:
                times[c] = -gaps[c] / speed
                count += 1
    if count:
        closing[:count] = np.argsort(times, kind="mergesort")[:count]
    return count


@numba.njit(cache=True)
def candidate_rows(gaps, normals, s, s_middle, J_middle, excluded, h, share, reach):  # type: ignore[no-untyped-def]
    """Choose what may carry force, and give its rows the offset that makes ``J v' + offset`` = s'.

    Args:
        gaps: (k + l,) of contacts and one-sided rows at the beginning of the step [m, rad].
        normals: (k + l,) which rows open and close.
        s: (3 k + l,) row velocities there [m/s, rad/s].
        s_middle: (3 k + l,) velocities, for the same v, of the rows at the evaluation point.
        J_middle: (3 k + l, nv) those rows.
        excluded: contacts that may not.
        h: length of the step [s].
        share: see :func:`allowed_approach`.
        reach: predicted gap [m] up to which a contact takes part.

    Returns:
        (candidates (c,), their rows (n,), J and offset of these).
    """
    contacts = (s.shape[0] - gaps.shape[0]) // 2
    chosen = np.zeros(gaps.shape[0], dtype=np.bool_)
    for c in range(gaps.shape[0]):
        chosen[c] = gaps[c] + h * min(s[normals[c]], 0.0) <= reach
    for c in excluded:
        chosen[c] = False
    candidates = np.flatnonzero(chosen)
    rows = rows_of(candidates, normals, contacts)
    J, offset = np.empty((rows.shape[0], J_middle.shape[1])), np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        J[i] = J_middle[rows[i]]
        offset[i] = s_middle[rows[i]] - s[rows[i]]
    row = -1
    for candidate in candidates:
        row += 3 if candidate < contacts else 1
        offset[row] += allowed_approach(gaps[candidate], s[normals[candidate]], h, share)
    return candidates, rows, J, offset


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def follow_mean_slip(s, s_plus, contacts, discs, offset):  # type: ignore[no-untyped-def]
    """Let friction of what slides on through the step oppose the mean slip: offset += s, in place.

    Opposed to the slip at the end, it would be of first order where the slip turns. Arguments as in
    :func:`oppose_mean_slip`, with velocities near those at the end.
    """
    for first, end in _friction_forces(contacts, 0, discs, offset.shape[0]):
        squared = _dot(s, s, first, end)
        if squared > LEAST_SLIP**2 and _dot(s, s_plus, first, end) > LEFT * squared:
            offset[first:end] += s[first:end]


@numba.njit(cache=True)
def oppose_mean_slip(s, s_plus, contacts, dry, discs, offset, impulse, tolerance):  # type: ignore[no-untyped-def]
    """Find where friction would do positive work, and let it oppose the mean slip: offset += s, in place.

    The work of friction over a step is ``r_t (s + s') / 2``.

    Args:
        s: (n,) row velocities at the beginning of the step [m/s].
        s_plus: (n,) those found for its end [m/s].
        contacts: number of contacts, whose rows come first, three each.
        dry: number of rows of dry joint friction, the last but those of discs.
        discs: (d, 6), whose rows come last.
        offset: (n,) of the rows.
        impulse: (n,) impulses found [N s].
        tolerance: error of impulses that is good enough [N s], and whose work does not count.

    Returns:
        Whether any offset was changed, so that the problem has to be solved again.
    """
    changed, mean = False, 0.5 * (s + s_plus)
    for first, end in _friction_forces(contacts, dry, discs, offset.shape[0]):
        work, slip = _dot(impulse, mean, first, end), np.sqrt(_dot(mean, mean, first, end))
        if work > POSITIVE_WORK + tolerance * slip:
            offset[first:end] += s[first:end]
            changed = True
    return changed


@numba.njit(cache=True)
def _dot(a, b, first, end):  # type: ignore[no-untyped-def]
    """Return the scalar product of these entries of a and b, few of them."""
    total = 0.0
    for i in range(first, end):
        total += a[i] * b[i]
    return total


@numba.njit(cache=True)
def _friction_forces(contacts, dry, discs, rows):  # type: ignore[no-untyped-def]
    """Return (f, 2) the first row, and the end of the rows, of each force that opposes a slip: see the above."""
    forces = np.empty((contacts + dry + discs.shape[0], 2), dtype=np.int64)
    end = rows - int(discs[:, SIZE].sum())
    for c in range(contacts):
        forces[c, 0], forces[c, 1] = 3 * c, 3 * c + 2
    for i in range(dry):
        forces[contacts + i, 0], forces[contacts + i, 1] = end - dry + i, end - dry + i + 1
    for d in range(discs.shape[0]):
        first, end = end, end + int(discs[d, SIZE])
        forces[contacts + dry + d, 0], forces[contacts + dry + d, 1] = first, end
    return forces


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def allowed_approach(gap, s, h, share):  # type: ignore[no-untyped-def]
    """Return how fast [m/s, rad/s] a contact may close at the end of a step: as fast as it opened; so that a gap stays.

    Positions move with the mean velocity ``(1 - share) s + share s'``, so an open gap allows
    ``-s' <= (gap / h + (1 - share) s) / share``.

    Args:
        gap: at the beginning [m, rad].
        s: velocity there with which it opens [m/s, rad/s].
        h: length of the step [s].
        share: of the velocity at the end in the mean velocity, ``SteppingScheme.share``.
    """
    kept = (gap / h + (1.0 - share) * s) / share if gap > TOUCHING else 0.0
    return max(kept, s, 0.0)


@numba.njit(cache=True)
def spread(candidates, normals, impulse, status, rows):  # type: ignore[no-untyped-def]
    """Return impulses and status of all contacts and one-sided rows.

    Args:
        candidates: (c,) those that might carry force.
        normals: (k + l,) which rows open and close.
        impulse: impulses of the candidates' rows.
        status: (c,) of the candidates.
        rows: number of all rows, 3 k + l.
    """
    contacts = (rows - normals.shape[0]) // 2
    all_impulses = np.zeros(rows)
    all_status = np.zeros(normals.shape[0], dtype=np.int64)
    row = 0
    for i in range(candidates.shape[0]):
        c = candidates[i]
        n = normals[c]
        for target in range(n - 2 if c < contacts else n, n + 1):
            all_impulses[target] = impulse[row]
            row += 1
        all_status[c] = status[i]
    return all_impulses, all_status


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def largest_drift(phi, gaps, held):  # type: ignore[no-untyped-def]
    """Return by how much a bilateral row (violation phi) or a held contact (its gap) is off at most [m, rad]."""
    largest = 0.0
    for value in phi:
        largest = max(largest, abs(value))
    for c in held:
        largest = max(largest, abs(gaps[c]))
    return largest


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def attribute_work(energy, contacts, constraints):  # type: ignore[no-untyped-def]
    """Set the work of contacts and constraints in `energy` (9,) to that of their whole impulses, in place.

    Prediction and correction each close on their own, but a force that is predicted and then withdrawn would show as
    work though it never acted: the difference belongs to the inertial forces, which the correction is about.
    """
    energy[0] += energy[4] + energy[5] - contacts - constraints
    energy[4], energy[5] = contacts, constraints


@numba.njit(cache=True)
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
    counted = vecdot(first, begin + predicted) + vecdot(whole - first, predicted + end)
    missing = 0.5 * (vecdot(whole, begin + end) - counted)
    energy[0] -= missing
    energy[3] += missing


@numba.njit(cache=True)
def momentum(M, v, impulses):  # type: ignore[no-untyped-def]
    """Return (nv,) ``M v`` plus the sum of `impulses` (6, nv)."""
    total = matvec(M, v)
    for cause in range(impulses.shape[0]):
        for i in range(total.shape[0]):
            total[i] += impulses[cause, i]
    return total


@numba.njit(cache=True)
def are_finite(q, v):  # type: ignore[no-untyped-def]
    """Return whether all entries of q (nq,) and v (nv,) are finite."""
    for value in q:
        if not np.isfinite(value):
            return False
    for value in v:
        if not np.isfinite(value):
            return False
    return True


@numba.njit(cache=True)
def exceeds(values, limit):  # type: ignore[no-untyped-def]
    """Return whether any of `values` is larger than `limit` in magnitude."""
    for value in values:
        if abs(value) > limit:
            return True
    return False


@numba.njit(cache=True)
def energy_of(v, v_plus, M, impulses):  # type: ignore[no-untyped-def]
    """Return (9,) the terms of :class:`~constrained_sim.energy.EnergyTerms` of a change of velocity at constant M.

    Args:
        v: (nv,) at its beginning.
        v_plus: (nv,) at its end.
        M: (nv, nv) inertia.
        impulses: (6, nv) generalised impulses [N m s, N s] of the causes in the order of ``FORCES``.
    """
    terms = np.zeros(9)
    mean = 0.5 * (v + v_plus)
    terms[:6] = matvec(impulses, mean)
    terms[6] = vecdot(mean, matvec(M, v_plus - v))
    return terms

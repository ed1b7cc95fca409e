"""Which contacts and limits take part in a step: compiled selections, and the rows that belong to them."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.contact_solvers.status import STICKING
from constrained_sim.linalg.products import vecdot


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
def candidate_rows(gaps, normals, s, v, J_middle, excluded, h, theta, activation_distance, friction_dofs):  # type: ignore[no-untyped-def]
    """Choose what may carry force, and give its rows the offset that makes ``J v' + offset`` = s'.

    Args:
        gaps: (k + l,) of contacts and one-sided rows at the beginning of the step [m, rad].
        normals: (k + l,) which rows open and close.
        s: (3 k + l,) row velocities there [m/s, rad/s].
        v: (nv,) velocity there.
        J_middle: (3 k + l, nv) rows at the evaluation point.
        excluded: contacts that may not.
        h: length of the step [s].
        theta: see :func:`allow_approach`.
        activation_distance: predicted gap [m] up to which a contact takes part.
        friction_dofs: (d,) degrees of freedom with dry friction; a row of each, without offset, comes after theirs.

    Returns:
        (candidates (c,), their rows (n,), J (n + d, nv) and offset (n + d,) of these and of dry friction).
    """
    contacts = (s.shape[0] - gaps.shape[0]) // 2
    candidates, count = np.empty(gaps.shape[0], dtype=np.int64), 0
    for c in range(gaps.shape[0]):
        takes_part = gaps[c] + h * min(s[normals[c]], 0.0) <= activation_distance
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
    allow_approach(candidates, contacts, gaps, normals, s, h, theta, offset)
    return candidates, rows, J, offset


@kernel
def allow_approach(chosen, contacts, gaps, normals, s, h, theta, offset):  # type: ignore[no-untyped-def]
    """Let what is `chosen` (c,) close as fast as it opened, or as a gap allows: added to its `offset`, in place.

    Positions move with the mean velocity ``(1 - theta) s + theta s'``, so an open gap allows
    ``-s' <= (gap / h + (1 - theta) s) / theta``.

    Args:
        chosen: contacts and one-sided rows, ascending; their rows come in this order, three of each contact.
        contacts: the number k of all contacts.
        gaps: (k + l,) at the beginning of a step [m, rad].
        normals: (k + l,) which rows open and close.
        s: (3 k + l,) velocities of the rows there [m/s, rad/s].
        h: length of the step [s].
        theta: of the velocity at the end in the mean velocity, ``SteppingScheme.theta``.
        offset: of the rows of what is chosen, and perhaps of others after them.
    """
    row = -1
    for c in chosen:
        row += 3 if c < contacts else 1
        gap, opening = gaps[c], s[normals[c]]
        kept = (gap / h + (1.0 - theta) * opening) / theta if gap > TOUCHING else 0.0
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
def active_set(status, gaps, end, excluded):  # type: ignore[no-untyped-def]
    """Find what carries force, and whose position is to be held.

    Args:
        status: (k + l,) of contacts and one-sided rows at the end of a step.
        gaps: (k + l,) at its beginning [m, rad]; infinite of soft contacts.
        end: (k + l,) at its end [m, rad].
        excluded: what neither carries force nor is held.

    Returns:
        (what carries force, what of it touched at the beginning, or sank within the step with or without force).
    """
    active, held = np.empty(gaps.shape[0], dtype=np.int64), np.empty(gaps.shape[0], dtype=np.int64)
    count = holding = 0
    for c in range(gaps.shape[0]):
        is_active, sank = status[c] > 0 and gaps[c] < np.inf, gaps[c] >= -TOUCHING and end[c] < -TOUCHING
        for other in excluded:
            sank = sank and other != c
        if is_active:
            active[count] = c
            count += 1
        if (is_active and gaps[c] <= TOUCHING) or sank:
            held[holding] = c
            holding += 1
    return active[:count], held[:holding]


@kernel
def spread(candidates, normals, impulse, status, all_impulses, all_status):  # type: ignore[no-untyped-def]
    """Fill in impulses and status of all contacts and one-sided rows.

    Args:
        candidates: (c,) those that might carry force.
        normals: (k + l,) which rows open and close.
        impulse: impulses of the candidates' rows.
        status: (c,) of the candidates.
        all_impulses: (3 k + l,) filled, zero of what is no candidate.
        all_status: (k + l,) filled, zero of what is no candidate.
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

"""Selection of the contacts and limits that take part in a step, and of their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.contact_set import TOUCHING, rows_of
from constrained_sim.contact.rolling import turning_among
from constrained_sim.linalg.products import vecdot
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.options import STEPPING
from constrained_sim.validation import Array


@kernel
def closing_contacts(gaps, normals, s, J, acceleration, rest, impact_speed, closing):
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
            if gaps[c] + fall < 0.0 or gaps[c] <= TOUCHING:  # a short step falls by less than a closed gap
                closing[count] = c
                count += 1
    if count > 1:
        first = closing[:count]
        closing[:count] = first[np.argsort(-gaps[first] / s[normals[first]], kind="mergesort")]
    return count


@register_jitable
def gaps_ahead(gaps, distances, soft):
    """Return (k + l,) gaps of all that can still touch down [m, rad]; infinite of soft contacts that touch.

    Args:
        gaps: (k + l,) [m, rad], infinite of soft contacts.
        distances: (k,) of all contacts [m].
        soft: (s,) which of them are soft.
    """
    if soft.shape[0] == 0:
        return gaps
    ahead = gaps.copy()
    for c in soft:
        if distances[c] > TOUCHING:
            ahead[c] = distances[c]
    return ahead


@kernel(stage=True, spliced=True)
def will_close(model, h, begin, acceleration):
    """Return whether anything is predicted to close within the next h [s].

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        h: [s].
        begin: the state at the beginning.
        acceleration: (nv,) of the last step.
    """
    contacts, impact_speed = borrowed(model.contacts), model.options.impact_speed
    gaps = gaps_ahead(begin.gaps, begin.distances, contacts.soft.contacts)
    closing = np.empty(gaps.shape[0], dtype=np.int64)
    return closing_contacts(gaps, contacts.normals, begin.s, begin.J, acceleration, h, impact_speed, closing) > 0


class ActiveRows(NamedTuple):
    """The rows that may carry force in a step: of contacts and one-sided rows, then of dry friction, then of turning.

    Attributes:
        chosen: (c,) the contacts and one-sided rows, ascending.
        rows: (n,) theirs, three of each contact.
        J: (n + d + f, nv) all rows.
        offset: (n + d + f,) what is added to ``J v'``, so that it is the quantity of the contact law.
        compliance: (n,) what is added to the diagonal of the Delassus matrix [1/kg]; (0,): nothing.
        turning: (f,) which rows of turning there are.
        moments: (g, 6) of these, see :class:`~constrained_sim.contact.rolling.TurningRows`.
    """

    chosen: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    J: Array
    offset: Array
    compliance: Array
    turning: npt.NDArray[np.int64]
    moments: Array


@kernel(stage=True, spliced=True)
def candidate_rows(model, h, begin, v, middle, soft, excluded):
    """Choose what may carry force, and give its rows the offset that makes ``J v' + offset`` = s'.

    The row of a degree of freedom with dry friction has no offset.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        h: length of the step [s].
        begin: the state at its beginning.
        v: (nv,) velocity there, along the axes at the evaluation point.
        middle: the state at the evaluation point.
        soft: the :class:`~constrained_sim.steppers.soft_rows.SoftRows` of the step.
        excluded: (x,) contacts and limits that carry no force.

    Returns:
        The :class:`ActiveRows`.
    """
    contacts, options = borrowed(model.contacts), model.options
    friction_dofs = borrowed(model.robot).joints.friction_dofs
    gaps, s, normals = begin.gaps, begin.s, contacts.normals
    chosen, count, active_soft = np.empty(gaps.shape[0], dtype=np.int64), 0, soft.contacts
    for c in range(gaps.shape[0]):
        takes_part = gaps[c] + h * min(s[normals[c]], 0.0) <= STEPPING.activation_distance
        for other in active_soft:
            takes_part = takes_part or other == c
        for other in excluded:
            takes_part = takes_part and other != c
        if takes_part:
            chosen[count] = c
            count += 1
    active = _rows_at(contacts, friction_dofs, chosen[:count], middle)
    rows, J, offset, compliance, turning = active.rows, active.J, active.offset, active.compliance, active.turning
    n, d = rows.shape[0], friction_dofs.shape[0]
    for i in range(n):
        offset[i] = vecdot(J[i], v) - s[rows[i]]
    for i in range(turning.shape[0]):
        offset[n + d + i] = vecdot(J[n + d + i], v) - vecdot(begin.turning[turning[i]], begin.v)
    allow_approach(active.chosen, normals, begin, h, options.theta, offset)
    if active_soft.shape[0]:
        compliance = np.zeros(n)
        for i in range(active_soft.shape[0]):
            first = np.searchsorted(rows, 3 * active_soft[i])
            for axis in range(3):
                offset[first + axis] += soft.offset[3 * i + axis]
                compliance[first + axis] = soft.compliance[3 * i + axis]
    return ActiveRows(active.chosen, rows, J, offset, compliance, turning, active.moments)


@kernel(stage=True, spliced=True)
def active_rows(model, h, begin, end, active):
    """Return the :class:`ActiveRows` at the end of a step, of what is `active` (c,) in it; arguments as above."""
    contacts, friction_dofs = borrowed(model.contacts), borrowed(model.robot).joints.friction_dofs
    rows = _rows_at(contacts, friction_dofs, active, end)
    allow_approach(active, contacts.normals, begin, h, model.options.theta, rows.offset)
    return rows


@kernel(spliced=True)
def _rows_at(contacts, friction_dofs, chosen, state):
    """Return the :class:`ActiveRows` of what is `chosen`, with zero offset, at a `state`."""
    rows = rows_of(chosen, contacts.normals, contacts.friction.shape[0])
    turning, moments = turning_among(contacts.turning, chosen)
    n, d, f = rows.shape[0], friction_dofs.shape[0], turning.shape[0]
    all_J = state.J
    J = np.zeros((n + d + f, all_J.shape[1]))
    for i in range(n):
        for j in range(J.shape[1]):
            J[i, j] = all_J[rows[i], j]
    for i in range(d):
        J[n + i, friction_dofs[i]] = 1.0
    for i in range(f):
        J[n + d + i] = state.turning[turning[i]]
    return ActiveRows(chosen, rows, J, np.zeros(n + d + f), np.empty(0), turning, moments)


@kernel
def allow_approach(chosen, normals, begin, h, theta, offset):
    """Let what is `chosen` (c,) close as fast as it opened, or as a gap allows: added to its `offset`, in place.

    Positions move with the mean velocity ``(1 - theta) s + theta s'``, so an open gap allows
    ``-s' <= (gap / h + (1 - theta) s) / theta``.

    Args:
        chosen: contacts and one-sided rows, ascending; their rows come in this order, three of each contact. Of soft
            contacts, whose gaps are infinite, nothing is allowed.
        normals: (k + l,) which rows open and close.
        begin: the state at the beginning of a step.
        h: length of the step [s].
        theta: of the velocity at the end in the mean velocity, ``SteppingScheme.theta``.
        offset: of the rows of what is chosen, and perhaps of others after them.
    """
    row, contacts, gaps, s = -1, begin.distances.shape[0], begin.gaps, begin.s
    for c in chosen:
        row += 3 if c < contacts else 1
        gap, opening = gaps[c], s[normals[c]]
        if gap == np.inf:
            continue
        kept = (gap / h + (1.0 - theta) * opening) / theta if gap > TOUCHING else 0.0
        offset[row] += max(kept, opening, 0.0)


@kernel
def active_set(status, gaps, end, excluded):
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

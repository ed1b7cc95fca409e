"""Status of each contact of a solved problem: open, sticking or sliding."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.rolling_rows import (
    CONTACT,
    DIRECTION,
    RADIUS,
    SIZE,
    first_rolling_row,
    moment_limit,
)


class ContactStatus(IntEnum):
    """Whether a contact carries force, and whether it slips."""

    OPEN = 0
    STICKING = 1
    SLIDING = 2


OPEN, STICKING, SLIDING = map(int, ContactStatus)


@kernel
def classify(laws, p, u, r, tolerance):
    """Return (k + m + d,) status of contacts, box rows and rolling friction: OPEN, STICKING or SLIDING.

    At the row velocities u (n,) that the impulses r (n,) lead to, which are right up to the `tolerance` [N s]; `laws`
    and p as in :func:`~constrained_sim.contact_solvers.natural_map.natural_map_at`.

    A box row is open at a lower bound of 0, slides at any other bound, and sticks between; a rolling moment without a
    bound of its own is open with its contact.
    """
    friction, slip, lower, upper, rolling = laws
    contacts = friction.shape[0]
    first = contacts + lower.shape[0]
    status = np.empty(first + rolling.shape[0], dtype=np.int64)
    for c in range(friction.shape[0]):
        i = 3 * c
        if r[i + 2] <= tolerance:
            status[c] = OPEN
            continue
        length = np.hypot(r[i] - p[i] * u[i], r[i + 1] - p[i] * u[i + 1])
        slides = length > friction[c] * r[i + 2] + tolerance or friction[c] == 0.0 or slip[c].any()
        status[c] = SLIDING if slides else STICKING
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        if lower[j] == 0.0 and r[i] <= tolerance:
            status[contacts + j] = OPEN
        else:
            inside = lower[j] + tolerance < r[i] < upper[j] - tolerance
            status[contacts + j] = STICKING if inside else SLIDING
    i = first_rolling_row(rolling, r.shape[0])
    for j in range(rolling.shape[0]):
        moment, contact, end = rolling[j], int(rolling[j, CONTACT]), i + int(rolling[j, SIZE])
        if moment[RADIUS] == 0.0 and status[contact] == OPEN:
            status[first + j] = OPEN
        else:
            length = np.linalg.norm(r[i:end] - p[i:end] * u[i:end])
            normal = 0.0 if status[contact] == OPEN else r[3 * contact + 2]
            moves = length > moment_limit(moment, normal) + tolerance or moment[DIRECTION:].any()
            status[first + j] = SLIDING if moves else STICKING
        i = end
    return status


@kernel
def without_open(laws, status, r):
    """Return a copy of the impulses r (n,) with zeros for all that is open by its `status` (k + m + d,)."""
    friction, _, lower, _, rolling = laws
    contacts, r = friction.shape[0], r.copy()
    first = contacts + lower.shape[0]
    for c in range(contacts):
        if status[c] == OPEN:
            r[3 * c] = r[3 * c + 1] = r[3 * c + 2] = 0.0
    for j in range(contacts, first):
        if status[j] == OPEN:
            r[j + 2 * contacts] = 0.0
    i = first_rolling_row(rolling, r.shape[0])
    for j in range(rolling.shape[0]):
        end = i + int(rolling[j, SIZE])
        if status[first + j] == OPEN:
            r[i:end] = 0.0
        i = end
    return r

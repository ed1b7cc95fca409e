"""Features that pass each other: what is nearest now would touch in a while if it went on for ever, but it ends before.

A corner or an edge is a contact as if it, and what it is near to, had no end, along a normal that stays for a step. A
box that falls past the edge of a table would hit it. So what would touch within a while is looked at there: where the
bodies, moving on as they do now, are still apart at that instant, this contact is none. What they touch later shows at
the end of the step (:meth:`~constrained_sim.collision.detected_contacts.DetectedContacts.missed`).
"""

from __future__ import annotations

import numpy as np

from constrained_sim.collision.narrow_phase import ContactPoint
from constrained_sim.collision.nearest import DISTANCE_ERROR, contact_request, find_nearest
from constrained_sim.collision.placed_shape import PlacedShape
from constrained_sim.contact.contact_set import TOUCHING

INEXACT = 2.0 * DISTANCE_ERROR
"""[m] to which it is told that bodies touch: both where they are now and where they will be are known to half of it."""


def is_passed(hit: ContactPoint, first: PlacedShape, second: PlacedShape, horizon: float) -> bool:
    """Return whether two bodies are apart when the features of `hit` would touch, within a `horizon` [s].

    Args:
        hit: where the bodies are near now.
        first: a body.
        second: the other one.
        horizon: [s].
    """
    if hit.gap <= TOUCHING:
        return False
    approach = second.velocity_at(hit.two.point) - first.velocity_at(hit.one.point)
    closing = float(approach @ hit.normal)
    if closing * horizon <= hit.gap:
        return False
    instant = hit.gap / closing
    turned = instant * float(np.linalg.norm(first.velocity[1]) + np.linalg.norm(second.velocity[1]))
    allowed = INEXACT + turned * instant * float(np.linalg.norm(approach))  # what turns does not go straight
    then = find_nearest(first.after(instant), second.after(instant), contact_request(allowed))
    return then is None or then.gap > allowed

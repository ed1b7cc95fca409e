"""Features that pass each other: what is nearest now would touch in a while if it went on for ever, but it ends before.

A corner or an edge is a contact as if it, and what it is near to, had no end, along a normal that stays for a step. A
box that falls past the edge of a table would hit it. So what would touch within a while is looked at there: where the
bodies, moving on as they do now, are still apart at that instant, this contact is none. What they touch later shows at
the end of the step (:meth:`~constrained_sim.collision.detected_contacts.DetectedContacts.missed`).
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from constrained_sim.collision.narrow_phase import MISSED, ContactPoint, collide, contact_request
from constrained_sim.collision.shapes import Shape
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.kinematics import BodyMotion, velocity_at
from constrained_sim.validation import Array

INEXACT = 2.0 * MISSED
"""[m] to which coal tells that bodies touch."""


def is_passed(hit: ContactPoint, first: Shape, second: Shape, dynamics: Dynamics, horizon: float) -> bool:
    """Return whether two bodies are apart when the features of `hit` would touch, within a `horizon` [s].

    Args:
        hit: where the bodies are near now.
        first: a body.
        second: the other one.
        dynamics: at the state, its velocity included.
        horizon: [s].
    """
    if hit.gap <= TOUCHING:
        return False
    one, two = dynamics.body(first.joint), dynamics.body(second.joint)
    approach = velocity_at(two, hit.two.point) - velocity_at(one, hit.one.point)
    closing = float(approach @ hit.normal)
    if closing * horizon <= hit.gap:
        return False
    instant = hit.gap / closing
    turned = instant * float(np.linalg.norm(one.angular_velocity) + np.linalg.norm(two.angular_velocity))
    allowed = INEXACT + turned * instant * float(np.linalg.norm(approach))  # what turns does not go straight
    result = collide(first, _after(one, instant), second, _after(two, instant), contact_request(allowed))
    return result is None or result.getContact(0).penetration_depth > allowed


def _after(body: BodyMotion, duration: float) -> Array:
    """Return (4, 3) the placement after `duration` [s] at this velocity: columns of the rotation, translation."""
    rotation = pin.exp3(body.angular_velocity * duration) @ body.rotation
    return np.vstack([rotation.T, body.position + duration * body.velocity])

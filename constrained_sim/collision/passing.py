"""Features that pass each other: what is nearest now would touch in a while if it went on for ever, but it ends before.

A corner or an edge is a contact as if it, and what it is near to, had no end, along a normal that stays for a step. A
box that falls past the edge of a table would hit it. So what would touch within a while is looked at there: where the
bodies, moving on as they do now, are still apart at that instant, this contact is none. What they touch later shows at
the end of the step (:meth:`~constrained_sim.collision.detected_contacts.DetectedContacts.missed`).
"""

from __future__ import annotations

import coal
import numpy as np
import pinocchio as pin

from constrained_sim.collision.narrow_phase import MISSED, ContactPoint
from constrained_sim.collision.shapes import Shape
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.validation import Array

INEXACT = 2.0 * MISSED
"""[m] to which coal tells that bodies touch."""


class Motion:
    """Where a body is, and how it moves."""

    def __init__(self, joint: int, dynamics: Dynamics) -> None:
        """Take the state of a `joint` from the last update of `dynamics`."""
        self._placement, (self._linear, self._angular) = dynamics.placements[joint], dynamics.velocities[joint]

    @property
    def turning(self) -> float:
        """Angular speed [rad/s]."""
        return float(np.linalg.norm(self._angular))

    def velocity_at(self, point: Array) -> Array:
        """Return (3,) the velocity of the body's point that is at `point` (3,) [m/s], world frame."""
        axes, origin = self._placement[:3], self._placement[3]
        velocity: Array = (self._linear + np.cross(self._angular, axes @ (point - origin))) @ axes
        return velocity

    def after(self, duration: float) -> Array:
        """Return (4, 3) the placement after `duration` [s] at this velocity: columns of the rotation, translation."""
        axes, origin = self._placement[:3], self._placement[3]
        return np.vstack([pin.exp3(self._angular * duration).T @ axes, origin + duration * self._linear @ axes])


class Passing:
    """Two bodies on their way."""

    def __init__(self, first: Shape, second: Shape, one: Motion, two: Motion, horizon: float) -> None:
        """Look `horizon` [s] ahead."""
        self._first, self._second, self._one, self._two, self._horizon = first, second, one, two, horizon

    def misses(self, hit: ContactPoint) -> bool:
        """Return whether the bodies are apart when the features of `hit` would touch, within the horizon."""
        if hit.gap <= TOUCHING:
            return False
        approach = self._two.velocity_at(hit.two.point) - self._one.velocity_at(hit.one.point)
        closing = float(approach @ hit.normal)
        if closing * self._horizon <= hit.gap:
            return False
        instant = hit.gap / closing
        turned = instant * (self._one.turning + self._two.turning)
        allowed = INEXACT + turned * instant * float(np.linalg.norm(approach))  # what turns does not go straight
        return self._gap_after(instant, allowed) > allowed

    def _gap_after(self, duration: float, margin: float) -> float:
        """Return the gap [m] of the bodies after `duration` [s]; infinity where it is more than `margin`."""
        request, result = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, 1), coal.CollisionResult()
        request.security_margin = margin
        places = self._first.in_world(self._one.after(duration)), self._second.in_world(self._two.after(duration))
        if not coal.collide(self._first.solid, places[0], self._second.solid, places[1], request, result):
            return np.inf
        return float(result.getContact(0).penetration_depth)

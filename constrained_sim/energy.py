"""The energy audit: where the energy of a simulation comes from and goes to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from constrained_sim.validation import Array

GRAVITY_CORIOLIS, ACTUATORS, EXTERNAL, DAMPING, CONTACTS, CONSTRAINTS, KINETIC, IMPACT_LOSSES, PROJECTION = range(9)
"""Places of the terms of :class:`EnergyTerms` in an array."""

FORCES = ("gravity_coriolis", "actuators", "external", "damping", "contacts", "constraints")
CAUSES, TERMS = len(FORCES), PROJECTION + 1
"""How many terms are work of forces, the first ones, and how many there are."""


@dataclass(frozen=True)
class EnergyTerms:
    """Energy given to the robot [J], by cause; of one step, or added up over many.

    The smooth part of a step changes the kinetic energy at the evaluated inertia by ``(v + v')^T P / 2``, summed over
    the impulses P of all forces: an identity of the step's equation of motion, so that the sum closes to rounding.

    Attributes:
        gravity_coriolis: work of gravity, of springs in joints and of inertial forces.
        actuators: work of the joint efforts.
        external: work of external wrenches.
        damping: work of joint damping and dry joint friction; never positive, except where a velocity v
            changes its sign within a step: then up to ``h D v^2 / 8``, since the force follows the velocity at the end,
            and the distance the mean velocity.
        contacts: work of contact forces; never positive, but that springs of soft contacts give back what they took.
        constraints: work of bilateral constraint forces.
        kinetic: change of the kinetic energy during the smooth part, at the evaluated inertia.
        impact_losses: kinetic energy lost in impacts; negative only where a drive gave more than was lost.
        projection: energy brought in by the removal of drift.
    """

    gravity_coriolis: float = 0.0
    actuators: float = 0.0
    external: float = 0.0
    damping: float = 0.0
    contacts: float = 0.0
    constraints: float = 0.0
    kinetic: float = 0.0
    impact_losses: float = 0.0
    projection: float = 0.0

    @property
    def residual(self) -> float:
        """What the terms of the smooth part leave unexplained [J]: rounding."""
        return self.kinetic - sum(getattr(self, name) for name in FORCES)

    def as_array(self) -> Array:
        """Return (9,) the terms in the order of the attributes."""
        return np.array(list(vars(self).values()))

"""The energy audit: where the energy of a simulation comes from and goes to."""

from __future__ import annotations

from dataclasses import dataclass, fields

from constrained_sim.validation import Array

FORCES = ("gravity_coriolis", "actuators", "external", "damping", "contacts", "constraints")


@dataclass(frozen=True)
class EnergyTerms:
    """Energy given to the robot [J], by cause; of one step, or added up over many.

    The smooth part of a step changes the kinetic energy at the evaluated inertia by ``(v + v')^T P / 2``, summed over
    the impulses P of all forces: an identity of the step's equation of motion, so that the sum closes to rounding.

    Attributes:
        gravity_coriolis: work of ``-h``.
        actuators: work of the joint efforts.
        external: work of external wrenches.
        damping: work of joint damping.
        contacts: work of contact forces; never positive.
        constraints: work of bilateral constraint forces.
        kinetic: change of the kinetic energy during the smooth part, at the evaluated inertia.
        impact_losses: kinetic energy lost in impacts; never negative.
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

    @classmethod
    def of_step(cls, v: Array, v_plus: Array, M: Array, impulses: Array) -> EnergyTerms:
        """Return the terms of the smooth part of a step.

        Args:
            v: (nv,) at its beginning.
            v_plus: (nv,) at its end.
            M: (nv, nv) evaluated inertia.
            impulses: (6, nv) generalised impulses [N m s, N s] of the causes in the order of ``FORCES``.
        """
        mean = 0.5 * (v + v_plus)
        return cls(*(impulses @ mean).tolist(), kinetic=float(mean @ M @ (v_plus - v)))

    @property
    def residual(self) -> float:
        """What the terms of the smooth part leave unexplained [J]: rounding."""
        return self.kinetic - sum(getattr(self, name) for name in FORCES)

    def __add__(self, other: EnergyTerms) -> EnergyTerms:
        """Add term by term."""
        return EnergyTerms(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

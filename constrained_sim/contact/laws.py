"""Contact laws: what a closed contact may do."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from constrained_sim.exceptions import InvalidValue


class Law(ABC):
    """A law tells the friction coefficient in effect for the coefficient declared with the contact."""

    name: str

    @abstractmethod
    def coefficient(self, friction: float) -> float:
        """Return the radius of the cone per unit of normal force."""


@dataclass(frozen=True)
class Rigid(Law):
    """Non-penetration with Coulomb friction."""

    name = "rigid"

    def coefficient(self, friction: float) -> float:
        """Return the declared coefficient."""
        return friction


class _WithoutCoefficient(Law):
    def coefficient(self, friction: float) -> float:
        if friction != 0.0:
            raise InvalidValue(
                f"friction of a contact with law {self.name!r}", friction, "0: this law has no coefficient"
            )
        return self._coefficient

    _coefficient: float


@dataclass(frozen=True)
class Frictionless(_WithoutCoefficient):
    """Non-penetration only."""

    name = "frictionless"
    _coefficient = 0.0


@dataclass(frozen=True)
class Sticking(_WithoutCoefficient):
    """Held in all directions until the normal force would pull (the model of lift-off in simple simulators)."""

    name = "sticking"
    _coefficient = math.inf


LAWS: dict[str, type[Law]] = {law.name: law for law in (Rigid, Frictionless, Sticking)}

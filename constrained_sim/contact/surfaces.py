"""Surfaces that a contact point may touch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from constrained_sim.contact.features import tangent_axes
from constrained_sim.validation import Array, number, read_only, unit_vector


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane ``normal . x = offset``, solid below, fixed in the world.

    Attributes:
        normal: (3,) from the ground to the robot, world axes; normalised on creation.
        offset: [m] along the normalised normal.

    Raises:
        InvalidValue: a zero normal, or a value that is not finite.
    """

    normal: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check and normalise."""
        object.__setattr__(self, "normal", read_only(unit_vector("normal of a plane", self.normal)))
        object.__setattr__(self, "offset", number("offset of a plane", self.offset))

    @cached_property
    def axes(self) -> Array:
        """(3, 3) rows t1, t2, n, see :func:`~constrained_sim.contact.features.tangent_axes`; x, y, z of the ground."""
        return read_only(tangent_axes(np.array(self.normal)))

"""Surfaces that a contact point may touch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
        """(3, 3) rows t1, t2, n, see :func:`tangent_axes`; of level ground x, y, z."""
        return read_only(tangent_axes(self.normal))


def tangent_axes(normal: Array) -> Array:
    """Return (3, 3) rows t1, t2, n, right-handed, for a unit `normal` (3,): t1 is the world axis most along the plane.

    That axis is projected onto the plane.
    """
    x, y, z = n = normal.tolist()
    least = min(range(3), key=lambda i: abs(n[i]))
    t1 = [(i == least) - n[least] * n[i] for i in range(3)]
    length = math.hypot(*t1)
    a, b, c = t1 = [value / length for value in t1]
    return np.array([t1, (y * c - z * b, z * a - x * c, x * b - y * a), n])

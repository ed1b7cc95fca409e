"""Features of a shape that may touch: faces, straight lines, and its form near a contact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.validation import Array, read_only

NO_LINE = read_only(np.zeros(3))


class Face(NamedTuple):
    """A flat face of a shape.

    Attributes:
        corners: (m, 3) [m], counter-clockwise seen from outside.
        normal: (3,) unit, outwards.
        area: [m^2].
    """

    corners: Array
    normal: Array
    area: float

    def placed(self, placement: Array) -> Face:
        """Return this face of a joint's frame in the world, for the `placement` (4, 3) of the joint."""
        return Face(self.corners @ placement[:3] + placement[3], self.normal @ placement[:3], self.area)


class Line(NamedTuple):
    """A straight line of a body, grown by a radius: an edge, or the axis of a capsule or a cylinder.

    Attributes:
        ends: (2, 3) [m].
        radius: [m].
    """

    ends: Array
    radius: float

    @property
    def direction(self) -> Array:
        """(3,) unit, from the first end to the second."""
        arm = self.ends[1] - self.ends[0]
        return np.asarray(arm / np.linalg.norm(arm))

    def beside(self, point: Array) -> Array:
        """Return the point (3,) of the whole straight line that is nearest to `point` (3,)."""
        return np.asarray(self.ends[0] + (point - self.ends[0]) @ self.direction * self.direction)


class Feature(NamedTuple):
    """What a body looks like near a contact, see :class:`~constrained_sim.contact.features.ContactFeatures`.

    Attributes:
        point: (3,) [m].
        radius: by which the feature is grown [m].
        line: (3,) unit direction of an edge, or of what is curved in one direction only; axis of a rim; else zero.
        is_flat: whether it is a face.
        rim: radius of a circle about `point` [m].
    """

    point: Array
    radius: float = 0.0
    line: Array = NO_LINE
    is_flat: bool = False
    rim: float = 0.0

    def placed(self, placement: Array) -> Feature:
        """Return this feature of a joint's frame in the world, for the `placement` (4, 3) of the joint."""
        return self._replace(point=self.point @ placement[:3] + placement[3], line=self.line @ placement[:3])

    def tangent(self, nearest: Array) -> Feature:
        """Return the tangent of a rim at its point `nearest` (3,), world frame; anything else as it is."""
        if not self.rim:
            return self
        along = np.cross(self.line, nearest - self.point)
        return Feature(nearest, 0.0, along / np.linalg.norm(along))

"""A shape where its joint has taken it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from constrained_sim.collision.shape_features import Face, Feature, Line
from constrained_sim.collision.shapes import Shape
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.validation import Array


class PlacedShape(NamedTuple):
    """A shape, and how its joint is placed and moves.

    Attributes:
        shape: the shape.
        placement: (4, 3) of the joint: columns of the rotation, then the translation [m].
        velocity: (2, 3) of the joint, linear [m/s] and angular [rad/s], in its axes.
    """

    shape: Shape
    placement: Array
    velocity: Array

    @classmethod
    def of(cls, shape: Shape, dynamics: Dynamics, moves: bool) -> PlacedShape:
        """Return `shape` where it is in the state of `dynamics`; unless it `moves`, its velocity is zero."""
        velocity = dynamics.velocities[shape.joint] if moves else np.zeros((2, 3))
        return cls(shape, dynamics.placements[shape.joint], velocity)

    @property
    def rotation(self) -> Array:
        """(3, 3) world to joint."""
        return self.placement[:3]

    @property
    def position(self) -> Array:
        """(3,) origin of the joint [m], world frame."""
        return np.asarray(self.placement[3])

    @property
    def motion(self) -> tuple[Array, Array]:
        """Placement and velocity."""
        return self.placement, self.velocity

    @property
    def normals(self) -> Array:
        """(f, 3) outward normals of the flat facets, world frame."""
        return self.shape.normals @ self.rotation

    @property
    def edges(self) -> Array:
        """(e, 3) unit directions of edges of a box, or of the axis of a cylinder or a capsule, world frame."""
        return self.shape.edges @ self.rotation

    @property
    def centre(self) -> Array:
        """(3,) middle of the shape [m], world frame."""
        return self.shape.centre @ self.rotation + self.position

    def moved(self, way: Array) -> PlacedShape:
        """Return the shape moved by `way` (3,) [m]."""
        placement = self.placement.copy()
        placement[3] += way
        return self._replace(placement=placement)

    def farthest(self, direction: Array) -> Array:
        """Return the point (3,) of the shape that is farthest along `direction` (3,) [m], world frame."""
        points = self.towards(direction)
        return np.asarray(points[np.argmax(points @ direction)] + self.shape.radius * direction)

    def extents(self, directions: Array) -> Array:
        """Return (m,) how far the shape reaches along unit `directions` (m, 3) from the world's origin [m]."""
        return self.shape.extents(directions, self.placement)

    def face_along(self, direction: Array) -> Face | None:
        """Return the flat face, joint's frame, that looks along `direction` (3,), world frame; None where none does."""
        return self.shape.face_along(self.rotation @ direction)

    def line_along(self, direction: Array) -> Line | None:
        """Return the straight line that is farthest along `direction` (3,), world frame; None unless it is one."""
        line = self.shape.line_along(self.rotation @ direction)
        return None if line is None else Line(line.ends @ self.rotation + self.position, line.radius)

    def towards(self, direction: Array) -> Array:
        """Return (n, 3) points [m] among which is the farthest along `direction` (3,), world frame."""
        return self.shape.towards(self.rotation @ direction) @ self.rotation + self.position

    def rim_ends(self, direction: Array) -> tuple[Array, Array]:
        """Return the farthest and the nearest point along `direction` (3,) of the end cap of a cylinder that is out.

        About the joint's origin [m], world axes.
        """
        farthest, nearest = self.shape.rim_ends(self.rotation @ direction)
        return farthest @ self.rotation, nearest @ self.rotation

    def feature(self, nearest: Array, outwards: Array) -> Feature:
        """Return what the shape looks like at the point `nearest` (3,) of its surface [m], world frame.

        `outwards` (3,) is the unit direction from there to the other body.
        """
        return self.shape.feature(self.in_joint(nearest), self.rotation @ outwards).placed(self.placement)

    def features(self, points: Array, direction: Array) -> list[Feature]:
        """Return the features at `points` (n, 3) [m] near a face along the unit `direction` (3,), world frame.

        Where a cylinder has its farthest point along `direction`, that is its rim; else the points themselves, grown by
        the shape's radius.
        """
        features = [Feature(point, self.shape.radius) for point in points]
        if self.shape.is_cylinder:
            for index, rim in self.shape.rims_at(self.in_joint(points), self.rotation @ direction).items():
                features[index] = rim.placed(self.placement)
        return features

    def in_joint(self, points: Array) -> Array:
        """Return `points` (..., 3) of the world in the joint's frame [m]."""
        return np.asarray((points - self.position) @ self.rotation.T)

    def velocity_at(self, point: Array) -> Array:
        """Return the velocity (3,) of the body's `point` (3,) [m/s], world frame."""
        linear, angular = self.velocity
        return np.asarray((linear + np.cross(angular, self.in_joint(point))) @ self.rotation)

    def after(self, duration: float) -> PlacedShape:
        """Return the shape as it is placed after `duration` [s] at this velocity."""
        turned = pin.exp3(-self.velocity[1] * duration) @ self.rotation
        moved = self.position + duration * self.velocity[0] @ self.rotation
        return self._replace(placement=np.vstack([turned, moved]))

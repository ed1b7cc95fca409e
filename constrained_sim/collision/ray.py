"""Rays: how far it is to the nearest body along a straight line, in closed form for every shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.collision.detector import Collisions
from constrained_sim.collision.robot_shapes import robot_shapes, scene_shape
from constrained_sim.collision.shapes import Shape
from constrained_sim.contact.surfaces import Plane
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


class Interval(NamedTuple):
    """The part of a line within a convex body: lengths [m] from its origin on; empty where `enter` > `leave`."""

    enter: float
    leave: float

    def within(self, other: Interval) -> Interval:
        """Return what is in both."""
        return Interval(max(self.enter, other.enter), min(self.leave, other.leave))

    @property
    def distance(self) -> float:
        """How far it is along the ray [m]: 0 from inside; infinite where the ray misses."""
        return max(self.enter, 0.0) if self.enter <= self.leave and self.leave >= 0.0 else np.inf


NOWHERE, EVERYWHERE = Interval(np.inf, -np.inf), Interval(-np.inf, np.inf)


class Surroundings:
    """What rays may hit: planes and bodies of a scene, and the collision geometry of a robot and objects beside it."""

    def __init__(self, robot: Robot, collisions: Collisions | None) -> None:
        """Load the geometry.

        Raises:
            ModelError: an element of a description that cannot be loaded.
        """
        scene = collisions.scene if collisions is not None else {}
        folders = collisions.package_dirs if collisions is not None else ()
        self._planes = [body for body in scene.values() if isinstance(body, Plane)]
        self._shapes = robot_shapes(robot, folders) if robot.collision_elements else []
        self._shapes += [scene_shape(name, body) for name, body in scene.items() if not isinstance(body, Plane)]

    def distance(self, placements: npt.NDArray[np.float64], start: Array, direction: Array, joint: int) -> float:
        """Return how far it is to the nearest body [m]; infinite: there is none.

        Args:
            placements: (njoints, 4, 3) rotation columns and translation of all joints.
            start: (3,) origin of the ray [m], world frame.
            direction: (3,) unit, world axes.
            joint: whose own bodies the ray passes through; 0: none but those of the world are seen by it.
        """
        found = [
            _in_halfspaces(np.asarray(p.normal)[None], np.array([p.offset]), start, direction) for p in self._planes
        ]
        for shape in self._shapes:
            if shape.link and shape.joint == joint:
                continue
            place = placements[shape.joint]
            found.append(_in_shape(shape, place[:3] @ (start - place[3]), place[:3] @ direction))
        return min((one.distance for one in found), default=np.inf)


@lru_cache(maxsize=8)
def surroundings_of(robot: Robot, collisions: Collisions | None) -> Surroundings:
    """Return what rays may hit, see :class:`Surroundings`; of the last robots it is kept."""
    return Surroundings(robot, collisions)


def _in_shape(shape: Shape, start: Array, direction: Array) -> Interval:
    """Return where a ray is in a shape; start (3,) and unit direction (3,) in the frame of its joint."""
    if shape.is_cylinder:
        axis = shape.placement.rotation[:, 2]
        ends = np.array([shape.placement.translation + side * shape.solid.halfLength * axis for side in (-1, 1)])
        return _in_cylinder(ends, float(shape.solid.radius), start, direction)
    if shape.is_ball:
        return _in_ball(shape.points[0], shape.radius, start, direction)
    if shape.radius:  # a capsule: where the ray enters the first of its parts, it enters the whole
        parts: Sequence[Interval] = [
            _in_cylinder(shape.points, shape.radius, start, direction),
            *(_in_ball(point, shape.radius, start, direction) for point in shape.points),
        ]
        hit = [part for part in parts if part.enter <= part.leave]
        return Interval(min(p.enter for p in hit), max(p.leave for p in hit)) if hit else NOWHERE
    return _in_halfspaces(shape.normals, shape.facet_heights, start, direction)


def _in_halfspaces(normals: Array, heights: Array, start: Array, direction: Array) -> Interval:
    """Return where a ray is in the intersection of the half-spaces ``n . x <= h``: normals (n, 3), heights (n,) [m]."""
    rates, depths = normals @ direction, heights - normals @ start
    if ((rates == 0.0) & (depths < 0.0)).any():
        return NOWHERE
    inwards, outwards = rates < 0.0, rates > 0.0
    enter = (depths[inwards] / rates[inwards]).max(initial=-np.inf)
    return Interval(float(enter), float((depths[outwards] / rates[outwards]).min(initial=np.inf)))


def _in_ball(center: Array, radius: float, start: Array, direction: Array) -> Interval:
    """Return where a ray is in a ball: the roots of ``|s + t d - c|^2 = r^2``."""
    arm = start - center
    return _between_roots(1.0, float(arm @ direction), float(arm @ arm) - radius**2)


def _in_cylinder(ends: Array, radius: float, start: Array, direction: Array) -> Interval:
    """Return where a ray is in a cylinder between the middles `ends` (2, 3) of its caps [m]."""
    axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    slab = _in_halfspaces(np.array([axis, -axis]), np.array([axis @ ends[1], -axis @ ends[0]]), start, direction)
    arm, way = (vector - axis * (axis @ vector) for vector in (start - ends[0], direction))
    return slab.within(_between_roots(float(way @ way), float(arm @ way), float(arm @ arm) - radius**2))


def _between_roots(a: float, half_b: float, c: float) -> Interval:
    """Return where ``a t^2 + 2 half_b t + c <= 0``, a >= 0."""
    if a == 0.0:
        return EVERYWHERE if c <= 0.0 else NOWHERE
    discriminant = half_b**2 - a * c
    if discriminant < 0.0:
        return NOWHERE
    root = np.sqrt(discriminant)
    return Interval(float((-half_b - root) / a), float((-half_b + root) / a))

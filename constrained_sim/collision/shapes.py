"""Convex shapes of collision detection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import coal
import numpy as np
import pinocchio as pin
import scipy

from constrained_sim.collision import manifold
from constrained_sim.collision.flat_faces import flattened
from constrained_sim.collision.rims import FLAT, RIM
from constrained_sim.collision.scene import hull_of, hull_points
from constrained_sim.collision.shape_features import NO_LINE, Face, Feature, Line
from constrained_sim.exceptions import InvalidValue, ModelError
from constrained_sim.validation import Array

SHAPES = "sphere, capsule, box, cylinder, mesh"

ARC = 16
"""Corners that stand for a rim of a cylinder near a solid; the first is where the rim is nearest."""

THICKNESS = 1e-6
"""Share of a body's size within which its vertices are on one face."""

ROUNDING = 1e-9
"""Share of a cylinder's radius by which a point of its outermost line may seem to be inside."""

EDGE = 1e-5
"""Share of a body's size within which a point is on a facet, and the least angle [rad] between facets at an edge."""

SHARP = 1e-3
"""Share of a cylinder's radius by which the nearest point of a rim may be off its farthest one."""

LEVEL = 1e-3
"""Angle [rad] between a line or a face and what it touches up to which all of it touches: coal's noise."""

ALIGNED = 1.0 - 0.5 * LEVEL**2
"""Cosine of that angle."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A convex body: the hull of points, grown by a radius; or a cylinder.

    Attributes:
        name: of the element, ``<link>_<index>``; or of the body in the scene.
        link: that carries it; empty if it rests in the world.
        joint: that carries the link; 0: the world.
        placement: of the shape in the joint's frame.
        solid: the shape.
        local: (n, 3) points [m], frame of the shape; none of a cylinder.
        radius: by which the hull of the points is grown [m].
        friction: Coulomb coefficient of its own; None: it has none.
    """

    name: str
    link: str
    joint: int
    placement: pin.SE3
    solid: coal.CollisionGeometry
    local: Array
    radius: float = 0.0
    friction: float | None = None

    @classmethod
    def of(cls, name: str, link: str, joint: int, placement: pin.SE3, solid: coal.CollisionGeometry) -> Shape:
        """Take over a geometry of coal; of a mesh, its convex hull.

        Raises:
            ModelError: a shape that is not supported, or a flat mesh.
        """
        local, radius = np.zeros((0, 3)), 0.0
        if isinstance(solid, coal.Sphere):
            local, radius = np.zeros((1, 3)), solid.radius
        elif isinstance(solid, coal.Capsule):
            local, radius = np.array([[0, 0, -1.0], [0, 0, 1.0]]) * solid.halfLength, solid.radius
        elif isinstance(solid, coal.Box):
            local = np.array(np.meshgrid(*([-1.0, 1.0],) * 3)).reshape(3, -1).T * np.asarray(solid.halfSide)
        elif isinstance(solid, (coal.BVHModelBase, coal.Convex)):
            solid = solid if isinstance(solid, coal.Convex) else _mesh_hull(name, solid)
            local = np.array(solid.points())
        elif not isinstance(solid, coal.Cylinder):
            raise ModelError(f"collision element {name!r}: got {type(solid).__name__}, allowed: {SHAPES}")
        return cls(name, link, joint, placement, solid, local, float(radius))

    def in_world(self, placement: Array) -> coal.Transform3s:
        """Return where the solid is when its joint has this `placement` (4, 3)."""
        rotation = placement[:3].T
        translation = rotation @ self.placement.translation + placement[3]
        return coal.Transform3s(rotation @ self.placement.rotation, translation)

    @property
    def is_cylinder(self) -> bool:
        """Whether the shape is a cylinder."""
        return isinstance(self.solid, coal.Cylinder)

    @property
    def is_ball(self) -> bool:
        """Whether the shape is a sphere."""
        return isinstance(self.solid, coal.Sphere)

    @cached_property
    def points(self) -> Array:
        """(n, 3) the points [m], joint's frame; of a cylinder working space for those near a plane."""
        return np.zeros((2 * RIM, 3)) if self.is_cylinder else self._moved(self.local)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """(3,) middle and half edges of the bounding box along the axes of the shape [m], frame of the shape."""
        if self.is_cylinder:
            return np.zeros(3), np.array([self.solid.radius, self.solid.radius, self.solid.halfLength])
        lower, upper = self.local.min(axis=0), self.local.max(axis=0)
        return 0.5 * (lower + upper), 0.5 * (upper - lower) + self.radius

    @cached_property
    def centre(self) -> Array:
        """(3,) middle of the bounding box and of the bounding sphere [m], joint's frame."""
        return np.array(self.placement.act(self.box[0]))

    @cached_property
    def bound(self) -> float:
        """Radius of the bounding sphere [m]."""
        if self.is_cylinder:
            return float(np.hypot(self.solid.radius, self.solid.halfLength))
        return float(np.linalg.norm(self.local - self.box[0], axis=1).max()) + self.radius

    @cached_property
    def cap_centers(self) -> Array:
        """(2, 3) centers of the end caps of a cylinder [m], joint's frame."""
        return self._moved(np.array([[0, 0, -1.0], [0, 0, 1.0]]) * self.solid.halfLength)

    @cached_property
    def edges(self) -> Array:
        """(e, 3) unit directions of edges of a box, or of the axis of a cylinder or a capsule; joint's frame."""
        if isinstance(self.solid, coal.Box):
            return np.asarray(self.placement.rotation.T)
        has_axis = self.is_cylinder or isinstance(self.solid, coal.Capsule)
        return np.asarray(self.placement.rotation.T[2:] if has_axis else np.zeros((0, 3)))

    @cached_property
    def _facets(self) -> tuple[Array, Array]:
        """(f, 3) outward normals of flat facets, joint's frame, and (f,) their sizes; none of what has a radius."""
        if self.is_cylinder:
            local, sizes = np.array([[0, 0, -1.0], [0, 0, 1.0]]), np.ones(2)
        elif self.radius:
            local, sizes = np.zeros((0, 3)), np.zeros(0)
        elif isinstance(self.solid, coal.Box):
            local, sizes = np.concatenate([np.eye(3), -np.eye(3)]), np.ones(6)
        else:
            local, sizes = _hull_facets(self.local)
        return np.asarray(local @ self.placement.rotation.T), sizes

    @cached_property
    def facet_heights(self) -> Array:
        """(f,) distances [m] of the facets from the origin of the joint's frame, along their normals."""
        return np.asarray((self.points @ self._facets[0].T).max(axis=0))

    @cached_property
    def _faces(self) -> dict[int, Face]:
        """Faces that were asked for."""
        return {}

    def face_along(self, direction: Array) -> Face | None:
        """Return the flat face that looks along `direction` (3,), joint's frame; None where none does."""
        normals, sizes = self._facets
        # Rounded vertices break a face of a mesh into triangles; directions of the slivers among them are noise.
        index = manifold.largest_aligned(normals, sizes, direction, ALIGNED)
        if index < 0:
            return None
        face = self._faces.get(index)
        if face is None:
            face = self._faces[index] = self._face(normals[index])
        return face if face.area else None

    def line_along(self, direction: Array) -> Line | None:
        """Return the straight line that is farthest along `direction` (3,), joint's frame; None unless it is one."""
        if self.is_ball:
            return None
        if self.is_cylinder:
            line: Line | None = Line(self.cap_centers, float(self.solid.radius))
        else:
            line = Line(self.points, self.radius) if self.radius else self._edge_along(direction)
        return line if line is not None and abs(line.direction @ direction) <= LEVEL else None

    def _edge_along(self, direction: Array) -> Line | None:
        """Return the edge of a body with facets farthest along `direction` (3,); None where a corner or a face is."""
        top = self.points[np.argmax(self.points @ direction)]
        arms = self.points - top
        lengths = np.linalg.norm(arms, axis=1)
        level = arms[(-(arms @ direction) <= LEVEL * lengths) & (lengths > 0.0)]
        if not len(level):
            return None
        longest = level[np.argmax(np.linalg.norm(level, axis=1))]
        along = level @ longest / (longest @ longest)
        if np.linalg.norm(level - np.outer(along, longest), axis=1).max() > THICKNESS * self.bound:
            return None
        return Line(top + np.outer([min(along.min(), 0.0), 1.0], longest), 0.0)

    def _face(self, normal: Array) -> Face:
        points = self.towards(normal)
        heights = points @ normal
        points = points[heights >= heights.max() - THICKNESS * self.bound]
        corners = points[manifold.outline(points, normal)]
        arms = corners[1:] - corners[0]
        twice = np.cross(arms[:-1], arms[1:]).sum(axis=0)
        area = float(np.linalg.norm(twice))
        return Face(corners, twice / area if area else normal, 0.5 * area)

    def towards(self, direction: Array) -> Array:
        """Return (n, 3) points [m] among which is the farthest along `direction` (3,); both in the joint's frame."""
        if not self.is_cylinder:
            return self.points
        rotation = self.placement.rotation
        axis, out = rotation[:, 2], self._across(direction)
        length = np.linalg.norm(out)
        out = out / length if length > FLAT else rotation[:, 0]
        angles = 2.0 * np.pi * np.arange(ARC) / ARC
        ring = self.solid.radius * (np.outer(np.cos(angles), out) + np.outer(np.sin(angles), np.cross(axis, out)))
        return np.concatenate([rim + ring for rim in self.cap_centers])

    def extents(self, directions: Array, placement: Array) -> Array:
        """Return (m,) how far the shape reaches along unit `directions` (m, 3) from the world's origin [m].

        Args:
            directions: (m, 3) world axes.
            placement: (4, 3) of the joint.
        """
        if not self.is_cylinder:
            return np.asarray(manifold.extents(self.points, self.radius, placement, directions))
        local = directions @ placement[:3].T
        along = local @ self.placement.rotation[:, 2]
        across = np.sqrt(np.maximum(1.0 - along**2, 0.0))
        middle = local @ self.placement.translation + directions @ placement[3]
        return np.asarray(middle + self.solid.halfLength * np.abs(along) + self.solid.radius * across)

    @property
    def normals(self) -> Array:
        """(f, 3) outward normals of the flat facets, joint's frame; none of what has a radius."""
        return self._facets[0]

    def feature(self, point: Array, outwards: Array) -> Feature:
        """Return what the shape looks like at a `point` (3,) of its surface [m], joint's frame.

        Args:
            point: (3,) [m].
            outwards: (3,) unit, towards the other body.
        """
        if self.is_ball or isinstance(self.solid, coal.Capsule):
            return self._round_feature(point)
        return self._cylinder_feature(point, outwards) if self.is_cylinder else self._edge_feature(point)

    def _round_feature(self, point: Array) -> Feature:
        """Return the feature of a sphere or a capsule at `point` (3,), joint's frame."""
        if self.is_ball:
            return Feature(self.points[0], self.radius)
        axis, half = self.placement.rotation[:, 2], self.solid.halfLength
        along = float(axis @ (point - self.placement.translation))
        feature = self.placement.translation + np.clip(along, -half, half) * axis
        return Feature(feature, self.radius, axis if self._is_beside_axis(point) else NO_LINE)

    def _cylinder_feature(self, point: Array, outwards: Array) -> Feature:
        """Return the feature of a cylinder at `point` (3,): its axis, a face, or a rim; joint's frame."""
        across, radius = self._across(outwards), float(self.solid.radius)
        length = np.linalg.norm(across)
        if length <= EDGE:
            return Feature(point, is_flat=True)
        feature = Feature(self._on_axis(point), radius, self.placement.rotation[:, 2])
        if length >= 1.0 - EDGE**2 or self._is_beside_axis(point):
            return feature
        rim = feature._replace(radius=0.0, rim=radius)
        # Where something sharp holds the rim, it is not its farthest point that touches.
        farthest = feature.point + radius * across / length
        return rim if np.linalg.norm(point - farthest) <= SHARP * radius else rim.tangent(point)

    def _is_beside_axis(self, point: Array) -> bool:
        """Whether `point` (3,) is between the ends of the axis of a cylinder or capsule, and not at one."""
        along = self.placement.rotation[:, 2] @ (point - self.placement.translation)
        return bool(abs(along) < self.solid.halfLength * (1.0 - EDGE))

    def _on_axis(self, points: Array) -> Array:
        """Return the points of the axis of a cylinder at the height of `points` (..., 3), joint's frame."""
        axis, origin = self.placement.rotation[:, 2], self.placement.translation
        return np.asarray(origin + ((points - origin) @ axis)[..., None] * axis)

    def _edge_feature(self, point: Array) -> Feature:
        """Return `point` (3,) of a body with facets as part of a face or an edge, or the corner that it is at.

        All in the joint's frame.
        """
        normals, _ = self._facets
        around = normals[normals @ point >= self.facet_heights - EDGE * self.bound]
        if not len(around):
            return Feature(point)
        _, sizes, directions = np.linalg.svd(around)
        independent = int((sizes > EDGE * sizes[0]).sum())
        if independent == 3:
            return Feature(self.points[np.argmin(np.linalg.norm(self.points - point, axis=1))])
        line = directions[2] if independent == 2 else NO_LINE
        return Feature(point, 0.0, line, independent == 1)

    def rims_at(self, points: Array, direction: Array) -> dict[int, Feature]:
        """Return the rims of a cylinder that have one of `points` farthest along `direction`, by its index.

        A cylinder that stands along `direction` has none there: all of its rim is equally far.

        Args:
            points: (n, 3) of the surface [m], joint's frame.
            direction: (3,) unit, joint's frame.
        """
        out, axis, radius = self._across(direction), self.placement.rotation[:, 2], float(self.solid.radius)
        length = np.linalg.norm(out)
        outermost = (points - self.placement.translation) @ out >= (1.0 - ROUNDING) * radius * length
        return {
            index: Feature(self._on_axis(points[index]), 0.0, axis, rim=radius)
            for index in np.flatnonzero(outermost & (length > FLAT)).tolist()
        }

    def rim_ends(self, direction: Array) -> tuple[Array, Array]:
        """Return the farthest and the nearest point (3,) along `direction` (3,) of a cylinder's end cap that is out.

        Of the end caps, that which is farther along it; all in the joint's frame [m].
        """
        out = self._across(direction)
        length = np.linalg.norm(out)
        arm = out * (self.solid.radius / length) if length > FLAT else out
        centre = self.cap_centers[int(np.argmax(self.cap_centers @ direction))]
        return centre + arm, centre - arm

    def _across(self, direction: Array) -> Array:
        """Return the part of `direction` (3,) across the axis of a cylinder, joint's frame."""
        axis = self.placement.rotation[:, 2]
        return np.asarray(direction - axis * (axis @ direction))

    def _moved(self, points: Array) -> Array:
        return np.asarray(points @ self.placement.rotation.T + self.placement.translation)


def _mesh_hull(name: str, mesh: coal.BVHModelBase) -> coal.Convex:
    try:
        return hull_of(flattened(hull_points(np.array(mesh.vertices()))))
    except InvalidValue as error:
        raise ModelError(f"collision element {name!r}: {error}") from error


def _hull_facets(points: Array) -> tuple[Array, Array]:
    """Return (f, 3) outward normals of the facets of a hull, and (f,) their areas [m^2]."""
    hull = scipy.spatial.ConvexHull(points)
    a, b, c = points[hull.simplices.T]
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    normals, facet = np.unique(hull.equations[:, :3].round(12), axis=0, return_inverse=True)
    return np.asarray(normals), np.asarray(np.bincount(facet.ravel(), areas), dtype=np.float64)

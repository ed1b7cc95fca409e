"""Convex shapes of collision detection: the collision elements of a robot's URDF, and the solids of a scene."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import coal
import numpy as np
import pinocchio as pin
import scipy

from constrained_sim.collision.flat_faces import flattened
from constrained_sim.collision.manifold import FLAT, RIM, outline
from constrained_sim.collision.scene import Box, Mesh, Sphere, hull_of, hull_points, load_mesh, placement_of
from constrained_sim.descriptions import CollisionElement
from constrained_sim.exceptions import ConfigError, InvalidValue, MissingLibrary, ModelError
from constrained_sim.package_paths import resolve_path
from constrained_sim.robot import Robot
from constrained_sim.validation import Array, read_only

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

NO_LINE = read_only(np.zeros(3))

LEVEL = 1e-3
"""Angle [rad] between a line or a face and what it touches up to which all of it touches: coal's noise."""

ALIGNED = 1.0 - 0.5 * LEVEL**2
"""Cosine of that angle."""


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
    def _facet_heights(self) -> Array:
        """(f,) distances [m] of the facets from the origin of the joint's frame, along their normals."""
        return np.asarray((self.points @ self._facets[0].T).max(axis=0))

    @cached_property
    def _faces(self) -> dict[int, Face]:
        """Faces that were asked for."""
        return {}

    def face_along(self, direction: Array) -> Face | None:
        """Return the flat face that looks along `direction` (3,), joint's frame; None where none does."""
        normals, sizes = self._facets
        aligned = (normals @ direction >= ALIGNED).nonzero()[0]
        if not aligned.size:
            return None
        # Rounded vertices break a face of a mesh into triangles; directions of the slivers among them are noise.
        index = int(aligned[np.argmax(sizes[aligned])])
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
        corners = points[outline(points, normal)]
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
        out = out / length if length > 1e-6 else rotation[:, 0]
        angles = 2.0 * np.pi * np.arange(ARC) / ARC
        ring = self.solid.radius * (np.outer(np.cos(angles), out) + np.outer(np.sin(angles), np.cross(axis, out)))
        return np.concatenate([rim + ring for rim in self.cap_centers])

    def extents(self, directions: Array) -> Array:
        """Return (m,) how far the shape reaches along unit `directions` (m, 3) [m], joint's frame."""
        if not self.is_cylinder:
            return np.asarray((directions @ self.points.T).max(axis=1) + self.radius)
        along = directions @ self.placement.rotation[:, 2]
        across = np.sqrt(np.maximum(1.0 - along**2, 0.0))
        middle = directions @ self.placement.translation
        return np.asarray(middle + self.solid.halfLength * np.abs(along) + self.solid.radius * across)

    @property
    def normals(self) -> Array:
        """(f, 3) outward normals of the flat facets, joint's frame; none of what has a radius."""
        return self._facets[0]

    def feature(self, nearest: Array, outwards: Array, placement: Array) -> Feature:
        """Return what the shape looks like at the point `nearest` (3,) of its surface, world frame.

        Args:
            nearest: (3,) [m].
            outwards: (3,) unit, towards the other body.
            placement: (4, 3) of the joint: columns of the rotation, then the translation.
        """
        local, direction = placement[:3] @ (nearest - placement[3]), placement[:3] @ outwards
        if self.is_ball or isinstance(self.solid, coal.Capsule):
            feature = self._round_feature(local)
        elif self.is_cylinder:
            feature = self._cylinder_feature(local, direction)
        else:
            feature = self._edge_feature(local, direction)
        return feature.placed(placement)

    def _round_feature(self, point: Array) -> Feature:
        """Return the feature of a sphere or a capsule at `point` (3,), joint's frame."""
        if self.is_ball:
            return Feature(self.points[0], self.radius)
        axis, half = self.placement.rotation[:, 2], self.solid.halfLength
        along = float(axis @ (point - self.placement.translation))
        between = abs(along) < half * (1.0 - EDGE)
        feature = self.placement.translation + np.clip(along, -half, half) * axis
        return Feature(feature, self.radius, axis if between else NO_LINE)

    def _cylinder_feature(self, point: Array, outwards: Array) -> Feature:
        """Return the feature of a cylinder at `point` (3,): its axis, a face, or a rim; joint's frame."""
        across, radius = self._across(outwards), float(self.solid.radius)
        length = np.linalg.norm(across)
        if length <= EDGE:
            return Feature(point, is_flat=True)
        feature = Feature(self._on_axis(point), radius, self.placement.rotation[:, 2])
        if length >= 1.0 - EDGE**2:
            return feature
        rim = feature._replace(radius=0.0, rim=radius)
        # Where something sharp holds the rim, it is not its farthest point that touches.
        farthest = feature.point + radius * across / length
        return rim if np.linalg.norm(point - farthest) <= SHARP * radius else rim.tangent(point)

    def _on_axis(self, points: Array) -> Array:
        """Return the points of the axis of a cylinder at the height of `points` (..., 3), joint's frame."""
        axis, origin = self.placement.rotation[:, 2], self.placement.translation
        return np.asarray(origin + ((points - origin) @ axis)[..., None] * axis)

    def _edge_feature(self, point: Array, outwards: Array) -> Feature:
        """Return `point` (3,) of a body with facets as part of a face, of an edge, or as a corner; joint's frame."""
        normals, _ = self._facets
        near = normals @ point >= self._facet_heights - EDGE * self.bound
        around = normals[near & (normals @ outwards > -EDGE)]
        if not len(around):
            return Feature(point)
        _, sizes, directions = np.linalg.svd(around)
        independent = int((sizes > EDGE * sizes[0]).sum())
        line = directions[2] if independent == 2 else NO_LINE
        return Feature(point, 0.0, line, independent == 1)

    def features(self, points: Array, direction: Array, placement: Array) -> list[Feature]:
        """Return the features at `points` (n, 3) that may touch a face along the unit `direction` (3,), world frame.

        Points of the feature of what has a radius, else of the surface; those farthest out of a cylinder that does not
        stand are on circles about its axis.

        Args:
            points: (n, 3) [m].
            direction: (3,) unit, towards the face.
            placement: (4, 3) of the joint: columns of the rotation, then the translation.
        """
        features = [Feature(point, self.radius) for point in points]
        if self.is_cylinder:
            local, out = (points - placement[3]) @ placement[:3].T, self._across(placement[:3] @ direction)
            radius, axis, length = float(self.solid.radius), self.placement.rotation[:, 2], np.linalg.norm(out)
            outermost = (local - self.placement.translation) @ out >= (1.0 - ROUNDING) * radius * length
            for place in np.flatnonzero(outermost & (length > FLAT)):
                features[place] = Feature(self._on_axis(local[place]), 0.0, axis, rim=radius).placed(placement)
        return features

    def _across(self, direction: Array) -> Array:
        """Return the part of `direction` (3,) across the axis of a cylinder, joint's frame."""
        axis = self.placement.rotation[:, 2]
        return np.asarray(direction - axis * (axis @ direction))

    def _moved(self, points: Array) -> Array:
        return np.asarray(points @ self.placement.rotation.T + self.placement.translation)


def scene_shape(name: str, body: Box | Sphere | Mesh) -> Shape:
    """Return a solid of the scene as a shape."""
    return Shape.of(name, "", 0, placement_of(body), body.shape())


def robot_shapes(robot: Robot, package_dirs: Sequence[str] = ()) -> list[Shape]:
    """Return the collision geometry of a robot's description, in its order.

    Args:
        robot: read from a description.
        package_dirs: folders in which ``package://`` is looked up, beside those around the description's file.

    Raises:
        ModelError: a robot without a description, or an element that cannot be loaded.
    """
    if not (robot.collision_elements or robot.urdf):
        raise ModelError("collision geometry needs a robot read from a URDF, SDF or MJCF that has some")
    folders = [*package_dirs, *_folders(robot)]
    return [_shape_of(robot, element, folders) for element in robot.collision_elements]


def _shape_of(robot: Robot, element: CollisionElement, folders: Sequence[str]) -> Shape:
    """Return one element of a description as a shape."""
    joint, placement = robot.link_placement(element.link)
    try:
        solid = _solid_of(element, folders)
        shape = Shape.of(element.name, element.link, joint, placement * element.placement, solid)
    except (InvalidValue, ModelError) as error:
        raise ModelError(f"collision geometry of link {element.link!r}, {element.where}: {error}") from error
    return replace(shape, friction=element.friction)


def _solid_of(element: CollisionElement, folders: Sequence[str]) -> coal.CollisionGeometry:
    """Return the solid of an element.

    Raises:
        ModelError: a kind that is not supported, or a mesh file that does not exist.
        InvalidValue: a mesh that cannot be read, or is flat.
    """
    size = element.size
    if element.kind == "mesh":
        if element.vertices is not None:
            return hull_of(flattened(hull_points(element.vertices)))
        return load_mesh(_mesh_file(element.file, folders), size)
    makers = {"sphere": coal.Sphere, "box": coal.Box, "cylinder": coal.Cylinder, "capsule": coal.Capsule}
    if element.kind not in makers:
        raise ModelError(f"got <{element.kind}>, allowed: {SHAPES}")
    return makers[element.kind](*size)


def mesh_path(robot: Robot, name: str) -> str:
    """Return where the mesh is that the description of `robot` calls `name`.

    Raises:
        ModelError: nowhere.
    """
    return _mesh_file(name, _folders(robot))


def _mesh_file(name: str, folders: Sequence[str]) -> str:
    """Return where a mesh file is.

    Raises:
        ModelError: nowhere.
    """
    scheme, separator, rest = name.partition("://")
    if not separator:
        candidates = [Path(name), *(Path(folder) / name for folder in folders[:1])]
    elif scheme == "file":
        candidates = [Path(rest)]
    else:
        candidates = [Path(folder) / rest.lstrip("/") for folder in folders]
        with contextlib.suppress(ConfigError, MissingLibrary):  # a folder may be called otherwise than its package
            candidates += [Path(resolve_path(name, Path(folder))) for folder in folders[:1]]
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    looked_up = {
        "": "; a relative name counts from the file of the description",
        "package": "; package:// is looked up around the file of the description, and in share/ of the folders in "
        "AMENT_PREFIX_PATH: source the workspace of that package",
    }
    raise ModelError(f"mesh file {name!r} does not exist{looked_up.get(scheme if separator else '', '')}")


def _folders(robot: Robot) -> list[str]:
    around = [robot.folder, *robot.folder.parents] if robot.folder is not None else []
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [str(folder) for folder in around] + [os.path.join(prefix, "share") for prefix in prefixes if prefix]


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

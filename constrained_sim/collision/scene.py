"""Bodies of the world that a robot may touch, beside planes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import coal
import numpy as np
import pinocchio as pin
import scipy

from constrained_sim.collision.flat_faces import flattened
from constrained_sim.contact.surfaces import Plane
from constrained_sim.exceptions import InvalidValue
from constrained_sim.validation import Array, finite_array, number, shape_of


@dataclass(frozen=True, eq=False)
class Box:
    """A box, fixed in the world.

    Attributes:
        size: (3,) edge lengths [m].
        position: (3,) of its middle [m], world frame.
        rpy: (3,) roll, pitch and yaw of its axes [rad], as in a URDF.

    Raises:
        InvalidValue: an edge that is not positive, NaN or infinity.
    """

    size: Sequence[float]
    position: Sequence[float] = (0.0, 0.0, 0.0)
    rpy: Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check all values."""
        _check_pose(self)
        object.__setattr__(self, "size", finite_array("size of a box", self.size, (3,)))
        if min(self.size) <= 0.0:
            raise InvalidValue("size of a box", list(map(float, self.size)), "positive lengths")

    def shape(self) -> coal.CollisionGeometry:
        """Return the shape."""
        return coal.Box(*self.size)


@dataclass(frozen=True, eq=False)
class Sphere:
    """A ball, fixed in the world.

    Attributes:
        radius: [m].
        position: (3,) of its middle [m], world frame.

    Raises:
        InvalidValue: a radius that is not positive, NaN or infinity.
    """

    radius: float
    position: Sequence[float] = (0.0, 0.0, 0.0)
    rpy = np.zeros(3)

    def __post_init__(self) -> None:
        """Check all values."""
        _check_pose(self)
        object.__setattr__(self, "radius", number("radius of a sphere", self.radius, 0.0, open_lower=True))

    def shape(self) -> coal.CollisionGeometry:
        """Return the shape."""
        return coal.Sphere(self.radius)


@dataclass(frozen=True, eq=False)
class Mesh:
    """The convex hull of points, or of a mesh file (STL, OBJ, DAE), fixed in the world.

    Attributes:
        vertices: (n, 3) points [m]; or the file. Kept are the corners of their hull.
        position: (3,) of their origin [m], world frame.
        rpy: (3,) roll, pitch and yaw of their axes [rad].

    Raises:
        InvalidValue: points in a plane, NaN or infinity, or a file that cannot be read.
    """

    vertices: Any
    position: Sequence[float] = (0.0, 0.0, 0.0)
    rpy: Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check all values."""
        _check_pose(self)
        if isinstance(self.vertices, (str, os.PathLike)):
            points = load_mesh(os.fspath(self.vertices)).vertices()
        else:
            count = (*shape_of(self.vertices), 1)[0]
            points = finite_array("vertices of a mesh", self.vertices, (count, 3))
        object.__setattr__(self, "vertices", flattened(hull_points(points)))

    def shape(self) -> coal.CollisionGeometry:
        """Return the convex hull."""
        return hull_of(self.vertices)


SceneBody = Plane | Box | Sphere | Mesh


def checked_scene(scene: Mapping[str, SceneBody]) -> dict[str, SceneBody]:
    """Return `scene` if every body in it is one.

    Raises:
        InvalidValue: something else.
    """
    if not isinstance(scene, Mapping):
        raise InvalidValue("scene", scene, "bodies by name")
    for name, body in scene.items():
        if not isinstance(name, str) or not name or not isinstance(body, SceneBody):
            raise InvalidValue(f"scene body {name!r}", body, "a Plane, Box, Sphere or Mesh by name")
    return dict(scene)


def placement_of(body: Box | Sphere | Mesh) -> pin.SE3:
    """Return the placement of a body in the world."""
    return pin.SE3(pin.rpy.rpyToMatrix(np.asarray(body.rpy)), np.asarray(body.position))


def load_mesh(path: str, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> coal.BVHModelBase:
    """Return the triangles of a mesh file, with the factors `scale` along its axes.

    Raises:
        InvalidValue: it cannot be read.
    """
    if not os.path.isfile(path):
        raise InvalidValue("mesh file", path, "a regular file that is there")
    try:
        return coal.MeshLoader().load(path, np.array(scale))
    except (RuntimeError, ValueError) as error:
        raise InvalidValue("mesh file", path, f"a file that can be read ({error})") from error


def hull_points(points: Array) -> Array:
    """Return those of `points` (n, 3) that are corners of their convex hull, in their order.

    Raises:
        InvalidValue: all are in one plane. (Coal would crash.)
    """
    try:
        return np.array(points[np.sort(scipy.spatial.ConvexHull(points).vertices)])
    except (scipy.spatial.QhullError, ValueError) as error:
        raise InvalidValue("vertices of a mesh", f"{len(points)} points", "four or more, not in one plane") from error


def hull_of(points: Array) -> coal.Convex:
    """Return the convex hull of `points` (n, 3).

    Raises:
        InvalidValue: all are in one plane.
    """
    points = hull_points(points)
    # Options of Qhull: coal knows at most 255 neighbours of a vertex, which a fan of triangles over a disc may exceed;
    # points that are joggled, by some 1e-11 of their size, give other triangles.
    for options in ("Qt", "QJ"):
        cloud = coal.BVHModelOBBRSS()
        cloud.beginModel(0, len(points))
        cloud.addVertices(points)
        cloud.endModel()
        try:
            cloud.buildConvexHull(True, options)
        except RuntimeError:
            continue
        return cloud.convex
    raise InvalidValue("vertices of a mesh", f"{len(points)} corners", "at most 255 neighbours of each: coarsen it")


def _check_pose(body: Box | Sphere | Mesh) -> None:
    what = f"of a {type(body).__name__.lower()}"
    object.__setattr__(body, "position", finite_array(f"position {what}", body.position, (3,)))
    if not isinstance(body, Sphere):
        object.__setattr__(body, "rpy", finite_array(f"rpy {what}", body.rpy, (3,)))

"""The shapes of a robot's description and of a scene, and where the mesh files of a description are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import coal

from constrained_sim.collision.flat_faces import flattened
from constrained_sim.collision.scene import Box, Mesh, Sphere, hull_of, hull_points, load_mesh, placement_of
from constrained_sim.collision.shapes import SHAPES, Shape
from constrained_sim.descriptions import CollisionElement
from constrained_sim.exceptions import ConfigError, InvalidValue, MissingLibrary, ModelError
from constrained_sim.package_paths import resolve_path
from constrained_sim.robot import Robot


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

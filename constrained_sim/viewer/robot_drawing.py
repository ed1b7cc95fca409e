"""Draws the links of a robot, the objects beside it, and the bodies of its scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.collision.scene import Box, Mesh, Sphere, load_mesh, placement_of
from constrained_sim.contact.surfaces import Plane
from constrained_sim.descriptions.meshes import hull_triangles
from constrained_sim.descriptions.visual import Visual
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.frame import ShownObject
from constrained_sim.viewer.quaternions import wxyz
from constrained_sim.viewer.source import World
from constrained_sim.viewer.visuals import visuals_of

WORLD = "/world"
"""Name of the frame that carries all that is drawn; it moves where the camera follows the robot."""

ROBOT, OBJECTS = f"{WORLD}/robot", f"{WORLD}/objects"
SCENE_COLOUR = (190, 196, 205)
GROUND_LIGHT = (150, 150, 160)


class RobotDrawing:
    """The links of a robot, each a node of the page's scene that carries its shapes.

    Attributes:
        robot: that is drawn.
    """

    def __init__(self, scene: Any, robot: Robot, name: str = ROBOT) -> None:
        """Add `robot` to a `viser.SceneApi` under `name`, at its neutral configuration."""
        self.robot, self._name = robot, name
        self._root = scene.add_frame(name, show_axes=False)
        self._links: dict[str, Any] = {}
        visuals = visuals_of(robot)
        for link in dict.fromkeys(visual.link for visual in visuals):
            self._links[link] = scene.add_frame(f"{name}/{link}", show_axes=False)
        for index, visual in enumerate(visuals):
            _add(scene, f"{name}/{visual.link}/{index}", visual)
        if not visuals:
            self._add_skeleton(scene)
        self.update(robot.neutral())

    def update(self, q: Array, mount: pin.SE3 | None = None) -> None:
        """Move the links to where they are at `q` (nq,) in a world that is at `mount` in ours; None: in ours."""
        if mount is not None:
            _put(self._root, mount)
        dynamics = kinematics_at(self.robot, q)
        for link, node in self._links.items():
            joint, inside = self.robot.link_placement(link)
            _put(node, dynamics.placement(joint) * inside)

    def remove(self) -> None:
        """Take it from the scene."""
        self._root.remove()

    def _add_skeleton(self, scene: Any) -> None:
        """Show a robot without shapes as rods from each joint to the joints that it carries."""
        model = self.robot.model
        names = {frame.parentJoint: frame.name for frame in reversed(model.frames) if frame.parentJoint}
        for joint in range(1, model.njoints):
            parent, end = model.parents[joint], model.jointPlacements[joint].translation
            if parent and (length := float(np.linalg.norm(end))) > 0.0:
                link = names[parent]
                inside = self.robot.link_placement(link)[1].inverse()
                turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end).matrix()
                rod = Visual(link, inside * pin.SE3(turn, 0.5 * end), "cylinder", (0.04 * length, length))
                if link not in self._links:
                    self._links[link] = scene.add_frame(f"{self._name}/{link}", show_axes=False)
                _add(scene, f"{self._name}/{link}/rod {joint}", rod)


class ObjectDrawings:
    """The objects beside a robot, as they come, move and go."""

    def __init__(self, scene: Any) -> None:
        """Draw into a `viser.SceneApi`."""
        self._scene = scene
        self._drawn: dict[str, RobotDrawing] = {}

    def update(self, objects: Iterable[ShownObject]) -> None:
        """Show these objects where they are, and no others."""
        shown = {one.name: one for one in objects}
        for name, drawing in list(self._drawn.items()):
            if name not in shown or shown[name].body is not drawing.robot:
                self._drawn.pop(name).remove()
        for name, one in shown.items():
            if name not in self._drawn:
                self._drawn[name] = RobotDrawing(self._scene, one.body, f"{OBJECTS}/{name}")
            self._drawn[name].update(one.q, one.mount)


def _put(node: Any, placement: pin.SE3) -> None:
    node.position, node.wxyz = placement.translation, wxyz(placement.rotation)


def draw_scene(scene: Any, world: World) -> None:
    """Add light and the bodies that rest to a `viser.SceneApi`; planes as a grid.

    Light from the sky and the ground: the environment map that viser would take costs seconds without a GPU.
    """
    scene.configure_environment_map(None)
    scene.add_light_hemisphere("/light", ground_color=GROUND_LIGHT, intensity=2.0, position=(0.0, 0.0, 1.0))
    for name, body in world.scene.items():
        BODIES[type(body)](scene, f"{WORLD}/scene/{name}", body)


def _add_plane(scene: Any, name: str, plane: Plane) -> None:
    scene.add_grid(
        name, 20.0, 20.0, cell_size=0.1, cell_color=(222, 225, 230), section_size=0.5,
        section_color=(190, 196, 205), plane_color=(243, 244, 247), plane_opacity=1.0, shadow_opacity=0.25,
        fade_distance=12.0, position=plane.offset * plane.normal, wxyz=wxyz(plane.axes.T),
    )  # fmt: skip


def _place(body: Box | Sphere | Mesh) -> dict[str, Any]:
    at = placement_of(body)
    return {"color": SCENE_COLOUR, "position": at.translation, "wxyz": wxyz(at.rotation)}


def _add_box(scene: Any, name: str, box: Box) -> None:
    scene.add_box(name, dimensions=tuple(box.size), **_place(box))


def _add_sphere(scene: Any, name: str, sphere: Sphere) -> None:
    scene.add_icosphere(name, radius=sphere.radius, **_place(sphere))


def _add_mesh(scene: Any, name: str, mesh: Mesh) -> None:
    scene.add_mesh_simple(name, mesh.vertices, hull_triangles(mesh.vertices), **_place(mesh))


BODIES: dict[type, Callable[[Any, str, Any], None]] = {
    Plane: _add_plane,
    Box: _add_box,
    Sphere: _add_sphere,
    Mesh: _add_mesh,
}


def _add(scene: Any, name: str, visual: Visual) -> None:
    """Add one shape; a mesh that cannot be read is left out."""
    red, green, blue, opacity = visual.colour
    look: dict[str, Any] = {"color": (red, green, blue), "opacity": opacity if opacity < 1.0 else None}
    look |= {"position": visual.placement.translation, "wxyz": wxyz(visual.placement.rotation)}
    if visual.kind == "box":
        scene.add_box(name, dimensions=visual.size, **look)
    elif visual.kind == "sphere":
        scene.add_icosphere(name, radius=visual.size[0], **look)
    elif visual.kind == "ellipsoid":
        scene.add_icosphere(name, radius=1.0, scale=visual.size, **look)
    elif visual.kind == "cylinder":
        scene.add_cylinder(name, *visual.size, **look)
    elif visual.kind == "capsule":
        radius, length = visual.size
        scene.add_cylinder(name, radius, length, **look)
        for end, height in (("low", -0.5 * length), ("high", 0.5 * length)):
            at = visual.placement.act(np.array([0.0, 0.0, height]))
            scene.add_icosphere(f"{name} {end}", radius=radius, **(look | {"position": at}))
    else:
        mesh = _triangles(visual)
        if mesh is not None:
            scene.add_mesh_simple(name, *mesh, flat_shading=True, side="double", **look)


def _triangles(visual: Visual) -> tuple[Array, npt.NDArray[np.uint32]] | None:
    """Return vertices (n, 3) [m] and triangles (m, 3) of a mesh; None where its file cannot be read."""
    if visual.vertices is not None:
        triangles = hull_triangles(visual.vertices) if visual.triangles is None else visual.triangles
        return visual.vertices, triangles.astype(np.uint32)
    try:
        mesh = load_mesh(visual.file, visual.size)
    except InvalidValue:
        return None
    indices = [mesh.tri_indices(index) for index in range(mesh.num_tris)]
    return np.array(mesh.vertices()), np.array([[t[0], t[1], t[2]] for t in indices], dtype=np.uint32).reshape(-1, 3)

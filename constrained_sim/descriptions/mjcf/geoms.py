"""Geoms of an MJCF: what they weigh, and their collision geometry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.descriptions.document import Tag, where
from constrained_sim.descriptions.inertia import mesh_inertia, solid_inertia
from constrained_sim.descriptions.meshes import Triangles, hull_triangles, load_triangles
from constrained_sim.descriptions.mjcf.settings import Compiler, Defaults, turn_z_to, word_of
from constrained_sim.descriptions.visual import GREY, Visual
from constrained_sim.descriptions.vocabulary import Ignored, not_negative, number, numbers
from constrained_sim.exceptions import ModelError
from constrained_sim.validation import Array

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
"""How many half sizes a solid has."""

WITHOUT_MASS = ("plane", "hfield")

LAST_SHOWN_GROUP = 2
"""MuJoCo's viewer shows the groups 0 to 2; models keep collision geometry in 3."""

ALL_BITS = 1
"""contype and conaffinity of geoms that touch all others."""


@dataclass(frozen=True, eq=False)
class Geom:
    """One geom.

    Attributes:
        element: with its defaults.
        type: of its shape.
        placement: in the frame of the body.
        size: half sizes [m].
    """

    element: Tag
    type: str
    placement: pin.SE3
    size: Array


class Geoms:
    """Reads geoms."""

    def __init__(
        self, root: Element, compiler: Compiler, defaults: Defaults, folder: Path | None, ignored: Ignored
    ) -> None:
        """Remember the meshes of a file, which are in `folder`."""
        self._compiler, self._folder, self._ignored = compiler, folder or Path(), ignored
        self._meshes: dict[str, Tag] = {}
        self._triangles: dict[str, tuple[Array, Triangles]] = {}
        self._names: set[str] = set()
        self._colours = {m.get("name", ""): m for m in root.iterfind("asset/material") if m.get("rgba") is not None}
        for mesh in root.iterfind("asset/mesh"):
            self._meshes[mesh.get("name") or Path(mesh.get("file", "")).stem] = defaults.applied(mesh)

    def read(self, element: Tag, offset: pin.SE3) -> Geom:
        """Return a geom in the frame of its body.

        Raises:
            ModelError: a type, a size or a mesh that cannot be.
        """
        kind, what = element.get("type", "sphere"), where(element)
        if kind not in (*SIZES, *WITHOUT_MASS, "mesh", "sdf"):
            raise ModelError(f"{what}: got type {kind!r}, allowed: {', '.join((*SIZES, *WITHOUT_MASS, 'mesh'))}")
        if kind != "mesh" and element.get("mesh") is not None:
            raise ModelError(f"{what}: got a mesh to be fitted with a {kind}, allowed: type='mesh', or sizes")
        if kind == "mesh" and element.get("mesh") not in self._meshes:
            allowed = ", ".join(self._meshes) or "none"
            raise ModelError(f"{what}: got the mesh {element.get('mesh')!r}, allowed: {allowed}")
        for key in ("mass", "density", "friction"):
            if min(numbers(element, key, (0.0,))) < 0.0:
                raise ModelError(f"{key!r} of {what}: got {element.get(key)!r}, allowed: numbers >= 0")
        return Geom(element, kind, offset * self.placement(element), self._size(element, kind))

    def placement(self, element: Element) -> pin.SE3:
        """Return the placement of a geom or a site in its frame: by its pose, or by the ends of its axis."""
        if element.get("fromto") is None:
            return self._compiler.pose(element)
        ends = np.array(numbers(element, "fromto")).reshape(2, 3)
        if np.linalg.norm(ends[0] - ends[1]) < 1e-10:
            raise ModelError(f"'fromto' of {where(element)}: got {element.get('fromto')!r}, allowed: two points")
        return pin.SE3(turn_z_to(ends[0] - ends[1]), ends.mean(axis=0))

    def _size(self, element: Element, kind: str) -> Array:
        count = SIZES.get(kind, 0)
        size = numbers(element, "size")[:count] if count else []
        if element.get("fromto") is not None:
            if kind not in ("capsule", "cylinder", "ellipsoid", "box"):
                allowed = "capsule, cylinder, ellipsoid, box"
                raise ModelError(f"{where(element)}: got fromto for a {kind}, allowed: {allowed}")
            ends = np.array(numbers(element, "fromto")).reshape(2, 3)
            size = [*(size[:1] * (count - 1)), 0.5 * float(np.linalg.norm(ends[0] - ends[1]))]
        if len(size) != count or (count and min(size) <= 0.0):
            given = element.get("size")
            raise ModelError(f"size of {where(element)}: got {given!r}, allowed: {count} positive lengths")
        return np.array(size)

    def inertia(self, geoms: list[Geom]) -> pin.Inertia:
        """Return the inertia of all geoms of a body, in its frame."""
        first, last = numbers(self._compiler.settings, "inertiagrouprange", (0.0, 5.0))
        total = pin.Inertia.Zero()
        for geom in geoms:
            if first <= number(geom.element, "group", 0.0) <= last and geom.type not in WITHOUT_MASS:
                total += geom.placement.act(self._weighed(geom))
        return total

    def _weighed(self, geom: Geom) -> pin.Inertia:
        element = geom.element
        density = not_negative(element, "density", 1000.0)
        mass = not_negative(element, "mass", 0.0) if element.get("mass") is not None else None
        if mass == 0.0 or (mass is None and density == 0.0):
            return pin.Inertia.Zero()
        if geom.type == "sdf":
            raise ModelError(f"{where(element)}: got type 'sdf', allowed: an <inertial> beside it")
        if geom.type != "mesh":
            return solid_inertia(geom.type, geom.size, mass, density)
        name = element.get("mesh", "")
        way = word_of(self._meshes[name], "inertia", ("exact", "convex", "legacy"))
        try:
            vertices, triangles = self.triangles(name)
            triangles = hull_triangles(vertices) if way == "convex" else triangles
            return mesh_inertia(vertices, triangles, mass, density, way == "legacy")
        except ModelError as error:
            raise ModelError(f"{where(element)}: {error}") from error

    def triangles(self, name: str) -> tuple[Array, Triangles]:
        """Return vertices (n, 3) [m] and triangles (m, 3) of a mesh, as MuJoCo places them."""
        if name not in self._triangles:
            mesh = self._meshes[name]
            if mesh.get("vertex") is not None:
                vertices, faces = _stated_triangles(mesh)
            else:
                vertices, faces = load_triangles(self.path(name))
            back = pin.Quaternion(*numbers(mesh, "refquat", (1.0, 0.0, 0.0, 0.0))).normalized().matrix()
            vertices = (vertices - numbers(mesh, "refpos", (0.0, 0.0, 0.0))) @ back
            self._triangles[name] = vertices * numbers(mesh, "scale", (1.0, 1.0, 1.0)), faces
        return self._triangles[name]

    def path(self, name: str) -> str:
        """Return the file of a mesh."""
        mesh = self._meshes[name]
        if not mesh.get("file"):
            raise ModelError(f"{where(mesh)}: got neither a file nor vertices, allowed: one of them")
        return str(self._folder / self._compiler.file(mesh.get("file", "")))

    def collisions(self, body: str, geoms: list[Geom]) -> list[CollisionElement]:
        """Return the geoms of a body that touch others."""
        elements: list[CollisionElement] = []
        for geom in geoms:
            contype, affinity = (int(number(geom.element, key, 1.0)) for key in ("contype", "conaffinity"))
            if not contype and not affinity:
                continue
            if (contype, affinity) != (ALL_BITS, ALL_BITS):
                self._ignored.add("contype and conaffinity other than 0 and 1", geom.element, "it touches all others")
            elements.append(self._collision(body, len(elements), geom))
        return elements

    def visuals(self, body: str, geoms: list[Geom]) -> Iterator[Visual]:
        """Return the geoms of a body that MuJoCo's viewer shows by default; all of a body of which it shows none."""
        drawn = [geom for geom in geoms if geom.type in (*SIZES, "mesh")]
        shown = [geom for geom in drawn if number(geom.element, "group", 0.0) <= LAST_SHOWN_GROUP]
        for geom in shown or drawn:
            try:
                size, file, vertices = self._extent(geom)
            except ModelError:
                continue  # the description stands without its pictures
            triangles = None if vertices is None else self.triangles(geom.element.get("mesh", ""))[1]
            yield Visual(body, geom.placement, geom.type, size, file, self._colour(geom.element), vertices, triangles)

    def _colour(self, element: Element) -> tuple[float, ...]:
        """Return the colour of a geom: its own, or that of its material."""
        material = self._colours.get(element.get("material", ""))
        teller = element if element.get("rgba") is not None or material is None else material
        return tuple(numbers(teller, "rgba", GREY))

    def _collision(self, body: str, index: int, geom: Geom) -> CollisionElement:
        element, condim = geom.element, int(number(geom.element, "condim", 3.0))
        friction = numbers(element, "friction", (1.0,))[0] if condim > 1 else 0.0
        if condim > 3:
            self._ignored.add("torsional and rolling friction of <geom>", element, "they are for all collisions")
        return CollisionElement(
            body, self._unique_name(body, index, element), geom.placement, geom.type, *self._extent(geom), friction,
            where(element),
        )  # fmt: skip

    def _unique_name(self, body: str, index: int, element: Element) -> str:
        """Return the name of a geom, by which its contacts are called; of one without, ``<body>_<index>``."""
        name = element.get("name") or f"{body}_{index}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def _extent(self, geom: Geom) -> tuple[tuple[float, ...], str, Array | None]:
        """Return size, file and vertices of a geom; what is a half size in MJCF is a whole one here, but a radius."""
        size, file = geom.size, ""
        vertices: Array | None = None
        if geom.type == "box":
            size = 2.0 * size
        elif geom.type in ("capsule", "cylinder"):
            size = size * [1.0, 2.0]
        elif geom.type == "mesh":
            name = geom.element.get("mesh", "")
            mesh = self._meshes[name]
            size = np.array(numbers(mesh, "scale", (1.0, 1.0, 1.0)))
            if any(mesh.get(key) is not None for key in ("vertex", "refpos", "refquat")):
                vertices = self.triangles(name)[0]
            else:
                file = self.path(name)
        return tuple(map(float, size)), file, vertices


def _stated_triangles(mesh: Element) -> tuple[Array, Triangles]:
    """Return vertices (n, 3) and triangles (m, 3) of a mesh without a file; without faces those of its hull.

    Raises:
        ModelError: numbers that are no threes, or a face of a vertex that does not exist.
    """
    vertices, faces = np.array(numbers(mesh, "vertex")), np.array(numbers(mesh, "face"), dtype=np.int64)
    if len(vertices) % 3 or len(faces) % 3 or not len(vertices):
        raise ModelError(f"{where(mesh)}: got vertices or faces that are no threes, allowed: three numbers each")
    points, triangles = vertices.reshape(-1, 3), faces.reshape(-1, 3)
    if not len(triangles):
        triangles = hull_triangles(points)
    if not 0 <= triangles.min() <= triangles.max() < len(points):
        raise ModelError(f"{where(mesh)}: got a face of a vertex that does not exist, allowed: 0 to {len(points) - 1}")
    return points, triangles

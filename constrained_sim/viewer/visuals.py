"""Shapes that a description shows: ``<visual>`` of URDF and SDF, geoms of MJCF; else the collision geometry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

import pinocchio as pin

from constrained_sim.collision.robot_shapes import mesh_path
from constrained_sim.descriptions.document import parse_xml
from constrained_sim.descriptions.sdf.frames import Frames
from constrained_sim.descriptions.urdf.reader import pose_of
from constrained_sim.descriptions.visual import GREY, Visual
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.robot import Robot


def visuals_of(robot: Robot) -> list[Visual]:
    """Return the shapes that `robot` is shown with; its collision geometry where the description shows nothing.

    The description stands without pictures that are missing.
    """
    found = []
    for visual in _described(robot):
        with suppress(ConstrainedSimError):
            found.append(replace(visual, file=_file(robot, visual)))
    return found or list(_of_collisions(robot))


def missing_visuals(robot: Robot) -> dict[str, str]:
    """Return what is missing of the shapes that the description of `robot` shows: the reason, by the file's name."""
    missing = {}
    for visual in _described(robot):
        try:
            _file(robot, visual)
        except ConstrainedSimError as error:
            missing[visual.file] = f"link {visual.link!r} is not shown as it looks: {error.message}"
    return missing


def _described(robot: Robot) -> list[Visual]:
    """Return the shapes of the description, with files as it names them."""
    if not robot.urdf:
        return list(robot.visuals)
    root = parse_xml(robot.urdf, "robot description")
    return list({"robot": _of_urdf, "sdf": _of_sdf}.get(root.tag, _of_nothing)(robot, root))


def _file(robot: Robot, visual: Visual) -> str:
    """Return where the file of a shape is; empty: it needs none.

    Raises:
        ConstrainedSimError: nowhere.
    """
    return mesh_path(robot, visual.file) if visual.kind == "mesh" and visual.vertices is None else ""


def _of_nothing(robot: Robot, root: Element) -> Iterator[Visual]:
    yield from ()


def _of_urdf(robot: Robot, root: Element) -> Iterator[Visual]:
    """Return the shapes of a URDF; a material without a colour refers to one of the whole robot."""
    named = {m.get("name", ""): m for m in root.iter("material") if m.find("color") is not None}
    for link in root.findall("link"):
        for visual in link.findall("visual"):
            shape, material = visual.find("geometry/*"), visual.find("material")
            if shape is None:
                continue
            if material is not None and material.find("color") is None:
                material = named.get(material.get("name", ""))
            colour = None if material is None else material.find("color")
            texts = {key: shape.get(key) for key in ("radius", "length", "size", "scale", "filename")}
            place = link.get("name", ""), pose_of(visual.find("origin")), shape.tag, texts
            yield from _visual(robot, place, _rgba(colour, "rgba"))


def _of_sdf(robot: Robot, root: Element) -> Iterator[Visual]:
    """Return the shapes of an SDF; its colour is the diffuse one."""
    model = root.find("model") if root.find("model") is not None else root.find("world/model")
    if model is None:
        return
    frames = Frames(model)
    for name, link in frames.links.items():
        for visual in link.findall("visual"):
            shape = visual.find("geometry/*")
            if shape is None:
                continue
            texts = {key: shape.findtext(key) for key in ("radius", "length", "size", "scale")}
            texts["filename"] = (shape.findtext("uri") or "").strip()
            place = name, frames.inside(visual, name), shape.tag, texts
            yield from _visual(robot, place, _rgba(visual.find("material/diffuse"), ""))


def _visual(
    robot: Robot, place: tuple[str, pin.SE3, str, dict[str, str | None]], colour: tuple[float, ...]
) -> Iterator[Visual]:
    """Return the shape at a place: link, placement, kind, texts of its size; nothing of another kind."""
    link, placement, kind, texts = place
    keys = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length"), "box": ("size",)}
    if link not in robot.links or kind not in (*keys, "mesh"):
        return
    if kind != "mesh":
        size = tuple(value for key in keys[kind] for value in _numbers(texts[key], ()))
        yield Visual(link, placement, kind, size, colour=colour)
        return
    yield Visual(link, placement, kind, _numbers(texts["scale"], (1.0, 1.0, 1.0)), texts["filename"] or "", colour)


def _of_collisions(robot: Robot) -> Iterator[Visual]:
    for element in robot.collision_elements:
        if element.kind in ("sphere", "box", "cylinder", "capsule", "mesh"):
            file = element.file and (element.file if Path(element.file).is_file() else mesh_path(robot, element.file))
            yield Visual(element.link, element.placement, element.kind, element.size, file, GREY, element.vertices)


def _rgba(element: Element | None, attribute: str) -> tuple[float, ...]:
    """Return the four numbers of a colour; grey where there is none."""
    if element is None:
        return GREY
    values = _numbers(element.get(attribute) if attribute else element.text, GREY)
    return (*values, 1.0)[:4] if len(values) >= 3 else GREY


def _numbers(text: str | None, default: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split()) if text else default

"""Poses in an SDF: of links, joints and frames, relative to each other by name."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.document import where
from constrained_sim.descriptions.vocabulary import needed
from constrained_sim.exceptions import ModelError
from constrained_sim.robot import WORLD
from constrained_sim.validation import Array

MODEL = "__model__"


@dataclass(frozen=True, eq=False)
class Node:
    """A name that has a pose.

    Attributes:
        element: link, joint or frame.
        base: what its pose is relative to, unless that says so.
    """

    element: Element
    base: str


class Frames:
    """Resolves names to poses in the world."""

    def __init__(self, model: Element) -> None:
        """Collect the names of a model.

        Raises:
            ModelError: a name that is missing or there twice.
        """
        self._nodes: dict[str, Node] = {}
        self.links: dict[str, Element] = {}
        for element in model:
            if element.tag not in ("link", "joint", "frame"):
                continue
            name = needed(element, "name")
            if name in self._nodes:
                other = self._nodes[name].element
                raise ModelError(f"{name!r} is there twice, {where(other)} and {where(element)}; allowed: named once")
            self._nodes[name] = Node(element, _default_base(element))
            if element.tag == "link":
                self.links[name] = element
        if relative_to(model) not in ("", WORLD):
            raise ModelError(f"pose of {where(model)}: got one relative to {relative_to(model)!r}, allowed: the world")
        self._poses = {WORLD: pin.SE3.Identity(), MODEL: local_pose(model, "the model")}

    def pose(self, name: str, what: str) -> pin.SE3:
        """Return where a link, a joint or a frame is in the world.

        Raises:
            ModelError: no such name, or poses relative to each other in a circle.
        """
        chain, seen = [name], {name}
        while chain[-1] not in self._poses:
            current = chain[-1]
            if current not in self._nodes:
                allowed = ", ".join([MODEL, *list(self._nodes)[:20]])
                raise ModelError(f"{what}: got one relative to {current!r}, allowed: {allowed}")
            base = relative_to(self._nodes[current].element) or self._nodes[current].base
            if base in seen:
                raise ModelError(f"{what}: got poses relative to each other, {' -> '.join([*chain, base][:10])}")
            chain.append(base)
            seen.add(base)
        for inner, outer in zip(chain[-2::-1], chain[:0:-1], strict=True):
            element = self._nodes[inner].element
            self._poses[inner] = self._poses[outer] * local_pose(element, where(element))
        return self._poses[name]

    def inside(self, element: Element, link: str) -> pin.SE3:
        """Return the placement in a link of what it holds: a collision, an inertial."""
        base, what = relative_to(element), f"pose of {where(element)} of link {link!r}"
        if not base or base == link:
            return local_pose(element, what)
        return self.pose(link, what).actInv(self.pose(base, what) * local_pose(element, what))

    def link_of(self, name: str, what: str) -> str:
        """Return the link that carries a link or a frame.

        Raises:
            ModelError: no such name.
        """
        seen = [name]
        while seen[-1] not in self.links and seen[-1] != WORLD:
            node = self._nodes.get(seen[-1])
            if node is None or node.element.tag != "frame" or node.base in seen:
                raise ModelError(f"{what}: got link {name!r}, allowed: {', '.join(list(self.links)[:20])}")
            seen.append(node.base)
        return seen[-1]


def _default_base(element: Element) -> str:
    if element.tag == "joint":
        return (element.findtext("child") or "").strip()
    return element.get("attached_to") or MODEL


def relative_to(element: Element) -> str:
    """Return what the pose of an element names; empty if nothing."""
    pose = element.find("pose")
    return "" if pose is None else pose.get("relative_to") or pose.get("frame") or ""


def local_pose(element: Element, what: str) -> pin.SE3:
    """Return what <pose> says: x, y, z and roll, pitch, yaw, or a quaternion.

    Raises:
        ModelError: another number of numbers.
    """
    pose = element.find("pose")
    values = np.array([float(word) for word in ("" if pose is None else pose.text or "").split()])
    if pose is None or not values.size:
        return pin.SE3.Identity()
    is_quaternion = pose.get("rotation_format", "euler_rpy") == "quat_xyzw"
    if values.size != 6 + is_quaternion or pose.get("rotation_format", "euler_rpy") not in ("euler_rpy", "quat_xyzw"):
        raise ModelError(f"<pose> of {what}: got {pose.text!r}, allowed: {6 + is_quaternion} number(s)")
    return pin.SE3(
        _rotation(values[3:], is_quaternion, pose.get("degrees", "false") in ("1", "true"), what), values[:3]
    )


def _rotation(values: Array, is_quaternion: bool, in_degrees: bool, what: str) -> Array:
    if not is_quaternion:
        return np.asarray(pin.rpy.rpyToMatrix(np.radians(values) if in_degrees else values))
    if np.linalg.norm(values) < 1e-10:
        raise ModelError(f"<pose> of {what}: got a quaternion of zeros, allowed: one of some length")
    return np.asarray(pin.Quaternion(*np.roll(values, 1)).normalized().matrix())

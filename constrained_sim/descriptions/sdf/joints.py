"""Joints of an SDF."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.description import Spring
from constrained_sim.descriptions.document import where
from constrained_sim.descriptions.sdf.frames import MODEL, Frames
from constrained_sim.descriptions.vocabulary import Ignored
from constrained_sim.exceptions import ModelError
from constrained_sim.joint_properties import set_joint_property
from constrained_sim.robot import WORLD
from constrained_sim.validation import Array

TYPES = ("fixed", "revolute", "continuous", "prismatic", "ball")
NO_LIMIT = 1e10
"""Positions, efforts and speeds from here on are no limits: SDFormat's own defaults are beyond."""


def value(element: Element, path: str, default: float) -> float:
    """Return the number in an element that the vocabulary has checked."""
    text = element.findtext(path)
    return default if text is None else float(text)


class Joint:
    """One joint of the file.

    Attributes:
        element: in the file.
        name: of the joint.
        type: ``fixed``, ``revolute``, ``continuous``, ``prismatic`` or ``ball``.
        parent: link, or the world.
        child: link.
        placement: in the world, in the configuration of the file.
    """

    def __init__(self, element: Element, frames: Frames) -> None:
        """Resolve its names.

        Raises:
            ModelError: a type that is not supported, or a link that does not exist.
        """
        self.element, self.name, self.type = element, element.get("name", ""), element.get("type", "")
        if self.type not in TYPES:
            raise ModelError(f"{where(element)}: got type {self.type!r}, allowed: {', '.join(TYPES)}")
        ends = [(element.findtext(end) or "").strip() for end in ("parent", "child")]
        for end, text in zip(("parent", "child"), ends, strict=True):
            if not text:
                raise ModelError(f"{where(element)}: <{end}> is missing")
        self.parent, self.child = (frames.link_of(end, where(element)) for end in ends)
        if self.child == WORLD:
            raise ModelError(f"{where(element)}: got the world as its child, allowed: a link")
        self.placement = frames.pose(self.name, f"pose of {where(element)}")
        self._frames = frames

    @property
    def turns_or_slides(self) -> bool:
        """Whether it has one coordinate."""
        return self.type in ("revolute", "continuous", "prismatic")

    @property
    def mimic(self) -> Element | None:
        """What it mimics."""
        return self.element.find("axis/mimic")

    @property
    def axis(self) -> Array:
        """(3,) unit vector in the joint frame."""
        what, given = where(self.element), self.element.find("axis/xyz")
        axis = np.array([0.0, 0.0, 1.0] if given is None else [float(word) for word in (given.text or "").split()])
        if np.linalg.norm(axis) < 1e-9:
            raise ModelError(f"axis of {what}: got {axis.tolist()}, allowed: a vector of non-zero length")
        frame = "" if given is None else given.get("expressed_in", "")
        if not frame and self.element.findtext("axis/use_parent_model_frame", "0").strip() in ("1", "true"):
            frame = MODEL
        if frame:
            turned = self._frames.pose(frame, f"axis of {what}").rotation
            axis = self.placement.rotation.T @ turned @ axis
        return np.asarray(axis / np.linalg.norm(axis))

    @property
    def spring(self) -> Spring:
        """The spring in it."""
        stiffness = self._not_negative("dynamics/spring_stiffness", 0.0)
        return Spring(stiffness, value(self.element, "axis/dynamics/spring_reference", 0.0))

    def pinocchio_model(self) -> pin.JointModel:
        """Return Pinocchio's model of its motion."""
        if self.type == "ball":
            return pin.JointModelSpherical()
        slides = self.type == "prismatic"
        return (pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned)(self.axis)

    def set_properties(self, model: pin.Model, added: pin.JointModel, ignored: Ignored) -> None:
        """Set its limits, damping and dry friction in `model`.

        Raises:
            ModelError: a negative one, or position limits in the wrong order.
        """
        lower, upper = (value(self.element, f"axis/limit/{end}", sign * np.inf) for end, sign in ENDS)
        if self.type == "continuous" and max(-lower, upper) < NO_LIMIT:
            ignored.add("position limits of continuous joints", self.element)
        if self.type == "continuous":
            lower, upper = -np.inf, np.inf
        if not lower <= upper:
            raise ModelError(
                f"limits of {where(self.element)}: got lower {lower:g}, upper {upper:g}; allowed: in order"
            )
        damping, friction = (self._not_negative(f"dynamics/{key}", 0.0) for key in ("damping", "friction"))
        effort, speed = (self._bound(key) for key in ("effort", "velocity"))
        for key, number in (
            ("lower", -np.inf if lower <= -NO_LIMIT else lower),
            ("upper", np.inf if upper >= NO_LIMIT else upper),
            ("effort", effort),
            ("velocity", speed),
            ("damping", damping),
            ("friction", friction),
        ):
            set_joint_property(model, added, key, number)

    def report_unused(self, ignored: Ignored) -> None:
        """Note what of its axis has no effect where it closes a loop: it is an anchor then, without a coordinate."""
        what = "of a joint that closes a loop"
        dynamics = ("damping", "friction", "spring_stiffness")
        named = [key for key in dynamics if value(self.element, f"axis/dynamics/{key}", 0.0)]
        named += [
            end for end, sign in ENDS if sign * value(self.element, f"axis/limit/{end}", sign * np.inf) < NO_LIMIT
        ]
        for key in (*named, *(["mimic"] if self.mimic is not None else [])):
            ignored.add(f"<{key}> {what}", self.element, "cut the loop at another joint")

    def _bound(self, key: str) -> float:
        """Return the largest effort or speed; negative ones mean none in SDFormat."""
        bound = value(self.element, f"axis/limit/{key}", np.inf)
        return np.inf if bound < 0.0 or bound >= NO_LIMIT else bound

    def _not_negative(self, path: str, default: float) -> float:
        number = value(self.element, f"axis/{path}", default)
        if not number >= 0.0:
            raise ModelError(f"<{path}> of {where(self.element)}: got {number:g}, allowed: a number >= 0")
        return number


ENDS = (("lower", -1.0), ("upper", 1.0))

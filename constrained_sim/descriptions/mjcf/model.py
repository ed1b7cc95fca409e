"""The Pinocchio model of the bodies of an MJCF."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.description import Spring
from constrained_sim.descriptions.document import where
from constrained_sim.descriptions.inertia import fault_of
from constrained_sim.descriptions.mjcf.bodies import Body, JointEntry
from constrained_sim.descriptions.mjcf.settings import Compiler
from constrained_sim.descriptions.vocabulary import Ignored, not_negative, number, numbers
from constrained_sim.exceptions import ModelError
from constrained_sim.joint_properties import set_joint_property
from constrained_sim.robot import WORLD
from constrained_sim.validation import Array


class ModelBuilder:
    """Puts bodies together.

    Attributes:
        model: the tree.
        placements: of the bodies in the world in the configuration of the file, by name; the world among them.
        springs: by joint.
        effort_ranges: least and largest effort [N m, N] of joints that are stronger one way.
        sites: body and placement in it, by name.
        free_poses: (7,) of the bodies that float, in the world in the configuration of the file, by joint.
    """

    def __init__(self, bodies: list[Body], compiler: Compiler, disabled: frozenset[str], ignored: Ignored) -> None:
        """Build the model.

        Args:
            bodies: parents before children.
            compiler: settings of the file.
            disabled: flags of what is disabled.
            ignored: takes what is not used.

        Raises:
            ModelError: a value that no robot can have.
        """
        self.model, self.springs = pin.Model(), dict[str, Spring]()
        self.effort_ranges: dict[str, tuple[float, float]] = {}
        self.sites: dict[str, tuple[str, pin.SE3]] = {}
        self.free_poses: dict[str, Array] = {}
        self._compiler, self._disabled, self._ignored = compiler, disabled, ignored
        self.placements = {WORLD: pin.SE3.Identity()}
        self._at: list[tuple[int, pin.SE3, int]] = []
        for body in bodies:
            outer = bodies[body.parent].name if body.parent >= 0 else WORLD
            self.placements[body.name] = self.placements[outer] * body.placement
            self._add(body)

    def _add(self, body: Body) -> None:
        joint, placement, frame = self._at[body.parent] if body.parent >= 0 else (0, pin.SE3.Identity(), 0)
        placement = placement * body.placement
        for entry in body.joints:
            joint, placement = self._add_joint(entry, joint, placement)
            if entry.type == "free":
                self.free_poses[entry.name] = pin.SE3ToXYZQUAT(self.placements[body.name])
        self.model.appendBodyToJoint(joint, body.inertia, placement)
        added = self.model.addFrame(
            pin.Frame(body.name, joint, frame, placement, pin.FrameType.BODY, body.inertia), False
        )
        for name, site in body.sites.items():
            if name in self.sites:
                raise ModelError(f"site {name!r} is there twice, allowed: once")
            self.sites[name] = body.name, site
            self.model.addFrame(pin.Frame(name, joint, added, placement * site, pin.FrameType.OP_FRAME), False)
        self._at.append((joint, placement, added))

    def _add_joint(self, entry: JointEntry, parent: int, body: pin.SE3) -> tuple[int, pin.SE3]:
        """Add a joint to a body at `body` in the frame of the joint `parent`; return where the body is then."""
        if entry.type == "free":
            index = self.model.addJoint(parent, pin.JointModelFreeFlyer(), pin.SE3.Identity(), entry.name)
            in_joint = pin.SE3.Identity()
        elif entry.type == "ball":
            index = self.model.addJoint(parent, pin.JointModelSpherical(), body * entry.placement, entry.name)
            in_joint = entry.placement.inverse()
        else:
            slides = entry.type == "slide"
            kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
            back = -entry.reference * entry.axis
            moved = pin.SE3(np.eye(3), back) if slides else pin.SE3(pin.exp3(back), np.zeros(3))
            index = self.model.addJoint(parent, kind(entry.axis), body * entry.placement * moved, entry.name)
            in_joint = entry.placement.inverse()
        self._set_properties(entry, self.model.joints[index])
        return index, in_joint

    def _set_properties(self, entry: JointEntry, added: pin.JointModel) -> None:
        """Set damping, dry friction, armature, limits and springs of a joint.

        Raises:
            ModelError: a negative or nonlinear one, or one that this type of joint cannot have.
        """
        element, what = entry.element, where(entry.element)
        for key in ("damping", "stiffness"):
            if any(numbers(element, key, ())[1:]):
                raise ModelError(f"{key!r} of {what}: got {element.get(key)!r}, allowed: one number")
        damping = 0.0 if "damper" in self._disabled else not_negative(element, "damping", 0.0)
        friction = 0.0 if "frictionloss" in self._disabled else not_negative(element, "frictionloss", 0.0)
        if friction and entry.type == "free":
            raise ModelError(f"frictionloss of {what}: got {friction:g} of a free joint, allowed: 0")
        armature = not_negative(element, "armature", 0.0)
        self._set(added, damping=damping, armature=armature, friction=friction)
        if armature and entry.type == "free":
            self.model.armature[added.idx_v : added.idx_v + 3] = 0.0
            self._ignored.add("armature of the translation of free joints", element, "use <freejoint>, which has none")
        self._set(added, effort=np.inf, velocity=np.inf)
        self._set_limits(entry, added)
        stiffness = 0.0 if "spring" in self._disabled else not_negative(element, "stiffness", 0.0)
        if stiffness and entry.type not in ("hinge", "slide"):
            raise ModelError(f"stiffness of {what}: got one of a {entry.type} joint, allowed: of a hinge or a slide")
        if stiffness:
            self.springs[entry.name] = Spring(stiffness, self._unit(entry) * number(element, "springref", 0.0))

    def _set_limits(self, entry: JointEntry, added: pin.JointModel) -> None:
        element = entry.element
        limited = self._compiler.is_limited(element, "limited", "range") and "limit" not in self._disabled
        if entry.type not in ("hinge", "slide"):
            if limited:
                self._ignored.add(f"range of a {entry.type} joint", element)
            return
        lower, upper = (self._unit(entry) * end for end in numbers(element, "range")) if limited else (-np.inf, np.inf)
        self._set(added, lower=lower, upper=upper)

    def _set(self, added: pin.JointModel, **properties: float) -> None:
        for key, value in properties.items():
            set_joint_property(self.model, added, key, value)

    def _unit(self, entry: JointEntry) -> float:
        return self._compiler.angle if entry.type == "hinge" else 1.0

    def limit_efforts(self, efforts: Mapping[str, tuple[float, float]], joints: Mapping[str, JointEntry]) -> None:
        """Set the efforts that actuators can give, and those that joints allow."""
        for name, entry in joints.items():
            lower, upper = efforts.get(name, (-np.inf, np.inf))
            if entry.type in ("hinge", "slide") and self._compiler.is_limited(
                entry.element, "actuatorfrclimited", "actuatorfrcrange"
            ):
                least, largest = numbers(entry.element, "actuatorfrcrange")
                lower, upper = max(lower, least), min(upper, largest)
            added = self.model.joints[self.model.getJointId(name)]
            self._set(added, effort=upper)
            if lower != -upper:
                self.effort_ranges[name] = lower, upper


def settle_masses(bodies: list[Body], compiler: Compiler) -> None:
    """Raise small masses and inertias, and scale all of them, where the file says so.

    Raises:
        ModelError: an inertia that no body has.
    """
    settings = compiler.settings
    least_mass, least_moment = number(settings, "boundmass", 0.0), number(settings, "boundinertia", 0.0)
    for body in bodies:
        mass, moments = max(body.inertia.mass, least_mass), np.asarray(body.inertia.inertia)
        fault = fault_of(moments)
        if fault:
            raise ModelError(f"inertia of {where(body.element)}: got {fault}, allowed: what a body can have")
        values, axes = np.linalg.eigh(moments)
        body.inertia = pin.Inertia(mass, body.inertia.lever, axes @ np.diag(np.maximum(values, least_moment)) @ axes.T)
    wanted, total = number(settings, "settotalmass", -1.0), sum(body.inertia.mass for body in bodies)
    if wanted > 0.0 and total > 0.0:
        for body in bodies:
            scale = wanted / total
            body.inertia = pin.Inertia(body.inertia.mass * scale, body.inertia.lever, body.inertia.inertia * scale)

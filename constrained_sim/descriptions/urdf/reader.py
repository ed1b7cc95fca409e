"""URDF: held against its vocabulary, then read by Pinocchio, with what that reader leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.constraints import JointCoupling
from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.descriptions.description import Description, check_size
from constrained_sim.descriptions.document import parse_xml, where
from constrained_sim.descriptions.inertia import ROUNDED_AWAY, fault_of, inertia_matrix
from constrained_sim.descriptions.urdf.tree import named_elements, parents_first
from constrained_sim.descriptions.urdf.vocabulary import URDF
from constrained_sim.descriptions.urdf.xacro_file import expanded, is_xacro
from constrained_sim.descriptions.vocabulary import Ignored, needed, not_negative, number, numbers
from constrained_sim.exceptions import ModelError, UnphysicalInertia
from constrained_sim.joint_properties import property_of, set_property_of
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array

AXES = {"revolute": True, "continuous": True, "prismatic": True, "planar": True, "floating": False, "fixed": False}
"""Types of joints, and whether they have an axis."""

BOUNDED = ("revolute", "prismatic")
"""Types of joints that must have a <limit>."""

LIMITS = ("lower", "upper", "effort", "velocity")

NO_LIMIT = 1e300
"""What stands for infinity in the text for Pinocchio, whose reader knows none."""

SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def read_urdf(xml: str, floating_base: bool = False, folder: Path | None = None) -> Description:
    """Read a URDF, or a xacro file where the library xacro is installed.

    Args:
        xml: the text.
        floating_base: put a free-flyer between the world and the root link.
        folder: of its file, where a xacro file looks up what it includes.

    Raises:
        ModelError: not a URDF, or something in it that no robot can be; the message names it and its line.
    """
    root, ignored = parse_xml(xml, "URDF"), Ignored()
    if is_xacro(root):
        xml = expanded(xml, folder)
        root = parse_xml(xml, "URDF")
    if root.tag != "robot":
        raise ModelError(f"not a valid URDF: got the root <{root.tag}>, allowed: <robot>")
    URDF.check(root, ignored)
    links = named_elements(root, "link")
    joints = named_elements(root, "joint")
    check_size("URDF", len(links), sum(joint.get("type") != "fixed" for joint in joints.values()))
    order = parents_first(links, joints)
    for link in links.values():
        _check_inertial(link, ignored)
    for joint in joints.values():
        _check_joint(joint, ignored)
    model = _model(root, floating_base)
    couplings = tuple(_couplings(joints, ignored))
    passive = tuple(coupling.joint for coupling in couplings)
    frictions = _frictions(root, links, ignored)
    elements = [element for link in order for element in _collisions(links[link], frictions.get(link))]
    rank = {frame.name: index for index, frame in enumerate(model.frames) if frame.type == pin.FrameType.BODY}
    elements.sort(key=lambda element: rank[element.link])
    return Description(
        model, couplings, floating_base, passive, text=xml, collisions=tuple(elements), ignored=ignored.lines()
    )


def _check_inertial(link: Element, ignored: Ignored) -> None:
    """Refuse masses below zero; report an inertia that no body has: many published robots have such links.

    Raises:
        ModelError: a mass or a moment below zero, or an incomplete inertia.
    """
    inertial = link.find("inertial")
    if inertial is None:
        return
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is None or inertia is None:
        raise ModelError(f"{where(inertial)}: got no <mass> or no <inertia>, allowed: both")
    needed(mass, "value")
    not_negative(mass, "value", 0.0)
    for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"):
        needed(inertia, key)
    for key in ("ixx", "iyy", "izz"):
        if number(inertia, key, 0.0) < -ROUNDED_AWAY:
            raise ModelError(f"{key!r} of {where(inertia)}: got {inertia.get(key)!r}, allowed: a number >= 0")
    values = (number(inertia, key, 0.0) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    fault = fault_of(inertia_matrix(*values))
    if fault:
        text = f"inertia of {where(link)}: {fault}; no body has it, and it is used as it is"
        ignored.report(text)
        warn(UnphysicalInertia(text))


def _check_joint(joint: Element, ignored: Ignored) -> None:
    """Refuse a joint that cannot be, and report what its type does not have.

    Raises:
        ModelError: names the joint and what is wrong.
    """
    kind, what = needed(joint, "type"), where(joint)
    if kind not in AXES:
        raise ModelError(f"{what}: got type {kind!r}, allowed: {', '.join(AXES)}")
    axis = joint.find("axis")
    if AXES[kind] and axis is not None and np.linalg.norm(_axis(joint)) < 1e-9:
        raise ModelError(f"axis of {what}: got {axis.get('xyz')!r}, allowed: a vector of non-zero length")
    dynamics = joint.find("dynamics")
    if dynamics is not None:
        for key in ("damping", "friction"):
            not_negative(dynamics, key, 0.0)
    for tag in ("limit", "dynamics") if kind in ("fixed", "floating", "planar") else ():
        if joint.find(tag) is not None:
            ignored.add(f"<{tag}> of {kind} joints", joint)
    limit = joint.find("limit")
    if limit is None and kind in BOUNDED:
        raise ModelError(f"{what}: got no <limit>, which a {kind} joint needs; allowed: one, or the type continuous")
    if limit is not None:
        for key in ("effort", "velocity"):
            needed(limit, key)
            not_negative(limit, key, 0.0)
        lower, upper = number(limit, "lower", 0.0), number(limit, "upper", 0.0)
        if kind == "continuous" and (lower, upper) != (0.0, 0.0):
            ignored.add("position limits of continuous joints", limit)
        if kind in BOUNDED and not lower <= upper:
            raise ModelError(f"limits of {what}: got lower {lower:g}, upper {upper:g}; allowed: lower <= upper")


def _axis(joint: Element) -> Array:
    """Return the (3,) axis of a joint, as given; x where there is none."""
    axis = joint.find("axis")
    return np.array((1.0, 0.0, 0.0) if axis is None else numbers(axis, "xyz", (1.0, 0.0, 0.0)))


def _model(root: Element, floating_base: bool) -> pin.Model:
    """Return Pinocchio's reading of the links and joints, without what it does not need for the model."""
    plain = Element("robot", name=root.get("name") or "robot")
    for element in root:
        if element.tag not in ("link", "joint"):
            continue
        copy = ElementTree.SubElement(plain, element.tag, dict(element.items()))
        kept = ("inertial",) if element.tag == "link" else ("origin", "parent", "child", "axis", "limit", "dynamics")
        copy.extend(child for child in element if child.tag in kept)
    for limit in plain.iter("limit"):
        limit.attrib.update({key: repr(float(np.clip(number(limit, key, 0.0), -NO_LIMIT, NO_LIMIT))) for key in LIMITS})
    for dynamics in plain.iter("dynamics"):
        dynamics.attrib.update({key: dynamics.get(key, "0") for key in ("damping", "friction")})
    text = ElementTree.tostring(plain, encoding="unicode")
    try:
        model = pin.buildModelFromXML(text, *([pin.JointModelFreeFlyer()] if floating_base else []))
    except (RuntimeError, ValueError, IndexError) as error:
        raise ModelError(f"not a valid URDF: {error}") from error
    for joint in plain.iter("joint"):
        if joint.get("type") == "planar":
            _turn_planar(model, joint.get("name", ""), _axis(joint))
    for key in LIMITS:
        values = property_of(model, key)
        set_property_of(model, key, np.where(np.abs(values) == NO_LIMIT, np.copysign(np.inf, values), values))
    return model


def _turn_planar(model: pin.Model, name: str, axis: Array) -> None:
    """Turn a planar joint, whose plane is x, y for Pinocchio, by the least rotation that takes z to the `axis` (3,)."""
    joint = model.getJointId(name)
    turn = pin.SE3(pin.Quaternion.FromTwoVectors(np.array([0, 0, 1.0]), axis).matrix(), np.zeros(3))
    model.jointPlacements[joint] = model.jointPlacements[joint] * turn
    model.inertias[joint] = turn.actInv(model.inertias[joint])
    for child in range(joint + 1, model.njoints):
        if model.parents[child] == joint:
            model.jointPlacements[child] = turn.actInv(model.jointPlacements[child])
    for frame in model.frames:
        if frame.parentJoint == joint and frame.type != pin.FrameType.JOINT:
            frame.placement = turn.actInv(frame.placement)


def _couplings(joints: dict[str, Element], ignored: Ignored) -> Iterator[JointCoupling]:
    """Yield the coupling ``<joint> mimic`` for each moving joint that mimics another.

    Raises:
        ModelError: it mimics what is no moving joint, or has several coordinates.
    """
    moving = [name for name, joint in joints.items() if joint.get("type") in (*BOUNDED, "continuous")]
    for name, joint in joints.items():
        for mimic in joint.findall("mimic"):
            other = needed(mimic, "joint")
            if joint.get("type") == "fixed":
                ignored.add("<mimic> of a fixed joint", mimic)
                continue
            if other not in moving or other == name or name not in moving:
                allowed = ", ".join(key for key in moving if key != name) or "none"
                raise ModelError(
                    f"{where(joint)} mimics {other!r}, allowed: two moving joints; this one, and {allowed}"
                )
            ratio, offset = number(mimic, "multiplier", 1.0), number(mimic, "offset", 0.0)
            yield JointCoupling(f"{name} mimic", name, other, ratio, offset)


def _frictions(root: Element, links: dict[str, Element], ignored: Ignored) -> dict[str, float]:
    """Return the coefficients of friction ``<mu1>`` that Gazebo's extensions give to links."""
    frictions: dict[str, float] = {}
    for extension in root.findall("gazebo"):
        link = extension.get("reference", "")
        for element in extension.findall("mu1"):
            value = float((element.text or "").strip() or element.get("value", "nan"))
            if not value >= 0.0:
                raise ModelError(f"{where(element)} of link {link!r}: got {value:g}, allowed: a number >= 0")
            if link in links:
                frictions[link] = value
            else:
                ignored.add("<mu1> of what is not a link", element)
    return frictions


def _collisions(link: Element, friction: float | None) -> list[CollisionElement]:
    """Return the collision geometry of a link.

    Raises:
        ModelError: an element without exactly one shape, or with a size that is not positive.
    """
    name, elements = link.get("name", ""), []
    for index, collision in enumerate(link.findall("collision")):
        shapes = [shape for geometry in collision.findall("geometry") for shape in geometry]
        what = where(collision)
        if len(shapes) != 1:
            raise ModelError(f"{what}: got {len(shapes)} shapes in <geometry>, allowed: one")
        (shape,) = shapes
        file, size = "", tuple(value for key in SIZES.get(shape.tag, ()) for value in numbers(shape, key))
        if shape.tag == "mesh":
            file, size = needed(shape, "filename"), tuple(numbers(shape, "scale", (1.0, 1.0, 1.0)))
        for key in SIZES.get(shape.tag, ()):
            needed(shape, key)
        if shape.tag != "mesh" and min(size) <= 0.0:
            raise ModelError(f"<{shape.tag}> in {what}: got {list(size)}, allowed: positive lengths")
        placement = pose_of(collision.find("origin"))
        elements.append(
            CollisionElement(name, f"{name}_{index}", placement, shape.tag, size, file, friction=friction, where=what)
        )
    return elements


def pose_of(origin: Element | None) -> pin.SE3:
    """Return the placement that an <origin> gives."""
    if origin is None:
        return pin.SE3.Identity()
    rpy, xyz = (np.array(numbers(origin, key, (0.0, 0.0, 0.0))) for key in ("rpy", "xyz"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)

"""URDF, through Pinocchio's reader, with the mimicking joints that it leaves free."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from xml.etree import ElementTree

import pinocchio as pin

from constrained_sim.constraints import JointCoupling
from constrained_sim.descriptions.description import Description
from constrained_sim.exceptions import ModelError

INERTIAL = {
    "mass": {"value": 1},
    "origin": {"xyz": 3, "rpy": 3},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
}
"""Numbers in an ``<inertial>``: how many, by element and attribute."""


def read_urdf(xml: str, floating_base: bool = False) -> Description:
    """Read a URDF.

    Args:
        xml: the text.
        floating_base: put a free-flyer between the world and the root link.

    Raises:
        ModelError: not a URDF, an ``<inertial>`` with something else than numbers, or a ``<mimic>`` that cannot be.
    """
    try:
        _check_inertials(xml)
        text, _ = with_cylinders(xml)
        model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating_base else pin.buildModelFromXML(text)
    except (ElementTree.ParseError, RuntimeError, ValueError, IndexError) as error:
        raise ModelError(f"not a valid URDF: {error}") from error
    couplings = _mimics(xml, tuple(model.names)[1:])
    return Description(model, couplings, floating_base, tuple(coupling.joint for coupling in couplings), text=xml)


def _check_inertials(xml: str) -> None:
    """Refuse numbers that cannot be read: the reader leaves the whole ``<inertial>`` out, and the link has no mass.

    Raises:
        ModelError: names the link and the attribute.
    """
    for link in ElementTree.fromstring(xml).findall("link"):
        for tag, keys in INERTIAL.items():
            element = link.find(f"inertial/{tag}")
            if element is None:
                continue
            for key, count in keys.items():
                text = element.get(key, "0 0 0" if tag == "origin" else "")
                if not _are_numbers(text, count) or (key == "value" and float(text) < 0.0):
                    what = f"{key!r} in <{tag}> of the <inertial> of link {link.get('name')!r}"
                    allowed = "a finite number >= 0" if key == "value" else f"{count} finite number(s)"
                    raise ModelError(f"{what}: got {text!r}, allowed: {allowed}")


def _are_numbers(text: str, count: int) -> bool:
    """Return whether `text` is `count` finite numbers."""
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return False
    return len(numbers) == count and all(map(isfinite, numbers))


def with_cylinders(urdf: str) -> tuple[str, frozenset[str]]:
    """Return a URDF with cylinders in place of ``<capsule>``, which its reader drops, and the names of these."""
    if "<capsule" not in urdf:
        return urdf, frozenset()
    tree, capsules = ElementTree.fromstring(urdf), set()
    for link in tree.iter("link"):
        for index, capsule in enumerate(element.find("geometry/capsule") for element in link.findall("collision")):
            if capsule is not None:
                capsule.tag = "cylinder"
                capsules.add(f"{link.get('name')}_{index}")
    return ElementTree.tostring(tree, encoding="unicode"), frozenset(capsules)


def _mimics(xml: str, joints: Sequence[str]) -> tuple[JointCoupling, ...]:
    """Return a coupling ``<joint> mimic`` for each ``<mimic>``."""
    couplings = []
    for joint in ElementTree.fromstring(xml).iter("joint"):
        mimic, name = joint.find("mimic"), joint.get("name", "")
        if mimic is None or name not in joints:
            continue
        if mimic.get("joint") not in joints:
            raise ModelError(f"joint {name!r} mimics {mimic.get('joint')!r}, allowed: {', '.join(joints)}")
        try:
            ratio, offset = (float(mimic.get(key, default)) for key, default in (("multiplier", 1), ("offset", 0)))
            couplings.append(JointCoupling(f"{name} mimic", name, mimic.get("joint", ""), ratio, offset))
        except ValueError as error:
            raise ModelError(f"<mimic> of joint {name!r}: {error}") from error
    return tuple(couplings)

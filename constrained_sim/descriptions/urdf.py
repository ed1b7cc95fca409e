"""URDF, through Pinocchio's reader, with the mimicking joints that it leaves free."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import pinocchio as pin

from constrained_sim.constraints import JointCoupling
from constrained_sim.descriptions.description import Description
from constrained_sim.exceptions import ModelError


def read_urdf(xml: str, floating_base: bool = False) -> Description:
    """Read a URDF.

    Args:
        xml: the text.
        floating_base: put a free-flyer between the world and the root link.

    Raises:
        ModelError: not a URDF, or a ``<mimic>`` that cannot be.
    """
    try:
        text, _ = with_cylinders(xml)
        model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating_base else pin.buildModelFromXML(text)
    except (ElementTree.ParseError, RuntimeError, ValueError, IndexError) as error:
        raise ModelError(f"not a valid URDF: {error}") from error
    couplings = _mimics(xml, tuple(model.names)[1:])
    return Description(model, couplings, floating_base, tuple(coupling.joint for coupling in couplings), text=xml)


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

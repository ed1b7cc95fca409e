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
        model = pin.buildModelFromXML(xml, pin.JointModelFreeFlyer()) if floating_base else pin.buildModelFromXML(xml)
    except (RuntimeError, ValueError, IndexError) as error:
        raise ModelError(f"not a valid URDF: {error}") from error
    couplings = _mimics(xml, tuple(model.names)[1:])
    return Description(model, couplings, floating_base, tuple(coupling.joint for coupling in couplings), text=xml)


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

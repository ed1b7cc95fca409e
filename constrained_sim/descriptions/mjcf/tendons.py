"""Fixed tendons of an MJCF: linear combinations of joint positions."""

from __future__ import annotations

from collections.abc import Collection
from xml.etree.ElementTree import Element

from constrained_sim.descriptions.document import where
from constrained_sim.descriptions.mjcf.settings import Compiler, Defaults
from constrained_sim.descriptions.vocabulary import Ignored, not_negative, number
from constrained_sim.exceptions import ModelError

Tendons = dict[str, dict[str, float]]
"""Coefficients by joint, by tendon; none of a spatial tendon."""


def read_tendons(
    root: Element, compiler: Compiler, defaults: Defaults, joints: Collection[str], ignored: Ignored
) -> Tendons:
    """Return the tendons by name.

    Raises:
        ModelError: one with forces of its own, or of a joint that does not exist.
    """
    tendons: Tendons = {}
    for element in root.iterfind("tendon/*"):
        given = defaults.applied(element)
        for key in ("stiffness", "damping", "frictionloss", "armature"):
            if not_negative(given, key, 0.0):
                raise ModelError(f"{key!r} of {where(element)}: got {given.get(key)!r}, allowed: 0")
        if compiler.is_limited(given, "limited", "range"):
            ignored.add(f"range of <{element.tag}>", element, "the length of the tendon is not limited")
        ratios = tendons.setdefault(given.get("name") or f"tendon {len(tendons)}", {})
        for joint in element.findall("joint") if element.tag == "fixed" else ():
            name = joint.get("joint", "")
            if name not in joints:
                raise ModelError(
                    f"{where(joint)} in {where(element)}: got joint {name!r}, allowed: {', '.join(joints)}"
                )
            ratios[name] = ratios.get(name, 0.0) + number(joint, "coef", 1.0)
        if element.tag == "spatial":
            ignored.add("<spatial> in <tendon>", element, "nothing pulls along it")
    return tendons

"""Equalities of an MJCF as constraints that hold in the configuration of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.constraints import Constraint, FrameAnchor, JointCoupling, JointLimit, PointAnchor
from constrained_sim.descriptions.document import Tag, where
from constrained_sim.descriptions.mjcf.settings import Defaults, word_of
from constrained_sim.descriptions.mjcf.tendons import Tendons
from constrained_sim.descriptions.vocabulary import Ignored, numbers
from constrained_sim.exceptions import ModelError
from constrained_sim.robot import WORLD


@dataclass(frozen=True, eq=False)
class Scenery:
    """What equalities may name.

    Attributes:
        bodies: placements in the world in the configuration of the file, by name; the world among them.
        sites: body and placement in it, by name.
        joints: positions in that configuration [rad, m], of joints with one.
        tendons: coefficients by joint, by tendon.
    """

    bodies: Mapping[str, pin.SE3]
    sites: Mapping[str, tuple[str, pin.SE3]]
    joints: Mapping[str, float]
    tendons: Tendons


def read_equalities(root: Element, defaults: Defaults, scenery: Scenery, ignored: Ignored) -> tuple[Constraint, ...]:
    """Return a constraint for each active equality; `ignored` takes the others.

    Raises:
        ModelError: one that names what does not exist, or that is not linear.
    """
    found, names = [], set()
    for index, element in enumerate(root.iterfind("equality/*")):
        given = defaults.applied(element, kind="equality")
        name = given.get("name") or f"{given.tag} {index}"
        if name in names:
            raise ModelError(f"{where(element)}: got a name that another equality has, allowed: each once")
        names.add(name)
        if word_of(given, "active", ("false", "true")) == "true":
            found.append(READERS[given.tag](name, given, scenery))
        else:
            ignored.add("equality with active='false'", element, "declare it, and let `Simulator.enable` switch it")
    return tuple(found)


def _connect(name: str, element: Tag, scenery: Scenery) -> Constraint:
    if element.get("site1") is not None:
        (body1, one), (body2, two) = (_site(element, key, scenery) for key in ("site1", "site2"))
        return PointAnchor(name, body1, one.translation, body2, two.translation)
    if element.get("anchor") is None:
        raise ModelError(f"{where(element)}: got no anchor, allowed: a point of body1, or two sites")
    body1, body2 = _body(element, "body1", scenery), _body(element, "body2", scenery)
    anchor = numbers(element, "anchor")
    return PointAnchor(name, body1, anchor, body2, _relative(scenery, body1, body2).act(np.array(anchor)))


def _weld(name: str, element: Tag, scenery: Scenery) -> Constraint:
    """Return ``x1 + R1 p = x2 + R2 anchor`` and ``R1 turned = R2``, with p and turned of relpose."""
    if element.get("site1") is not None:
        (body1, one), (body2, two) = (_site(element, key, scenery) for key in ("site1", "site2"))
        return FrameAnchor(name, body1, one, body2, two)
    body1, body2 = _body(element, "body1", scenery), _body(element, "body2", scenery)
    x, y, z, *quaternion = numbers(element, "relpose", (0.0,) * 7)
    if any(quaternion):
        turned = pin.Quaternion(*quaternion).normalized().matrix()
        place = np.array([x, y, z]) - turned @ numbers(element, "anchor", (0.0, 0.0, 0.0))
        return FrameAnchor(name, body1, pin.SE3(turned, place), body2, pin.SE3.Identity())
    return FrameAnchor(name, body1, pin.SE3.Identity(), body2, _relative(scenery, body1, body2))


def _joint(name: str, element: Tag, scenery: Scenery) -> Constraint:
    """Return ``q1 - r1 = c0 + c1 (q2 - r2)``, r the positions in the configuration of the file."""
    joints = [element.get(key, "") for key in ("joint1", "joint2")]
    for joint in joints:
        if joint not in scenery.joints and (joint or joint == joints[0]):
            allowed = ", ".join(scenery.joints)
            raise ModelError(f"{where(element)}: got joint {joint!r}, allowed: {allowed}")
    offset, ratio = _line(element)
    start = scenery.joints[joints[0]] + offset
    if not joints[1]:
        return JointLimit(name, joints[0], start, start)
    return JointCoupling(name, joints[0], joints[1], ratio, start - ratio * scenery.joints[joints[1]])


def _line(element: Tag) -> tuple[float, float]:
    """Return constant and slope of a polynomial.

    Raises:
        ModelError: it has higher powers.
    """
    given = numbers(element, "polycoef", ())
    offset, ratio, *rest = (*given, *(0.0, 1.0, 0.0)[len(given) :])
    if any(rest):
        raise ModelError(f"'polycoef' of {where(element)}: got {element.get('polycoef')!r}, allowed: no higher powers")
    return offset, ratio


def _tendon(name: str, element: Tag, scenery: Scenery) -> Constraint:
    """Return what keeps the length of a fixed tendon over two joints: ``c1 (q1 - r1) + c2 (q2 - r2) = c0``."""
    tendon = element.get("tendon1", "")
    if tendon not in scenery.tendons or element.get("tendon2") is not None:
        allowed = ", ".join(scenery.tendons) or "none"
        raise ModelError(f"{where(element)}: got {tendon!r} or a second tendon, allowed: tendon1, one of {allowed}")
    ratios = {joint: ratio for joint, ratio in scenery.tendons[tendon].items() if ratio}
    if len(ratios) not in (1, 2) or not set(ratios) <= set(scenery.joints):
        allowed = "one or two, hinges or slides"
        raise ModelError(f"{where(element)}: got a tendon over {len(ratios)} joints, allowed: {allowed}")
    offset, _ = _line(element)
    (joint, ratio), *others = ratios.items()
    start = scenery.joints[joint] + offset / ratio
    if not others:
        return JointLimit(name, joint, start, start)
    other, slope = others[0][0], -others[0][1] / ratio
    return JointCoupling(name, joint, other, slope, start - slope * scenery.joints[other])


READERS = {"connect": _connect, "weld": _weld, "joint": _joint, "tendon": _tendon}


def _relative(scenery: Scenery, body1: str, body2: str) -> pin.SE3:
    """Return the placement of the first body in the second."""
    return scenery.bodies[body2].actInv(scenery.bodies[body1])


def _body(element: Element, key: str, scenery: Scenery) -> str:
    name = element.get(key, WORLD)
    if name not in scenery.bodies or (key == "body1" and element.get(key) is None):
        raise ModelError(f"{key} of {where(element)}: got {name!r}, allowed: {', '.join(scenery.bodies)}")
    return name


def _site(element: Element, key: str, scenery: Scenery) -> tuple[str, pin.SE3]:
    name = element.get(key, "")
    if name not in scenery.sites:
        raise ModelError(f"{key} of {where(element)}: got {name!r}, allowed: {', '.join(scenery.sites) or 'no site'}")
    return scenery.sites[name]

"""MJCF through Pinocchio's reader, with what that reader leaves out: gravity, springs, equalities, actuators."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.constraints import Constraint, FrameAnchor, JointCoupling, PointAnchor
from constrained_sim.descriptions.description import Description, Spring, read_text
from constrained_sim.exceptions import ModelError
from constrained_sim.robot import WORLD
from constrained_sim.validation import Array

EQUALITIES = ("connect", "weld", "joint")

TENDON_FORCES = ("stiffness", "damping", "frictionloss", "range", "armature")
"""What makes a tendon more than the path of an actuator."""

DISSIPATION = ("damping", "frictionloss")

NOT_UNDERSTOOD = (
    ("compiler", ("inertiagrouprange", "boundmass", "boundinertia", "balanceinertia", "settotalmass")),
    ("option", ("density", "viscosity", "wind")),
    (".//default/joint", ("pos", "ref", "springref", "springdamper")),
    (".//default/geom", ("mass",)),
    (".//default/tendon", TENDON_FORCES),
)
"""Settings that would make another robot of the file, by their elements."""

GENERATED = ("include", "frame", "replicate", "attach", "composite", "flexcomp")
"""Elements that stand for others; MuJoCo writes the file without them (``mj_saveLastXML``)."""

NUMBERS_OF_JOINTS = ("damping", "frictionloss", "armature", "stiffness", "ref", "springref")
"""Attributes of joints that are one number each; MuJoCo also knows polynomials."""

DISABLED = ("spring", "damper", "passive", "frictionloss", "limit", "equality")
"""Flags of what cannot be disabled for the whole robot."""


def read_mjcf(path_or_xml: str | os.PathLike[str]) -> Description:
    """Read an MJCF file, or the XML itself.

    Bodies, joints, armature, damping, friction and ranges are Pinocchio's reading; of a body with several joints, all
    but the last get a body of their own, without mass; what has no name gets one, such as ``joint 2``. ``<equality>``
    becomes anchors and couplings at the configuration of the file; joints that no actuator moves are passive, if there
    are actuators, whose gains are the controller's business. The pose of a free body in the file counts for the
    equalities only: its configuration is its pose in the world. What would be read as another robot is refused: several
    bodies in the world, elements that stand for others, other files, classes beside a ``childclass`` that they do not
    belong to, geoms without collision or of meshes where the mass of a body comes from its geoms, equalities of sites,
    tendons with forces of their own, compensated gravity, damped ball and free joints, references of joints beside
    equalities, one-sided ranges of forces, and the settings in ``NOT_UNDERSTOOD``.

    Raises:
        ModelError: not an MJCF, or something in it that is not understood.
    """
    xml = read_text(path_or_xml)
    try:
        root = ElementTree.fromstring(xml)
        _refuse_what_is_lost(root)
        file = None if xml is path_or_xml else Path(path_or_xml)
        is_changed = [_give_names(root), _put_first(root, "compiler"), _split_joints(root)]
        model = _read_model(root, file, any(is_changed))
        pose = _root_pose(root)
    except (ElementTree.ParseError, RuntimeError, ValueError, IndexError) as error:
        raise ModelError(f"not a valid MJCF: {error}") from error
    if root.tag != "mujoco":
        raise ModelError(f"not a valid MJCF: got the root <{root.tag}>, allowed: <mujoco>")
    option = root.find("option")
    gravity = (
        _numbers(option, "gravity", 3, "option") if option is not None and option.get("gravity") else (0, 0, -9.81)
    )
    if any(flag.get("gravity") == "disable" for flag in root.iterfind("option/flag")):
        gravity = (0, 0, 0)
    _correct_ranges(root, model)
    model.gravity = pin.Motion(np.array(gravity, dtype=float), np.zeros(3))
    free = model.njoints > 1 and model.joints[1].shortname() == "JointModelFreeFlyer"
    _place_root(model, pose, free)
    q = pin.neutral(model)
    if free:
        q[:7] = pin.SE3ToXYZQUAT(pose)
    constraints = tuple(
        _equality(element, model, q, index)
        for index, element in enumerate(root.iterfind("equality/*"))
        if element.get("active", "true") != "false"
    )
    return Description(model, constraints, free, _passive(root, model, free), _springs(root, model))


def _refuse_what_is_lost(root: Element) -> None:
    """Refuse what Pinocchio's reader, or ours, would leave out without a word.

    Raises:
        ModelError: names it.
    """
    bodies = [body.get("name", "") for body in root.iterfind("worldbody/body")]
    if len(bodies) > 1:
        raise ModelError(f"<worldbody>: got the bodies {', '.join(bodies)}, allowed: one, with the others inside it")
    for tag in GENERATED:
        if next(root.iter(tag), None) is not None:
            raise ModelError(f"got a <{tag}>, allowed: what it stands for, as MuJoCo's mj_saveLastXML writes it")
    for flag in root.iterfind("option/flag"):
        disabled = [key for key in DISABLED if flag.get(key) == "disable"]
        if disabled:
            raise ModelError(f"<flag>: got {', '.join(disabled)} disabled, allowed: gravity")
    _refuse_lost_masses(root)
    for path, keys in NOT_UNDERSTOOD:
        for element in root.iterfind(path):
            given = [key for key in keys if element.get(key, "0").strip() not in ("0", "false")]
            if given:
                raise ModelError(f"<{element.tag}> in {path!r}: got {', '.join(given)}, allowed: none")
    compilers = root.findall("compiler")
    if len(compilers) > 1 or any(letter in "XYZ" for one in compilers for letter in one.get("eulerseq", "")):
        raise ModelError("<compiler>: got several, or fixed axes in eulerseq, allowed: one, with moving axes x, y, z")
    for element in root.iter():
        axis = [float(word) for word in element.get("axisangle", "").split()][:3]
        if axis and abs(np.linalg.norm(axis) - 1.0) > 1e-6:
            raise ModelError(f"axisangle of <{element.tag}>: got the axis {axis}, allowed: one of unit length")
    _refuse_foreign_classes(root)
    by_default = list(root.iterfind(".//default/joint"))
    damped = any(joint.get(key) for joint in by_default for key in DISSIPATION)
    for joint in by_default:
        if joint.get("type") in ("ball", "free") and damped:
            raise ModelError(f"<joint> in <default>: got the type {joint.get('type')}, allowed: none beside damping")
    for element in root.iterfind("actuator/*"):
        added = [key for key in ("armature", "damping") if element.get(key) is not None]
        if added:
            raise ModelError(f"actuator {element.get('name')!r}: got {', '.join(added)}, allowed: that of its joint")
    for joint in root.iter("joint"):
        for key in NUMBERS_OF_JOINTS:
            if len(joint.get(key, "").split()) > 1:
                raise ModelError(f"{key} of joint {joint.get('name')!r}: got {joint.get(key)!r}, allowed: one number")
    for element in root.iterfind("equality/*"):
        if element.get("site1") is not None or element.get("site2") is not None:
            raise ModelError(f"equality {element.get('name') or element.tag!r}: got sites, allowed: body1 and body2")
    for tendon in root.iterfind("tendon/*"):
        acting = [key for key in TENDON_FORCES if any(float(value) for value in tendon.get(key, "0").split())]
        if acting:
            raise ModelError(f"tendon {tendon.get('name', tendon.tag)!r}: got {', '.join(acting)}, allowed: none")
    for body in root.iterfind("worldbody//body"):
        if float(body.get("gravcomp", 0.0)):
            raise ModelError(f"body {body.get('name')!r}: got gravcomp, allowed: none")
    for joint in root.iter("joint"):
        force = [float(word) for word in joint.get("actuatorfrcrange", "0 0").split()]
        if sum(force):
            raise ModelError(
                f"joint {joint.get('name')!r}: got the actuatorfrcrange {force}, allowed: the same both ways"
            )
    for joint in root.iterfind("worldbody//joint"):
        name, kind = joint.get("name", ""), joint.get("type", "hinge")
        if joint.get("springdamper") is not None:
            raise ModelError(f"joint {name!r}: got springdamper, allowed: stiffness and damping")
        if kind in ("ball", "free") and (damped or any(float(joint.get(key, 0.0)) for key in DISSIPATION)):
            raise ModelError(
                f"{kind} joint {name!r}: got damping or frictionloss, its own or by default, allowed: none"
            )
        if float(joint.get("ref", 0.0)) and root.find("equality/*") is not None:  # which holds where joints are at ref
            raise ModelError(f"joint {name!r}: got a ref beside <equality>, allowed: one of them")
        if float(joint.get("ref", 0.0)) and any(default.get("range") for default in by_default):
            raise ModelError(f"joint {name!r}: got a ref beside a range in <default>, allowed: a range of its own")


def _refuse_foreign_classes(root: Element) -> None:
    """Refuse classes of joints and geoms in a body with a childclass above which they are not: both would count.

    Raises:
        ModelError: names the class.
    """
    above = {
        inner.get("class"): outer.get("class") for outer in root.iter("default") for inner in outer.findall("default")
    }

    def look(body: Element, childclass: str | None) -> None:
        childclass = body.get("childclass", childclass)
        for element in (*body.findall("joint"), *body.findall("geom")):
            kind = element.get("class")
            while childclass is not None and kind not in (None, childclass):
                kind = above.get(kind)
                if kind is None:
                    raise ModelError(
                        f"<{element.tag}>: got class {element.get('class')!r} in a body of childclass {childclass!r}, "
                        "allowed: one defined within that"
                    )
        for child in body.findall("body"):
            look(child, childclass)

    for body in root.iterfind("worldbody/body"):
        look(body, None)


def _refuse_lost_masses(root: Element) -> None:
    """Refuse bodies whose mass comes from geoms that Pinocchio's reader weighs otherwise, or not at all.

    Raises:
        ModelError: names the body.
    """
    hidden = any(_is_hidden(geom) for geom in root.iterfind(".//default/geom"))
    by_geoms = any(compiler.get("inertiafromgeom") == "true" for compiler in root.iterfind("compiler"))
    for body in root.iterfind("worldbody//body"):
        if body.find("inertial") is not None and not by_geoms:
            continue
        name = body.get("name", "")
        if any(geom.get("mesh") is not None for geom in body.iterfind("geom")):
            raise ModelError(f"body {name!r}: got a mesh, allowed: an <inertial> beside it")
        if body.find("geom") is not None and (hidden or any(map(_is_hidden, body.iterfind("geom")))):
            raise ModelError(f"body {name!r}: got geoms without collision, allowed: an <inertial> beside them")


def _is_hidden(geom: Element) -> bool:
    """Return whether a geom takes no part in collisions."""
    return geom.get("contype") == "0" and geom.get("conaffinity") == "0"


def _give_names(root: Element) -> bool:
    """Give bodies and joints without a name one, or Pinocchio's reader loses some; return whether there were any."""
    given = False
    for tag in ("body", "joint"):
        elements = list(root.iterfind(f"worldbody//{tag}"))
        taken = {element.get("name") for element in elements}
        for number, element in enumerate(elements):
            if not element.get("name"):
                name = f"{tag} {number}"
                element.set("name", name if name not in taken else f"{name} without name")
                given = True
    return given


def _put_first(root: Element, tag: str) -> bool:
    """Put the settings `tag` before all that they are for; return whether they were not there."""
    found = root.findall(tag)
    if not found or root[0] is found[0]:
        return False
    for element in found:
        root.remove(element)
        root.insert(0, element)
    return True


def _split_joints(root: Element) -> bool:
    """Give all joints of a body but the last a body of their own around it; return whether there were any."""
    split = False
    for body in list(root.iterfind("worldbody//body")):
        joints, name = body.findall("joint"), body.get("name", "")
        if len(joints) < 2:
            continue
        split = True
        content = [child for child in body if child not in joints]
        for child in list(body):
            body.remove(child)
        inner = body
        for number, joint in enumerate(joints):
            if number:
                inner = ElementTree.SubElement(inner, "body")
            inner.set("name", f"{name}/{number}")
            inner.append(joint)
        inner.set("name", name)
        inner.extend(content)
    return split


def _read_model(root: Element, file: Path | None, is_changed: bool) -> pin.Model:
    """Return Pinocchio's reading of a file, or of the XML that was given, or that was changed."""
    if file is not None and not is_changed:
        return pin.buildModelFromMJCF(str(file))
    if file is not None:  # assets are where they were
        if root.find("compiler") is None:
            root.insert(0, Element("compiler"))
        for compiler, key in itertools.product(root.iterfind("compiler"), ("meshdir", "texturedir", "assetdir")):
            compiler.set(key, str(file.resolve().parent / compiler.get(key, "")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(ElementTree.tostring(root, encoding="unicode"), encoding="utf-8")
        return pin.buildModelFromMJCF(str(path))


def _root_pose(root: Element) -> pin.SE3:
    """Return the pose of the only body in the world, as Pinocchio reads that of a body on a hinge."""
    probe, body = Element("mujoco"), root.find("worldbody/body")
    probe.extend(root.findall("compiler"))
    hinged = ElementTree.SubElement(ElementTree.SubElement(probe, "worldbody"), "body")
    for key in ("pos", "quat", "euler", "axisangle", "xyaxes", "zaxis"):
        if body is not None and body.get(key) is not None:
            hinged.set(key, str(body.get(key)))
    hinged.set("name", "root")
    ElementTree.SubElement(hinged, "joint", type="hinge", axis="0 0 1")
    ElementTree.SubElement(hinged, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")
    return pin.SE3(_read_model(probe, None, True).jointPlacements[1])


def _place_root(model: pin.Model, pose: pin.SE3, free: bool) -> None:
    """Put a body that is fixed in the world at its `pose`; of a free one, make the configuration its pose.

    Pinocchio's reader leaves the first at the origin, and moves the second by its pose once more.
    """
    if free:
        model.jointPlacements[1] = pin.SE3.Identity()
        return
    at_world = [i for i in range(1, len(model.frames)) if model.frames[i].parentJoint == 0]
    if any(model.frames[i].type == pin.FrameType.BODY for i in at_world):
        for joint in range(1, model.njoints):
            if model.parents[joint] == 0:
                model.jointPlacements[joint] = pose * model.jointPlacements[joint]
        for i in at_world:
            model.frames[i].placement = pose * model.frames[i].placement


def _equality(element: Element, model: pin.Model, q: Array, index: int) -> Constraint:
    """Return the constraint of one element of ``<equality>``, which holds at the configuration `q` of the file."""
    name = element.get("name") or f"{element.tag} {index}"
    if element.tag not in EQUALITIES:
        raise ModelError(f"equality {name!r}: got <{element.tag}>, allowed: {', '.join(EQUALITIES)}")
    if element.tag == "joint":
        return _coupling(element, model, name)
    body1, body2 = _body(element, "body1", model), _body(element, "body2", model)
    relative = _placement(model, q, body2).actInv(_placement(model, q, body1))
    if element.tag == "connect":
        anchor = _numbers(element, "anchor", 3, f"equality {name!r}")
        return PointAnchor(name, body1, anchor, body2, relative.act(np.array(anchor)))
    if element.get("relpose") is not None:
        x, y, z, *quaternion = _numbers(element, "relpose", 7, f"equality {name!r}")
        if any(quaternion):
            turned = pin.Quaternion(*quaternion).normalized().matrix()
            return FrameAnchor(name, body1, pin.SE3(turned, np.array([x, y, z])), body2, pin.SE3.Identity())
    return FrameAnchor(name, body1, pin.SE3.Identity(), body2, relative)


def _coupling(element: Element, model: pin.Model, name: str) -> JointCoupling:
    """Return ``q1 = c0 + c1 q2``."""
    joints = [element.get("joint1"), element.get("joint2")]
    for joint in joints:
        if joint not in list(model.names)[1:]:
            raise ModelError(f"equality {name!r}: got joint {joint!r}, allowed: {', '.join(list(model.names)[1:])}")
    coefficients = _numbers(element, "polycoef", 5, f"equality {name!r}", (0.0, 1.0, 0.0, 0.0, 0.0))
    if any(coefficients[2:]):
        raise ModelError(f"polycoef of equality {name!r}: got {coefficients}, allowed: no powers above the first")
    return JointCoupling(name, str(joints[0]), str(joints[1]), coefficients[1], coefficients[0])


def _passive(root: Element, model: pin.Model, free: bool) -> tuple[str, ...]:
    driven = {element.get("joint") for element in root.iterfind("actuator/*")} - {None}
    return tuple(name for name in list(model.names)[2 if free else 1 :] if name not in driven) if driven else ()


def _correct_ranges(root: Element, model: pin.Model) -> None:
    """Make limits of positions what the file says: lengths are no angles, ``ref`` shifts nothing, some do not hold.

    Raises:
        ModelError: limits that hold only where the file says so a second time.
    """
    if any(compiler.get("autolimits") == "false" for compiler in root.iterfind("compiler")):
        raise ModelError("<compiler>: got autolimits='false', allowed: 'true'")
    if any(joint.get("limited") == "false" for joint in root.iterfind(".//default/joint")):
        raise ModelError("<joint> in '<default>': got limited='false', allowed: at the joints themselves")
    angle = _angle(root)
    for joint in root.iterfind("worldbody//joint"):
        name, ref = joint.get("name", ""), float(joint.get("ref", 0.0))
        if not _has_one_coordinate(model, name):
            continue
        place, unit = model.joints[model.getJointId(name)].idx_q, _unit(model, name, angle)
        for limits, free in ((model.lowerPositionLimit, -np.inf), (model.upperPositionLimit, np.inf)):
            limits[place] = free if joint.get("limited") == "false" else unit / angle * (limits[place] + unit * ref)


def _angle(root: Element) -> float:
    """Return the unit of angles in the file [rad]."""
    compiler = root.find("compiler")
    return np.pi / 180.0 if compiler is None or compiler.get("angle", "degree") == "degree" else 1.0


def _has_one_coordinate(model: pin.Model, name: str) -> bool:
    return bool(model.existJointName(name) and model.joints[model.getJointId(name)].nq == 1)


def _unit(model: pin.Model, name: str, angle: float) -> float:
    """Return the unit [rad, m] of the coordinate of a joint, where that of angles is `angle` [rad]."""
    return 1.0 if model.joints[model.getJointId(name)].shortname().startswith("JointModelP") else angle


def _springs(root: Element, model: pin.Model) -> dict[str, Spring]:
    if any(joint.get("stiffness") for joint in root.iterfind(".//default/joint")):
        raise ModelError("stiffness of joints: got one in <default>, allowed: at the joints themselves")
    springs, angle = {}, _angle(root)
    for joint in root.iterfind("worldbody//joint"):
        stiffness, name = float(joint.get("stiffness", 0.0)), joint.get("name", "")
        if stiffness:
            if not _has_one_coordinate(model, name):
                raise ModelError(f"spring of joint {name!r}: allowed: a joint with a name and one coordinate")
            unit = _unit(model, name, angle)
            springs[name] = Spring(stiffness, unit * float(joint.get("springref", 0.0)))
    return springs


def _body(element: Element, key: str, model: pin.Model) -> str:
    name = element.get(key, WORLD)
    bodies = [frame.name for frame in model.frames if frame.type == pin.FrameType.BODY]
    if name != WORLD and name not in bodies:
        raise ModelError(f"{key} of <{element.tag}>: got {name!r}, allowed: {', '.join(bodies)}")
    return name


def _placement(model: pin.Model, q: Array, body: str) -> pin.SE3:
    """Return the placement of a body at the configuration `q`."""
    if body == WORLD:
        return pin.SE3.Identity()
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return pin.SE3(data.oMf[model.getFrameId(body, pin.FrameType.BODY)])


def _numbers(
    element: Element, key: str, count: int, what: str, default: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """Return the numbers of an attribute.

    Raises:
        ModelError: it is missing without a default, or does not hold `count` finite numbers.
    """
    text = element.get(key)
    if text is None and default is not None:
        return default
    try:
        values = tuple(float(word) for word in (text or "").split())
    except ValueError:
        values = ()
    if len(values) != count or not np.isfinite(values).all():
        raise ModelError(f"{key} of {what}: got {text!r}, allowed: {count} finite numbers")
    return values

"""The subset of SDFormat that legged robots with closed loops need: one model, links, joints, absolute poses.

Link poses are relative to the model, which stands at its own pose; joint poses to the child link; axes to the joint
frame, or to the model where ``use_parent_model_frame`` (SDFormat 1.5 and 1.6) or ``expressed_in="__model__"`` says so.
The tree takes the first joint that names a link as its child, in the order of the file; every later one closes a loop
and becomes an anchor. The configuration of the file is the neutral one.
"""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin
from scipy.linalg import block_diag, null_space

from constrained_sim.constraints import FrameAnchor, PointAnchor
from constrained_sim.descriptions.description import Description, Spring
from constrained_sim.dynamics import Dynamics
from constrained_sim.exceptions import ModelError
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array

MODEL = "__model__"
JOINT_TYPES = ("fixed", "revolute", "prismatic", "ball")
NO_LIMIT = 1e10

UNIT_INERTIA = {"xx": 1.0, "yy": 1.0, "zz": 1.0, "xy": 0.0, "xz": 0.0, "yz": 0.0}
"""What SDFormat says of a link that does not [kg m^2], beside a mass of 1 kg."""

NOT_UNDERSTOOD = ("include", "joint/axis/mimic", "link/gravity", "static")
"""Elements of a model that would make another robot of it."""

PLANE = 1e-6
"""Motion of a loop's ends in a direction, relative to the largest, that is rounding of the file."""


def read_sdf(xml: str, floating_base: bool = False) -> Description:
    """Read the one model of an SDF.

    Args:
        xml: the text.
        floating_base: put a free-flyer between the world and the root link; else the root is welded to the world.

    Raises:
        ModelError: not an SDF with one model, a joint type or pose that is not understood, links that do not exist or
            are not connected, or a value that is no number.
    """
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ModelError(f"not a valid SDF: {error}") from error
    models = list(root.iter("model"))
    if root.tag != "sdf" or len(models) != 1:
        raise ModelError(f"not an SDF with one model: root <{root.tag}>, {len(models)} models")
    for path in NOT_UNDERSTOOD:
        for element in models[0].iterfind(path):
            usual = {"static": ("false", "0"), "gravity": ("true", "1")}.get(element.tag, ())
            if (element.text or "").strip() not in usual:
                raise ModelError(f"the SDF: got <{element.tag}>, allowed: {' or '.join(usual) or 'none'}")
    return _Builder(models[0]).build(floating_base)


class _Joint:
    """One joint of the file."""

    def __init__(self, element: Element, links: dict[str, pin.SE3], model: pin.SE3) -> None:
        self.name = element.get("name", "")
        self.type = element.get("type", "")
        if self.type not in JOINT_TYPES:
            raise ModelError(f"joint {self.name!r}: got type {self.type!r}, allowed: {', '.join(JOINT_TYPES)}")
        self.parent, self.child = (_text(element, end, self.name) for end in ("parent", "child"))
        for link in (self.parent, self.child):
            if link not in links and link != WORLD:
                raise ModelError(f"joint {self.name!r}: got link {link!r}, allowed: {', '.join(links)}")
        if self.child == WORLD:
            raise ModelError(f"joint {self.name!r}: got the world as its child, allowed: a link")
        self.placement = links[self.child] * _pose(element, f"joint {self.name!r}")
        self._model = model
        self.element = element

    @property
    def axis(self) -> Array:
        """(3,) unit vector in the joint frame."""
        axis = np.array(_numbers(self.element, "axis/xyz", 3, f"joint {self.name!r}"))
        length = np.linalg.norm(axis)
        if length < 1e-9:
            raise ModelError(f"axis of joint {self.name!r}: got {axis.tolist()}, allowed: a vector of non-zero length")
        frame = next(self.element.iterfind("axis/xyz")).get("expressed_in", "")
        if frame not in ("", MODEL):
            raise ModelError(f"axis of joint {self.name!r}: got one expressed in {frame!r}, allowed: {MODEL!r} or none")
        in_model = self.element.findtext("axis/use_parent_model_frame", "0").strip() in ("1", "true") or frame
        return (self.placement.rotation.T @ self._model.rotation @ axis if in_model else axis) / length

    def value(self, path: str, default: float) -> float:
        """Return a number of the axis, such as ``limit/lower``."""
        return _numbers(self.element, f"axis/{path}", 1, f"joint {self.name!r}", (default,))[0]


class _Builder:
    """Puts the model together, parents before children."""

    def __init__(self, element: Element) -> None:
        self.links = {link.get("name", ""): link for link in element.findall("link")}
        if len(self.links) != len(element.findall("link")) or not self.links:
            raise ModelError("links of the SDF: none, or two of one name; allowed: at least one, each named once")
        model = _pose(element, "the model")
        self.poses = {name: model * _pose(link, f"link {name!r}") for name, link in self.links.items()}
        self.joints = [_Joint(joint, self.poses, model) for joint in element.findall("joint")]
        names = [joint.name for joint in self.joints]
        if len(set(names)) != len(names):
            raise ModelError(f"joints of the SDF: {max(names, key=names.count)!r} is there twice, allowed: once")
        self.model, self.springs = pin.Model(), dict[str, Spring]()
        self._at: dict[str, tuple[int, pin.SE3]] = {WORLD: (0, pin.SE3.Identity())}
        self._frames = {WORLD: 0}

    def build(self, floating_base: bool) -> Description:
        """Return the description."""
        first = {joint.child: joint for joint in reversed(self.joints)}
        roots = [name for name in self.links if name not in first]
        if len(roots) > 1 or (not roots and not any(joint.parent == WORLD for joint in first.values())):
            raise ModelError(f"links without a parent: {', '.join(roots) or 'none'}; allowed: one root link")
        tree = [joint for joint in self.joints if first[joint.child] is joint]
        for root in roots:
            self._add_root(root, floating_base)
        for base in (WORLD, *roots):
            self._add_children(base, tree)
        lost = [joint.name for joint in tree if joint.child not in self._at]
        if lost:
            raise ModelError(f"joints in a circle without a root: {', '.join(lost)}")
        loops = [joint for joint in self.joints if first[joint.child] is not joint]
        robot = Robot(self.model, ())
        constraints = tuple(_without_planes(robot, anchor) for joint in loops for anchor in self._anchors(joint))
        return Description(self.model, constraints, floating_base, springs=self.springs)

    def _add_root(self, link: str, floating_base: bool) -> None:
        pose = self.poses[link]
        if floating_base:
            index = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
            self._at[link] = index, pin.SE3.Identity()
        else:
            self._at[link] = 0, pose
        self._add_body(link, WORLD)

    def _add_children(self, link: str, tree: list[_Joint]) -> None:
        """Add what hangs on `link`, branch by branch: Pinocchio's algorithms need the joints of a branch in a row."""
        for joint in tree:
            if joint.parent == link:
                self._add_joint(joint)
                self._add_children(joint.child, tree)

    def _add_joint(self, joint: _Joint) -> None:
        parent, in_parent = self._at[joint.parent]
        from_parent = self.poses[joint.parent].inverse() if joint.parent != WORLD else pin.SE3.Identity()
        placement = in_parent * from_parent * joint.placement
        in_joint = joint.placement.actInv(self.poses[joint.child])
        if joint.type == "fixed":
            self._at[joint.child] = parent, placement * in_joint
        else:
            index = self.model.addJoint(parent, _joint_model(joint), placement, joint.name)
            self._at[joint.child] = index, in_joint
            if joint.type != "ball":
                self._set_properties(joint, self.model.joints[index])
        self._add_body(joint.child, joint.parent)

    def _add_body(self, link: str, parent: str) -> None:
        """Add a link that hangs on the link `parent`; its frame keeps its own inertia, as Pinocchio's readers do."""
        joint, placement = self._at[link]
        inertial, what = self.links[link].find("inertial"), f"inertial of link {link!r}"
        if inertial is None:
            inertial = Element("inertial")
        if inertial.get("auto", "false") in ("1", "true"):
            raise ModelError(f"{what}: got one to be found from the collisions, allowed: numbers")
        mass = _numbers(inertial, "mass", 1, what, (1.0,))[0]
        xx, yy, zz, xy, xz, yz = (
            _numbers(inertial, f"inertia/i{axes}", 1, what, (default,))[0] for axes, default in UNIT_INERTIA.items()
        )
        inertia = pin.Inertia(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        self.model.appendBodyToJoint(joint, inertia, placement * _pose(inertial, what))
        own = _pose(inertial, what).act(inertia)
        frame = pin.Frame(link, joint, self._frames[parent], placement, pin.FrameType.BODY, own)
        self._frames[link] = self.model.addFrame(frame, False)

    def _set_properties(self, joint: _Joint, added: pin.JointModel) -> None:
        model, q, v = self.model, added.idx_q, added.idx_v
        for attribute, path, index, sign, default in (
            ("lowerPositionLimit", "limit/lower", q, 1.0, -np.inf),
            ("upperPositionLimit", "limit/upper", q, 1.0, np.inf),
            ("upperEffortLimit", "limit/effort", v, 1.0, np.inf),
            ("lowerEffortLimit", "limit/effort", v, -1.0, np.inf),
            ("upperVelocityLimit", "limit/velocity", v, 1.0, np.inf),
            ("lowerVelocityLimit", "limit/velocity", v, -1.0, np.inf),
            ("damping", "dynamics/damping", v, 1.0, 0.0),
            ("upperDryFrictionLimit", "dynamics/friction", v, 1.0, 0.0),
            ("lowerDryFrictionLimit", "dynamics/friction", v, -1.0, 0.0),
        ):
            value = joint.value(path, default)
            absent = attribute[5:].startswith(("Effort", "Velocity")) and value < 0.0
            values = np.array(getattr(model, attribute))
            values[index] = sign * (np.inf * np.sign(value) if abs(value) >= NO_LIMIT else np.inf if absent else value)
            setattr(model, attribute, values)
        stiffness = joint.value("dynamics/spring_stiffness", 0.0)
        if stiffness:
            self.springs[joint.name] = Spring(stiffness, joint.value("dynamics/spring_reference", 0.0))

    def _anchors(self, joint: _Joint) -> list[PointAnchor | FrameAnchor]:
        """Return what holds a link on its second parent: a point, two points of an axis, or a frame."""
        in_child = self.poses[joint.child].actInv(joint.placement)
        parent = self.poses[joint.parent] if joint.parent != WORLD else pin.SE3.Identity()
        in_parent = parent.actInv(joint.placement)
        if joint.type == "fixed":
            return [FrameAnchor(joint.name, joint.child, in_child, joint.parent, in_parent)]
        if joint.type == "prismatic":
            axes = block_diag(null_space(joint.axis[None]).T, np.eye(3))
            return [FrameAnchor(joint.name, joint.child, in_child, joint.parent, in_parent, axes)]
        points = {joint.name: np.zeros(3)}
        if joint.type == "revolute":
            points[f"{joint.name} axis"] = joint.axis
        return [
            PointAnchor(name, joint.child, in_child.act(point), joint.parent, in_parent.act(point))
            for name, point in points.items()
        ]


def _without_planes(robot: Robot, anchor: PointAnchor | FrameAnchor) -> PointAnchor | FrameAnchor:
    """Return `anchor` without the directions in which its frames cannot move apart, as out of the plane of a four-bar.

    The joints of the tree hold these directions already. Poses in files are rounded, so that a row for one would not be
    redundant but contradict the motion. They are those in which nothing moves at several configurations.
    """
    if isinstance(anchor, FrameAnchor) and anchor.axes is None:
        return anchor
    rng, dynamics = np.random.default_rng(0), Dynamics(robot)
    moves = []
    for _ in range(8):
        dynamics.update_kinematics(pin.integrate(robot.model, robot.neutral(), rng.uniform(-0.5, 0.5, robot.nv)))
        moves.append(anchor.bind(robot, robot.neutral()).jacobian(dynamics))
    rows = np.hstack(moves)
    largest = float(np.linalg.norm(rows, 2))
    if isinstance(anchor, PointAnchor):
        held = _moving(rows, largest)
        return anchor if len(held) == 3 else replace(anchor, normals=held)
    linear, angular = rows[:-3], rows[-3:]
    return replace(anchor, axes=block_diag(_moving(linear, largest), _moving(angular, largest)) @ anchor.axes)


def _moving(rows: Array, largest: float) -> Array:
    """Return the combinations of `rows` that are not zero, relative to the `largest` one."""
    directions, sizes, _ = np.linalg.svd(rows)
    return directions.T[sizes > PLANE * largest]


def _joint_model(joint: _Joint) -> pin.JointModel:
    if joint.type == "ball":
        return pin.JointModelSpherical()
    kind = pin.JointModelRevoluteUnaligned if joint.type == "revolute" else pin.JointModelPrismaticUnaligned
    return kind(joint.axis)


def _text(element: Element, path: str, what: str) -> str:
    text = (element.findtext(path) or "").strip()
    if not text:
        raise ModelError(f"joint {what!r}: <{path}> is missing")
    return text


def _numbers(
    element: Element, path: str, count: int, what: str, default: tuple[float, ...] | None = None
) -> list[float]:
    """Return the numbers of an element.

    Raises:
        ModelError: it is missing without a default, or does not hold `count` finite numbers.
    """
    text = element.findtext(path)
    if text is None and default is not None:
        return list(default)
    try:
        values = [float(word) for word in (text or "").split()]
    except ValueError:
        values = []
    if len(values) != count or np.isnan(values).any():
        raise ModelError(f"<{path}> of {what}: got {text!r}, allowed: {count} number(s)")
    return values


def _pose(element: Element, what: str) -> pin.SE3:
    """Return the placement that ``<pose>`` gives: x, y, z, roll, pitch, yaw."""
    pose = element.find("pose")
    if pose is None:
        return pin.SE3.Identity()
    frame = pose.get("relative_to") or pose.get("frame")
    if frame:
        raise ModelError(f"pose of {what}: got one relative to {frame!r}, allowed: the default frame")
    x, y, z, *angles = _numbers(element, "pose", 6, what)
    if pose.get("degrees", "false") in ("1", "true"):
        angles = [np.radians(angle) for angle in angles]
    return pin.SE3(pin.rpy.rpyToMatrix(*angles), np.array([x, y, z]))

"""SDFormat: one model of links, joints and frames, with its closed loops and its collision geometry.

The tree takes the first joint that names a link as its child, in the order of the file; every later one closes a loop
and becomes an anchor. The configuration of the file is the neutral one.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

import pinocchio as pin

from constrained_sim.constraints import Constraint, JointCoupling
from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.descriptions.description import LONGEST_CHAIN, Description, Spring, check_size
from constrained_sim.descriptions.document import Tag, parse_xml, where
from constrained_sim.descriptions.inertia import body_inertia, inertia_matrix
from constrained_sim.descriptions.sdf.frames import Frames
from constrained_sim.descriptions.sdf.joints import Joint, value
from constrained_sim.descriptions.sdf.loops import anchors_of, without_planes
from constrained_sim.descriptions.sdf.vocabulary import SDF
from constrained_sim.descriptions.vocabulary import Ignored
from constrained_sim.exceptions import ModelError
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array

SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}

UNIT_INERTIA = {"xx": 1.0, "yy": 1.0, "zz": 1.0, "xy": 0.0, "xz": 0.0, "yz": 0.0}
"""What SDFormat says of a link that does not [kg m^2], beside a mass of 1 kg."""


def read_sdf(xml: str, floating_base: bool = False) -> Description:
    """Read the one model of an SDF.

    Args:
        xml: the text.
        floating_base: put a free-flyer between the world and the root link; else the root is welded to the world.

    Raises:
        ModelError: not an SDF with one model, or something in it that is not supported; the message names it and its
            line.
    """
    root, ignored = parse_xml(xml, "SDF"), Ignored()
    if root.tag != "sdf":
        raise ModelError(f"not an SDF with one model: got the root <{root.tag}>, allowed: <sdf>")
    SDF.check(root, ignored)
    models = [*root.findall("model"), *root.findall("world/model")]
    if len(models) != 1:
        raise ModelError(f"not an SDF with one model: got {len(models)} models, allowed: one")
    return _Builder(models[0], ignored).build(floating_base)


class _Builder:
    """Puts the model together, parents before children."""

    def __init__(self, element: Element, ignored: Ignored) -> None:
        self._ignored = ignored
        self.frames = Frames(element)
        self.links = self.frames.links
        if not self.links:
            raise ModelError(f"{where(element)}: got no <link>, allowed: at least one")
        check_size("SDF", len(self.links), sum(joint.get("type") != "fixed" for joint in element.findall("joint")))
        self.poses = {name: self.frames.pose(name, f"pose of {where(link)}") for name, link in self.links.items()}
        self.joints = [Joint(joint, self.frames) for joint in element.findall("joint")]
        self.model, self.springs = pin.Model(), dict[str, Spring]()
        self.model.name = element.get("name", "")
        self._at: dict[str, tuple[int, pin.SE3]] = {WORLD: (0, pin.SE3.Identity())}
        self._frame_ids = {WORLD: 0}
        self._free_poses: dict[str, Array] = {}

    def build(self, floating_base: bool) -> Description:
        """Return the description."""
        first = {joint.child: joint for joint in reversed(self.joints)}
        roots = [name for name in self.links if name not in first]
        if len(roots) > 1 or (not roots and not any(joint.parent == WORLD for joint in first.values())):
            raise ModelError(f"links without a parent: got {', '.join(roots) or 'none'}; allowed: one root link")
        tree = [joint for joint in self.joints if first[joint.child] is joint]
        for root in roots:
            self._add_root(root, floating_base)
        self._add_branches([WORLD, *roots], tree)
        lost = [joint.name for joint in tree if joint.child not in self._at]
        if lost:
            raise ModelError(f"joints in a circle without a root: {', '.join(lost)}")
        couplings = tuple(self._coupling(joint) for joint in tree if joint.mimic is not None)
        loops = [joint for joint in self.joints if first[joint.child] is not joint]
        return Description(
            self.model,
            (*couplings, *self._closing(loops)),
            floating_base,
            tuple(coupling.joint for coupling in couplings),
            self.springs,
            collisions=tuple(
                element for link in self._frame_ids if link != WORLD for element in self._collisions(link)
            ),
            ignored=self._ignored.lines(),
            free_poses=self._free_poses,
        )

    def _closing(self, loops: list[Joint]) -> list[Constraint]:
        """Return what holds the joints that close `loops`; of a joint that holds nothing more, it is reported."""
        robot, closing = Robot(self.model, ()), list[Constraint]()
        for joint in loops:
            joint.report_unused(self._ignored)
            anchors = (without_planes(robot, anchor) for anchor in anchors_of(joint, self.poses))
            held = [anchor for anchor in anchors if anchor is not None]
            if not held:
                why = "other joints hold its links in all its directions"
                self._ignored.report(f"left out: {where(joint.element)}, {why}")
            closing += held
        return closing

    def _add_root(self, link: str, floating_base: bool) -> None:
        if floating_base:
            index = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
            self._free_poses["root_joint"] = pin.SE3ToXYZQUAT(self.poses[link])
            self._at[link] = index, pin.SE3.Identity()
        else:
            self._at[link] = 0, self.poses[link]
        self._add_body(link, WORLD)

    def _add_branches(self, bases: list[str], tree: list[Joint]) -> None:
        """Add what hangs on `bases`, branch by branch: Pinocchio's algorithms need the joints of a branch in a row."""
        children: dict[str, list[Joint]] = {}
        for joint in tree:
            children.setdefault(joint.parent, []).append(joint)
        waiting = [(joint, 1) for base in reversed(bases) for joint in reversed(children.get(base, []))]
        while waiting:
            joint, depth = waiting.pop()
            if depth > LONGEST_CHAIN:
                raise ModelError(
                    f"{where(joint.element)}: got more than {LONGEST_CHAIN} links in a row, allowed: so many"
                )
            self._add_joint(joint)
            waiting += [(inner, depth + 1) for inner in reversed(children.get(joint.child, []))]

    def _add_joint(self, joint: Joint) -> None:
        if not joint.turns_or_slides and joint.element.find("axis") is not None:
            self._ignored.add(f"<axis> of {joint.type} joints", joint.element)
        parent, in_parent = self._at[joint.parent]
        from_parent = self.poses[joint.parent].inverse() if joint.parent != WORLD else pin.SE3.Identity()
        placement = in_parent * from_parent * joint.placement
        in_joint = joint.placement.actInv(self.poses[joint.child])
        if joint.type == "fixed":
            self._at[joint.child] = parent, placement * in_joint
        else:
            index = self.model.addJoint(parent, joint.pinocchio_model(), placement, joint.name)
            self._at[joint.child] = index, in_joint
            if joint.type != "ball":
                joint.set_properties(self.model, self.model.joints[index], self._ignored)
                spring = joint.spring
                self.springs |= {joint.name: spring} if spring.stiffness else {}
        self._add_body(joint.child, joint.parent)

    def _add_body(self, link: str, parent: str) -> None:
        """Add a link that hangs on the link `parent`; its frame keeps its own inertia, as Pinocchio's readers do."""
        joint, placement = self._at[link]
        inertial = self.links[link].find("inertial")
        stated = Tag("inertial") if inertial is None else inertial
        moments = (value(stated, f"inertia/i{axes}", default) for axes, default in UNIT_INERTIA.items())
        what = where(stated)
        own = body_inertia(what, value(stated, "mass", 1.0), inertia_matrix(*moments), self.frames.inside(stated, link))
        self.model.appendBodyToJoint(joint, own, placement)
        frame = pin.Frame(link, joint, self._frame_ids[parent], placement, pin.FrameType.BODY, own)
        self._frame_ids[link] = self.model.addFrame(frame, False)

    def _coupling(self, joint: Joint) -> JointCoupling:
        """Return the coupling ``<joint> mimic``: ``q = multiplier (q_leader - reference) + offset``."""
        mimic = joint.mimic
        leaders = [other.name for other in self.joints if other.name != joint.name and other.turns_or_slides]
        leader = "" if mimic is None else mimic.get("joint", "")
        if mimic is None or leader not in leaders or mimic.get("axis", "axis") != "axis":
            raise ModelError(
                f"<mimic> of {where(joint.element)}: got {leader!r}, allowed: {', '.join(leaders) or 'none'}"
            )
        ratio, reference = value(mimic, "multiplier", 1.0), value(mimic, "reference", 0.0)
        return JointCoupling(
            f"{joint.name} mimic", joint.name, leader, ratio, value(mimic, "offset", 0.0) - ratio * reference
        )

    def _collisions(self, link: str) -> list[CollisionElement]:
        """Return the collision geometry of a link.

        Raises:
            ModelError: an element without exactly one shape, or with a size that is not positive.
        """
        elements: list[CollisionElement] = []
        for collision in self.links[link].findall("collision"):
            shapes = [shape for geometry in collision.findall("geometry") for shape in geometry]
            what = where(collision)
            if len(shapes) != 1:
                raise ModelError(f"{what}: got {len(shapes)} shapes in <geometry>, allowed: one")
            if shapes[0].tag != "empty":
                elements.append(self._collision(link, len(elements), collision, shapes[0]))
        return elements

    def _collision(self, link: str, index: int, collision: Element, shape: Element) -> CollisionElement:
        what, file = where(collision), ""
        texts = [shape.findtext(key) for key in SIZES.get(shape.tag, ())]
        size = tuple(float(word) for text in texts for word in (text or "nan").split())
        if shape.tag == "mesh":
            file = (shape.findtext("uri") or "").strip()
            size = tuple(float(word) for word in (shape.findtext("scale") or "1 1 1").split())
        elif not all(length > 0.0 for length in size):
            raise ModelError(f"<{shape.tag}> in {what}: got {texts}, allowed: positive lengths")
        friction = collision.findtext("surface/friction/ode/mu")
        if friction is not None and not float(friction) >= 0.0:
            raise ModelError(f"<mu> of {what}: got {friction!r}, allowed: a number >= 0")
        return CollisionElement(
            link, f"{link}_{index}", self.frames.inside(collision, link), shape.tag, size, file,
            friction=None if friction is None else float(friction), where=what,
        )  # fmt: skip

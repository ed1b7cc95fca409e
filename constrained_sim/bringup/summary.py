"""Summary of a robot description, and what to do about it before it is simulated."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.bringup.advice import advice_on
from constrained_sim.bringup.text_tables import TextTable, tables_text
from constrained_sim.constraints import JointCoupling
from constrained_sim.descriptions.inertia import fault_of
from constrained_sim.robot import WORLD, Robot, checked_robot
from constrained_sim.validation import number


@dataclass(frozen=True)
class LinkFacts:
    """The bodies that one joint moves together, joined by fixed joints.

    Attributes:
        name: of the links, the first one first.
        joint: that moves them; ``world`` for those that rest.
        mass: [kg].
        moments: principal moments of inertia about the centre of mass [kg m^2], ascending.
        fault: why no body can have this inertia; empty where one can.
    """

    name: str
    joint: str
    mass: float
    moments: tuple[float, float, float]
    fault: str


@dataclass(frozen=True)
class JointFacts:
    """One moving joint; limits are infinite where there are none, and for joints with several coordinates.

    Attributes:
        name: of the joint.
        kind: revolute, continuous, prismatic; of joints with several degrees of freedom Pinocchio's name.
        axis: (3,) unit vector along or about which it moves, in the frame of its child link; empty for several axes.
        actuated: whether it takes efforts.
        lower: least position [rad, m].
        upper: largest position [rad, m].
        effort: largest effort, of either sign [N m, N].
        velocity: largest speed [rad/s, m/s].
        damping: viscous [N m s/rad, N s/m].
        friction: Coulomb effort of dry friction [N m, N].
        armature: inertia of the rotor [kg m^2, kg].
        stiffness: of a spring [N m/rad, N/m].
        mimics: joint that it follows, and how; empty where it follows none.
    """

    name: str
    kind: str
    axis: tuple[float, ...]
    actuated: bool
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    friction: float
    armature: float
    stiffness: float
    mimics: str


@dataclass(frozen=True)
class ShapeFacts:
    """One element of collision geometry.

    Attributes:
        link: that carries it.
        kind: sphere, box, cylinder, capsule or mesh.
        size: [m], or the factors of a mesh.
        file: of a mesh.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    file: str


@dataclass(frozen=True)
class RobotSummary:
    """What a robot description holds.

    Attributes:
        name: of the robot.
        mass: of all that moves [kg].
        nq: length of a configuration.
        nv: degrees of freedom.
        floating_base: whether its root is free.
        links: bodies, in Pinocchio's order.
        joints: moving joints, free-flyer included.
        loops: name and kind of the constraints that are part of the robot: mimicking joints, closed loops.
        collision: collision geometry.
        frames: names of links and frames that can carry a contact.
        ignored: what the description says and nobody uses.
        advice: what to change, each with the reason.
    """

    name: str
    mass: float
    nq: int
    nv: int
    floating_base: bool
    links: tuple[LinkFacts, ...]
    joints: tuple[JointFacts, ...]
    loops: tuple[tuple[str, str], ...]
    collision: tuple[ShapeFacts, ...]
    frames: tuple[str, ...]
    ignored: tuple[str, ...]
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as mappings, lists, text and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the tables as text, 100 columns wide.

        Raises:
            MissingLibrary: rich is not installed.
        """
        base = "floating" if self.floating_base else "fixed"
        heading = f"{self.name or 'robot'}: {self.mass:.4g} kg, {self.nv} degrees of freedom, {base} base"
        tables = {
            "links": TextTable(LINK_COLUMNS, [_link_row(link) for link in self.links]),
            "joints": TextTable(JOINT_COLUMNS, [_joint_row(joint) for joint in self.joints]),
            "loops and mimicking joints": TextTable(("name", "kind"), self.loops),
            "collision geometry": TextTable(("link", "kind", "size or file"), [_shape_row(s) for s in self.collision]),
        }
        lists = {
            "frames that can be contacts": [", ".join(self.frames)],
            "not used": self.ignored,
            "advice": self.advice,
        }
        return tables_text(heading, tables, lists)


UNLIMITED = 1e100
"""[rad/s, m/s] Speed from which on there is no limit."""

LINK_COLUMNS = "links", "moved by", "mass", "moments of inertia", "physical"
JOINT_COLUMNS = (
    *("joint", "kind", "axis", "limits", "speed", "effort"),
    *("damping", "friction", "rotor", "spring", "mimics"),
)


def _link_row(link: LinkFacts) -> tuple[str, ...]:
    moments = " ".join(f"{moment:.2g}" for moment in link.moments)
    return link.name, link.joint, f"{link.mass:.4g}", moments, link.fault or "yes"


def _joint_row(joint: JointFacts) -> tuple[str, ...]:
    limits = f"{joint.lower:.3g} .. {joint.upper:.3g}" if joint.upper - joint.lower < float("inf") else "none"
    effort = f"{joint.effort:.3g}" if joint.actuated else "passive"
    numbers = (joint.damping, joint.friction, joint.armature, joint.stiffness)
    rest = (f"{value:.3g}" if value else "" for value in numbers)
    speed = f"{joint.velocity:.3g}" if joint.velocity < UNLIMITED else ""
    return joint.name, joint.kind, axis_text(joint.axis), limits, speed, effort, *rest, joint.mimics


def _shape_row(shape: ShapeFacts) -> tuple[str, ...]:
    return shape.link, shape.kind, shape.file.rpartition("/")[2] or " ".join(f"{x:.3g}" for x in shape.size)


def axis_text(axis: tuple[float, ...]) -> str:
    """Return an axis as ``x``, ``-y``, or its components; empty for none."""
    for name, component in zip("xyz", axis, strict=False):
        if abs(abs(component) - 1.0) < 1e-9:
            return name if component > 0.0 else f"-{name}"
    return " ".join(f"{component:.2g}" for component in axis)


def summarize(robot: Robot, dt: float = 1e-3) -> RobotSummary:
    """Return what the description of `robot` holds, with advice for steps and control periods of `dt` [s].

    Raises:
        InvalidValue: no robot, or a period that is not positive.
    """
    dt = number("dt", dt, 0.0, open_lower=True)
    return RobotSummary(
        name=str(checked_robot(robot).model.name),
        mass=robot.mass,
        nq=robot.nq,
        nv=robot.nv,
        floating_base=robot.floating_base,
        links=tuple(_link(robot, index) for index in range(robot.model.njoints) if robot.model.inertias[index].mass),
        joints=tuple(_joint(robot, name) for name in robot.joint_names),
        loops=tuple((constraint.name, constraint.kind) for constraint in robot.constraints),
        collision=tuple(
            ShapeFacts(e.link, e.kind, tuple(map(float, e.size)), e.file) for e in robot.collision_elements
        ),
        frames=tuple(name for name in robot.links if name != WORLD),
        ignored=robot.ignored,
        advice=advice_on(robot, dt),
    )


def _link(robot: Robot, index: int) -> LinkFacts:
    model = robot.model
    bodies = [f.name for f in model.frames if f.parentJoint == index and f.type == pin.FrameType.BODY]
    inertia = np.asarray(model.inertias[index].inertia)
    moments = np.linalg.eigvalsh(inertia).tolist()
    joint = str(model.names[index]) if index else WORLD
    return LinkFacts(", ".join(bodies), joint, float(model.inertias[index].mass), tuple(moments), fault_of(inertia))


def _joint(robot: Robot, name: str) -> JointFacts:
    joint = robot.joint_models[name]
    i = joint.idx_v
    lower, upper = (float(limits[i]) for limits in robot.position_limits)
    largest = np.maximum(robot.effort_limits, -robot.least_efforts)
    efforts = dict(zip(robot.actuation.tolist(), largest.tolist(), strict=True))
    return JointFacts(
        name,
        _kind(joint),
        _axis(joint),
        name in robot.actuated_joints,
        lower,
        upper,
        efforts.get(i, float("inf")),
        float(robot.velocity_limits[i]),
        float(robot.damping[i]),
        float(robot.dry_friction[i]),
        float(robot.model.armature[i]),
        float(robot.stiffness[i]),
        _mimics(robot, name),
    )


def _kind(joint: pin.JointModel) -> str:
    name = str(joint.shortname()).removeprefix("JointModel")
    if joint.nv > 1:
        return name
    return "prismatic" if name.startswith("P") else "continuous" if joint.nq == 2 else "revolute"


def _axis(joint: pin.JointModel) -> tuple[float, ...]:
    """Return the axis of a joint with one degree of freedom: the linear or the angular half of its motion."""
    if joint.nv > 1:
        return ()
    linear, angular = np.split(np.asarray(joint.createData().S).reshape(6), 2)
    axis = angular if np.any(angular) else linear
    return tuple((axis + 0.0).tolist())


def _mimics(robot: Robot, name: str) -> str:
    """Return which joint `name` follows, ``ratio x joint + offset``."""
    for constraint in robot.constraints:
        if isinstance(constraint, JointCoupling) and constraint.joint == name:
            offset = f" {constraint.offset:+.3g}" if constraint.offset else ""
            return f"{constraint.ratio:.3g} x {constraint.reference_joint}{offset}"
    return ""

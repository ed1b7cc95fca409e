"""What a robot description holds, and what to do about it before it is simulated."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.bringup.advice import advice_on
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
        kind: Pinocchio's name of its type, which tells the axis too.
        actuated: whether it takes efforts.
        lower: least position [rad, m].
        upper: largest position [rad, m].
        effort: largest effort [N m, N].
        velocity: largest speed [rad/s, m/s].
        damping: viscous [N m s/rad, N s/m].
        friction: Coulomb effort of dry friction [N m, N].
        armature: inertia of the rotor [kg m^2, kg].
    """

    name: str
    kind: str
    actuated: bool
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    friction: float
    armature: float


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
        mass: total [kg].
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
        """Return the tables as text, 100 columns wide."""
        from constrained_sim.bringup.summary_text import summary_text

        return summary_text(self)


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
        frames=tuple(name for name in robot.links if name not in (WORLD, "universe")),
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
    efforts = dict(zip(robot.actuation.tolist(), robot.effort_limits.tolist(), strict=True))
    return JointFacts(
        name,
        joint.shortname().removeprefix("JointModel"),
        name in robot.actuated_joints,
        lower,
        upper,
        efforts.get(i, float("inf")),
        float(robot.velocity_limits[i]),
        float(robot.damping[i]),
        float(robot.dry_friction[i]),
        float(robot.model.armature[i]),
    )

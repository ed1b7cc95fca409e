"""Frames from ROS messages, whichever library read them: only the fields of the messages are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.joints import single_joints
from constrained_sim.objects import WorldObject
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.described_objects import DescribedObjects
from constrained_sim.viewer.frame import Frame, ShownAnchor, ShownContact, ShownImpact

STATES, BASE, MULTI_DOF, CONTACTS, CONSTRAINTS, IMPACT, STATUS, OBJECTS, DESCRIPTIONS = (
    "sensor_msgs/msg/JointState",
    "nav_msgs/msg/Odometry",
    "sensor_msgs/msg/MultiDOFJointState",
    "constrained_sim/msg/ContactForces",
    "constrained_sim/msg/ConstraintForces",
    "constrained_sim/msg/Impact",
    "constrained_sim/msg/SimulationStatus",
    "constrained_sim/msg/ObjectStates",
    "constrained_sim/msg/ObjectDescriptions",
)
"""Types of messages that a frame is put together from."""

ENERGIES = {
    "kinetic": "kinetic_energy",
    "potential": "potential_energy",
    "actuators": "work_actuators",
    "impact losses": "impact_losses",
    "residual": "energy_residual",
}
"""Fields of a status, by the name that a plot shows."""

STATE_TEXTS = ("running", "paused", "waiting for a command", "frozen")

FROM_PLACEMENT: dict[str, Callable[[pin.SE3], Array]] = {
    "JointModelSpherical": lambda placement: pin.SE3ToXYZQUAT(placement)[3:],
    "JointModelTranslation": lambda placement: placement.translation,
    "JointModelPlanar": lambda placement: np.array([*placement.translation[:2], *placement.rotation[:2, 0]]),
    "JointModelFreeFlyer": pin.SE3ToXYZQUAT,
}
"""Configuration of a joint with several degrees of freedom, from the placement of its moving side."""


class MessageFrames:
    """Puts frames together from the newest message of each type."""

    def __init__(self, robot: Robot, objects: Iterable[WorldObject] = ()) -> None:
        """Read messages of `robot`, and of `objects` beside it where no message describes them."""
        self._robot, self._objects = robot, DescribedObjects(objects)
        self._joints = single_joints(robot.joint_models)
        self._several = {name: joint for name, joint in robot.joint_models.items() if joint.nv > 1}

    def frame(self, t: float, newest: Mapping[str, Any], impacts: Iterable[ShownImpact] = ()) -> Frame | None:
        """Return what the `newest` messages, by their types, and `impacts` tell at `t` [s]; None without a state."""
        if STATES not in newest:
            return None
        q, v, efforts = self._state(newest)
        status = newest.get(STATUS)
        return Frame(
            t,
            q,
            v,
            efforts,
            tuple(map(contact_of, newest[CONTACTS].contacts)) if CONTACTS in newest else (),
            tuple(map(anchor_of, filter(_is_between_links, newest[CONSTRAINTS].constraints)))
            if CONSTRAINTS in newest
            else (),
            tuple(impacts),
            {} if status is None else {name: getattr(status, field) for name, field in ENERGIES.items()},
            "" if status is None else text_of(status),
            self._objects.shown(newest.get(OBJECTS), newest.get(DESCRIPTIONS)),
        )

    def _state(self, newest: Mapping[str, Any]) -> tuple[Array, Array, dict[str, float]]:
        """Return q (nq,), v (nv,) and the efforts of the actuated joints; what no message tells is neutral."""
        q, v, state = self._robot.neutral(), np.zeros(self._robot.nv), newest[STATES]
        rows = zip(state.name, state.position, state.velocity, state.effort, strict=True)
        efforts = {}
        for name, position, velocity, effort in rows:
            if name in self._joints:
                self._joints[name].place(q, float(position))
                v[self._joints[name].v] = velocity
                efforts[name] = float(effort)
        if MULTI_DOF in newest:
            self._place_several(newest[MULTI_DOF], q)
        if BASE in newest and self._robot.floating_base:
            q[:7], v[:6] = base_of(newest[BASE])
        return q, v, {name: efforts[name] for name in self._robot.actuated_joints if name in efforts}

    def _place_several(self, message: Any, q: Array) -> None:
        for name, transform in zip(message.joint_names, message.transforms, strict=True):
            joint = self._several.get(name)
            if joint is not None and joint.shortname() in FROM_PLACEMENT:
                turn = transform.rotation
                placement = pin.XYZQUATToSE3(np.array([*xyz(transform.translation), turn.x, turn.y, turn.z, turn.w]))
                q[joint.idx_q : joint.idx_q + joint.nq] = FROM_PLACEMENT[joint.shortname()](placement)


def contact_of(message: Any) -> ShownContact:
    """Return the contact that a ContactForce tells of."""
    force, status = xyz(message.wrench.force), ContactStatus(message.status)
    place = xyz(message.position), xyz(message.normal)
    return ShownContact(message.name, status, *place, force, message.friction, message.link)


def impact_of(message: Any, t: float) -> ShownImpact:
    """Return the impact that an Impact of the instant `t` [s] tells of."""
    return ShownImpact(t, message.energy_lost, tuple(impulse.name for impulse in message.impulses))


def anchor_of(message: Any) -> ShownAnchor:
    """Return the constraint that a ConstraintForce tells of."""
    return ShownAnchor(message.name, xyz(message.position), xyz(message.wrench.force))


def _is_between_links(message: Any) -> bool:
    return bool(message.link_a)


def base_of(message: Any) -> tuple[list[float], list[float]]:
    """Return position and quaternion xyzw (7,), and velocity in body axes (6,), of an Odometry."""
    pose, twist = message.pose.pose, message.twist.twist
    turn = pose.orientation
    return [*xyz(pose.position), turn.x, turn.y, turn.z, turn.w], [*xyz(twist.linear), *xyz(twist.angular)]


def text_of(status: Any) -> str:
    """Return what a SimulationStatus tells in a line."""
    state = ": ".join(dict.fromkeys(filter(None, (STATE_TEXTS[status.state], status.message))))
    return f"{state}; {status.solver}, {status.stepper}; real-time factor {status.real_time_factor:.2f}"


def xyz(message: Any) -> Array:
    """Return (3,) the components of a Point or a Vector3."""
    return np.array([message.x, message.y, message.z])

"""Contacts, constraints and wrenches as messages declare them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped

from constrained_sim import msg
from constrained_sim.constraints import Constraint, FrameAnchor, JointCoupling, JointVelocity, PointAnchor, PointContact
from constrained_sim.contact import Plane, make_law
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.robot import WORLD
from constrained_sim.ros.conversions import point, pose_message, pose_values, vector, xyz
from constrained_sim.validation import directions, lookup
from constrained_sim.wrench import Wrench

SOFT_PARAMETERS = ("stiffness", "damping")
"""Fields of a contact message that belong to the law 'compliant'; zero where they are not given."""


def contact_from_message(message: msg.Contact, planes: Mapping[str, Plane]) -> PointContact:
    """Return the declared contact; `planes` are those of the scene, by name.

    Raises:
        ConstrainedSimError: a value that is not allowed.
    """
    if message.surface and message.surface not in planes:
        raise UnknownName("surface", message.surface, ['"" (the plane normal . x = offset)', *planes])
    surface = planes[message.surface] if message.surface else Plane(xyz(message.normal), message.offset)
    return PointContact(
        message.name,
        message.link,
        xyz(message.point),
        surface,
        make_law(message.law, {key: getattr(message, key) for key in SOFT_PARAMETERS if getattr(message, key)}),
        message.friction,
        message.restitution,
        message.radius,
        message.restitution_law,
        message.torsional_friction,
        message.rolling_friction,
    )


def contact_to_message(contact: PointContact, planes: Mapping[str, Plane]) -> msg.Contact:
    """Return the declaration of `contact` as in effect."""
    return msg.Contact(
        name=contact.name,
        link=contact.link,
        point=point(contact.point),
        radius=contact.radius,
        surface=next((name for name, plane in planes.items() if plane is contact.surface), ""),
        normal=vector(contact.surface.normal),
        offset=contact.surface.offset,
        law=contact.law.name,
        friction=contact.friction,
        restitution=contact.restitution,
        restitution_law=contact.restitution_law,
        torsional_friction=contact.torsional_friction,
        rolling_friction=contact.rolling_friction,
        **{key: getattr(contact.law, key, 0.0) for key in SOFT_PARAMETERS},
    )


def constraint_from_message(message: msg.Constraint) -> Constraint:
    """Return the declared bilateral constraint.

    Raises:
        ConstrainedSimError: a value that is not allowed.
    """
    return lookup("kind of constraint", message.kind, KINDS)(message)


def _point_anchor(message: msg.Constraint) -> PointAnchor:
    target = None if message.hold_current else xyz(message.pose_b.position)
    normals = [xyz(normal) for normal in message.normals] or None
    return PointAnchor(message.name, message.link_a, xyz(message.pose_a.position), message.link_b, target, normals)


def _frame_anchor(message: msg.Constraint) -> FrameAnchor:
    target = None if message.hold_current else pose_values(message.pose_b)
    axes = directions(f"axes of frame anchor {message.name!r}", message.axes, 6) if message.axes else None
    return FrameAnchor(message.name, message.link_a, pose_values(message.pose_a), message.link_b, target, axes)


def _joint_coupling(message: msg.Constraint) -> JointCoupling:
    return JointCoupling(message.name, message.joint, message.reference_joint, message.ratio, message.offset)


def _joint_velocity(message: msg.Constraint) -> JointVelocity:
    return JointVelocity(message.name, message.joint, message.velocity)


KINDS = {
    PointAnchor.kind: _point_anchor,
    FrameAnchor.kind: _frame_anchor,
    JointCoupling.kind: _joint_coupling,
    JointVelocity.kind: _joint_velocity,
}


def constraint_to_message(constraint: Constraint, enabled: bool) -> msg.Constraint:
    """Return the declaration of `constraint`; one that no message can declare has its name and kind only."""
    message = msg.Constraint(name=constraint.name, kind=constraint.kind, enabled=enabled)
    if isinstance(constraint, (PointAnchor, FrameAnchor)):
        message.link_a, message.link_b = constraint.link_a, constraint.link_b
    if isinstance(constraint, PointAnchor):
        message.pose_a.position = point(constraint.point_a)
        message.hold_current = constraint.point_b is None or callable(constraint.point_b)
        if not message.hold_current:
            message.pose_b.position = point(constraint.point_b)
        message.normals = [vector(normal) for normal in (() if constraint.normals is None else constraint.normals)]
    elif isinstance(constraint, FrameAnchor):
        message.pose_a = pose_message(constraint.placement_a)
        message.hold_current = constraint.placement_b is None
        if not message.hold_current:
            message.pose_b = pose_message(constraint.placement_b)
        message.axes = [] if constraint.axes is None else constraint.axes.ravel().tolist()
    elif isinstance(constraint, JointCoupling):
        message.joint, message.reference_joint = constraint.joint, constraint.reference_joint
        message.ratio, message.offset = constraint.ratio, constraint.offset
    elif isinstance(constraint, JointVelocity):
        message.joint = constraint.joint
        message.velocity = np.nan if callable(constraint.velocity) else constraint.velocity
    return message


def wrench_from_topic(message: WrenchStamped, prefix: str) -> Wrench:
    """Return the wrench on the link ``header.frame_id``, at its origin, in its axes.

    Raises:
        InvalidValue: no frame_id, or the world, which nothing moves; NaN or infinity.
    """
    link = message.header.frame_id.removeprefix(prefix)
    if link in ("", WORLD):
        raise InvalidValue("frame_id of an external wrench", message.header.frame_id, "a link of the robot")
    return Wrench(link, xyz(message.wrench.force), xyz(message.wrench.torque), axes=link)


def wrench_from_request(request: Any, prefix: str, world_frame: str) -> Wrench:
    """Return the wrench of an ApplyWrench request.

    Raises:
        InvalidValue: a wrench on the world, NaN or infinity.
    """
    link, axes = request.link.removeprefix(prefix), request.frame_id
    if link in ("", WORLD):
        raise InvalidValue("link of a wrench", request.link, "a link of the robot")
    axes = WORLD if axes in ("", WORLD, world_frame) else axes.removeprefix(prefix)
    return Wrench(link, xyz(request.wrench.force), xyz(request.wrench.torque), xyz(request.point), axes)

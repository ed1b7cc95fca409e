"""Impacts as messages."""

from __future__ import annotations

from std_msgs.msg import Header

from constrained_sim import msg
from constrained_sim.contact.bound_contact import BoundContact
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.frame_names import FrameNames
from constrained_sim.impact import Impact
from constrained_sim.robot import Robot
from constrained_sim.ros.conversions import point, vector


def impact_message(header: Header, impact: Impact, robot: Robot, frames: FrameNames) -> msg.Impact:
    """Return an impact with the impulses of everything that took part."""
    message = msg.Impact(
        header=header,
        velocity_names=list(robot.velocity_names),
        velocity_minus=impact.v_minus.tolist(),
        velocity_plus=impact.v_plus.tolist(),
        energy_lost=impact.energy_lost,
        restitution_scale=impact.restitution_scale,
    )
    names = [member.name for member in impact.constraints.contacts.members]
    places = dict(zip(names, zip(impact.points, impact.moments, strict=True), strict=True))
    linear = impact.contact_impulses
    for member in impact.constraints.members:
        rows = impact.constraints.slice(member.name)
        if not impact.impulse[rows].any():
            continue
        impulse = msg.Impulse(
            name=member.name,
            rows=impact.impulse[rows].tolist(),
            row_velocity_minus=impact.row_velocity_minus[rows].tolist(),
            row_velocity_plus=impact.row_velocity_plus[rows].tolist(),
        )
        if isinstance(member, BoundContact):
            impulse.link = frames.of(member.link)
            position, moment = places[member.name]
            impulse.position, impulse.angular = point(position), vector(moment)
            impulse.linear = vector(linear[member.name])
        elif member.declaration.links:
            there, link = kinematics_at(robot, impact.q, impact.t), member.declaration.links[0]
            wrench = member.wrench(there, impact.impulse[rows], link)
            impulse.link = frames.of(link)
            impulse.position = point(member.wrench_point(there))
            impulse.linear, impulse.angular = vector(wrench[:3]), vector(wrench[3:])
        message.impulses.append(impulse)
    return message

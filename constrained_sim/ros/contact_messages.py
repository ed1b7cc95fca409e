"""Contacts as arrows for RViz and as wrenches on links."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.frame_names import FrameNames
from constrained_sim.palette import STATUS_COLOURS, rgb
from constrained_sim.ros.conversions import point, vector
from constrained_sim.ros.world import Period


def arrows(header: Header, period: Period, scale: float) -> MarkerArray:
    """Return an arrow of `scale` [m/N] at each contact that carries force; those of before are deleted.

    One that carried force during the period and does no longer is grey.
    """
    markers = [Marker(header=header, ns="contacts", action=Marker.DELETEALL)]
    for number, (name, contact) in enumerate(sorted(period.contacts.items())):
        force = period.mean_forces[name]
        if not force.any():
            continue
        red, green, blue = (value / 255.0 for value in rgb(STATUS_COLOURS[contact.status]))
        markers.append(
            Marker(
                header=header,
                ns="contacts",
                id=number,
                type=Marker.ARROW,
                action=Marker.ADD,
                points=[point(contact.position), point(contact.position + scale * force)],
                scale=Vector3(x=0.01, y=0.02, z=0.03),
                color=ColorRGBA(r=red, g=green, b=blue, a=1.0),
            )
        )
    return MarkerArray(markers=markers)


def link_wrenches(header: Header, period: Period, frames: FrameNames) -> dict[str, WrenchStamped]:
    """Return the mean wrench of each contact on its link, about the link's origin, in its axes, by name."""
    robot = period.result.robot
    dynamics = kinematics_at(robot, period.result.state.q)
    messages = {}
    for name, contact in period.contacts.items():
        joint, in_joint = robot.link_placement(contact.link)
        link, force = dynamics.placement(joint) * in_joint, period.mean_forces[name]
        moment = np.cross(contact.position, force) + period.mean_moments[name]
        there = link.actInv(pin.Force(force, moment))
        messages[name] = WrenchStamped(
            header=Header(stamp=header.stamp, frame_id=frames.of(contact.link)),
            wrench=Wrench(force=vector(there.linear), torque=vector(there.angular)),
        )
    return messages

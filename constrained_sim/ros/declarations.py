"""Contacts and wrenches as messages declare them, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped

from constrained_sim import msg
from constrained_sim.constraints import PointContact
from constrained_sim.contact import Plane, make_law
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.robot import WORLD
from constrained_sim.ros.conversions import point, vector, xyz
from constrained_sim.wrench import Wrench

LinkOf = Callable[[str], str]
"""From the name of a link or a frame in a message to the link, see :meth:`~constrained_sim.ros.world.World.link_of`."""

SOFT_PARAMETERS = ("stiffness", "damping")
"""Fields of a contact message that belong to the law 'compliant'; zero where they are not given."""


def contact_from_message(message: msg.Contact, planes: Mapping[str, Plane], link_of: LinkOf) -> PointContact:
    """Return the declared contact on the link that `link_of` finds; `planes` are those of the scene, by name.

    Raises:
        ConstrainedSimError: a value that is not allowed.
    """
    if message.surface and message.surface not in planes:
        raise UnknownName("surface", message.surface, ['"" (the plane normal . x = offset)', *planes])
    surface = planes[message.surface] if message.surface else Plane(np.array(xyz(message.normal)), message.offset)
    return PointContact(
        message.name,
        link_of(message.link),
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


def wrench_from_topic(message: WrenchStamped, link_of: LinkOf) -> Wrench:
    """Return the wrench on the link ``header.frame_id``, at its origin, in its axes.

    Raises:
        InvalidValue: no frame_id, or the world, which nothing moves; NaN or infinity.
    """
    link = link_of(message.header.frame_id)
    if link in ("", WORLD):
        raise InvalidValue("frame_id of an external wrench", message.header.frame_id, "a link of the robot")
    return Wrench(link, xyz(message.wrench.force), xyz(message.wrench.torque), axes=link)


def wrench_from_request(request: Any, link_of: LinkOf) -> Wrench:
    """Return the wrench of an ApplyWrench request.

    Raises:
        InvalidValue: a wrench on the world, NaN or infinity.
    """
    link, axes = link_of(request.link), link_of(request.frame_id or WORLD)
    if link in ("", WORLD):
        raise InvalidValue("link of a wrench", request.link, "a link of the robot")
    return Wrench(link, xyz(request.wrench.force), xyz(request.wrench.torque), xyz(request.point), axes)

"""Sets a robot down on its contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from constrained_sim.constraints import PointContact
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, items

STEEPEST = 0.1
"""Least vertical part of a contact normal: a base that moves vertically does not come closer to a steeper wall."""


def set_on_ground(robot: Robot, q: Any, contacts: Sequence[PointContact]) -> Array:
    """Return the configuration with the base moved vertically until the lowest contact touches its surface.

    The gap of contact i is ``phi_i = n_i . p_i - offset_i - radius_i``, so a rise dz changes it by ``n_iz dz`` and the
    result has ``min phi_i = 0``: nothing penetrates. Joints and the attitude of the base stay.

    Args:
        robot: with a floating base.
        q: (nq,) configuration.
        contacts: at least one; surfaces that are no steeper than 84 degrees.

    Returns:
        (nq,) configuration [m, rad].

    Raises:
        InvalidValue: a robot without floating base, no contacts, or a surface that is a wall.
        UnknownName: a contact on a link that does not exist.
    """
    if not checked_robot(robot).floating_base:
        raise InvalidValue("robot to set on the ground", "a fixed base", "a floating base")
    q, contacts = robot.checked_configuration(q), checked_contacts(contacts)
    if not contacts:
        raise InvalidValue("contacts", [], "at least one PointContact")
    slopes = np.array([contact.surface.normal[2] for contact in contacts])
    if slopes.min() < STEEPEST:
        raise InvalidValue("normal of a contact's surface", slopes.min(), f"a vertical part of at least {STEEPEST}")
    q[2] -= float((contact_gaps(robot, q, contacts) / slopes).min())
    return q


def contact_gaps(robot: Robot, q: Array, contacts: Sequence[PointContact]) -> Array:
    """Return (k,) the gaps [m] of `contacts` at `q` (nq,); negative where they penetrate."""
    table = ConstraintSet(robot, [contact.bind(robot, q) for contact in contacts]).contacts
    return np.asarray(table.rows(kinematics_at(robot, q), np.zeros(robot.nv)).gaps)


def contact_places(robot: Robot, q: Array, contacts: Sequence[PointContact]) -> Array:
    """Return (k, 3) where the points of `contacts` are at `q` (nq,) [m], in the world."""
    places = [robot.link_point(contact.link, contact.point) for contact in contacts]
    joints, offsets = np.array([joint for joint, _ in places]), np.array([offset for _, offset in places])
    return np.asarray(kinematics_at(robot, q).point_positions(joints, offsets))


def center_of_mass(robot: Robot, dynamics: Dynamics) -> Array:
    """Return (3,) the centre of mass of all moving bodies [m], in the world."""
    bodies = [(i.mass, dynamics.placement(j).act(i.lever)) for j, i in enumerate(robot.model.inertias) if j and i.mass]
    return np.asarray(sum(mass * place for mass, place in bodies) / sum(mass for mass, _ in bodies))


def checked_contacts(contacts: Any) -> list[PointContact]:
    """Return a list of point contacts.

    Raises:
        InvalidValue: something else.
    """
    return list(items("contacts", contacts, PointContact, "PointContacts"))

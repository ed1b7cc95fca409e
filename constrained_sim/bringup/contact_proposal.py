"""Proposes where a robot touches the ground: the lowest points of its limbs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from constrained_sim.collision.shapes import Shape, robot_shapes
from constrained_sim.constraints import PointContact
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import ConstrainedSimError, NothingCollides
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, number

LEVEL = 0.05
"""Share of the robot's height within which the ends of limbs count as equally low."""

FLAT = 0.004
"""Height [m] within which points of one foot count as its sole."""

SMALL = 0.03
"""Extent [m] of a sole below which it counts as one point."""

CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
"""Directions, in the horizontal axes of the foot, in which its outermost points are taken."""


class _Candidate(NamedTuple):
    """A point that could touch the ground.

    Attributes:
        link: that carries it.
        point: (3,) [m], frame of the link.
        radius: of a ball about the point [m].
        place: (3,) in the world [m].
    """

    link: str
    point: Array
    radius: float
    place: Array

    @property
    def height(self) -> float:
        """Of its lowest point [m]."""
        return float(self.place[2]) - self.radius


def propose_contacts(robot: Robot, q: Any, friction: float = 0.8) -> tuple[PointContact, ...]:
    """Return contact points on the limbs that reach lowest at `q`, at most four on each.

    The end of a limb is a joint that carries no other joint. Its points are those of its collision geometry: corners of
    boxes and meshes, the ends of capsules and of lying cylinders with their radius, the rim of standing ones. Where it
    has none, or a mesh cannot be found, it is the origin of its lowest link or frame. A foot is the end of a limb whose
    lowest point is within 5 % of the robot's height of the lowest of all.

    Args:
        robot: the robot.
        q: (nq,) configuration in which its feet are below it, as soles lie on the ground.
        friction: Coulomb coefficient of all contacts.

    Returns:
        contacts with the level ground, named after their link; with a number where a link has several.

    Raises:
        InvalidValue: no configuration of the robot, or a negative friction.
    """
    q = checked_robot(robot).checked_configuration(q)
    number("friction", friction, 0.0)
    ends = {joint: _candidates(robot, q, joint) for joint in limb_ends(robot)}
    lowest = {joint: min(c.height for c in found) for joint, found in ends.items() if found}
    if not lowest:
        return ()
    heights = kinematics_at(robot, q).placements[1:, 3, 2]
    level = LEVEL * max(float(heights.max()) - min(lowest.values()), 1e-3)
    feet = [joint for joint, height in lowest.items() if height <= min(lowest.values()) + level]
    return tuple(contact for joint in feet for contact in _sole(ends[joint], friction))


def limb_ends(robot: Robot) -> list[int]:
    """Return the joints that carry no other joint, free-flyer aside."""
    parents = set(robot.model.parents)
    first = 2 if robot.floating_base else 1
    return [joint for joint in range(first, robot.model.njoints) if joint not in parents]


def is_legged(robot: Robot) -> bool:
    """Return whether a robot that was read with a fixed base seems to be one with legs.

    Two limbs or more leave its root link, each with two joints or more, and reach equally low: its legs.
    """
    feet = propose_contacts(robot, robot.within_limits(robot.neutral()))
    branches = set()
    for contact in feet:
        joint, _ = robot.link_placement(contact.link)
        chain = [joint]
        while (joint := int(robot.model.parents[joint])) > (1 if robot.floating_base else 0):
            chain.append(joint)
        if len(chain) > 1:
            branches.add(chain[-1])
    return len(branches) > 1


def _candidates(robot: Robot, q: Array, joint: int) -> list[_Candidate]:
    """Return the points of what `joint` carries that could touch the ground at `q`."""
    placement = kinematics_at(robot, q).placement(joint)
    found = []
    for shape in _shapes(robot, joint):
        into_link = robot.link_placement(shape.link)[1].inverse()
        points, radius = _points(shape, placement)
        found += [_Candidate(shape.link, into_link.act(p), radius, placement.act(p)) for p in points]
    if found:
        return found
    frames = [f for f in robot.model.frames if f.parentJoint == joint and f.type != pin.FrameType.SENSOR]
    links = {f.name: robot.link_placement(f.name)[1] for f in frames if robot.links.get(f.name)}
    points_at = {name: placement.act(at.translation) for name, at in links.items()}
    if not points_at:
        return []
    lowest = min(points_at, key=lambda name: float(points_at[name][2]))
    return [_Candidate(lowest, np.zeros(3), 0.0, points_at[lowest])]


def _shapes(robot: Robot, joint: int) -> list[Shape]:
    """Return the collision geometry that `joint` carries; nothing where it cannot be loaded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingCollides)
            elements = [e for e in robot.collision_elements if robot.link_placement(e.link)[0] == joint]
            return robot_shapes(_only(robot, elements)) if elements else []
    except ConstrainedSimError:
        return []


def _only(robot: Robot, elements: Sequence[Any]) -> Robot:
    from dataclasses import replace

    return replace(robot, collision_elements=tuple(elements))


def _points(shape: Shape, placement: pin.SE3) -> tuple[Array, float]:
    """Return (n, 3) points [m], joint's frame, of a shape whose joint has this `placement`, and their radius [m]."""
    if not shape.is_cylinder:
        return shape.points, shape.radius
    axis = placement.rotation @ shape.placement.rotation[:, 2]
    if abs(axis[2]) < 0.5:
        return shape.cap_centers, float(shape.solid.radius)
    across = float(shape.solid.radius) * shape.placement.rotation[:, :2].T
    return np.array([rim + sign * way for rim in shape.cap_centers for way in across for sign in (1.0, -1.0)]), 0.0


def _sole(candidates: Sequence[_Candidate], friction: float) -> list[PointContact]:
    """Return the outermost of the lowest candidates as contacts."""
    lowest = min(candidate.height for candidate in candidates)
    low = [candidate for candidate in candidates if candidate.height <= lowest + FLAT]
    places = np.array([candidate.place[:2] for candidate in low])
    middle = places.mean(axis=0)
    if np.ptp(places, axis=0).max() < SMALL:
        low = [min(low, key=lambda candidate: (round(candidate.height, 6), *np.abs(candidate.place[:2] - middle)))]
        places = places[:1]
    chosen = sorted({int(np.argmax(np.round(places @ corner, 6))) for corner in CORNERS})
    counts: dict[str, int] = {}
    contacts = []
    for index in chosen:
        link, point, radius, _ = low[index]
        counts[link] = counts.get(link, 0) + 1
        several = sum(low[i].link == link for i in chosen) > 1
        name = f"{link}_{counts[link]}" if several else link
        rounded = tuple(round(float(value), 6) + 0.0 for value in point)
        contacts.append(PointContact(name, link, rounded, friction=friction, radius=round(radius, 6)))
    return contacts

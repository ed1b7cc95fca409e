"""Proposes where a robot touches the ground: the lowest points of its limbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from constrained_sim.bringup.sole import FLAT, Points, Sole, assumed_sole, has_area, sole_of
from constrained_sim.collision.robot_shapes import robot_shapes
from constrained_sim.collision.shapes import Shape
from constrained_sim.constraints import PointContact
from constrained_sim.descriptions import CollisionElement
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, number

LEVEL = 0.05
"""Share of the robot's height within which the ends of limbs count as equally low."""


ROOT = 1
"""Joint that carries the floating base."""

FRICTION = 0.8
"""Coulomb coefficient of contacts on geometry that has none of its own."""


class Feet(NamedTuple):
    """Where a robot touches the ground.

    Attributes:
        contacts: with the ground.
        assumed: links whose sole is assumed, because they have no collision geometry that can be read.
        origins: links that nobody has named and that touch the ground at their origin, for the same reason.
    """

    contacts: tuple[PointContact, ...]
    assumed: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class _End(NamedTuple):
    """The end of a limb: what could touch the ground there.

    Attributes:
        links: that carry the points, one name for each.
        frictions: Coulomb coefficients of the geometry that the points are of; None: it has none of its own.
        points: in the world.
        described: whether they are of collision geometry; else there is one, the origin of the lowest link.
    """

    links: tuple[str, ...]
    frictions: tuple[float | None, ...]
    points: Points
    described: bool

    @property
    def lowest(self) -> float:
        """Height of its lowest point [m]."""
        return float(self.points.heights.min())


def propose_contacts(robot: Robot, q: Any, friction: float | None = None) -> tuple[PointContact, ...]:
    """Return contact points on the limbs that reach lowest at `q`, at most four on each.

    The end of a limb is a joint that carries no other joint. Its points are those of its collision geometry: corners of
    boxes and meshes, the ends of capsules and of lying cylinders with their radius, the rim of standing ones. Where it
    has none, or a mesh cannot be found, it is the origin of its lowest link or frame. A foot is the end of a limb whose
    lowest point is within 5 % of the robot's height of the lowest of all. The points of one foot are in a plane, see
    :func:`~constrained_sim.bringup.sole.sole_of`.

    Of a robot without legs, as a cart, geometry of the floating base that touches as low as the feet is one more: a
    caster that is fixed to it. A free body without joints touches with its own geometry.

    Where all feet together are a line, on which nothing stands, those without collision geometry get a sole with the
    proportions of a human foot.

    Args:
        robot: the robot.
        q: (nq,) configuration in which its feet are below it, as soles lie on the ground.
        friction: Coulomb coefficient of all contacts; None: that of their geometry, 0.8 where it has none.

    Returns:
        contacts with the level ground, named after their link; with a number where a link has several.

    Raises:
        InvalidValue: no configuration of the robot, or a negative friction.
    """
    return with_friction(propose_feet(robot, q).contacts, friction)


def with_friction(contacts: tuple[PointContact, ...], friction: float | None) -> tuple[PointContact, ...]:
    """Return `contacts` with this Coulomb coefficient; None: as they are.

    Raises:
        InvalidValue: a negative friction.
    """
    if friction is None:
        return contacts
    number("friction", friction, 0.0)
    return tuple(replace(contact, friction=friction) for contact in contacts)


def propose_feet(robot: Robot, q: Any, links: Sequence[str] = ()) -> Feet:
    """Return what :func:`propose_contacts` returns, and where its soles are assumed.

    Args:
        robot: the robot.
        q: (nq,) configuration in which its feet are below it.
        links: links or frames that are its feet, each with its own sole: the origin where it has no collision geometry;
            none: the ends of limbs that reach lowest.

    Raises:
        InvalidValue: no configuration of the robot, or a link that is at rest in the world.
        UnknownName: a link or frame that does not exist.
    """
    q = checked_robot(robot).checked_configuration(q)
    dynamics = kinematics_at(robot, q)
    if links:
        named = [_named_end(robot, dynamics, link) for link in links]
        return Feet(_contacts(robot, dynamics, named, [_sole(robot, foot) for foot in named]))
    ends = [end for joint in limb_ends(robot) if (end := _end(robot, dynamics, joint))]
    lowest = min((end.lowest for end in ends), default=np.inf)
    height = max(float(dynamics.placements[1:, 3, 2].max()) - lowest, 1e-3)
    feet = [end for end in ends if end.lowest <= lowest + LEVEL * height]
    feet += _base(robot, dynamics, feet)
    if not feet:
        return Feet(())
    soles = [_sole(robot, foot) for foot in feet]
    if has_area(np.vstack([sole.places for sole in soles])):
        return Feet(_contacts(robot, dynamics, feet, soles), origins=_bare(feet))
    soles = [
        sole if foot.described else assumed_sole(foot.points, height) for foot, sole in zip(feet, soles, strict=True)
    ]
    return Feet(_contacts(robot, dynamics, feet, soles), assumed=_bare(feet))


def _bare(feet: Sequence[_End]) -> tuple[str, ...]:
    """Return the links of `feet` without collision geometry that can be read."""
    return tuple(foot.links[0] for foot in feet if not foot.described)


def _base(robot: Robot, dynamics: Dynamics, feet: Sequence[_End]) -> list[_End]:
    """Return the floating base, if it has geometry that touches the ground: alone, or as low as `feet` without legs."""
    if not robot.floating_base or _has_legs(robot, [foot.links[0] for foot in feet]):
        return []
    base = _geometry(robot, dynamics, _elements(robot, ROOT))
    if base is None or (feet and abs(base.lowest - min(foot.lowest for foot in feet)) > FLAT):
        return []
    return [base]


def _sole(robot: Robot, foot: _End) -> Sole:
    """Return the sole of a foot; the base stands level."""
    on_base = robot.floating_base and robot.link_placement(foot.links[0])[0] == ROOT
    return sole_of(foot.points, can_be_tilted=not on_base)


def limb_ends(robot: Robot) -> list[int]:
    """Return the joints that carry no other joint, free-flyer aside."""
    parents = set(robot.model.parents)
    first = 2 if robot.floating_base else 1
    return [joint for joint in range(first, robot.model.njoints) if joint not in parents]


def is_legged(robot: Robot, feet: Sequence[PointContact]) -> bool:
    """Return whether a robot seems to be one with legs, by the `feet` that are proposed for it.

    Two limbs or more leave its root link, each with two joints or more, and reach equally low: its legs.
    """
    return _has_legs(robot, [contact.link for contact in feet])


def _has_legs(robot: Robot, feet: Sequence[str]) -> bool:
    """Return whether links are the feet of legs."""
    branches = set()
    for link in feet:
        joint, _ = robot.link_placement(link)
        chain = [joint]
        while (joint := int(robot.model.parents[joint])) > (1 if robot.floating_base else 0):
            chain.append(joint)
        if len(chain) > 1:
            branches.add(chain[-1])
    return len(branches) > 1


def _end(robot: Robot, dynamics: Dynamics, joint: int) -> _End | None:
    """Return what could touch the ground of what `joint` carries; None where it carries no link."""
    if end := _geometry(robot, dynamics, _elements(robot, joint)):
        return end
    frames = [f for f in robot.model.frames if f.parentJoint == joint and f.type != pin.FrameType.SENSOR]
    origins = [_origin(robot, dynamics, f.name) for f in frames if robot.links.get(f.name)]
    return min(origins, key=lambda end: end.lowest, default=None)


def _named_end(robot: Robot, dynamics: Dynamics, link: str) -> _End:
    """Return what could touch the ground of one link or frame: its origin where it has no collision geometry.

    Raises:
        UnknownName: no such link or frame.
        InvalidValue: one that is at rest in the world.
    """
    if robot.link_placement(link)[0] == 0:
        raise InvalidValue("foot", link, "a link or frame that moves")
    elements = [element for element in robot.collision_elements if element.link == link]
    return _geometry(robot, dynamics, elements) or _origin(robot, dynamics, link)


def _origin(robot: Robot, dynamics: Dynamics, link: str) -> _End:
    """Return the origin of a link or frame."""
    joint, placement = robot.link_placement(link)
    place = dynamics.placement(joint).act(placement.translation)
    return _End((link,), (None,), Points(place[None], np.zeros(1)), described=False)


def _elements(robot: Robot, joint: int) -> list[CollisionElement]:
    """Return the collision geometry that `joint` carries."""
    return [element for element in robot.collision_elements if robot.link_placement(element.link)[0] == joint]


def _geometry(robot: Robot, dynamics: Dynamics, elements: Sequence[CollisionElement]) -> _End | None:
    """Return what could touch the ground of collision geometry; None where there is none that can be loaded."""
    links: list[str] = []
    frictions: list[float | None] = []
    places, radii = [], []
    for shape in _shapes(robot, elements):
        placement = dynamics.placement(shape.joint)
        points, radius = _points(shape, placement)
        links += [shape.link] * len(points)
        frictions += [shape.friction] * len(points)
        places.append(points @ placement.rotation.T + placement.translation)
        radii.append(np.full(len(points), radius))
    if not links:
        return None
    balls = Points(np.vstack(places), np.concatenate(radii))
    return _End(tuple(links), tuple(frictions), balls, described=True)


def _shapes(robot: Robot, elements: Sequence[CollisionElement]) -> list[Shape]:
    """Return the shapes of elements of the description; nothing where one cannot be loaded."""
    try:
        return robot_shapes(replace(robot, collision_elements=tuple(elements))) if elements else []
    except ConstrainedSimError:
        return []


def _points(shape: Shape, placement: pin.SE3) -> tuple[Array, float]:
    """Return (n, 3) points [m], joint's frame, of a shape whose joint has this `placement`, and their radius [m]."""
    if not shape.is_cylinder:
        return shape.points, shape.radius
    axis = placement.rotation @ shape.placement.rotation[:, 2]
    if abs(axis[2]) < 0.5:
        return shape.cap_centers, float(shape.solid.radius)
    across = float(shape.solid.radius) * shape.placement.rotation[:, :2].T
    return np.array([rim + sign * way for rim in shape.cap_centers for way in across for sign in (1.0, -1.0)]), 0.0


def _contacts(
    robot: Robot, dynamics: Dynamics, feet: Sequence[_End], soles: Sequence[Sole]
) -> tuple[PointContact, ...]:
    """Return the points of the soles of feet as contacts."""
    found = [_foot_contacts(robot, dynamics, *pair) for pair in zip(feet, soles, strict=True)]
    return tuple(contact for of_foot in found for contact in of_foot)


def _foot_contacts(robot: Robot, dynamics: Dynamics, foot: _End, sole: Sole) -> list[PointContact]:
    """Return the points of the sole of a foot as contacts, with the friction of their geometry."""
    links = [foot.links[owner] for owner in sole.owners]
    counts: dict[str, int] = {}
    contacts = []
    for owner, link, place, radius in zip(sole.owners, links, sole.places, sole.radii, strict=True):
        counts[link] = counts.get(link, 0) + 1
        name = f"{link}_{counts[link]}" if links.count(link) > 1 else link
        joint, in_joint = robot.link_placement(link)
        point = (dynamics.placement(joint) * in_joint).actInv(place)
        rounded = tuple(round(float(value), 6) + 0.0 for value in point)
        own = foot.frictions[owner]
        friction = FRICTION if own is None else own
        contacts.append(PointContact(name, link, rounded, friction=friction, radius=round(float(radius), 6)))
    return contacts

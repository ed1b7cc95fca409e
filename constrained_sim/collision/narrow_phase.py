"""Where two convex bodies are near each other: a few points, each with its normal and its gap."""

from __future__ import annotations

from typing import Any, NamedTuple

import coal
import numpy as np
import pinocchio as pin

from constrained_sim.collision import manifold
from constrained_sim.collision.shapes import LEVEL, Face, Feature, Line, Shape
from constrained_sim.contact.features import PARALLEL, NormalOwner
from constrained_sim.validation import Array

MISSED = 1e-6
"""[m] by which the nearest point of a patch may be farther than the bodies are."""


class ContactPoint(NamedTuple):
    """Where two bodies are near, world frame.

    Attributes:
        one: feature of the first body; of a face any point of it.
        two: of the second body.
        normal: (3,) unit, from the second body to the first.
        gap: [m]; negative where they penetrate.
        normal_owner: what the normal follows as the bodies move.
    """

    one: Feature
    two: Feature
    normal: Array
    gap: float
    normal_owner: NormalOwner = NormalOwner.SECOND


def contact_request(margin: float = 0.0) -> Any:
    """Return what is asked of coal: one point of contact, of bodies up to a gap of the `margin` [m]."""
    request = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, 1)
    request.security_margin = margin
    return request


def collide(first: Shape, here: Array, second: Shape, there: Array, request: Any) -> Any:
    """Return coal's result, with one contact; None: the bodies are farther apart than the request's margin.

    Arguments are those of :func:`find_contact_points`.
    """
    result = coal.CollisionResult()
    places = first.in_world(here), second.in_world(there)
    return result if coal.collide(first.solid, places[0], second.solid, places[1], request, result) else None


def find_contact_points(first: Shape, here: Array, second: Shape, there: Array, request: Any) -> list[ContactPoint]:
    """Return where two convex bodies are near, :data:`~constrained_sim.collision.manifold.MOST_POINTS` points at most.

    Args:
        first: a body.
        here: (4, 3) placement of its joint: columns of the rotation, then the translation.
        second: a body.
        there: (4, 3) placement of its joint.
        request: see :func:`contact_request`; its margin is the largest gap [m].
    """
    margin = request.security_margin
    if first.is_ball or second.is_ball:
        exact = _ball_point(first, here, second, there)
        if exact is not None:
            return [exact] if exact.gap <= margin else []
    result = collide(first, here, second, there, request)
    if result is None:
        return []
    nearest = result.getContact(0)
    gap = float(nearest.penetration_depth)
    normal = _parting(first, here, second, there, -np.array(nearest.normal), gap)
    contact_points = _face_points(first, here, second, there, normal, margin)
    contact_points = contact_points or _line_points(first, here, second, there, normal, margin)
    if min((contact_point.gap for contact_point in contact_points), default=np.inf) <= gap + MISSED:
        return contact_points
    contact_points.sort(key=lambda contact_point: contact_point.gap)
    # Cut at an edge, a rounded hull may have its nearest point between those of the patch.
    touching = np.array(nearest.getNearestPoint1()), np.array(nearest.getNearestPoint2())
    features = first.feature(touching[0], -normal, here), second.feature(touching[1], normal, there)
    deepest = _contact_point(*features, touching, normal, gap)
    return [deepest, *contact_points[: manifold.MOST_POINTS - 1]]


def _parting(first: Shape, here: Array, second: Shape, there: Array, normal: Array, gap: float) -> Array:
    """Return the direction (3,) of least distance: `normal` (3,), unless bodies are not `gap` [m] apart along it.

    Where bodies just touch, coal knows how near they are, but of faces above each other not along what. Convex bodies
    are as far apart as along the direction that parts them most; there it is the normal of a face.
    """

    def apart(directions: Array) -> Array:
        reach = first.extents(-directions @ here[:3].T) - here[3] @ directions.T
        return -(reach + second.extents(directions @ there[:3].T) + there[3] @ directions.T)

    if apart(normal[None])[0] >= gap - MISSED:
        return normal
    candidates = np.vstack([normal, second.normals @ there[:3], -first.normals @ here[:3]])
    return np.asarray(candidates[np.argmax(apart(candidates))])


def _contact_point(
    one: Feature, two: Feature, touching: tuple[Array, Array], normal: Array, gap: float
) -> ContactPoint:
    """Return where two features are nearest: at the points `touching` (3,), with `normal` (3,) and `gap` [m]."""
    if two.is_flat or one.is_flat:
        return ContactPoint(one, two, normal, gap, NormalOwner.SECOND if two.is_flat else NormalOwner.FIRST)
    if not any(
        feature.radius and not feature.line.any() for feature in (one, two)
    ):  # only a ball is followed around a rim
        one, two = one.tangent(touching[0]), two.tangent(touching[1])
    crossing = np.cross(one.line, two.line)
    if one.radius + two.radius > 0.0 or crossing @ crossing > PARALLEL:
        return ContactPoint(one, two, normal, gap, NormalOwner.BOTH)
    return ContactPoint(one, two, normal, gap)  # a corner on a corner or an edge: any normal between them would do


def _face_points(
    first: Shape, here: Array, second: Shape, there: Array, normal: Array, margin: float
) -> list[ContactPoint]:
    """Return where the points of one body are near a face of the other that looks along `normal` (3,); or none."""
    below, above = second.face_along(there[:3] @ normal), first.face_along(-here[:3] @ normal)
    if below is not None and (above is None or below.area >= above.area):
        below = below.placed(there)
        return [
            ContactPoint(feature, face, below.normal, gap) for feature, face, gap in _over(first, here, below, margin)
        ]
    if above is not None:
        above = above.placed(here)
        outwards = -above.normal
        return [
            ContactPoint(face, feature, outwards, gap, NormalOwner.FIRST)
            for feature, face, gap in _over(second, there, above, margin)
        ]
    return []


def _line_points(
    first: Shape, here: Array, second: Shape, there: Array, normal: Array, margin: float
) -> list[ContactPoint]:
    """Return where two lines beside each other are near: at both ends of what they share; or none.

    An end is a point that stays where it is on its line, near the other line as a whole.
    """
    one, two = _line(first, here, -normal), _line(second, there, normal)
    if one is None or two is None or np.linalg.norm(np.cross(one.direction, two.direction)) > LEVEL:
        return []
    ends = np.concatenate([one.ends, two.ends])
    places = ends @ two.direction
    low, high = max(places[:2].min(), places[2:].min()), min(places[:2].max(), places[2:].max())
    if high - low <= manifold.SAME:
        return []
    contact_points = []
    for place in (low, high):
        index = int(np.argmin(np.abs(places - place)))
        end = ends[index]
        if index < 2:
            features = Feature(end, one.radius), Feature(two.beside(end), two.radius, two.direction)
        else:
            features = Feature(one.beside(end), one.radius, one.direction), Feature(end, two.radius)
        contact_points.append(_between(*features, normal))
    return [contact_point for contact_point in contact_points if contact_point.gap <= margin]


def _between(one: Feature, two: Feature, normal: Array) -> ContactPoint:
    """Return the contact point of two features; what has no radius, or coincides, touches along `normal` (3,)."""
    arm, radii = one.point - two.point, one.radius + two.radius
    distance = float(np.linalg.norm(arm))
    if radii == 0.0 or distance <= manifold.SAME:
        return ContactPoint(one, two, normal, float(arm @ normal) - radii)
    return ContactPoint(one, two, arm / distance, distance - radii, NormalOwner.BOTH)


def _line(shape: Shape, placement: Array, direction: Array) -> Line | None:
    """Return the line of a shape that is farthest along `direction` (3,), world frame; None unless it is one."""
    line = shape.line_along(placement[:3] @ direction)
    return None if line is None else Line(line.ends @ placement[:3] + placement[3], line.radius)


def _over(shape: Shape, placement: Array, face: Face, margin: float) -> list[tuple[Feature, Feature, float]]:
    """Return the features of a shape over a face, the points of the face below them, and their gaps [m]."""
    normal, radius = face.normal, shape.radius
    points = shape.towards(placement[:3] @ -normal) @ placement[:3] + placement[3]
    touching, gaps = manifold.over_face(points, radius, face.corners, normal, margin)
    below = touching - (gaps + radius)[:, None] * normal
    return list(zip(shape.features(touching, -normal, placement), map(Feature, below), gaps.tolist(), strict=True))


def _ball_point(first: Shape, here: Array, second: Shape, there: Array) -> ContactPoint | None:
    """Return where a sphere is nearest to a sphere or a box, in closed form; None: other shapes."""
    swap = not first.is_ball
    ball, its, body, other = (second, there, first, here) if swap else (first, here, second, there)
    centre = ball.centre @ its[:3] + its[3]
    frame = pin.SE3(other[:3].T.copy(), other[3].copy()) * body.placement
    if body.is_ball:
        nearest, normal, distance = _on_ball(centre, frame.translation, body.radius)
    elif isinstance(body.solid, coal.Box):
        nearest, normal, distance = _on_box(frame.actInv(centre), body.box[1])
        nearest, normal = frame.act(nearest), frame.rotation @ normal
    else:
        return None
    round_feature, other_feature, gap = (
        Feature(centre, ball.radius),
        body.feature(nearest, normal, other),
        distance - ball.radius,
    )
    if swap:
        return _contact_point(other_feature, round_feature, (nearest, nearest), -normal, gap)
    return _contact_point(round_feature, other_feature, (nearest, nearest), normal, gap)


def _on_ball(point: Array, centre: Array, radius: float) -> tuple[Array, Array, float]:
    """Return the nearest point of a sphere, its outward normal and the signed distance."""
    arm = point - centre
    length = float(np.linalg.norm(arm))
    normal = arm / length if length > manifold.SAME else np.array([0.0, 0.0, 1.0])
    return centre + radius * normal, normal, length - radius


def _on_box(point: Array, half: Array) -> tuple[Array, Array, float]:
    """Return the nearest point of a box about the origin, its outward normal and the signed distance."""
    nearest = np.clip(point, -half, half)
    distance = float(np.linalg.norm(point - nearest))
    depths = half - np.abs(point)
    # On the surface the direction is lost, but not its axis.
    if distance > manifold.SAME:
        return nearest, (point - nearest) / distance, distance
    axis = int(np.argmin(depths))
    normal = np.zeros(3)
    normal[axis] = np.copysign(1.0, point[axis])
    nearest[axis] = normal[axis] * half[axis]
    return nearest, normal, -float(depths[axis])

"""Contact points of two convex bodies: a few points, each with its normal and its gap."""

from __future__ import annotations

from typing import Any, NamedTuple

import coal
import numpy as np
import pinocchio as pin

from constrained_sim.collision import manifold
from constrained_sim.collision.nearest import DISTANCE_ERROR, Nearest, find_nearest
from constrained_sim.collision.placed_shape import PlacedShape
from constrained_sim.collision.rims import may_lie
from constrained_sim.collision.shape_features import Face, Feature
from constrained_sim.collision.shapes import LEVEL
from constrained_sim.contact.features import PARALLEL, NormalOwner
from constrained_sim.validation import Array


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


class SearchRange(NamedTuple):
    """How far apart bodies may be, and how far ahead their motion is foreseen, where contact points are looked for.

    Attributes:
        request: to coal, see :func:`~constrained_sim.collision.nearest.contact_request`.
        horizon: time by which points that approach a face count as nearer [s].
        lookahead: time within which features may pass each other, and a rim may come to lie on a face [s].
        gravity: magnitude [m/s^2], with which a rim falls.
    """

    request: Any
    horizon: float
    lookahead: float
    gravity: float

    @property
    def margin(self) -> float:
        """Largest gap of a contact point [m]."""
        return float(self.request.security_margin)


def find_contact_points(first: PlacedShape, second: PlacedShape, within: SearchRange) -> list[ContactPoint]:
    """Return where two convex bodies are near, :data:`~constrained_sim.collision.manifold.MOST_POINTS` points at most.

    Args:
        first: a body.
        second: the other one.
        within: how near, and how soon.
    """
    margin = within.margin
    if first.shape.is_ball or second.shape.is_ball:
        exact = _ball_point(first, second)
        if exact is not None:
            return [exact] if exact.gap <= margin else []
    nearest = find_nearest(first, second, within.request)
    if nearest is None:
        return []
    normal = nearest.normal
    contact_points = _face_points(first, second, normal, within) or _line_points(first, second, normal, margin)
    if min((contact_point.gap for contact_point in contact_points), default=np.inf) <= nearest.gap + DISTANCE_ERROR:
        return contact_points
    contact_points.sort(key=lambda contact_point: contact_point.gap)
    # Cut at an edge, a rounded hull may have its nearest point between those of the patch.
    features = first.feature(nearest.points[0], -normal), second.feature(nearest.points[1], normal)
    deepest = _contact_point(*features, nearest)
    return [deepest, *contact_points[: manifold.MOST_POINTS - 1]]


def _contact_point(one: Feature, two: Feature, nearest: Nearest) -> ContactPoint:
    """Return where two features are `nearest` to each other."""
    touching, normal, gap = nearest
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


def _face_points(first: PlacedShape, second: PlacedShape, normal: Array, within: SearchRange) -> list[ContactPoint]:
    """Return where the points of one body are near a face of the other that looks along `normal` (3,); or none."""
    below, above = second.face_along(normal), first.face_along(-normal)
    if below is not None and (above is None or below.area >= above.area):
        below = below.placed(second.placement)
        return [
            ContactPoint(feature, face, below.normal, gap) for feature, face, gap in _over(first, second, below, within)
        ]
    if above is not None:
        above = above.placed(first.placement)
        outwards = -above.normal
        return [
            ContactPoint(face, feature, outwards, gap, NormalOwner.FIRST)
            for feature, face, gap in _over(second, first, above, within)
        ]
    return []


def _line_points(first: PlacedShape, second: PlacedShape, normal: Array, margin: float) -> list[ContactPoint]:
    """Return where two lines beside each other are near: at both ends of what they share; or none.

    An end is a point that stays where it is on its line, near the other line as a whole.
    """
    one, two = first.line_along(-normal), second.line_along(normal)
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


def _over(
    body: PlacedShape, other: PlacedShape, face: Face, within: SearchRange
) -> list[tuple[Feature, Feature, float]]:
    """Return the features of a body over a face of another one, the points of the face below them, and their gaps [m].

    Args:
        body: what is near the face.
        other: whose face it is.
        face: world frame.
        within: how near, and how soon.
    """
    normal, radius = face.normal, body.shape.radius
    cloud = body.shape.towards(body.rotation @ -normal), *body.motion
    reach = within.margin, within.horizon
    touching, gaps = manifold.over_face(cloud, radius, (face.corners, normal), other.motion, reach)
    below = touching - (gaps + radius)[:, None] * normal
    lies_soon = body.shape.is_cylinder and _may_come_to_lie(body, other, face, within)
    features = list(map(Feature, touching)) if lies_soon else body.features(touching, -normal)
    return list(zip(features, map(Feature, below), gaps.tolist(), strict=True))


def _may_come_to_lie(cylinder: PlacedShape, other: PlacedShape, face: Face, within: SearchRange) -> bool:
    """Return whether a cylinder's end cap may soon lie on a face of another body, see :func:`_over`."""
    ends, height = cylinder.rim_ends(-face.normal), float((cylinder.position - face.corners[0]) @ face.normal)
    twist = manifold.relative_twist(cylinder.motion, other.motion)
    return bool(may_lie(ends, face.normal, height, twist, within.lookahead, within.gravity))


def _ball_point(first: PlacedShape, second: PlacedShape) -> ContactPoint | None:
    """Return where a sphere is nearest to a sphere or a box, in closed form; None: other shapes."""
    swap = not first.shape.is_ball
    ball, body = (second, first) if swap else (first, second)
    radius = body.shape.radius
    centre = ball.centre
    frame = pin.SE3(body.rotation.T.copy(), body.position.copy()) * body.shape.placement
    if body.shape.is_ball:
        nearest, normal, distance = _on_ball(centre, frame.translation, radius)
    elif isinstance(body.shape.solid, coal.Box):
        nearest, normal, distance = _on_box(frame.actInv(centre), body.shape.box[1])
        nearest, normal = frame.act(nearest), frame.rotation @ normal
    else:
        return None
    round_feature, other_feature = Feature(centre, ball.shape.radius), body.feature(nearest, normal)
    gap = distance - ball.shape.radius
    if swap:
        return _contact_point(other_feature, round_feature, Nearest((nearest, nearest), -normal, gap))
    return _contact_point(round_feature, other_feature, Nearest((nearest, nearest), normal, gap))


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

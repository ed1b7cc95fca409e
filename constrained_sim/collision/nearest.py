"""Where two convex bodies are nearest to each other, by coal's GJK and EPA; what these get wrong is found and mended.

The distance of convex bodies is that along the direction which parts them most: any direction gives a bound of it from
below. Where bodies just touch or overlap, EPA now and then returns the depth of a whole body, along a wrong way, which
such a bound refutes; or it knows how far, but not along what. Then the bodies are asked again a little apart, and less
and less, where GJK alone finds what is nearest.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import coal
import numpy as np

from constrained_sim.collision.placed_shape import PlacedShape
from constrained_sim.validation import Array

DISTANCE_ERROR = 1e-6
"""[m] to which a distance is known: ten times the tolerance of GJK and EPA."""

TOLERANCE = 1e-7
"""[m] Tolerance of GJK and EPA: at coal's own, 1e-6, normals of rounded bodies are off by 1e-4."""

NO_DIRECTION = 1e-9
"""Length [m], or length of a product of unit vectors, below which a vector has no direction."""

CLEARANCES = 0.1, 1e-2, 1e-3, 1e-4, 1e-5
"""Shares of the smaller body by which two that are asked again are apart, one after the other: what is nearest there
is nearest where they touch but for the direction, by what is left of that share."""


class Nearest(NamedTuple):
    """What of two bodies is nearest to the other one, world frame.

    Attributes:
        points: (3,) of the first body and (3,) of the second [m].
        normal: (3,) unit, from the second body to the first.
        gap: [m]; negative where they overlap.
    """

    points: tuple[Array, Array]
    normal: Array
    gap: float


def contact_request(margin: float = 0.0) -> Any:
    """Return what is asked of coal: one point of contact, of bodies up to a gap of the `margin` [m]."""
    request = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, 1)
    request.security_margin = margin
    request.gjk_tolerance = request.epa_tolerance = TOLERANCE
    return request


def find_nearest(first: PlacedShape, second: PlacedShape, request: Any) -> Nearest | None:
    """Return what is nearest; None: the bodies are farther apart than the request's margin."""
    found = _ask(first, second, request)
    if found is None:
        return None
    along = _distances(first, second, found.normal[None])[0]
    if along >= found.gap - DISTANCE_ERROR and found.gap >= -DISTANCE_ERROR:
        return found
    candidates = np.vstack([found.normal, *_directions(first, second)])
    distances = np.nan_to_num(_distances(first, second, candidates), nan=-np.inf)
    best = int(np.argmax(distances))
    if abs(found.gap - distances[best]) <= DISTANCE_ERROR and (best == 0 or abs(found.gap) <= DISTANCE_ERROR):
        return found._replace(normal=candidates[best])  # of what just touches, the points are right in any case
    return _ask_apart(first, second, candidates[best], float(distances[best]))


def _ask(first: PlacedShape, second: PlacedShape, request: Any) -> Nearest | None:
    """Return what coal says."""
    result = coal.CollisionResult()
    places = first.shape.in_world(first.placement), second.shape.in_world(second.placement)
    solids = first.shape.solid, second.shape.solid
    if not coal.collide(solids[0], places[0], solids[1], places[1], request, result):
        return None
    contact = result.getContact(0)
    points = np.array(contact.getNearestPoint1()), np.array(contact.getNearestPoint2())
    return Nearest(points, -np.array(contact.normal), float(contact.penetration_depth))


def _ask_apart(first: PlacedShape, second: PlacedShape, normal: Array, distance: float) -> Nearest:
    """Return what is nearest, found where the first body is moved away.

    Args:
        first: a body.
        second: the other one.
        normal: (3,) unit, along which they are `distance` apart: the first direction in which it is moved.
        distance: [m].
    """
    found = Nearest((first.farthest(-normal), second.farthest(normal)), normal, distance)
    for share in CLEARANCES:
        clear = share * min(first.shape.bound, second.shape.bound)
        way = (clear - found.gap) * found.normal
        apart = _ask(first.moved(way), second, contact_request(2.0 * clear + max(-found.gap, 0.0)))
        if apart is None:
            break
        along = float(_distances(first, second, apart.normal[None])[0])
        if along >= found.gap - DISTANCE_ERROR:
            found = found._replace(normal=apart.normal, gap=along)
        found = found._replace(points=(apart.points[0] - way, apart.points[1]))
    return found


def _distances(first: PlacedShape, second: PlacedShape, directions: Array) -> Array:
    """Return (m,) how far the bodies are apart along unit `directions` (m, 3) from the second to the first [m]."""
    return -(first.extents(-directions) + second.extents(directions))


def _directions(first: PlacedShape, second: PlacedShape) -> list[Array]:
    """Return unit directions (3,) from the second body to the first that may part them most.

    Normals of faces; what is across an edge or axis of either; from centre to centre, as a whole and across these axes.
    """
    arm = first.centre - second.centre
    across = [np.cross(one, two) for one, two in itertools.product(first.edges, second.edges)]
    beside = [arm, *(arm - axis * (axis @ arm) for axis in (*first.edges, *second.edges))]
    others = [(vector, float(np.linalg.norm(vector))) for vector in (*across, *(-vector for vector in across), *beside)]
    units = [vector / length for vector, length in others if length > NO_DIRECTION]
    return [*second.normals, *-first.normals, *units]

"""Compiled kernels of collision detection: pairs that may be near, points near a plane, and patches of two bodies.

Bodies are convex: the hull of points, grown by a radius. Points are in the frame of the joint that carries them, and
``placements`` is that of :class:`~constrained_sim.dynamics.dynamics.Dynamics`: (njoints, 4, 3), columns of the
rotation, then the translation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.validation import Array

FEWEST, ENOUGH, MOST_POINTS = 4, 8, 24
"""Contact points of one pair of bodies: as many as there are up to the first; of a body at rest; at most."""

SHARE, FINE = 0.01, 1e-3
"""By how much a point of a body at rest, or of one that rolls, may be outside the outline of those that are taken,
relative to the size of the patch."""

BAND = 2e-3
"""[m] beyond the nearest point of a body within which its points are taken: what may touch in one step."""

NEAR = 2e-5
"""[m] beyond the nearest point of a body: what forces may close within a step, though it does not approach yet."""

SAME = 1e-9
"""[m] Distance below which two points of a patch are one."""

EQUAL = 1e-9
"""Relative difference that rounding may make."""


@kernel
def spread(points, gaps, normal):
    """Return which of `points` (n, 3) keep the area that supports, ascending, for a unit `normal` (3,).

    Corners of the outline of what touches, up to :data:`ENOUGH`: what rests on some points rests on them in the next
    step too, whatever rounding does to gaps. Where more of what is as near is outside that outline, the body may roll
    over all of it within a step, hence all corners of the larger outline. Where these are too few, the points that span
    the largest area.
    """
    count = points.shape[0]
    if count <= FEWEST:
        return np.arange(count)
    lowest = gaps.min()
    touches, is_near = gaps <= max(lowest, 0.0) + TOUCHING, gaps <= max(lowest, 0.0) + NEAR
    flat = points - np.outer(points @ normal, normal)
    taken = np.zeros(count, dtype=np.bool_)
    if lowest < -TOUCHING:
        taken[np.argmin(gaps)] = True
    else:
        arms = flat - flat[touches].sum(axis=0) / touches.sum()
        taken[_largest(np.sqrt((arms * arms).sum(axis=1)), touches, -1.0)] = True
    span = flat - flat[0]
    size = np.sqrt((span * span).sum(axis=1).max())
    _surround(flat, taken, normal, touches, ENOUGH, SHARE * size)
    _surround(flat, taken, normal, is_near & ~touches, MOST_POINTS, SAME)
    if (taken & ~touches).any():
        _surround(flat, taken, normal, is_near, MOST_POINTS, FINE * size)
    _surround(flat, taken, normal, ~is_near, FEWEST, SAME)
    return np.flatnonzero(taken)


@kernel
def _surround(flat, taken, normal, allowed, most, least):
    """Take of what is `allowed` what is farthest outside the outline of those `taken`, by more than `least` [m].

    One after the other, up to `most` in all; for the first :data:`FEWEST` any distance will do.
    """
    for count in range(taken.sum(), most):
        outside = _outside(flat, taken, normal)
        farthest = _largest(outside, allowed, SAME if count < FEWEST else least)
        if farthest < 0:
            break
        taken[farthest] = True


@kernel
def _largest(values, allowed, least):
    """Return where `values` are largest of what is `allowed`, first of what is equal; -1 if none is above `least`."""
    best = -1
    for i in range(values.shape[0]):
        if allowed[i] and values[i] > least:
            best, least = i, values[i] + EQUAL * abs(values[i])
    return best


@kernel
def _outside(flat, taken, normal):
    """Return (n,) by how much each of `flat` (n, 3) is outside the outline of those that are `taken` [m]."""
    corners = flat[taken]
    arms = flat - corners[0]
    if corners.shape[0] == 1:
        return np.sqrt((arms * arms).sum(axis=1))
    corners = corners[outline(corners, normal)]
    outside = np.full(flat.shape[0], -np.inf)
    for i in range(corners.shape[0]):
        edge = corners[i] - corners[i - 1]
        outwards = np.cross(edge, normal) / np.sqrt(edge @ edge)
        outside = np.maximum(outside, (flat - corners[i]) @ outwards)
    return outside


class ShapePoints(NamedTuple):
    """The points of s shapes by which they touch planes.

    Attributes:
        points: (n, 3) of all shapes [m], joints' frames.
        starts: (s + 1,) where those of each shape begin.
        joints: (s,) that carry them.
        radii: (n,) of the balls about the points [m].
        centres: (s, 3) of the shapes' bounding spheres [m], joints' frames.
        bounds: (s,) radii of these [m].
    """

    points: Array
    starts: npt.NDArray[np.int64]
    joints: npt.NDArray[np.int64]
    radii: Array
    centres: Array
    bounds: Array


@kernel
def near_plane(shapes, placements, velocities, normal, offset, margin, horizon):
    """Return where shapes are near a plane: (s, 24) places in their points, -1 where there is none, and their gaps [m].

    Args:
        shapes: the :class:`ShapePoints` of all of them.
        placements: of the joints.
        velocities: (njoints, 2, 3) linear and angular, in the joints' axes.
        normal: (3,) of the plane, world frame.
        offset: of the plane [m].
        margin: gap up to which points are taken [m].
        horizon: time by which points that approach count as nearer [s].
    """
    points, starts, joints, radii, centres, bounds = shapes
    places = np.full((len(joints), MOST_POINTS), -1)
    found = np.zeros((len(joints), MOST_POINTS))
    for s in range(len(joints)):
        joint = joints[s]
        local = placements[joint, :3] @ normal
        height = placements[joint, 3] @ normal - offset
        if centres[s] @ local + height > bounds[s] + margin:
            continue
        own = points[starts[s] : starts[s + 1]]
        gaps = own @ local + (height - radii[starts[s] : starts[s + 1]])
        soon = gaps
        if horizon > 0.0:
            speed = own @ np.cross(local, velocities[joint, 1]) + velocities[joint, 0] @ local
            soon = gaps + horizon * np.minimum(speed, 0.0)
        near = np.flatnonzero(soon <= min(margin, max(soon.min(), 0.0) + BAND))
        chosen = near[spread(own[near], soon[near], local)]
        places[s, : len(chosen)] = starts[s] + chosen
        found[s, : len(chosen)] = gaps[chosen]
    return places, found


@kernel
def near_pairs(pairs, joints, rotations, centres, halves, placements, margin):
    """Return (p,) whether the world's axis-aligned boxes around two shapes, grown by `margin` [m], overlap.

    Args:
        pairs: (p, 2) shapes.
        joints: (s,) that carry the shapes.
        rotations: (s, 3, 3) axes of their own bounding boxes in the joints' frames.
        centres: (s, 3) of these boxes [m], joints' frames.
        halves: (s, 3) half their edges [m].
        placements: of the joints.
        margin: [m].
    """
    count = len(joints)
    middles, extents = np.empty((count, 3)), np.empty((count, 3))
    for s in range(count):
        columns = placements[joints[s], :3]
        middles[s] = centres[s] @ columns + placements[joints[s], 3]
        extents[s] = np.abs(columns.T @ rotations[s]) @ halves[s]
    near = np.empty(len(pairs), dtype=np.bool_)
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        near[p] = True
        for axis in range(3):
            reach = extents[i, axis] + extents[j, axis] + margin
            near[p] &= abs(middles[i, axis] - middles[j, axis]) <= reach
    return near


@kernel
def outline(points, normal):
    """Return which of `points` (n, 3) are the corners of their hull seen along `normal`, counter-clockwise around it.

    Gift wrapping; of points in a line the two ends.
    """
    least = np.argmin(np.abs(normal))
    t1 = -normal[least] * normal
    t1[least] += 1.0
    t1 /= np.sqrt(t1 @ t1)
    t2 = np.cross(normal, t1)
    x, y = points @ t1, points @ t2
    start = 0
    for i in range(len(x)):
        if x[i] < x[start] - SAME or (x[i] <= x[start] + SAME and y[i] < y[start]):
            start = i
    corners = np.empty(len(x), dtype=np.int64)
    count, at = 0, start
    while count < len(x):
        corners[count] = at
        count += 1
        ahead = -1
        for i in range(len(x)):
            dx, dy = x[i] - x[at], y[i] - y[at]
            length = np.hypot(dx, dy)
            if length <= SAME:
                continue
            if ahead < 0:
                ahead = i
                continue
            ex, ey = x[ahead] - x[at], y[ahead] - y[at]
            turn, other = ex * dy - ey * dx, np.hypot(ex, ey)
            if turn < -SAME * other or (turn <= SAME * other and length > other):
                ahead = i
        if ahead < 0 or np.hypot(x[ahead] - x[start], y[ahead] - y[start]) <= SAME:
            break
        at = ahead
    return corners[:count]


@kernel
def clip(polygon, face, normal):
    """Return the part of `polygon` (k, 3) over `face` (m, 3), which is counter-clockwise around `normal`.

    Sutherland and Hodgman, Reentrant polygon clipping, 1974. Points and segments are polygons too.
    """
    for i in range(len(face)):
        sides = _inside_edge(polygon, face, i, normal)
        kept = np.empty((2 * len(polygon), 3))
        count = 0
        for j in range(len(polygon)):
            here, before = sides[j], sides[j - 1]
            if (here < -SAME and before > SAME) or (here > SAME and before < -SAME):
                kept[count] = polygon[j - 1] + before / (before - here) * (polygon[j] - polygon[j - 1])
                count += 1
            if here >= -SAME:
                kept[count] = polygon[j]
                count += 1
        polygon = kept[:count].copy()
        if count == 0:
            break
    return polygon


@kernel
def relative_twist(one, two):
    """Return (2, 3) velocity of the first joint's origin and of its turning, as seen from the second; world axes.

    Args:
        one: of a joint the placement (4, 3) and the velocities (2, 3), linear and angular, in its axes.
        two: those of another joint.
    """
    (here, own), (there, other) = one, two
    twist = own @ here[:3] - other @ there[:3]
    twist[0] -= np.cross(other[1] @ there[:3], here[3] - there[3])
    return twist


@kernel
def extents(points, radius, placement, directions):
    """Return (m,) how far a body reaches along unit `directions` (m, 3), world axes, from the world's origin [m].

    Args:
        points: (n, 3) whose hull, grown by the radius, it is [m].
        radius: [m].
        placement: (4, 3) of its joint.
        directions: (m, 3).
    """
    reaches = np.empty(len(directions))
    for i in range(len(directions)):
        along = placement[:3] @ directions[i]
        reaches[i] = (points @ along).max() + radius + placement[3] @ directions[i]
    return reaches


@kernel
def largest_aligned(normals, sizes, direction, cosine):
    """Return which facet is the largest of those whose normals (f, 3) are within an angle of a `direction`; -1: none.

    Args:
        normals: (f, 3) unit.
        sizes: (f,).
        direction: (3,) unit.
        cosine: of the angle.
    """
    best = -1
    for i in range(len(normals)):
        if normals[i] @ direction >= cosine and (best < 0 or sizes[i] > sizes[best]):
            best = i
    return best


@kernel
def _is_over(points, face, normal):
    """Return (k,) which of `points` (k, 3) are over `face` (m, 3), which is counter-clockwise around `normal`."""
    is_over = np.ones(len(points), dtype=np.bool_)
    for i in range(len(face)):
        is_over &= _inside_edge(points, face, i, normal) >= -SAME
    return is_over


@kernel
def _inside_edge(points, face, i, normal):
    """Return (k,) how far `points` (k, 3) are on the inner side of edge i of a `face`, see :func:`clip` [m]."""
    inwards = np.cross(normal, face[(i + 1) % len(face)] - face[i])
    return (points - face[i]) @ (inwards / np.sqrt(inwards @ inwards))


@kernel
def over_face(body, radius, face, other, reach):
    """Return some points (n, 3) [m] of a body over a face, and their gaps (n,) [m].

    What is within a band of the nearest point, and its outline cut by the face: on a straight line between two points
    of the body, hence in it. Near are points that soon will be, as near a plane.

    Args:
        body: points (n, 3) whose hull, grown by the radius, it is [m]; of its joint the placement and the velocities.
        radius: [m].
        face: its corners (m, 3) [m], counter-clockwise around its outward normal (3,); world frame.
        other: placement and velocities of the joint that carries the face.
        reach: gap up to which points are taken [m]; time by which points that approach count as nearer [s].
    """
    (local, placement, velocity), (corners, normal), (margin, horizon) = body, face, reach
    points, origin = local @ placement[:3] + placement[3], placement[3]
    twist = relative_twist((placement, velocity), other)
    _, soon = _gaps(points, origin, radius, corners, normal, twist, horizon)
    low = points[soon <= max(soon.min(), 0.0) + BAND]
    patch = np.concatenate((clip(low[outline(low, normal)], corners, normal), low[_is_over(low, corners, normal)]))
    gaps, soon = _gaps(patch, origin, radius, corners, normal, twist, horizon)
    keep = np.ones(len(patch), dtype=np.bool_)
    for i in range(len(patch)):
        keep[i] = gaps[i] <= margin
        for j in range(i):
            apart = patch[i] - patch[j]
            keep[i] &= not keep[j] or apart @ apart > SAME * SAME
    patch, gaps, soon = patch[keep], gaps[keep], soon[keep]
    chosen = spread(patch, soon, normal)
    return patch[chosen], gaps[chosen]


@kernel
def _gaps(points, origin, radius, face, normal, twist, horizon):
    """Return the gaps (n,) of points [m] over a face, and those after `horizon` [s] of what approaches it."""
    gaps = (points - face[0]) @ normal - radius
    speeds = (points - origin) @ np.cross(normal, twist[1]) + twist[0] @ normal
    return gaps, gaps + horizon * np.minimum(speeds, 0.0)

"""Contact of two rounded bodies: its axes, gap and rows.

A body is, near a contact, a feature grown by a radius: a point, a line for what is curved in one direction only, or a
circle for the rim of a disc. Which way they face each other is up to the flat one of them, whose normal turns with it;
else the normal goes from feature to feature.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.kinematics import cross, fill_rows, point_positions
from constrained_sim.linalg.products import matvec
from constrained_sim.validation import Array, read_only

PARALLEL = 1e-6
"""Square of the sine of the angle between two lines up to which they count as parallel."""


UNDIRECTED = read_only(np.zeros((2, 3)))
"""Directions of two features that are points."""


class NormalOwner(IntEnum):
    """What the normal of a contact follows: a face of the first body, one of the second, or the features of both."""

    FIRST = 0
    SECOND = 1
    BOTH = 2


FIRST, SECOND, BOTH = (int(member) for member in NormalOwner)


class ContactFeatures(NamedTuple):
    """Two bodies at each of k contacts.

    Attributes:
        bodies: (k, 2) joints that carry them, 0 for the world.
        offsets: (k, 2, 3) points of their features in the joints' frames [m]; the middle of a circle, of a flat body
            any point of the face.
        radii: (k, 2) by which the features are grown [m]; of a flat body 0.
        normal_owner: (k,) see :class:`NormalOwner`.
        axes: (k, 3, 3) rows t1, t2, n of each contact as they were once, world axes: t1 is as near to that as the
            normal allows, and of crossing lines n tells the side.
        directions: (k, 2, 3) unit vectors in the joints' frames: along a line, the axis of a circle; of the face that
            a normal follows, that normal; else zero.
        rim_radii: (k, 2) radii of the circles [m]; 0 of all else. What faces a circle is a face, or a point.
    """

    bodies: npt.NDArray[np.int64]
    offsets: Array
    radii: Array
    normal_owner: npt.NDArray[np.int64]
    axes: Array
    directions: Array
    rim_radii: Array


class ContactGeometry(NamedTuple):
    """Where k contacts are, how far l one-sided rows are from their bounds, and how the rows of both move.

    Attributes:
        axes: (k, 3, 3) rows t1, t2, n of each contact, world axes.
        points: (k, 3) contact points [m], world frame.
        distances: (k,) of the contacts from their surfaces [m], negative where they penetrate.
        gaps: (k + l,) of the contacts and of the one-sided rows [m, rad], negative where they are violated; infinite
            of soft contacts, which have nothing to violate.
        J: (3 k + l, nv) rows [t1, t2, n] of each contact, then the one-sided rows.
        s: (3 k + l,) velocities of the rows [m/s, rad/s].
        normals: (k + l,) which rows open and close: the normal ones, and all one-sided ones.
    """

    axes: Array
    points: Array
    distances: Array
    gaps: Array
    J: Array
    s: Array
    normals: npt.NDArray[np.int64]

    @property
    def places(self) -> tuple[Array, Array, Array]:
        """Axes, points and distances."""
        return self.axes, self.points, self.distances

    @property
    def all_gaps(self) -> Array:
        """(k + l,) gaps of everything [m, rad], soft contacts too."""
        return np.concatenate([self.distances, self.gaps[len(self.distances) :]])

    @property
    def s_normal(self) -> Array:
        """(k + l,) velocities with which they open [m/s, rad/s]."""
        return self.s[self.normals]


@kernel
def contact_rows(features, pose, v, places, rows):
    """Find axes, points, gaps, rows and their velocities of contacts.

    The rate of the gap is the normal velocity of the body points that touch, whatever the shapes: so the normal row is
    the exact derivative of the gap.

    Args:
        features: the :class:`ContactFeatures` of k contacts.
        pose: placements of the joints, see :func:`~constrained_sim.dynamics.kinematics.point_positions`; their axes and
            what they carry, see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        v: (nv,) velocity.
        places: filled: axes (k, 3, 3), rows t1, t2, n, world axes, where n points from the second body to the first;
            contact points (k, 3) [m], on the first body, on the second if the first is flat; gaps (k,) [m].
        rows: filled: J (3 k, nv), and their velocities (3 k,) [m/s].
    """
    bodies, offsets, radii, normal_owner, first_axes, directions, rim_radii = features
    (placements, joint_axes, support), (axes, points, gaps), (J, s) = pose, places, rows
    first = point_positions(bodies[:, 0], offsets[:, 0], placements)
    second = point_positions(bodies[:, 1], offsets[:, 1], placements)
    for i in range(bodies.shape[0]):
        axes[i] = first_axes[i]
        if normal_owner[i] != BOTH and bodies[i, normal_owner[i]]:
            align_axes(axes[i], directions[i, normal_owner[i]] @ placements[bodies[i, normal_owner[i]], :3])
        if normal_owner[i] == BOTH or rim_radii[i].any():
            one = directions[i, 0] @ placements[bodies[i, 0], :3]
            two = directions[i, 1] @ placements[bodies[i, 1], :3]
            face_each_other(first[i], second[i], one, two, rim_radii[i], normal_owner[i], axes[i])
        n = axes[i, 2]
        gap = n[0] * first[i, 0] + n[1] * first[i, 1] + n[2] * first[i, 2] - radii[i, 0]
        gaps[i] = gap - (n[0] * second[i, 0] + n[1] * second[i, 1] + n[2] * second[i, 2]) - radii[i, 1]
        for axis in range(3):
            if normal_owner[i] == FIRST:
                points[i, axis] = second[i, axis] + radii[i, 1] * n[axis]
            else:
                points[i, axis] = first[i, axis] - radii[i, 0] * n[axis]
    levers = np.empty(bodies.shape[0])
    for i in range(bodies.shape[0]):
        levers[i] = radii[i, 0] + radii[i, 1] + rim_radii[i, 0] + rim_radii[i, 1]
        for axis in range(3):
            levers[i] += abs(offsets[i, 0, axis]) + abs(placements[bodies[i, 0], 3, axis])
            levers[i] += abs(offsets[i, 1, axis]) + abs(placements[bodies[i, 1], 3, axis])
    fill_rows(bodies[:, 0], points, levers, axes, joint_axes, support, J)
    other = np.empty((3, v.shape[0]))
    for i in range(bodies.shape[0]):
        if bodies[i, 1]:
            own, one = J[3 * i : 3 * i + 3], slice(i, i + 1)
            fill_rows(bodies[one, 1], points[one], levers[one], axes[one], joint_axes, support, other)
            own -= other
            for j in range(support.shape[1]):
                if support[bodies[i, 0], j] and support[bodies[i, 1], j]:
                    own[:, j] = 0.0
    s[:] = matvec(J, v)


@kernel(inline=True)
def unit(vector):
    """Return a 3-vector of length 1."""
    return vector / np.sqrt(np.dot(vector, vector))


@kernel(inline=True)
def align_axes(axes, normal):
    """Turn `axes` (3, 3), rows t1, t2, n, to another unit `normal` (3,), in place: t1 is projected."""
    axes[0] = unit(axes[0] - np.dot(axes[0], normal) * normal)
    axes[1] = cross(normal, axes[0])
    axes[2] = normal


@kernel
def face_each_other(first, second, one, two, rim_radii, normal_owner, axes):
    """Move the points of two features to where these are nearest, and turn `axes` there unless a face says, in place.

    Args:
        first: (3,) point of the first feature [m], world frame.
        second: (3,) of the second [m].
        one: (3,) direction of the first, world axes.
        two: (3,) of the second.
        rim_radii: (2,) see :class:`ContactFeatures`.
        normal_owner: see :class:`NormalOwner`.
        axes: (3, 3) rows t1, t2, n.
    """
    if normal_owner == FIRST:
        second[:] = nearest_on_rim(second, two, rim_radii[1], axes[2])
    elif normal_owner == SECOND:
        first[:] = nearest_on_rim(first, one, rim_radii[0], -axes[2])
    elif rim_radii.any():
        first[:] = nearest_on_rim(first, one, rim_radii[0], second - first)
        second[:] = nearest_on_rim(second, two, rim_radii[1], first - second)
        align_axes(axes, unit(first - second))
    else:
        align_axes(axes, normal_between(first, second, one, two, axes[2]))


@kernel(inline=True)
def nearest_on_rim(middle, axis, radius, towards):
    """Return the point (3,) of a circle that is farthest `towards` (3,); the middle where all are, or `radius` is 0."""
    out = towards - np.dot(axis, towards) * axis
    return middle + radius * unit(out) if radius and out.any() else middle


@kernel(inline=True)
def unless_parallel(one, two):
    """Return the direction `one` (3,) of a feature; zero, as of a point, beside a parallel line `two` (3,)."""
    cosine = np.dot(one, two)
    return np.zeros(3) if one.any() and two.any() and 1.0 - cosine * cosine <= PARALLEL else one


@kernel
def normal_between(first, second, one, two, side):
    """Return the unit normal (3,) between points or lines, and move the points to where these are nearest, in place.

    Args:
        first: (3,) point of the first feature [m].
        second: (3,) of the second [m].
        one: (3,) direction of the first feature; zero of a point.
        two: (3,) of the second.
        side: (3,) to which the normal of crossing lines points.
    """
    one = unless_parallel(one, two)
    cosine, arm = np.dot(one, two), first - second
    along, beside, sine = np.dot(one, arm), np.dot(two, arm), 1.0 - cosine * cosine
    first += (cosine * beside - along) / sine * one
    second += (beside - cosine * along) / sine * two
    if not (one.any() and two.any()):
        return unit(first - second)
    normal = unit(cross(one, two))
    return normal if np.dot(normal, side) >= 0.0 else -normal

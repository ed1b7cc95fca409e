"""Where two rounded bodies touch: the axes of their contact, its gap, its rows, and how all of them move.

A body is, near a contact, a core grown by a radius: a point, a line for what is curved in one direction only, or a
circle for the rim of a disc. Which way they face each other is up to the flat one of them, whose normal turns with it;
else the normal goes from core to core.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from constrained_sim.dynamics import BodyMotion, Dynamics
from constrained_sim.kinematics import cross, point_positions, row_jacobian
from constrained_sim.validation import Array, read_only

PARALLEL = 1e-6
"""Square of the sine of the angle between two lines up to which they count as parallel."""


UNDIRECTED = read_only(np.zeros((2, 3)))
"""Directions of two cores that are points."""


class NormalOf(IntEnum):
    """What the normal of a contact follows: a face of the first body, one of the second, or the cores of both."""

    FIRST = 0
    SECOND = 1
    BOTH = 2


FIRST, SECOND, BOTH = (int(member) for member in NormalOf)


class Cores(NamedTuple):
    """Two bodies at each of k contacts.

    Attributes:
        bodies: (k, 2) joints that carry them, 0 for the world.
        offsets: (k, 2, 3) points of their cores in the joints' frames [m]; the middle of a circle, of a flat body any
            point of the face.
        radii: (k, 2) by which the cores are grown [m]; of a flat body 0.
        facing: (k,) see :class:`NormalOf`.
        axes: (k, 3, 3) rows t1, t2, n of each contact as they were once, world axes: t1 is as near to that as the
            normal allows, and of crossing lines n tells the side.
        directions: (k, 2, 3) unit vectors in the joints' frames: along a line, the axis of a circle; of the face that
            a normal follows, that normal; else zero.
        rims: (k, 2) radii of the circles [m]; 0 of all else. What faces a circle is a face, or a point.
    """

    bodies: npt.NDArray[np.int64]
    offsets: Array
    radii: Array
    facing: npt.NDArray[np.int64]
    axes: Array
    directions: Array
    rims: Array


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
    def all_gaps(self) -> Array:
        """(k + l,) gaps of everything [m, rad], soft contacts too."""
        return np.concatenate([self.distances, self.gaps[len(self.distances) :]])

    @property
    def s_normal(self) -> Array:
        """(k + l,) velocities with which they open [m/s, rad/s]."""
        return self.s[self.normals]


@numba.njit(cache=True)
def contact_rows(  # type: ignore[no-untyped-def]
    bodies,
    offsets,
    radii,
    facing,
    first_axes,
    directions,
    rims,
    placements,
    joint_axes,
    support,
    v,
    axes,
    points,
    gaps,
    J,
    s,
):
    """Find axes, points, gaps, rows and their velocities of contacts.

    The rate of the gap is the normal velocity of the body points that touch, whatever the shapes: so the normal row is
    the exact derivative of the gap.

    Args:
        bodies: this and the following six, see :class:`Cores`.
        offsets: likewise.
        radii: likewise.
        facing: likewise.
        first_axes: likewise.
        directions: likewise.
        rims: likewise.
        placements: see :func:`~constrained_sim.kinematics.point_positions`.
        joint_axes: see :func:`~constrained_sim.kinematics.row_jacobian`.
        support: see :func:`~constrained_sim.kinematics.row_jacobian`.
        v: (nv,) velocity.
        axes: (k, 3, 3) is filled with rows t1, t2, n, world axes; n points from the second body to the first.
        points: (k, 3) is filled with the contact points [m], on the first body; on the second if the first is flat.
        gaps: (k,) is filled [m].
        J: (3 k, nv) is filled with the rows.
        s: (3 k,) is filled with their velocities [m/s].
    """
    first = point_positions(bodies[:, 0], offsets[:, 0], placements)
    second = point_positions(bodies[:, 1], offsets[:, 1], placements)
    for i in range(bodies.shape[0]):
        axes[i] = first_axes[i]
        if facing[i] != BOTH and bodies[i, facing[i]]:
            turn_axes(axes[i], directions[i, facing[i]] @ placements[bodies[i, facing[i]], :3])
        if facing[i] == BOTH or rims[i].any():
            one = directions[i, 0] @ placements[bodies[i, 0], :3]
            two = directions[i, 1] @ placements[bodies[i, 1], :3]
            face_each_other(first[i], second[i], one, two, rims[i], facing[i], axes[i])
        n = axes[i, 2]
        gap = n[0] * first[i, 0] + n[1] * first[i, 1] + n[2] * first[i, 2] - radii[i, 0]
        gaps[i] = gap - (n[0] * second[i, 0] + n[1] * second[i, 1] + n[2] * second[i, 2]) - radii[i, 1]
        for axis in range(3):
            if facing[i] == FIRST:
                points[i, axis] = second[i, axis] + radii[i, 1] * n[axis]
            else:
                points[i, axis] = first[i, axis] - radii[i, 0] * n[axis]
    J[:] = row_jacobian(bodies[:, 0], points, axes, joint_axes, support)
    for i in range(bodies.shape[0]):
        if bodies[i, 1]:
            rows = J[3 * i : 3 * i + 3]
            rows -= row_jacobian(bodies[i : i + 1, 1], points[i : i + 1], axes[i : i + 1], joint_axes, support)
            for j in range(support.shape[1]):
                if support[bodies[i, 0], j] and support[bodies[i, 1], j]:
                    rows[:, j] = 0.0
    s[:] = J @ v


@numba.njit(cache=True)
def unit(vector):  # type: ignore[no-untyped-def]
    """Return a 3-vector of length 1."""
    return vector / np.sqrt(np.dot(vector, vector))


@numba.njit(cache=True)
def turn_axes(axes, normal):  # type: ignore[no-untyped-def]
    """Turn `axes` (3, 3), rows t1, t2, n, to another unit `normal` (3,), in place: t1 is projected."""
    axes[0] = unit(axes[0] - np.dot(axes[0], normal) * normal)
    axes[1] = cross(normal, axes[0])
    axes[2] = normal


@numba.njit(cache=True)
def face_each_other(first, second, one, two, rims, facing, axes):  # type: ignore[no-untyped-def]
    """Move the points of two cores to where these are nearest, and turn `axes` there unless a face says, in place.

    Args:
        first: (3,) point of the first core [m], world frame.
        second: (3,) of the second [m].
        one: (3,) direction of the first, world axes.
        two: (3,) of the second.
        rims: (2,) see :class:`Cores`.
        facing: see :class:`NormalOf`.
        axes: (3, 3) rows t1, t2, n.
    """
    if facing == FIRST:
        second[:] = nearest_on_rim(second, two, rims[1], axes[2])
    elif facing == SECOND:
        first[:] = nearest_on_rim(first, one, rims[0], -axes[2])
    elif rims.any():
        first[:] = nearest_on_rim(first, one, rims[0], second - first)
        second[:] = nearest_on_rim(second, two, rims[1], first - second)
        turn_axes(axes, unit(first - second))
    else:
        turn_axes(axes, normal_between(first, second, one, two, axes[2]))


@numba.njit(cache=True)
def nearest_on_rim(middle, axis, radius, towards):  # type: ignore[no-untyped-def]
    """Return the point (3,) of a circle that is farthest `towards` (3,); the middle where all are, or `radius` is 0."""
    out = towards - np.dot(axis, towards) * axis
    return middle + radius * unit(out) if radius and out.any() else middle


@numba.njit(cache=True)
def unless_parallel(one, two):  # type: ignore[no-untyped-def]
    """Return the direction `one` (3,) of a core; zero, as of a point, beside a parallel line `two` (3,)."""
    cosine = np.dot(one, two)
    return np.zeros(3) if one.any() and two.any() and 1.0 - cosine * cosine <= PARALLEL else one


@numba.njit(cache=True)
def normal_between(first, second, one, two, side):  # type: ignore[no-untyped-def]
    """Return the unit normal (3,) between points or lines, and move the points to where these are nearest, in place.

    Args:
        first: (3,) point of the first core [m].
        second: (3,) of the second [m].
        one: (3,) direction of the first core; zero of a point.
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


def contact_gamma(dynamics: Dynamics, cores: Cores, geometry: ContactGeometry) -> Array:
    """Return (3 k,) the velocity-dependent part of the acceleration of contact rows [m/s^2].

    With x the contact point and W the angular velocity of the axes e, ``s = e . (v_1(x) - v_2(x))`` gives::

        gamma = e . (a_1(x) + w_1 x (dx/dt - v_1(x)) - a_2(x) - w_2 x (dx/dt - v_2(x))) + (W x e) . (v_1(x) - v_2(x))

    where v(x), a(x) belong to the body point that is at x, accelerations for zero joint accelerations.

    Args:
        dynamics: updated to configuration and velocity.
        cores: of the contacts.
        geometry: of the contacts there.
    """
    gamma = np.empty((len(cores.bodies), 3))
    for i, (first, second) in enumerate(cores.bodies.tolist()):
        one, two = dynamics.body(first), dynamics.body(second)
        axes, x = geometry.axes[i], geometry.points[i]
        n_rate, moving = _motion_of_contact(one, two, cores, geometry, i)
        turning = _spin_of_axes(axes, cores.axes[i, 0], n_rate)
        v_one, v_two = one.velocity_at(x), two.velocity_at(x)
        bias = one.bias_at(x) + cross(one.angular_velocity, moving - v_one)
        bias -= two.bias_at(x) + cross(two.angular_velocity, moving - v_two)
        gamma[i] = axes @ (bias + cross(v_one - v_two, turning))
    return gamma.ravel()


def turning_gamma(dynamics: Dynamics, cores: Cores, geometry: ContactGeometry, i: int) -> Array:
    """Return (3,) the velocity-dependent part of the acceleration in which contact `i` turns [rad/s^2].

    Of the components ``e . (w_1 - w_2)`` of the relative angular velocity along the axes e, which turn with W::

        gamma = e . (b_1 - b_2) + (W x e) . (w_1 - w_2)

    where b are angular accelerations for zero joint accelerations, world axes. Arguments as in :func:`contact_gamma`.
    """
    one, two = (dynamics.body(joint) for joint in cores.bodies[i].tolist())
    axes = geometry.axes[i]
    turning = _spin_of_axes(axes, cores.axes[i, 0], _motion_of_contact(one, two, cores, geometry, i)[0])
    bias = one.angular_bias - two.angular_bias
    return np.asarray(axes @ (bias + cross(one.angular_velocity - two.angular_velocity, turning)))


def _spin_of_axes(axes: Array, first: Array, n_rate: Array) -> Array:
    """Return (3,) the angular velocity [rad/s] of `axes` (3, 3) whose normal changes at `n_rate` (3,) [1/s].

    Their t1 is the projection of the fixed direction `first` (3,).
    """
    spin = -(axes[1] @ n_rate) * (axes[2] @ first) / (axes[0] @ first)
    return np.asarray(cross(axes[2], n_rate) + spin * axes[2])


def _motion_of_contact(
    one: BodyMotion, two: BodyMotion, cores: Cores, geometry: ContactGeometry, i: int
) -> tuple[Array, Array]:
    """Return the rate (3,) of the normal of contact `i` [1/s], and the velocity (3,) of its point [m/s]."""
    radii, n, x, facing = cores.radii[i], geometry.axes[i, 2], geometry.points[i], cores.facing[i]
    length = geometry.distances[i] + radii.sum()
    first = x + radii[0] * n if facing != FIRST else x + (length - radii[1]) * n
    bodies, points = (one, two), (first, first - length * n)
    velocities = [body.velocity_at(point) for body, point in zip(bodies, points, strict=True)]
    if facing != BOTH:
        n_rate = cross(bodies[facing].angular_velocity, n)
        round_one = 1 - facing
        if cores.rims[i, round_one]:
            towards = n if facing == FIRST else -n
            rate = n_rate if facing == FIRST else -n_rate
            velocities[round_one] = _rim_velocity(bodies[round_one], cores, (i, round_one), towards, rate)
        return n_rate, velocities[round_one] + (radii[1] if facing == FIRST else -radii[0]) * n_rate
    line = two.rotation @ cores.directions[i, 1]
    lines = np.array([unless_parallel(one.rotation @ cores.directions[i, 0], line), line])
    for side in np.flatnonzero(cores.rims[i]):
        lines = np.zeros((2, 3))
        middle = bodies[side].position + bodies[side].rotation @ cores.offsets[i, side]
        rate = velocities[1 - side] - bodies[side].velocity_at(middle)
        velocities[side] = _rim_velocity(bodies[side], cores, (i, int(side)), points[1 - side] - middle, rate)
    apart = velocities[0] - velocities[1]
    kept = np.asarray(lines.any(axis=1))
    n_rate = np.zeros(3) if kept.all() else (apart - (apart @ n) * n) / length
    if kept.any():  # the normal stays at right angles to the lines, and their nearest points move along them
        turns, held = np.array([body.angular_velocity for body in bodies])[kept], lines[kept]
        n_rate += np.linalg.lstsq(held, -np.cross(turns, held) @ n - held @ n_rate)[0]
        along = np.linalg.lstsq((np.array([1.0, -1.0])[kept, None] * held).T, length * n_rate - apart)[0]
        velocities[0] = velocities[0] + along[0] * lines[0]
    return n_rate, velocities[0] - radii[0] * n_rate


def _rim_velocity(body: BodyMotion, cores: Cores, place: tuple[int, int], towards: Array, rate: Array) -> Array:
    """Return the velocity (3,) of the point of a circle that is farthest `towards` (3,), which changes at a `rate`."""
    axis, middle = body.rotation @ cores.directions[place], body.position + body.rotation @ cores.offsets[place]
    axis_rate, height = cross(body.angular_velocity, axis), axis @ towards
    across = towards - height * axis
    across_rate = rate - height * axis_rate - (axis_rate @ towards + axis @ rate) * axis
    length = np.linalg.norm(across)
    out = across / length
    out_rate = (across_rate - (out @ across_rate) * out) / length
    return np.asarray(body.velocity_at(middle) + cores.rims[place] * out_rate)

"""Bias accelerations of contact rows, from the rates of normals and contact points."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.features import FIRST, SECOND, ContactFeatures, unless_parallel
from constrained_sim.dynamics.kinematics import bias_at, body_motion, cross, velocity_at


@kernel
def contact_gamma(features, geometry, motion):
    """Return (3 k,) the velocity-dependent part of the acceleration of contact rows [m/s^2].

    With x the contact point and W the angular velocity of the axes e, ``s = e . (v_1(x) - v_2(x))`` gives::

        gamma = e . (a_1(x) + w_1 x (dx/dt - v_1(x)) - a_2(x) - w_2 x (dx/dt - v_2(x))) + (W x e) . (v_1(x) - v_2(x))

    where v(x), a(x) belong to the body point that is at x, accelerations for zero joint accelerations.

    Args:
        features: of the contacts, what :class:`~constrained_sim.contact.features.ContactFeatures` holds, as a tuple.
        geometry: axes (k, 3, 3), points (k, 3) [m] and distances (k,) [m] of the contacts, see
            :class:`~constrained_sim.contact.features.ContactGeometry`.
        motion: placements, velocities, biases and gravity, see
            :func:`~constrained_sim.dynamics.kinematics.body_motion`.
    """
    features, (axes, points, _) = ContactFeatures(*features), geometry
    bodies = features.bodies
    gamma = np.empty((bodies.shape[0], 3))
    for i in range(bodies.shape[0]):
        one, two, x = body_motion(bodies[i, 0], *motion), body_motion(bodies[i, 1], *motion), points[i]
        n_rate, x_rate = _rates(one, two, features, geometry, i)
        turning = _spin_of_axes(axes[i], features.axes[i, 0], n_rate)
        v_one, v_two = velocity_at(one, x), velocity_at(two, x)
        bias = bias_at(one, x) + cross(one.angular_velocity, x_rate - v_one)
        bias -= bias_at(two, x) + cross(two.angular_velocity, x_rate - v_two)
        gamma[i] = axes[i] @ (bias + cross(v_one - v_two, turning))
    return gamma.ravel()


@kernel
def turning_gamma(features, geometry, motion):
    """Return (k, 3) the velocity-dependent part of the acceleration in which contacts turn [rad/s^2].

    Of the components ``e . (w_1 - w_2)`` of the relative angular velocity along the axes e, which turn with W::

        gamma = e . (b_1 - b_2) + (W x e) . (w_1 - w_2)

    where b are angular accelerations for zero joint accelerations, world axes. Arguments as in :func:`contact_gamma`.
    """
    features, (axes, _, _) = ContactFeatures(*features), geometry
    bodies = features.bodies
    gamma = np.empty((bodies.shape[0], 3))
    for i in range(bodies.shape[0]):
        one, two = body_motion(bodies[i, 0], *motion), body_motion(bodies[i, 1], *motion)
        turning = _spin_of_axes(axes[i], features.axes[i, 0], _rates(one, two, features, geometry, i)[0])
        bias = one.angular_bias - two.angular_bias
        gamma[i] = axes[i] @ (bias + cross(one.angular_velocity - two.angular_velocity, turning))
    return gamma


@kernel(inline=True)
def _spin_of_axes(axes, first, n_rate):
    """Return (3,) the angular velocity [rad/s] of `axes` (3, 3) whose normal changes at `n_rate` (3,) [1/s].

    Their t1 is the projection of the fixed direction `first` (3,).
    """
    spin = -np.dot(axes[1], n_rate) * np.dot(axes[2], first) / np.dot(axes[0], first)
    return cross(axes[2], n_rate) + spin * axes[2]


@kernel
def _rates(one, two, features, geometry, i):
    """Return the rate (3,) of the normal of contact `i` between two bodies [1/s], and the velocity (3,) of its point.

    Features and geometry as in :func:`contact_gamma`.
    """
    _, offsets, radii, normal_owner, _, directions, rim_radii = features
    axes, points, distances = geometry
    n, x, length = axes[i, 2], points[i], distances[i] + radii[i].sum()
    first = x + (length - radii[i, 1] if normal_owner[i] == FIRST else radii[i, 0]) * n
    second = first - length * n
    v_first, v_second = velocity_at(one, first), velocity_at(two, second)
    if normal_owner[i] == FIRST:
        n_rate = cross(one.angular_velocity, n)
        if rim_radii[i, 1]:
            v_second = _rim_velocity(two, offsets[i, 1], directions[i, 1], rim_radii[i, 1], n, n_rate)
        return n_rate, v_second + radii[i, 1] * n_rate
    if normal_owner[i] == SECOND:
        n_rate = cross(two.angular_velocity, n)
        if rim_radii[i, 0]:
            v_first = _rim_velocity(one, offsets[i, 0], directions[i, 0], rim_radii[i, 0], -n, -n_rate)
        return n_rate, v_first - radii[i, 0] * n_rate
    line_two = two.rotation @ directions[i, 1]
    line_one = unless_parallel(one.rotation @ directions[i, 0], line_two)
    if rim_radii[i].any():
        line_one, line_two = np.zeros(3), np.zeros(3)
    if rim_radii[i, 0]:
        towards = second - (one.position + one.rotation @ offsets[i, 0])
        rate = v_second - velocity_at(one, second - towards)
        v_first = _rim_velocity(one, offsets[i, 0], directions[i, 0], rim_radii[i, 0], towards, rate)
    if rim_radii[i, 1]:
        towards = first - (two.position + two.rotation @ offsets[i, 1])
        rate = v_first - velocity_at(two, first - towards)
        v_second = _rim_velocity(two, offsets[i, 1], directions[i, 1], rim_radii[i, 1], towards, rate)
    apart = v_first - v_second
    n_rate = np.zeros(3) if line_one.any() and line_two.any() else (apart - np.dot(apart, n) * n) / length
    n_rate = _kept_across(line_one, line_two, one.angular_velocity, two.angular_velocity, n, n_rate)
    along = length * n_rate - apart
    aside = line_one - np.dot(line_one, line_two) * line_two
    if aside.any():
        v_first = v_first + np.dot(aside, along) / np.dot(aside, aside) * line_one
    return n_rate, v_first - radii[i, 0] * n_rate


@kernel
def _kept_across(one, two, spin_one, spin_two, n, n_rate):
    """Return the rate (3,) nearest to `n_rate` with which a normal `n` stays at right angles to lines that turn.

    Args:
        one: (3,) unit vector along the first line; zero of a point.
        two: (3,) of the second, not parallel to it.
        spin_one: (3,) angular velocity of the first [rad/s].
        spin_two: (3,) of the second.
        n: (3,) the normal.
        n_rate: (3,) [1/s].
    """
    cosine = np.dot(one, two)
    aside = two - cosine * one
    miss_one = -np.dot(cross(spin_one, one), n) - np.dot(one, n_rate)
    miss_two = -np.dot(cross(spin_two, two), n) - np.dot(two, n_rate)
    kept = n_rate + miss_one * one
    return kept + (miss_two - cosine * miss_one) / np.dot(aside, aside) * aside if aside.any() else kept


@kernel
def _rim_velocity(body, offset, direction, radius, towards, rate):
    """Return the velocity (3,) of the point of a circle that is farthest `towards` (3,), which changes at a `rate`.

    Args:
        body: that carries the circle.
        offset: (3,) its middle in the body's frame [m].
        direction: (3,) its axis there.
        radius: [m].
        towards: (3,) world axes.
        rate: (3,).
    """
    axis, middle = body.rotation @ direction, body.position + body.rotation @ offset
    axis_rate, height = cross(body.angular_velocity, axis), np.dot(axis, towards)
    across = towards - height * axis
    across_rate = rate - height * axis_rate - (np.dot(axis_rate, towards) + np.dot(axis, rate)) * axis
    length = np.sqrt(np.dot(across, across))
    out = across / length
    out_rate = (across_rate - np.dot(out, across_rate) * out) / length
    return velocity_at(body, middle) + radius * out_rate

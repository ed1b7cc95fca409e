"""Compiled kernels for the bodies of a robot and their points: positions, Jacobians, velocities, bias accelerations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.products import largest_entry, matvec
from constrained_sim.linalg.rank import EPSILON
from constrained_sim.validation import Array

ROUNDING = 8.0 * EPSILON

SPURIOUS = 1e-9
"""Share of the largest row of an anchor below which a row is a joint's pose written with too few digits."""


@kernel(inline=True)
def cross(a, b):
    """Return the vector product of two 3-vectors; NumPy's takes thirty times as long for one pair."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


class BodyMotion(NamedTuple):
    """Motion of the body frame of a joint, world axes, with the accelerations for ``a = 0`` unless a was given.

    Attributes:
        rotation: (3, 3) body to world.
        position: (3,) origin of the frame [m].
        velocity: (3,) of the origin [m/s].
        angular_velocity: (3,) [rad/s].
        bias: (3,) acceleration of the origin [m/s^2].
        angular_bias: (3,) [rad/s^2].
    """

    rotation: Array
    position: Array
    velocity: Array
    angular_velocity: Array
    bias: Array
    angular_bias: Array


@kernel
def body_motion(joint, placements, velocities, biases, gravity):
    """Return the :class:`BodyMotion` of what a joint carries.

    The acceleration of the origin is ``R (a_linear + omega x v_linear) + g`` (classical minus fictitious).

    Args:
        joint: index, 0 for the world.
        placements: see :func:`point_positions`.
        velocities: (njoints, 2, 3) linear and angular velocity of each body, in its own axes.
        biases: (njoints, 2, 3) spatial accelerations in these axes, with gravity as a fictitious acceleration of the
            base.
        gravity: (3,) [m/s^2], world axes.
    """
    rotation, position = np.ascontiguousarray(placements[joint, :3].T), placements[joint, 3].copy()
    if joint == 0:
        return BodyMotion(rotation, position, np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
    linear, angular, angular_bias = velocities[joint, 0].copy(), velocities[joint, 1].copy(), biases[joint, 1].copy()
    return BodyMotion(
        rotation,
        position,
        matvec(rotation, linear),
        matvec(rotation, angular),
        matvec(rotation, biases[joint, 0] + cross(angular, linear)) + gravity,
        matvec(rotation, angular_bias),
    )


@kernel(inline=True)
def velocity_at(body, point):
    """Return the velocity (3,) [m/s] of the point of a body in :class:`BodyMotion` that is at `point` (3,) now."""
    return body.velocity + cross(body.angular_velocity, point - body.position)


@kernel(inline=True)
def bias_at(body, point):
    """Return the acceleration (3,) [m/s^2] of the point of a body that is at `point` (3,) now."""
    arm, omega = point - body.position, body.angular_velocity
    return body.bias + cross(body.angular_bias, arm) + cross(omega, cross(omega, arm))


@kernel(inline=True)
def point_positions(joints, offsets, placements):
    """Return (k, 3) world positions of points fixed in joints' frames [m].

    Args:
        joints: (k,) joint indices.
        offsets: (k, 3) points in the joints' frames [m].
        placements: (njoints, 4, 3) rows: the three columns of the rotation, then the translation.
    """
    count = joints.shape[0]
    positions = np.empty((count, 3))
    for i in range(count):
        joint = joints[i]
        for axis in range(3):
            positions[i, axis] = (
                placements[joint, 3, axis]
                + placements[joint, 0, axis] * offsets[i, 0]
                + placements[joint, 1, axis] * offsets[i, 1]
                + placements[joint, 2, axis] * offsets[i, 2]
            )
    return positions


@kernel(inline=True)
def row_jacobian(joints, positions, axes, joint_axes, support):
    """Return (3 k, nv) the Jacobians of the velocities of k body points along given axes.

    Row r of point i is ``axes[i, r] . (J_linear + J_angular x p)``: column by column, a joint's motion moves the
    body point that is at world position p now (Featherstone, Rigid Body Dynamics Algorithms, sec. 2.2). What is below
    the rounding of the sums it comes from is zero.

    Args:
        joints: (k,) joint that carries each point.
        positions: (k, 3) where the points are now [m].
        axes: (k, 3, 3) the directions, one per row, world axes.
        joint_axes: (nv, 6) transposed world-frame joint Jacobian of Pinocchio, linear then angular part.
        support: (njoints, nv) whether a degree of freedom moves a joint's frame.
    """
    jacobian, levers = np.empty((3 * joints.shape[0], joint_axes.shape[0])), np.zeros(joints.shape[0])
    for i in range(joints.shape[0]):
        levers[i] = abs(positions[i, 0]) + abs(positions[i, 1]) + abs(positions[i, 2])
    fill_rows(joints, positions, levers, axes, joint_axes, support, jacobian)
    return jacobian


@kernel(inline=True)
def moved_by(joint_axes, j, x, y, z, lever):
    """Return the three numbers of the velocity of what is at (x, y, z) under one joint's motion, and their rounding.

    Args:
        joint_axes: see :func:`row_jacobian`.
        j: which degree of freedom moves.
        x: [m].
        y: [m].
        z: [m].
        lever: lengths that these three are sums of [m].
    """
    ax, ay, az = joint_axes[j, 0], joint_axes[j, 1], joint_axes[j, 2]
    wx, wy, wz = joint_axes[j, 3], joint_axes[j, 4], joint_axes[j, 5]
    noise = ROUNDING * (abs(ax) + abs(ay) + abs(az) + (abs(wx) + abs(wy) + abs(wz)) * lever)
    return ax + wy * z - wz * y, ay + wz * x - wx * z, az + wx * y - wy * x, noise


@kernel(inline=True)
def fill_rows(joints, positions, levers, axes, joint_axes, support, jacobian):
    """Fill `jacobian` with what :func:`row_jacobian` returns; arguments as there.

    Entries that are rounding are zero. For that, `levers` (k,) are the lengths [m] that the positions are sums of.
    """
    jacobian[:] = 0.0
    for i in range(joints.shape[0]):
        x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
        lever = levers[i]
        for j in range(joint_axes.shape[0]):
            if support[joints[i], j]:
                vx, vy, vz, noise = moved_by(joint_axes, j, x, y, z, lever)
                for r in range(3):
                    along = axes[i, r, 0] * vx + axes[i, r, 1] * vy + axes[i, r, 2] * vz
                    if abs(along) > noise:
                        jacobian[3 * i + r, j] = along


@kernel
def anchor_rows(joints, offsets, normals, placements, joint_axes, support):
    """Return (k, nv) the velocity of a point of body a relative to the point of body b that is there, along axes of b.

    A degree of freedom that moves both bodies moves neither relative to the other. What is below the rounding of the
    sums it comes from is zero: else the out-of-plane row of a planar linkage would be noise, not a row of zeros, and
    lock it; so is a whole row beside others that are so much larger that poses of ten digits account for it.

    Args:
        joints: (2,) of a and b.
        offsets: (2, 3) points in these joints' frames; only that of a matters [m].
        normals: (k, 3) directions in the frame of b's joint.
        placements: see :func:`point_positions`.
        joint_axes: see :func:`row_jacobian`.
        support: see :func:`row_jacobian`.
    """
    point = point_positions(joints[:1], offsets[:1], placements)[0]
    axes = normals @ placements[joints[1], :3]
    count, nv = normals.shape[0], joint_axes.shape[0]
    jacobian = np.zeros((count, nv))
    x, y, z = point[0], point[1], point[2]
    lever = abs(x) + abs(y) + abs(z)
    for j in range(nv):
        moves_a, moves_b = support[joints[0], j], support[joints[1], j]
        if moves_a != moves_b:
            vx, vy, vz, noise = moved_by(joint_axes, j, x, y, z, lever)
            for r in range(count):
                along = axes[r, 0] * vx + axes[r, 1] * vy + axes[r, 2] * vz
                if abs(along) > noise:
                    jacobian[r, j] = along if moves_a else -along
    drop_spurious(jacobian)
    return jacobian


@kernel
def drop_spurious(rows):
    """Set `rows` (k, nv) to zero that are nothing beside the largest one, in place."""
    largest = 0.0
    for row in rows:
        largest = max(largest, largest_entry(row))
    for row in rows:
        if largest_entry(row) <= SPURIOUS * largest:
            row[:] = 0.0


@kernel
def anchor_bias(joints, offsets, normals, placements, velocities, biases, gravity):
    """Return (k,) ``N^T R_b^T (a_a - a_b - 2 omega_b x (v_a - v_b))`` for zero joint accelerations [m/s^2].

    Args:
        joints: see :func:`anchor_rows`.
        offsets: (2, 3) the points in the joints' frames [m].
        normals: (k, 3) directions in the frame of the second joint.
        placements: (njoints, 4, 3) rotation columns and translation of each joint's frame.
        velocities: see :func:`body_motion`.
        biases: (njoints, 2, 3) spatial accelerations of the bodies for zero joint accelerations.
        gravity: (3,) acceleration [m/s^2], world axes.
    """
    point = point_positions(joints[:1], offsets[:1], placements)[0]
    a = body_motion(joints[0], placements, velocities, biases, gravity)
    b = body_motion(joints[1], placements, velocities, biases, gravity)
    apart = velocity_at(a, point) - velocity_at(b, point)
    bias = bias_at(a, point) - bias_at(b, point) - 2.0 * cross(b.angular_velocity, apart)
    return matvec(normals, matvec(placements[joints[1], :3], bias))


@kernel
def anchors_rows(anchors, joints, offsets, normals, placements, joint_axes, support):
    """Return (m, nv) the rows of a anchors, see :func:`anchor_rows`.

    Args:
        anchors: (a, 2) the first row of each, and the row after its last.
        joints: (a, 2).
        offsets: (a, 1, 3) [m].
        normals: (m, 3).
        placements: see :func:`point_positions`.
        joint_axes: see :func:`row_jacobian`.
        support: see :func:`row_jacobian`.
    """
    jacobian = np.empty((normals.shape[0], joint_axes.shape[0]))
    for i in range(anchors.shape[0]):
        first, end = anchors[i, 0], anchors[i, 1]
        jacobian[first:end] = anchor_rows(joints[i], offsets[i], normals[first:end], placements, joint_axes, support)
    return jacobian


@kernel
def anchors_bias(anchors, joints, offsets, normals, placements, velocities, biases, gravity):
    """Return (m,) the bias accelerations of a anchors, see :func:`anchor_bias`; the first four as above [m/s^2]."""
    bias = np.empty(normals.shape[0])
    for i in range(anchors.shape[0]):
        first, end = anchors[i, 0], anchors[i, 1]
        bias[first:end] = anchor_bias(
            joints[i], offsets[i], normals[first:end], placements, velocities, biases, gravity
        )
    return bias


@kernel
def turning_rows(joints, other_joints, axes, joint_axes, support):
    """Return (e, nv) the Jacobian of the angular velocities of bodies relative to others, along given axes [rad/s].

    A degree of freedom that moves both bodies turns neither relative to the other.

    Args:
        joints: (e,) joint that carries each body.
        other_joints: (e,) joint that carries the other body, 0 for the world.
        axes: (e, 3) unit vectors, world axes.
        joint_axes: see :func:`row_jacobian`.
        support: see :func:`row_jacobian`.
    """
    count, nv = joints.shape[0], joint_axes.shape[0]
    jacobian = np.zeros((count, nv))
    for i in range(count):
        for j in range(nv):
            moves, moves_other = support[joints[i], j], support[other_joints[i], j]
            if moves != moves_other:
                turn = joint_axes[j, 3:]
                along = axes[i, 0] * turn[0] + axes[i, 1] * turn[1] + axes[i, 2] * turn[2]
                if abs(along) > ROUNDING * np.abs(turn).sum():
                    jacobian[i, j] = along if moves else -along
    return jacobian

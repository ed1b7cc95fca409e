"""Bilateral rows of the kinds that kernels know, as arrays, and the kernel that evaluates them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.kinematics import anchor_rows, point_positions
from constrained_sim.dynamics.rigid_motion import frame_error, frame_rows
from constrained_sim.linalg.products import matvec, vecdot
from constrained_sim.validation import Array

Indices = npt.NDArray[np.int64]

LEAST_LENGTH = 1e-12
"""[m] Distance of two points down to which the line between them has a direction."""


class BilateralRows(NamedTuple):
    """The m rows of bilateral constraints: of a anchors of points, f of frames, d distances and c couplings.

    The others have a constant Jacobian.

    Attributes:
        anchors: (a, 2) the first row of each anchor of a point, and the row after its last.
        anchor_joints: (a, 2) the joints of both links.
        anchor_offsets: (a, 2, 3) the points in the frames of these joints [m].
        normals: (m, 3) directions of these anchors' rows in the frame of the second joint; zero of other rows.
        frame_anchors: (f, 2) the first row of each anchor of a frame, and the row after its last.
        frame_joints: (f, 2) the joints of both links.
        frames: (f, 2, 4, 3) the frames in those of these joints: rotation columns and translation.
        directions: (m, 6) held directions of these anchors' rows; zero of other rows.
        distances: (d,) the row of each distance.
        distance_joints: (d, 2) the joints of both links.
        distance_offsets: (d, 2, 3) the points in the frames of these joints [m].
        lengths: (d,) wanted [m].
        couplings: (c,) the row of each coupling.
        at_q: (c, 2) where the positions of the joint and of its reference are in q.
        turns: (c, 2) whether that is the cosine of a continuous joint, and the sine comes next.
        ratios: (c,) [-, m/rad, rad/m].
        positions: (c,) of the joint where its reference is at 0 [rad, m].
        periods: (c,) of phi; infinite where positions are known without turns [rad, m].
        constant: (m, nv) Jacobian of the rows that have a constant one; zero of other rows.
    """

    anchors: Indices
    anchor_joints: Indices
    anchor_offsets: Array
    normals: Array
    frame_anchors: Indices
    frame_joints: Indices
    frames: Array
    directions: Array
    distances: Indices
    distance_joints: Indices
    distance_offsets: Array
    lengths: Array
    couplings: Indices
    at_q: Indices
    turns: npt.NDArray[np.bool_]
    ratios: Array
    positions: Array
    periods: Array
    constant: Array

    @classmethod
    def without_function(cls, rows: int, nv: int) -> BilateralRows:
        """Return `rows` rows of zeros."""
        none, pairs = np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int64)
        points, values = np.empty((0, 2, 3)), np.empty(0)
        return cls(
            anchors=pairs,
            anchor_joints=pairs,
            anchor_offsets=points,
            normals=np.zeros((rows, 3)),
            frame_anchors=pairs,
            frame_joints=pairs,
            frames=np.empty((0, 2, 4, 3)),
            directions=np.zeros((rows, 6)),
            distances=none,
            distance_joints=pairs,
            distance_offsets=points,
            lengths=values,
            couplings=none,
            at_q=pairs,
            turns=np.empty((0, 2), dtype=np.bool_),
            ratios=values,
            positions=values,
            periods=values,
            constant=np.zeros((rows, nv)),
        )

    @classmethod
    def stacked(cls, parts: Iterable[BilateralRows], nv: int) -> BilateralRows:
        """Return the rows of all `parts`, one below the other."""
        moved, count = [cls.without_function(0, nv)], 0
        for part in parts:
            moved.append(
                part._replace(
                    anchors=part.anchors + count,
                    frame_anchors=part.frame_anchors + count,
                    distances=part.distances + count,
                    couplings=part.couplings + count,
                )
            )
            count += len(part.constant)
        return cls(*(np.ascontiguousarray(np.concatenate(column)) for column in zip(*moved, strict=True)))


@kernel
def evaluate_bilateral(table, target, q, v, where, rows):
    """Fill in violations, Jacobian and velocities of rows.

    The line of a distance that is zero has no direction: its phi is NaN.

    Args:
        table: the :class:`BilateralRows`.
        target: (2, m) of constraints that move, see
            :meth:`~constrained_sim.constraints.constraint.BoundConstraint.target`.
        q: (nq,) configuration.
        v: (nv,) velocity.
        where: placements (njoints, 4, 3), see :func:`~constrained_sim.dynamics.kinematics.point_positions`; joint axes
            (nv, 6) and support (njoints, nv), see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        rows: filled with phi (m,) [m, rad], J (m, nv) and s (m,) [m/s, rad/s].
    """
    placements, joint_axes, support = where
    phi, J, s = rows
    phi[:] = 0.0
    J[:] = table.constant
    for i in range(table.anchors.shape[0]):
        first, end = table.anchors[i, 0], table.anchors[i, 1]
        joints, offsets, normals = table.anchor_joints[i], table.anchor_offsets[i], table.normals[first:end]
        phi[first:end] = anchor_error(joints, offsets, normals, placements)
        J[first:end] = anchor_rows(joints, offsets, normals, placements, joint_axes, support)
    for i in range(table.frame_anchors.shape[0]):
        first, end = table.frame_anchors[i, 0], table.frame_anchors[i, 1]
        joints, frames, directions = table.frame_joints[i], table.frames[i], table.directions[first:end]
        phi[first:end] = frame_error(joints, frames, directions, placements)
        J[first:end] = frame_rows(joints, frames, directions, placements, joint_axes, support)
    for i in range(table.distances.shape[0]):
        row, joints, offsets = table.distances[i], table.distance_joints[i], table.distance_offsets[i]
        _, length, direction = distance_line(joints, offsets, placements)
        phi[row] = length - table.lengths[i] if length > LEAST_LENGTH else np.nan
        if length > LEAST_LENGTH:
            J[row] = distance_row(joints, offsets, direction, placements, joint_axes, support)[0]
    for i in range(table.couplings.shape[0]):
        phi[table.couplings[i]] = coupling_error(
            q, table.at_q[i], table.turns[i], table.ratios[i], table.positions[i], table.periods[i]
        )
    for row in range(s.shape[0]):
        phi[row] -= target[0, row]
        s[row] = vecdot(J[row], v) - target[1, row]


@kernel
def anchor_error(joints, offsets, normals, placements):
    """Return (k,) ``N^T R_b^T (p_a - p_b)`` [m]: where point a is from point b, along directions of b's joint.

    Args:
        joints: (2,) of a and b.
        offsets: (2, 3) the points in the frames of these joints [m].
        normals: (k, 3) the directions, in the frame of b's joint.
        placements: see :func:`~constrained_sim.dynamics.kinematics.point_positions`.
    """
    points = point_positions(joints, offsets, placements)
    return matvec(normals @ placements[joints[1], :3], points[0] - points[1])


@kernel
def distance_line(joints, offsets, placements):
    """Return (2, 3) two points [m], their distance [m], and the (3,) direction from the second to the first: NaN at 0.

    The arguments are those of :func:`anchor_error`.
    """
    points = point_positions(joints, offsets, placements)
    line = points[0] - points[1]
    length = np.sqrt(vecdot(line, line))
    return points, length, line / length if length > LEAST_LENGTH else np.full(3, np.nan)


@kernel
def distance_row(joints, offsets, direction, placements, joint_axes, support):
    """Return (1, nv): p_a moves apart from p_b, along the line, as from the point of link_b that is at p_a now.

    Args:
        joints: see :func:`anchor_error`.
        offsets: see :func:`anchor_error`.
        direction: (3,) of the line, world axes.
        placements: see :func:`~constrained_sim.dynamics.kinematics.point_positions`.
        joint_axes: see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        support: see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
    """
    normals = np.empty((1, 3))
    normals[0] = matvec(placements[joints[1], :3], direction)
    return anchor_rows(joints, offsets, normals, placements, joint_axes, support)


@kernel
def coupling_error(q, at_q, turns, ratio, offset, period):
    """Return by how much a joint is off ``ratio`` times its reference plus `offset` [rad, m], to whole periods.

    Args:
        q: (nq,) configuration.
        at_q: (2,) where the positions of joint and reference are in q.
        turns: (2,) whether these are the cosine of a continuous joint, and the sine comes next.
        ratio: [-, m/rad, rad/m].
        offset: of the joint where its reference is at 0 [rad, m].
        period: of the result [rad, m]; infinite where positions are known without turns.
    """
    joint, reference = _position(q, at_q[0], turns[0]), _position(q, at_q[1], turns[1])
    return within_half_a_period(joint - ratio * reference - offset, period)


@kernel(inline=True)
def _position(q, at, turns):
    """Return the position [rad, m] of a joint; of a continuous one within -pi .. pi."""
    return np.arctan2(q[at + 1], q[at]) if turns else q[at]


@kernel(inline=True)
def within_half_a_period(value, period):
    """Return `value` less a whole number of periods: within half a `period` of zero; itself, if that is infinite."""
    if np.isinf(period):
        return value
    return np.remainder(value + 0.5 * period, period) - 0.5 * period

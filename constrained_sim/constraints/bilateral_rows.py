"""Bilateral rows of the kinds that kernels know, as arrays, and the kernel that evaluates them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.kinematics import anchor_rows, point_positions
from constrained_sim.linalg.products import matvec, vecdot
from constrained_sim.validation import Array

Indices = npt.NDArray[np.int64]


class BilateralRows(NamedTuple):
    """The m rows of bilateral constraints: of a anchors, d distances and c couplings; the others only have a rate.

    Attributes:
        anchors: (a, 2) the first row of each anchor, and the row after its last.
        anchor_joints: (a, 2) the joints of both links.
        anchor_offsets: (a, 2, 3) the points in the frames of these joints [m].
        normals: (m, 3) directions of the anchors' rows in the frame of the second joint; zero of other rows.
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
        rates: (m,) wanted ``J v`` [rad/s, m/s].
    """

    anchors: Indices
    anchor_joints: Indices
    anchor_offsets: Array
    normals: Array
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
    rates: Array

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
            rates=np.zeros(rows),
        )

    @classmethod
    def stacked(cls, parts: Iterable[BilateralRows], nv: int) -> BilateralRows:
        """Return the rows of all `parts`, one below the other."""
        moved, count = [cls.without_function(0, nv)], 0
        for part in parts:
            moved.append(
                part._replace(
                    anchors=part.anchors + count, distances=part.distances + count, couplings=part.couplings + count
                )
            )
            count += len(part.rates)
        return cls(*(np.ascontiguousarray(np.concatenate(column)) for column in zip(*moved, strict=True)))


@kernel
def evaluate_bilateral(table, q, placements, joint_axes, support, v, phi, J, s):  # type: ignore[no-untyped-def]
    """Fill in violations, Jacobian and velocities of rows.

    The line of a distance that is zero has no direction: its phi is NaN.

    Args:
        table: the :class:`BilateralRows`.
        q: (nq,) configuration.
        placements: (njoints, 4, 3), see :func:`~constrained_sim.dynamics.kinematics.point_positions`.
        joint_axes: (nv, 6), see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        support: (njoints, nv) whether a degree of freedom moves a joint's frame.
        v: (nv,) velocity.
        phi: (m,) filled [m, rad].
        J: (m, nv) filled.
        s: (m,) filled [m/s, rad/s].
    """
    phi[:] = 0.0
    J[:] = table.constant
    for i in range(table.anchors.shape[0]):
        first, end = table.anchors[i, 0], table.anchors[i, 1]
        joints, offsets, normals = table.anchor_joints[i], table.anchor_offsets[i], table.normals[first:end]
        points = point_positions(joints, offsets, placements)
        phi[first:end] = matvec(normals @ placements[joints[1], :3], points[0] - points[1])
        J[first:end] = anchor_rows(joints, offsets, normals, placements, joint_axes, support)
    for i in range(table.distances.shape[0]):
        row, joints, offsets = table.distances[i], table.distance_joints[i], table.distance_offsets[i]
        points = point_positions(joints, offsets, placements)
        line = points[0] - points[1]
        length = np.sqrt(vecdot(line, line))
        phi[row] = length - table.lengths[i] if length > 0.0 else np.nan
        if length > 0.0:
            normals = np.empty((1, 3))
            normals[0] = matvec(placements[joints[1], :3], line / length)
            J[row] = anchor_rows(joints, offsets, normals, placements, joint_axes, support)[0]
    for i in range(table.couplings.shape[0]):
        joint = _position(q, table.at_q[i, 0], table.turns[i, 0])
        reference = _position(q, table.at_q[i, 1], table.turns[i, 1])
        phi[table.couplings[i]] = within_half_a_period(
            joint - table.ratios[i] * reference - table.positions[i], table.periods[i]
        )
    for row in range(s.shape[0]):
        s[row] = vecdot(J[row], v) - table.rates[row]


@kernel(inline=True)
def _position(q, at, turns):  # type: ignore[no-untyped-def]
    """Return the position [rad, m] of a joint; of a continuous one within -pi .. pi."""
    return np.arctan2(q[at + 1], q[at]) if turns else q[at]


@kernel(inline=True)
def within_half_a_period(value, period):  # type: ignore[no-untyped-def]
    """Return `value` less a whole number of periods: within half a `period` of zero; itself, if that is infinite."""
    if np.isinf(period):
        return value
    return np.remainder(value + 0.5 * period, period) - 0.5 * period

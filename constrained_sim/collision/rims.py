"""Compiled kernels of the rims of cylinders: their points near planes, and whether a rim may come to lie flat."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.validation import Array

FLAT = 1e-6
"""Share of the normal along an end cap below which its lowest point is undefined."""

RIM = 4
"""Points on each rim of a cylinder near a plane."""


class CylinderRims(NamedTuple):
    """The rims of c cylinders.

    Attributes:
        starts: (c,) where the points of each begin, among those of all shapes.
        joints: (c,) that carry them.
        middles: (c, 2, 3) of their end caps [m], joint's frame.
        axes: (c, 3) unit, joint's frame.
        aside: (c, 3) unit, orthogonal to the axes: where the rims' points begin if the cylinder stands.
        radii: (c,) [m].
    """

    starts: npt.NDArray[np.int64]
    joints: npt.NDArray[np.int64]
    middles: Array
    axes: Array
    aside: Array
    radii: Array


@kernel
def place_rims(rims, placements, velocities, plane, lookahead, gravity, points, circles):
    """Write the points of cylinders that may touch a plane into `points`: the lowest of each rim, and three around.

    The lowest is followed around the rim, unless the rim may come to lie flat: there the lowest point would jump to the
    other side, away from what the cylinder has stood on.

    Args:
        rims: of the cylinders, :class:`CylinderRims`.
        placements: of the joints.
        velocities: (njoints, 2, 3) linear and angular, in the joints' axes.
        plane: its normal (3,), world frame, and offset [m].
        lookahead: time within which a rim may come to lie [s].
        gravity: magnitude [m/s^2].
        points: (n, 3) of all shapes [m], joints' frames; changed.
        circles: (n,) is filled for these points with the place in `middles` as one list of the end cap whose lowest
            point it is; -1 where it is not, or all of the rim are.
    """
    starts, joints, middles, axes, aside, radii = rims
    normal, offset = plane
    for c in range(len(starts)):
        joint = joints[c]
        local = placements[joint, :3] @ normal
        height = placements[joint, 3] @ normal - offset
        down = axes[c] * (axes[c] @ local) - local
        length = np.sqrt(down @ down)
        lies = length > FLAT
        down = down / length if lies else aside[c].copy()
        across = np.cross(axes[c], down)
        for cap in range(2):
            at = starts[c] + RIM * cap
            for i, direction in enumerate((down, across, -down, -across)):
                points[at + i] = middles[c, cap] + radii[c] * direction
                circles[at + i] = -1
            ends = points[at], points[at + 2]
            is_followed = lies and not may_lie(ends, local, height, velocities[joint], lookahead, gravity)
            circles[at] = 2 * c + cap if is_followed else -1


@kernel
def may_lie(ends, local, height, velocity, lookahead, gravity):
    """Return whether the highest point of a rim may soon come to a plane.

    It falls on as it does, and by gravity: the end of a rod that tips with 3/2 g, less than the 2 g assumed. While the
    lowest point is open that may be hit, and turn the body: then the highest comes no faster than the body moves.

    Args:
        ends: the lowest and the highest point (3,) of the rim [m], joint's frame or about its origin in world axes.
        local: (3,) normal of the plane, these axes.
        height: of the joint's origin above the plane [m].
        velocity: (2, 3) linear and angular, these axes, relative to the plane.
        lookahead: how soon [s].
        gravity: magnitude [m/s^2].
    """
    lowest, highest = ends
    v, w = velocity[0].copy(), velocity[1].copy()  # contiguous, for products
    closing = -(highest @ np.cross(local, w) + v @ local)
    if lowest @ local + height > TOUCHING:
        closing = np.sqrt(v @ v) + np.sqrt((w @ w) * (highest @ highest))
    return highest @ local + height <= TOUCHING + lookahead * (max(closing, 0.0) + gravity * lookahead)

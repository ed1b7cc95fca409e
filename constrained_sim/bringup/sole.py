"""Finds the sole of a foot among the points of its collision geometry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.validation import Array

FLAT = 0.004
"""Height [m] within which points of one foot are in the plane of its sole."""

SMALL = 0.03
"""Extent [m] of a sole below which it counts as one point, and of all feet together below which they are a line."""

LARGE = 0.06
"""Extent [m] of a face, or a line, from which on a foot is believed to be tilted: it is not a round one."""

TILT = 0.25
"""rad: how far the sole of a foot may be tilted in the configuration in which it is looked for."""

SAME_FACE = 0.05
"""rad between the normals of facets that are one face of a foot."""

CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
"""Directions, in the horizontal axes of the foot, in which its outermost points are taken."""

FOOT_LENGTH, FOOT_BREADTH = 0.152, 0.055
"""Of the height of man (Winter, Biomechanics and Motor Control of Human Movement, 4th ed., fig. 4.1)."""

DOWN = np.array([0.0, 0.0, -1.0])


class Points(NamedTuple):
    """Balls about points; most have no radius.

    Attributes:
        places: (n, 3) in the world [m].
        radii: (n,) [m].
    """

    places: Array
    radii: Array

    @property
    def heights(self) -> Array:
        """(n,) of their lowest points [m]."""
        return self.depths(DOWN) * -1.0

    def depths(self, direction: Array) -> Array:
        """Return (n,) how far they reach in a `direction` (3,) of unit length [m]."""
        return np.asarray(self.places @ direction + self.radii)


class Sole(NamedTuple):
    """Points with which a foot touches the ground.

    Attributes:
        places: (n, 3) in the world [m].
        radii: (n,) of balls about them [m].
        owners: (n,) points of the foot that they come from.
    """

    places: Array
    radii: Array
    owners: npt.NDArray[np.intp]


def sole_of(foot: Points, can_be_tilted: bool = True) -> Sole:
    """Return the outermost points of the sole of a `foot`, four at most.

    The sole is the largest face that looks down, at most :data:`TILT` off: in the configuration at hand a :data:`LARGE`
    foot may be tilted. Points within :data:`FLAT` of its plane are moved onto it, so that all of them can touch level
    ground. A sole smaller than :data:`SMALL` is its lowest point. What cannot be tilted has a level sole.
    """
    direction = _direction(foot) if can_be_tilted else DOWN
    depths = foot.depths(direction)
    sole = np.flatnonzero(depths >= depths.max() - FLAT)
    if np.ptp(foot.places[sole, :2], axis=0).max() < SMALL:
        lowest = _lowest(foot)
        return Sole(foot.places[lowest], foot.radii[lowest], lowest)
    flat = foot.places[sole] + np.outer(depths.max() - depths[sole], direction)
    outermost = sorted({int(np.argmax(np.round(flat[:, :2] @ corner, 6))) for corner in CORNERS})
    return Sole(flat[outermost], foot.radii[sole[outermost]], sole[outermost])


def _lowest(foot: Points) -> npt.NDArray[np.intp]:
    """Return (1,) the lowest point; of several, the one in their middle."""
    low = np.flatnonzero(foot.heights <= foot.heights.min() + FLAT)
    off = np.linalg.norm(foot.places[low, :2] - foot.places[low, :2].mean(axis=0), axis=1)
    return low[np.lexsort((off, np.round(foot.heights[low], 6)))[:1]]


def assumed_sole(foot: Points, height: float) -> Sole:
    """Return a level sole about the origin of a `foot`: that of a human foot, for a robot of this `height` [m]."""
    half = 0.5 * height * np.array([FOOT_LENGTH, FOOT_BREADTH])
    places = foot.places[0] + np.column_stack([CORNERS * half, np.zeros(len(CORNERS))])
    return Sole(places, np.zeros(len(CORNERS)), np.zeros(len(CORNERS), dtype=np.intp))


def has_area(places: Array) -> bool:
    """Return whether points (n, 3) seen from above are more than a line."""
    across = places[:, :2] - places[:, :2].mean(axis=0)
    along = np.linalg.svd(across, full_matrices=False)[2]
    return len(places) > 2 and float(np.ptp(across @ along[1])) >= SMALL


def _direction(foot: Points) -> Array:
    """Return (3,) the outward normal of the largest face that looks down; of a line, that across it.

    Straight down where nothing that is large looks down.
    """
    try:
        hull = scipy.spatial.ConvexHull(foot.places)
    except (scipy.spatial.QhullError, ValueError):  # all in one plane, or too few
        return _across_line(foot.places)
    if foot.radii.any():
        return DOWN
    a, b, c = foot.places[hull.simplices.T]
    areas, normals = np.linalg.norm(np.cross(b - a, c - a), axis=1), hull.equations[:, :3]
    below = np.flatnonzero(normals @ DOWN >= np.cos(TILT))
    if not below.size:
        return DOWN
    same = (normals[below] @ normals.T >= np.cos(SAME_FACE)) * areas
    mean = same[int(np.argmax(same.sum(axis=1)))] @ normals
    direction = mean / np.linalg.norm(mean)
    depths = foot.depths(direction)
    sole = foot.places[depths >= depths.max() - FLAT, :2]
    return np.asarray(direction) if np.ptp(sole, axis=0).max() >= LARGE else DOWN


def _across_line(places: Array) -> Array:
    """Return (3,) the direction down across the line that `places` (n, 3) are on, if it is level enough."""
    _, extents, directions = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)
    line = directions[0]
    if len(places) < 2 or extents[1] > FLAT or np.ptp(places @ line) < LARGE or abs(line @ DOWN) > np.sin(TILT):
        return DOWN
    across = DOWN - (DOWN @ line) * line
    return np.asarray(across / np.linalg.norm(across))

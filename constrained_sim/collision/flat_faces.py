"""Faces of meshes from files, flat again: files hold rounded numbers, so that no four corners of a face are in a plane.

A rigid body would rock on such a face, from one of its triangles to the next. Nobody means that: the corners are moved
onto the plane that they were in before they were rounded, by no more than rounding can have moved them.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.validation import Array, read_only

ROUNDING, SHARE = 1e-5, 1e-4
"""How far a corner may be off its face [m], by numbers of five decimals; and at most, relative to the body's size."""

NARROW = 30.0
"""Width of a face, in units of that distance, below which its corners do not tell its plane."""


KEPT = 256
"""Bodies whose corners are kept: those of a few robots, each of which is often simulated more than once."""


def flattened(points: Array) -> Array:
    """Return the corners (n, 3) [m] of a convex body, each on the largest faces that it is near, three at most.

    Raises:
        scipy.spatial.QhullError: all are in one plane.
        ValueError: fewer than four.
    """
    return _flattened(np.asarray(points, dtype=np.float64).tobytes())


@functools.lru_cache(maxsize=KEPT)
def _flattened(content: bytes) -> Array:
    points = np.frombuffer(content).reshape(-1, 3)
    tolerance = min(ROUNDING, SHARE * float(np.ptp(points, axis=0).max()))
    hull = scipy.spatial.ConvexHull(points)
    a, b, c = points[hull.simplices.T]
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    moved, open_facets = points.copy(), np.ones(len(areas), dtype=np.bool_)
    held: list[list[Array]] = [[] for _ in points]
    for facet in np.argsort(-areas, kind="stable"):
        if not open_facets[facet]:
            continue
        equation = hull.equations[facet]
        for reach in (3.0 * tolerance, 1.5 * tolerance):
            members = np.flatnonzero(np.abs(points @ equation[:3] + equation[3]) <= reach)
            plane = _plane(points[members], NARROW * tolerance)
            if plane is None:
                break
            equation = plane
        else:
            is_member = np.zeros(len(points), dtype=np.bool_)
            is_member[members] = True
            open_facets &= ~is_member[hull.simplices].all(axis=1)
            _move_onto(equation, members, points, moved, held, 3.0 * tolerance)
    return read_only(moved)


def _plane(points: Array, width: float) -> Array | None:
    """Return (4,) normal and offset of the plane nearest to four `points` or more; None where they do not tell it."""
    if len(points) < 4:
        return None
    middle = points.mean(axis=0)
    _, spread, directions = np.linalg.svd(points - middle, full_matrices=False)
    if spread[1] < width:
        return None
    return np.append(directions[2], -directions[2] @ middle)


def _move_onto(
    plane: Array, members: npt.NDArray[np.intp], points: Array, moved: Array, held: list[list[Array]], most: float
) -> None:
    """Move `members` onto a plane (4,) within those on which they are `held` already, `most` [m] from where they were.

    Changes `moved` and `held`; a corner for which that is too far stays where it is.
    """
    for i in members:
        if len(held[i]) == 3:
            continue
        planes = np.array([*held[i], plane])
        step, *_ = np.linalg.lstsq(planes[:, :3], -(planes[:, :3] @ points[i] + planes[:, 3]), rcond=None)
        if np.linalg.norm(step) <= most:
            moved[i] = points[i] + step
            held[i].append(plane)

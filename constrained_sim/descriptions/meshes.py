"""Triangles of mesh files."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.collision.scene import load_mesh
from constrained_sim.exceptions import InvalidValue, ModelError
from constrained_sim.validation import Array

Triangles = npt.NDArray[np.int64]


def load_triangles(path: str) -> tuple[Array, Triangles]:
    """Return vertices (n, 3) and triangles (m, 3) of a mesh file.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        mesh = load_mesh(path)
    except InvalidValue as error:
        raise ModelError(str(error)) from error
    triangles = [mesh.tri_indices(index) for index in range(mesh.num_tris)]
    return np.array(mesh.vertices()), np.array([[t[0], t[1], t[2]] for t in triangles], dtype=np.int64).reshape(-1, 3)


def hull_triangles(vertices: Array) -> Triangles:
    """Return the triangles (m, 3) of the convex hull of points (n, 3), counter-clockwise seen from outside.

    Raises:
        ModelError: all points are in one plane.
    """
    try:
        hull = scipy.spatial.ConvexHull(vertices)
    except (scipy.spatial.QhullError, ValueError) as error:
        raise ModelError(f"a mesh: got {len(vertices)} points, allowed: four or more, not in one plane") from error
    triangles = np.array(hull.simplices, dtype=np.int64)
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    inwards = np.einsum("ti,ti->t", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inwards] = triangles[inwards][:, ::-1]
    return triangles

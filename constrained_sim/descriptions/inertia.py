"""Masses and inertias that a body can have, and those of simple solids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.exceptions import ModelError
from constrained_sim.validation import Array

ROUNDING = 1e-5
"""Share of the largest moment that files round away."""

ROUNDED_AWAY = 1e-12
"""Moments of inertia [kg m^2] that programs write as zero."""


def inertia_matrix(xx: float, yy: float, zz: float, xy: float = 0.0, xz: float = 0.0, yz: float = 0.0) -> Array:
    """Return the symmetric matrix (3, 3) [kg m^2] of these moments and products."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def is_indefinite(inertia: Array) -> bool:
    """Return whether a moment of the rotational `inertia` (3, 3) [kg m^2] is negative, but for rounding."""
    least, _, largest = np.linalg.eigvalsh(inertia)
    return bool(least < -max(ROUNDING * largest, ROUNDED_AWAY))


def fault_of(inertia: Array) -> str:
    """Return why no body has the rotational `inertia` (3, 3) [kg m^2] about its centre of mass; empty if one has.

    The principal moments A <= B <= C of any body are not negative, and A + B >= C. Equality is a rod or a disc, three
    zeros are a point.
    """
    least, middle, largest = np.linalg.eigvalsh(inertia)
    moments = f"principal moments {least:.4g}, {middle:.4g}, {largest:.4g} kg m^2"
    if is_indefinite(inertia):
        return f"{moments}, not positive definite"
    if least + middle < largest * (1.0 - ROUNDING) - ROUNDED_AWAY:
        return f"{moments}, beyond the triangle inequality A + B >= C"
    return ""


def body_inertia(what: str, mass: float, inertia: Array, placement: pin.SE3) -> pin.Inertia:
    """Return the spatial inertia in the frame of a link.

    Args:
        what: the element, for messages.
        mass: [kg].
        inertia: (3, 3) about the centre of mass, its own axes [kg m^2].
        placement: of the centre of mass and these axes in the link.

    Raises:
        ModelError: a negative mass, or an inertia that no body has.
    """
    if not mass >= 0.0:
        raise ModelError(f"mass of {what}: got {mass:g}, allowed: a number >= 0")
    fault = fault_of(inertia)
    if fault:
        raise ModelError(f"inertia of {what}: got {fault}, allowed: what a body can have")
    return placement.act(pin.Inertia(mass, np.zeros(3), inertia))


def solid_inertia(kind: str, size: Array, mass: float | None, density: float) -> pin.Inertia:
    """Return the inertia of a homogeneous solid about its middle, z along the axis of round ones.

    Args:
        kind: ``sphere``, ``ellipsoid``, ``box``, ``cylinder`` or ``capsule``.
        size: half sizes [m]: radius; three half axes; three half edges; radius and half length.
        mass: [kg]; None: by the density.
        density: [kg/m^3].
    """
    size = np.asarray(size, dtype=float)
    if kind in ("sphere", "ellipsoid"):
        axes = np.full(3, size[0]) if kind == "sphere" else size
        return _scaled(4.0 / 3.0 * np.pi * np.prod(axes), (np.sum(axes**2) - axes**2) / 5.0, mass, density)
    if kind == "box":
        return _scaled(8.0 * np.prod(size), (np.sum(size**2) - size**2) / 3.0, mass, density)
    radius, half = size[:2]
    tube, ball = 2.0 * np.pi * radius**2 * half, 4.0 / 3.0 * np.pi * radius**3 * (kind == "capsule")
    across = radius**2 / 4.0 + half**2 / 3.0
    cap = 2.0 / 5.0 * radius**2 + half**2 + 3.0 / 4.0 * half * radius
    volume = tube + ball
    side, axial = (tube * across + ball * cap) / volume, (tube * radius**2 / 2.0 + ball * 0.4 * radius**2) / volume
    return _scaled(volume, np.array([side, side, axial]), mass, density)


def _scaled(volume: float | np.floating, moments: Array, mass: float | None, density: float) -> pin.Inertia:
    """Return the inertia of a volume [m^3] with these moments [m^2 per unit of mass]."""
    mass = float(density * volume if mass is None else mass)
    return pin.Inertia(mass, np.zeros(3), np.diag(mass * moments))


def mesh_inertia(
    vertices: Array, triangles: npt.NDArray[np.int64], mass: float | None, density: float, always_outwards: bool = False
) -> pin.Inertia:
    """Return the inertia of the solid within a closed surface, in the frame of its vertices.

    The sum of the tetrahedra between the triangles and a point (Tonon, Explicit exact formulas for the 3-D tetrahedron
    inertia tensor, 2005); where the surface looks towards the point, their volumes count as negative.

    Args:
        vertices: (n, 3) [m].
        triangles: (m, 3) indices.
        mass: [kg]; None: by the density.
        density: [kg/m^3].
        always_outwards: count all volumes as positive, about the centroid of the surface and then about the centre of
            mass: MuJoCo's way for surfaces whose triangles look anywhere.

    Raises:
        ModelError: a surface that encloses no volume.
    """
    corners = vertices[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    apex = areas @ corners.mean(axis=1) / max(areas.sum(), 1e-300)
    volumes = _volumes(corners - apex, always_outwards)
    size = float(np.ptp(vertices, axis=0).max())
    if abs(volumes.sum()) <= 1e-12 * size**3:
        raise ModelError("a mesh: got one that encloses no volume, allowed: a closed surface, or an <inertial>")
    centre = apex + volumes @ (corners - apex).sum(axis=1) / 4.0 / volumes.sum()
    corners = corners - centre
    volumes = _volumes(corners, always_outwards)
    sums = corners.sum(axis=1)
    second = np.einsum("t,tij,tik->jk", volumes, corners, corners) + np.einsum("t,ti,tj->ij", volumes, sums, sums)
    spread = second / 20.0 / volumes.sum()
    mass = float(density * abs(volumes.sum()) if mass is None else mass)
    return pin.Inertia(mass, centre, mass * (np.trace(spread) * np.eye(3) - spread))


def _volumes(corners: Array, always_positive: bool) -> Array:
    """Return (t,) the volumes [m^3] of the tetrahedra between triangles (t, 3, 3) and the origin."""
    volumes = np.linalg.det(corners) / 6.0
    return np.abs(volumes) if always_positive else np.asarray(volumes)

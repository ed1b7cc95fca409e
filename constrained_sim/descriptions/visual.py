"""Shapes that a link is shown with."""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

from constrained_sim.descriptions.meshes import Triangles
from constrained_sim.validation import Array

GREY = (0.62, 0.65, 0.7, 1.0)
"""Red, green, blue and opacity of what has no colour of its own."""


@dataclass(frozen=True, eq=False)
class Visual:
    """One shape of a link.

    Attributes:
        link: that carries it.
        placement: of the shape in the link's frame.
        kind: ``sphere``, ``box``, ``cylinder``, ``capsule``, ``ellipsoid`` or ``mesh``.
        size: [m]: radius; three edges; radius and length; three half axes; or the factors of a mesh along its axes.
        file: of a mesh; empty: `vertices`.
        colour: red, green, blue and opacity, 0 to 1.
        vertices: (n, 3) of a mesh without a file [m].
        triangles: (m, 3) indices of `vertices`; None: their hull.
    """

    link: str
    placement: pin.SE3
    kind: str
    size: tuple[float, ...]
    file: str = ""
    colour: tuple[float, ...] = GREY
    vertices: Array | None = None
    triangles: Triangles | None = None

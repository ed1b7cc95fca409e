"""Collision geometry as a description states it."""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

from constrained_sim.validation import Array


@dataclass(frozen=True, eq=False)
class CollisionElement:
    """One shape of a link.

    Attributes:
        link: that carries it.
        name: that of a geom of an MJCF; ``<link>_<index>`` of all others.
        placement: of the shape in the link's frame.
        kind: ``sphere``, ``box``, ``cylinder``, ``capsule``, ``mesh``, or what the file says and nobody supports.
        size: [m]: radius; three edges; radius and length; or the factors of a mesh along its axes.
        file: of a mesh, as the description names it.
        vertices: (n, 3) of a mesh without a file [m].
        friction: Coulomb coefficient; None: the description has none.
        where: the element and its line, for messages.
    """

    link: str
    name: str
    placement: pin.SE3
    kind: str
    size: tuple[float, ...] = ()
    file: str = ""
    vertices: Array | None = None
    friction: float | None = None
    where: str = ""

"""A contact on one robot: what touches, along which axes, and which forces that may have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from constrained_sim.contact.features import UNDIRECTED, NormalOwner
from constrained_sim.contact.laws import Law
from constrained_sim.robot import WORLD
from constrained_sim.validation import Array


class ContactProperties(NamedTuple):
    """Which forces and impulses a contact may have, wherever it is.

    Attributes:
        law: which forces.
        coefficient: of friction in effect under the law; infinite where the contact sticks.
        restitution: coefficient, 0 to 1.
        is_poisson: whether this relates impulses, not velocities.
        torsional_friction: [m].
        rolling_friction: [m].
    """

    law: Law
    coefficient: float
    restitution: float
    is_poisson: bool
    torsional_friction: float
    rolling_friction: float


@dataclass(frozen=True, eq=False)
class BoundContact:
    """A contact on one robot: a :class:`PointContact` that was bound, or one that collision geometry detected.

    Attributes:
        name: of the contact.
        link: that touches.
        properties: which forces and impulses it may have.
        joint: index of the joint that carries the link.
        offset: (3,) point or centre of the sphere [m], in that joint's frame.
        radius: of the sphere [m].
        other_joint: that carries the surface; 0: the world.
        other_offset: (3,) a point of the surface, or of the other body's feature [m], in the other joint's frame.
        axes: (3, 3) rows t1, t2, n of the contact when it was bound, world axes.
        normal_owner: what the normal follows, see :class:`~constrained_sim.contact.features.NormalOwner`.
        other_radius: by which the other body's feature is grown [m].
        directions: (2, 3) unit vectors of lines, circles and faces in the joints' frames; else zero.
        rim_radii: radii of circles [m]; else 0.
        other_link: whose surface it is, where that is a link's.
        declaration: the :class:`~constrained_sim.constraints.PointContact` that was bound; None of what was detected.
    """

    name: str
    link: str
    properties: ContactProperties
    joint: int
    offset: Array
    radius: float
    other_joint: int
    other_offset: Array
    axes: Array
    normal_owner: NormalOwner = NormalOwner.SECOND
    other_radius: float = 0.0
    directions: Array = field(default_factory=lambda: UNDIRECTED)
    rim_radii: tuple[float, float] = (0.0, 0.0)
    other_link: str = WORLD
    declaration: Any = None

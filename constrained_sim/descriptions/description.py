"""What a robot description says, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pinocchio as pin

from constrained_sim.constraints import Constraint


class Spring(NamedTuple):
    """A linear spring in a joint with one degree of freedom.

    Attributes:
        stiffness: [N m/rad, N/m].
        reference: position at which it is relaxed [rad, m].
    """

    stiffness: float
    reference: float


@dataclass(frozen=True, eq=False)
class Description:
    """A tree of bodies, and what closes its loops.

    Attributes:
        model: the tree.
        constraints: bilateral constraints that the description implies.
        floating_base: whether the root is a free-flyer.
        passive: joints that take no effort unless told otherwise.
        springs: by joint.
        text: of the description, where it is a URDF; else empty.
    """

    model: pin.Model
    constraints: tuple[Constraint, ...] = ()
    floating_base: bool = False
    passive: tuple[str, ...] = ()
    springs: Mapping[str, Spring] = field(default_factory=dict)
    text: str = ""

"""What a robot description says, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pinocchio as pin

from constrained_sim.constraints import Constraint
from constrained_sim.exceptions import ModelError
from constrained_sim.joints import Spring


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


def read_text(path_or_xml: str | os.PathLike[str]) -> str:
    """Return the text of a robot description, given as a file or as itself.

    Raises:
        ModelError: the file cannot be read.
    """
    if isinstance(path_or_xml, str) and path_or_xml.lstrip().startswith("<"):
        return path_or_xml
    try:
        return Path(path_or_xml).read_text(encoding="utf-8")
    except (OSError, TypeError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot read the robot description {str(path_or_xml)!r}: {error}") from error


def refuse_massless_joints(model: pin.Model) -> None:
    """Refuse a joint some motion of which moves no inertia: M would be singular at every configuration.

    The composite inertia of the subtree, seen along the joint's own axes, must be positive definite; armature counts.
    """
    if not all(np.isfinite(inertia.toDynamicParameters()).all() for inertia in model.inertias):
        raise ModelError("an inertia of the robot description is not finite")
    data = model.createData()
    inertia = pin.crba(model, data, pin.neutral(model), pin.Convention.WORLD)
    for index, joint in list(enumerate(model.joints))[1:]:
        block = slice(joint.idx_v, joint.idx_v + joint.nv)
        if np.linalg.eigvalsh(inertia[block, block]).min() <= 1e-12:
            raise ModelError(
                f"joint {model.names[index]!r} moves but carries no mass: give an <inertial> to a link behind it"
            )

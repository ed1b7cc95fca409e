"""Content of a robot description, independent of its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from constrained_sim.constraints import Constraint
from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.descriptions.inertia import is_indefinite
from constrained_sim.descriptions.visual import Visual
from constrained_sim.exceptions import ModelError
from constrained_sim.joints import Spring
from constrained_sim.validation import Array

LARGEST_SYSTEM = 300
"""Degrees of freedom of the largest robot: Pinocchio's working memory grows with their cube, to 0.9 GB there."""

LONGEST_CHAIN = 1000
"""Links in a row: Pinocchio's URDF reader descends by recursion, and ends the process some thousands further on."""

MOST_LINKS = 5000
"""Links of the largest robot."""

LEAST_INERTIA = 1e-12
"""[kg, kg m^2] Least inertia that a joint moves; what is left of bodies that have none is rounding."""

SINGULAR = 1e-14
"""Least eigenvalue of the inertia, scaled to a diagonal of one, that is zero but for rounding."""


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
        collisions: its collision geometry.
        ignored: what it says and nobody uses, one line each.
        effort_ranges: least and largest effort [N m, N] of joints that are stronger one way.
        visuals: shapes that it is shown with, where `text` does not say.
        free_poses: where it places what floats, position [m] and quaternion xyzw (7,) by joint; the origin otherwise.
    """

    model: pin.Model
    constraints: tuple[Constraint, ...] = ()
    floating_base: bool = False
    passive: tuple[str, ...] = ()
    springs: Mapping[str, Spring] = field(default_factory=dict)
    text: str = ""
    collisions: tuple[CollisionElement, ...] = ()
    ignored: tuple[str, ...] = ()
    effort_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    visuals: tuple[Visual, ...] = ()
    free_poses: Mapping[str, Array] = field(default_factory=dict)


def check_size(what: str, links: int, moving: int) -> None:
    """Refuse more than can be simulated, before it is built.

    Args:
        what: the description, for messages.
        links: how many there are.
        moving: joints.

    Raises:
        ModelError: too many of one.
    """
    for kind, count, most in (("links", links, MOST_LINKS), ("moving joints", moving, LARGEST_SYSTEM)):
        if count > most:
            raise ModelError(f"the {what}: got {count} {kind}, allowed: {most} at most")


def refuse_impossible_bodies(model: pin.Model) -> None:
    """Refuse a body, of all links that one joint moves together, with a negative moment of inertia.

    A single link may have one: many published robots have small links that no body could be, fixed on larger ones.

    Raises:
        ModelError: names the links; or a number that is not finite.
    """
    for index, inertia in list(enumerate(model.inertias))[1:]:
        if not np.isfinite(inertia.toDynamicParameters()).all():
            raise ModelError("an inertia of the robot description is not finite")
        if is_indefinite(np.asarray(inertia.inertia)):
            names = [f.name for f in model.frames if f.parentJoint == index and f.type == pin.FrameType.BODY]
            moments = ", ".join(f"{moment:.4g}" for moment in np.linalg.eigvalsh(inertia.inertia))
            raise ModelError(
                f"inertia of {', '.join(map(repr, names))} on joint {model.names[index]!r}: got the principal moments "
                f"{moments} kg m^2, allowed: a positive definite inertia"
            )


def refuse_massless_joints(model: pin.Model) -> None:
    """Refuse joints some motion of which moves no inertia: M would be singular at every configuration.

    The composite inertia of the subtree of each, seen along the joint's own axes, must be positive definite, and so
    must the whole matrix, rows and columns scaled to a diagonal of one: a link without mass that only a joint behind it
    holds, as between a free-flyer and a hinge, moves no inertia with both. Armature counts.

    Raises:
        ModelError: names a joint.
    """
    if model.nv > LARGEST_SYSTEM:
        raise ModelError(f"the robot description: got {model.nv} degrees of freedom, allowed: {LARGEST_SYSTEM} at most")
    data = model.createData()
    inertia = pin.crba(model, data, pin.neutral(model), pin.Convention.WORLD)
    for index, joint in list(enumerate(model.joints))[1:]:
        block = slice(joint.idx_v, joint.idx_v + joint.nv)
        if np.linalg.eigvalsh(inertia[block, block]).min() <= LEAST_INERTIA:
            raise ModelError(
                f"joint {model.names[index]!r} moves but carries no mass, or next to none: give a link behind it an "
                f"<inertial> with more than {LEAST_INERTIA:g} kg (kg m^2)"
            )
    generic = pin.integrate(model, pin.neutral(model), np.sin(np.arange(1.0, model.nv + 1.0)))
    inertia = pin.crba(model, data, generic, pin.Convention.WORLD)
    size = np.sqrt(np.diag(inertia))
    values, vectors = np.linalg.eigh(inertia / np.outer(size, size))
    if model.nv and values[0] <= SINGULAR:
        moving = int(np.argmax(np.abs(vectors[:, 0])))
        index = next(i for i, joint in enumerate(model.joints) if i and joint.idx_v <= moving < joint.idx_v + joint.nv)
        raise ModelError(
            f"joint {model.names[index]!r} moves together with others without moving any mass: give an <inertial> to "
            "the links between them"
        )

"""Kinds of constraints, one file each, and their registry."""

from __future__ import annotations

from constrained_sim.constraints.constraint import Bilateral, BoundConstraint, Constraint
from constrained_sim.constraints.constraint_stack import ConstraintStack
from constrained_sim.constraints.custom_constraint import CustomConstraint
from constrained_sim.constraints.frame_anchor import FrameAnchor
from constrained_sim.constraints.joint_coupling import JointCoupling
from constrained_sim.constraints.joint_limit import JointLimit
from constrained_sim.constraints.joint_velocity import JointVelocity
from constrained_sim.constraints.point_anchor import PointAnchor
from constrained_sim.constraints.point_contact import PointContact, point_contacts
from constrained_sim.constraints.point_distance import PointDistance

KINDS = (
    PointAnchor,
    PointDistance,
    FrameAnchor,
    JointCoupling,
    JointVelocity,
    CustomConstraint,
    PointContact,
    JointLimit,
)

CONSTRAINTS: dict[str, type[Constraint]] = {kind.kind: kind for kind in KINDS}

__all__ = [
    "CONSTRAINTS",
    "Bilateral",
    "BoundConstraint",
    "Constraint",
    "ConstraintStack",
    "CustomConstraint",
    "FrameAnchor",
    "JointCoupling",
    "JointLimit",
    "JointVelocity",
    "PointAnchor",
    "PointContact",
    "PointDistance",
    "point_contacts",
]

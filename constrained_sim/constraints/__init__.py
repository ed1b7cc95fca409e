"""Kinds of constraints, one file each, and their registry."""

from __future__ import annotations

from constrained_sim.constraints.constraint import Bilateral, BoundConstraint, Constraint, ConstraintStack
from constrained_sim.constraints.point_anchor import PointAnchor
from constrained_sim.constraints.point_contact import BoundContact, PointContact

CONSTRAINTS: dict[str, type[Constraint]] = {kind.kind: kind for kind in (PointAnchor, PointContact)}

__all__ = [
    "CONSTRAINTS",
    "Bilateral",
    "BoundConstraint",
    "BoundContact",
    "Constraint",
    "ConstraintStack",
    "PointAnchor",
    "PointContact",
]

"""Bilateral constraints as messages declare them, and back: fields of the same name, or the forms of geometry_msgs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from constrained_sim import msg
from constrained_sim.constraints import CONSTRAINTS, Constraint
from constrained_sim.ros.conversions import point, pose_message, pose_values, vector, xyz
from constrained_sim.validation import lookup


class Form(NamedTuple):
    """How a field of a constraint stands in a message under another name, or as another type.

    Attributes:
        field: of the message.
        read: returns the value of a constraint for that of a message.
        write: returns the value of a message for that of a constraint.
    """

    field: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def _point_in_pose(value: Any) -> Any:
    pose = msg.Constraint().pose_a
    pose.position = point(value)
    return pose


def _numbers(axes: Any) -> list[float]:
    return [] if axes is None else np.ravel(axes).tolist()


def _vectors(normals: Any) -> list[Any]:
    return [vector(normal) for normal in (() if normals is None else normals)]


FORMS = {
    "point_a": Form("pose_a", lambda pose: xyz(pose.position), _point_in_pose),
    "point_b": Form("pose_b", lambda pose: xyz(pose.position), _point_in_pose),
    "placement_a": Form("pose_a", pose_values, pose_message),
    "placement_b": Form("pose_b", pose_values, pose_message),
    "normals": Form("normals", lambda normals: [xyz(normal) for normal in normals] or None, _vectors),
    "axes": Form("axes", lambda axes: list(axes) or None, _numbers),
}

LINKS = ("link_a", "link_b")
"""Fields that name links, by their frames or by their own names."""

SLOTS = set(msg.Constraint.get_fields_and_field_types())


def _form(name: str) -> Form:
    """Return the form of a field of a constraint; by its own name and as it is where there is no other."""
    return FORMS.get(name, Form(name, lambda value: value, lambda value: np.nan if callable(value) else value))


def _is_declarable(kind: type) -> bool:
    """Whether a kind of constraint has fields, and the message has them all."""
    return is_dataclass(kind) and all(_form(f.name).field in SLOTS for f in fields(kind))


KINDS = {name: kind for name, kind in CONSTRAINTS.items() if not kind.is_unilateral and _is_declarable(kind)}
"""Constraints that a message can declare, by kind."""


def constraint_from_message(message: msg.Constraint, link_of: Callable[[str], str]) -> Constraint:
    """Return the declared bilateral constraint, of the links that `link_of` finds by their names.

    Raises:
        ConstrainedSimError: a value that is not allowed.
    """
    kind = lookup("kind of constraint", message.kind, KINDS)
    values: dict[str, Any] = {}
    for f in fields(kind):  # type: ignore[arg-type]
        form = _form(f.name)
        is_target = f.name in kind.targets and message.hold_current
        values[f.name] = None if is_target else form.read(getattr(message, form.field))
    values |= {name: link_of(values[name]) for name in LINKS if name in values}
    return kind(**values)


def constraint_to_message(constraint: Constraint, enabled: bool) -> msg.Constraint:
    """Return the declaration of `constraint`; one that no message can declare has its name and kind only.

    Of a target that moves, ``hold_current`` is set; a velocity that is a function is NaN.
    """
    message = msg.Constraint(name=constraint.name, kind=constraint.kind, enabled=enabled)
    kind = type(constraint)
    if KINDS.get(constraint.kind) is not kind:
        return message
    message.hold_current = False
    for f in fields(kind):  # type: ignore[arg-type]
        value, form = getattr(constraint, f.name), _form(f.name)
        if f.name in kind.targets and (value is None or callable(value)):
            message.hold_current = True
        else:
            setattr(message, form.field, form.write(value))
    return message

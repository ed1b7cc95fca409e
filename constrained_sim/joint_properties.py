"""Numbers of joints in Pinocchio's model, by one name each: Pinocchio's own differ between its versions.

Since version 4 bounds of effort, speed and dry friction have two ends, of which the lower ones are the negative of the
upper ones here. Before, there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.validation import Array

OF_POSITIONS = {"lower": "lowerPositionLimit", "upper": "upperPositionLimit"}
"""Pinocchio's attribute (nq,) for each property of positions."""

OF_VELOCITIES = {
    "armature": ("armature",),
    "damping": ("damping",),
    "friction": ("upperDryFrictionLimit", "lowerDryFrictionLimit"),
    "effort": ("upperEffortLimit", "lowerEffortLimit"),
    "velocity": ("upperVelocityLimit", "lowerVelocityLimit"),
}
"""Pinocchio's attributes (nv,) for each property of velocities, upper and lower."""

if not hasattr(pin.Model, "upperEffortLimit"):  # Pinocchio 3
    OF_VELOCITIES |= {"friction": ("friction",), "effort": ("effortLimit",), "velocity": ("velocityLimit",)}

JOINT_PROPERTIES = (*OF_VELOCITIES, *OF_POSITIONS)


def property_of(model: pin.Model, key: str) -> Array:
    """Return the values of a property of all joints, (nq,) or (nv,): a copy."""
    return np.array(getattr(model, OF_POSITIONS[key] if key in OF_POSITIONS else OF_VELOCITIES[key][0]))


def set_property_of(model: pin.Model, key: str, values: Array) -> None:
    """Set a property of all joints of `model`, (nq,) or (nv,)."""
    if key in OF_POSITIONS:
        setattr(model, OF_POSITIONS[key], values)
        return
    for attribute, sign in zip(OF_VELOCITIES[key], (1.0, -1.0), strict=False):
        setattr(model, attribute, sign * values)


def set_joint_property(model: pin.Model, joint: Any, key: str, value: float) -> None:
    """Set a property of one `joint` of `model`, in all its degrees of freedom."""
    values = property_of(model, key)
    first, count = (joint.idx_q, joint.nq) if key in OF_POSITIONS else (joint.idx_v, joint.nv)
    values[first : first + count] = value
    set_property_of(model, key, values)

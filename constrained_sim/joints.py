"""Joints by name: where one stands in q and v, the values it may take, and the properties it carries."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.exceptions import InvalidValue
from constrained_sim.joint_properties import OF_POSITIONS, set_joint_property
from constrained_sim.validation import Array, finite_array, lookup, number


class HasJoints(Protocol):
    """What has joints by name, as a robot."""

    @property
    def joint_models(self) -> Mapping[str, pin.JointModel]:
        """Pinocchio's model of every moving joint, by name."""


class Spring(NamedTuple):
    """A linear spring in a joint with one degree of freedom.

    Attributes:
        stiffness: [N m/rad, N/m].
        reference: position at which it is relaxed [rad, m].
    """

    stiffness: float
    reference: float


@dataclass(frozen=True)
class SingleJoint:
    """Where a joint with one degree of freedom stands in q and v.

    Attributes:
        q: index into the configuration; of the cosine, for a continuous joint.
        v: index into the velocity.
        turns: whether the joint is continuous, stored as (cos, sin).
    """

    q: int
    v: int
    turns: bool

    @classmethod
    def of(cls, robot: HasJoints, name: str) -> SingleJoint:
        """Look up a joint.

        Raises:
            UnknownName: no such joint, or one with several degrees of freedom.
        """
        return lookup("joint with one degree of freedom", name, single_joints(robot.joint_models))

    def position(self, q: Array) -> float:
        """Return the position [rad, m]; of a continuous joint within -pi .. pi."""
        return float(np.arctan2(q[self.q + 1], q[self.q]) if self.turns else q[self.q])

    def place(self, q: Array, position: float) -> None:
        """Write `position` [rad, m] into the configuration `q`."""
        if self.turns:
            q[self.q : self.q + 2] = np.cos(position), np.sin(position)
        else:
            q[self.q] = position


def single_joints(joint_models: Mapping[str, pin.JointModel]) -> dict[str, SingleJoint]:
    """Return those of `joint_models` that have one degree of freedom, by name and in their order."""
    return {
        name: SingleJoint(int(joint.idx_q), int(joint.idx_v), joint.nq == 2)
        for name, joint in joint_models.items()
        if joint.nv == 1
    }


def within_a_turn(angle: Array) -> Array:
    """Return what is left of `angle` (...) [rad] without whole turns: -pi to pi, and bit by bit itself within."""
    return np.asarray(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi)))


def places_of(
    joints: Sequence[SingleJoint],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return (n,) indices of n joints into q and into v, and which of them are continuous."""
    return (
        np.array([joint.q for joint in joints], dtype=np.int64),
        np.array([joint.v for joint in joints], dtype=np.int64),
        np.array([joint.turns for joint in joints], dtype=np.bool_),
    )


def joint_values(joint: Any, name: str, value: Any) -> Array:
    """Return (nq,) the coordinates of a joint at `value`: a number where it has one degree of freedom.

    Raises:
        InvalidValue: wrong length, not finite, or a quaternion or a (cos, sin) of zero length.
    """
    if joint.nv == 1:
        angle = number(f"value of joint {name!r}", value)
        return np.array([np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle])
    values = finite_array(f"value of joint {name!r}", value, (joint.nq,))
    alone = pin.Model()
    alone.addJoint(0, joint, pin.SE3.Identity(), name)
    unit = pin.normalize(alone, values)
    if not pin.isNormalized(alone, unit, UNIT_ERROR):
        raise InvalidValue(f"value of joint {name!r}", values.tolist(), "a quaternion, or (cos, sin), that is not zero")
    return np.asarray(unit)


def set_property(model: pin.Model, name: str, key: str, value: Any) -> None:
    """Set one property of a joint in `model`.

    Raises:
        InvalidValue: a negative value, NaN, position limits of several coordinates, or an effort or velocity of zero.
    """
    joint, what = model.joints[model.getJointId(name)], f"{key} of joint {name!r}"
    is_of_position = key in OF_POSITIONS
    _check_property(joint, what, value, is_of_position, not is_of_position, key in LIMITS)
    if value == 0 and key in ("effort", "velocity"):  # which descriptions give for "no limit"
        raise InvalidValue(what, value, "more than 0; .inf for no limit")
    set_joint_property(model, joint, key, value)


def check_limits(model: pin.Model, name: str) -> None:
    """Refuse position limits of a joint in the wrong order.

    Raises:
        InvalidValue: they are.
    """
    joint = model.joints[model.getJointId(name)]
    if joint.nq == 1:
        limits = float(model.lowerPositionLimit[joint.idx_q]), float(model.upperPositionLimit[joint.idx_q])
        if not limits[0] <= limits[1]:
            raise InvalidValue(f"lower and upper of joint {name!r}", limits, "lower <= upper; equal ones hold it")


def with_spring(joint: Any, name: str, spring: Spring, key: str, value: Any) -> Spring:
    """Return the spring of a joint with one property set.

    Raises:
        InvalidValue: a negative stiffness, a value that is not finite, or a joint with several coordinates.
    """
    attribute = SPRING_PROPERTIES[key]
    _check_property(joint, f"{key} of joint {name!r}", value, True, attribute == "stiffness")
    return spring._replace(**{attribute: number(f"{key} of joint {name!r}", value)})


def _check_property(
    joint: Any, what: str, value: Any, is_of_position: bool, is_positive: bool, may_be_infinite: bool = False
) -> None:
    if is_of_position and joint.nq != 1:
        raise InvalidValue(what, value, "none: this joint has no single position")
    largest = np.inf if may_be_infinite else sys.float_info.max
    is_number = not isinstance(value, bool) and isinstance(value, Real) and bool(abs(value) <= largest)  # type: ignore[operator]
    if not is_number or (is_positive and value < 0.0):
        allowed = "a number that is not negative" if is_positive else "a number"
        raise InvalidValue(what, value, allowed if may_be_infinite else allowed.replace("a", "a finite", 1))


UNIT_ERROR = 1e-9
"""Error of the length of what has been normalised: only what had no length has more."""

LIMITS = ("effort", "velocity", "lower", "upper")
"""Properties that may be infinite: no limit."""

SPRING_PROPERTIES = {"stiffness": "stiffness", "spring_reference": "reference"}

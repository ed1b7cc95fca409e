"""Snapshot of a simulated robot in a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from constrained_sim.exceptions import UnknownName
from constrained_sim.joints import single_joints
from constrained_sim.robot import Robot
from constrained_sim.step_result import ContactForce
from constrained_sim.validation import Array

T = TypeVar("T")

SINGLE_JOINT = "joint with one degree of freedom"


class ByName(dict[str, T]):
    """Values by name; a name that is not there is refused with those that are.

    Attributes:
        kind: what the names are of, e.g. ``"contact"``.
    """

    def __init__(self, kind: str, values: Mapping[str, T]) -> None:
        """Hold a copy of `values`."""
        super().__init__(values)
        self.kind = kind

    def __missing__(self, name: str) -> T:
        """Refuse a name.

        Raises:
            UnknownName: always.
        """
        raise UnknownName(self.kind, name, self)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A simulated robot at the end of a control period.

    Attributes:
        t: time since the last reset [s].
        q: (nq,) configuration in Pinocchio's conventions [rad, m].
        v: (nv,) velocity [rad/s, m/s].
        tau: (nu,) efforts as applied, after limiting [N m, N]; zero at a reset.
        contacts: by name, open ones too; forces are means over the period. Empty at a reset: no force has acted.
    """

    t: float
    q: Array
    v: Array
    tau: Array
    contacts: Mapping[str, ContactForce]
    _robot: Robot

    def __post_init__(self) -> None:
        """Let contacts that are not there be refused by name."""
        object.__setattr__(self, "contacts", ByName("contact", self.contacts))

    @cached_property
    def position(self) -> Mapping[str, float]:
        """Position [rad, m] of every joint with one degree of freedom; of a continuous joint within one turn."""
        joints = single_joints(self._robot.joint_models)
        return ByName(SINGLE_JOINT, {name: joint.position(self.q) for name, joint in joints.items()})

    @cached_property
    def velocity(self) -> Mapping[str, float]:
        """Velocity [rad/s, m/s] of every joint with one degree of freedom."""
        joints = single_joints(self._robot.joint_models)
        return ByName(SINGLE_JOINT, {name: float(self.v[joint.v]) for name, joint in joints.items()})

    @cached_property
    def effort(self) -> Mapping[str, float]:
        """Effort as applied [N m, N] of every actuated joint with one degree of freedom."""
        efforts = dict(zip(self._robot.actuation.tolist(), self.tau.tolist(), strict=True))
        joints = single_joints(self._robot.joint_models)
        driven = {name: efforts[joint.v] for name, joint in joints.items() if joint.v in efforts}
        return ByName(f"actuated {SINGLE_JOINT}", driven)

    def __str__(self) -> str:
        """Return time, positions and contacts for people."""
        positions = ", ".join(f"{name} {value:.6g}" for name, value in self.position.items())
        contacts = ", ".join(
            f"{name} {contact.status.name.lower()} with {contact.normal_force:.6g} N"
            for name, contact in self.contacts.items()
        )
        return f"t = {self.t:.9g} s: {positions}; contacts: {contacts or 'none yet'}"


Condition = Callable[[Snapshot], object]
"""Whether something is true of a snapshot."""


def assert_throughout(snapshots: Iterable[Snapshot], condition: Condition, what: str = "the condition") -> None:
    """Check that `condition` holds in every one of `snapshots`.

    Args:
        snapshots: states of the simulation, in the order of time.
        condition: function of a snapshot that returns whether it holds.
        what: name of the condition, for the message.

    Raises:
        AssertionError: with the first snapshot in which it does not.
    """
    for snapshot in snapshots:
        if not condition(snapshot):
            raise AssertionError(f"{what} does not hold at {snapshot}")


def required_friction(contact: ContactForce) -> float:
    """Return the least coefficient of friction whose Coulomb cone ``|f_t| <= friction f_n`` holds the contact's force.

    The simulated force is within the cone of ``contact.friction``; on slipperier ground, with a coefficient down to
    this one, it would be the same. 0 without force; infinity for a force along the ground alone.
    """
    along = float(np.linalg.norm(contact.force - contact.normal_force * contact.normal))
    if along == 0.0:
        return 0.0
    return along / contact.normal_force if contact.normal_force > 0.0 else math.inf

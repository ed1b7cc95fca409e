"""The part of a robot beyond a cut, and the force that holds it there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from constrained_sim.dynamics import kinematics
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at, motion_at
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.robot import WORLD, Robot, frame_with_inertia
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array
from constrained_sim.wrench import wrench_about_origin

BEGINNINGS = (pin.FrameType.BODY, pin.FrameType.FIXED_JOINT, pin.FrameType.JOINT)
"""Types of the frames with which a part may begin."""


class Part(NamedTuple):
    """A link and everything that descends from it, cut off from what carries it.

    Attributes:
        links: indices into the model's frames of all its links.
        joint: that moves the first of its bodies.
        inertia: of all its bodies that move with `joint`, in the joint's frame.
        branches: joints that move its other bodies, each with everything behind it.
    """

    links: frozenset[int]
    joint: int
    inertia: pin.Inertia
    branches: tuple[int, ...]

    def holding_force(self, robot: Robot, result: StepResult) -> tuple[Array, Dynamics]:
        """Return (6,) what the rest of `robot` exerts on this part, through the cut only, and the motion it goes with.

        Newton-Euler: the rate of change of the part's momentum, less its weight, less :meth:`external_force`. Force [N]
        and moment about the world's origin [N m], world axes; in the middle of the step, with the mean acceleration and
        the mean forces of the step, and the mean of what its velocities cause.
        """
        t, q = result.middle.t, result.middle.q
        total = -self.external_force(robot, result, kinematics_at(robot, q, t))
        for share, v in result.phases:
            dynamics = motion_at(robot, q, v, result.a, t)
            total += share * dynamics.driving_force(self.joint, self.inertia, self.branches)
        return total, dynamics

    def external_force(self, robot: Robot, result: StepResult, dynamics: Dynamics) -> Array:
        """Return (6,) what acts on this part from outside, gravity and the cut aside, as :meth:`holding_force` does.

        That is contacts, anchors and rods with the world and with links outside the part, and applied wrenches; the
        mean forces of a step, at the configuration of `dynamics`. Efforts in joints, also those of couplings, limits
        and custom constraints, act between the bodies that the joint connects: they are no external forces.
        """
        total, bound = np.zeros(6), result.outcome.end.bound
        if bound.contacts.members:
            geometry, table = bound.contacts.rows(dynamics, dynamics.v), bound.contacts
            forces = table.forces(bound.split(result.lam)[1], geometry.axes)
            moments = table.resistance.moments(result.outcome.moments, geometry.axes)
            for member, *at_point in zip(table.members, geometry.points, forces, moments, strict=True):
                sign = self._sign(robot, member.link, member.other_link)
                if sign:
                    total += sign * _about_origin(*at_point)
        for constraint in bound.bilateral.members:
            links = constraint.declaration.links
            if links:
                sign = self._sign(robot, *links)
                if sign:
                    wrench = constraint.wrench(dynamics, result.multipliers(constraint.name), links[0])
                    total += sign * _about_origin(constraint.wrench_point(dynamics), wrench[:3], wrench[3:])
        for applied in result.wrenches:
            if self._sign(robot, applied.link):
                total += wrench_about_origin(robot, dynamics, applied)
        return total

    def _sign(self, robot: Robot, link: str, other: str = WORLD) -> int:
        """Return 1 if of two links the first alone belongs to this part, -1 if the second, 0 if both or none."""
        return int(robot.links[link] in self.links) - int(robot.links[other] in self.links)


def _about_origin(point: Array, force: Array, torque: Array) -> Array:
    """Return (6,) a force, and its moment about the origin: `torque` (3,) is about `point` (3,)."""
    return np.concatenate([force, torque + kinematics.cross(point, force)])


@lru_cache(maxsize=64)
def part_beyond(robot: Robot, link: str) -> Part:
    """Return the part of `robot` that begins with `link`.

    The cut is where a joint, fixed or not, holds the link. Of a frame that is no link, such as a site of an MJCF, it is
    where one holds the link that the frame belongs to. A frame that names no other frame as its parent hangs on its
    joint.

    Raises:
        UnknownName: no such link or frame.
        InvalidValue: what belongs to the world, which nothing holds.
    """
    if link not in robot.links:
        raise UnknownName("link", link, robot.links)
    frames, model = list(robot.model.frames), robot.model
    first = robot.links[link]
    while frames[first].type not in BEGINNINGS and frames[first].parentFrame:
        first = frames[first].parentFrame
    joint = int(frames[first].parentJoint)
    if not first or (not joint and frames[first].type not in BEGINNINGS):
        raise InvalidValue("link to be cut off", link, "a link of the robot")
    first = frame_with_inertia(model, first)
    if frames[frames[first].parentFrame].parentJoint != joint:  # the joint holds it: all that the joint moves is beyond
        inertia, branches = pin.Inertia(model.inertias[joint]), tuple(_children(model, joint))
        return Part(_moved_by(frames, model.subtrees[joint]), joint, inertia, branches)
    beyond = {first}
    for index in range(first + 1, len(frames)):
        if frames[index].parentFrame in beyond:
            beyond.add(index)
    inertia = pin.Inertia.Zero()
    for index in sorted(beyond):
        if frames[index].parentJoint == joint:
            inertia += frames[index].placement.act(frames[index].inertia)
    carried = {frames[index].parentJoint for index in beyond}
    branches = tuple(k for k in _children(model, joint) if not carried.isdisjoint(model.subtrees[k]))
    links = beyond.union(*(_moved_by(frames, model.subtrees[k]) for k in branches))
    return Part(frozenset(links), joint, inertia, branches)


def _children(model: pin.Model, joint: int) -> Iterator[int]:
    """Yield the joints that a `joint` carries."""
    return (k for k in range(1, model.njoints) if model.parents[k] == joint)


def _moved_by(frames: Sequence[pin.Frame], joints: Iterable[int]) -> frozenset[int]:
    """Return which of the `frames` these `joints` move."""
    moving = set(joints)
    return frozenset(index for index, frame in enumerate(frames) if frame.parentJoint in moving)

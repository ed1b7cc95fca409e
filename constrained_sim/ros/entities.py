"""The robot as an entity of the package simulation_interfaces: found by filters, asked for its state, put elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Pose, Quaternion, Twist
from std_msgs.msg import Header

from constrained_sim.exceptions import ConstrainedSimError, InvalidValue, UnknownName, ViolatedConstraint
from constrained_sim.robot import WORLD
from constrained_sim.ros.conversions import point, pose_message, pose_values, to_time, vector, xyz
from constrained_sim.ros.world import World

try:
    from simulation_interfaces import msg
except ImportError:
    msg = None

CHARACTER_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""Of POSIX, as ranges in a bracket expression of Python."""


class Refused(ConstrainedSimError):
    """A request that is answered with a result code of its own.

    Attributes:
        code: of simulation_interfaces/Result, or of the service.
    """

    def __init__(self, code: int, why: str) -> None:
        """Say `why`: what was given and what is allowed."""
        super().__init__(why)
        self.code = code


class Entities:
    """The only entity is the robot, by the name in its description.

    The state of a fixed base is the pose of its root link, at rest. That of a floating base is the pose of the base
    link in the world, with velocity and acceleration of its origin in world axes. With the base's rotation R, and
    Pinocchio's velocity (v, w) and acceleration (a, alpha) in its axes, these are ``R v``, ``R w``, ``R (a + w x v)``
    and ``R alpha`` (Featherstone, Rigid Body Dynamics Algorithms, section 2.11). The acceleration is the mean over the
    last physics step without its impacts, zero before the first.
    """

    def __init__(self, world: World, reset: Callable[..., None]) -> None:
        """Show the robot of `world`; `reset` takes the fields of a Reset request, and carries it out."""
        self._world, self._reset = world, reset
        self._robot = world.config.robot
        self._name = self._robot.model.name

    def names(self, request: Any, response: Any) -> None:
        """Answer GetEntities.

        Raises:
            Refused: a filter by tags or bounds.
            InvalidValue: a filter that is not a regular expression.
        """
        response.entities = self._matching(request.filters)

    def info(self, request: Any, response: Any) -> None:
        """Answer GetEntityInfo.

        Raises:
            Refused: another name.
        """
        self._check_name(request.entity)
        base = "floating" if self._robot.floating_base else "fixed"
        response.info.category.category = msg.EntityCategory.CATEGORY_ROBOT
        response.info.description = f"{base} base, {self._robot.nv} degrees of freedom, {self._robot.mass:.6g} kg"

    def state(self, request: Any, response: Any) -> None:
        """Answer GetEntityState.

        Raises:
            Refused: another name.
        """
        self._check_name(request.entity)
        response.state = self._state()

    def states(self, request: Any, response: Any) -> None:
        """Answer GetEntitiesStates.

        Raises:
            Refused: a filter by tags or bounds.
            InvalidValue: a filter that is not a regular expression.
        """
        response.entities = self._matching(request.filters)
        response.states = [self._state() for _ in response.entities]

    def set_state(self, request: Any, response: Any) -> None:
        """Answer SetEntityState: put the base elsewhere, the joints stay; its acceleration follows from the forces.

        Up to 2.0 pose and twist are set; from 2.1 on those that are asked for, the other one keeps its value.

        Raises:
            Refused: another name, a fixed base, another frame than the world, a pose that is not one or that violates a
                contact or a constraint.
            InvalidValue: a twist that is not finite.
        """
        self._check_name(request.entity)
        self._check_base()
        frame, world_frame = request.state.header.frame_id, self._world.config.node.world_frame
        if frame not in ("", WORLD, world_frame):
            unsupported = msg.Result.RESULT_FEATURE_UNSUPPORTED
            raise Refused(unsupported, f"frame_id: got {frame!r}, allowed: {world_frame!r} or nothing")
        set_pose, set_twist = getattr(request, "set_pose", True), getattr(request, "set_twist", True)
        if not (set_pose or set_twist):
            return
        present = self._state()
        pose = request.state.pose if set_pose else present.pose
        twist = request.state.twist if set_twist else present.twist
        try:
            self._put(pose, twist)
        except (_InvalidPose, ViolatedConstraint) as error:
            # Version 1.0.0 has no code of its own.
            code = getattr(response, "INVALID_POSE", msg.Result.RESULT_OPERATION_FAILED)
            raise Refused(code, str(error)) from error

    def _put(self, pose: Pose, twist: Twist) -> None:
        """Put the base at `pose`, moving with `twist` [m/s, rad/s] in world axes."""
        try:
            to_base = pin.XYZQUATToSE3(self._robot.configuration({}, pose_values(pose))[:7]).rotation.T
        except InvalidValue as error:
            raise _InvalidPose(error.what, error.value, error.allowed) from error
        body = Twist(linear=vector(to_base @ xyz(twist.linear)), angular=vector(to_base @ xyz(twist.angular)))
        self._reset(
            keep_time=True, keep_constraints=True, keep_state=True, set_base=True, base_pose=pose, base_twist=body
        )

    def _state(self) -> Any:
        world = self._world
        message = msg.EntityState(header=Header(stamp=to_time(world.stamp), frame_id=world.config.node.world_frame))
        if self._robot.floating_base:
            self._fill_moving(message)
        else:
            message.pose = pose_message(self._robot.link_placement(self._robot.root_link)[1])
        return message

    def _fill_moving(self, message: Any) -> None:
        """Fill in the state of a floating base."""
        world, state = self._world, self._world.sim.state
        to_world, linear, angular = pin.XYZQUATToSE3(state.q[:7]).rotation, state.v[:3], state.v[3:6]
        a = world.last.a if world.last is not None else 0.0 * state.v
        x, y, z, w = state.q[3:7].tolist()
        message.pose = Pose(position=point(state.q[:3]), orientation=Quaternion(x=x, y=y, z=z, w=w))
        message.twist.linear, message.twist.angular = vector(to_world @ linear), vector(to_world @ angular)
        message.acceleration.linear = vector(to_world @ (a[:3] + np.cross(angular, linear)))
        message.acceleration.angular = vector(to_world @ a[3:6])

    def _check_name(self, name: str) -> None:
        if name != self._name:
            raise Refused(msg.Result.RESULT_NOT_FOUND, str(UnknownName("entity", name, [self._name])))

    def _check_base(self) -> None:
        if not self._robot.floating_base:
            why = (
                f"state of {self._name!r}: got a robot with a fixed base, allowed: one with a floating base; its "
                "joints are in joint_states, and set by ~/reset"
            )
            raise Refused(msg.Result.RESULT_FEATURE_UNSUPPORTED, why)

    def _matching(self, filters: Any) -> list[str]:
        """Return the names of the entities that pass all `filters`."""
        unsupported = msg.Result.RESULT_FEATURE_UNSUPPORTED
        if filters.tags.tags:
            raise Refused(unsupported, f"tags: got {list(filters.tags.tags)}, allowed: none, entities have no tags")
        if filters.bounds.type != msg.Bounds.TYPE_EMPTY:
            raise Refused(unsupported, f"type of bounds: got {filters.bounds.type}, allowed: TYPE_EMPTY")
        categories = [category.category for category in filters.categories]
        if categories and msg.EntityCategory.CATEGORY_ROBOT not in categories:
            return []
        return [self._name] if posix_pattern(filters.filter).search(self._name) else []


class _InvalidPose(InvalidValue):
    """A pose with NaN, infinity or a zero quaternion."""


def posix_pattern(text: str) -> re.Pattern[str]:
    """Return a POSIX extended regular expression as one of Python: ``[[:alpha:]]`` and its like become ranges.

    Raises:
        InvalidValue: it is not one.
    """
    try:
        return re.compile(re.sub(r"\[:(\w+):\]", lambda found: CHARACTER_CLASSES[found[1]], text))
    except (re.error, KeyError) as error:
        raise InvalidValue("filter", text, f"a POSIX extended regular expression ({error})") from error

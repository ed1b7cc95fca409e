"""The robot and the objects beside it as entities of the package simulation_interfaces."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Pose, Quaternion, Twist
from std_msgs.msg import Header

from constrained_sim.collision.bounds import bounding_box
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue, UnknownName, ViolatedConstraint
from constrained_sim.msg import ObjectState
from constrained_sim.objects import WorldObject
from constrained_sim.robot import Robot
from constrained_sim.ros.conversions import point, pose_message, pose_values, to_time, vector, xyz
from constrained_sim.ros.world import World
from constrained_sim.validation import Array, finite_array, unit_pose

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
    """The robot, by the name in its description, and the objects beside it.

    They are found by filters, asked for their state and bounds, and put elsewhere. The bounds are the box along the
    world's axes that an entity's collision geometry is in now.

    The state of a fixed base is the pose of its root link, at rest. That of a floating base is the pose of the base
    link in the world, with velocity and acceleration of its origin in world axes. With the base's rotation R, and
    Pinocchio's velocity (v, w) and acceleration (a, alpha) in its axes, these are ``R v``, ``R w``, ``R (a + w x v)``
    and ``R alpha`` (Featherstone, Rigid Body Dynamics Algorithms, section 2.11). The acceleration is the mean over the
    last physics step without its impacts; zero until a step is made after a start, a reset or a change of objects.
    """

    def __init__(self, world: World, reset: Callable[..., None], set_object: Callable[..., None]) -> None:
        """Show what is in `world`; `reset` and `set_object` take the fields of such a request, and carry it out."""
        self._world, self._reset, self._set_object = world, reset, set_object
        self._name = world.config.robot.model.name

    @property
    def _robot(self) -> Robot:
        """The robot, and what is beside it now."""
        return self._world.config.robot

    def _named(self, name: str) -> WorldObject | None:
        """Return an object; None: the robot.

        Raises:
            Refused: another name.
        """
        objects = {entry.name: entry for entry in self._robot.objects}
        if name not in (self._name, *objects):
            known = [self._name, *objects]
            raise Refused(msg.Result.RESULT_NOT_FOUND, str(UnknownName("entity", name, known)))
        return objects.get(name)

    def names(self, request: Any, response: Any) -> None:
        """Answer GetEntities.

        Raises:
            Refused: a filter by tags, or by bounds that are no box.
            InvalidValue: a filter that is not a regular expression.
        """
        response.entities = self._matching(request.filters)

    def bounds(self, request: Any, response: Any) -> None:
        """Answer GetEntityBounds.

        Raises:
            Refused: another name.
        """
        self._named(request.entity)
        box = self._box(request.entity)
        if box is not None:
            response.bounds.type = msg.Bounds.TYPE_BOX
            response.bounds.points = [vector(corner) for corner in box]

    def _box(self, name: str) -> tuple[Array, Array] | None:
        owner = "" if name == self._name else name
        return bounding_box(self._robot, self._world.sim.state.q, owner)

    def info(self, request: Any, response: Any) -> None:
        """Answer GetEntityInfo.

        Raises:
            Refused: another name.
        """
        entry = self._named(request.entity)
        body = self._robot.without_objects if entry is None else entry.body
        base = "floating" if body.floating_base else "fixed"
        response.info.category.category = self._category(entry)
        response.info.description = f"{base} base, {body.nv} degrees of freedom, {body.mass:.6g} kg"

    def state(self, request: Any, response: Any) -> None:
        """Answer GetEntityState.

        Raises:
            Refused: another name.
        """
        response.state = self._state(self._named(request.entity))

    def states(self, request: Any, response: Any) -> None:
        """Answer GetEntitiesStates.

        Raises:
            Refused: a filter by tags or bounds.
            InvalidValue: a filter that is not a regular expression.
        """
        response.entities = self._matching(request.filters)
        response.states = [self._state(self._named(name)) for name in response.entities]

    def set_state(self, request: Any, response: Any) -> None:
        """Answer SetEntityState: put the base elsewhere, the joints stay; its acceleration follows from the forces.

        Up to 2.0 pose and twist are set; from 2.1 on those that are asked for, the other one keeps its value.

        Raises:
            Refused: another name, a fixed base, another frame than the world, a pose that is not one or that violates a
                contact or a constraint.
            InvalidValue: a twist that is not finite.
        """
        entry = self._named(request.entity)
        self._check_base(entry)
        frame, frames = request.state.header.frame_id, self._world.config.node.frames
        if not frames.is_world(frame):
            unsupported = msg.Result.RESULT_FEATURE_UNSUPPORTED
            raise Refused(unsupported, f"frame_id: got {frame!r}, allowed: {frames.world!r} or nothing")
        set_pose, set_twist = getattr(request, "set_pose", True), getattr(request, "set_twist", True)
        if not (set_pose or set_twist):
            return
        present = self._state(entry)
        pose = request.state.pose if set_pose else present.pose
        twist = request.state.twist if set_twist else present.twist
        try:
            self._put(entry, pose, twist)
        except (_InvalidPose, ViolatedConstraint) as error:
            # Version 1.0.0 has no code of its own.
            code = getattr(response, "INVALID_POSE", msg.Result.RESULT_OPERATION_FAILED)
            raise Refused(code, str(error)) from error

    def _put(self, entry: WorldObject | None, pose: Pose, twist: Twist) -> None:
        """Put the base of an object, None: of the robot, at `pose`, moving with `twist` [m/s, rad/s] in world axes."""
        try:
            to_base = pin.XYZQUATToSE3(unit_pose("pose", pose_values(pose))).rotation.T
        except InvalidValue as error:
            raise _InvalidPose(error.what, error.value, error.allowed) from error
        if entry is not None:
            self._set_object(state=ObjectState(name=entry.name, pose=pose, twist=twist), set_base=True)
            return
        body = Twist(linear=vector(to_base @ xyz(twist.linear)), angular=vector(to_base @ xyz(twist.angular)))
        self._reset(
            keep_time=True,
            keep_constraints=True,
            keep_objects=True,
            keep_state=True,
            set_base=True,
            base_pose=pose,
            base_twist=body,
        )

    def _state(self, entry: WorldObject | None) -> Any:
        world, robot = self._world, self._robot
        message = msg.EntityState(header=Header(stamp=to_time(world.stamp), frame_id=world.config.node.world_frame))
        body, prefix = (robot.without_objects, "") if entry is None else (entry.body, entry.prefix)
        if body.floating_base:
            joint = robot.joint_models[prefix + body.joint_names[0]]
            self._fill_moving(message, joint.idx_q, joint.idx_v)
        else:
            state = world.sim.state
            joint, in_joint = robot.link_placement(prefix + body.root_link)
            message.pose = pose_message(kinematics_at(robot, state.q).placement(joint) * in_joint)
        return message

    def _fill_moving(self, message: Any, at_q: int, at_v: int) -> None:
        """Fill in the state of a floating base, of which q and v begin there."""
        world, state = self._world, self._world.sim.state
        q, v, last = state.q[at_q : at_q + 7], state.v[at_v : at_v + 6], world.last
        to_world, linear, angular = pin.XYZQUATToSE3(q).rotation, v[:3], v[3:]
        x, y, z, w = q[3:].tolist()
        message.pose = Pose(position=point(q[:3]), orientation=Quaternion(x=x, y=y, z=z, w=w))
        message.twist.linear, message.twist.angular = vector(to_world @ linear), vector(to_world @ angular)
        if last is not None and last.robot is world.sim.robot:
            a = last.a[at_v : at_v + 6]
            message.acceleration.linear = vector(to_world @ (a[:3] + np.cross(angular, linear)))
            message.acceleration.angular = vector(to_world @ a[3:6])

    def _category(self, entry: WorldObject | None) -> int:
        """Return the category of an object, None: of the robot."""
        kinds = msg.EntityCategory
        return int(kinds.CATEGORY_ROBOT if entry is None else kinds.CATEGORY_DYNAMIC_OBJECT)

    def _check_base(self, entry: WorldObject | None) -> None:
        if entry is not None and not entry.body.floating_base:
            allowed = "one that moves freely; its joints are set by ~/set_object_state"
            why = f"state of {entry.name!r}: got an object that is mounted on the world, allowed: {allowed}"
            raise Refused(msg.Result.RESULT_FEATURE_UNSUPPORTED, why)
        if entry is None and not self._robot.floating_base:
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
        if filters.bounds.type not in (msg.Bounds.TYPE_EMPTY, msg.Bounds.TYPE_BOX):
            allowed = "TYPE_EMPTY, or TYPE_BOX"
            raise Refused(unsupported, f"type of bounds: got {filters.bounds.type}, allowed: {allowed}")
        wanted, pattern = [one.category for one in filters.categories], posix_pattern(filters.filter)
        entries: dict[str, WorldObject | None] = {self._name: None}
        entries |= {entry.name: entry for entry in self._robot.objects}
        names = [name for name, entry in entries.items() if not wanted or self._category(entry) in wanted]
        names = [name for name in names if pattern.search(name)]
        if filters.bounds.type == msg.Bounds.TYPE_EMPTY:
            return names
        corners = [xyz(corner) for corner in filters.bounds.points]
        lower, upper = np.sort(finite_array("points of bounds", corners, (2, 3)), axis=0)
        boxes = {name: self._box(name) for name in names}
        return [
            name
            for name, box in boxes.items()
            if box is not None and (box[0] <= upper).all() and (box[1] >= lower).all()
        ]


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

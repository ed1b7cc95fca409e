"""Requests about objects beside the robot: they come, go, and are put elsewhere."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, Twist

from constrained_sim.config_sections import read_body
from constrained_sim.descriptions.format import format_of
from constrained_sim.exceptions import InvalidValue
from constrained_sim.objects import WorldObject
from constrained_sim.objects.object_motion import object_joints
from constrained_sim.package_paths import resolve_path
from constrained_sim.robot import Robot
from constrained_sim.ros.conversions import named_values, pose_values, xyz
from constrained_sim.validation import Array, finite_array, lookup


def object_from_request(request: Any) -> WorldObject:
    """Return the object of a SpawnObject request.

    Raises:
        ConstrainedSimError: a name, a description or a pose that cannot be one.
    """
    text = request.description.removeprefix("file://")
    if not text.lstrip().startswith(("<", "package://", "/")):
        allowed = "the text of a URDF, an SDF or an MJCF, or its file, from the root on or as package://"
        raise InvalidValue("description of an object", text, allowed)
    path = resolve_path(text, Path("/"))
    return WorldObject(request.name, read_body(format_of(path), path, None), pose_values(request.pose))


def without(robot: Robot, name: str) -> list[WorldObject]:
    """Return what is beside `robot`, the object `name` left out.

    Raises:
        UnknownName: there is none.
    """
    lookup("object", name, {entry.name: entry for entry in robot.objects})
    return [entry for entry in robot.objects if entry.name != name]


def state_from_request(
    robot: Robot, q: Array, v: Array, request: Any, free: Container[str] = ()
) -> tuple[Array, Array]:
    """Return the state (nq,), (nv,) that a SetObjectState request asks for; all else is as at (`q`, `v`).

    Joints that mimic those that are given come along, but by none of the `free` constraints.

    Raises:
        UnknownName: no such object, or joint.
        InvalidValue: a pose of what does not move freely, another number of positions or velocities than of joints,
            NaN or infinity.
    """
    state = request.state
    entry = lookup("object", state.name, {one.name: one for one in robot.objects})
    q, v, names = q.copy(), v.copy(), list(state.joint_names)
    joints = object_joints(robot, entry)
    for what, values, write in (
        ("position", state.position, lambda joint, value: joint.place(q, value)),
        ("velocity", state.velocity, lambda joint, value: v.__setitem__(joint.v, value)),
    ):
        if values:
            given = named_values(f"{what} of object {entry.name!r}", names, values)
            for name, value in zip(names, given.tolist(), strict=True):
                write(lookup(f"joint of object {entry.name!r}", name, joints), value)
    if state.position:
        q = robot.with_followers(q, {entry.prefix + name for name in names}, free)
    if names and not (state.position or state.velocity):
        raise InvalidValue(f"joints of object {entry.name!r}", names, "names with positions, velocities or both")
    if request.set_base:
        q, v = with_base(robot, entry, q, v, request)
    elif entry.body.floating_base and (state.pose != Pose() or state.twist != Twist()):
        raise InvalidValue(f"set_base of object {entry.name!r}", False, "true, where a pose or a twist is given")
    return q, v


def with_base(robot: Robot, entry: WorldObject, q: Array, v: Array, request: Any) -> tuple[Array, Array]:
    """Return the state in which what moves freely has the pose and the twist of a SetObjectState request."""
    if not entry.body.floating_base:
        raise InvalidValue(f"set_base of object {entry.name!r}", True, "false: it is mounted on the world")
    twist = request.state.twist
    joint = robot.joint_models[entry.prefix + entry.body.joint_names[0]]
    placed = entry.placed(pose_values(request.state.pose))
    linear = finite_array(f"twist of object {entry.name!r}", xyz(twist.linear), (3,))
    angular = finite_array(f"twist of object {entry.name!r}", xyz(twist.angular), (3,))
    from_world = placed.rotation().T
    q[joint.idx_q : joint.idx_q + 7] = placed.pose
    v[joint.idx_v : joint.idx_v + 6] = np.concatenate([from_world @ linear, from_world @ angular])
    return q, v

"""Writes a run as a rosbag2 directory (MCAP), without ROS; it holds the definitions of all its messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.config import Config
from constrained_sim.descriptions.urdf.writer import urdf_of
from constrained_sim.dynamics.dynamics import dynamics_at
from constrained_sim.joints import single_joints
from constrained_sim.nanoseconds import NANOSECONDS, nanoseconds_of
from constrained_sim.objects.object_motion import base_motion, object_joints
from constrained_sim.optional import installed_version, optional
from constrained_sim.recorded_configuration import CONFIGURATION
from constrained_sim.shipped import share_folder
from constrained_sim.trajectory import Trajectory
from constrained_sim.validation import Array
from constrained_sim.whole_file import written_whole

JOINTS, BASE, WRENCH, IMPULSE, NUMBER, TEXT, OBJECT, OBJECTS = (
    "sensor_msgs/msg/JointState",
    "nav_msgs/msg/Odometry",
    "geometry_msgs/msg/WrenchStamped",
    "geometry_msgs/msg/Vector3Stamped",
    "std_msgs/msg/Float64",
    "std_msgs/msg/String",
    "constrained_sim/msg/ObjectState",
    "constrained_sim/msg/ObjectStates",
)
LIBRARIES = "constrained_sim", "numpy", "scipy", "numba", "pin"
"""Whose versions are in a bag."""

Row = tuple[str, str, int, Any]
"""Topic, type, stamp [ns], message."""


def write_bag(trajectory: Trajectory, config: Config, directory: Path) -> None:
    """Write `trajectory` into a new `directory`.

    Topics: ``/joint_states``, ``/odom`` of a floating base, ``/contact_forces/NAME`` (force on the robot and moment
    about the contact point, both along the world's axes, mean over the step; nothing while absent),
    ``/object_states`` where objects are beside the robot (``ObjectStates``, as a node publishes them),
    ``/impacts/energy_lost`` [J] and, at the same stamps, ``/impacts/NAME`` (impulse on the robot [N s], world axes).
    ``/robot_description`` and ``/configuration`` (JSON: parameters, the folder where relative paths begin, versions)
    come first. Stamps begin at the configured start time.

    Raises:
        ConfigError: it cannot be written; nothing of it is left.
        MissingLibrary: the one that writes bags.
    """
    bags = optional("rosbags.rosbag2", "writing a bag")
    typing = optional("rosbags.typesys", "writing a bag")
    store = typing.get_typestore(typing.Stores.ROS2_JAZZY)
    for kind in OBJECT, OBJECTS:
        definition = (share_folder() / "msg" / f"{kind.rpartition('/')[2]}.msg").read_text(encoding="utf-8")
        store.register(typing.get_types_from_msg(definition, kind))
    start = nanoseconds_of(config.node.start_time)
    rows = sorted(_Messages(store.types, trajectory, config, start).rows(), key=lambda row: row[2])
    mcap = bags.StoragePlugin.MCAP
    with written_whole(directory) as part, bags.Writer(part, version=9, storage_plugin=mcap) as writer:
        connections: dict[str, Any] = {}
        for topic, kind, stamp, message in rows:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(connections[topic], stamp, store.serialize_cdr(message, kind))


class _Messages:
    """The messages of a run."""

    def __init__(self, types: Any, trajectory: Trajectory, config: Config, start: int) -> None:
        """Take the `types` of messages; the run begins at the stamp `start` [ns]."""
        self._types, self._run, self._robot, self._start = types, trajectory, config.robot, start
        self._single_joints = single_joints(config.robot.own_joint_models)
        self._objects = {entry: object_joints(config.robot, entry) for entry in config.robot.objects}
        self._frames = config.node.frames
        self._told: dict[str, Any] = {}
        if config.parameters:
            versions = {name: number for name in LIBRARIES if (number := installed_version(name))}
            self._told = {"parameters": config.parameters, "folder": str(config.folder), "versions": versions}

    def rows(self) -> Iterator[Row]:
        """Yield all messages."""
        robot, text = self._robot, self._types[TEXT]
        yield "/robot_description", TEXT, self._start, text(robot.urdf or urdf_of(robot))
        if self._told:
            yield f"/{CONFIGURATION}", TEXT, self._start, text(json.dumps(self._told))
        for i, t in enumerate(self._run.t.tolist()):
            stamp = self._stamp(t)
            yield "/joint_states", JOINTS, stamp, self._joints(i, stamp)
            if self._robot.floating_base:
                yield "/odom", BASE, stamp, self._base(i, stamp)
            if self._objects:
                yield "/object_states", OBJECTS, stamp, self._object_states(i, stamp)
            for name, forces in self._run.contact_forces.items():
                if np.isfinite(forces[i]).all():
                    yield f"/contact_forces/{name}", WRENCH, stamp, self._contact(name, i, stamp)
        for impact in self._run.impacts:
            message = self._types[NUMBER](impact.energy_lost)
            yield "/impacts/energy_lost", NUMBER, self._stamp(impact.t), message
            for name, impulse in impact.impulses.items():
                yield f"/impacts/{name}", IMPULSE, self._stamp(impact.t), self._impulse(impulse, self._stamp(impact.t))

    def _stamp(self, t: float) -> int:
        return self._start + nanoseconds_of(t)

    def _header(self, stamp: int) -> Any:
        time = self._types["builtin_interfaces/msg/Time"](*divmod(stamp, NANOSECONDS))
        return self._types["std_msgs/msg/Header"](time, self._frames.world)

    def _joints(self, i: int, stamp: int) -> Any:
        efforts = np.zeros(self._robot.nv)
        efforts[self._robot.actuation] = self._run.tau[i]
        return self._types[JOINTS](
            self._header(stamp),
            list(self._single_joints),
            np.array([joint.position(self._run.q[i]) for joint in self._single_joints.values()]),
            np.array([self._run.v[i, joint.v] for joint in self._single_joints.values()]),
            np.array([efforts[joint.v] for joint in self._single_joints.values()]),
        )

    def _base(self, i: int, stamp: int) -> Any:
        types, (pose, twist) = self._types, self._motion(self._run.q[i, :7], self._run.v[i, :6])
        unknown = np.zeros(36)
        return types[BASE](
            self._header(stamp),
            self._frames.of(self._robot.root_link),
            types["geometry_msgs/msg/PoseWithCovariance"](pose, unknown),
            types["geometry_msgs/msg/TwistWithCovariance"](twist, unknown),
        )

    def _object_states(self, i: int, stamp: int) -> Any:
        q, v, states = self._run.q[i], self._run.v[i], []
        here = dynamics_at(self._robot, q, v)
        for entry, joints in self._objects.items():
            placement, velocity = base_motion(here, entry)
            positions = np.array([joint.position(q) for joint in joints.values()])
            rates = np.array([v[joint.v] for joint in joints.values()])
            motion = self._motion(pin.SE3ToXYZQUAT(placement), velocity)
            states.append(self._types[OBJECT](entry.name, *motion, list(joints), positions, rates))
        return self._types[OBJECTS](self._header(stamp), states)

    def _motion(self, place: Array, velocity: Array) -> tuple[Any, Any]:
        """Return Pose and Twist of a position and quaternion xyzw (7,) and of a velocity (6,)."""
        types = self._types
        point, vector = types["geometry_msgs/msg/Point"], types["geometry_msgs/msg/Vector3"]
        turn = types["geometry_msgs/msg/Quaternion"](*place[3:].tolist())
        pose = types["geometry_msgs/msg/Pose"](point(*place[:3].tolist()), turn)
        return pose, types["geometry_msgs/msg/Twist"](vector(*velocity[:3].tolist()), vector(*velocity[3:].tolist()))

    def _impulse(self, impulse: Array, stamp: int) -> Any:
        vector = self._types["geometry_msgs/msg/Vector3"](*impulse.tolist())
        return self._types[IMPULSE](self._header(stamp), vector)

    def _contact(self, name: str, i: int, stamp: int) -> Any:
        vector = self._types["geometry_msgs/msg/Vector3"]
        force, moment = (
            vector(*table[name][i].tolist()) for table in (self._run.contact_forces, self._run.contact_moments)
        )
        return self._types[WRENCH](self._header(stamp), self._types["geometry_msgs/msg/Wrench"](force, moment))

"""The topics of the objects beside the robot: what they are, where they are, and how they move."""

from __future__ import annotations

import pinocchio as pin
from std_msgs.msg import Header

from constrained_sim.descriptions.urdf.writer import urdf_of
from constrained_sim.dynamics.dynamics import dynamics_at
from constrained_sim.msg import ObjectDescription, ObjectDescriptions, ObjectState, ObjectStates
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.objects import WorldObject
from constrained_sim.objects.object_motion import base_motion, object_joints
from constrained_sim.robot import Robot
from constrained_sim.ros.cdr import Form
from constrained_sim.ros.conversions import to_time
from constrained_sim.ros.topics import LATCHED, Topics
from constrained_sim.validation import Array


class ObjectTopics:
    """Publishes the states of all objects in every control period, nothing while there are none.

    Their descriptions come at the start, and whenever there are others.
    """

    def __init__(self, topics: Topics, robot: Robot, frame: str) -> None:
        """Open the topics; `frame` is that of the world."""
        self._frame = frame
        self._topic = topics.open(ObjectStates, "object_states")
        self._descriptions = topics.open(ObjectDescriptions, "object_descriptions", LATCHED)
        self.follow(robot)

    def follow(self, robot: Robot) -> None:
        """Publish from now on what is beside `robot`."""
        self._robot = robot
        self._joints = {entry.name: object_joints(robot, entry) for entry in robot.objects}
        states = [
            ObjectState(name=name, joint_names=list(joints), position=[0.0] * len(joints), velocity=[0.0] * len(joints))
            for name, joints in self._joints.items()
        ]
        self._form = Form(ObjectStates(header=Header(frame_id=self._frame), objects=states))

    def describe(self, stamp: int) -> None:
        """Publish what they are from `stamp` [ns] on."""
        header = Header(stamp=to_time(stamp), frame_id=self._frame)
        objects = [_description(entry) for entry in self._robot.objects]
        self._descriptions.send(ObjectDescriptions(header=header, objects=objects), stamp)

    def is_of_other_than(self, robot: Robot) -> bool:
        """Return whether what is published is not what is beside `robot`."""
        return robot is not self._robot

    @property
    def are_any(self) -> bool:
        """Whether there are objects."""
        return bool(self._robot.objects)

    def send(self, q: Array, v: Array, stamp: int) -> None:
        """Publish the states at `q` (nq,), `v` (nv,) and `stamp` [ns]."""
        self._topic.offer(lambda: self.message(q, v, stamp), stamp)

    def greet(self, q: Array, v: Array, stamp: int) -> None:
        """Publish the states once more if somebody has begun to listen."""
        self._topic.greet(lambda: self.message(q, v, stamp))

    def message(self, q: Array, v: Array, stamp: int) -> bytes:
        """Return the states at `q` (nq,), `v` (nv,) and `stamp` [ns]."""
        numbers: list[float] = [*divmod(stamp, NANOSECONDS)]
        here = dynamics_at(self._robot, q, v)
        for entry in self._robot.objects:
            placement, twist = base_motion(here, entry)
            joints = self._joints[entry.name].values()
            numbers += [*pin.SE3ToXYZQUAT(placement).tolist(), *twist.tolist()]
            numbers += [*(joint.position(q) for joint in joints), *(float(v[joint.v]) for joint in joints)]
        return self._form.filled(numbers)


def _description(entry: WorldObject) -> ObjectDescription:
    body = entry.body
    folder = "" if body.folder is None else str(body.folder)
    text = body.urdf or urdf_of(body)
    return ObjectDescription(name=entry.name, description=text, folder=folder, base_link=body.root_link)

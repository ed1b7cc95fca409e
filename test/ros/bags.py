"""Reading recorded bags back, and the mechanics that they must obey."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message
from ros.live import NODE, nanoseconds, stamp
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from constrained_sim.msg import (
    ConstraintForces,
    ContactForces,
    Impact,
    Input,
    ObjectDescriptions,
    SimulationStatus,
    Transforms,
)

TYPES = {
    "/clock": Clock,
    "/joint_states": JointState,
    "/contact_forces": ContactForces,
    "/constraint_forces": ConstraintForces,
    "/odom": Odometry,
    "/impacts": Impact,
    "/object_descriptions": ObjectDescriptions,
    "/robot_description": String,
    "/contact_markers": MarkerArray,
    "/diagnostics": DiagnosticArray,
    "/tf": Transforms,
    "/tf_static": Transforms,
    f"{NODE}/inputs": Input,
    f"{NODE}/status": SimulationStatus,
}


class Bag:
    """A rosbag2 directory, read with the library rosbags.

    Attributes:
        path: the directory.
        raw: serialised messages by topic, in the order of the file.
    """

    def __init__(self, path):
        """Read all of it."""
        self.path = Path(path)
        with AnyReader([self.path]) as reader:
            self.connections = {connection.topic: connection for connection in reader.connections}
            self.raw = {topic: [] for topic in self.connections}
            self.log_times = {topic: [] for topic in self.connections}
            for connection, log_time, data in reader.messages():
                self.raw[connection.topic].append(bytes(data))
                self.log_times[connection.topic].append(log_time)

    def messages(self, topic):
        """Return the messages of `topic`."""
        return [deserialize_message(data, TYPES[topic]) for data in self.raw.get(topic, [])]

    def newest(self, topic):
        """Return the last message of `topic`; an empty one of its type where there was none."""
        raw = self.raw.get(topic)
        return deserialize_message(raw[-1], TYPES[topic]) if raw else TYPES[topic]()

    @property
    def metadata(self):
        """The content of metadata.yaml."""
        return yaml.safe_load((self.path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]

    def topics_in_order(self):
        """Return the topics of all messages in the order in which they were written."""
        (file,) = self.path.glob("*.mcap")
        with file.open("rb") as stream:
            messages = make_reader(stream).iter_messages(log_time_order=False)
            return [channel.topic for _, channel, _ in messages]

    def assert_every_period(self, period, count, start=1_000_000_000):
        """Check that states and forces of exactly `count` control periods are there, with exact stamps."""
        ends = [start + k * period for k in range(1, count + 1)]
        assert [stamp(message) for message in self.messages("/contact_forces")] == ends
        assert [stamp(message) for message in self.messages("/joint_states")] == [start, *ends]
        assert {nanoseconds(message.period) for message in self.messages("/contact_forces")} == {period}

    def normal_forces(self):
        """Return the normal force of the only contact in every period [N]."""
        return np.array([message.contacts[0].normal_force for message in self.messages("/contact_forces")])


class Mechanics:
    """The robot of a bag, as Pinocchio alone reads it."""

    def __init__(self, urdf):
        """Make the model of the text `urdf`."""
        self.model = pin.buildModelFromXML(urdf)
        self.data = self.model.createData()
        self.mass = pin.computeTotalMass(self.model)
        self.weight = 9.81 * self.mass

    def qv(self, message):
        """Return configuration and velocity of a JointState."""
        order = [list(message.name).index(name) for name in self.model.names[1:]]
        return np.array(message.position)[order], np.array(message.velocity)[order]

    def momentum(self, message):
        """Return the vertical momentum [N s]."""
        return pin.computeCentroidalMomentum(self.model, self.data, *self.qv(message)).linear[2]

    def kinetic_energy(self, q, v):
        """Return the kinetic energy [J]."""
        return pin.computeKineticEnergy(self.model, self.data, q, np.asarray(v))

    def foot_height(self, message):
        """Return the height of the origin of the link foot [m]."""
        pin.framesForwardKinematics(self.model, self.data, self.qv(message)[0])
        return self.data.oMf[self.model.getFrameId("foot")].translation[2]

    def momentum_defects(self, bag):
        """Return, for every period, what the vertical momentum balance leaves [N s].

        (sum of contact forces - m g) period + impulses - change of momentum.
        """
        states, forces = bag.messages("/joint_states"), bag.messages("/contact_forces")
        ends = np.array([stamp(message) for message in forces])
        impulses = np.zeros(len(forces))
        for impact in bag.messages("/impacts"):
            # An impact at the very end of a period belongs to it.
            impulses[np.searchsorted(ends, stamp(impact))] += sum(impulse.linear.z for impulse in impact.impulses)
        seconds = np.array([nanoseconds(message.period) for message in forces]) * 1e-9
        pushed = np.array([sum(contact.wrench.force.z for contact in message.contacts) for message in forces])
        momenta = [self.momentum(message) for message in states]
        changes = np.array([after - before for before, after in pairwise(momenta)])
        return (pushed - self.weight) * seconds + impulses - changes


def phases(touching):
    """Return the maximal runs of equal values as (value, length)."""
    edges = [0, *(np.flatnonzero(np.diff(touching)) + 1), len(touching)]
    return [(bool(touching[begin]), int(end - begin)) for begin, end in pairwise(edges)]

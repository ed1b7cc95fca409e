"""Bytes of messages: the same for the same values, and a form gives those of the message that it stands for."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from ros.live import CONFIG, nanoseconds, stamp
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import Header

from constrained_sim import load_config
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.frame_names import FrameNames
from constrained_sim.msg import ContactForce, ContactForces, ObjectState, ObjectStates
from constrained_sim.ros.cdr import Form, serialise
from constrained_sim.ros.command_reader import CommandReader
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.message_types import type_name
from constrained_sim.ros.period_messages import PeriodMessages
from constrained_sim.servo import JointCommand
from constrained_sim.step_result import ContactForce as ContactResult


def header(sec=0, nanosec=0):
    return Header(stamp=Time(sec=sec, nanosec=nanosec), frame_id="world")


def joint_state(sec, nanosec, numbers):
    position, velocity, effort = numbers[:3], numbers[3:6], numbers[6:]
    return JointState(
        header=header(sec, nanosec), name=["a", "bc", "def"], position=position, velocity=velocity, effort=effort
    )


@pytest.mark.parametrize("name", ["a", "ab", "abcde"])
def test_what_is_serialised_is_read_without_ros_and_with_it(name):
    """Also where sequences are empty, for which ROS reserves bytes behind the last field."""
    typesys = pytest.importorskip("rosbags.typesys")
    store, root = typesys.get_typestore(typesys.Stores.ROS2_JAZZY), CONFIG.parents[1]
    for kind in ("ObjectState", "ObjectStates"):
        text = (root / "msg" / f"{kind}.msg").read_text()
        store.register(typesys.get_types_from_msg(text, f"constrained_sim/msg/{kind}"))
    objects = [ObjectState(name=name), ObjectState(name=2 * name, joint_names=["j"], position=[1.0], velocity=[2.0])]
    for message in (
        ObjectStates(header=header(1, 2), objects=[*objects, ObjectState(name="last")]),
        JointState(header=header(1, 2), name=[name], position=[1.0]),
    ):
        data, kind = serialise(message), type_name(type(message))
        assert deserialize_message(data, type(message)) == message
        assert bytes(store.serialize_cdr(store.deserialize_cdr(data, kind), kind)) == data


def test_form_of_a_joint_state():
    """Every number is where the serialisation of the message has it, whatever its value."""
    form = Form(joint_state(0, 0, [0.0] * 9))
    for scale in (1.0, -1e-300, 1e300, math.inf):
        numbers = [scale * k for k in range(1, 10)]
        assert form.filled([7, 8, *numbers]) == serialise(joint_state(7, 8, numbers))


@pytest.mark.parametrize("name", ["f", "foot", "foot12345", "fuß"])
def test_form_of_contact_forces(name):
    """Fields of one byte, strings of any length and nested messages keep their places."""
    contacts = [ContactForce(name=name, link="foot"), ContactForce(name=2 * name, link="")]
    form = Form(ContactForces(header=header(), contacts=contacts))
    numbers, value = [1, 2, 3, 4], 0.5
    for number, contact in enumerate(contacts, 1):
        contact.status = number
        numbers.append(number)
        for field in (contact.position, contact.normal, contact.wrench.force, contact.wrench.torque):
            field.x, field.y, field.z = value, value + 1, value + 2
            numbers += [value, value + 1, value + 2]
            value += 3
        contact.normal_force, contact.friction, contact.gap = value, value + 1, value + 2
        contact.slip.x, contact.slip.y, contact.slip.z = value + 3, value + 4, value + 5
        numbers += [value + k for k in range(6)]
    message = ContactForces(header=header(1, 2), contacts=contacts)
    message.period.sec, message.period.nanosec = 3, 4
    assert form.filled(numbers) == serialise(message)


def test_form_reads_what_it_writes():
    """Whatever is between the fields; a message with another text, another length or a missing byte is not its own."""
    form, numbers = Form(joint_state(0, 0, [0.0] * 9)), [3, 4, *[0.5 * k for k in range(9)]]
    data = form.filled(numbers)
    assert form.numbers(data) == numbers
    assert form.numbers(serialize_message(joint_state(3, 4, numbers[2:]))) == numbers
    other = joint_state(3, 4, numbers[2:])
    other.name[1] = "bd"
    shorter = JointState(header=other.header, name=["a", "bc", "def"], position=[1.0])
    end = len(data.rstrip(b"\0"))
    for different in (serialise(other), serialise(shorter), data[: end - 1], b"\0\0" + data[2:], b""):
        assert form.numbers(different) is None


def test_commands_are_read_by_name():
    """In whatever order a controller names its joints; what a command has to be is checked each time."""
    reader = CommandReader(JointNames(load_config(CONFIG).robot))
    for _ in range(2):
        for scale, names in enumerate((["knee", "hip"], ["hip"], [], ["hip", "knee"])):
            efforts = {name: scale + 0.25 * len(name) for name in names}
            command = JointState(header=header(5, 6), name=names, effort=list(efforts.values()))
            expected = {("hip", "knee").index(name): JointCommand(effort) for name, effort in efforts.items()}
            stamp, commands = reader.read(serialize_message(command))
            assert stamp == 5_000_000_006
            assert repr(commands) == repr(expected)  # NaN is not equal to itself
        for effort, what in (([math.nan, 0.0], "nan"), ([1.0], "one|length|shape|2"), ([1.0, math.inf], "inf")):
            with pytest.raises(InvalidValue, match=what):
                reader.read(serialize_message(JointState(name=["hip", "knee"], effort=effort)))
    with pytest.raises(UnknownName, match="slider"):
        reader.read(serialize_message(JointState(name=["slider"], effort=[1.0])))
    with pytest.raises(InvalidValue, match="3 bytes"):
        reader.read(b"\0\1\0")


def test_form_of_arrays_of_fixed_length():
    """Odometry and Imu hold covariances, whose length is not in their bytes."""
    odometry = Odometry(header=header(), child_frame_id="base")
    data = Form(odometry).filled([5, 6, *range(7), *[0.25] * 36, *range(6), *[0.5] * 36])
    read = deserialize_message(data, Odometry)
    assert read.header.stamp == Time(sec=5, nanosec=6)
    assert read.child_frame_id == "base"
    assert read.pose.pose.position == Point(x=0.0, y=1.0, z=2.0)
    assert read.pose.pose.orientation.w == 6.0
    assert set(read.pose.covariance) == {0.25}
    assert read.twist.twist.angular.z == 5.0
    assert set(read.twist.covariance) == {0.5}
    assert len(Form(Imu()).filled([0] * 39)) == len(serialise(Imu()))


def test_wrong_number_of_numbers():
    """A form takes all its numbers, neither more nor fewer."""
    form = Form(Clock())
    assert deserialize_message(form.filled([3, 4]), Clock).clock == Time(sec=3, nanosec=4)
    for numbers in ([3], [3, 4, 5]):
        with pytest.raises(ValueError, match=f"{len(numbers)} numbers for a message with 2"):
            form.filled(numbers)


def test_same_values_are_the_same_bytes():
    """Padding is zero, however the memory looked before."""
    message = ContactForces(contacts=[ContactForce(name="abc", link="de", gap=1.0)])
    assert len({serialise(message) for _ in range(50)}) == 1
    assert deserialize_message(serialise(message), ContactForces) == message


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_floating_base_has_one_quaternion(sign):
    """Odometry and the joints with several degrees of freedom have the one of the configuration, whatever its sign."""
    config = load_config(CONFIG.with_name("quadruped.yaml"))
    messages = PeriodMessages(config.robot, JointNames(config.robot), FrameNames(), 1_000_000)
    q, v, tau = config.q.copy(), config.v, np.zeros(config.robot.nu)
    q[3:7] = sign * np.array([0.1, 0.5, 0.1, 0.7]) / np.sqrt(0.76)
    odometry = deserialize_message(messages.odometry(q, v), Odometry)
    joints = deserialize_message(messages.multi_dof(q, v, tau), MultiDOFJointState)
    assert joints.transforms[0].rotation == odometry.pose.pose.orientation
    assert joints.transforms[0].rotation.w == q[6]


def test_forces_of_contacts_that_come_and_go():
    """Whatever set of contacts a period has, its message holds these, by name, with their numbers."""
    config = load_config(CONFIG)
    messages = PeriodMessages(config.robot, JointNames(config.robot), FrameNames("world", "robot/"), 1_000_000)
    messages.stamp(2_000_000_003)
    zero = np.zeros(3)

    def contact(name, gap):
        normal = np.array([0.0, 0.0, 1.0])
        return ContactResult(name, "foot", ContactStatus.SLIDING, zero, normal, zero, 0.0, 0.7, gap, zero, zero)

    for names in (["b", "a"], [], ["a"], ["a", "b", "longer"], ["b", "a"]):
        contacts = {name: contact(name, float(k)) for k, name in enumerate(names)}
        forces = {name: np.array([0.0, k, 2.0]) for k, name in enumerate(names)}
        period = SimpleNamespace(contacts=contacts, mean_forces=forces, mean_moments=dict.fromkeys(names, zero))
        read = deserialize_message(messages.forces(period), ContactForces)
        assert (stamp(read), nanoseconds(read.period)) == (2_000_000_003, 1_000_000)
        assert [message.name for message in read.contacts] == sorted(names)
        for message in read.contacts:
            assert (message.link, message.status, message.friction) == ("robot/foot", 2, 0.7)
            assert message.gap == message.wrench.force.y == names.index(message.name)
            assert message.normal_force == message.wrench.force.z == 2.0

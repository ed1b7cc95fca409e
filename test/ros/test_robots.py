"""The shipped robots beside the leg: node and controller in lockstep, judged by what was recorded."""

import numpy as np
import pytest
from mechanisms import GRAVITY
from ros.live import CONFIG, PERIOD, stamp

from constrained_sim import Robot, load_config
from constrained_sim.controllers import CassieController, FourBarController, QuadrupedController
from constrained_sim.exceptions import InvalidValue
from constrained_sim.ros.controller import States
from constrained_sim.ros.conversions import to_time
from constrained_sim.ros.odometry_reader import BaseMotion, OdometryReader

LAWS = {
    "quadruped": (QuadrupedController, "trot"),
    "four_bar": (FourBarController, "turn"),
    "cassie": (CassieController, "stand"),
}


@pytest.fixture(scope="module", params=LAWS)
def run(request, at_work):
    """The name of a robot, and the bag of 1 s of it."""
    return request.param, at_work(request.param, LAWS[request.param][1])


@pytest.fixture(scope="module")
def alone(run):
    """The same second of the same law without ROS, on the node's clock."""
    robot, _ = run
    config, (law, mode) = load_config(CONFIG.with_name(f"{robot}.yaml")), LAWS[robot]
    efforts = law(config, mode).efforts
    begin = config.node.start_time
    return config, config.simulator().run(1.0, lambda t, q, v: efforts(begin + t, q, v))


def test_every_period_is_answered_and_published(run):
    """A thousand periods, each with its stamp."""
    _, bag = run
    bag.assert_every_period(PERIOD, 1000)
    assert bag.messages("/constrained_sim/status")[-1].commands_dropped == 0


def test_node_moves_as_the_simulator_alone(run, alone):
    """Controller and simulator over DDS give the motion that both give in one process."""
    _, bag = run
    config, trajectory = alone
    last = bag.messages("/joint_states")[-1]
    expected = dict(zip(config.robot.velocity_names, trajectory.v[-1], strict=True))
    difference = [velocity - expected[name] for name, velocity in zip(last.name, last.velocity, strict=True)]
    assert np.abs(difference).max() < 1e-6


def test_description_is_there_whatever_the_format(run):
    """A robot of MJCF has a robot_description too: the URDF of its tree."""
    robot, bag = run
    (description,) = bag.messages("/robot_description")
    config = load_config(CONFIG.with_name(f"{robot}.yaml"))
    described = Robot.from_urdf(description.data, floating_base=config.robot.floating_base)
    assert described.mass == pytest.approx(config.robot.mass, rel=1e-12)
    assert set(bag.messages("/joint_states")[0].name) <= set(described.joint_names)


@pytest.mark.parametrize("run", ["quadruped", "cassie"], indirect=True)
def test_ground_carries_the_robot(run, alone):
    """The mean force of the contacts over the last half second is about the weight."""
    _, bag = run
    config, _ = alone
    forces = [sum(c.normal_force for c in message.contacts) for message in bag.messages("/contact_forces")]
    assert np.mean(forces[500:]) == pytest.approx(config.robot.mass * GRAVITY, rel=0.05)


@pytest.mark.parametrize("run", ["four_bar", "cassie"], indirect=True)
def test_forces_of_loops_are_published(run, alone):
    """The pin of the linkage and the rods of Cassie: constraint_forces says what the simulator alone found."""
    robot, bag = run
    _, trajectory = alone
    (*_, last) = bag.messages("/constraint_forces")
    assert len(last.constraints) == {"four_bar": 1, "cassie": 4}[robot]
    for force in last.constraints:
        np.testing.assert_allclose(force.multipliers, trajectory.multipliers[force.name][-1], atol=1e-3)
        assert np.abs(force.multipliers).max() > 1.0


def test_states_are_paired_by_stamp():
    """A floating base and its joints make a state where their stamps agree, in whatever order they arrive."""
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import JointState

    config = load_config(CONFIG.with_name("quadruped.yaml"))
    states = States(config)
    names = ["FL_KFE", *(name for name in reversed(config.robot.joint_names[1:]) if name != "FL_KFE")]

    def joints(number):
        others = [float(k) for k in range(11)]
        message = JointState(name=names, position=[0.1 * number, *others], velocity=[1.0, *others])
        message.header.stamp = to_time(number)
        return message

    def base(number):
        message = Odometry()
        message.header.stamp = to_time(number)
        message.pose.pose.position.z, message.pose.pose.orientation.w = 0.1 * number, 1.0
        message.twist.twist.linear.y, message.twist.twist.angular.x = 3.0, 4.0
        return BaseMotion.of(message)

    states.take_base(base(2))
    states.take_joints(joints(1))
    assert states.complete(1) is None
    assert states.complete(2) is None
    states.take_joints(joints(2))
    q, v = states.complete(2)
    assert states.complete(2) is None  # one answer to each state
    assert q[:7] == pytest.approx([0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0])
    assert (config.robot.joint_names[3], q[9]) == ("FL_KFE", pytest.approx(0.2))
    assert q[[7, 8, *range(10, 19)]].tolist() == list(range(10, -1, -1))
    assert v.tolist() == [0.0, 3.0, 0.0, 4.0, 0.0, 0.0, 10.0, 9.0, 1.0, *range(8, -1, -1)]
    names.remove("FL_KFE")
    states.take_base(base(2))
    states.take_joints(joints(2))
    with pytest.raises(InvalidValue, match="12 position"):
        states.complete(2)
    for number in range(3, 30):
        states.take_base(base(number))
    assert states.complete(2) is None  # forgotten
    assert stamp(joints(2)) == 2


def test_odometry_is_read_from_its_bytes():
    """As rclpy reads it: the first message, others with the same frames, and those with other frames in between."""
    from nav_msgs.msg import Odometry
    from rclpy.serialization import serialize_message

    reader, rng = OdometryReader(), np.random.default_rng(0)
    for number, frame in enumerate(["world", "world", "map", "world", "world"]):
        message = Odometry(child_frame_id="base_link")
        message.header.frame_id, message.header.stamp = frame, to_time(7_000_000_001 * number)
        pose, twist = message.pose.pose, message.twist.twist
        vectors = (pose.position, twist.linear, twist.angular, pose.orientation)
        values = rng.normal(size=(4, 3)).tolist()
        for vector, (x, y, z) in zip(vectors, values, strict=True):
            vector.x, vector.y, vector.z = x, y, z
        pose.orientation.w = 0.5
        message.pose.covariance, message.twist.covariance = rng.normal(size=(2, 36))
        expected = (7_000_000_001 * number, [*values[0], *values[3], 0.5], values[1] + values[2])
        assert reader.read(serialize_message(message)) == BaseMotion.of(message) == expected
    with pytest.raises(InvalidValue, match="3 bytes"):
        reader.read(b"abc")
    assert reader.read(serialize_message(message)) == expected

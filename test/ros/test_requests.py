"""What requests leave of joints that turn on and on, of joints that mimic others, and of sensors on objects."""

import numpy as np
import pytest
from mechanisms import joint, link, urdf
from rclpy.serialization import deserialize_message
from ros.driven import ask, messages
from sensor_msgs.msg import JointState

from constrained_sim import msg, srv
from constrained_sim.exceptions import InvalidValue
from constrained_sim.ros.replay import Replay

RATE = 6.0
MIMIC = '<mimic joint="left" multiplier="-1"/>'
LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="10"/>'
SLIDES = ("left", "finger", LIMIT), ("right", "thumb", LIMIT + MIMIC)


@pytest.fixture
def node(tmp_path):
    """Return the outputs of a wheel that turns, and of two fingers of which one follows the other; beside a crate."""
    robot = urdf(
        '<link name="base"/>',
        *(link(name, 1.0) for name in ("wheel", "finger", "thumb")),
        joint("axle", "continuous", "base", "wheel", (0, 0, 1)),
        joint("left", "prismatic", "base", "finger", (1, 0, 0), more=LIMIT),
        joint("right", "prismatic", "base", "thumb", (1, 0, 0), more=LIMIT + MIMIC),
    )
    (tmp_path / "robot.urdf").write_text(robot)
    crate = {"shape": "box", "size": [0.2, 0.2, 0.2], "mass": 2.0, "pose": [5.0, 0.0, 50.0, 0.0, 0.0, 0.0, 1.0]}
    parameters = {
        "robot": {"urdf": "robot.urdf"},
        "initial": {"velocities": {"axle": RATE}},
        "objects": {"crate": crate},
        "sensors": {"tilt": {"kind": "imu", "link": "crate/body"}},
    }
    return Replay(parameters, tmp_path)


def angles(node, seconds):
    """Return the angles of the axle that are published for a while, from now on."""
    found = []
    for message in messages(node, round(seconds * 1e9)):
        if message.kind == "sensor_msgs/msg/JointState":
            state = deserialize_message(message.data, JointState)
            found.append(state.position[list(state.name).index("axle")])
    return found


@pytest.mark.parametrize("asked", ["object", "reset"])
def test_angles_go_on_where_the_joint_stays(node, asked):
    """Beyond a turn, though an object is put elsewhere, or a reset keeps the state; another reset begins anew."""
    before = angles(node, 1.2)
    assert before[-1] == pytest.approx(1.2 * RATE, abs=0.05) and before[-1] > 2 * np.pi
    if asked == "object":
        elsewhere = msg.ObjectState(name="crate")
        elsewhere.pose.position.z = 60.0
        ask(node, "set_object_state", srv.SetObjectState.Request(state=elsewhere, set_base=True))
    else:
        ask(node, "reset", srv.Reset.Request(keep_time=True, keep_state=True, keep_objects=True))
    after = angles(node, 0.1)
    assert np.abs(np.diff([before[-1], *after])).max() < 1.01 * RATE * node.world.period_ns * 1e-9
    there = JointState(name=["axle"], position=[0.5])
    ask(node, "reset", srv.Reset.Request(keep_time=True, keep_state=True, joints=there))
    assert angles(node, 0.0)[-1] == pytest.approx(0.5, abs=1e-12)
    ask(node, "reset", srv.Reset.Request(keep_time=True))
    assert angles(node, 0.0)[-1] == 0.0


def test_a_reset_of_a_joint_takes_those_along_that_mimic_it(node):
    """To where it was asked to be, not half of the way."""
    ask(node, "reset", srv.Reset.Request(joints=JointState(name=["left"], position=[0.3])))
    robot, q = node.world.config.robot, node.world.sim.state.q
    assert [q[robot.joint_models[name].idx_q] for name in ("left", "right")] == pytest.approx([0.3, -0.3], abs=1e-12)


@pytest.mark.parametrize("disabled", [True, False])
def test_a_joint_that_mimics_no_longer_stays(node, disabled):
    """Once that is removed or disabled, a reset which keeps the constraints puts both anywhere; another does not."""
    (own,) = node.world.config.robot.constraints
    if disabled:
        node.world.sim.enable(own.name, False)
    else:
        ask(node, "remove_constraint", srv.RemoveConstraint.Request(name=own.name))
    joints = node.world.config.robot.joint_models
    for positions, wanted in (({"left": 0.3}, [0.3, 0.0]), ({"left": 0.3, "right": 0.2}, [0.3, 0.2])):
        state = JointState(name=list(positions), position=list(positions.values()))
        ask(node, "reset", srv.Reset.Request(keep_constraints=True, joints=state))
        messages(node, 10 * node.world.period_ns)
        q = node.world.sim.state.q
        assert [q[joints[name].idx_q] for name in ("left", "right")] == pytest.approx(wanted, abs=1e-12)
    assert own.name not in {one.name for one in node.world.sim.constraints}
    ask(node, "reset", srv.Reset.Request(joints=JointState(name=["left"], position=[0.3])))
    assert node.world.sim.state.q[joints["right"].idx_q] == pytest.approx(-0.3, abs=1e-12)
    assert own.name in {one.name for one in node.world.sim.constraints}


def test_joints_of_an_object_that_mimic_others_come_along(node):
    """Where its joints are set."""
    finger, thumb = link("finger", 1.0), link("thumb", 1.0)
    joints = (joint(n, "prismatic", "world", c, (1, 0, 0), more=m) for n, c, m in SLIDES)
    grip = urdf('<link name="world"/>', finger, thumb, *joints)
    request = srv.SpawnObject.Request(name="grip", description=grip)
    request.pose.position.y = 3.0
    ask(node, "spawn_object", request)
    state = msg.ObjectState(name="grip", joint_names=["left"], position=[0.3])
    ask(node, "set_object_state", srv.SetObjectState.Request(state=state))
    robot, q = node.world.config.robot, node.world.sim.state.q
    places = [q[robot.joint_models[f"grip/{name}"].idx_q] for name in ("left", "right")]
    assert places == pytest.approx([0.3, -0.3], abs=1e-12)


def test_an_object_with_a_sensor_stays(node):
    """The refusal says that it is a sensor's."""
    with pytest.raises(InvalidValue, match=r"objects: got .*sensors.*'crate/body'"):
        ask(node, "delete_object", srv.DeleteObject.Request(name="crate"))
    assert [entry.name for entry in node.world.config.robot.objects] == ["crate"]

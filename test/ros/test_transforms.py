"""Transforms of links: where /tf and /tf_static put the robot, with and without tf2_msgs."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from rclpy.serialization import deserialize_message
from ros.live import CONFIG, START_TIME, stamp

from constrained_sim import Robot, load_config
from constrained_sim.msg import Transforms
from constrained_sim.options import NodeOptions
from constrained_sim.ros.topics import RELIABLE, Topic
from constrained_sim.ros.transform_topics import TransformTopics


class Kept:
    """Topics that keep what is sent, by name."""

    def __init__(self):
        self.got = {}

    def open(self, kind, name, qos=RELIABLE):
        messages = self.got.setdefault(name, [])
        return Topic(lambda data, stamp: messages.append(deserialize_message(data, kind)))


def placement(transform):
    """Return a transform as an SE3."""
    where, turn = transform.translation, transform.rotation
    return pin.XYZQUATToSE3(np.array([where.x, where.y, where.z, turn.x, turn.y, turn.z, turn.w]))


def placed(*messages):
    """Return the placement of every frame in the world: its own in its parent's, and so on."""
    each = {t.child_frame_id: t for message in messages for t in message.transforms}
    found = {"world": pin.SE3.Identity()}

    def in_world(frame):
        if frame not in found:
            found[frame] = in_world(each[frame].header.frame_id) * placement(each[frame].transform)
        return found[frame]

    return {frame: in_world(frame) for frame in each}


def sent(config, q, **options):
    """Return what is published at `q` and stamp 7 ns, by topic."""
    topics = Kept()
    published = TransformTopics(topics, config.robot, NodeOptions(**options))
    published.start(q, 7)
    published.send(q, 7)
    return topics.got


@pytest.mark.parametrize("robot", ["leg", "quadruped", "four_bar", "cassie"])
def test_links_are_where_the_configuration_has_them(robot):
    """The chain of transforms from the world puts every link of the description where Pinocchio does, and no other."""
    config = load_config(CONFIG.with_name(f"{robot}.yaml"))
    model, rng = config.robot.model, np.random.default_rng(1)
    q = pin.integrate(model, config.q, 0.3 * rng.standard_normal(model.nv))
    frames = placed(*(message for messages in sent(config, q).values() for message in messages))
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    links = {f.name: i for i, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
    assert frames.keys() == links.keys()
    for name, index in links.items():
        np.testing.assert_allclose(frames[name].homogeneous, data.oMf[index].homogeneous, atol=1e-14)


def test_base_alone_leaves_links_to_others():
    """With `base`, a fixed base is told once, a floating one in every period, and no link behind a joint at all."""
    for robot, topic, root in (("leg", "/tf_static", "rail"), ("quadruped", "/tf", "base_link")):
        config = load_config(CONFIG.with_name(f"{robot}.yaml"))
        got = sent(config, config.q, tf="base", frame_prefix="a/")
        (message,) = got[topic]
        (transform,) = message.transforms
        assert (transform.header.frame_id, transform.child_frame_id) == ("world", f"a/{root}")
        assert stamp(message.transforms[0]) == 7
        assert sum(map(len, got.values())) == 1
    assert sent(config, config.q, tf="none") == {}


@pytest.mark.parametrize("tf", ["links", "base"])
def test_sites_are_fixed_to_their_links(tf):
    """A sensor or a contact can be on a site of an MJCF, of which robot_state_publisher knows nothing."""
    body = '<freejoint/><geom size="0.1"/><site name="tip" pos="0 0 0.3"/>'
    robot = Robot.from_mjcf(f'<mujoco><worldbody><body name="ball">{body}</body></worldbody></mujoco>')
    (message,) = sent(SimpleNamespace(robot=robot), robot.neutral(), tf=tf, frame_prefix="a/")["/tf_static"]
    (site,) = message.transforms
    assert (site.header.frame_id, site.child_frame_id) == ("a/ball", "a/tip")
    assert site.transform.translation.z == 0.3


def test_recording_places_the_robot(dropped):
    """Where tf2_msgs is missing too, a bag holds the links at tf_rate under the type that every tool knows."""
    assert dropped.connections["/tf"].msgtype == dropped.connections["/tf_static"].msgtype == "tf2_msgs/msg/TFMessage"
    moving = [deserialize_message(data, Transforms) for data in dropped.raw["/tf"]]
    (fixed,) = (deserialize_message(data, Transforms) for data in dropped.raw["/tf_static"])
    stamps = [stamp(message.transforms[0]) for message in moving]
    assert stamps == [round((START_TIME + 0.02 * k) * 1e9) for k in range(21)]
    states = {stamp(message): message for message in dropped.messages("/joint_states")}
    heights = [placed(fixed, message)["carriage"].translation[2] for message in moving]
    assert np.ptp(heights) > 0.05  # it falls
    slider = [states[when].position[0] for when in stamps]
    np.testing.assert_allclose(np.diff(heights), np.diff(slider), atol=1e-15)

"""Names of frames: those in messages are on /tf, and whatever is published is taken back."""

from collections import defaultdict

import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message
from ros.driven import ask, messages
from ros.live import CONFIG
from std_msgs.msg import Header

from constrained_sim import msg, srv
from constrained_sim.exceptions import InvalidValue
from constrained_sim.frame_names import FrameNames
from constrained_sim.options import NodeOptions
from constrained_sim.parameter_file import load_parameters
from constrained_sim.ros.message_types import message_type
from constrained_sim.ros.replay import Replay

TRANSFORMS = "tf2_msgs/msg/TFMessage"

NAMES = "frame_id", "child_frame_id", "link", "link_a", "link_b"
"""Fields that name frames."""

GIVEN = {
    "frame_prefix": "left/",
    "world_frame": "map",
    "contact_wrenches": True,
    "sensors": {"post": {"kind": "imu", "link": "world"}, "body": {"kind": "imu", "link": "carriage"}},
}

HINGE = '<joint name="hinge" type="continuous"><parent link="world"/><child link="arm"/><axis xyz="0 0 1"/></joint>'


@pytest.fixture
def node():
    """Return the outputs of a leg with a prefix and a world frame of its own, driven by its requests."""
    return Replay(load_parameters(CONFIG) | GIVEN, CONFIG.parent)


def push(frame):
    return WrenchStamped(header=Header(frame_id=frame))


def names_in(message):
    """Yield all names of frames in a message."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if name in NAMES:
            yield value
        for part in value if isinstance(value, list) else [value]:
            if hasattr(part, "get_fields_and_field_types"):
                yield from names_in(part)


def published(node, periods):
    """Simulate, and return the names of frames in what is published, by type of the message."""
    names = defaultdict(set)
    for message in messages(node, periods * node.world.period_ns):
        kind = msg.Transforms if message.kind == TRANSFORMS else message_type(message.kind)
        names[message.kind] |= set(names_in(deserialize_message(message.data, kind)))
    return names


def test_every_frame_in_a_message_is_on_tf(node):
    """The world is `world_frame`, a link has the prefix: in forces, impulses, readings and transforms alike."""
    before = published(node, 120)
    post = msg.Constraint(name="post", kind="point_anchor", link_a="map", link_b="left/carriage")
    ask(node, "add_constraint", srv.AddConstraint.Request(constraint=post))
    names = published(node, 60)
    assert names["constrained_sim/msg/ConstraintForces"] == {"map", "left/carriage"}
    impacts = before["constrained_sim/msg/Impact"]
    assert impacts and impacts <= {"map", "left/foot"}
    assert names["sensor_msgs/msg/Imu"] == {"map", "left/carriage"}
    on_tf = before[TRANSFORMS] | names[TRANSFORMS]
    assert {"map", "left/carriage", "left/foot"} <= on_tf
    for kind, frames in (*before.items(), *names.items()):
        assert frames - {""} <= on_tf, kind


@pytest.mark.parametrize("prefix", ["left/", ""])
def test_links_are_taken_by_their_frames_and_by_their_names(node, prefix):
    """In contacts, constraints and wrenches."""
    toe = msg.Contact(name="toe", link=f"{prefix}foot", law="rigid")
    toe.normal.z, toe.offset = 1.0, -1.0
    ask(node, "add_contact", srv.AddContact.Request(contact=toe))
    for name, world in ("one", "map"), ("two", "world"):
        anchor = msg.Constraint(name=name, kind="frame_anchor", link_a=f"{prefix}carriage", link_b=world)
        ask(node, "add_constraint", srv.AddConstraint.Request(constraint=anchor))
        ask(node, "remove_constraint", srv.RemoveConstraint.Request(name=name))
    for axes in "map", "world", "", f"{prefix}foot":
        ask(node, "apply_wrench", srv.ApplyWrench.Request(link=f"{prefix}foot", frame_id=axes))
    ask(node, "external_wrench", push(f"{prefix}foot"))


def test_a_link_that_has_the_frame_of_another_is_refused(node):
    """A message could mean either; nothing has changed."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    link = f'<robot name="foot"><link name="foot">{inertial}</link></robot>'
    with pytest.raises(InvalidValue, match=r"frame of link 'foot' .*'left/'.*got 'left/foot'"):
        ask(node, "spawn_object", srv.SpawnObject.Request(name="left", description=link))
    mounted = f'<robot name="m"><link name="world"/><link name="arm">{inertial}</link>{HINGE}</robot>'
    ask(node, "spawn_object", srv.SpawnObject.Request(name="left", description=mounted))  # the world has no prefix
    ask(node, "delete_object", srv.DeleteObject.Request(name="left"))
    ask(node, "spawn_object", srv.SpawnObject.Request(name="right", description=link))
    assert [entry.name for entry in node.world.config.robot.objects] == ["right"]


@pytest.mark.parametrize("name", [{"frame_prefix": "/a/"}, {"world_frame": "map odom"}, {"world_frame": ""}], ids=str)
def test_what_no_frame_can_be_named_is_refused(name):
    """tf2 takes no slash at the beginning, and other tools no blanks."""
    (option,), (value,) = name, name.values()
    with pytest.raises(InvalidValue, match=f"{option}: got {value!r}, allowed: a name without blanks"):
        NodeOptions(**name)


def test_a_link_in_the_frame_of_the_world_is_refused():
    """It would be published as the world."""
    names = FrameNames("left/foot", "left/")
    with pytest.raises(InvalidValue, match=r"frame of link 'foot'.*not the world_frame"):
        names.check_links(["world", "foot"])
    FrameNames("map", "left/").check_links(["world", "map", "left/world"])


@pytest.mark.parametrize("world", ["map", "world"])
def test_no_wrench_acts_on_the_world(node, world):
    """By whichever name: the refusal says so."""
    with pytest.raises(InvalidValue, match=f"got '{world}', allowed: a link of the robot"):
        ask(node, "external_wrench", push(world))
    with pytest.raises(InvalidValue, match=f"got '{world}', allowed: a link of the robot"):
        ask(node, "apply_wrench", srv.ApplyWrench.Request(link=world))

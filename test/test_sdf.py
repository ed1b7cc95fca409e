"""SDFormat: frames and poses relative to each other, joints, mimicking, collision geometry with friction."""

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import placement

from constrained_sim import Collisions, JointCoupling, Plane, Robot, Simulator, constrained_acceleration
from constrained_sim.exceptions import ModelError

MOMENTS = "<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>"


def sdf(*parts: str, version: str = "1.9", model: str = "") -> str:
    """Return an SDF with one model."""
    return f'<sdf version="{version}"><model name="m" {model}>{"".join(parts)}</model></sdf>'


def link(name: str, more: str = "") -> str:
    """Return a link of one kilogram, half a metre below its frame."""
    inertial = f"<inertial><pose>0 0 -0.5 0 0 0</pose><mass>1</mass>{MOMENTS}</inertial>"
    return f'<link name="{name}">{more}{inertial}</link>'


def joint(
    name: str, parent: str, child: str, axis: str = "<xyz>0 1 0</xyz>", kind: str = "revolute", pose: str = ""
) -> str:
    """Return a joint."""
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{pose}<axis>{axis}</axis></joint>'


PENDULUM = joint("j", "world", "a")


# -- frames


@pytest.mark.parametrize(
    ("parts", "position"),
    [
        ('<link name="b"><pose relative_to="a">0 0 1 0 0 0</pose></link>', [1, 0, 1]),
        ('<link name="b"><pose relative_to="f"/></link>', [1, 0.5, 2]),
        ('<link name="b"><pose relative_to="g">1 0 0 0 0 0</pose></link>', [1, 1.5, 2]),
        ('<link name="b"><pose relative_to="__model__">3 0 0 0 0 0</pose></link>', [3, 0, 0]),
        ('<link name="b"><pose>3 0 0 0 0 0</pose></link>', [3, 0, 0]),
        ('<link name="b"><pose relative_to="j">0 0 1 0 0 0</pose></link>', [1, 0, 1.2]),
        (
            '<link name="b"><pose rotation_format="quat_xyzw" relative_to="a">0 0 1 0 0 0 1</pose></link>',
            [1, 0, 1],
        ),
    ],
)
def test_poses_are_relative_to_what_they_say(parts: str, position: list[float]) -> None:
    """Links, joints and frames; by default the model, or what a frame is attached to."""
    frames = (
        '<frame name="f" attached_to="a"><pose>0 0.5 2 0 0 0</pose></frame>'
        '<frame name="g" attached_to="f"><pose>0 0 0 0 0 1.5707963267948966</pose></frame>'
    )
    base = '<link name="a"><pose>1 0 0 0 0 0</pose></link>'
    text = sdf(parts, frames, base, joint("j", "world", "a", pose="<pose>0 0 0.2 0 0 0</pose>"), joint("k", "a", "b"))
    robot = Robot.from_sdf(text)
    assert placement(robot, robot.neutral(), "b").translation == pytest.approx(position, abs=1e-12)


def test_a_floating_base_begins_where_the_file_places_it() -> None:
    """The pose of the model and that of its root link in it; welded to the world, the root is there for good."""
    pose = "<pose>1 2 3 0.1 0.2 0.3</pose>"
    text = sdf(pose, link("a", "<pose>0.5 0 0 0 0 0</pose>"), link("b"), joint("k", "a", "b"))
    free, fixed = Robot.from_sdf(text, floating_base=True), Robot.from_sdf(text)
    turn = pin.rpy.rpyToMatrix(0.1, 0.2, 0.3)
    for robot in (free, fixed):
        found = placement(robot, Simulator(robot).state.q, "a")
        assert found.translation == pytest.approx([1, 2, 3] + turn @ [0.5, 0, 0], abs=1e-12)
        assert found.rotation == pytest.approx(turn, abs=1e-12)


def test_axis_in_another_frame() -> None:
    """A vertical axis, given in a frame that is turned: gravity does not move the pendulum."""
    frame = '<frame name="f"><pose>0 0 0 1.5707963267948966 0 0</pose></frame>'
    tilted = link("a", "<pose>0.4 0 0 0 0.3 0</pose>")
    for axis, moves in (('<xyz expressed_in="f">0 1 0</xyz>', False), ("<xyz>0 1 0</xyz>", True)):
        robot = Robot.from_sdf(sdf(frame, tilted, joint("j", "world", "a", axis)))
        found = constrained_acceleration(robot, robot.neutral(), [0.0], [0.0], []).a[0]
        assert (abs(found) > 0.1) == moves


def test_parent_and_child_may_be_frames() -> None:
    """They stand for the link that they are attached to; the joint is at the child's frame."""
    frame = '<frame name="f" attached_to="a"><pose>0 0 0.7 0 0 0</pose></frame>'
    robot = Robot.from_sdf(sdf(link("a"), frame, joint("j", "world", "f")))
    q = np.array([np.pi / 2])
    expected = np.array([0, 0, 0.7]) + pin.rpy.rotate("y", np.pi / 2) @ np.array([0, 0, -0.7])
    assert placement(robot, q, "a").translation == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            '<frame name="f"><pose relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame>'
            '<link name="b"><pose relative_to="f"/></link>',
            "relative to each other",
        ),
        ('<link name="b"><pose relative_to="none"/></link>', "relative to 'none'"),
        ('<link name="b"><pose>0 0 0 0 0 0 1</pose></link>', "6 number"),
        ('<link name="b"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose></link>', "zeros"),
        ('<link name="b"><pose rotation_format="euler">0 0 0 0 0 0</pose></link>', "<pose>"),
        ('<link name="a"/>', "twice.*line 1"),
        ('<frame name="a"/>', "twice"),
        ("<link/>", "'name' is missing"),
        ('<link name="b"><inertial><mass>-1</mass></inertial></link>', "mass of <inertial> of <link> 'b'.*-1"),
        ('<link name="b"><inertial><mass>nan</mass></inertial></link>', "<mass> of <link> 'b'"),
        ('<link name="b"><inertial><inertia><izz>9</izz></inertia></inertial></link>', "triangle"),
        ('<link name="b"><inertial><inertia><ixy>2</ixy></inertia></inertial></link>', "positive definite"),
        ('<link name="b"><gravity>false</gravity></link>', "gravity"),
        ('<link name="b"><kinematic>1</kinematic></link>', "kinematic"),
        ("<static>true</static>", "static"),
        ("<include><uri>model://x</uri></include>", "include"),
        ('<model name="n"/>', "<model> 'n'"),
        ('<joint name="k" type="screw"><parent>a</parent><child>a</child></joint>', "'screw', allowed: fixed"),
        ('<joint name="k" type="revolute"><child>a</child></joint>', "<parent> is missing"),
    ],
)
def test_what_cannot_be_is_refused(parts: str, message: str) -> None:
    """With the name of the element and its line."""
    with pytest.raises(ModelError, match=message):
        Robot.from_sdf(sdf(link("a"), PENDULUM, parts))


# -- joints


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("<limit><lower>1</lower><upper>-1</upper></limit>", "'j'.*lower 1, upper -1"),
        ("<limit><lower>nan</lower></limit>", "<lower>"),
        ("<dynamics><damping>-0.1</damping></dynamics>", "damping.*'j'"),
        ("<dynamics><friction>-0.1</friction></dynamics>", "friction.*'j'"),
        ("<dynamics><spring_stiffness>-1</spring_stiffness></dynamics>", "spring_stiffness.*'j'"),
        ('<mimic joint="none"><multiplier>2</multiplier></mimic>', "'none'"),
    ],
)
def test_properties_that_cannot_be(axis: str, message: str) -> None:
    """The readers refuse what the setters refuse."""
    with pytest.raises(ModelError, match=message):
        Robot.from_sdf(sdf(link("a"), joint("j", "world", "a", "<xyz>0 1 0</xyz>" + axis)))


def test_mimicking_joint() -> None:
    """``q = multiplier (q_leader - reference) + offset``; it takes no effort of its own."""
    mimic = '<mimic joint="j"><multiplier>2</multiplier><offset>0.5</offset><reference>0.1</reference></mimic>'
    robot = Robot.from_sdf(sdf(link("a"), link("b"), PENDULUM, joint("k", "a", "b", "<xyz>0 1 0</xyz>" + mimic)))
    (coupling,) = robot.constraints
    assert isinstance(coupling, JointCoupling)
    assert robot.actuated_joints == ("j",)
    assert robot.configuration({"j": 0.3})[1] == pytest.approx(2 * (0.3 - 0.1) + 0.5)


def test_continuous_joints_have_no_limits() -> None:
    """Whatever their <limit> says of positions."""
    limit = "<limit><lower>-1</lower><upper>1</upper><effort>3</effort></limit>"
    robot = Robot.from_sdf(sdf(link("a"), joint("j", "world", "a", "<xyz>0 1 0</xyz>" + limit, "continuous")))
    assert robot.joint_limits() == ()
    assert robot.effort_limits.tolist() == [3.0]


def test_what_a_joint_that_closes_a_loop_cannot_have_is_told() -> None:
    """It is an anchor, without a coordinate: what acts along its axis is named, once each; without any nothing is."""
    acting = (
        "<limit><lower>-0.1</lower><upper>0.1</upper></limit>"
        "<dynamics><damping>0.7</damping><friction>0.2</friction><spring_stiffness>3</spring_stiffness></dynamics>"
        '<mimic joint="j"><multiplier>2</multiplier></mimic>'
    )
    tree = link("a"), link("b"), PENDULUM, joint("k", "a", "b", pose='<pose relative_to="a">0 0 -1 0 0 0</pose>')
    for more, words in (("", ()), (acting, ("damping", "friction", "spring_stiffness", "lower", "upper", "mimic"))):
        closing = joint("c", "world", "b", "<xyz>0 1 0</xyz>" + more, pose='<pose relative_to="b">0 0 -1 0 0 0</pose>')
        robot = Robot.from_sdf(sdf(*tree, closing))
        told = [line for line in robot.ignored if "of a joint that closes a loop" in line]
        assert len(told) == len(words)
        assert all(any(f"<{word}>" in line for line in told) for word in words)


@pytest.mark.parametrize(
    ("kind", "axis", "second"),
    [
        ("revolute", "0 0 1", "0 0 0.7"),
        ("revolute", "0.3 0.4 0.5", "0.21 0.28 0.35"),
        ("prismatic", "0.3 0.4 0.5", "0 0.5 0"),
        ("ball", "", "0 0 0"),
    ],
)
def test_the_second_hinge_of_a_door_holds_nothing_more(kind: str, axis: str, second: str) -> None:
    """A joint that closes a loop, all of whose directions the tree holds, is left out, and said to be."""
    text = f"<xyz>{axis}</xyz>" if axis else ""
    hinges = [
        joint(name, "world", "door", text, kind, f"<pose>{place} 0 0 0</pose>")
        for name, place in (("upper", "0 0 0"), ("lower", second))
    ]
    robot = Robot.from_sdf(sdf(link("door"), *hinges))
    assert robot.constraints == ()
    assert robot.nv == (3 if kind == "ball" else 1)
    assert any("'lower'" in line and "other joints hold" in line for line in robot.ignored)


# -- collision geometry


@pytest.mark.parametrize(
    ("shape", "height"),
    [
        ("<sphere><radius>0.2</radius></sphere>", 0.2),
        ("<box><size>0.2 0.4 0.6</size></box>", 0.3),
        ("<cylinder><radius>0.1</radius><length>0.6</length></cylinder>", 0.3),
        ("<capsule><radius>0.1</radius><length>0.6</length></capsule>", 0.4),
    ],
)
def test_links_rest_on_the_ground(shape: str, height: float) -> None:
    """Where their collision geometry is, seen from the link."""
    moments = "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"
    at = "<pose>0 0 0.05 0 0 0</pose>"
    text = sdf(f'<link name="a">{moments}<collision name="c">{at}<geometry>{shape}</geometry></collision></link>')
    robot = Robot.from_sdf(text, floating_base=True)
    q = robot.configuration({}, [0, 0, height - 0.05, 0, 0, 0, 1])
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}), q=q)
    result = [sim.step() for _ in range(20)][-1]
    assert sim.state.q[2] == pytest.approx(height - 0.05, abs=1e-9)
    assert sum(force.normal_force for force in result.contact_forces.values()) == pytest.approx(2 * 9.81, rel=1e-9)


def test_friction_of_collisions() -> None:
    """A block on the ground is as rough as its <mu> says, unless the simulation says something else."""
    friction = "<surface><friction><ode><mu>0.4</mu><mu2>0.4</mu2></ode></friction></surface>"
    moments = f"<inertial><mass>1</mass>{MOMENTS}</inertial>"
    box = "<geometry><box><size>0.2 0.2 0.2</size></box></geometry>"
    text = sdf(f'<link name="a">{moments}<collision name="c">{box}{friction}</collision></link>')
    robot = Robot.from_sdf(text, floating_base=True, gravity=(12, 0, -10))
    assert any("<mu2>" in line for line in robot.ignored)
    for of_all, expected in ((None, 0.4), (0.2, 0.2)):
        q = robot.configuration({}, [0, 0, 0.1, 0, 0, 0, 1])
        sim = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=of_all), q=q)
        sim.run(0.1)
        assert sim.state.v[0] == pytest.approx(0.1 * (12 - 10 * expected), rel=1e-6)


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ("<box><size>0.2 0.2</size></box>", "3 finite"),
        ("<box><size>0.2 0.2 -1</size></box>", "positive"),
        ("<box/>", "positive"),
        ("<teapot/>", "teapot.*not understood"),
        ("", "0 shapes"),
        ("<sphere><radius>1</radius></sphere><sphere><radius>1</radius></sphere>", "2 shapes"),
    ],
)
def test_collision_geometry_that_cannot_be(geometry: str, message: str) -> None:
    """Refused while reading, not dropped."""
    collision = f'<collision name="c"><geometry>{geometry}</geometry></collision>'
    with pytest.raises(ModelError, match=message):
        Robot.from_sdf(sdf(link("a", collision), PENDULUM))


def test_shapes_that_nobody_supports_are_named_where_they_matter() -> None:
    """An ellipsoid is read, and refused by name where something may touch it."""
    collision = '<collision name="c"><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry></collision>'
    robot = Robot.from_sdf(sdf(link("a", collision), PENDULUM))
    with pytest.raises(ModelError, match=r"<collision> 'c'.*ellipsoid"):
        Collisions({"ground": Plane()}).bind(robot)

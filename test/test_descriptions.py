"""Formats of robot descriptions: the same mechanism from each, closed loops, and Cassie."""

from importlib.metadata import files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    GRAVITY,
    LIMIT,
    bias_of,
    inertia_of,
    joint,
    kinetic_energy,
    link,
    placement,
    point_of,
    random_state,
    simulator,
    urdf,
)

from constrained_sim import (
    FrameAnchor,
    JointCoupling,
    PointAnchor,
    PointContact,
    Robot,
    Simulator,
    assemble,
    constrained_acceleration,
)
from constrained_sim.config import read_config
from constrained_sim.exceptions import ConfigError, ModelError, UnknownName

# -- one mechanism in three formats: a slider that carries an arm whose axis is inclined

AXIS = np.array([0.0, 0.6, 0.8])


def arm_urdf():
    """Return a slider on z, an arm on an inclined axis, and a flange."""
    slider = '<limit lower="-2" upper="3" effort="50" velocity="4"/><dynamics damping="0.3" friction="0.2"/>'
    turn = '<limit lower="-1.5" upper="1.5" effort="9" velocity="8"/>'
    return urdf(
        '<link name="base"/>',
        link("carriage", 1.5, (0.1, 0.0, 0.2), (0.02, 0.03, 0.04)),
        joint("lift", "prismatic", "base", "carriage", (0, 0, 1), (0, 0, 0.5), slider),
        link("arm", 0.7, (0.0, 0.1, -0.3), (0.01, 0.02, 0.015, 0.001, -0.002, 0.0005)),
        joint("turn", "revolute", "carriage", "arm", AXIS, (0.2, 0.1, 0.0), turn),
        '<link name="flange"/>',
        joint("screw", "fixed", "arm", "flange", origin=(0.0, 0.0, -0.6)),
    )


def sdf(*parts):
    """Return an SDF with one model."""
    return '<sdf version="1.6"><model name="m">' + "".join(parts) + "</model></sdf>"


def sdf_link(name, pose, mass=1.0, centre=(0, 0, 0), inertia=(1e-3, 1e-3, 1e-3, 0, 0, 0)):
    """Return a link at a pose in the model."""
    xx, yy, zz, xy, xz, yz = (float(x) for x in inertia)
    moments = f"<ixx>{xx}</ixx><iyy>{yy}</iyy><izz>{zz}</izz><ixy>{xy}</ixy><ixz>{xz}</ixz><iyz>{yz}</iyz>"
    at = " ".join(str(float(x)) for x in (*centre, 0, 0, 0))
    where = " ".join(str(float(x)) for x in pose)
    return (
        f'<link name="{name}"><pose>{where}</pose><inertial><pose>{at}</pose><mass>{mass}</mass>'
        f"<inertia>{moments}</inertia></inertial></link>"
    )


def sdf_joint(name, kind, parent, child, axis=(0, 1, 0), more="", pose="", in_model=False):
    """Return a joint."""
    turned = f"<use_parent_model_frame>{int(in_model)}</use_parent_model_frame>"
    along = " ".join(repr(float(x)) for x in axis)
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{pose}'
        f"<axis><xyz>{along}</xyz>{turned}{more}</axis></joint>"
    )


def arm_sdf():
    """Return the same; the arm's link frame is turned, and its axis given in the model."""
    limits = "<limit><lower>-2</lower><upper>3</upper><effort>50</effort><velocity>4</velocity></limit>"
    dynamics = "<dynamics><damping>0.3</damping><friction>0.2</friction></dynamics>"
    turn = "<limit><lower>-1.5</lower><upper>1.5</upper><effort>9</effort><velocity>8</velocity></limit>"
    return sdf(
        sdf_link("carriage", (0, 0, 0.5, 0, 0, 0), 1.5, (0.1, 0.0, 0.2), (0.02, 0.03, 0.04, 0, 0, 0)),
        sdf_link("flange", (0.2, 0.1, -0.1, 0, 0, 0), 1e-9, inertia=(1e-12, 1e-12, 1e-12, 0, 0, 0)),
        sdf_link("arm", (0.2, 0.1, 0.5, 0, 0, 0), 0.7, (0.0, 0.1, -0.3), (0.01, 0.02, 0.015, 0.001, -0.002, 0.0005)),
        sdf_joint("screw", "fixed", "arm", "flange"),
        sdf_joint("lift", "prismatic", "world", "carriage", (0, 0, 2), limits + dynamics),
        sdf_joint("turn", "revolute", "carriage", "arm", AXIS, turn, in_model=True),
    )


MJCF = """<mujoco model="arm"><compiler angle="radian" autolimits="true"/><option gravity="0 0 -9.81"/><worldbody>
<body name="carriage" pos="0 0 0.5"><joint name="lift" type="slide" axis="0 0 1" range="-2 3" damping="0.3" {lift}/>
  <inertial pos="0.1 0 0.2" mass="1.5" diaginertia="0.02 0.03 0.04"/>
  <body name="arm" pos="0.2 0.1 0"><joint name="turn" type="hinge" axis="0 0.6 0.8" range="-1.5 1.5" {turn}/>
    <inertial pos="0 0.1 -0.3" mass="0.7" fullinertia="0.01 0.02 0.015 0.001 -0.002 0.0005"/>
    {more}
  </body>
</body></worldbody>{end}</mujoco>"""


def arm_mjcf(lift='frictionloss="0.2"', turn="", more="", end=""):
    """Return the same again."""
    return MJCF.format(lift=lift, turn=turn, more=more, end=end)


@pytest.mark.parametrize("read", [lambda: Robot.from_sdf(arm_sdf()), lambda: Robot.from_mjcf(arm_mjcf())])
def test_every_format_gives_the_same_robot(read):
    """Inertia, bias forces, placements, limits, damping and friction of one mechanism."""
    one, other = Robot.from_urdf(arm_urdf()), read()
    assert other.joint_names == one.joint_names == ("lift", "turn")
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = random_state(one, rng)
        np.testing.assert_allclose(inertia_of(other, q), inertia_of(one, q), atol=1e-8)
        np.testing.assert_allclose(bias_of(other, q, v), bias_of(one, q, v), atol=1e-7)
        for name in ("carriage", "arm"):
            np.testing.assert_allclose(placement(other, q, name), placement(one, q, name), atol=1e-12)
    np.testing.assert_allclose(other.position_limits, one.position_limits)
    np.testing.assert_allclose((other.damping, other.dry_friction), (one.damping, one.dry_friction))


def test_sdf_keeps_efforts_velocities_and_fixed_links():
    """What a fixed joint carries moves with its parent; limits of efforts and velocities are there."""
    one, other = Robot.from_urdf(arm_urdf()), Robot.from_sdf(arm_sdf())
    q, _ = random_state(one, np.random.default_rng(1))
    np.testing.assert_allclose(point_of(other, q, "flange"), point_of(one, q, "flange"), atol=1e-12)
    np.testing.assert_allclose(other.effort_limits, one.effort_limits)
    np.testing.assert_allclose(other.velocity_limits, one.velocity_limits)


# -- closed loops


def four_bar_sdf(closing="ball"):
    """Return a four-bar linkage in the x-z plane whose last joint names a link that has a parent already."""
    return sdf(
        sdf_link("base", (0, 0, 0, 0, 0, 0), 3.0),
        sdf_link("crank", (0, 0, 0, 0, 0, 0), 0.5, (0, 0, 0.15)),
        sdf_link("rocker", (0.8, 0, 0, 0, 0, 0), 0.8, (0, 0, 0.25)),
        sdf_link("coupler", (0, 0, 0.3, 0, 0, 0), 1.0, (0.4, 0, 0.1)),
        sdf_joint("first", "revolute", "base", "crank"),
        sdf_joint("second", "revolute", "base", "rocker"),
        sdf_joint("third", "revolute", "crank", "coupler"),
        sdf_joint("pin", closing, "rocker", "coupler", pose="<pose>0.8 0 0.2 0 0 0</pose>"),
    )


@pytest.mark.parametrize(("closing", "rows"), [("ball", 2), ("revolute", 4), ("fixed", 6)])
def test_second_parent_becomes_an_anchor(closing, rows):
    """The loop is closed at the file's configuration; no row is left for what the tree holds already."""
    robot = Robot.from_sdf(four_bar_sdf(closing))
    q = robot.neutral()
    motion = constrained_acceleration(robot, q, np.zeros(3), np.zeros(3), [])
    assert motion.lam.shape == (rows,)
    assert motion.rank == (3 if closing == "fixed" else 2)
    sim = Simulator(robot)
    assert sim.largest_violation()[0] < 1e-15
    sim.run(0.3, lambda t, q, v: [1.0, 0.0, 0.0])
    ends = [point_of(robot, sim.state.q, *end) for end in (("coupler", (0.8, 0, 0.2)), ("rocker", (0, 0, 0.5)))]
    np.testing.assert_allclose(*ends, atol=1e-9)
    assert (np.abs(sim.state.v).max() > 0.5) == (closing != "fixed")


@pytest.mark.parametrize("across", [(1.0, 0.0), (0.8, 0.6)])
def test_slide_may_close_a_loop(across):
    """A slider-crank whose slide closes the loop moves as one whose slide is in the tree; in its plane two rows do."""
    along = (across[0], 0.0, across[1])
    links = (
        sdf_link("base", (0, 0, 0, 0, 0, 0), 3.0),
        sdf_link("crank", (0, 0, 0, 0, 0, 0), 0.5, (0, 0, 0.15)),
        sdf_link("rod", (0, 0, 0.3, 0, 0, 0), 1.0, (0.4, 0, 0.1)),
        sdf_link("slider", (0.8, 0, 0.5, 0, 0, 0), 0.7, (0.1, 0, 0)),
        sdf_joint("first", "revolute", "base", "crank"),
        sdf_joint("second", "revolute", "crank", "rod"),
    )
    pin_joint = sdf_joint("pin", "revolute", "rod", "slider")
    slide = sdf_joint("slide", "prismatic", "base", "slider", along)
    robots = Robot.from_sdf(sdf(*links, pin_joint, slide)), Robot.from_sdf(sdf(*links, slide, pin_joint))
    sims = [Simulator(robot, stepper="event_driven", dt=0.01) for robot in robots]
    for sim in sims:
        sim.run(0.5, lambda t, q, v: [0.4, 0.0, 0.0])
    states = [sim.state for sim in sims]
    assert robots[0].joint_names == ("first", "second", "pin")
    assert robots[1].joint_names == ("first", "second", "slide")
    motion = constrained_acceleration(robots[0], states[0].q, states[0].v, np.zeros(3), [])
    assert motion.lam.shape == (2,)
    assert motion.wrench("slide", "slider")[:3] @ along == pytest.approx(0.0, abs=1e-9)
    assert np.abs(states[0].v).max() > 0.3
    np.testing.assert_allclose(states[0].q[:2], states[1].q[:2], atol=1e-9)
    np.testing.assert_allclose(states[0].v[:2], states[1].v[:2], atol=1e-9)
    ends = [placement(robot, state.q, "slider") for robot, state in zip(robots, states, strict=True)]
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_loop_of_anchors_in_a_file_beside_a_urdf():
    """The loop of a URDF's chain is closed by a constraint in the configuration."""
    text = urdf(
        '<link name="base"/>',
        link("crank", 0.5, (0, 0, 0.15)),
        joint("first", "continuous", "base", "crank"),
        link("coupler", 1.0, (0.4, 0, 0.1)),
        joint(
            "third",
            "revolute",
            "crank",
            "coupler",
            origin=(0, 0, 0.3),
            more=LIMIT,
        ),
        link("rocker", 0.8, (0, 0, 0.25)),
        joint(
            "second",
            "revolute",
            "base",
            "rocker",
            origin=(0.8, 0, 0),
            more=LIMIT,
        ),
    )
    pin_ = {
        "kind": "point_anchor",
        "link_a": "coupler",
        "point_a": [0.8, 0, 0.2],
        "link_b": "rocker",
        "point_b": [0, 0, 0.5],
    }
    config = read_config({"robot": {"urdf": text}, "constraints": {"pin": pin_}, "assemble": True})
    sim = config.simulator()
    sim.run(0.2)
    assert sim.largest_violation()[0] < 1e-9
    with pytest.raises(ConfigError, match="one of urdf, sdf, mjcf"):
        read_config({"robot": {"urdf": text, "sdf": text}})
    with pytest.raises(ConfigError, match="0 descriptions"):
        read_config({"robot": {}})
    assert read_config({"robot": {"mjcf": arm_mjcf()}}).robot.joint_names == ("lift", "turn")
    assert read_config({"robot": {"sdf": four_bar_sdf(), "floating_base": True}}).robot.floating_base


TWO_HINGES = """<mujoco><compiler angle="radian"/><worldbody><body name="body" pos="0 0 1">
<joint name="a" axis="0 1 0"/><joint name="c" axis="1 0 0" range="-1 2" damping="0.1"/>
<inertial pos="0 0.1 -0.3" mass="2" diaginertia="0.06 0.07 0.01"/></body></worldbody>
<actuator><motor joint="a"/></actuator></mujoco>"""


def test_two_hinges_of_one_body(tmp_path):
    """Two joints with names, limits, damping and an actuator; they move as Pinocchio's composite joint does.

    Whose axes turn with its own position.
    """
    robot, path = Robot.from_mjcf(TWO_HINGES), tmp_path / "body.xml"
    assert robot.joint_names == ("a", "c")
    assert robot.actuated_joints == ("a",)
    assert robot.damping == pytest.approx([0.0, 0.1])
    assert robot.position_limits[1][1] == 2.0
    path.write_text(TWO_HINGES.replace('damping="0.1"', ""))
    composite = Robot(pin.buildModelFromMJCF(str(path)), ())
    undamped = Robot.from_mjcf(path)
    sims = [Simulator(one, dt=1e-3) for one in (composite, undamped)]
    for sim in sims:
        sim.reset([0.3, 0.4], [3.0, 5.0])
    before = sims[0].mechanical_energy()
    for _ in range(500):
        one, two = (sim.step() for sim in sims)
        assert one.state.q == pytest.approx(two.state.q, abs=1e-9)
        assert one.state.v == pytest.approx(two.state.v, abs=1e-9)
    assert sims[0].mechanical_energy() == pytest.approx(before, abs=1e-4)


TILT = 0.5


@pytest.mark.parametrize(
    ("link_pose", "joint_yaw", "axis", "model_pose"),
    [
        (f"<pose>0 0 1 0 {TILT} 0</pose>", 0.0, "<xyz>", ""),
        (f'<pose degrees="true">0 0 1 0 {np.degrees(TILT)} 0</pose>', 0.0, "<xyz>", ""),
        (f"<pose>0 0 1 0 {TILT} 0</pose>", 1.3, '<xyz expressed_in="__model__">', ""),
        ("<pose>0 0 1 0 0 0</pose>", 0.0, "<xyz>", f"<pose>0.3 0 0 0 {TILT} 0</pose>"),
    ],
)
def test_sdf_poses_and_axes(link_pose, joint_yaw, axis, model_pose):
    """A pendulum out of the vertical by an angle that is given in four ways: its acceleration by hand."""
    inertia = "<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>"
    text = f"""<sdf version="1.9"><model name="m">{model_pose}<link name="l">{link_pose}
    <inertial><pose>0 0 -0.5 0 0 0</pose><mass>1</mass>{inertia}</inertial></link>
    <joint name="j" type="revolute"><parent>world</parent><child>l</child><pose>0 0 0 0 0 {joint_yaw}</pose>
    <axis>{axis}0 1 0</xyz></axis></joint></model></sdf>"""
    robot = Robot.from_sdf(text)
    found = constrained_acceleration(robot, robot.neutral(), [0.0], [0.0], []).a
    assert found == pytest.approx([-9.81 * 0.5 * np.sin(TILT) / (0.1 + 0.25)], rel=1e-12)


def test_sdf_axis_in_a_frame_of_its_own_is_refused():
    """Only the model's frame, and the joint's."""
    text = arm_sdf().replace("<xyz>", '<xyz expressed_in="hand">')
    with pytest.raises(ModelError, match="hand"):
        Robot.from_sdf(text)


def test_mjcf_reference_and_weight():
    """A joint whose ref is where the file shows it: gravity turns it about from there; or not at all, by a flag."""
    text = """<mujoco><compiler angle="radian"/><option>FLAG</option><worldbody><body name="b"><joint name="j"
    axis="0 1 0" ref="0.5"/><inertial pos="0 0 -0.5" mass="1" diaginertia="0.1 0.1 0.1"/></body></worldbody></mujoco>"""
    for flag, weight in (("", 9.81), ('<flag gravity="disable"/>', 0.0)):
        robot = Robot.from_mjcf(text.replace("FLAG", flag))
        found = constrained_acceleration(robot, [0.8], [0.0], [0.0], []).a
        assert found == pytest.approx([-weight * 0.5 * np.sin(0.8 - 0.5) / (0.1 + 0.25)], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('<joint name="a"', '<joint name="a" springdamper="1 1"'), "springdamper"),
        (('<joint name="a"', '<joint name="a" type="free" frictionloss="0.5"'), "free joint beside others"),
        (("<worldbody>", '<default><joint damping="1"/></default><worldbody>'), None),
        (("<worldbody>", '<default><tendon stiffness="1"/></default><worldbody>'), "stiffness"),
        (("<worldbody>", '<option density="1.2"/><worldbody>'), "density"),
        (("<worldbody>", "<worldbody><replicate/>"), "replicate"),
        (("<worldbody>", "<worldbody><composite/>"), "composite"),
        (("</body></worldbody>", '<body name="m"><geom mesh="cube"/></body></body></worldbody>'), "mesh to be fitted"),
        (('<body name="body"', '<body name="body" gravcomp="1"'), "gravcomp"),
        (('<body name="body"', '<body name="body" axisangle="0 0 0 0.5"'), "axisangle"),
        (("</mujoco>", '<equality><weld site1="s" site2="t"/></equality></mujoco>'), "site1.*'s'"),
        (("</mujoco>", '<equality><flex flex="f"/></equality></mujoco>'), "flex"),
        (
            ("</mujoco>", '<tendon><fixed stiffness="9"><joint joint="a" coef="1"/></fixed></tendon></mujoco>'),
            "'stiffness' of <fixed>",
        ),
        (('<compiler angle="radian"/>', '<compiler angle="radian" autolimits="false"/>'), "without limited"),
        (('<compiler angle="radian"/>', '<compiler angle="radian" eulerseq="xyw"/>'), "eulerseq"),
        (('<compiler angle="radian"/>', '<compiler angle="radian" coordinate="global"/>'), "coordinate"),
        (('<joint name="a"', '<joint name="a" stiffness="1 2"'), "one number"),
        (('<joint name="a"', '<joint name="a" spring="1"'), "'spring'.*not understood"),
        (('<joint name="a"', '<joint name="a" damping="-1"'), "damping"),
        (('<joint name="a"', '<joint name="a" class="none"'), "class 'none'"),
    ],
)
def test_mjcf_that_would_be_another_robot_is_refused(change, named):
    """What the reader would drop in silence is named; what it understands is read."""
    text = TWO_HINGES.replace(*change)
    assert text != TWO_HINGES
    if named is None:
        assert Robot.from_mjcf(text).damping == pytest.approx([1.0, 0.1])
        return
    with pytest.raises(ModelError, match=named):
        Robot.from_mjcf(text)


@pytest.mark.parametrize("kind", ["hinge", "slide"])
@pytest.mark.parametrize("angle", ["degree", "radian"])
@pytest.mark.parametrize("ref", [0.0, 0.5])
def test_mjcf_ranges(kind, angle, ref):
    """Lengths are lengths whatever the unit of angles, a reference shifts nothing, and what is not limited is not."""
    text = f"""<mujoco><compiler angle="{angle}"/><worldbody><body name="b"><joint name="j" type="{kind}" axis="0 1 0"
    ref="{ref}" range="-1 2" LIMITED/><geom size="0.1" mass="1" pos="0.1 0 0"/></body></worldbody></mujoco>"""
    unit = np.pi / 180.0 if (kind, angle) == ("hinge", "degree") else 1.0
    lower, upper = Robot.from_mjcf(text.replace("LIMITED", "")).position_limits
    assert [lower[0], upper[0]] == pytest.approx([-unit, 2.0 * unit], rel=1e-12)
    assert Robot.from_mjcf(text.replace("LIMITED", 'limited="false"')).joint_limits() == ()


POSES = {
    "euler": ('pos="0.3 0 1" euler="1.5707963267948966 0 0"', (0.3, 0.0, 1.0), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))),
    "quat": ('pos="0 0.2 1" quat="0.6 0 0.8 0"', (0.0, 0.2, 1.0), (0.0, 0.8, 0.0, 0.6)),
    "pos": ('pos="0 0 1"', (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)),
}


@pytest.mark.parametrize("pose", POSES)
def test_mjcf_body_fixed_in_the_world(pose):
    """A base without a joint stands where the file puts it: its links, and gravity in its axes."""
    attributes, position, quaternion = POSES[pose]
    robot = Robot.from_mjcf(
        f"""<mujoco><compiler angle="radian"/><worldbody><body name="base" {attributes}>
        <inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/><body name="a" pos="0 0 0.1"><joint name="j" axis="1 0 0"/>
        <inertial pos="0 0 -0.2" mass="1" diaginertia="0.1 0.1 0.1"/></body></body></worldbody></mujoco>"""
    )
    base = pin.SE3(pin.Quaternion(*np.roll(quaternion, 1)).matrix(), np.array(position))
    q = robot.neutral()
    assert placement(robot, q, "base").isApprox(base, 1e-12)
    assert placement(robot, q, "a").translation == pytest.approx(base.act(np.array([0, 0, 0.1])), abs=1e-12)
    weight = base.rotation.T @ [0, 0, -GRAVITY]
    expected = np.cross([0, 0, -0.2], weight)[0] / (0.1 + 0.2**2)
    assert constrained_acceleration(robot, q, [0.0], [0.0], []).a == pytest.approx([expected], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("pose", POSES)
def test_mjcf_free_body(pose):
    """Its configuration is its pose in the world; equalities hold where the file puts it."""
    attributes, position, quaternion = POSES[pose]
    robot = Robot.from_mjcf(
        f"""<mujoco><compiler angle="radian"/><worldbody><body name="b" {attributes}><freejoint/>
        <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body></worldbody>
        <equality><connect name="pin" body1="b" anchor="0 0 0.1"/></equality></mujoco>"""
    )
    at = [0.3, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]
    assert placement(robot, robot.configuration({}, at), "b").translation == pytest.approx(at[:3], abs=1e-15)
    there = robot.configuration({}, [*position, *quaternion])
    sim = Simulator(robot)
    sim.reset(there)
    assert max(sim.largest_violation()) < 1e-9
    (pinned,) = robot.constraints
    assert pinned.point_b == pytest.approx(placement(robot, there, "b").act(np.array([0, 0, 0.1])), abs=1e-12)


def test_mjcf_equalities_actuators_springs():
    """Connect, weld and joint equalities, at the configuration of the file; joints without an actuator are passive."""
    hand = (
        '<body name="hand" pos="0.1 0 -0.6"><joint name="wrist" type="hinge" axis="0 1 0"/>'
        '<inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/></body>'
    )
    end = (
        '<equality><connect name="pin" body1="hand" body2="carriage" anchor="0 0 0.1"/><weld body1="arm"/>'
        '<joint name="gear" joint1="lift" joint2="turn" polycoef="0 2 0 0 0"/>'
        '<connect name="off" body1="hand" active="false" anchor="0 0 0"/></equality>'
        '<actuator><motor joint="turn"/></actuator>'
    )
    robot = Robot.from_mjcf(arm_mjcf(turn='stiffness="30" springref="0.2"', more=hand, end=end))
    assert robot.actuated_joints == ("turn",)
    kinds = [(type(constraint), constraint.name) for constraint in robot.constraints]
    assert kinds == [(PointAnchor, "pin"), (FrameAnchor, "weld 1"), (JointCoupling, "gear")]
    assert max(assemble(robot, robot.neutral(), []).violations.values()) < 1e-14
    assert dict(robot.springs) == {"turn": (30.0, 0.2)}
    assert robot.spring_effort(np.array([0.0, 0.5, 0.0])) == pytest.approx([0.0, -9.0, 0.0])
    assert robot.gravity == pytest.approx([0, 0, -GRAVITY])


def test_spring_in_a_joint():
    """A mass on a spring oscillates at sqrt(k / m) about where the spring carries it, and keeps its energy."""
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="mass">
    <joint name="slide" type="slide" axis="0 0 1" stiffness="50" springref="0.1"/>
    <inertial pos="0 0 0" mass="2" diaginertia="0.1 0.1 0.1"/></body></worldbody></mujoco>"""
    robot = Robot.from_mjcf(text)
    middle, omega = 0.1 - 2.0 * GRAVITY / 50.0, np.sqrt(50.0 / 2.0)
    for stepper, tolerance in (("smooth", 1e-9), ("time_stepping", 2e-5)):
        sim = simulator(robot, [0.0], stepper=stepper)
        sim.run(1.0)
        assert sim.state.q[0] == pytest.approx(middle - middle * np.cos(omega), abs=tolerance)
        assert sim.mechanical_energy() == pytest.approx(0.5 * 50.0 * 0.1**2, abs=tolerance)


# -- Cassie


def cassie_file():
    """Return the SDF of Cassie."""
    (found,) = (file for file in files("example-robot-data") or [] if file.name == "cassie_v2.sdf")
    return Path(str(found.locate()))


def cassie():
    """Return Cassie on a free-flyer."""
    return Robot.from_sdf(cassie_file(), floating_base=True)


def test_cassie_is_what_the_file_says():
    """Mass and joints as counted in the file; four loops, closed there; springs where the file has them."""
    robot, model = cassie(), ElementTree.parse(cassie_file()).getroot().find("model")
    assert robot.mass == pytest.approx(sum(float(mass.text) for mass in model.iter("mass")), rel=1e-13)
    kinds = [element.get("type") for element in model.findall("joint")]
    assert (kinds.count("revolute"), kinds.count("ball"), len(model.findall("link"))) == (22, 4, 23)
    assert robot.nv == 6 + 22
    assert {constraint.name for constraint in robot.constraints} == {
        element.get("name") for element in model.findall("joint") if element.get("type") == "ball"
    }
    motion = constrained_acceleration(robot, robot.neutral(), np.zeros(28), np.zeros(22), [])
    assert motion.rank == motion.lam.size == 10
    assert len(robot.springs) == 4
    for element in model.findall("link"):
        x, y, z, *rpy = (float(word) for word in element.findtext("pose").split())
        expected = pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array([x, y, z])).homogeneous
        np.testing.assert_allclose(placement(robot, robot.neutral(), element.get("name")), expected, atol=1e-12)


def test_kinetic_energy_of_cassie():
    """The sum over the links of the file, each with its own velocity, in a random state."""
    robot, model = cassie(), ElementTree.parse(cassie_file()).getroot().find("model")
    q, v = random_state(robot, np.random.default_rng(3))
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q, v)
    energy = 0.0
    for element in model.findall("link"):
        inertial, frame = element.find("inertial"), robot.model.getFrameId(element.get("name"))
        pin.updateFramePlacement(robot.model, data, frame)
        motion = pin.getFrameVelocity(robot.model, data, frame, pin.ReferenceFrame.LOCAL)
        centre = np.array([float(word) for word in inertial.findtext("pose").split()])[:3]
        moments = {
            key: float(inertial.findtext(f"inertia/{key}")) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        }
        xx, yy, zz, xy, xz, yz = moments.values()
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        speed = motion.linear + np.cross(motion.angular, centre)
        energy += (
            0.5 * float(inertial.findtext("mass")) * speed @ speed + 0.5 * motion.angular @ inertia @ motion.angular
        )
    assert kinetic_energy(robot, q, v) == pytest.approx(energy, rel=1e-12)


def test_cassie_is_assembled_and_falls():
    """Pushed out of its loops it is assembled within its limits; falling, it keeps them closed, and its momentum."""
    robot = cassie()
    rough = pin.integrate(robot.model, robot.neutral(), np.random.default_rng(0).uniform(-0.2, 0.2, robot.nv))
    found = assemble(robot, rough, [])
    assert found.residual < 1e-12
    lower, upper = robot.tangent_limits(found.q)
    assert lower.max() <= 0.0 <= upper.min()
    sim = Simulator(robot)
    sim.reset(found.q, assemble=True)
    for _ in range(200):
        result = sim.step()
        assert max(sim.largest_violation()) < 1e-9
        assert result.energy.damping <= 1e-12
    momentum = robot.mass * -GRAVITY * 0.2
    data = robot.model.createData()
    pin.centerOfMass(robot.model, data, sim.state.q, sim.state.v)
    assert robot.mass * data.vcom[0][2] == pytest.approx(momentum, rel=1e-12)


def test_rounding_of_the_guess_does_not_choose_between_configurations():
    """Guesses that differ in the last digits lead to the same one of several ways to close the loops."""
    robot, rng = cassie(), np.random.default_rng(1)
    for amplitude in (0.0, 0.1, 0.2, 0.2):
        guess = pin.integrate(robot.model, robot.neutral(), amplitude * rng.uniform(-1.0, 1.0, robot.nv))
        nearly = pin.integrate(robot.model, guess, 1e-13 * rng.normal(size=robot.nv))
        found, other = assemble(robot, guess, []), assemble(robot, nearly, [])
        assert found.closed
        assert np.abs(pin.difference(robot.model, found.q, other.q)).max() < 1e-10


def test_energy_of_falling_cassie():
    """Released with bent springs, what gravity, springs and damping leave unexplained is the integrator's error."""
    robot, errors = cassie(), []
    bent = np.random.default_rng(0).uniform(-0.2, 0.2, robot.nv)
    q = assemble(robot, pin.integrate(robot.model, robot.neutral(), bent), []).q
    for dt in (5e-4, 2.5e-4):  # longer steps do not resolve its fastest vibrations
        sim = Simulator(robot, dt=dt)
        sim.reset(q)
        sim.run(0.1)
        errors.append(sim.integration_energy())
    assert abs(errors[1]) < 2e-5
    assert errors[0] / errors[1] > 3.5


def test_cassie_lands_on_its_feet():
    """With contacts, stops and springs at once it comes down, and nothing opens or sinks."""
    robot = cassie()
    q = assemble(robot, robot.neutral(), []).q.copy()
    feet = [
        PointContact(f"{side} {end}", f"{side}-foot", point, friction=0.8)
        for side in ("left", "right")
        for end, point in (("toe", (0.09, 0.05, 0.0)), ("heel", (-0.06, -0.08, 0.0)))
    ]
    lowest = min(point_of(robot, q, foot.link, foot.point)[2] for foot in feet)
    q[2] += 0.01 - lowest
    sim = simulator(robot, q, None, [*feet, *robot.joint_limits()])
    landed = 0
    for _ in range(150):
        result = sim.step()
        landed += len(result.impacts)
        assert sim.largest_violation()[0] < 1e-6
        assert result.energy.contacts <= 1e-9
    assert landed >= 1
    assert sum(result.contact_forces[foot.name].normal_force for foot in feet) > 20.0


# -- refusals


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf", "not a valid SDF"),
        ("<robot/>", "one model"),
        (sdf(), "at least one"),
        (sdf(sdf_link("a", range(6)), sdf_link("a", range(6))), "named once"),
        (sdf(sdf_link("a", range(6)), sdf_joint("j", "screw", "world", "a")), "allowed: fixed"),
        (sdf(sdf_link("a", range(6)), sdf_joint("j", "revolute", "b", "a")), "got link 'b'"),
        (sdf(sdf_link("a", range(6)), sdf_link("b", range(6))), "one root link"),
        (sdf(sdf_link("a", range(6)), sdf_joint("j", "revolute", "world", "a", (0, 0, 0))), "non-zero length"),
        (sdf(sdf_link("a", range(5)), sdf_joint("j", "revolute", "world", "a")), "6 number"),
        (
            sdf(
                *(sdf_link(name, range(6)) for name in "abc"),
                sdf_joint("j", "revolute", "b", "a"),
                sdf_joint("k", "revolute", "a", "b"),
            ),
            "circle",
        ),
        (sdf(sdf_link("a", range(6)), sdf_joint("j", "revolute", "a", "world")), "allowed: a link"),
        (
            sdf(
                '<link name="a"><pose relative_to="b">0 0 0 0 0 0</pose></link>',
                sdf_joint("j", "revolute", "world", "a"),
            ),
            "relative to 'b'",
        ),
    ],
)
def test_sdf_that_is_not_understood(text, message):
    """The refusal says what was given and what is allowed."""
    with pytest.raises(ModelError, match=message):
        Robot.from_sdf(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end": '<equality><tendon name="t"/></equality>'}, "tendon"),
        ({"end": '<equality><connect body1="elbow" anchor="0 0 0"/></equality>'}, "got 'elbow'"),
        ({"end": '<equality><connect body1="arm" anchor="0 0"/></equality>'}, "3 finite"),
        ({"end": '<equality><joint joint1="lift" joint2="bend"/></equality>'}, "got joint 'bend'"),
        ({"end": '<equality><joint joint1="lift" joint2="turn" polycoef="0 1 1 0 0"/></equality>'}, "powers"),
    ],
)
def test_mjcf_that_is_not_understood(options, message):
    """The refusal says what was given and what is allowed."""
    with pytest.raises(ModelError, match=message):
        Robot.from_mjcf(arm_mjcf(**options))


def test_files_that_are_none():
    """A missing file, and XML of another kind."""
    for read in (Robot.from_sdf, Robot.from_mjcf, Robot.from_urdf):
        with pytest.raises(ModelError, match="cannot read"):
            read("/nowhere/robot.xml")
        with pytest.raises(ModelError, match="cannot read"):
            read(None)
        with pytest.raises(ModelError):
            read("<html/>")


def test_floating_mjcf_with_a_ball_joint():
    """A free joint makes a floating base, a ball joint three velocities; thrown, the two bodies keep their momentum."""
    text = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint name="base"/>
    <inertial pos="0 0 0" mass="2" diaginertia="0.1 0.2 0.3"/>
    <body name="limb" pos="0.1 0 -0.2"><joint type="ball" name="shoulder"/>
    <inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.02"/></body></body></worldbody></mujoco>"""
    robot = Robot.from_mjcf(text, gravity=(0, 0, 0))
    assert (robot.floating_base, robot.actuated_joints, robot.nu) == (True, ("shoulder",), 3)
    q = robot.configuration({"shoulder": [0.1, 0.2, 0.0, 1.0]}, base=[0, 0, 1, 0, 0, 0, 1])
    v = np.array([0.5, 0.0, 1.0, 0.2, -0.4, 0.3, 2.0, -1.0, 0.5])
    sim = simulator(robot, q, v)
    sim.run(0.3, lambda t, q, v: [0.3, -0.2, 0.1])
    np.testing.assert_allclose(momentum(robot, sim.state.q, sim.state.v), momentum(robot, q, v), atol=1e-12)
    assert np.abs(sim.state.v - v).max() > 0.1
    assert np.linalg.norm(sim.state.q[-4:]) == pytest.approx(1.0, abs=1e-12)


def momentum(robot, q, v):
    """Return linear and angular momentum (6,) about the world's origin, by Pinocchio alone."""
    data = robot.model.createData()
    about_centre = pin.computeCentroidalMomentum(robot.model, data, q, v)
    return np.concatenate([about_centre.linear, about_centre.angular + np.cross(data.com[0], about_centre.linear)])


@pytest.mark.parametrize(
    ("given", "bad", "message"),
    [
        ('mass value="0.7"', 'mass value="0,7"', "'0,7', allowed: 1 finite"),
        ('mass value="0.7"', 'mass value="nan"', "'nan'"),
        ('mass value="0.7"', 'mass value="-0.7"', "-0.7, allowed: a number >= 0"),
        ('ixx="0.01"', 'ixx="1e-2kg"', "'ixx' of <inertia> of <link> 'arm'"),
        ('xyz="0.0 0.1 -0.3"', 'xyz="0.0 0.1"', "3 finite"),
    ],
)
def test_urdf_with_an_inertial_that_cannot_be_read(given, bad, message):
    """Its reader would leave out the mass of the link, with a line on stderr only."""
    text = arm_urdf()
    assert given in text
    with pytest.raises(ModelError, match=message):
        Robot.from_urdf(text.replace(given, bad))


def test_sdf_link_without_inertial_weighs_a_kilogram():
    """The defaults of SDFormat: 1 kg and 1 kg m^2 about each axis."""
    plain = '<link name="a"><pose>0.5 0 0 0 0 0</pose></link>'
    robot = Robot.from_sdf(sdf(plain, sdf_joint("j", "revolute", "world", "a", pose="<pose>-0.5 0 0 0 0 0</pose>")))
    assert inertia_of(robot, robot.neutral()) == pytest.approx(np.array([[1.0 + 0.25]]))
    light = plain.replace("</link>", "<inertial><mass>2</mass></inertial></link>")
    robot = Robot.from_sdf(sdf(light, sdf_joint("j", "revolute", "world", "a", pose="<pose>-0.5 0 0 0 0 0</pose>")))
    assert inertia_of(robot, robot.neutral()) == pytest.approx(np.array([[1.0 + 0.5]]))


CHAIN_MJCF = """<mujoco>{default}<worldbody>
<body {a}><joint {p} axis="0 1 0" range="-60 60"/><geom type="sphere" size="0.1" mass="1"/>
<body {b} pos="0.5 0 0"><geom type="sphere" size="0.1" mass="1"/>
<body {c} pos="0.5 0 0"><joint {q} type="slide" axis="1 0 0" range="-0.7 0.7"/><geom type="sphere" size="0.1" mass="1"/>
</body></body></body></worldbody>{end}</mujoco>"""


def chain_mjcf(named=True, default="", end="", p="", q="", a=""):
    """Return a hinge, a fixed body and a slide, with or without names of bodies and joints."""
    names = {key: f'name="{key}"' if named else "" for key in "abcpq"}
    given = {"p": p, "q": q, "a": a}
    return CHAIN_MJCF.format(default=default, end=end, **{key: f"{names[key]} {given.get(key, '')}" for key in names})


def test_mjcf_without_names_is_the_same_robot():
    """Bodies and joints without names, and settings after the bodies that they are for."""
    named = Robot.from_mjcf(chain_mjcf(default='<compiler angle="degree"/>'))
    for text in (
        chain_mjcf(named=False, default='<compiler angle="degree"/>'),
        chain_mjcf(named=False, end='<compiler angle="degree"/>'),
    ):
        robot = Robot.from_mjcf(text)
        assert robot.nv == named.nv == 2
        q = np.array([0.3, 0.2])
        np.testing.assert_allclose(inertia_of(robot, q), inertia_of(named, q), rtol=1e-14)
        np.testing.assert_allclose(robot.position_limits[1], [np.pi / 3, 0.7], rtol=1e-12)
    ball = 0.4 * 0.1**2
    expected = 3 * ball + 0.5**2 + 1.2**2  # three balls, the outer one 0.2 m out
    assert inertia_of(named, np.array([0.3, 0.2]))[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end": '<include file="other.xml"/>'}, "cannot read.*other.xml"),
        ({"p": 'damping="1 2"'}, "one number"),
        ({"end": '<actuator><motor joint="p" armature="0.1"/></actuator>'}, "'armature' of <motor>"),
        ({"end": '<actuator><motor joint="none"/></actuator>'}, "joint 'none'"),
        ({"end": '<actuator><motor joint="p" tendon="q"/></actuator>'}, "joint and tendon"),
    ],
)
def test_mjcf_that_would_be_another_robot(options, message):
    """What cannot be done is refused by name."""
    with pytest.raises(ModelError, match=message):
        Robot.from_mjcf(chain_mjcf(**options))


def test_mjcf_body_and_joint_of_one_name():
    """An equality means the body."""
    text = chain_mjcf(named=False, a='name="same"', p='name="same"', end='<equality><weld body1="same"/></equality>')
    (weld,) = Robot.from_mjcf(text).constraints
    assert weld.link_a == "same"


def test_robot_from_a_pinocchio_model():
    """The constructor takes any model; joints that mimic others in Pinocchio's way, and unknown ones, are refused."""
    model = pin.buildModelFromXML(arm_urdf())
    robot, same = Robot(model, ("turn",)), Robot.from_urdf(arm_urdf(), actuated_joints=["turn"])
    q = random_state(same, np.random.default_rng(0))[0]
    np.testing.assert_array_equal(inertia_of(robot, q), inertia_of(same, q))
    with pytest.raises(UnknownName, match="elbow"):
        Robot(model, ("elbow",))
    start = '<joint name="turn" type="revolute">'
    mimicking = arm_urdf().replace(start, f'{start}<mimic joint="lift"/>')
    assert "mimic" in mimicking
    with pytest.raises(ModelError, match="'turn'"):
        Robot(pin.buildModelFromXML(mimicking, True), ())


def test_mjcf_without_names_finds_its_meshes(tmp_path):
    """They are beside the file, also where that has no compiler, and is read from a copy."""
    shape = "solid s\n" + "".join(
        f"facet normal 0 0 1\nouter loop\nvertex {a}\nvertex {b}\nvertex {c}\nendloop\nendfacet\n"
        for a, b, c in (
            ("0 0 0", "0 1 0", "1 0 0"),
            ("0 0 0", "1 0 0", "0 0 1"),
            ("0 0 0", "0 0 1", "0 1 0"),
            ("1 0 0", "0 1 0", "0 0 1"),
        )
    )
    (tmp_path / "shape.stl").write_text(shape + "endsolid s\n")
    text = chain_mjcf(named=False).replace(
        "<worldbody>", '<asset><mesh name="shape" file="shape.stl"/></asset><worldbody>'
    )
    mesh = '<inertial pos="0 0 0" mass="1" diaginertia="0.004 0.004 0.004"/><geom type="mesh" mesh="shape"/><body'
    text = text.replace('<geom type="sphere" size="0.1" mass="1"/>\n<body', mesh)
    assert "shape.stl" in text and mesh in text
    (tmp_path / "robot.xml").write_text(text)
    robot = Robot.from_mjcf(tmp_path / "robot.xml")
    named = Robot.from_mjcf(chain_mjcf())
    np.testing.assert_allclose(inertia_of(robot, np.zeros(2)), inertia_of(named, np.zeros(2)), rtol=1e-12)

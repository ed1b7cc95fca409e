"""MJCF as MuJoCo means it: classes, frames, included files, inertia of geoms, efforts of actuators, equalities."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from mechanisms import inertia_of, linear_momentum, placement

from constrained_sim import Collisions, JointCoupling, JointLimit, Plane, Robot, Simulator, WorldObject, assemble
from constrained_sim.exceptions import InvalidValue, ModelError, UnknownName

UPRIGHT = (0, 0, 0.1, 0, 0, 0, 1)
INERTIAL = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>'


def mjcf(*parts: str) -> str:
    """Return an MJCF of parts."""
    return "<mujoco>" + "".join(parts) + "</mujoco>"


def hinge(attributes: str = "", more: str = "", inertial: str = INERTIAL) -> str:
    """Return a world with one body on a hinge 'j'."""
    return f'<worldbody><body name="b"><joint name="j" axis="0 1 0" {attributes}/>{inertial}{more}</body></worldbody>'


# -- classes


NESTED = """<default><joint damping="1" armature="0.5"/><geom density="500"/>
<default class="arm"><joint damping="2"/><default class="hand"><joint frictionloss="3"/></default></default>
</default>"""


@pytest.mark.parametrize(
    ("body", "joint", "damping", "friction", "armature"),
    [
        ("", "", 1.0, 0.0, 0.5),
        ('childclass="arm"', "", 2.0, 0.0, 0.5),
        ('childclass="hand"', "", 2.0, 3.0, 0.5),
        ('childclass="hand"', 'class="arm"', 2.0, 0.0, 0.5),
        ('childclass="arm"', 'class="main"', 1.0, 0.0, 0.5),
        ('childclass="hand"', 'damping="7" armature="0"', 7.0, 3.0, 0.0),
    ],
)
def test_classes_inherit(body: str, joint: str, damping: float, friction: float, armature: float) -> None:
    """A class takes from the one around it; an element's own class takes the place of its body's childclass."""
    text = mjcf(NESTED, hinge(joint).replace('name="b"', f'name="b" {body}'))
    robot = Robot.from_mjcf(text)
    assert (robot.damping[0], robot.dry_friction[0], robot.model.armature[0]) == (damping, friction, armature)


def test_childclass_goes_down_to_inner_bodies_and_frames() -> None:
    """The nearest one around an element counts."""
    inner = f'<frame childclass="hand"><body name="c"><joint name="k"/>{INERTIAL}</body></frame>'
    outer = f'<body name="d"><joint name="l"/>{INERTIAL}</body>'
    text = mjcf(NESTED, hinge(more=inner + outer).replace('name="b"', 'name="b" childclass="arm"'))
    robot = Robot.from_mjcf(text)
    friction = dict(zip(robot.joint_names, robot.dry_friction, strict=True))
    damping = dict(zip(robot.joint_names, robot.damping, strict=True))
    assert friction == {"j": 0.0, "k": 3.0, "l": 0.0}
    assert damping == {"j": 2.0, "k": 2.0, "l": 2.0}


# -- efforts


@pytest.mark.parametrize(
    ("joint", "actuators", "lower", "upper"),
    [
        ("", '<motor joint="j" gear="100" ctrlrange="-1 1"/>', -100.0, 100.0),
        ("", '<motor joint="j" gear="-100" ctrlrange="-1 2"/>', -200.0, 100.0),
        ("", '<motor joint="j" ctrllimited="false" ctrlrange="-1 1"/>', -np.inf, np.inf),
        ("", '<motor joint="j" ctrlrange="-9 9" forcerange="-2 3"/>', -2.0, 3.0),
        ("", '<motor joint="j" ctrlrange="0 1" gear="5"/>', 0.0, 5.0),
        ("", '<motor joint="j" ctrlrange="0 1" gear="-5"/>', -5.0, 0.0),
        ("", '<position joint="j" kp="50" ctrlrange="-1 1"/>', -np.inf, np.inf),
        ("", '<position joint="j" kp="50" forcerange="-4 4" gear="3"/>', -12.0, 12.0),
        ("", '<velocity joint="j" kv="5" forcerange="-4 4"/>', -4.0, 4.0),
        ("", '<general joint="j" gainprm="7" ctrlrange="-1 1"/>', -7.0, 7.0),
        ("", '<general joint="j" gainprm="7" biastype="affine" biasprm="0 -7 0" ctrlrange="-1 1"/>', -np.inf, np.inf),
        ("", '<motor joint="j" ctrlrange="-1 1"/><motor joint="j" gear="2" ctrlrange="-1 1"/>', -3.0, 3.0),
        ('actuatorfrcrange="-6 5"', '<motor joint="j" ctrlrange="-9 9"/>', -6.0, 5.0),
        ('actuatorfrcrange="-6 5" actuatorfrclimited="false"', '<motor joint="j" ctrlrange="-9 9"/>', -9.0, 9.0),
        ('actuatorfrcrange="-6 6"', "", -6.0, 6.0),
    ],
)
def test_efforts_of_actuators(joint: str, actuators: str, lower: float, upper: float) -> None:
    """What bounds the force of an actuator bounds the effort at its joint; several add up."""
    robot = Robot.from_mjcf(mjcf(hinge(joint), f"<actuator>{actuators}</actuator>" if actuators else ""))
    assert (robot.least_efforts[0], robot.effort_limits[0]) == (lower, upper)
    applied = [float(Simulator(robot).step([tau]).tau_applied[0]) for tau in (-1e4, 1e4)]
    assert applied == [max(lower, -1e4), min(upper, 1e4)]
    stronger = robot.with_joints({"j": {"effort": 8.0}})
    assert stronger.clamp([-1e4]).tolist() == [-8.0]


def test_defaults_of_actuators_are_shared() -> None:
    """All kinds of actuators have one set of defaults in a class."""
    default = '<default><motor ctrlrange="-2 2"/><default class="g"><general gear="4"/></default></default>'
    robot = Robot.from_mjcf(mjcf(default, hinge(), '<actuator><motor class="g" joint="j"/></actuator>'))
    assert robot.effort_limits.tolist() == [8.0]


def test_general_actuator_with_the_defaults_of_a_servo() -> None:
    """Its force is not proportional to its control, whose range bounds no effort."""
    for kind, limit in (("position", np.inf), ("motor", 3.0)):
        default = f'<default><{kind} ctrlrange="-3 3"/></default>'
        robot = Robot.from_mjcf(mjcf(default, hinge(), '<actuator><general joint="j"/></actuator>'))
        assert robot.effort_limits.tolist() == [limit]


def test_tendon_drives_its_joints() -> None:
    """Each joint of a fixed tendon takes an effort of its own, and this is said."""
    more = f'<body name="c"><joint name="k" axis="0 1 0"/>{INERTIAL}</body>'
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="1"/><joint joint="k" coef="-0.5"/></fixed></tendon>'
    motor = '<actuator><motor tendon="t" gear="10" ctrlrange="-1 1"/></actuator>'
    robot = Robot.from_mjcf(mjcf(hinge(more=more), tendon, motor))
    assert robot.actuated_joints == ("j", "k")
    assert robot.effort_limits.tolist() == [10.0, 5.0]
    assert any("tendon of an actuator" in line for line in robot.ignored)


def test_an_actuator_with_a_law_of_its_own_says_that_it_is_not_used() -> None:
    """A muscle or a servo without attributes is no less lost than one with gains."""
    for kind in ("muscle", "position", "velocity"):
        robot = Robot.from_mjcf(mjcf(hinge(), f'<actuator><{kind} joint="j"/></actuator>'))
        assert any(f"law of <{kind}>" in line for line in robot.ignored)
    assert not Robot.from_mjcf(mjcf(hinge(), '<actuator><motor joint="j"/></actuator>')).ignored


# -- masses


SOLIDS = {
    "box": ('type="box" size="0.1 0.2 0.3"', 0.2 * 0.4 * 0.6, (0.4**2 + 0.6**2) / 12, (0.2**2 + 0.4**2) / 12),
    "sphere": ('size="0.2"', 4 / 3 * np.pi * 0.2**3, 0.4 * 0.2**2, 0.4 * 0.2**2),
    "ellipsoid": (
        'type="ellipsoid" size="0.1 0.2 0.3"',
        4 / 3 * np.pi * 0.1 * 0.2 * 0.3,
        (0.2**2 + 0.3**2) / 5,
        (0.1**2 + 0.2**2) / 5,
    ),
    "cylinder": (
        'type="cylinder" size="0.1 0.3"',
        np.pi * 0.1**2 * 0.6,
        (3 * 0.1**2 + 0.6**2) / 12,
        0.1**2 / 2,
    ),
    "mesh": ('type="mesh" mesh="m"', 0.2 * 0.4 * 0.6, (0.4**2 + 0.6**2) / 12, (0.2**2 + 0.4**2) / 12),
}

BRICK = '<asset><mesh name="m" scale="0.1 0.2 0.3" vertex="{}"/></asset>'.format(
    " ".join(f"{x} {y} {z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
)


@pytest.mark.parametrize("kind", SOLIDS)
@pytest.mark.parametrize("weight", ["", 'mass="3"', 'density="200"'])
def test_geoms_weigh(kind: str, weight: str) -> None:
    """Mass and moments of solids, by mass, by density, or that of water; visual ones count too."""
    shape, volume, xx, zz = SOLIDS[kind]
    geom = f'<geom {shape} {weight} contype="0" conaffinity="0"/>'
    robot = Robot.from_mjcf(mjcf(BRICK, hinge(inertial=geom)))
    mass = {"": 1000.0 * volume, 'mass="3"': 3.0, 'density="200"': 200.0 * volume}[weight]
    inertia = robot.model.inertias[1]
    assert inertia.mass == pytest.approx(mass, rel=1e-12)
    assert inertia.inertia[0, 0] == pytest.approx(mass * xx, rel=1e-12)
    assert inertia.inertia[2, 2] == pytest.approx(mass * zz, rel=1e-12)
    assert inertia.lever == pytest.approx([0, 0, 0], abs=1e-15)


def test_capsule_is_a_cylinder_with_two_half_balls() -> None:
    """By integration over slices along its axis; between two points it points along them."""
    radius, half = 0.1, 0.3
    z = np.linspace(-half - radius, half + radius, 200_001)
    squared = radius**2 - np.maximum(np.abs(z) - half, 0.0) ** 2
    volume = np.trapezoid(np.pi * squared, z)
    axial = np.trapezoid(np.pi * squared**2 / 2, z) / volume
    side = np.trapezoid(np.pi * squared * (squared / 4 + z**2), z) / volume
    geom = '<geom type="capsule" size="0.1" fromto="0.2 0 0.1 0.8 0 0.1"/>'
    inertia = Robot.from_mjcf(mjcf(hinge(inertial=geom))).model.inertias[1]
    assert inertia.mass == pytest.approx(1000.0 * volume, rel=1e-8)
    assert inertia.lever == pytest.approx([0.5, 0, 0.1], abs=1e-12)
    assert np.diag(inertia.inertia) / inertia.mass == pytest.approx([axial, side, side], rel=1e-8)


@pytest.mark.parametrize(
    ("compiler", "mass"),
    [
        ("", 2.0),
        ('inertiafromgeom="true"', 5.0),
        ('inertiafromgeom="true" inertiagrouprange="0 1"', 1.0),
        ('settotalmass="7"', 7.0),
        ('boundmass="3"', 3.0),
        ('inertiafromgeom="true" boundmass="9"', 9.0),
    ],
)
def test_settings_of_masses(compiler: str, mass: float) -> None:
    """What the compiler's settings make of an inertial beside geoms in two groups."""
    inertial = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
    geoms = '<geom size="0.1" mass="1"/><geom size="0.1" mass="4" group="3"/>'
    robot = Robot.from_mjcf(mjcf(f"<compiler {compiler}/>", hinge(inertial=inertial + geoms)))
    assert robot.mass == pytest.approx(mass, rel=1e-14)


@pytest.mark.parametrize(
    ("inertial", "message"),
    [
        ('<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>', "triangle"),
        ('<inertial pos="0 0 0" mass="1" diaginertia="1 1 -1"/>', "positive definite"),
        ('<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 2 0 0"/>', "positive definite"),
        ('<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/>', "'mass'.*-1"),
        ('<inertial pos="0 0 0" mass="1"/>', "no inertias"),
        ('<inertial mass="1" diaginertia="1 1 1"/>', "no pos"),
        ('<geom size="0.1" mass="-1"/>', "'mass'"),
        ('<geom size="0.1" density="-1"/>', "'density'"),
        ('<geom size="-0.1"/>', "size"),
        ('<geom type="box" size="0.1 0.1"/>', "3 positive"),
        ('<geom type="mesh" mesh="none"/>', "mesh 'none'"),
    ],
)
def test_masses_that_cannot_be(inertial: str, message: str) -> None:
    """Refused with the body's name and the line."""
    with pytest.raises(ModelError, match=message):
        Robot.from_mjcf(mjcf(hinge(inertial=inertial)))


def test_balanced_inertia() -> None:
    """Moments beyond the triangle inequality become their mean where the file asks for it."""
    text = mjcf(
        '<compiler balanceinertia="true"/>', hinge(inertial='<inertial pos="0 0 0" mass="1" diaginertia="1 1 4"/>')
    )
    assert np.diag(Robot.from_mjcf(text).model.inertias[1].inertia) == pytest.approx([2, 2, 2])


# -- where things are


@pytest.mark.parametrize(
    ("settings", "orientation", "rotation"),
    [
        ('eulerseq="xyz"', 'euler="90 90 0"', pin.rpy.rotate("x", np.pi / 2) @ pin.rpy.rotate("y", np.pi / 2)),
        ('eulerseq="XYZ"', 'euler="90 90 0"', pin.rpy.rotate("y", np.pi / 2) @ pin.rpy.rotate("x", np.pi / 2)),
        ('eulerseq="zyx"', 'euler="30 0 90"', pin.rpy.rotate("z", np.pi / 6) @ pin.rpy.rotate("x", np.pi / 2)),
        ('angle="radian"', 'axisangle="0 0 2 0.5"', pin.rpy.rotate("z", 0.5)),
        ("", 'zaxis="1 0 0"', pin.rpy.rotate("y", np.pi / 2)),
        ("", 'xyaxes="0 1 0 -1 0.3 0"', pin.rpy.rotate("z", np.pi / 2)),
        ("", 'quat="2 0 0 2"', pin.rpy.rotate("z", np.pi / 2)),
    ],
)
def test_orientations(settings: str, orientation: str, rotation: np.ndarray) -> None:
    """Five ways to say one thing, in a frame within a body."""
    text = mjcf(
        f"<compiler {settings}/>",
        hinge(more=f'<frame pos="0.1 0 0" {orientation}><body name="c" pos="0 0.2 0"/></frame>'),
    )
    found = placement(Robot.from_mjcf(text), np.zeros(1), "c")
    assert found.rotation == pytest.approx(rotation, abs=1e-12)
    assert found.translation == pytest.approx([0.1, 0, 0] + rotation @ [0, 0.2, 0], abs=1e-12)


def test_several_bodies_in_the_world() -> None:
    """A robot and things beside it: all of them move, only what has actuators takes efforts."""
    ball = '<body name="ball" pos="1 0 2"><freejoint name="flies"/><geom size="0.1"/></body>'
    still = '<body name="target" pos="0 0 5" mocap="true"><geom size="0.1"/></body>'
    text = mjcf(
        hinge().replace("</worldbody>", f"{ball}{still}</worldbody>"), '<actuator><motor joint="j"/></actuator>'
    )
    robot = Robot.from_mjcf(text)
    assert robot.joint_names == ("j", "flies")
    assert (robot.actuated_joints, robot.floating_base) == (("j",), False)
    assert any("mocap" in line for line in robot.ignored)
    assert placement(robot, robot.neutral(), "target").translation == pytest.approx([0, 0, 5])
    sim = Simulator(robot)
    joint = robot.joint_models["flies"]
    assert sim.state.q[joint.idx_q :].tolist() == [1, 0, 2, 0, 0, 0, 1]
    sim.run(0.1)
    assert sim.state.v[joint.idx_v + 2] == pytest.approx(-0.981, rel=1e-12)


def test_what_floats_begins_where_the_file_places_it() -> None:
    """Turned and nested too, as MuJoCo does; where the configuration says nothing else, and beside objects."""
    first = '<body name="one" pos="1 2 3" euler="10 20 30"><freejoint/><geom size="0.1"/></body>'
    second = '<body name="two" pos="-1 0 0.5"><joint name="flies" type="free"/><geom size="0.1"/></body>'
    text = mjcf(f"<worldbody>{first}{second}</worldbody>")
    robot = Robot.from_mjcf(text)
    expected = mujoco.MjModel.from_xml_string(text).qpos0.reshape(2, 7)[:, [0, 1, 2, 4, 5, 6, 3]]
    assert robot.neutral() == pytest.approx(expected.ravel(), abs=1e-15)
    assert robot.configuration({}, base=[0, 0, 0, 0, 0, 0, 1])[7:].tolist() == expected[1].tolist()
    beside = robot.with_objects([WorldObject.sphere("ball", 0.1, 1.0, pose=(5, 0, 0, 0, 0, 0, 1))])
    assert beside.neutral()[:14] == pytest.approx(expected.ravel(), abs=1e-15)
    assert beside.neutral()[14:].tolist() == [5, 0, 0, 0, 0, 0, 1]
    placed = WorldObject("pair", robot, (0, 0, 9, 0, 0, 0, 1))
    assert Simulator(Robot.from_mjcf(mjcf(hinge())).with_objects([placed])).state.q[1:4].tolist() == [0, 0, 9]


def test_poses_of_what_does_not_float_are_refused() -> None:
    """A pose is given for a free-flyer that there is, seven numbers; its quaternion need not be of unit length."""
    model = Robot.from_mjcf(mjcf(hinge("", '<body name="c"><geom size="0.1"/></body>'))).model
    free = Robot.from_mjcf(mjcf('<worldbody><body><freejoint name="f"/><geom size="0.1"/></body></worldbody>')).model
    pose = (1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0)
    assert Robot(free, (), True, free_poses={"f": pose}).neutral().tolist() == [1, 0, 2, 0, 0, 0, 1]
    for given, poses, message in (
        (model, {"j": pose}, "'j'.*JointModelFreeFlyer"),
        (free, {"g": pose}, "'g'.*'?f'?"),
        (free, {"f": pose[:3]}, "pose of joint 'f'"),
    ):
        with pytest.raises((InvalidValue, UnknownName), match=message):
            Robot(given, (), free_poses=poses)


def test_included_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Their content stands where they are included; an error in one says where."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "classes.xml").write_text('<mujocoinclude><default><joint damping="3"/></default></mujocoinclude>')
    (tmp_path / "arm.xml").write_text(
        f'<mujocoinclude><body name="c"><joint name="k"/>{INERTIAL}</body></mujocoinclude>'
    )
    main = mjcf('<include file="classes.xml"/>', hinge(more='<include file="arm.xml"/>'))
    (tmp_path / "main.xml").write_text(main)
    robot = Robot.from_mjcf(tmp_path / "main.xml")
    assert robot.joint_names == ("j", "k")
    assert robot.damping.tolist() == [3.0, 3.0]
    (tmp_path / "arm.xml").write_text('<mujocoinclude>\n<body><joint dumping="3"/></body></mujocoinclude>')
    with pytest.raises(ModelError, match=r"dumping.*arm\.xml, line 2"):
        Robot.from_mjcf(tmp_path / "main.xml")
    (tmp_path / "arm.xml").write_text('<mujocoinclude><include file="arm.xml"/></mujocoinclude>')
    with pytest.raises(ModelError, match="each once"):
        Robot.from_mjcf(tmp_path / "main.xml")


@pytest.mark.parametrize("flag", ["spring", "damper", "frictionloss", "equality", "limit", "gravity", "actuation"])
def test_flags_disable(flag: str) -> None:
    """What a flag disables is not there."""
    end = '<equality><connect body1="b" anchor="0 0 1"/></equality><actuator><motor joint="j"/></actuator>'
    joint = 'stiffness="2" damping="3" frictionloss="4" range="-1 1"'
    robot = Robot.from_mjcf(mjcf(f'<option><flag {flag}="disable"/></option>', hinge(joint), end))
    found = {
        "spring": bool(robot.springs),
        "damper": robot.damping[0] > 0,
        "frictionloss": robot.dry_friction[0] > 0,
        "equality": bool(robot.constraints),
        "limit": bool(robot.joint_limits()),
        "gravity": bool(robot.gravity.any()),
        "actuation": bool(robot.actuated_joints),
    }
    assert [name for name, there in found.items() if not there] == [flag]


# -- equalities


TIP = '<site name="tip" pos="0 0 0.5"/>'
TWO = f'<body name="c" pos="0 0 0.5"><joint name="k" axis="0 1 0" ref="20"/>{INERTIAL}{TIP}</body>'


def test_joint_equalities_are_relative_to_references() -> None:
    """``q1 - r1 = c0 + c1 (q2 - r2)``; without a second joint the first is held."""
    joint = '<equality><joint name="e" joint1="j" joint2="k" polycoef="0.1 2 0 0 0"/></equality>'
    (coupling,) = Robot.from_mjcf(mjcf(hinge('ref="10"', TWO), joint)).constraints
    assert isinstance(coupling, JointCoupling)
    expected = np.radians(10) + 0.1 + 2 * (0.3 - np.radians(20))
    assert coupling.ratio * 0.3 + coupling.offset == pytest.approx(expected, rel=1e-14)
    alone = '<equality><joint name="e" joint1="k" polycoef="0.1 0 0 0 0"/></equality>'
    robot = Robot.from_mjcf(mjcf(hinge(more=TWO), alone))
    (held,) = robot.constraints
    assert isinstance(held, JointLimit)
    at = np.radians(20) + 0.1
    assert (held.lower, held.upper) == pytest.approx((at, at))
    sim = Simulator(robot, q=[0.0, at])
    sim.run(0.1)
    assert sim.state.q[1] == pytest.approx(at, abs=1e-9)
    assert abs(sim.state.q[0]) > 1e-6


def test_tendon_over_two_joints_couples_them() -> None:
    """Its length stays what it is in the file: ``c1 (q1 - r1) + c2 (q2 - r2) = 0``."""
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="-4"/></fixed></tendon>'
    end = tendon + '<equality><tendon name="e" tendon1="t"/></equality>'
    (coupling,) = Robot.from_mjcf(mjcf(hinge(more=TWO), end)).constraints
    assert coupling.ratio * np.radians(25) + coupling.offset == pytest.approx(2 * np.radians(5), rel=1e-12)


def test_connected_sites() -> None:
    """Two sites that coincide stay together; sites are frames of the robot."""
    fixed = '<site name="hook" pos="0 0 1"/>'
    text = mjcf(
        hinge(more=TWO.replace('ref="20"', "")).replace("<body", fixed + "<body", 1),
        '<equality><connect name="e" site1="tip" site2="hook"/></equality>',
    )
    robot = Robot.from_mjcf(text)
    assert placement(robot, robot.neutral(), "tip").translation == pytest.approx([0, 0, 1])
    sim = Simulator(robot)
    sim.run(0.1)
    assert placement(robot, sim.state.q, "tip").translation == pytest.approx([0, 0, 1], abs=1e-9)


# -- joints with several degrees of freedom


@pytest.mark.parametrize(("kind", "own"), [("ball", "damping='0.2'"), ("free", "damping='0.2'"), ("free", "")])
def test_damping_of_ball_and_free_joints(kind: str, own: str) -> None:
    """Turning decays as exp(-d t / I) about every axis; of a free joint the flight too, with the mass."""
    world = f'<worldbody><body name="b"><joint name="j" type="{kind}" {own}/><inertial pos="0 0 0" mass="2" '
    text = mjcf('<default><joint damping="0.5"/></default><option gravity="0 0 0"/>', world + TURNS)
    robot, damping = Robot.from_mjcf(text), 0.2 if own else 0.5
    v = np.array([0.3, -0.4, 0.5, 1.0, 2.0, -3.0])[-robot.nv :]
    sim = Simulator(robot, v=v, dt=1e-3)
    sim.run(0.4)
    rates = np.array([2.0] * 3 + [0.1] * 3)[-robot.nv :]
    expected = np.linalg.norm((v * np.exp(-damping * 0.4 / rates)).reshape(-1, 3), axis=1)
    assert np.linalg.norm(sim.state.v.reshape(-1, 3), axis=1) == pytest.approx(expected, rel=6e-3)


TURNS = 'diaginertia="0.1 0.1 0.1"/></body></worldbody>'


# -- collision geometry


@pytest.mark.parametrize(
    ("geom", "height"),
    [
        ('type="sphere" size="0.2"', 0.2),
        ('type="box" size="0.1 0.2 0.3"', 0.3),
        ('type="cylinder" size="0.1 0.3"', 0.3),
        ('type="capsule" size="0.1 0.3"', 0.4),
        ('type="capsule" size="0.1" fromto="0 0 -0.3 0 0 0.3"', 0.4),
        ('type="mesh" mesh="m"', 0.3),
    ],
)
def test_geoms_rest_on_the_ground(geom: str, height: float) -> None:
    """At their own height, with a force that is their weight."""
    body = f'<worldbody><body name="b"><freejoint/><geom {geom} mass="2"/></body></worldbody>'
    robot = Robot.from_mjcf(mjcf(BRICK, body))
    q = robot.configuration({}, [0, 0, height, 0, 0, 0, 1])
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}), q=q)
    result = [sim.step() for _ in range(20)][-1]
    assert sim.state.q[2] == pytest.approx(height, abs=1e-9)
    assert sum(force.normal_force for force in result.contact_forces.values()) == pytest.approx(2 * 9.81, rel=1e-9)


@pytest.mark.parametrize(
    ("geom", "of_all", "friction"),
    [
        ("", None, 1.0),
        ('friction="0.3"', None, 0.3),
        ('friction="0.3" condim="1"', None, 0.0),
        ('friction="0.3"', 0.5, 0.5),
    ],
)
def test_friction_of_geoms(geom: str, of_all: float | None, friction: float) -> None:
    """A block pushed with more than its friction accelerates with the rest; ``Collisions`` may say another."""
    body = (
        f'<worldbody><body name="b"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" {geom}/></body></worldbody>'
    )
    robot = Robot.from_mjcf(mjcf(body, "<option gravity='12 0 -10'/>"))
    q = robot.configuration({}, [0, 0, 0.1, 0, 0, 0, 1])
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=of_all), q=q)
    sim.run(0.1)
    assert sim.state.v[0] == pytest.approx(0.1 * (12 - 10 * friction), rel=1e-6)


def test_geoms_without_contacts_do_not_touch() -> None:
    """Visual geoms are no collision geometry."""
    visual = hinge(more='<geom size="0.1" contype="0" conaffinity="0"/>')
    assert Robot.from_mjcf(mjcf(visual)).collision_elements == ()


def test_looks_are_kept() -> None:
    """Geoms that MuJoCo shows, with their colour or that of their material; whole sizes; collision geometry apart."""
    pytest.importorskip("viser")
    from constrained_sim.viewer.visuals import visuals_of

    geoms = """<geom class="look" type="box" size="0.1 0.2 0.3" pos="0 0 1" rgba="1 0 0 0.5"/>
        <geom class="look" type="ellipsoid" size="0.1 0.2 0.3" material="blue"/>
        <geom class="look" type="mesh" mesh="m" material="blue"/><geom type="capsule" size="0.1 0.2" group="3"/>"""
    head = """<default><default class="look"><geom group="2" contype="0" conaffinity="0"/></default></default><asset>
        <material name="blue" rgba="0 0 1 1"/>
        <mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" refpos="0 0 1" scale="2 2 2"/></asset>"""
    robot = Robot.from_mjcf(mjcf(hinge(more=geoms), head))
    box, ellipsoid, mesh = visuals_of(robot)
    assert (box.kind, box.size, box.colour) == ("box", (0.2, 0.4, 0.6), (1.0, 0.0, 0.0, 0.5))
    assert list(box.placement.translation) == [0, 0, 1]
    assert (ellipsoid.kind, ellipsoid.size) == ("ellipsoid", (0.1, 0.2, 0.3))
    assert mesh.vertices is not None and mesh.vertices[:, 2].min() == -2.0
    assert [element.kind for element in robot.collision_elements] == ["capsule"]
    assert not [line for line in robot.ignored if "rgba" in line or "material" in line]


# -- names


def test_contacts_are_called_by_their_geoms() -> None:
    """A geom without a name is called by its body; one whose name another has is told apart."""
    geoms = '<geom name="b_1" type="sphere" size="0.1"/><geom type="sphere" size="0.1" pos="1 0 0"/>'
    text = f'<worldbody><body name="b" pos="0 0 0.1"><freejoint name="f"/>{geoms}</body></worldbody>'
    robot = Robot.from_mjcf(mjcf(text).replace("<mujoco>", '<mujoco model="dumbbell">'))
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}), q=robot.configuration({"f": UPRIGHT}))
    assert set(sim.step().contact_forces) == {"b_1/ground#0", "b_1_/ground#0"}
    assert repr(robot) == "Robot('dumbbell', 6 degrees of freedom, efforts of [], constraints [])"


def test_an_equality_that_is_not_active_is_told() -> None:
    """MuJoCo may switch it on later; here nothing is left of it to switch."""
    weld = '<equality><weld name="w" body1="b" active="false"/></equality>'
    robot = Robot.from_mjcf(mjcf(hinge(), weld))
    assert not robot.constraints
    assert any("active='false'" in line for line in robot.ignored)


def test_anchor_of_a_weld_with_a_relative_pose() -> None:
    """MuJoCo holds ``x1 + R1 p = x2 + R2 anchor``: here at rest where the second body is 0.7 m away, not 1 m."""
    turn = pin.rpy.rpyToMatrix(0.2, 0.3, -0.4)
    x, y, z, w = pin.Quaternion(turn).coeffs()
    weld = (
        f'<equality><weld body1="one" body2="two" relpose="1 0.1 0.2 {w} {x} {y} {z}" anchor="0.3 0.2 0.1"/></equality>'
    )
    free = "".join(
        f'<body name="{name}"><freejoint/><geom type="sphere" size="0.1" contype="0" conaffinity="0"/></body>'
        for name in ("one", "two")
    )
    robot = Robot.from_mjcf(mjcf(f"<worldbody>{free}</worldbody>", weld))
    q = assemble(robot, robot.neutral(), ()).q
    one, two = placement(robot, q, "one"), placement(robot, q, "two")
    assert two.act(np.array([0.3, 0.2, 0.1])) == pytest.approx(one.act(np.array([1, 0.1, 0.2])), abs=1e-8)
    assert one.rotation.T @ two.rotation == pytest.approx(turn, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "line"), [("", (0, 1)), ("0.2", (0.2, 1)), ("0.2 -3", (0.2, -3)), ("1 2 0 0 0", (1, 2))]
)
def test_a_short_polynomial_has_the_default_slope(text: str, line: tuple[float, float]) -> None:
    """As in MuJoCo the numbers that are not given stay 0 1 0 0 0."""
    given = f'polycoef="{text}"' if text else ""
    two = hinge(more='<body name="c"><joint name="k"/><geom type="sphere" size="0.1"/></body>')
    robot = Robot.from_mjcf(mjcf(two, f'<equality><joint joint1="k" joint2="j" {given}/></equality>'))
    (coupling,) = robot.constraints
    assert (coupling.offset, coupling.ratio) == line


def test_stated_inertia_where_no_geom_has_any() -> None:
    """``inertiafromgeom="true"`` counts where there is a geom to take it from."""
    inner = '<body name="c"><joint/><inertial pos="0 0 0.1" mass="2" diaginertia="1 1 1"/></body>'
    bodies = hinge(more=inner, inertial='<geom type="sphere" size="0.1"/>')
    robot = Robot.from_mjcf(mjcf(bodies, '<compiler inertiafromgeom="true"/>'))
    assert robot.model.inertias[2].mass == 2.0
    assert robot.model.inertias[1].mass == pytest.approx(1000.0 * 4.0 / 3.0 * np.pi * 0.1**3)
    assert not robot.ignored


def test_a_free_body_with_rotors_keeps_its_momentum() -> None:
    """Their inertia counts where it is turned, and is told where it would be a mass that moves but weighs nothing."""
    free = '<joint name="f" type="free" armature="0.5"/><geom type="box" size="0.1 0.2 0.3"/>'
    robot = Robot.from_mjcf(mjcf(f'<worldbody><body name="b">{free}</body></worldbody>'), gravity=(0, 0, 0))
    assert list(robot.model.armature) == [0, 0, 0, 0.5, 0.5, 0.5]
    assert any("armature of the translation of free joints" in line for line in robot.ignored)
    sim = Simulator(robot, v=[1.0, -0.5, 0.3, 1.0, 2.0, 0.5])
    before = linear_momentum(robot, sim.state.q, sim.state.v)
    sim.run(0.5)
    assert linear_momentum(robot, sim.state.q, sim.state.v) == pytest.approx(before, rel=1e-3)


# -- MuJoCo itself


ODD = """<mujoco><compiler angle="radian" eulerseq="XYZ"/><default><default class="d">
<geom density="700"/></default></default><asset>
<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1 .3 .4 .9" scale="1 2 0.5" refpos="0.1 0 0" refquat="1 0.2 0 0"/>
<mesh name="k" inertia="exact" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 2 1 0 1 3 0 3 2 1 2 3"/></asset>
<worldbody><body name="a" euler="0.1 0.2 0.3" childclass="d"><joint axis="1 1 0" pos="0.1 0.2 0.3" stiffness="3"/>
<joint type="slide" axis="0 1 1" ref="0.3" springref="0.1" stiffness="2"/><joint axis="0 1 1" ref="0.3" pos="1 0 0"/>
<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" axisangle="1 1 0 0.4" mass="2"/>
<geom type="mesh" mesh="k" zaxis="1 0.2 0"/><frame pos="1 0 0" euler="1 0 0.2">
<geom type="box" size="0.1 0.2" fromto="0 0 0 1 1 1"/>
<geom type="ellipsoid" size="0.1 0.2 0.3"/><body name="b" pos="1 2 3" xyaxes="1 1 0 0 1 0">
<joint type="ball" pos="0.1 0.1 0" damping="0.3" armature="0.1"/><geom type="cylinder" size="0.1 0.4"/>
<geom type="capsule" size="0.1" fromto="0 0 0 0 0 -1"/></body></frame></body></worldbody></mujoco>"""


def test_mujoco_reads_the_same_robot() -> None:
    """Joint-space inertia, bias forces, springs and places of one odd robot, where the library mujoco is installed."""
    theirs, robot = mujoco.MjModel.from_xml_string(ODD), Robot.from_mjcf(ODD)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    for _ in range(3):
        data.qpos[:3], data.qvel[:] = rng.normal(size=3), rng.normal(size=6)
        quaternion = rng.normal(size=4)
        data.qpos[3:] = quaternion / np.linalg.norm(quaternion)
        mujoco.mj_forward(theirs, data)
        q, v = np.r_[data.qpos[:3], np.roll(data.qpos[3:], -1)], np.array(data.qvel)
        np.testing.assert_allclose(0.5 * v @ inertia_of(robot, q) @ v, _kinetic_energy(mujoco, theirs, data), rtol=1e-9)
        for name in ("a", "b"):
            np.testing.assert_allclose(placement(robot, q, name).translation, data.body(name).xpos, atol=1e-12)
        np.testing.assert_allclose(robot.spring_effort(q)[:3], data.qfrc_spring[:3], atol=1e-12)
        bias = pin.rnea(robot.model, robot.model.createData(), q, v, np.zeros(6))
        np.testing.assert_allclose(bias, data.qfrc_bias, rtol=1e-7, atol=1e-7)


def _kinetic_energy(mujoco, model, data) -> float:  # type: ignore[no-untyped-def]
    mujoco.mj_energyVel(model, data)
    return float(data.energy[1])

"""URDF: nothing that a file says is dropped."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from mechanisms import GRAVITY, LIMIT, joint, link, placement, point_of, urdf

from constrained_sim import Collisions, Plane, Robot, Simulator, constrained_acceleration
from constrained_sim.bringup.plan import read_description
from constrained_sim.dynamics.dynamics import Dynamics, integrate
from constrained_sim.exceptions import MissingLibrary, ModelError, UnphysicalInertia

BASE = '<link name="base"/>'
ARM = link("a", 1.0, (0.1, 0, 0))
TURN = joint("j", "continuous", "base", "a")


@pytest.mark.parametrize(
    "namespace", ["", 'xmlns="http://www.ros.org"', 'xmlns:x="http://y.org" xmlns="http://drake.mit.edu"']
)
def test_namespaces_change_nothing(namespace: str) -> None:
    """Mimicking joints are coupled, capsules are there, bad numbers are refused."""
    shape = '<capsule radius="0.1" length="0.3"/>'
    parts = (
        BASE,
        ARM,
        link("b", 1.0, (0.1, 0, 0), shape=shape),
        joint("j", "revolute", "base", "a", more=LIMIT),
        joint("k", "revolute", "a", "b", more=LIMIT + '<mimic joint="j" multiplier="-2" offset="0.1"/>'),
    )
    text = urdf(*parts).replace("<robot", f"<robot {namespace}")
    robot = Robot.from_urdf(text)
    assert [(c.ratio, c.offset) for c in robot.constraints] == [(-2.0, 0.1)]
    assert robot.actuated_joints == ("j",)
    assert [(e.kind, e.size) for e in robot.collision_elements] == [("capsule", (0.1, 0.3))]
    with pytest.raises(ModelError, match="'multiplier' of <mimic> of <joint> 'k'"):
        Robot.from_urdf(text.replace('"-2"', '"two"'))


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven", "smooth"])
@pytest.mark.parametrize("at", [0.0, 0.3])
def test_equal_limits_hold_a_joint(stepper: str, at: float) -> None:
    """It stays where it is held under gravity, and the multiplier is the moment that gravity has."""
    limit = f'<limit lower="{at}" upper="{at}" effort="10" velocity="1"/>'
    robot = Robot.from_urdf(urdf(BASE, ARM, joint("j", "revolute", "base", "a", more=limit)))
    sim = Simulator(robot, robot.joint_limits(), stepper=stepper, q=robot.within_limits(robot.neutral()))
    result = [sim.step([3.0]) for _ in range(50)][-1]
    assert sim.state.q[0] == pytest.approx(at, abs=1e-9)
    moment = 9.81 * 0.1 * np.cos(at) + 3.0
    assert abs(result.multipliers("j limit")) == pytest.approx([moment], rel=1e-6)


def refused(*parts: str) -> str:
    """Return what the refusal of a URDF says."""
    with pytest.raises(ModelError) as refusal:
        Robot.from_urdf(urdf(*parts))
    text = str(refusal.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('<dynamics damping="-0.1"/>', "'damping' of <dynamics> of <joint> 'j'"),
        ('<dynamics friction="-0.1"/>', "'friction' of <dynamics> of <joint> 'j'"),
        ('<dynamics damping="nan"/>', "'damping' of <dynamics> of <joint> 'j'"),
        ('<limit lower="1" upper="-1" effort="1" velocity="1"/>', "lower 1, upper -1"),
        ('<limit lower="nan" upper="1" effort="1" velocity="1"/>', "'lower' of <limit> of <joint> 'j'"),
        ('<limit lower="0" upper="1" effort="-1" velocity="1"/>', "'effort' of <limit> of <joint> 'j'"),
        ('<limit lower="0" upper="1" effort="1" velocity="-1"/>', "'velocity' of <limit> of <joint> 'j'"),
        ("", "no <limit>"),
        ('<limit lower="0" upper="1" velocity="1"/>', "'effort' is missing"),
        ('<limit lower="0" upper="1" effort="1"/>', "'velocity' is missing"),
        (LIMIT + LIMIT, "2 <limit>"),
        (LIMIT + '<mimic joint="j"/>', "mimics 'j'"),
        (LIMIT + '<mimic joint="none"/>', "mimics 'none'"),
        (LIMIT + "<mimic/>", "'joint' is missing"),
    ],
)
def test_joints_that_cannot_be(more: str, words: str) -> None:
    """The readers refuse what the setters refuse, with the joint's name."""
    assert words in refused(BASE, ARM, joint("j", "revolute", "base", "a", more=more))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            (
                BASE,
                ARM,
                link("b", 1.0),
                TURN,
                joint("k", "continuous", "base", "b"),
                joint("l", "continuous", "a", "b"),
            ),
            "two joints",
        ),
        ((BASE, ARM, joint("j", "continuous", "base", "a", (0, 0, 0))), "axis of <joint> 'j'"),
        ((BASE, ARM, ARM, TURN), "'a' is there twice"),
        ((BASE, ARM, link("b", 1.0), TURN, joint("j", "continuous", "base", "b")), "'j' is there twice"),
        ((BASE, ARM, link("b", 1.0), TURN), "one root"),
        ((BASE, joint("j", "continuous", "base", "zz")), "'zz'"),
        ((BASE, ARM, joint("j", "spherical", "base", "a")), "'spherical', allowed: revolute"),
        ((BASE, ARM, '<joint name="j" type="continuous"><child link="a"/></joint>'), "'parent' is missing"),
        ((BASE, ARM, TURN.replace('name="j"', "")), "'name' is missing"),
        (
            (link("a", 1.0), link("b", 1.0), joint("j", "continuous", "a", "b"), joint("k", "continuous", "b", "a")),
            "loop",
        ),
        ((), "no <link>"),
    ],
)
def test_trees_that_cannot_be(parts: tuple[str, ...], words: str) -> None:
    """The message says what is wrong."""
    assert words in refused(*parts)


@pytest.mark.parametrize(
    ("inertial", "words"),
    [
        (
            '<mass value="-1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>',
            "'value' of <mass> of <link> 'b'",
        ),
        (
            '<mass value="1"/><inertia ixx="-1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>',
            "'ixx' of <inertia> of <link> 'b'",
        ),
        (
            '<mass value="1"/><inertia ixx="nan" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>',
            "'ixx' of <inertia> of <link> 'b'",
        ),
        ('<mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>', "'ixy' is missing"),
        ('<mass value="1"/>', "<inertial> of <link> 'b'"),
        ('<origin xyz="0 0"/><mass value="1"/>', "'xyz' of <origin> of <link> 'b'"),
    ],
)
def test_inertials_that_cannot_be(inertial: str, words: str) -> None:
    """Refused with the link's name."""
    assert words in refused(
        BASE, f'<link name="b"><inertial>{inertial}</inertial></link>', joint("j", "continuous", "base", "b")
    )


@pytest.mark.parametrize(("inertia", "kind"), [((1, 1, 3), "continuous"), ((0.1, 0.1, 0.1, 0.2, 0, 0), "fixed")])
def test_inertias_that_no_body_has_are_reported(inertia: tuple[float, ...], kind: str) -> None:
    """Published robots have them (Romeo, Tiago): they are used as they are, and the user is told."""
    arm = link("a", 1.0, (0.1, 0, 0), (1, 1, 1))
    text = urdf(BASE, arm, link("b", 1.0, inertia=inertia), TURN, joint("k", kind, "a", "b"))
    with pytest.warns(UnphysicalInertia, match="'b'"):
        robot = Robot.from_urdf(text)
    assert any("inertia of <link> 'b'" in line for line in robot.ignored)


def test_moving_body_with_a_negative_moment_is_refused() -> None:
    """Where no other link on the same joint makes it positive."""
    with pytest.warns(UnphysicalInertia):
        assert "'b' on joint 'k'" in refused(
            BASE, ARM, link("b", 1.0, inertia=(1, 1, 1, 2, 0, 0)), TURN, joint("k", "continuous", "a", "b")
        )


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ('<box size="0.1, 0.1, 0.1"/>', "'size' of <box> of <link> 'b'"),
        ('<box size="0.1 0.1"/>', "'size' of <box> of <link> 'b'"),
        ("<box/>", "'size' is missing"),
        ('<sphere radius="-1"/>', "positive"),
        ('<sphere radius="one"/>', "'radius' of <sphere> of <link> 'b'"),
        ('<cylinder radius="1"/>', "'length' is missing"),
        ('<cone radius="1" length="1"/>', "cone"),
        ("<mesh/>", "'filename' is missing"),
        ('<mesh filename="a.stl" scale="1"/>', "'scale' of <mesh> of <link> 'b'"),
        ("", "0 shapes"),
    ],
)
def test_collision_geometry_that_cannot_be(shape: str, words: str) -> None:
    """Refused, where it would be dropped and the body fall through the ground."""
    body = f'<link name="b"><collision><geometry>{shape}</geometry></collision></link>'
    assert words in refused(BASE, ARM, TURN, body, joint("k", "fixed", "a", "b"))


def test_friction_of_links() -> None:
    """``<mu1>`` of Gazebo is the friction of a link; other things of Gazebo are reported."""
    block = link("a", 1.0, shape='<box size="0.2 0.2 0.2"/>', inertia=(0.1, 0.1, 0.1))
    text = urdf(block, '<gazebo reference="a"><mu1>0.4</mu1><mu2>0.3</mu2><selfCollide>1</selfCollide></gazebo>')
    robot = Robot.from_urdf(text, floating_base=True, gravity=(12, 0, -10))
    assert sorted("mu2" in line or "selfCollide" in line for line in robot.ignored) == [True, True]
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}), q=[0, 0, 0.1, 0, 0, 0, 1])
    sim.run(0.1)
    assert sim.state.v[0] == pytest.approx(0.1 * (12 - 10 * 0.4), rel=1e-6)


def test_what_is_not_used_is_reported_once() -> None:
    """Each kind with its first line; what a viewer shows is not meant."""
    extra = '<transmission name="t"/><transmission name="u"/>\n<gazebo><plugin filename="x"/></gazebo>'
    look = '<visual><geometry><box size="1 1 1"/></geometry></visual>'
    parts = (
        BASE,
        ARM.replace("</link>", look + "</link>"),
        joint("j", "continuous", "base", "a", more="<calibration/>"),
    )
    robot = Robot.from_urdf(urdf(*parts, extra))
    assert len(robot.ignored) == 3
    for words in (
        "<transmission> in <robot>, <transmission> 't' (line 1) and 1 more",
        "<plugin> in <gazebo>",
        "calibration",
    ):
        assert any(words in line for line in robot.ignored), words
    assert Robot.from_urdf(urdf(BASE, ARM, TURN)).ignored == ()


# -- xacro


XACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="r"><xacro:property name="m" value="2"/>
<link name="base"/></robot>"""


def test_xacro_is_named_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that expands it, where the library is not there."""
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(MissingLibrary, match=r"this is a xacro file.*xacro FILE.*pip install xacro"):
        Robot.from_urdf(XACRO)
    assert Robot.from_urdf(urdf(BASE, ARM, TURN).replace("<robot", '<robot xmlns:xacro="http://x"')).nv == 1


def test_xacro_is_expanded_where_the_library_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library changes the document in place; what it raises is a refusal."""

    def process_doc(document) -> None:  # type: ignore[no-untyped-def]
        if "property" not in document.toxml():
            raise RuntimeError("no property")
        from xml.dom import minidom

        new = minidom.parseString(urdf(BASE, ARM, TURN))
        document.replaceChild(document.importNode(new.documentElement, True), document.documentElement)

    monkeypatch.setitem(sys.modules, "xacro", types.SimpleNamespace(process_doc=process_doc))
    assert Robot.from_urdf(XACRO).joint_names == ("j",)
    with pytest.raises(ModelError, match="no property"):
        Robot.from_urdf(XACRO.replace("property", "macro"))


@pytest.mark.parametrize("bounds", [("-inf", "inf"), ("-1", "inf"), ("-inf", "1e308")])
def test_infinite_limits_are_no_limits(bounds: tuple[str, str]) -> None:
    """Of positions, efforts and velocities."""
    limit = f'<limit lower="{bounds[0]}" upper="{bounds[1]}" effort="inf" velocity="1e308"/>'
    robot = Robot.from_urdf(urdf(BASE, ARM, joint("j", "prismatic", "base", "a", more=limit)))
    assert robot.effort_limits.tolist() == robot.velocity_limits.tolist() == [np.inf]
    lower, upper = robot.position_limits
    assert lower[0] == (-1.0 if bounds[0] == "-1" else -np.inf)
    assert upper[0] == np.inf


@pytest.mark.parametrize("axis", [None, (0, 1, 0), (1, 1, 0), (0, 0, 1), (0, 0, -1)])
def test_axis_of_a_planar_joint_is_the_normal_of_its_plane(axis: tuple[int, int, int] | None) -> None:
    """Gravity pulls along the plane only; without an axis it is x. What hangs on the body goes with it."""
    tag = f'<axis xyz="{" ".join(map(str, axis))}"/>' if axis else ""
    plane = (
        f'<joint name="plane" type="planar"><parent link="base"/><child link="body"/><origin xyz="1 2 3"/>{tag}</joint>'
    )
    tip = joint("hinge", "continuous", "body", "tip", (1, 0, 0), origin=(0.1, 0.2, 0.3))
    robot = Robot.from_urdf(urdf('<link name="base"/>', link("body", 2.0, (0.1, 0, 0)), link("tip", 0.5), plane, tip))
    normal = np.array(axis or (1, 0, 0)) / np.linalg.norm(axis or (1, 0, 0))
    assert point_of(robot, robot.neutral(), "body") == pytest.approx([1, 2, 3])
    assert point_of(robot, robot.neutral(), "tip") == pytest.approx([1.1, 2.2, 3.3])
    assert placement(robot, robot.neutral(), "tip").rotation == pytest.approx(np.eye(3), abs=1e-12)
    q, v = robot.neutral(), np.zeros(robot.nv)
    a = constrained_acceleration(robot, q, v, np.zeros(robot.nu), ()).a
    fall = np.array([0, 0, -GRAVITY])
    here = Dynamics.at(robot, q, v)
    assert here.joint_axes[:2, :3].T @ a[:2] == pytest.approx(fall - normal * (normal @ fall), abs=1e-9)
    moved = point_of(robot, integrate(robot, q, np.array([0.3, -0.2, 0.4, 0.0])), "body") - [1, 2, 3]
    assert normal @ moved == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(moved) > 0.3


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("</robot>", "</robots>"), ('mass value="', 'mass value="x'), ('child link="a"', 'child link="b"')],
)
def test_what_is_wrong_in_a_file_names_the_file(tmp_path: Path, right: str, wrong: str) -> None:
    """Beside the line, whoever reads it; the same text without a file is refused in the same words without one."""
    text = urdf(BASE, ARM, TURN).replace(right, wrong)
    (tmp_path / "arm.urdf").write_text(text)
    with pytest.raises(ModelError) as alone:
        Robot.from_urdf(text)
    with pytest.raises(ModelError) as found:
        Robot.from_urdf(tmp_path / "arm.urdf")
    assert "line" in found.value.message and found.value.message == f"{tmp_path / 'arm.urdf'}: {alone.value.message}"
    with pytest.raises(ModelError, match=re.escape(f"{tmp_path / 'arm.urdf'}: ")):
        read_description(str(tmp_path / "arm.urdf"))

"""`constrained_sim check` and `new`: a robot stands by what they write, and nothing is overwritten."""

import json
import subprocess
import sys

import pytest

from constrained_sim import load_config

SOLO = "package://example-robot-data/robots/solo_description/robots/solo12.urdf"
UR = "package://example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"


def sdf_dog():
    """Return a trunk on four legs of two links as SDF."""
    inertial = "<inertial><mass>{}</mass><inertia><ixx>{}</ixx><iyy>{}</iyy><izz>{}</izz></inertia></inertial>"
    small, ball = (
        inertial.format(0.5, 0.005, 0.005, 0.005),
        "<geometry><sphere><radius>0.02</radius></sphere></geometry>",
    )
    foot = f"<collision name='c'><pose>0 0 -0.2 0 0 0</pose>{ball}</collision>"
    limit = "<limit><lower>-2</lower><upper>2</upper><effort>60</effort></limit>"
    parts = [f"<link name='trunk'><pose>0 0 0.4 0 0 0</pose>{inertial.format(8, 0.1, 0.2, 0.2)}</link>"]
    for leg, (x, y) in LEGS.items():
        for part, parent, z, more in (("thigh", "trunk", 0.4, ""), ("shank", f"{leg}_thigh", 0.2, foot)):
            link, axis = f"{leg}_{part}", f"<axis><xyz>0 1 0</xyz>{limit}</axis>"
            ends = f"<parent>{parent}</parent><child>{link}</child>"
            parts += [
                f"<link name='{link}'><pose>{x} {y} {z} 0 0 0</pose>{small}{more}</link>",
                f"<joint name='{link}_joint' type='revolute'>{ends}{axis}</joint>",
            ]
    return f"<sdf version='1.9'><model name='dog'>{''.join(parts)}</model></sdf>"


def mjcf_dog():
    """Return the same as MJCF, with motors."""
    inertial = "<inertial pos='0 0 0' mass='{}' diaginertia='{}'/>"
    hinge, small = "<joint name='{}' axis='0 1 0' range='-2 2'/>", inertial.format(0.5, "0.005 0.005 0.005")
    legs = "".join(
        f"<body name='{leg}_thigh' pos='{x} {y} 0'>{small}{hinge.format(f'{leg}_thigh')}"
        f"<body name='{leg}_shank' pos='0 0 -0.2'>{small}{hinge.format(f'{leg}_shank')}"
        "<geom type='sphere' size='0.02' pos='0 0 -0.2'/></body></body>"
        for leg, (x, y) in LEGS.items()
    )
    trunk = f"<body name='trunk' pos='0 0 0.4'><freejoint/>{inertial.format(8, '0.1 0.2 0.2')}{legs}</body>"
    motors = "".join(f"<motor joint='{leg}_{part}' ctrlrange='-60 60'/>" for leg in LEGS for part in ("thigh", "shank"))
    settings = "<compiler angle='radian' autolimits='true'/>"
    return f"<mujoco>{settings}<worldbody>{trunk}</worldbody><actuator>{motors}</actuator></mujoco>"


def sdf_link(name, place, mass, radius, surface=""):
    """Return a link of SDF that is a ball, with what its `surface` says."""
    moment = 0.4 * mass * radius**2
    inertial = f"<mass>{mass}</mass><inertia><ixx>{moment}</ixx><iyy>{moment}</iyy><izz>{moment}</izz></inertia>"
    ball = f"<collision name='c'><geometry><sphere><radius>{radius}</radius></sphere></geometry>{surface}</collision>"
    return f"<link name='{name}'><pose>{place} 0 0 0</pose><inertial>{inertial}</inertial>{ball}</link>"


def sdf_ball():
    """Return a free ball without joints as SDF."""
    return f"<sdf version='1.9'><model name='ball'>{sdf_link('b', '0 0 0.1', 1.0, 0.1)}</model></sdf>"


def sdf_cart(caster="ball"):
    """Return a cart on two wheels and a caster as SDF, the caster on a joint of this type."""
    wheel = (
        "<joint name='{0}_joint' type='revolute'><parent>chassis</parent><child>{0}</child>"
        "<axis><xyz>0 1 0</xyz><limit><effort>5</effort></limit></axis></joint>"
    )
    parts = [
        sdf_link("chassis", "0 0 0.12", 5.0, 0.05),
        *(sdf_link(name, f"0 {y} 0.08", 0.4, 0.08) for name, y in (("left", 0.15), ("right", -0.15))),
        sdf_link("caster", "-0.15 0 0.04", 0.2, 0.04, SLIPPERY),
        *map(wheel.format, ("left", "right")),
        f"<joint name='swivel' type='{caster}'><parent>chassis</parent><child>caster</child></joint>",
    ]
    return f"<sdf version='1.9'><model name='cart'>{''.join(parts)}</model></sdf>"


SLIPPERY = "<surface><friction><ode><mu>0.1</mu></ode></friction></surface>"
LEGS = {"fl": (0.2, 0.1), "fr": (0.2, -0.1), "hl": (-0.2, 0.1), "hr": (-0.2, -0.1)}
WRITTEN = {"dog.sdf": sdf_dog, "dog.xml": mjcf_dog}
"""Robots that a test writes itself, by file."""


@pytest.mark.parametrize(
    ("robot", "name", "feet"), [(SOLO, "dog", 4), (UR, "arm", 0), ("dog.sdf", "sdf_dog", 4), ("dog.xml", "mjcf_dog", 4)]
)
def test_a_robot_stands_after_check_new_run(cli, tmp_path, robot, name, feet):
    """Nothing is edited between the commands, whatever the format; the test that is written passes."""
    if robot in WRITTEN:
        (tmp_path / robot).write_text(WRITTEN[robot]())
    facts = json.loads(cli("check", robot, "--json").out)
    assert facts["floating_base"] == bool(feet)
    report = json.loads(cli("new", robot, "--name", name, "--json").out)
    assert len(report["contacts"]) == feet
    assert report["statics_residual"] < 1e-6
    law = f"{name}_controller.py:efforts"
    run = json.loads(cli("run", f"{name}.yaml", "--controller", law, "--duration", 2, "--json").out)
    config = load_config(tmp_path / f"{name}.yaml")
    assert config.servo is not None and min(config.servo.stiffness) > 0.0
    assert run["q"] == pytest.approx(config.q.tolist(), abs=5e-3)
    carried = sum(force[2] for force in run["contact_forces"].values())
    assert carried == pytest.approx(9.81 * config.robot.mass if feet else 0.0, rel=1e-4)
    passes(tmp_path, f"test_{name}.py")


def passes(folder, test):
    """Assert that a test that was written passes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, test]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_joint_of_several_degrees_of_freedom_takes_no_efforts(cli, tmp_path):
    """A caster on a ball joint: the wheels are held, the caster begins where the file says; a note names it."""
    (tmp_path / "cart.sdf").write_text(sdf_cart())
    report = json.loads(cli("new", "cart.sdf", "--floating-base", "--json").out)
    assert report["contacts"] == ["left", "right", "caster"]
    assert list(report["efforts"]) == ["left_joint", "right_joint"]
    assert ["swivel" in note for note in report["notes"]] == [True]
    config = load_config(tmp_path / "cart.yaml")
    assert config.q == pytest.approx(report["q"])
    assert config.robot.actuated_joints == ("left_joint", "right_joint")
    assert [contact.friction for contact in config.constraints] == [0.8, 0.8, 0.1]
    passes(tmp_path, "test_cart.py")


def test_a_cart_stands_on_its_wheels_and_a_fixed_caster(cli, tmp_path):
    """Without the caster it tips over: this is said, and no test is written that would fail."""
    (tmp_path / "cart.sdf").write_text(sdf_cart("fixed"))
    report = json.loads(cli("new", "cart.sdf", "--floating-base", "--json").out)
    assert report["contacts"] == ["left", "right", "caster"]
    assert report["notes"] == []
    passes(tmp_path, "test_cart.py")
    words = ("new", "cart.sdf", "--name", "tips", "--floating-base", "--foot", "left", "--foot", "right")
    said = cli(*words).out
    assert "on a line" in said and "no test is written" in said
    assert {file.name for file in tmp_path.glob("*tips*")} == {"tips.yaml", "tips_controller.py"}


def test_what_hangs_on_a_ball_joint_alone_is_at_rest(cli, tmp_path):
    """No joint that a posture could hold: no gains, and a controller without efforts."""
    hung = sdf_ball().replace(
        "</model>", "<joint name='j' type='ball'><parent>world</parent><child>b</child></joint></model>"
    )
    (tmp_path / "ball.sdf").write_text(hung)
    assert "base: fixed (guessed; --floating-base)" in cli("new", "ball.sdf").err
    assert load_config(tmp_path / "ball.yaml").servo is None
    passes(tmp_path, "test_ball.py")


@pytest.mark.parametrize("feet", [(), ("--foot", "b")])
def test_a_body_without_joints_is_free_and_rests(cli, tmp_path, feet):
    """On the ball that it is; nobody has to say that its base floats."""
    (tmp_path / "ball.sdf").write_text(sdf_ball())
    report = json.loads(cli("new", "ball.sdf", *feet, "--json").out)
    assert report["notes"] == []
    assert report["floating_base"] and report["q"][2] == pytest.approx(0.1)
    passes(tmp_path, "test_ball.py")
    assert json.loads(cli("check", "ball.sdf", "--json").out)["floating_base"]


def test_nothing_is_overwritten(cli, tmp_path):
    """One file that is there stops all three; the reason names it."""
    (tmp_path / "leg_controller.py").write_text("mine")
    error = cli("new", "package://constrained_sim/urdf/leg.urdf", code=1).err
    assert "leg_controller.py" in error
    assert [file.name for file in tmp_path.iterdir()] == ["leg_controller.py"]
    assert (tmp_path / "leg_controller.py").read_text() == "mine"


def test_questions_are_asked_on_request(cli, tmp_path):
    """Name and base; an empty answer takes the proposal."""
    said = cli("new", "package://constrained_sim/urdf/leg.urdf", "--ask", given="hopper\n\n").out
    assert "Name of the files [leg]" in said
    assert {file.name for file in tmp_path.iterdir()} == {"hopper.yaml", "hopper_controller.py", "test_hopper.py"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "nothing.urdf"], "nothing.urdf"),
        (["check", "leg.yaml"], "is a parameter file"),
        (["new", SOLO, "--folder", "missing"], "missing"),
        (["new", SOLO, "--foot", "FL_FEET"], "FL_FEET"),
    ],
)
def test_bad_input_is_refused(cli, tmp_path, words, said):
    """Code 1 with the reason, and nothing is written."""
    assert said in cli(*words, code=1).err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_check_shows_tables(cli):
    """Every table has its heading; the loops of a linkage are named."""
    said = cli("check", "package://constrained_sim/urdf/four_bar.urdf")
    assert "base: fixed (guessed; --floating-base)" in said.err
    assert "guessed" not in cli("check", "package://constrained_sim/urdf/four_bar.urdf", "--fixed-base").err
    text = said.out
    for heading in ("links", "joints", "loops", "collision geometry", "frames that can be contacts", "advice"):
        assert heading in text


def test_a_warning_is_one_line_and_is_told_of_once(tmp_path):
    """Without the line of code that it comes from; `run` notes what the description says wrongly, and that is it."""
    robot = "package://example-robot-data/robots/hyq_description/robots/hyq_no_sensors.urdf"
    command = [sys.executable, "-P", "-m", "constrained_sim"]
    for words in (["new", robot], ["run", "hyq_no_sensors.yaml", "--duration", "0.01", "--output", "run.npz"]):
        done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        told = [line for line in done.stderr.splitlines() if "lf_foot" in line and "triangle inequality" in line]
        assert len(told) == 1 and told[0].startswith("constrained_sim: inertia of <link> 'lf_foot'")
        assert "reader.py" not in done.stderr

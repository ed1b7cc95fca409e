"""Configuration files: what is read, what is refused, and that they make the simulation they describe."""

import warnings
from importlib.metadata import files
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from mechanisms import ROOT, joint, leg_config, urdf
from mechanisms import link as link_of
from test_objects import DOOR

from constrained_sim import PointAnchor, PointContact, load_config
from constrained_sim.config import read_config
from constrained_sim.exceptions import (
    BeyondLimits,
    ConfigError,
    ConstrainedSimError,
    InvalidValue,
    MovedByAssembly,
    UnknownName,
)
from constrained_sim.package_paths import resolve_path
from constrained_sim.parameter_file import load_parameters

LEG = ROOT / "config" / "leg.yaml"
URDF = ROOT / "urdf" / "leg.urdf"


def parameters(**changes):
    """Return the shipped parameters with `changes`; ``a__b``: key b of section a; None removes."""
    values = load_parameters(LEG)
    for path, value in changes.items():
        *sections, key = path.split("__")
        section = values
        for name in sections:
            section = section.setdefault(name, {})
        if value is None:
            section.pop(key)
        else:
            section[key] = value
    return values


def read(**changes):
    """Return the configuration of the shipped parameters with `changes`."""
    return read_config(parameters(**changes), LEG.parent)


def test_the_shipped_configuration():
    """The leg, its foot, its posture, its step."""
    config = load_config(LEG)
    assert config.robot.actuated_joints == ("hip", "knee")
    assert config.q.tolist() == [0.32, 0.60, -1.20]
    assert not config.v.any()
    (foot,) = config.constraints
    assert (foot.name, foot.link, foot.friction, foot.restitution) == ("foot", "foot", 0.8, 0.0)
    assert config.simulation.dt == 1e-3
    assert config.node.joints == ("hip", "knee")
    assert load_config("package://constrained_sim/config/leg.yaml").q.tolist() == config.q.tolist()


def test_ros2_control_is_given_the_joints_of_the_simulator():
    """The hardware of the URDF commands what is actuated, at the rate of the simulator, and so do its controllers."""
    hardware = ElementTree.parse(ROOT / "urdf" / "leg.urdf").getroot().find("ros2_control")
    (plugin,) = ElementTree.parse(ROOT / "src" / "simulator_hardware.xml").getroot().findall("class")
    assert hardware.findtext("hardware/plugin") == plugin.get("name")
    commanded = [
        joint.get("name") for joint in hardware.findall("joint") if joint.find("command_interface") is not None
    ]
    config = leg_config()
    assert tuple(commanded) == config.robot.actuated_joints
    controllers = yaml.safe_load((ROOT / "config" / "leg_ros2_control.yaml").read_text())
    manager = controllers.pop("controller_manager")["ros__parameters"]
    assert manager["update_rate"] * config.node.control_period == pytest.approx(1.0)
    assert {name for name, value in manager.items() if isinstance(value, dict)} == controllers.keys()
    assert set(manager["wait_for_controllers"]) <= controllers.keys()
    assert all(controller["ros__parameters"]["joints"] == commanded for controller in controllers.values())


def test_it_makes_a_simulator():
    """In the configured state, with the configured constraints and settings."""
    sim = read(
        dt=5e-4, solver="null_space", factorization="", contact_method="gauss_seidel", integrator="semi_implicit_euler"
    ).simulator()
    assert (sim.dt, sim.solver.name, sim.contact_method) == (5e-4, "null_space", "gauss_seidel")
    assert sim.integrator_name == "semi_implicit_euler"
    assert sim.state.q.tolist() == [0.32, 0.60, -1.20]
    assert [constraint.name for constraint in sim.constraints] == ["foot"]


def test_simulator_in_another_state_with_other_constraints():
    """The state and the constraints can be replaced."""
    sim = leg_config().simulator(np.array([0.5, 0, 0]), np.array([0, 1.0, 0]), [])
    assert sim.state.q.tolist() == [0.5, 0, 0]
    assert sim.state.v.tolist() == [0, 1.0, 0]
    assert sim.constraints == ()


def test_the_wrapper_of_ros_may_be_left_out(tmp_path):
    """A plain mapping and a parameter file of a named node say the same."""
    values = parameters(robot__urdf=str(ROOT / "urdf" / "leg.urdf"))
    for name, content in (("plain", values), ("node", {"/leg/constrained_sim": {"ros__parameters": values}})):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
        assert load_config(str(tmp_path / f"{name}.yaml")).q.tolist() == [0.32, 0.60, -1.20]


def test_relative_paths_start_at_the_file(tmp_path):
    """Not at the working directory."""
    (tmp_path / "box.urdf").write_text(urdf(link_of("box", 1.0)))
    (tmp_path / "box.yaml").write_text("robot: {urdf: box.urdf, floating_base: true}\n")
    assert load_config(tmp_path / "box.yaml").robot.nv == 6


def test_packages_are_found_around_the_file(tmp_path):
    """package:// means the folder with that package.xml among the parents; unknown packages are refused."""
    (tmp_path / "config").mkdir()
    (tmp_path / "package.xml").write_text("<package><name>my_robot</name></package>")
    assert resolve_path("package://my_robot/urdf/a.urdf", tmp_path / "config") == tmp_path / "urdf" / "a.urdf"
    with pytest.raises(ConfigError, match="no_such_package"):
        resolve_path("package://no_such_package/urdf/a.urdf", tmp_path / "config")
    found = resolve_path("package://constrained_sim/urdf/leg.urdf", LEG.parent)
    assert found.read_text() == (ROOT / "urdf" / "leg.urdf").read_text()


def test_packages_from_pip_are_found(tmp_path):
    """A Python package with a share folder is one, wherever it is installed; another one is not."""
    found = resolve_path("package://example-robot-data/robots/solo_description/robots/solo12.urdf", tmp_path)
    assert found.samefile(next(f.locate() for f in files("example-robot-data") if f.name == "solo12.urdf"))
    with pytest.raises(ConfigError, match="numpy"):
        resolve_path("package://numpy/a.urdf", tmp_path)


def test_xml_in_place_of_a_path():
    """The description itself may stand there."""
    config = read_config(
        {"robot": {"urdf": urdf(link_of("box", 1.0)), "floating_base": True, "gravity": [0, 0, -1.62]}}
    )
    assert config.robot.floating_base
    assert config.robot.model.gravity.linear.tolist() == [0, 0, -1.62]


def test_least_configuration():
    """A robot is all that is needed: neutral, at rest, unconstrained."""
    config = read_config({"robot": {"urdf": str(ROOT / "urdf" / "leg.urdf")}})
    assert (config.q.tolist(), config.v.tolist(), config.constraints) == ([0, 0, 0], [0, 0, 0], ())


def test_contacts():
    """Every key of a contact arrives where it belongs."""
    config = read(contacts={"ball": {
        "link": "foot", "point": [0, 0, 0.1], "radius": 0.02, "normal": [0.0, 0.0, 2.0], "offset": -0.1,
        "law": "rigid", "friction": 1, "restitution": 0.5, "restitution_law": "poisson",
        "torsional_friction": 0.002, "rolling_friction": 0.001}})  # fmt: skip
    (ball,) = config.constraints
    assert isinstance(ball, PointContact)
    assert (ball.name, list(ball.point), ball.radius, ball.friction, ball.restitution) == (
        "ball",
        [0, 0, 0.1],
        0.02,
        1.0,
        0.5,
    )
    assert (ball.surface.normal.tolist(), ball.surface.offset) == ([0, 0, 1], -0.1)
    assert (ball.restitution_law, ball.torsional_friction, ball.rolling_friction) == ("poisson", 0.002, 0.001)


def test_point_anchors():
    """Anchors by their kind; directions as nine numbers or fewer, three each."""
    spec = {"kind": "point_anchor", "link_a": "foot", "link_b": "carriage", "normals": [1.0, 0.0, 0.0, 0.0, 0.0, 3.0]}
    (anchor,) = read(contacts={}, constraints={"loop": spec}).constraints
    assert isinstance(anchor, PointAnchor)
    assert (anchor.name, anchor.link_a, anchor.link_b) == ("loop", "foot", "carriage")
    assert anchor.normals.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_axes_of_frame_anchors():
    """Six numbers each, in one list or in several; none are all six."""
    spec = {"kind": "frame_anchor", "link_a": "foot", "link_b": "carriage"}
    axes = np.eye(6)[[0, 4]]
    for given in (axes.tolist(), axes.ravel().tolist()):
        (anchor,) = read(contacts={}, constraints={"loop": {**spec, "axes": given}}).constraints
        assert anchor.axes.tolist() == axes.tolist()
    assert read(contacts={}, constraints={"loop": spec}).constraints[0].axes is None


def test_initial_state(tmp_path):
    """Positions and velocities by name, base pose and twist of a floating base."""
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = (ROOT / "urdf" / "leg.urdf").read_text(encoding="utf-8")
    path = tmp_path / "leg.urdf"
    path.write_text(text.replace('<link name="rail">', f'<link name="rail">{inertia}'), encoding="utf-8")
    values = {
        "robot": {"urdf": str(path), "floating_base": True},
        "initial": {
            "positions": {"hip": 1},
            "velocities": {"knee": 2, "root_joint.2": 0.5},
            "base_pose": [1, 2, 3, 0, 0, 0, 2],
        },
    }
    config = read_config(values)
    assert config.q.tolist() == [1, 2, 3, 0, 0, 0, 1, 0, 1, 0]
    assert config.v.tolist() == [0, 0, 0.5, 0, 0, 0, 0, 0, 2]
    values["initial"]["base_twist"] = [1, 2, 3, 4, 5, 6]
    assert read_config(values).v[:6].tolist() == [1, 2, 3, 4, 5, 6]


def test_positions_that_assembly_moves_are_told():
    """Of a mimicking pair each goes half of the way; those within the tolerance, as of rounded digits, are not."""
    links = [link_of(name, 1.0) for name in ("one", "two")]
    first = joint("first", "continuous", "base", "one")
    second = joint("second", "continuous", "one", "two", more='<mimic joint="first" multiplier="1"/>')
    text = urdf('<link name="base"/>', *links, first, second)
    values = {"robot": {"urdf": text}, "assemble": True, "initial": {"positions": {"first": 0.25, "second": 0.2500001}}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_config(values).simulator()
    values["initial"]["positions"]["second"] = 0.75
    with pytest.warns(MovedByAssembly, match="first at 0.5, given 0.25, second at 0.5, given 0.75"):
        sim = read_config(values).simulator()
    assert sim.largest_violation()[0] < 1e-9


def test_positions_beyond_limits_are_told():
    """As of degrees; the simulation goes on. Rounded digits at a limit are within it."""
    rod = joint("turn", "revolute", "base", "rod", more='<limit lower="-2.5" upper="2.5" effort="1" velocity="1"/>')
    values = {"robot": {"urdf": urdf('<link name="base"/>', link_of("rod", 1.0), rod)}}
    values["initial"] = {"positions": {"turn": 2.5000001}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_config(values).simulator()
    values["initial"]["positions"]["turn"] = 40.0
    with pytest.warns(BeyondLimits, match="turn at 40, limits -2.5 to 2.5 .*degrees") as caught:
        assert read_config(values).simulator().state.q == [40.0]
    assert caught[0].message.positions == {"turn": (40.0, -2.5, 2.5)}
    config = read_config(values)
    assert config.beyond_limits({"turn": -2.5000001}) is config.beyond_limits({"turn": float("nan")}) is None
    assert config.beyond_limits({"turn": -3}).positions == {"turn": (-3.0, -2.5, 2.5)}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"timestep": 0.001}, ("timestep", "dt")),
        ({"robot__colour": "red"}, ("colour", "urdf")),
        ({"contacts__foot__mu": 0.5}, ("mu", "friction", "foot")),
        ({"initial__pose": [0]}, ("pose", "positions")),
        ({"contacts__foot__frictoin": 0.5}, ("frictoin",)),
    ],
    ids=str,
)
def test_a_key_that_nobody_reads_is_refused(changes, names):
    """With the key, where it stands, and what could have been meant."""
    with pytest.raises(ConfigError) as refusal:
        read(**changes)
    assert all(name in str(refusal.value) for name in names)


@pytest.mark.parametrize(
    "changes",
    [
        {"dt": "fast"},
        {"dt": True},
        {"solver": 3},
        {"start_paused": 1},
        {"lockstep_commands": 1.5},
        {"joints": "hip"},
        {"robot": ["leg.urdf"]},
        {"robot": None},
        {"contacts": ["foot"]},
        {"contacts__foot": "foot"},
        {"contacts__foot__link": 3},
        {"contacts__foot__link": None},
        {"contacts__foot__friction": "high"},
        {"contacts__foot__point": 0.0},
        {"robot__floating_base": "yes"},
        {"initial__positions": [0.3, 0.6]},
        {"constraints": {"a": {"link_a": "foot"}}},
        {"simulation": {}},
    ],
    ids=str,
)
def test_values_of_the_wrong_kind_are_refused(changes):
    """Numbers are numbers, lists are lists, sections are sections, and what is needed is there."""
    with pytest.raises(ConfigError):
        read(**changes)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"dt": 0.0}, InvalidValue),
        ({"dt": -0.001}, InvalidValue),
        ({"dt": float("nan")}, InvalidValue),
        ({"dt": 1.23456789e-6}, InvalidValue),
        ({"control_period": 0.0015}, InvalidValue),
        ({"control_period": 0.0005}, InvalidValue),
        ({"clock_mode": "warp"}, InvalidValue),
        ({"lockstep_match": "luck"}, InvalidValue),
        ({"lockstep_commands": 0}, InvalidValue),
        ({"command_reliability": "some"}, InvalidValue),
        ({"real_time_factor": 0.0}, InvalidValue),
        ({"status_rate": float("inf")}, InvalidValue),
        ({"duration": -1.0}, InvalidValue),
        ({"joints": ["hip", "ankle"]}, UnknownName),
        ({"robot__actuated_joints": ["hips"]}, UnknownName),
        ({"robot__gravity": [0, -9.81]}, InvalidValue),
        ({"initial__positions__ankle": 0.0}, UnknownName),
        ({"initial__velocities__ankle": 0.0}, UnknownName),
        ({"initial__positions__knee": "bent"}, InvalidValue),
        ({"initial__base_pose": [0, 0, 0, 0, 0, 0, 1]}, InvalidValue),
        ({"initial__base_twist": [0, 0, 0, 0, 0, 0]}, InvalidValue),
        ({"solver": "magic"}, InvalidValue),
        ({"stepper": "magic"}, InvalidValue),
        ({"integrator": "magic"}, UnknownName),
        ({"solver": "direct", "factorization": "magic"}, UnknownName),
        ({"contact_method": "magic"}, InvalidValue),
        ({"solver": "range_space", "factorization": "lu"}, InvalidValue),
        ({"position_tolerance": -1.0}, InvalidValue),
        ({"projection_metric": "manhattan"}, InvalidValue),
        ({"joints": ["hip", "hip"]}, InvalidValue),
        ({"contacts__foot__link": "toe"}, UnknownName),
        ({"contacts__foot__law": "magic"}, UnknownName),
        ({"contacts__foot__friction": -0.1}, InvalidValue),
        ({"contacts__foot__normal": [0.0, 0.0, 0.0]}, InvalidValue),
        ({"contacts__foot__point": [0.0, "a", 0.0]}, InvalidValue),
        ({"constraints": {"a": {"kind": "magic"}}}, UnknownName),
        ({"constraints": {"a": {"kind": "point_anchor", "link_a": "foot", "normals": [1.0, 0.0]}}}, InvalidValue),
        ({"constraints": {"a": {"kind": "point_anchor", "link_a": "foot", "normals": []}}}, InvalidValue),
        ({"constraints": {"a": {"kind": "frame_anchor", "link_a": "foot", "axes": [1.0] * 7}}}, InvalidValue),
        ({"constraints": {"a": {"kind": "frame_anchor", "link_a": "foot", "axes": []}}}, InvalidValue),
    ],
    ids=str,
)
def test_values_that_are_not_allowed_are_refused(changes, error):
    """By the exception that says what was given and what is allowed."""
    with pytest.raises(error):
        read(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"contacts__foot__offset": 0.2},
        {"command_delay": 0.00035},
        {"constraints__foot": {"kind": "point_anchor", "link_a": "foot"}},
    ],
    ids=str,
)
def test_what_makes_no_simulator_is_refused(changes):
    """States are checked when the simulator is made, and what depends on several values."""
    with pytest.raises(ConstrainedSimError):
        read(**changes).simulator()


def test_files_that_cannot_be_read(tmp_path):
    """Missing, a folder, binary, not YAML, not a mapping, several nodes, empty."""
    with pytest.raises(ConfigError, match="nothing"):
        load_config(tmp_path / "nothing.yaml")
    with pytest.raises(ConfigError):
        load_config(tmp_path)
    contents = {
        "broken": b"robot: {urdf: [",
        "binary": bytes(range(128, 256)),
        "list": b"- 1\n- 2\n",
        "text": b"leg\n",
        "empty": b"",
        "others": b"a: {ros__parameters: {dt: 1}}\nb: {ros__parameters: {dt: 1}}\n",
        "null": b"/**: {ros__parameters: }\n",
        "tags": b"robot: !!python/object/apply:os.system ['true']\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError):
            load_config(tmp_path / name)
    (tmp_path / "one_underscore").write_text("/**: {ros_parameters: {dt: 1.0}}")
    with pytest.raises(ConfigError, match=r"below /\*\* got ros_parameters, allowed: ros__parameters"):
        load_config(tmp_path / "one_underscore")
    (tmp_path / "scene.xml").write_text("<mujoco/>")
    with pytest.raises(ConfigError, match=r"XML.*constrained_sim new"):
        load_config(tmp_path / "scene.xml")


def test_parameters_among_those_of_other_nodes(tmp_path):
    """Those of all nodes and of this one, the later over the earlier, value by value."""
    path = tmp_path / "many.yaml"
    path.write_text(
        "/**: {ros__parameters: {dt: 0.002, robot: {urdf: a.urdf, floating_base: true}}}\n"
        "controller: {ros__parameters: {gain: 3.0}}\n"
        "constrained_sim: {ros__parameters: {robot: {urdf: b.urdf}, use_sim_time: false}}\n"
    )
    assert load_parameters(path) == {"dt": 0.002, "robot": {"urdf": "b.urdf", "floating_base": True}}


@pytest.mark.parametrize(("text", "number"), [("1e-3", 1e-3), ("-2E5", -2e5), ("1e+3", 1e3), ("1.5e-3", 1.5e-3)])
def test_numbers_as_ros_reads_them(tmp_path, text, number):
    """An exponent makes a number, with a point and without."""
    path = tmp_path / "numbers.yaml"
    path.write_text(f"dt: {text}\nname: 1e-3x\n")
    assert load_parameters(path) == {"dt": number, "name": "1e-3x"}


def test_missing_robot_file_is_refused():
    """The description that is named must exist."""
    with pytest.raises(ConstrainedSimError, match=r" '[^']*no_such\.urdf': No such file or directory \("):
        read(robot__urdf="no_such.urdf")


def test_joints_and_actuation_from_a_file(tmp_path):
    """Properties of joints, delay, limits, drift and assembly: what Python has, a file has."""
    text = {
        "dt": 0.001,
        "stepper": "smooth",
        "integrator": "rk4",
        "time_constant": 0.05,
        "command_delay": 0.002,
        "velocity_limits": True,
        "assemble": True,
        "position_tolerance": 1e-6,
        "robot": {"urdf": str(ROOT / "urdf" / "leg.urdf"), "joints": {"hip": {"armature": 0.02, "damping": 0.1}}},
        "initial": {"positions": {"slider": 0.3, "hip": 0.4, "knee": -0.8}},
        "constraints": {"held": {"kind": "point_anchor", "link_a": "foot", "point_b": [0.0, 0.0, 0.1]}},
    }
    config = read_config(text)
    assert config.robot.damping[1] == 0.1
    assert config.robot.model.armature[1] == 0.02
    sim = config.simulator()
    assert (sim.stepper_name, sim.integrator_name, sim.velocity_limits) == ("smooth", "rk4", True)
    assert sim.largest_violation()[0] < 1e-12
    assert sim.step(5.0 * np.ones(sim.robot.nu)).tau_applied[0] == 0.0
    text |= {"stepper": "time_stepping", "integrator": "", "time_constant": 0.0, "joint_limits": True}
    limits = [constraint.name for constraint in read_config(text).constraints]
    assert limits == ["held", "slider limit", "hip limit", "knee limit"]
    text["constraints"] = {"stop": {"kind": "joint_limit", "joint": "hip", "upper": 0.5, "restitution": 0.3}}
    stop = read_config(text).constraints[0]
    assert (stop.lower, stop.upper, stop.restitution) == (-np.inf, 0.5, 0.3)
    text["robot"]["joints"]["hip"]["stiffness"] = 1.0
    assert read_config(text).robot.springs == {"hip": (1.0, 0.0)}
    text["robot"]["joints"]["hip"]["elasticity"] = 1.0
    with pytest.raises(UnknownName, match="armature"):
        read_config(text)


def test_scene_and_collisions(tmp_path):
    """Bodies of every kind, properties of their contacts; the robot's collision element then rests on the plane."""
    (tmp_path / "ball.urdf").write_text(urdf(link_of("ball", 1.0, shape='<sphere radius="0.2"/>')))
    (tmp_path / "wedge.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")
    path = tmp_path / "ball.yaml"
    text = """
robot: {urdf: ball.urdf, floating_base: true}
initial: {base_pose: [0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]}
scene:
  ground: {kind: plane}
  step: {kind: box, size: [1.0, 1.0, 0.2], position: [3.0, 0.0, 0.1], rpy: [0.0, 0.0, 0.3]}
  stone: {kind: sphere, radius: 0.3, position: [-3.0, 0.0, 0.0]}
  wedge: {kind: mesh, file: wedge.obj, position: [0.0, 5.0, 0.0]}
collisions: {friction: 0.6, restitution: 0.1, margin: 0.05}
"""
    path.write_text(text)
    config = load_config(path)
    assert config.collisions is not None
    assert [type(body).__name__ for body in config.collisions.scene.values()] == ["Plane", "Box", "Sphere", "Mesh"]
    assert (config.collisions.friction, config.collisions.margin) == (0.6, 0.05)
    force = config.simulator().step().contact_forces["ball_0/ground#0"]
    assert force.force == pytest.approx([0.0, 0.0, 9.81], abs=1e-12)
    for wrong, message in (
        (text.replace("kind: sphere", "kind: torus"), "torus"),
        (text.replace("margin", "marjin"), r"'marjin' \(margin\?\), allowed"),
        (text.replace("radius: 0.3,", "radius: 0.3, size: [1.0],"), "size"),
        (text.replace("friction: 0.6", "friction: -1.0"), "friction"),
    ):
        path.write_text(wrong)
        with pytest.raises(ConstrainedSimError, match=message):
            load_config(path)


def test_objects_are_read_by_shape_or_description(tmp_path):
    (tmp_path / "door.urdf").write_text(DOOR)
    (tmp_path / "held.urdf").write_text(DOOR.replace('"frame"', '"world"'))
    parameters = {
        "robot": {"urdf": str(URDF)},
        "objects": {
            "crate": {
                "shape": "box",
                "size": [0.1, 0.2, 0.3],
                "mass": 2.0,
                "friction": 0.5,
                "pose": [1, 0, 1, 0, 0, 0, 2],
            },
            "ball": {"shape": "sphere", "radius": 0.1, "mass": 1},
            "tin": {"shape": "cylinder", "radius": 0.1, "length": 0.3, "mass": 1.5},
            "door": {"urdf": "door.urdf", "floating_base": False},
            "held": {"urdf": "held.urdf", "pose": [3, 0, 0, 0, 0, 0, 1]},
        },
        "initial": {"positions": {"door/hinge": 0.3}, "velocities": {"ball/root_joint.0": 2.0}},
        "collisions": {"friction": 0.7},
    }
    config = read_config(parameters, tmp_path)
    robot = config.robot
    assert [entry.name for entry in robot.objects] == ["crate", "ball", "tin", "door", "held"]
    assert [entry.body.floating_base for entry in robot.objects] == [True, True, True, False, False]
    assert [entry.body.mass for entry in robot.objects] == pytest.approx([2.0, 1.0, 1.5, 5.2, 5.2])
    assert robot.objects[0].pose.tolist() == [1, 0, 1, 0, 0, 0, 1]
    assert config.q[robot.joint_models["door/hinge"].idx_q] == 0.3
    assert config.v[robot.joint_models["ball/root_joint"].idx_v] == 2.0
    assert config.collisions is not None and config.collisions.friction == 0.7


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": "cone", "radius": 1.0, "mass": 1.0},
        {"shape": "box", "size": [1.0, 1.0], "mass": 1.0},
        {"shape": "box", "size": [1.0, 1.0, 1.0]},
        {"shape": "sphere", "radius": 1.0, "mass": 1.0, "colour": "red"},
        {"shape": "sphere", "radius": -1.0, "mass": 1.0},
        {"urdf": "nowhere.urdf"},
        {"urdf": str(URDF), "sdf": str(URDF)},
        {},
    ],
)
def test_objects_that_cannot_be_are_refused(entry):
    with pytest.raises(ConstrainedSimError):
        read_config({"robot": {"urdf": str(URDF)}, "objects": {"one": entry}})

"""The launch files, with the launch system where it is installed, else with stand-ins that note what they are given."""

import importlib.util
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from pages import ALL_PAGES, blocks, page_commands
from ros.live import ROOT, URDF

from constrained_sim import load_config
from constrained_sim.exceptions import InvalidValue, SimulationFailed
from constrained_sim.options import NodeOptions
from constrained_sim.ros.demo import main, parse
from constrained_sim.ros.demos import MODES
from constrained_sim.ros.discovery import VARIABLES, discovery_settings
from constrained_sim.solvers import SOLVERS

OF_SIMULATION = {"controller", "clock_mode", "solver", "record", "viewer", "duration", "config"}
OF_ROS = {"namespace", "frame_prefix", "use_sim_time", "log_level", "robot_state_publisher", "rviz", "rviz_config"}
DOCUMENTED = OF_SIMULATION | OF_ROS
SHARE = Path(get_package_share_directory("constrained_sim"))
DEFAULTS = {
    "clock_mode": "realtime",
    "solver": "",
    "record": "false",
    "viewer": "false",
    "duration": "0.0",
    "namespace": "",
    "frame_prefix": "",
    "use_sim_time": "true",
    "log_level": "info",
    "robot_state_publisher": "auto",
    "rviz": "false",
}


def noted(kind):
    """Return a stand-in for a class of the launch system."""
    return lambda *given, **named: SimpleNamespace(kind=kind, given=given, **{"name": next(iter(given), None), **named})


STAND_INS = {
    "launch": ("LaunchContext", "LaunchDescription"),
    "launch.actions": (
        "DeclareLaunchArgument",
        "EmitEvent",
        "LogInfo",
        "OpaqueFunction",
        "RegisterEventHandler",
        "SetEnvironmentVariable",
        "Shutdown",
    ),
    "launch.events": ("Shutdown",),
    "launch.event_handlers": ("OnProcessExit",),
    "launch.substitutions": ("PathJoinSubstitution",),
    "launch_ros": (),
    "launch_ros.actions": ("Node",),
    "launch_ros.substitutions": ("FindPackageShare",),
}


class LaunchConfiguration:
    """A stand-in that reads the value of an argument from the context, a mapping."""

    def __init__(self, name):
        self._name = name

    def perform(self, context):
        return context[self._name]


def documented():
    """Return the words of each command of the pages that starts a launch file."""
    return [words for page in ALL_PAGES for words in page_commands(page) if words[:2] == ["ros2", "launch"]]


@pytest.fixture
def described(monkeypatch):
    """Return a function that returns what the launch file of a robot describes."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for name, kinds in STAND_INS.items():
        module = ModuleType(name)
        for kind in kinds:
            setattr(module, kind, noted(kind))
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["launch.substitutions"].LaunchConfiguration = LaunchConfiguration
    ours = ("constrained_sim.ros.launching", "constrained_sim.ros.launch_arguments")
    for name in ours:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield lambda robot: loaded(robot).generate_launch_description().given[0]
    for name in ours:
        sys.modules.pop(name, None)


def loaded(robot):
    """Return the launch file of a robot as a module."""
    path = ROOT / "launch" / f"{robot}.launch.py"
    specification = importlib.util.spec_from_file_location(f"{robot}_launch", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def started(described, robot, **values):
    """Return the nodes by executable that a launch file starts, and the robot's default configuration."""
    arguments, _, start = parts(described(robot))
    files = {"config": str(SHARE / "config" / f"{robot}.yaml"), "rviz_config": f"{robot}.rviz"}
    given = DEFAULTS | files | {"controller": MODES[robot][0]} | values
    assert given.keys() == {argument.name for argument in arguments}
    stop, *nodes = start.function(given)
    assert stop.given[0].target_action is nodes[0]
    ended = stop.given[0].on_exit
    assert [action.kind for action in ended(SimpleNamespace(returncode=0), {})] == ["LogInfo", "EmitEvent"]
    failures = {1: "exit code 1; its last line says why", -9: "killed by SIGKILL", -35: "killed by signal 35"}
    for code, why in failures.items():
        with pytest.raises(SimulationFailed, match=why):
            ended(SimpleNamespace(returncode=code), {})
    return {node.executable: node for node in nodes}


def parts(actions):
    """Return arguments, settings of the environment, and the function that starts the processes, which comes last."""
    kinds = ("DeclareLaunchArgument", "SetEnvironmentVariable")
    arguments, environment = ([action for action in actions if action.kind == kind] for kind in kinds)
    assert [*arguments, *environment, actions[-1]] == actions
    return arguments, environment, actions[-1]


def test_every_robot_has_its_files():
    """Launch file, configuration and controller of each are installed where `ros2 launch` and `ros2 run` find them."""
    assert {path.name for path in (ROOT / "launch").iterdir() if path.suffix == ".py"} == {
        f"{robot}.launch.py" for robot in MODES
    }
    for robot in MODES:
        for folder, name in (("launch", f"{robot}.launch.py"), ("config", f"{robot}.yaml")):
            assert (SHARE / folder / name).read_text() == (ROOT / folder / name).read_text()
        load_config(SHARE / "config" / f"{robot}.yaml")
        for executable in ("simulator", f"{robot}_controller"):
            path = Path(get_package_prefix("constrained_sim")) / "lib" / "constrained_sim" / executable
            assert os.access(path, os.X_OK)


@pytest.mark.parametrize("robot", MODES)
def test_arguments_are_those_documented(described, robot):
    """Every documented argument is declared, with a description, a default and the choices there are, and no other."""
    arguments, environment, _ = parts(described(robot))
    declared = {argument.name: argument for argument in arguments}
    assert declared.keys() == DOCUMENTED
    assert all(argument.description for argument in arguments)
    assert dict(action.given for action in environment) == discovery_settings() != {}
    assert {name: argument.default_value for name, argument in declared.items() if name in DEFAULTS} == DEFAULTS
    assert declared["controller"].choices == [*MODES[robot], "none"]
    assert declared["controller"].default_value == MODES[robot][0]
    assert declared["clock_mode"].choices == ["realtime", "fast", "lockstep"]
    assert declared["config"].default_value.given[0][1:] == ["config", f"{robot}.yaml"]
    assert declared["rviz_config"].default_value.given[0][1:] == ["config", f"{robot}.rviz"]
    assert declared["solver"].choices == ["", *SOLVERS]


@pytest.mark.parametrize("robot", MODES)
def test_launch_file_starts_simulator_and_controller(described, robot):
    """Both get what the arguments say; without a controller the simulator does not wait for one."""
    nodes = started(described, robot, duration="2", clock_mode="lockstep")
    assert nodes.keys() == {"simulator", f"{robot}_controller"}
    assert {node.package for node in nodes.values()} == {"constrained_sim"}
    assert nodes["simulator"].name == "constrained_sim"
    overrides = {"clock_mode": "lockstep", "duration": 2.0, "wait_for_first_command": True}
    assert nodes["simulator"].parameters == [str(SHARE / "config" / f"{robot}.yaml"), overrides]
    (parameters,) = nodes[f"{robot}_controller"].parameters
    assert parameters == {"mode": MODES[robot][0]} | (
        {} if robot == "leg" else {"config": str(SHARE / "config" / f"{robot}.yaml")}
    )
    alone = started(described, robot, controller="none", solver="null_space", record="true")
    assert alone.keys() == {"simulator"}
    overrides = alone["simulator"].parameters[1]
    assert "duration" not in overrides  # that of the file
    assert (overrides["wait_for_first_command"], overrides["solver"]) == (False, "null_space")
    assert overrides["record"].startswith(f"{robot}_bag_2")


def test_nodes_of_ros_are_started_where_asked_for(described):
    """All are in the namespace and log as told; robot_state_publisher gets the description, and the links are its."""
    asked = {"robot_state_publisher": "true", "rviz": "true", "viewer": "true", "namespace": "a", "log_level": "warn"}
    nodes = started(described, "leg", frame_prefix="a/", **asked)
    assert nodes.keys() == {"simulator", "leg_controller", "robot_state_publisher", "rviz2", "viewer"}
    assert {node.namespace for node in nodes.values()} == {"a"}
    assert all(node.arguments[-3:] == ["--ros-args", "--log-level", "warn"] for node in nodes.values())
    (parameters,) = nodes["robot_state_publisher"].parameters
    assert parameters == {"robot_description": URDF.read_text(), "frame_prefix": "a/", "use_sim_time": True}
    assert nodes["rviz2"].arguments[:2] == ["-d", "leg.rviz"]
    parameters = nodes["simulator"].parameters[1]
    assert (parameters["tf"], parameters["frame_prefix"]) == ("base", "a/")


@pytest.mark.parametrize("installed", [True, False])
def test_robot_state_publisher_is_started_where_it_is_installed(described, monkeypatch, installed):
    """Elsewhere the simulator publishes the transforms of the links itself."""
    described("leg")  # imports what looks for the package
    packages = {"robot_state_publisher": "/opt/ros"} if installed else {}
    monkeypatch.setattr(sys.modules["constrained_sim.ros.launching"], "get_packages_with_prefixes", lambda: packages)
    nodes = started(described, "leg")
    assert ("robot_state_publisher" in nodes) == installed
    assert nodes["simulator"].parameters[1].get("tf") == ("base" if installed else None)


@pytest.mark.parametrize("words", documented(), ids=" ".join)
def test_documented_launches_start_what_is_installed(described, words):
    """A command of a page names a file and arguments that are there, with values that are allowed."""
    robot, values = words[3].removesuffix(".launch.py"), dict(word.split(":=") for word in words[4:])
    declared = {argument.name: argument for argument in parts(described(robot))[0]}
    for name, value in values.items():
        assert value in getattr(declared[name], "choices", [value])
    for executable, node in started(described, robot, **values).items():
        is_ours = node.package == "constrained_sim"
        assert not is_ours or (Path(get_package_prefix(node.package)) / "lib" / node.package / executable).exists()


def test_documented_launch_file_starts_what_is_installed(described):
    """That of a robot of one's own: the simulator with its parameter file, whose end is the end of all."""
    described("leg")
    page = ROOT / "docs" / "how-to" / "bring-your-robot.md"
    (text,) = (block.text for block in blocks(page) if block.file.endswith(".launch.py"))
    names = {}
    exec(compile(text, str(page), "exec"), names)
    (actions,) = names["generate_launch_description"]().given
    simulator, controller = (action for action in actions if action.kind == "Node")
    assert (simulator.package, controller.parameters) == ("constrained_sim", [{"use_sim_time": True}])
    assert (Path(get_package_prefix("constrained_sim")) / "lib" / "constrained_sim" / simulator.executable).exists()
    file, parameters = simulator.parameters
    assert file.given[0][1:] == ["config", "my_robot.yaml"]
    defaults = {option.name: option.default for option in fields(NodeOptions)}
    assert all(type(value) is type(defaults[name]) for name, value in parameters.items())
    assert simulator.on_exit.kind == "Shutdown"


@pytest.mark.parametrize("text", ["abc", "nan", "-1", "inf", ""])
def test_duration_that_is_none_is_named(described, text):
    """The argument, what was given, and what is allowed."""
    with pytest.raises(InvalidValue, match=rf"argument duration: got '{text}', allowed: seconds, at least 0"):
        started(described, "leg", duration=text)


def test_missing_configuration_is_named(described):
    """The simulator would say that it has no robot."""
    with pytest.raises(InvalidValue, match=r"argument config: got '/none\.yaml'"):
        started(described, "leg", config="/none.yaml")


@pytest.mark.parametrize("robot", MODES)
def test_demonstration_starts_the_same(robot):
    """`make leg` and its like have the launch files' defaults, and refuse what the controller cannot do."""
    options = parse([robot])
    assert (options.controller, options.config) == (MODES[robot][0], SHARE / "config" / f"{robot}.yaml")
    assert parse([robot, "--controller", "none"]).controller == "none"
    with pytest.raises(SystemExit):
        parse([robot, "--controller", "dance"])


def test_demonstration_that_is_interrupted_early_says_so(tmp_path, monkeypatch, capsys):
    """There is no recording to plot; what it has started is ended."""
    told = []

    class Started:
        def __init__(self, name, *words):
            self.name, self.waits = name, 0

        def wait(self):
            self.waits += 1
            if self.name == "simulator" and self.waits == 1:
                raise KeyboardInterrupt
            return 0

        def send_signal(self, number):
            told.append((self.name, number))

    monkeypatch.setattr("constrained_sim.ros.demo.executable", Started)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert main(["leg", "--output", str(tmp_path)]) == 130
    assert capsys.readouterr() == ("", "demo: interrupted before anything was recorded\n")
    assert told == [("monitor", signal.SIGINT), ("leg_controller", signal.SIGINT)]
    assert not list(tmp_path.iterdir())


def test_demonstration_that_is_interrupted_while_python_imports_is_quiet(tmp_path):
    """What it needs first stands for the time that this takes."""
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n")
    there = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-P", "-m", "constrained_sim.ros.demo", "leg"]
    done = subprocess.run(command, env=there, capture_output=True, text=True, timeout=60.0, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("robot", MODES)
def test_launch_description_loads(robot):
    """Where the launch system is installed, it accepts the file and sees the documented arguments."""
    pytest.importorskip("launch.actions")
    pytest.importorskip("launch_ros.actions")
    description = loaded(robot).generate_launch_description()
    assert {argument.name for argument in description.get_launch_arguments()} == DOCUMENTED

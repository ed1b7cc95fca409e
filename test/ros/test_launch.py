"""The launch file, as far as it can be judged without the launch system, and with it where it is installed."""

import ast
import importlib.util
import os
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from ros.live import ROOT

LAUNCH = ROOT / "launch" / "leg.launch.py"
DOCUMENTED = {"controller", "clock_mode", "solver", "record", "duration", "config"}


def calls(name):
    """Return the calls of `name` in the launch file, as (positional constants, keyword arguments)."""
    tree = ast.parse(LAUNCH.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]
    return [
        (
            [argument.value for argument in node.args if isinstance(argument, ast.Constant)],
            {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)},
        )
        for node in found
    ]


def test_arguments_are_those_documented():
    """Every documented argument is declared, with a description, and no other."""
    declared = calls("DeclareLaunchArgument")
    assert {names[0] for names, _ in declared} == DOCUMENTED
    assert all(words.get("description") for _, words in declared)
    assert any(
        isinstance(node, ast.FunctionDef) and node.name == "generate_launch_description"
        for node in ast.parse(LAUNCH.read_text()).body
    )


def test_launch_file_starts_what_is_installed():
    """The executables that it starts exist where `ros2 run` looks for them, and may be executed."""
    nodes = [words for _, words in calls("Node")]
    assert {(words["package"], words["executable"]) for words in nodes} == {
        ("constrained_sim", "simulator"),
        ("constrained_sim", "leg_controller"),
    }
    for words in nodes:
        path = Path(get_package_prefix("constrained_sim")) / "lib" / "constrained_sim" / words["executable"]
        assert os.access(path, os.X_OK)


def test_launch_file_is_installed():
    """`ros2 launch constrained_sim leg.launch.py` finds the file, and the configuration that it names."""
    share = Path(get_package_share_directory("constrained_sim"))
    assert (share / "launch" / LAUNCH.name).read_text() == LAUNCH.read_text()
    assert (share / "config" / "leg.yaml").read_text() == (ROOT / "config" / "leg.yaml").read_text()


def test_launch_description_loads():
    """Where the launch system is installed, it accepts the file and sees the documented arguments."""
    pytest.importorskip("launch")
    pytest.importorskip("launch_ros")
    specification = importlib.util.spec_from_file_location("leg_launch", LAUNCH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    description = module.generate_launch_description()
    assert {argument.name for argument in description.get_launch_arguments()} == DOCUMENTED

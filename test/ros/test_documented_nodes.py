"""The node of the README and the tutorial, which need ROS, do what their pages say."""

import importlib

import numpy as np
import yaml
from mechanisms import ROOT
from pages import blocks, run_page, shell_commands
from ros.live import NODE

pytest_plugins = ["constrained_sim.testing.fixtures"]

CONFIG = ROOT / "config" / "leg.yaml"


def hold_posture(t, q, v):
    """Return the efforts of hip and knee."""
    return 60 * (np.array([0.6, -1.2]) - q[1:]) - 1.5 * v[1:]


def test_the_node_of_the_readme(simulate_in_ros, simulate_directly):
    """It gives the bits of the same law as a function."""
    (text,) = (block.text for block in blocks(ROOT / "README.md") if "import rclpy" in block.text)
    names = {"__name__": "readme"}
    exec(compile(text, "README.md", "exec"), names)
    node, function = simulate_in_ros(CONFIG, names["HoldPosture"]), simulate_directly(CONFIG, hold_posture)
    for a, b in zip(node.run(0.4), function.run(0.4), strict=True):
        assert a.q.tobytes() == b.q.tobytes() and a.tau.tobytes() == b.tau.tobytes()
    assert node.now.contacts["foot"].normal_force > 0


def documented_calls():
    """Return the calls of services of the simulator in all pages: page, name, type, request."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for block in blocks(page):
            for words in shell_commands(block.text) if block.language == "bash" else ():
                if words[:3] == ["ros2", "service", "call"] and words[3].startswith(f"{NODE}/"):
                    yield page.name, words[3].removeprefix(f"{NODE}/"), words[4], yaml.safe_load(words[5])


def filled(message, values):
    """Return `message` with the values of a tree of YAML."""
    for name, value in values.items():
        setattr(message, name, filled(getattr(message, name), value) if isinstance(value, dict) else value)
    return message


def test_services_are_called_as_the_pages_say(simulate):
    """A running node does what each documented request asks for."""
    calls = list(documented_calls())
    assert {name for _, name, _, _ in calls} >= {"set_solver", "remove_contact", "pause", "step", "reset"}
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        for page, name, kind, request in calls:
            module, _, service = kind.partition("/srv/")
            kind = getattr(importlib.import_module(f"{module}.srv"), service)
            asked = filled(kind.Request(), request)
            fields = {key: getattr(asked, key) for key in asked.get_fields_and_field_types()}
            answer = sim.call(kind, name, **fields)
            was_done = "unknown contact" in answer.message  # by another page
            assert answer.success or was_done, f"{page}: {name}: {answer.message}"


def test_the_tutorial(tmp_path, monkeypatch):
    """Every command of it prints what the page says."""
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "docs" / "tutorial.md")

"""The node of the README and the tutorial, which need ROS, do what their pages say."""

import numpy as np
from mechanisms import ROOT
from pages import blocks, run_page

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


def test_the_tutorial(tmp_path, monkeypatch):
    """Every command of it prints what the page says."""
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "docs" / "tutorial.md")

"""Studies whose controller is a ROS node: each run in a domain of its own, with the numbers that it has without ROS."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from campaign.studies import FOLDER, leg_study

psutil = pytest.importorskip("psutil")
pytest.importorskip("pyarrow")
pytest.importorskip("rclpy", reason="needs ROS 2: rclpy cannot be imported")

pytestmark = pytest.mark.xdist_group("campaign_over_ros")

COMMAND = [sys.executable, str(FOLDER / "hold_node.py")]
VARIATIONS = {
    "contacts.foot.friction": {"uniform": [0.2, 1.0]},
    "robot.payloads.carriage": {"uniform": [0.0, 0.2]},
    "controller.stiffness": {"log_uniform": [30.0, 90.0]},
    "pushes.shove.force.2": {"uniform": [-30.0, 0.0]},
}
MEASURES = {name: None for name in ("effort", "impacts", "required_friction")} | {"lowest": "laws.py:lowest"}


def test_a_node_gives_the_numbers_of_its_law_and_a_silent_or_greedy_one_is_a_row():
    """Bit by bit. Nothing is left over, neither of a node that never ends nor of its simulation."""
    common = {"measures": MEASURES, "passed": "", "runs": 2}
    node = leg_study(controller={"use": COMMAND, "damping": 1.0}, variations=VARIATIONS, noise={}, **common)
    law = leg_study(variations=VARIATIONS, noise={}, **common)
    cases = ({"silent_from": 1.05}, {"time_limit": 8.0}), ({"greedy_from": 1.05}, {"memory_limit": 1500.0})
    silent, greedy = (
        leg_study(controller={"use": COMMAND, **given}, variations={}, noise={}, **limit, **common).with_runs(1)
        for given, limit in cases
    )
    with ThreadPoolExecutor(2) as executor:
        found, expected = node.run(executor).table, law.run(executor).table
        (row,) = silent.run(executor).table.to_pylist()
        assert greedy.run(executor).table["reason"].to_pylist() == ["its process held more than 1500 MB"]
    assert found.equals(expected), found["traceback"].to_pylist()
    assert row["status"] == "timed out" and "ros_run.py" in row["traceback"]
    words = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in words if "silent_from" in line or COMMAND[1] in line]

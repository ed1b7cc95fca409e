"""`constrained_sim check` and `new`: a robot stands by what they write, and nothing is overwritten."""

import io
import json
import subprocess
import sys

import pytest

from constrained_sim import load_config
from constrained_sim.cli.app import main

SOLO = "package://example-robot-data/robots/solo_description/robots/solo12.urdf"
UR = "package://example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in an empty folder, in this process: it returns both streams."""
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0, given=""):
        monkeypatch.setattr(sys, "argv", ["constrained_sim", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with pytest.raises(SystemExit) as end:
            main()
        streams = capsys.readouterr()
        assert end.value.code == code, streams
        return streams

    return run


@pytest.mark.parametrize(("robot", "name", "feet"), [(SOLO, "dog", 4), (UR, "arm", 0)])
def test_a_robot_stands_after_check_new_run(cli, tmp_path, robot, name, feet):
    """Nothing is edited between the commands; the test that is written passes."""
    facts = json.loads(cli("check", robot, "--json").out)
    assert facts["floating_base"] == bool(feet)
    report = json.loads(cli("new", robot, "--name", name, "--json").out)
    assert len(report["contacts"]) == feet
    assert report["statics_residual"] < 1e-6
    law = f"{name}_controller.py:efforts"
    run = json.loads(cli("run", f"{name}.yaml", "--controller", law, "--duration", 2, "--json").out)
    config = load_config(tmp_path / f"{name}.yaml")
    assert run["q"] == pytest.approx(config.q.tolist(), abs=5e-3)
    carried = sum(force[2] for force in run["contact_forces"].values())
    assert carried == pytest.approx(9.81 * config.robot.mass if feet else 0.0, rel=1e-4)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, f"test_{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


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
        (["check", SOLO, "--dt", "0"], "dt"),
        (["new", SOLO, "--name", "my robot"], "my robot"),
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
    text = cli("check", "package://constrained_sim/urdf/four_bar.urdf").out
    for heading in ("links", "joints", "loops", "collision geometry", "frames that can be contacts", "advice"):
        assert heading in text

"""The fixture that does a study in a test."""

import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from campaign.studies import FOLDER, LEG, leg_study
from typer.testing import CliRunner

from constrained_sim import Trajectory
from constrained_sim.campaign import do_run
from constrained_sim.campaign.table import read_table, table_of
from constrained_sim.cli.app import app
from constrained_sim.exceptions import ConfigError

psutil = pytest.importorskip("psutil")
pytest.importorskip("pyarrow")

pytest_plugins = ["constrained_sim.testing.fixtures"]
pytestmark = pytest.mark.xdist_group("campaign")


@pytest.fixture
def file(tmp_path):
    """The study of the leg in a file."""
    for name in ("laws.py",):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    path = tmp_path / "leg.yaml"
    path.write_text(yaml.safe_dump(LEG, sort_keys=False))
    return path


def cli(*words, error=None):
    """Return what the command writes to standard output; or the error that it ends with."""
    done = CliRunner().invoke(app, list(map(str, words)))
    if error is not None:
        assert isinstance(done.exception, error)
        return done.exception
    assert done.exit_code == 0, (done.exception, done.output)
    return done.stdout


def test_what_fails_can_be_had_again(campaign, file):
    """By the command that the message ends with: the same measures, and the trajectory bit by bit."""
    finished = campaign(file, runs=8)
    finished.passed_at_least(0.25)
    with pytest.raises(AssertionError) as failure:
        finished.passed_at_least(1.0)
    message = str(failure.value)
    run = finished.results.failures[0]
    assert f"seed 7, runs that failed: {run}" in message
    words = re.search(r"again: constrained_sim (.*)", message)[1].split()
    output, bag = file.with_name("run.npz"), file.with_name("bag")
    summary = json.loads(cli(*words, "--output", output, "--bag", bag, "--json"))
    row = finished.results.table.to_pylist()[run]
    assert summary["values"] == {name: row[name] for name in LEG["variations"]}
    assert summary["measures"] == {name: row[name] for name in LEG["measures"]}
    again, here = Trajectory.load(output), do_run(leg_study(), run).trajectory
    for name in ("t", "q", "v", "tau"):
        assert np.array_equal(getattr(again, name), getattr(here, name)), name
    assert np.array_equal(again.contact_forces["foot"], here.contact_forces["foot"], equal_nan=True)
    with pytest.importorskip("rosbags.highlevel").AnyReader([bag]) as reader:
        messages = [(c.topic, reader.deserialize(data, c.msgtype)) for c, _, data in reader.messages()]
    assert np.array_equal([state.position for topic, state in messages if topic == "/joint_states"], here.q)


def test_the_command_goes_on_with_what_is_done(file):
    """Some runs, then the rest: the table that Python gives; what is there is not written over."""
    pytest.importorskip("distributed")
    first = json.loads(cli("campaign", file, "-n", 4, "--workers", 1, "--json"))
    assert (first["runs"], first["statuses"]) == (4, {"done": 4})
    assert "--resume" in str(cli("campaign", file, "-n", 8, error=ConfigError))
    second = json.loads(cli("campaign", "run", file, "-n", 8, "--resume", "--workers", 1, "--json"))
    rows = [do_run(leg_study(), run).row for run in range(8)]
    assert (second["runs"], second["passed"]) == (8, sum(row.passed for row in rows))
    assert read_table(file.with_name("leg_results")).equals(table_of(leg_study(), rows))
    assert "of 8 runs passed" in file.with_name("leg_results").joinpath("report.html").read_text()
    assert cli("campaign", "report", file).strip() == str(file.with_name("leg_results") / "report.html")


def test_another_number_of_runs_is_told_or_refused(file):
    """Without one, the runs that were begun are done; what is done already is not left out; a run must be there."""
    pytest.importorskip("distributed")
    words = "campaign", file, "--workers", 1, "--json"
    cli(*words, "-n", 2)
    assert json.loads(cli(*words, "--resume"))["runs"] == 2
    assert "holds run 1 already, got a study of 1 runs" in str(cli(*words, "-n", 1, "--resume", error=ConfigError))
    assert json.loads(cli(*words, "-n", 3, "--resume"))["runs"] == 3
    beyond = CliRunner().invoke(app, ["campaign", "replay", str(file), "3"])
    assert beyond.exit_code == 2 and "got 3, allowed: 0 to 2" in beyond.output
    wrong = CliRunner().invoke(app, ["campaign", "report", str(file), "--output", "a.pdf"])
    assert wrong.exit_code == 2 and ".html" in wrong.output
    file.write_text(yaml.safe_dump({**LEG, "sampling": "latin_hypercube"}))
    elsewhere = (*words, "--directory", file.with_name("other"))
    cli(*elsewhere, "-n", 2)
    assert "of 2 runs, got a study of 3" in str(cli(*elsewhere, "-n", 3, "--resume", error=ConfigError))


def test_a_command_that_is_killed_loses_little_and_leaves_nothing_behind(file):
    """Its runs' processes end with it; what was written is taken, and the rest is done, nothing twice."""
    pytest.importorskip("distributed")
    results = file.with_name("leg_results")
    words = [sys.executable, "-m", "constrained_sim", "campaign", str(file), "-n", "3000", "--workers", "2"]
    command = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while not list(results.glob("part-*.parquet")):
        assert command.poll() is None
        time.sleep(0.05)
    family = psutil.Process(command.pid).children(recursive=True)
    command.kill()
    command.wait()
    _, alive = psutil.wait_procs(family, timeout=10.0)
    assert family and not alive
    before = read_table(results)["run"].to_pylist()
    runs = max(before) + 21
    assert json.loads(cli("campaign", file, "-n", runs, "--resume", "--workers", 2, "--json"))["runs"] == runs
    found = read_table(results)
    assert found["run"].to_pylist() == list(range(runs))
    some = range(max(max(before) - 5, 0), runs)
    assert found.slice(some[0]).equals(table_of(leg_study(), [do_run(leg_study(), run).row for run in some]))


def test_trajectories_that_are_kept_are_those_of_the_runs(tmp_path):
    """Of all, of those that failed, of the worst."""
    for keep in ("all", "failed", "worst"):
        study = leg_study(runs=8, keep=keep, worst=2, worst_by="impacts")
        results = study.run(directory=tmp_path / keep)
        wanted = {"all": range(8), "failed": results.failures, "worst": results.worst()}[keep]
        kept = sorted(int(file.stem[4:]) for file in (tmp_path / keep / "trajectories").iterdir())
        assert kept == sorted(wanted)
        found, expected = results.trajectory(kept[0]), do_run(study, kept[0]).trajectory
        assert np.array_equal(found.q, expected.q) and np.array_equal(found.tau, expected.tau)
    assert len(results.worst()) == 2


def test_the_worst_are_kept_though_worse_ones_hang_and_crash(tmp_path):
    """Those that came to their end: the others are not tried again without limits; a larger study has other worst."""
    troubles = {"controller.trouble": {"grid": ["none", "hangs", "none", "crashes"]}}
    changes = {"controller": "laws.py:Misbehaves", "variations": troubles, "measures": {"effort": None}, "passed": ""}
    study = leg_study(**changes, pushes={}, noise={}, runs=4, time_limit=2.0, keep="worst", worst=1)
    kept = tmp_path / "trajectories"
    study.run(directory=tmp_path)
    assert [file.name for file in kept.iterdir()] == ["run-000000000.npz"]
    more = study.with_runs(7).run(directory=tmp_path, resume=True)
    (kept_now,) = kept.iterdir()
    assert int(kept_now.stem[4:]) == more.worst(only_done=True)[0]


def test_options_that_name_no_file_get_names_by_the_run(file, monkeypatch):
    """Of a bag, a film, a picture and a result alike; a name that is given counts."""
    monkeypatch.chdir(file.parent)
    pytest.importorskip("rosbags")
    done = cli("campaign", "replay", file, 3, "--bag", "--output")
    assert done.endswith("wrote run_3.npz\nwrote run_3\n")
    cli("campaign", "replay", file, 4, "--output", "four.npz", "--bag")
    assert {path.name for path in file.parent.iterdir()} >= {"run_3", "run_3.npz", "four.npz", "run_4"}
    assert np.array_equal(Trajectory.load("run_3.npz").q, do_run(leg_study(), 3).trajectory.q)

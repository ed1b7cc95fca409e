"""The fixture that does a study in a test."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import yaml
from campaign.studies import FOLDER, LEG, leg_study

from constrained_sim import Trajectory
from constrained_sim.campaign import do_run

pytest.importorskip("psutil")
pytest.importorskip("pyarrow")

pytest_plugins = ["constrained_sim.testing.fixtures"]
pytestmark = pytest.mark.xdist_group("campaign")


@pytest.fixture
def file(tmp_path):
    """The study of the leg in a file."""
    for name in ("laws.py",):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    path = tmp_path / "leg.yaml"
    path.write_text(yaml.safe_dump(LEG))
    return path


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
    output = file.with_name("run.npz")
    command = [sys.executable, "-P", "-m", "constrained_sim", *words, "--output", str(output), "--json"]
    summary = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    row = finished.results.table.to_pylist()[run]
    assert summary["values"] == {name: row[name] for name in LEG["variations"]}
    assert summary["measures"] == {name: row[name] for name in LEG["measures"]}
    again, here = Trajectory.load(output), do_run(leg_study(), run).trajectory
    for name in ("t", "q", "v", "tau"):
        assert np.array_equal(getattr(again, name), getattr(here, name)), name
    assert np.array_equal(again.contact_forces["foot"], here.contact_forces["foot"], equal_nan=True)


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

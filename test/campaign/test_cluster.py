"""A study on a Dask cluster of other processes, whose environments differ."""

import contextlib
import os
import subprocess
import sys
import urllib.parse
import urllib.request

import distributed
import psutil
import pytest
from campaign.studies import FOLDER, leg_study

from constrained_sim.campaign import cluster, do_run
from constrained_sim.campaign.execution import run_study
from constrained_sim.campaign.table import read_table, table_of
from constrained_sim.exceptions import ConfigError, StudyInterrupted

pytestmark = pytest.mark.xdist_group("campaign")


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler with two workers, and the processes of all three."""
    with contextlib.ExitStack() as stack:

        def start(*words, cwd=tmp_path, **environment):
            command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
            log = stack.enter_context((tmp_path / f"{words[0]}.log").open("a"))
            process = subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log, env=os.environ | environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
            stack.callback(lambda: [child.kill() for child in psutil.Process(process.pid).children(recursive=True)])
            return process

        file = tmp_path / "scheduler.json"
        processes = [
            start(
                "dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1", "--scheduler-file", str(file)
            )
        ]
        words = "dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"
        processes.append(start(*words, LANG="C", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2"))
        processes.append(start(*words, cwd=FOLDER, LANG="C.UTF-8", PYTHONHASHSEED="7"))
        with distributed.Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address, processes


def test_two_workers_of_other_environments_give_the_same_bits_though_one_is_killed(scheduler):
    """Its runs are done again, by whomever."""
    address, processes = scheduler
    study = leg_study(runs=24)
    expected = table_of(study, (do_run(study, run).row for run in range(study.runs)))
    with cluster.dask_cluster(address) as dask:
        assert dask.workers == 2
        killed = []

        def kill(state):
            if not killed and state.done > 8:
                family = psutil.Process(processes[1].pid).children()
                (worker, *_) = [process for process in family if "spawn" in " ".join(process.cmdline())]
                worker.kill()
                killed.append(worker.pid)

        assert run_study(study, dask.executor, progress=kill, workers=2).table.equals(expected)
        assert killed


def test_a_killed_scheduler_loses_no_run_that_was_done(scheduler, tmp_path):
    """The study ends with the reason; the rest is done elsewhere."""
    address, processes = scheduler
    study = leg_study(runs=40)
    expected = table_of(study, (do_run(study, run).row for run in range(study.runs)))
    done = []

    def kill(state):
        done.append(state.done)
        if len(done) == 2:
            processes[0].kill()

    with pytest.raises(StudyInterrupted, match="resume"), cluster.dask_cluster(address) as dask:
        run_study(study, dask.executor, tmp_path / "results", progress=kill, workers=2)
    kept = read_table(tmp_path / "results")
    assert done[1] <= kept.num_rows < study.runs
    resumed = study.run(directory=tmp_path / "results", resume=True)
    assert resumed.table.equals(expected)


def test_the_page_of_dask_is_where_its_link_says():
    """On this machine only."""
    with cluster.dask_cluster(workers=1, dashboard=True) as dask, urllib.request.urlopen(dask.dashboard) as page:
        assert urllib.parse.urlparse(dask.dashboard).hostname == "127.0.0.1"
        assert b"Dask" in page.read()
    with cluster.dask_cluster(workers=1) as dask:
        assert not dask.dashboard


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    """Within the time that it may take."""
    monkeypatch.setattr(cluster, "CONNECTING_TIME", 0.5)
    with (
        pytest.raises(ConfigError, match=r"nothing answers at 'tcp://127\.0\.0\.1:9'"),
        cluster.dask_cluster("tcp://127.0.0.1:9"),
    ):
        pass

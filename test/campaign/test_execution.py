"""Studies done by different executors, killed, interrupted and resumed: the same rows, none lost, none twice."""

import contextlib
import errno
import threading
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from campaign.studies import leg_study

from constrained_sim.campaign import do_run
from constrained_sim.campaign.execution import Progress, run_study
from constrained_sim.campaign.table import table_of
from constrained_sim.exceptions import ConfigError, StudyInterrupted

psutil = pytest.importorskip("psutil")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.xdist_group("campaign")


@pytest.fixture(scope="module")
def study():
    return leg_study()


@pytest.fixture(scope="module")
def expected(study):
    """The table, from Python alone: no process, no executor."""
    return table_of(study, (do_run(study, run).row for run in range(study.runs)))


def test_runs_differ_and_some_fail(expected):
    """Else what follows would test nothing."""
    assert set(expected["status"].to_pylist()) == {"done"}
    assert len(set(expected["lowest"].to_pylist())) == expected.num_rows
    assert 0 < sum(expected["passed"].to_pylist()) < expected.num_rows


def test_one_process_at_a_time_gives_the_same_bits(study, expected):
    """Without an executor."""
    assert study.run().table.equals(expected)


def test_two_threads_give_the_same_bits(study, expected):
    """Each with a process of its own."""
    with ThreadPoolExecutor(2) as executor:
        assert study.run(executor).table.equals(expected)


def test_a_pool_of_processes_gives_the_same_bits_and_takes_its_own_along(study, expected):
    """Its processes own those that do the runs: these end with them, even one that never returns to Python."""
    hanging = leg_study(
        controller="laws.py:Misbehaves", variations={"controller.trouble": {"choice": ["hangs"]}}, runs=1
    )
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        assert study.run(executor).table.equals(expected)
        (owner,) = map(psutil.Process, executor._processes)
        killer = threading.Thread(target=kill_while_it_hangs, args=(owner, family := []))
        killer.start()
        with pytest.raises(StudyInterrupted, match="BrokenProcessPool"):
            hanging.run(executor)
        killer.join()
    _, alive = psutil.wait_procs(family, timeout=10.0)
    assert len(family) >= 2 and not alive


def kill_while_it_hangs(owner, family):
    """Kill `owner` once it has a run that goes on; tell the processes that it had.

    Those of the study before, which has ended, may still be there for a moment, and have no more to do.
    """
    while not any(map(is_busy, owner.children(recursive=True)[1:])):
        time.sleep(0.05)
    family += owner.children(recursive=True)
    owner.kill()


def is_busy(process):
    """Return whether a process has computed for a while, and still does."""
    with contextlib.suppress(psutil.NoSuchProcess):
        before = process.cpu_times().user
        time.sleep(0.3)
        return before > 0.3 and process.cpu_times().user > before
    return False


@pytest.mark.parametrize("workers", [1, 2])
def test_dask_gives_the_same_bits(study, expected, workers):
    """By an embedded cluster."""
    pytest.importorskip("distributed")
    from constrained_sim.campaign.cluster import dask_cluster

    with dask_cluster(workers=workers) as cluster:
        assert cluster.workers == workers
        listening = {port.laddr.ip for port in psutil.Process().net_connections() if port.status == "LISTEN"}
        assert listening <= {"127.0.0.1"}
        assert run_study(study, cluster.executor, workers=workers).table.equals(expected)


def templates():
    """Return the processes that give birth to those that do runs; other tests in this process have others."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ends just now
            if any("campaign.child:load_all" in word for word in child.cmdline()):
                found.append(child)
    return found


def test_killed_processes_change_nothing(study):
    """Of those that do runs, one is killed now and then; so is, at first, the one that gives birth to them."""
    study = study.with_runs(30)
    expected = table_of(study, (do_run(study, run).row for run in range(study.runs)))
    ended, killed = threading.Event(), []

    def kill():
        while not ended.wait(0.2 * 1.5 ** len(killed)):  # ever later, so that a busy machine gets a run done, too
            if not killed:
                killed.extend(template.pid for template in templates() if not template.kill())
            for template in templates():
                for process in template.children()[:1]:
                    process.kill()
                    killed.append(process.pid)

    killer = threading.Thread(target=kill)
    with ThreadPoolExecutor(2) as executor:
        killer.start()
        try:
            found = study.run(executor).table
        finally:
            ended.set()
            killer.join()
    assert killed and found.equals(expected)


@pytest.mark.parametrize(("times", "status"), [(9, "done"), (10, "died")])
def test_a_run_that_is_killed_again_and_again_is_begun_ten_times(tmp_path, times, status):
    """Who kills at random hits one run several times; what happens more often is told."""
    count = tmp_path / "count"
    count.touch()
    controller = {"use": "laws.py:KilledAtFirst", "count": str(count), "times": times, "damping": 1.0}
    (row,) = leg_study(controller=controller, variations={}, runs=1).run().table.to_pylist()
    assert row["status"] == status and len(count.read_bytes()) == times
    if status == "done":
        (usual,) = leg_study(variations={}, runs=1).run().table.to_pylist()
        assert row == usual
    else:
        assert row["reason"] == "its process was ended by SIGKILL"


def test_an_interrupted_study_goes_on_where_it_was(study, expected, tmp_path):
    """What was done stays as it is; the rest is added, nothing twice."""
    stopped_at = []

    def interrupt(state: Progress):
        if state.done >= 4:
            stopped_at.append(state.done)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as _stopped:
        study.run(directory=tmp_path, progress=interrupt)
    assert not [process for template in templates() for process in template.children()]
    before = [pq.read_table(part) for part in sorted(tmp_path.glob("part-*"))]
    assert sum(part.num_rows for part in before) == stopped_at[0] < study.runs
    with pytest.raises(ConfigError, match="--resume"):
        study.run(directory=tmp_path)
    with pytest.raises(ConfigError, match="another study"):
        leg_study(seed=8).run(directory=tmp_path, resume=True)
    seen = []
    results = study.run(directory=tmp_path, resume=True, progress=lambda state: seen.append(state.before))
    assert set(seen) == {stopped_at[0]}
    assert results.table.equals(expected)


def test_a_full_disk_costs_what_was_not_written(study, tmp_path, monkeypatch):
    """The study ends with the reason; parts that were written are whole, and no half of one is left."""
    write = pq.write_table

    def write_half(table, path, **options):
        write(table.slice(0, 1), path, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("constrained_sim.campaign.table.MOST_ROWS", 1)
    count = []

    def write_some(table, path, **options):
        count.append(path)
        (write if len(count) <= 3 else write_half)(table, path, **options)

    monkeypatch.setattr(pq, "write_table", write_some)
    with pytest.raises(StudyInterrupted, match="No space left"):
        study.run(directory=tmp_path)
    monkeypatch.undo()
    parts = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("part"))
    assert len(parts) == 3 and all(name.endswith(".parquet") for name in parts)
    assert study.run(directory=tmp_path, resume=True).runs == study.runs


def test_a_full_disk_at_the_beginning_and_at_the_report_is_refused(study, tmp_path, monkeypatch):
    """Nothing is left of what could not be written; what a process that was killed left behind goes with the next."""

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(ConfigError, match=r"cannot write .*study\.json': No space left"):
            study.run(directory=tmp_path / "results")
    assert [path.name for path in tmp_path.rglob("*")] == ["results", ".lock"]
    for folder in (tmp_path / "results" / "part.writing", tmp_path / "results" / "trajectories" / "run.writing"):
        folder.mkdir(parents=True)
        (folder / "half").write_text("")
    results = study.run(directory=tmp_path / "results")
    assert not list(tmp_path.rglob("*.writing"))
    page = tmp_path / "report.html"
    page.write_text("before")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match=r"cannot write .*report\.html': No space left"):
        results.report(page)
    assert page.read_text() == "before"


def test_memory_does_not_grow_with_the_number_of_runs(tmp_path, monkeypatch):
    """Rows go to the disk as they come: 400 runs more keep nothing; their rows would be 110 kB."""
    monkeypatch.setattr("constrained_sim.campaign.table.MOST_ROWS", 20)
    nothing = {"controller": "none", "duration": 1e-3, "measures": {"impacts": None}, "passed": "impacts < 9"}
    nothing |= {"pushes": {}, "variations": {"contacts.foot.friction": {"uniform": [0.2, 1.0]}}}

    def peak(runs):
        tracemalloc.start()
        try:
            assert leg_study(runs=runs, **nothing).run(directory=tmp_path / str(runs)).runs == runs
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(40)  # what is loaded once
    assert peak(500) - peak(100) < 5e4


def test_the_end_of_a_study_leaves_the_processes_of_others_alone():
    """Others begin and end while it goes on: one process does all its runs."""
    study = leg_study(measures={"process": "laws.py:process"}, passed="", runs=8)
    with ThreadPoolExecutor(1) as executor:
        results = study.run(executor, progress=lambda state: leg_study(runs=1).run())
    assert results.runs == 8 and len(set(results.column("process"))) == 1


def test_two_studies_do_not_write_into_one_directory(study, tmp_path):
    """The second is refused."""

    def begin_another(state):
        with pytest.raises(ConfigError, match="in use"):
            study.run(directory=tmp_path, resume=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(directory=tmp_path, progress=begin_another)


def test_troubles_are_rows_with_reason_and_traceback():
    """A run that raises, hangs in compiled code, eats memory or crashes; the others are as ever."""

    def rows_of(*troubles, **limits):
        variations = {"controller.trouble": {"grid": list(troubles)}}
        study = leg_study(controller="laws.py:Misbehaves", variations=variations, runs=len(troubles) + 1, **limits)
        with ThreadPoolExecutor(2) as executor:
            return study.run(executor).table.to_pylist()

    good, fails, devours, crashes, again = rows_of("none", "fails", "devours", "crashes", memory_limit=700.0)
    hangs, hangs_again = rows_of("hangs", time_limit=4.0)
    assert hangs["status"] == hangs_again["status"] == "timed out"
    statuses = [row["status"] for row in (good, fails, devours, crashes, again)]
    assert statuses == ["done", "raised", "out of memory", "died", "done"]
    assert fails["reason"] == "RuntimeError: the knee is on fire"
    assert hangs["reason"] == "it took more than 4 s"
    assert devours["reason"] == "its process held more than 700 MB"
    assert crashes["reason"] == "its process was ended by SIGSEGV"
    where = {"fail": fails, "efforts": hangs, "devour": devours, "crash": crashes}
    for function, row in where.items():
        assert function in row["traceback"], function
        assert not row["passed"]
    assert again["lowest"] == good["lowest"]

"""Does a study: gives its runs to an executor, a few at a time, and writes what comes back."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.campaign.cluster import client_of, end_on_workers
from constrained_sim.campaign.controller import check_named
from constrained_sim.campaign.one_run import described_robot
from constrained_sim.campaign.process import Result, do_runs, end_processes
from constrained_sim.campaign.results import Results
from constrained_sim.campaign.study import Study
from constrained_sim.campaign.table import TableDirectory, trajectory_file
from constrained_sim.config import read_config
from constrained_sim.exceptions import ConfigError, InvalidValue, ModelError, StudyInterrupted
from constrained_sim.optional import optional

BLOCK_TIME = 0.5
"""[s] that a block of runs should take: long against what a block costs, short against what is lost with a worker."""

LARGEST_BLOCK = 200
"""Runs in a block."""

AHEAD = 2
"""Blocks for each worker that are under way: one is done, one waits."""

MOST_LOST = 100
"""Blocks whose worker may be lost, one after the other, until the study ends."""


@dataclass
class Progress:
    """How far a study is.

    Attributes:
        runs: of the study.
        before: that were done when it was resumed.
        passed: since then.
        failed: since then.
        seconds: since then.
    """

    runs: int
    before: int
    passed: int = 0
    failed: int = 0
    _begin: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Number of runs that are done."""
        return self.before + self.passed + self.failed

    @property
    def rate(self) -> float:
        """Runs per second."""
        return (self.passed + self.failed) / max(time.monotonic() - self._begin, 1e-9)

    @property
    def seconds_left(self) -> float:
        """Time that the rest will take [s]."""
        return (self.runs - self.done) / self.rate if self.rate else float("inf")

    def see(self, result: Result) -> None:
        """Count a run."""
        self.passed += result.row.passed
        self.failed += not result.row.passed


class SerialExecutor(Executor):
    """Does at once what is submitted."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Return the future of ``function(*args, **options)``, done already."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as error:
            future.set_exception(error)
        return future


def run_study(
    study: Study,
    executor: Executor | None = None,
    directory: Path | str | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    workers: int | None = None,
) -> Results:
    """Do the runs of a study that are not done; see :meth:`Study.run`.

    Args:
        study: to do.
        executor: that does blocks of runs; None: this thread.
        directory: for the results; None: a temporary one, which ends with the results.
        resume: go on with what is there.
        progress: is told after each block.
        workers: that the executor has; None: as it says.

    Raises:
        ConfigError, StudyInterrupted, MissingLibrary: see :meth:`Study.run`.
        UnknownName: a name in the configuration that does not exist, in this and in every other run.
    """
    _check_keys(study)
    temporary = tempfile.TemporaryDirectory(prefix="study_") if directory is None else None
    path = Path(temporary.name if temporary is not None else directory or "")
    table = TableDirectory(path, study)
    try:
        done = table.begin(resume)
        state = Progress(study.runs, int(done.sum()))
        workers = workers or _workers(executor)
        with _interruptions(table, state):
            with _results(study, executor, workers, np.flatnonzero(~done)) as blocks:
                for block in blocks:
                    _take(block, table, state)
                    if progress is not None:
                        progress(state)
            table.flush()
            results = Results(study, path, temporary)
            if study.keep == "worst":
                _keep_worst(results, table, executor, workers)
        return results
    finally:
        table.close()


def _check_keys(study: Study) -> None:
    """Refuse a study whose runs all fail, for a name or key that nobody reads.

    Raises:
        ConfigError, UnknownName: of the first run.
    """
    with warnings.catch_warnings(), contextlib.suppress(InvalidValue, ModelError):  # a value of the first run alone
        warnings.simplefilter("ignore")  # a run says nothing of them
        inputs = study.inputs(0)
        config = read_config(inputs.configuration, study.folder, described_robot)
        for push in inputs.pushes:
            config.robot.link_placement(push.link)
            config.robot.link_placement(push.axes)
        if isinstance(study.controller, str):
            check_named(study.controller, inputs.options, config, study.robot, study.folder)


def _results(study: Study, executor: Executor | None, workers: int, left: Any) -> contextlib.closing[Any]:
    """Return what yields the results of the runs `left`, and ends with all that it began."""
    return contextlib.closing(_Work(study, executor, workers, left).results())


class _Work:
    """The runs that are left, and those under way."""

    def __init__(self, study: Study, executor: Executor | None, workers: int, left: Any) -> None:
        """Do the runs `left` by an executor with so many `workers`; None: this thread."""
        self._name, self._blob = uuid.uuid4().hex, pickled(study)
        self._executor, self._workers = executor or SerialExecutor(), workers
        self._left, self._at = left, 0
        self._again: list[int] = []
        self._seconds_per_run = BLOCK_TIME
        self._lost = 0

    def results(self) -> Iterator[list[Result]]:
        """Yield what comes back, block by block, in any order; the processes for the runs end with them."""
        under_way: dict[Future[Any], list[int]] = {}
        try:
            while True:
                while len(under_way) < AHEAD * self._workers and (block := self._next()):
                    under_way[self._executor.submit(do_runs, self._name, self._blob, block)] = block
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    results = self._outcome(future, under_way.pop(future))
                    if results:
                        yield results
        finally:
            for future in under_way:
                future.cancel()
            end_processes(self._name)
            end_on_workers(self._executor, self._name)

    def _outcome(self, future: Future[Any], block: list[int]) -> list[Result]:
        """Return the results of a block; none where its worker was lost too often, and it is done again."""
        try:
            results, seconds = future.result()
        except Exception as error:
            if type(error).__name__ != "KilledWorker" or self._lost >= MOST_LOST:
                raise
            self._lost += 1
            self._again += block
            return []
        self._lost = 0
        self._seconds_per_run = 0.5 * (self._seconds_per_run + seconds / len(block))
        return list(results)

    def _next(self) -> list[int]:
        """Return the next block: so many runs as take :data:`BLOCK_TIME`, fewer near the end."""
        if self._again:
            block, self._again = self._again[:1], self._again[1:]
            return block
        left = len(self._left) - self._at
        size = min(LARGEST_BLOCK, round(BLOCK_TIME / max(self._seconds_per_run, 1e-9)), left // (AHEAD * self._workers))
        size = max(1, size)
        block = self._left[self._at : self._at + size].tolist()
        self._at += len(block)
        return list(block)


def pickled(study: Study) -> bytes:
    """Return a study as what is sent to other processes; functions of a script or notebook go with it."""
    try:
        cloudpickle = optional("cloudpickle", "sending functions to workers")
    except ImportError:
        return pickle.dumps(study)
    return bytes(cloudpickle.dumps(study))


def _workers(executor: Executor | None) -> int:
    """Return how many blocks an executor does at once."""
    if executor is None:
        return 1
    client = client_of(executor)
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    return int(getattr(executor, "_max_workers", 1))


def _take(results: list[Result], table: TableDirectory, state: Progress) -> None:
    """Keep what came back."""
    for result in results:
        if result.trajectory is not None:
            table.keep_trajectory(result.row.run, result.trajectory)
        state.see(result)
    table.add([result.row for result in results])


@contextlib.contextmanager
def _interruptions(table: TableDirectory, state: Progress) -> Iterator[None]:
    """Write what is done, whatever happens.

    Raises:
        StudyInterrupted: in place of what an executor or the disk raised.
    """
    try:
        yield
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        with contextlib.suppress(ConfigError):  # a full disk is the reason already
            table.flush()
        raise StudyInterrupted(str(table.path), table.written, state.runs, why) from error
    except BaseException:
        table.flush()
        raise


def _keep_worst(results: Results, table: TableDirectory, executor: Executor | None, workers: int) -> None:
    """Do the worst of the runs that came to their end again, and keep their trajectories and no others."""
    worst = results.worst(only_done=True)
    table.drop_trajectories(but=worst)
    left = np.array([run for run in worst if not trajectory_file(table.path, run).is_file()], dtype=np.int64)
    with _results(replace(results.study, keep="all"), executor, workers, left) as blocks:
        for result in itertools.chain.from_iterable(blocks):
            if result.trajectory is not None:
                table.keep_trajectory(result.row.run, result.trajectory)

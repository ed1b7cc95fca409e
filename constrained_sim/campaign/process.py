"""Owns a process that does runs, and ends it where a run takes too long or too much memory."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from constrained_sim.campaign.leftovers import end_leftovers, mark
from constrained_sim.campaign.one_run import DIED, OUT_OF_MEMORY, TIMED_OUT, Row, memory_reason
from constrained_sim.campaign.study import Study
from constrained_sim.campaign.template import Template
from constrained_sim.exceptions import RunsFailed
from constrained_sim.optional import optional

LOOK = 0.02
"""[s] between two looks at the memory of a run."""

STARTING_TIME = 60.0
"""[s] that a process may take to take in the study."""

TELLING_TIME = 1.0
"""[s] that a process has to tell where it is before it is ended."""

TRIES = 3
"""So often a run is begun whose process dies: who kills processes at random rarely meets one run thrice."""


class Result(NamedTuple):
    """What comes back of a run.

    Attributes:
        row: of the table.
        trajectory: the content of its file; None where it is not kept.
    """

    row: Row
    trajectory: bytes | None


class RunProcess:
    """A process that does one run after the other, started anew where one took it along.

    On Linux it ends with this process, however that ends.
    """

    def __init__(self, study: bytes) -> None:
        """Take a pickled study; the process starts with the first run."""
        self._blob = study
        self._study: Study = pickle.loads(study)
        self._memory: Any = None
        self._pid = 0

    def run(self, run: int) -> Result:
        """Do a `run`.

        Raises:
            RunsFailed: the process cannot be started.
        """
        for left in reversed(range(TRIES)):
            result, how = self._try(run)
            if result is not None:
                return result
            row = self._end_with_row(run, how)
            if how != DIED or not left:
                break
        return Result(row, None)

    def _try(self, run: int) -> tuple[Result | None, str]:
        """Return what comes back of a `run`; else None, and how it ended."""
        if not self._pid:
            self._start()
        try:
            self._connection.send((run, self._study.keep))
            if how := self._wait(time.monotonic() + self._study.time_limit):
                return None, how
            result = Result(*self._connection.recv())
        except (EOFError, ConnectionError):
            return None, DIED
        self._forget_errors()
        return result, ""

    def close(self) -> None:
        """End the process, and what it has started."""
        self._end()

    def _end(self) -> int:
        """End the process, where it has not ended by itself, and return its exit code, negative of a signal."""
        if not self._pid:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        try:
            code = self._template.ending(self._pid)
        except RunsFailed:  # the template ended, and took it along
            code = -signal.SIGKILL
        self._connection.close()
        self._errors.close()
        if self._study.uses_ros:
            end_leftovers(self._mark)
        self._pid = 0
        return code

    def _start(self) -> None:
        """Start the process, with some patience for who kills processes at random.

        Raises:
            RunsFailed: it ends, or takes too long.
        """
        for left in reversed(range(TRIES)):
            self._launch()
            try:
                self._connection.send_bytes(self._blob)
                if self._connection.poll(STARTING_TIME) and self._connection.recv() == "ready":
                    self._forget_errors()
                    return
            except (EOFError, ConnectionError):
                pass
            text = self._what_it_wrote()
            self.close()
            if not left:
                raise RunsFailed("a process for runs did not start", text)

    def _launch(self) -> None:
        """Start a process that waits for the study."""
        ours, theirs = socket.socketpair()
        self._errors, self._mark = tempfile.TemporaryFile(), mark()
        self._template = template()
        with theirs:
            self._pid = self._template.fork(theirs, self._errors, self._mark)
        self._connection = Connection(ours.detach())
        self._memory = optional("psutil", "studies").Process(self._pid)

    def _wait(self, end: float) -> str:
        """Wait for the result of a run; return why there will be none; empty: it is there."""
        limit = self._study.memory_limit * 1e6
        while not self._connection.poll(LOOK):
            if time.monotonic() > end:
                return TIMED_OUT
            if self._held() > limit:
                return OUT_OF_MEMORY
        return ""

    def _held(self) -> int:
        """Return how much memory the process holds [bytes]; 0 once it is gone."""
        try:
            return int(self._memory.memory_info().rss)
        except Exception:  # psutil's errors of processes that end just now
            return 0

    def _end_with_row(self, run: int, how: str) -> Row:
        """End the process, and return the row of a `run` that ended it."""
        if how != DIED:
            self._ask_where_it_is()
        text, code = self._what_it_wrote(), self._end()
        ending = f"its process was ended by {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
        limit = f"it took more than {self._study.time_limit:g} s"
        reason = {DIED: ending, TIMED_OUT: limit, OUT_OF_MEMORY: memory_reason(self._study)}[how]
        return Row(run, how, False, reason, text, self._study.values(run))

    def _ask_where_it_is(self) -> None:
        """Let the process write its traceback, which it does in compiled code too."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGUSR1)
        end = time.monotonic() + TELLING_TIME
        while time.monotonic() < end and "most recent call first" not in self._what_it_wrote():
            time.sleep(LOOK)
        time.sleep(LOOK)

    def _what_it_wrote(self) -> str:
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), min(size, 20_000), max(0, size - 20_000)).decode(errors="replace")

    def _forget_errors(self) -> None:
        os.ftruncate(self._errors.fileno(), 0)
        os.lseek(self._errors.fileno(), 0, os.SEEK_SET)


_template: Template | None = None
_lock = threading.Lock()
_processes: dict[int, tuple[bytes, RunProcess]] = {}
"""By the thread that they belong to."""


def do_runs(study: bytes, runs: list[int]) -> tuple[list[Result], float]:
    """Do `runs` of a pickled study in the process that belongs to this thread; return seconds too.

    This is what executors and Dask are given to do.

    Raises:
        RunsFailed: no process for runs can be started.
    """
    thread = threading.get_ident()
    with _lock:
        old = _processes.get(thread)
        if old is None or old[0] != study:
            _processes[thread] = (study, RunProcess(study))
        process = _processes[thread][1]
    if old is not None and old[1] is not process:
        old[1].close()
    begin = time.monotonic()
    results = [process.run(run) for run in runs]
    return results, time.monotonic() - begin


def template() -> Template:
    """Return the process of this one that gives birth to those that do runs, started where there is none."""
    global _template
    with _lock:
        if _template is None or not _template.is_alive:
            _template = Template()
            atexit.register(_template.close)
        return _template


def end_processes() -> None:
    """End the processes for runs that belong to any thread of this process."""
    with _lock:
        processes = list(_processes.values())
        _processes.clear()
    for _, process in processes:
        process.close()

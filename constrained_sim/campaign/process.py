"""Owns a process that does runs, and ends it where a run takes too long or too much memory."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import socket
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from typing import NamedTuple

from constrained_sim.campaign.child import load_all, main
from constrained_sim.campaign.leftovers import end_leftovers, mark
from constrained_sim.campaign.one_run import DIED, OUT_OF_MEMORY, TIMED_OUT, Row, memory_reason
from constrained_sim.campaign.study import Study
from constrained_sim.exceptions import RunsFailed
from constrained_sim.exit_code import cause_of_end
from constrained_sim.optional import optional
from constrained_sim.process_template import ProcessTemplate

LOOK = 0.02
"""[s] between two looks at the memory of a run."""

LOOK_AT_NODES = 0.2
"""[s] between two looks over ROS: all processes of the machine are gone through to find the nodes."""

STARTING_TIME = 60.0
"""[s] that a process may take to take in the study."""

TELLING_TIME = 1.0
"""[s] that a process has to tell where it is before it is ended."""

ENDING_TIME = 5.0
"""[s] that a process which is closed may take to notice, as while it starts."""

TRIES = 3
"""So often work is begun that ends its own process, as by a fault of a library."""

KILLED_TRIES = 10
"""So often work is begun whose process is ended by a signal from outside: who kills processes at random several times
a second meets a first run, which takes longest, in about one of ten tries."""

KILLED = (-signal.SIGKILL, -signal.SIGTERM)
"""Exit codes of processes that were ended from outside."""


class Result(NamedTuple):
    """What comes back of a run.

    Attributes:
        row: of the table.
        trajectory: the content of its file; None where it is not kept.
    """

    row: Row
    trajectory: bytes | None


class Failure(NamedTuple):
    """Of a start.

    Attributes:
        error: that says it.
        code: with which the process ended, or its template; negative of a signal.
    """

    error: RunsFailed
    code: int


class Patience:
    """Says how often work is begun again whose process died."""

    def __init__(self) -> None:
        """Begin the work for the first time."""
        self._left = {True: KILLED_TRIES, False: TRIES}

    def holds(self, code: int) -> bool:
        """Whether to begin again after the process ended with the exit `code`, negative of a signal."""
        was_killed = code in KILLED
        self._left[was_killed] -= 1
        return self._left[was_killed] > 0


class RunProcess:
    """A process that does one run after the other, started anew where one took it along.

    On Linux it ends with this process, however that ends.
    """

    def __init__(self, study: bytes) -> None:
        """Take a pickled study; the process starts with the first run."""
        self._blob = study
        self._study: Study = pickle.loads(study)
        self._pid = 0
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, run: int) -> Result:
        """Do a `run`.

        Raises:
            RunsFailed: the process cannot be started, or is closed meanwhile.
        """
        with self._lock:
            try:
                return self._run(run)
            finally:
                if self._is_closed:
                    self._end()

    def _run(self, run: int) -> Result:
        """Do a `run`, again where its process died.

        Raises:
            RunsFailed: the process cannot be started, or is closed meanwhile.
        """
        patience = Patience()
        while True:
            result, how = self._try(run)
            if result is not None:
                return result
            self._check_open()
            row, code = self._end_with_row(run, how)
            if how != DIED or not patience.holds(code):
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
        """End the process, and what it has started; a run that another thread waits for ends too."""
        self._is_closed = True
        self._kill()
        if self._lock.acquire(timeout=ENDING_TIME):
            try:
                self._end()
            finally:
                self._lock.release()

    def _kill(self) -> None:
        """Kill the process, where there is one."""
        with contextlib.suppress(ProcessLookupError):
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)

    def _end(self) -> int:
        """End the process, where it has not ended by itself, and return its exit code, negative of a signal."""
        if not self._pid:
            return 0
        self._kill()
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
        """Start the process.

        Raises:
            RunsFailed: it ends, or takes too long.
        """
        patience = Patience()
        while failure := self._try_to_start():
            self._check_open()
            if not patience.holds(failure.code):
                raise failure.error

    def _try_to_start(self) -> Failure | None:
        """Start the process; return why it did not."""
        try:
            self._launch()
        except RunsFailed as error:
            self._errors.close()
            return Failure(error, self._template.end())
        with contextlib.suppress(EOFError, ConnectionError):
            self._connection.send_bytes(self._blob)
            if self._connection.poll(STARTING_TIME) and self._connection.recv() == "ready":
                self._forget_errors()
                return None
        text = self._what_it_wrote()
        return Failure(RunsFailed("a process for runs did not start", text), self._end())

    def _check_open(self) -> None:
        """Refuse to go on once the process is closed.

        Raises:
            RunsFailed: it is.
        """
        if self._is_closed:
            raise RunsFailed("the study has ended", "")

    def _launch(self) -> None:
        """Start a process that waits for the study.

        Raises:
            RunsFailed: the template has ended.
        """
        ours, theirs = socket.socketpair()
        self._errors, self._mark = tempfile.TemporaryFile(), mark()
        self._template = template()
        with ours, theirs:
            self._pid = self._template.fork(main, [theirs.fileno(), self._errors.fileno()], self._mark)
            self._connection = Connection(ours.detach())

    def _wait(self, end: float) -> str:
        """Wait for the result of a run; return why there will be none; empty: it is there."""
        limit = self._study.memory_limit * 1e6
        look = LOOK_AT_NODES if self._study.uses_ros else LOOK
        while not self._connection.poll(look):
            if time.monotonic() > end:
                return TIMED_OUT
            if self._held() > limit:
                return OUT_OF_MEMORY
        return ""

    def _held(self) -> int:
        """Return what the process holds, and over ROS what its nodes hold with it [bytes]; 0 once it is gone."""
        held = 0
        with contextlib.suppress(Exception):  # psutil's errors of processes that end just now
            process = optional("psutil", "studies").Process(self._pid)
            held = int(process.memory_info().rss)
            if self._study.uses_ros:
                held += sum(node.memory_info().rss for node in process.children(recursive=True))
        return held

    def _end_with_row(self, run: int, how: str) -> tuple[Row, int]:
        """End the process, and return the row of a `run` that ended it, and the exit code."""
        if how != DIED:
            self._ask_where_it_is()
        text, code = self._what_it_wrote(), self._end()
        ending = f"its process was ended by {cause_of_end(code)}"
        limit = f"it took more than {self._study.time_limit:g} s"
        reason = {DIED: ending, TIMED_OUT: limit, OUT_OF_MEMORY: memory_reason(self._study)}[how]
        return Row(run, how, False, reason, text, self._study.values(run)), code

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


_template: ProcessTemplate | None = None
_lock = threading.Lock()
_processes: dict[int, tuple[str, RunProcess]] = {}
"""By the thread that they belong to, each with the name of its work."""


def do_runs(work: str, study: bytes, runs: list[int]) -> tuple[list[Result], float]:
    """Do `runs` of a pickled study in the process that belongs to this thread; return seconds too.

    This is what executors and Dask are given to do. The process serves until :func:`end_processes` hears the name of
    the `work`, or its thread does other work.

    Raises:
        RunsFailed: no process for runs can be started.
    """
    thread = threading.get_ident()
    with _lock:
        old = _processes.get(thread)
        if old is None or old[0] != work:
            _processes[thread] = (work, RunProcess(study))
        process = _processes[thread][1]
    if old is not None and old[1] is not process:
        old[1].close()
    begin = time.monotonic()
    results = [process.run(run) for run in runs]
    return results, time.monotonic() - begin


def template() -> ProcessTemplate:
    """Return the process of this one that gives birth to those that do runs, started where there is none."""
    global _template
    with _lock:
        if _template is None or not _template.is_alive:
            _template = ProcessTemplate(load_all, RunsFailed, os.environ, sys.path)
            atexit.register(_template.close)
        return _template


def end_processes(work: str) -> None:
    """End the processes that do this `work` for any thread of this process."""
    with _lock:
        ended = {thread: process for thread, (of, process) in _processes.items() if of == work}
        for thread in ended:
            del _processes[thread]
    for process in ended.values():
        process.close()

"""Owns a process that does runs, and ends it where a run takes too long or too much memory."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from constrained_sim.campaign.leftovers import MARK, end_leftovers, mark
from constrained_sim.campaign.one_run import DIED, OUT_OF_MEMORY, TIMED_OUT, Row, memory_reason
from constrained_sim.campaign.study import Study
from constrained_sim.exceptions import RunsFailed
from constrained_sim.optional import optional

LOOK = 0.02
"""[s] between two looks at the memory of a run."""

STARTING_TIME = 600.0
"""[s] that a process may take to start: the first one on a machine compiles kernels."""

TELLING_TIME = 1.0
"""[s] that a process has to tell where it is before it is ended."""

TRIES = 3
"""So often a run is begun whose process somebody else killed: who kills processes at random rarely meets a run thrice."""

PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); "
    "from constrained_sim.campaign.child import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)


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

    It belongs to the thread that made it: on Linux it ends with that thread, and with this process.
    """

    def __init__(self, study: bytes) -> None:
        """Take a pickled study; the process starts with the first run."""
        self._blob = study
        self._study: Study = pickle.loads(study)
        self._memory: Any = None
        self._popen: subprocess.Popen[bytes] | None = None

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
        if self._popen is None or self._popen.poll() is not None:
            self.close()
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
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()
            self._connection.close()
            self._errors.close()
            end_leftovers(self._mark)
            self._popen = None

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
        self._errors = tempfile.TemporaryFile()
        self._mark = mark()
        environment = os.environ | {MARK: self._mark, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        words = [PROGRAM, str(theirs.fileno()), str(os.getpid()), json.dumps(sys.path)]
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-c", *words],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the process that does the study
            )
        self._connection = Connection(ours.detach())
        self._memory = optional("psutil", "studies").Process(self._popen.pid)

    def _wait(self, end: float) -> str:
        """Wait for the result of a run; return why there will be none; empty: it is there."""
        limit = self._study.memory_limit * 1e6
        while not self._connection.poll(LOOK):
            if time.monotonic() > end:
                return TIMED_OUT
            if self._popen is not None and self._popen.poll() is not None:
                return "" if self._connection.poll(0) else DIED
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
        if how == DIED:
            code = 0 if self._popen is None else self._popen.wait()
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            reason = f"its process was ended by {name}"
        else:
            self._ask_where_it_is()
            limit = f"it took more than {self._study.time_limit:g} s"
            reason = limit if how == TIMED_OUT else memory_reason(self._study)
        text = self._what_it_wrote()
        self.close()
        return Row(run, how, False, reason, text, self._study.values(run))

    def _ask_where_it_is(self) -> None:
        """Let the process write its traceback, which it does in compiled code too."""
        if self._popen is None:
            return
        self._popen.send_signal(signal.SIGUSR1)
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


def end_processes() -> None:
    """End the processes for runs that belong to any thread of this process."""
    with _lock:
        processes = list(_processes.values())
        _processes.clear()
    for _, process in processes:
        process.close()

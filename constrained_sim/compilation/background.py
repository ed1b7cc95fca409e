"""A process that compiles all kernels, while this one runs their Python source: its first results wait for no compiler.

It goes on after this process has ended: a short program would leave nothing for the next one.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: there kernels are compiled when they are called
    fcntl = None  # type: ignore[assignment]

from constrained_sim.compilation.machine_code import writable_folder
from constrained_sim.compilation.python_process import python_words

FEW = 10
"""Kernels that are not compiled yet: so many are compiled at once, in some seconds."""

LOCK = "background.lock"
"""File in a folder of machine code that is locked while a process in the background compiles into it."""

LOOK = 0.2
"""Seconds from one look at the lock to the next."""

PATIENCE = 20.0
"""Seconds of processor time that this process runs sources: longer simulations end sooner if they wait."""

PROGRAM = (
    "import os; os._exit(0) if os.fork() else os.nice(10)\n"
    "from constrained_sim.compilation.build import compile_kernels; compile_kernels()"
)
"""It is nobody's child, so that nobody has to wait for its end, and leaves the processors to others."""


class Background:
    """Begun once at most; who comes while that of another process is at work shares it.

    Attributes:
        is_wanted: whether this process may begin one, and run Python source meanwhile.
    """

    def __init__(self) -> None:
        """Begin nothing yet."""
        self.is_wanted = True
        self._lock: Path | None = None
        self._next_look = self._begin = 0.0

    def begin(self, missing: int) -> bool:
        """Begin it where it is of use; return whether it is at work.

        Args:
            missing: number of kernels without which this process cannot go on.
        """
        if not self.is_wanted or missing <= FEW or not sys.executable or not fcntl:
            return False
        folder = writable_folder()
        if folder is None:
            return False
        self.is_wanted = False  # a second time: what the first has not compiled is compiled when it is called
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            self._lock, self._begin = _compiled_into(folder), time.process_time()
            logging.getLogger("constrained_sim").warning(
                "the kernels of constrained_sim are being compiled in the background, once on this machine: for some "
                "minutes, also after this process has ended. Until then Python runs their source: more slowly, and the "
                "same to rounding. `constrained_sim compile` waits for them."
            )
        return self._lock is not None

    def compile_here(self) -> None:
        """From now on compile kernels when they are called: for who needs the speed, or the same bits."""
        self.is_wanted, self._lock = False, None

    def is_at_work(self) -> bool:
        """Whether it is still compiling."""
        if self._lock is None:
            return False
        now = time.monotonic()
        if now < self._next_look:
            return True
        self._next_look = now + LOOK
        if not _is_locked(self._lock):
            self._lock = None
        return self._lock is not None

    def is_overdue(self) -> bool:
        """Whether this process has run sources for long."""
        return time.process_time() - self._begin > PATIENCE


def _compiled_into(folder: Path) -> Path:
    """Begin a process that compiles into `folder`, unless there is one; return the file that it locks."""
    path = folder / LOCK
    with path.open("w") as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        null = subprocess.DEVNULL
        subprocess.run(
            python_words(PROGRAM),
            stdin=null,
            stdout=null,
            stderr=null,
            pass_fds=[lock.fileno()],
            start_new_session=True,
            check=True,
        )
    return path


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the lock file `path`."""
    try:
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a folder that is gone
        return path.exists()
    return False


BACKGROUND = Background()

"""A process that compiles all kernels, while this one runs their Python source: its first results wait for no compiler.

It goes on after this process has ended: a short program would leave nothing for the next one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from constrained_sim.compilation.detached_process import is_taken
from constrained_sim.compilation.machine_code import writable_folder
from constrained_sim.compilation.python_process import fcntl, python_words

FEW = 10
"""Kernels that are not compiled yet: up to so many are compiled right away, in some seconds."""

LOCK = "background.lock"
"""File in a folder of machine code that is locked while all kernels are compiled into it; it tells what failed."""

LOOK = 0.2
"""Seconds from one look for machine code to the next."""

PATIENCE = 20.0
"""Seconds of processor time that this process runs sources: longer simulations end sooner if they wait."""

START = 30.0
"""Seconds within which the process has to begin, on a machine that is busy with other things."""

PROGRAM = (
    "from constrained_sim.compilation.detached_process import detached; lock = detached(sys.argv[2])\n"
    "if lock: from constrained_sim.precompile import compile_kernels; compile_kernels()"
)
"""Ends at once, and leaves a process that compiles."""


class Background:
    """Begun once at most; who comes while that of another process is at work shares it.

    Attributes:
        is_wanted: whether this process may begin one, and run Python source meanwhile.
    """

    def __init__(self) -> None:
        """Begin nothing yet."""
        self.is_wanted = True
        self._one_thread = threading.Lock()
        self._lock: Path | None = None
        self._next_look = self._begin = 0.0

    def begin(self, missing: int) -> bool:
        """Begin it where it is of use; return whether it is at work.

        Args:
            missing: number of kernels without which this process cannot go on.
        """
        if missing <= FEW or not sys.executable or getattr(sys, "frozen", False) or not fcntl:
            return False
        with self._one_thread:
            folder = writable_folder() if self.is_wanted else None
            if folder is None:
                return self._lock is not None
            self.is_wanted = False  # a second time: what the first has not compiled is compiled when it is called
            path, null = folder / LOCK, subprocess.DEVNULL
            words = [*python_words(PROGRAM), str(path)]
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(words, stdin=null, stdout=null, stderr=null, timeout=START, check=True)
                self._begin = time.process_time()
                self._lock = path
                logging.getLogger("constrained_sim").warning(
                    "the kernels of constrained_sim are being compiled in the background, once on this machine: for "
                    "some minutes, also after this process has ended. Until then Python does the same: more slowly, "
                    "not to the last digit. `constrained_sim compile` finishes them."
                )
            return self._lock is not None

    def compile_here(self) -> None:
        """From now on compile kernels when they are called: for who needs the speed, or the same bits."""
        self.is_wanted, self._lock = False, None

    def is_at_work(self) -> bool:
        """Whether it is still compiling."""
        path = self._lock
        if path is None:
            return False
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            if not _is_locked(path):
                self._lock = None
        return self._lock is not None

    def is_overdue(self) -> bool:
        """Whether this process has run sources for long."""
        return self._lock is not None and time.process_time() - self._begin > PATIENCE

    def begin_anew(self) -> None:
        """Count this process's time from its own beginning, that of a fork."""
        self._begin = 0.0


@contextlib.contextmanager
def no_other(folder: Path | None) -> Iterator[None]:
    """Let no process begin to compile all kernels into `folder` in the background meanwhile."""
    with contextlib.ExitStack() as stack:
        if folder is not None and fcntl:
            with contextlib.suppress(OSError):
                is_taken(stack.enter_context((folder / LOCK).open("a")).fileno())
        yield


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the lock file `path`."""
    try:
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a folder that is gone
        return False
    return False


BACKGROUND = Background()
if fcntl:
    os.register_at_fork(after_in_child=BACKGROUND.begin_anew)

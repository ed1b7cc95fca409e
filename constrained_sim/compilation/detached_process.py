"""A process that goes on after the one that began it; nothing but the standard library, so that it begins at once."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import IO

from constrained_sim.compilation.python_process import fcntl


def detached(path: str) -> IO[str] | None:
    """Go on as a process for whose end nobody has to wait, and which leaves the processors to others.

    Returns:
        The lock file `path`, locked and for errors; None in the process that ends, or where another one holds it.
    """
    lock = Path(path).open("a")
    if not is_taken(lock.fileno()) or os.fork():
        lock.close()
        return None
    os.setsid()
    os.nice(10)
    os.dup2(lock.fileno(), sys.stderr.fileno())
    return lock


def is_taken(file: int) -> bool:
    """Lock an open file, unless another process holds it for longer than a look."""
    for _ in range(5):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.02)
    return False

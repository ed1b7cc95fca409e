"""Finds and ends what a run has started and left behind: ROS nodes in sessions of their own."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable

from constrained_sim.optional import optional
from constrained_sim.process_template import MARK

SAME_TIME = 2.0
"""[s] by which processes may differ in when one began: of its own start, the system knows the second only."""

_count = itertools.count()


def mark() -> str:
    """Return a new mark, which tells the owner: this process."""
    psutil = optional("psutil", "studies")
    return f"{os.getpid()}/{psutil.Process().create_time()}/{next(_count)}"


def end_leftovers(of: str) -> None:
    """Kill all processes with the mark `of`."""
    _kill(lambda found: found == of)


def end_orphans() -> None:
    """Kill all processes with a mark whose owner has ended, as after a crash."""
    psutil = optional("psutil", "studies")

    def is_orphan(found: str) -> bool:
        pid, created, _ = found.split("/")
        try:
            return bool(abs(psutil.Process(int(pid)).create_time() - float(created)) > SAME_TIME)
        except psutil.NoSuchProcess:
            return True

    _kill(is_orphan)


def _kill(is_meant: Callable[[str], bool]) -> None:
    """Kill the user's processes whose mark is meant."""
    psutil = optional("psutil", "studies")
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            if process.pid == os.getpid() or process.uids().real != os.getuid():
                continue
            found = process.environ().get(MARK)
            if found and is_meant(found):
                process.kill()

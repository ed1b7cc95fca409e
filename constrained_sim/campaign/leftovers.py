"""Finds and ends what a run has started and left behind: ROS nodes in sessions of their own."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable

from constrained_sim.optional import optional
from constrained_sim.process_template import MARK

SAME_TIME = 2.0
"""[s] by which processes may differ in when one began: of its own start, the system knows the second only."""

ENDING_TIME = 10.0
"""[s] that killed processes may take to end; one that holds much memory gives it back first."""

LOOK = 0.02
"""[s] between two looks for those that have not ended."""

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
    """Kill the user's processes whose mark is meant, until there is none: what is killed takes time to end."""
    end = time.monotonic() + ENDING_TIME
    while _kill_those_there_are(is_meant) and time.monotonic() < end:
        time.sleep(LOOK)


def _kill_those_there_are(is_meant: Callable[[str], bool]) -> bool:
    """Kill the user's processes whose mark is meant; return whether there was one."""
    psutil = optional("psutil", "studies")
    found_one = False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            if process.pid == os.getpid() or process.uids().real != os.getuid():
                continue
            found = process.environ().get(MARK)
            if found and is_meant(found):
                found_one = True
                process.kill()
    return found_one

"""A second process that compiles what a simulation needs last, while the first compiles what it needs now.

Numba compiles one function at a time in a process. What either has compiled the other finds on the disk. The second
ends with the first, however that ends: then nobody holds the other side of its standard input any more.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from typing import NoReturn

from constrained_sim.compilation.machine_code import writable_folder
from constrained_sim.compilation.python_process import fcntl, processors, python_words

MANY = 50
"""Kernels that are not compiled yet: fewer are done by the time that another process has loaded the package."""

PROGRAM = (
    "from constrained_sim.compilation.second_process import end_with_the_first; end_with_the_first(); "
    "from constrained_sim.precompile import compile_from_the_end; compile_from_the_end()"
)

LOCK = "second.lock"
"""File in a folder of machine code that is locked while a second process compiles into it."""


class SecondProcess:
    """Begun once at most; it ends with the first one.

    Attributes:
        is_wanted: whether this process may begin one.
    """

    def __init__(self) -> None:
        """Begin nothing yet."""
        self.is_wanted = True
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id; None where there is none."""
        return None if self._popen is None else self._popen.pid

    def begin(self, missing: int) -> None:
        """Begin it where it is of use.

        Args:
            missing: number of kernels that are to be compiled here, as far as is known.
        """
        if not self.is_wanted or missing < MANY or processors() < 2 or not sys.executable or not fcntl:
            return
        folder = writable_folder()
        if folder is None:
            return
        self.is_wanted = False
        null = subprocess.DEVNULL
        # Without it everything takes longer; so it does where another process of the machine has begun one.
        with contextlib.suppress(OSError), (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._popen = subprocess.Popen(
                python_words(PROGRAM), stdin=subprocess.PIPE, stdout=null, stderr=null, pass_fds=[lock.fileno()]
            )
            atexit.register(self._end, os.getpid())

    def _end(self, owner: int) -> None:
        """End it, unless this is a fork of its `owner`; what it has not finished is compiled when it is needed."""
        if self._popen is not None and os.getpid() == owner:
            self._popen.terminate()
            self._popen.wait()


def end_with_the_first() -> None:
    """Let this process, the second, end when the first one does."""

    def wait() -> NoReturn:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


SECOND = SecondProcess()

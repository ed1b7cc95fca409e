"""Says that kernels are being compiled, and how many of how many: who waits knows for what."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator

from constrained_sim.compilation.compiled_function import CompiledFunction

Report = Callable[[int, int, str], None]
"""Is told how many kernels have been compiled, of how many, and which one comes next ("" when there is none)."""

SILENCE = 5.0
"""Seconds between two lines where there is no terminal whose line could be written over."""


class Progress:
    """Counts the kernels that are compiled in this process.

    Attributes:
        report: who is told.
        done: how many there were.
        total: how many there are with those that are known to be needed.
    """

    def __init__(self) -> None:
        """Count nothing yet, and tell the user."""
        self.report: Report = Announcement()
        self.done = self.total = self._depth = 0

    @contextlib.contextmanager
    def told_to(self, report: Report) -> Iterator[None]:
        """Tell `report` meanwhile, beside whoever is told otherwise."""
        before = self.report

        def both(done: int, total: int, name: str) -> None:
            report(done, total, name)
            before(done, total, name)

        self.report = both
        try:
            yield
        finally:
            self.report = before

    @contextlib.contextmanager
    def of(self, kernel: CompiledFunction) -> Iterator[None]:
        """Count `kernel`, compiled meanwhile."""
        if not self._depth:
            self.total = self.done + len(not_compiled(kernel))
        self._depth += 1
        self.report(self.done, max(self.total, self.done + 1), kernel.name)
        try:
            yield
        finally:
            self.done += 1
            self._depth -= 1
            if not self._depth:
                self.report(self.done, self.done, "")


class Announcement:
    """Tells on the standard error stream: one line that changes in a terminal, else a line now and then by logging."""

    def __init__(self) -> None:
        """Say nothing yet."""
        self._last = -SILENCE

    def __call__(self, done: int, total: int, name: str) -> None:
        """Say it."""
        text = f"compiling kernels, once on this machine: {done + bool(name)} of {total}"
        if sys.stderr.isatty():
            bar = "#" * (20 * done // total)
            end = f" ({name})" if name else "\n"
            sys.stderr.write(f"\r\033[Kconstrained_sim: {text} [{bar:<20}]{end}")
            sys.stderr.flush()
        elif name and time.monotonic() - self._last >= SILENCE:
            self._last = time.monotonic()
            logging.getLogger("constrained_sim").warning("%s (%s)", text, name)


def not_compiled(kernel: CompiledFunction) -> set[CompiledFunction]:
    """Return `kernel`, and all that it calls, without those that have machine code."""
    found: set[CompiledFunction] = set()
    todo = [kernel]
    while todo:
        this = todo.pop()
        if this not in found and not this.is_kept:
            found.add(this)
            todo += this.callees()
    return found


PROGRESS = Progress()

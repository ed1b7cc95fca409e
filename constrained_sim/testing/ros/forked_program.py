"""Programs of this package, forked from a process that has loaded all they need: they start in a quarter of the time.

A fork is run by the test's own Python. It differs from a program that is started by itself in its command line in the
list of processes, and in that it is killed when the process ends that the test runs in.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from constrained_sim.exceptions import NoAnswer
from constrained_sim.process_template import MARK, ProcessTemplate
from constrained_sim.testing.program import AT_START, load_node, read_at_start, run_program

MOST = 2
"""Templates of one process, each for other variables: each holds 200 MB."""

_templates: dict[frozenset[tuple[str, str]], ProcessTemplate] = {}
"""By the environment that Python and libraries read when they are loaded."""


class ForkedProgram:
    """What :class:`subprocess.Popen` offers of a Python program.

    Attributes:
        args: its command.
        pid: process id, and id of its session.
        returncode: exit code, negative of a signal; None until the end is known.
    """

    def __init__(
        self,
        template: ProcessTemplate,
        command: list[str],
        environment: Mapping[str, str],
        cwd: Path,
        output: list[int],
    ) -> None:
        """Start it.

        Args:
            template: from which it is forked.
            command: file of the program, and arguments.
            environment: its variables.
            cwd: folder to run in.
            output: files of its standard output and error stream.

        Raises:
            NoAnswer: the template has ended.
        """
        self.args, self._template = command, template
        self.returncode: int | None = None
        self.pid = template.fork(run_program, output, command, read_at_start(environment), str(cwd))
        self._end = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` [s].
        """
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, where it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it by force."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        """Return the exit code; None where it still runs after `timeout` [s]."""
        if self.returncode is None:
            look = select.poll()
            look.register(self._end, select.POLLIN)
            if look.poll(None if timeout is None else 1000.0 * timeout):
                os.close(self._end)
                try:
                    self.returncode = self._template.ending(self.pid)
                except NoAnswer:  # the template ended, and took it along
                    self.returncode = -signal.SIGKILL
        return self.returncode


def template_for(environment: Mapping[str, str]) -> ProcessTemplate | None:
    """Return what programs with this environment are forked from, started at the first call; None: start them alone.

    So it is in a campaign, where the memory of each process counts. So it is where there are templates of other
    environments already, and with a Python that cannot wait for a process that is not its child.
    """
    if MARK in environment or not hasattr(os, "pidfd_open"):
        return None
    key = frozenset(item for item in environment.items() if not item[0].startswith(AT_START))
    old = _templates.get(key)
    if old is not None and old.is_alive:
        return old
    if old is None and len(_templates) == MOST:
        return None
    if old is not None:
        old.close()
    _templates[key] = template = ProcessTemplate(load_node, _no_answer, environment)
    atexit.register(template.close)
    return template


def _no_answer(how: str, stderr: str) -> NoAnswer:
    return NoAnswer(f"{how}; it wrote: {stderr}")

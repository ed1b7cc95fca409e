"""Processes that end with their test, with all that they have started."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from constrained_sim.exceptions import NoAnswer
from constrained_sim.exit_code import how_it_ended
from constrained_sim.testing.ros.forked_program import ForkedProgram, template_for

PATIENCE = 5.0
"""[s] that a process has to end by itself after SIGINT."""

_started = itertools.count()


def package_executable(name: str) -> Path:
    """Return the path of an installed executable of this package."""
    return Path(get_package_prefix("constrained_sim")) / "lib" / "constrained_sim" / name


class Process:
    """A command in a session (process group) of its own.

    Attributes:
        name: of the executable.
        pid: process id, and id of the session.
        popen: the process; one of this package's programs is a fork, see :mod:`.forked_program`.
    """

    def __init__(
        self, folder: Path, domain: int, command: Sequence[str | os.PathLike[str]], cwd: Path | None = None
    ) -> None:
        """Start it.

        Args:
            folder: for the files that its output goes to.
            domain: DDS domain.
            command: executable and arguments.
            cwd: folder to run in; None: the present one.

        Raises:
            OSError: no such executable.
        """
        self.name = Path(command[0]).name
        number = next(_started)
        self._out, self._err = (folder / f"{self.name}_{number}.{end}" for end in ("out", "err"))
        environment = os.environ | {"ROS_DOMAIN_ID": str(domain), "PYTHONUNBUFFERED": "1"}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.popen = _start([os.fspath(word) for word in command], environment, cwd or Path.cwd(), out, err)
        self.pid = self.popen.pid

    @property
    def stderr(self) -> str:
        """What it wrote to standard error so far."""
        return self._err.read_text(errors="replace")

    @property
    def complaints(self) -> str:
        """What it wrote to standard error so far, without what ROS logs for information."""
        return "".join(line for line in self.stderr.splitlines(keepends=True) if not line.startswith("[INFO]"))

    @property
    def ending(self) -> str:
        """How it ended, e.g. ``"was killed by SIGKILL"``; empty while it runs."""
        code = self.popen.poll()
        return "" if code is None else how_it_ended(code)

    def wait(self, timeout: float) -> int:
        """Return the exit code.

        Raises:
            NoAnswer: it does not end within `timeout` [s].
        """
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"{self.name} is still running after {timeout} s; stderr: {self.stderr}") from None

    def family(self) -> list[int]:
        """Return the living processes that it started, and itself while it lives."""
        alive = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(") ")[2].split()[:4]
            except (OSError, ValueError):
                continue
            if int(session) == self.pid and state != "Z":
                alive.append(int(entry.name))
        return alive

    def wait_for_family(self, timeout: float = 10.0) -> None:
        """Wait until nothing that it started is left.

        Raises:
            NoAnswer: something is left after `timeout` [s].
        """
        end = time.monotonic() + timeout
        while left := self.family():
            if time.monotonic() > end:
                raise NoAnswer(f"processes {left} of {self.name} are left over; stderr: {self.stderr}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it: gently, so that it can finish its work, then by force, with all that it started."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGINT)
            try:
                self.popen.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                pass
        if self.family():
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait(PATIENCE)


def _start(
    command: list[str], environment: dict[str, str], cwd: Path, out: IO[bytes], err: IO[bytes]
) -> subprocess.Popen[bytes] | ForkedProgram:
    """Start a command; its output goes to `out` and `err`.

    Raises:
        OSError: no such executable.
    """
    if _is_ours(Path(command[0])) and (template := template_for(environment)):
        with contextlib.suppress(NoAnswer):  # what keeps the template from starting is for the program itself to say
            return ForkedProgram(template, command, environment, cwd, [out.fileno(), err.fileno()])
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=cwd, start_new_session=True
    )


def _is_ours(file: Path) -> bool:
    """Return whether a file is a Python program of this package."""
    try:
        folder = package_executable("")
    except PackageNotFoundError:
        return False
    if file.parent != folder or not file.exists():
        return False
    with file.open("rb") as opened:
        return b"python" in opened.readline()

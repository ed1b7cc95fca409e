"""A browser without a window, which draws pages where there is no display."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from constrained_sim.exceptions import MissingProgram

PROGRAMS = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"
"""Names of Chromium and its relatives, in the order of preference."""

ARGUMENTS = (
    "--headless=new",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--no-first-run",
)
"""Draw WebGL on the processor, and as fast as asked although nobody looks."""


def browser_program() -> str:
    """Return the path of Chromium.

    Raises:
        MissingProgram: there is none.
    """
    for name in PROGRAMS:
        if path := shutil.which(name):
            return path
    raise MissingProgram("chromium", "drawing a page", "sudo apt install chromium")


def browser_arguments() -> list[str]:
    """Return how Chromium is started; its sandbox refuses root."""
    return [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


class Browser:
    """Chromium without a window, at one page; a context manager that ends it."""

    def __init__(self, url: str, width: int, height: int) -> None:
        """Open `url` in a window of this size [pixels].

        Raises:
            MissingProgram: there is no Chromium.
        """
        self._profile = Path(tempfile.mkdtemp(prefix="constrained_sim_"))
        command = [browser_program(), *browser_arguments(), f"--window-size={width},{height}"]
        command += [f"--user-data-dir={self._profile}", url]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)

    def __enter__(self) -> Browser:
        """Return the browser."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and remove what it has written."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

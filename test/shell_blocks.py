"""Runs the commands of the pages for a shell, each for a short time; what no test can run is listed with the reason."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mechanisms import ROOT

from constrained_sim.cli.app import main
from constrained_sim.exceptions import MissingProgram
from constrained_sim.viewer.browser import browser_program

SECONDS = "0.2"
"""[s] What a command simulates or films in place of what its page says."""

FILES = {
    "leg.yaml": ROOT / "config" / "leg.yaml",
    "my_robot.urdf": ROOT / "urdf" / "leg.urdf",
}
"""What a reader has in his folder, by its name on the pages."""

NOT_RUN = {
    "sudo": "needs root and the network",
    "git clone": "needs the network",
    "pip install": "needs the network",
    "rosdep": "needs root and the network",
    "colcon": "builds a workspace, which takes minutes; `make build` takes the same CMakeLists.txt",
    "cd": "the folders of a workspace",
    ".": "activates an environment in the shell",
    "python3 -m venv": "an environment for what pip would install",
    "peers/bin/": "simulators that pip would install",
    "make test": "runs this test",
    "make test-processors": "runs the tests",
    "make docs": "needs the network; CI runs it",
    "make bench-campaign": "takes an hour",
    "scripts/run pytest test/test_solvers.py": "a test of its own",
    "scripts/run pre-commit install": "changes the repository",
    "scripts/run python benchmarks/choices.py": "takes minutes",
    "scripts/run python benchmarks/bringup.py": "takes minutes; test_bringup_commands.py does it with two robots",
    "scripts/run python examples/gallery/": "test_gallery.py runs all scripts, with little to draw",
    "scripts/run constrained_sim film stand": "takes seconds; the film before it is made",
    "ros2 run foxglove_bridge": "another package",
    "ros2 run plotjuggler": "another package",
    "ros2 run controller_manager": "another package",
    "ros2 run constrained_sim ros2_control_node": "test_ros2_control.py runs it, where ros2_control is installed",
    "ros2 topic pub --once /joint_trajectory_controller/joint_trajectory": "a topic of a controller",
    "ros2 topic pub /effort_controller/commands": "a topic of a controller",
}
"""Beginnings of commands that no test runs, with the reason. Targets and scripts that they name exist."""

WITH_ROS = ("ros2 launch", "ros2 run constrained_sim", "ros2 service call", "ros2 topic", "ros2 lifecycle")
"""Beginnings of commands that test/ros runs, beside `make ROBOT` and nodes that a page has written."""


def shell_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a block for a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word not in (";", "&", "&&"):
                words.append(word)
            elif words:
                yield words
                words = []


def listed(words: list[str]) -> str:
    """Return the entry of :data:`NOT_RUN` that a command begins with; empty if a test runs it."""
    line = " ".join(words)
    return max((begin for begin in NOT_RUN if _begins(line, begin)), key=len, default="")


def needs_ros(words: list[str]) -> bool:
    """Tell whether test/ros runs a command."""
    if listed(words):
        return False
    is_node = words[0] == "python3" and words[1].endswith(".py")
    return words[0] == "make" or is_node or any(_begins(" ".join(words), begin) for begin in WITH_ROS)


def _begins(line: str, begin: str) -> bool:
    return line == begin or line.startswith(begin if begin.endswith("/") else f"{begin} ")


def provide_files() -> None:
    """Put what a reader has into the current folder."""
    for name, source in FILES.items():
        shutil.copy(source, name)


def run_here(words: list[str], where: str) -> None:
    """Run a command that needs no ROS, and that a test can run; of others see that what they name exists."""
    if listed(words):
        assert names_what_exists(words), f"{where}: {' '.join(words)}"
    elif not needs_ros(words) and has_browser(words):
        printed, code = run_command(shortened(words[1:] if words[0] == "scripts/run" else words))
        assert code == 0, f"{where}: {' '.join(words)}\nprints\n{printed}"


def names_what_exists(words: list[str]) -> bool:
    """Tell whether the targets of make, and the scripts of the repository, that a command names are there."""
    if words[0] == "make":
        return subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, check=False).returncode == 0
    return all((ROOT / word).exists() for word in words if word.startswith(("benchmarks/", "examples/", "test/")))


def has_browser(words: list[str]) -> bool:
    """Tell whether the browser is there, or the command needs none."""
    try:
        return "film" not in words or bool(browser_program())
    except MissingProgram:
        return False


def shortened(words: list[str]) -> list[str]:
    """Return a command with a short duration in the place of its own."""
    return [SECONDS if before == "--duration" else word for before, word in zip(["", *words], words, strict=False)]


def run_command(words: list[str]) -> tuple[str, int]:
    """Run a command of the package in this process, or Python's in another; return what it printed, and its exit code.

    Python looks for modules in the current folder, and for scripts of the repository there.
    """
    if words[0] == "constrained_sim":
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                try:
                    main()
                except SystemExit as end:
                    return printed.getvalue(), int(end.code or 0)
        return printed.getvalue(), 0
    arguments = {"pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}.get(words[0], [])
    words = [str(ROOT / word) if word.startswith(("benchmarks/", "examples/")) else word for word in words[1:]]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, *arguments, *words]
    done = subprocess.run(command, env=environment, cwd=Path.cwd(), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode

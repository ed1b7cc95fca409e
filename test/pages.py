"""Runs the blocks of a page of the documentation, in the order of a reader."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from mechanisms import ROOT

from constrained_sim.cli.app import main
from constrained_sim.config import read_config
from constrained_sim.parameter_file import load_parameters

BLOCK = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
CAPTION = re.compile(r"\A:caption: (\S+)\n\n")
SECTIONS = "robot", "initial", "contacts", "constraints", "scene", "collisions", "sensors"


class Block(NamedTuple):
    """A fenced block: its language, the file that its caption names, its text, and its line on the page."""

    language: str
    file: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        info, body = found[2].strip(), found[3]
        caption = CAPTION.match(body)
        language = info.removeprefix("{code-block}").strip()
        yield Block(
            language, caption[1] if caption else "", CAPTION.sub("", body), text[: found.start()].count("\n") + 1
        )


def run_page(page: Path) -> None:
    """Run every block in the current folder, whose modules can be imported meanwhile."""
    loaded = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path.cwd()))
        try:
            _run_blocks(page)
        finally:
            for name in set(sys.modules) - loaded:
                if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == Path.cwd():
                    del sys.modules[name]


def _run_blocks(page: Path) -> None:
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec", dont_inherit=True), names)
        elif block.language == "console":
            run_console(block.text, where)
        elif block.language == "bash":
            check_shell(block.text, where)
        elif block.language == "yaml":
            check_yaml(block.text)
        else:
            assert block.language in ("text", "{toctree}"), f"{where}: nobody runs {block.language!r}"


def run_console(text: str, where: str) -> None:
    """Run each line that begins with ``$``, and compare what it prints with the lines below; ``...`` is anything."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        printed = run_command(shlex.split(command, comments=True))
        pattern = re.escape(expected.strip()).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{where}: {command}\nprints\n{printed}"


def run_command(words: list[str]) -> str:
    """Run a command of the package in this process, or Python's in another; return what it printed."""
    if words[0] == "constrained_sim":
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
            patch.setattr(sys, "argv", words)
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                main()
        return printed.getvalue()
    arguments = {"pytest": ["-m", "pytest", "-p", "no:cacheprovider"], "python": []}[words[0]]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, *arguments, *words[1:]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def check_yaml(text: str) -> None:
    """Read a part of a parameter file in the place of that of the leg; a workflow of a CI is looked at elsewhere."""
    given = yaml.safe_load(text)
    if "jobs" in given:
        check_workflow(given)
        return
    parameters = {} if {"robot", "initial"} <= set(given) else load_parameters(ROOT / "config" / "leg.yaml")
    read_config({**parameters, **given}, ROOT / "config")


def check_workflow(given: dict[str, Any]) -> None:
    """Check the steps of each job: an action, or a command that exists."""
    for job in given["jobs"].values():
        for step in job["steps"]:
            words = shlex.split(step.get("run", ""))
            assert ("uses" in step) != bool(words), step
            if words and words[0].startswith("constrained_sim/"):
                assert (ROOT / words[0].removeprefix("constrained_sim/")).exists()
            else:
                assert not words or words[0] in {"pip", "pytest"}, step


def check_shell(text: str, where: str) -> None:
    """Check each command that needs ROS or a fresh machine: what it names exists. Simulations without ROS are run."""
    for words in shell_commands(text):
        assert is_known(words), f"{where}: {' '.join(words)}"
        if words[:3] == ["scripts/run", "constrained_sim", "run"]:
            assert "simulated in" in run_command(words[1:]), f"{where}: {' '.join(words)}"


def shell_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a block for a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        for command in re.split(r"&&|;", line.partition("  #")[0]):
            if words := shlex.split(command, comments=True):
                yield words


def is_known(words: list[str]) -> bool:
    """Tell whether what a command names is there."""
    if words[0] == "make":
        return all(f"\n{word}:" in "\n" + _targets() or "=" in word for word in words[1:])
    if words[:2] == ["ros2", "launch"]:
        return _is_launch(words[3], words[4:])
    if words[:3] == ["ros2", "service", "call"]:
        package, _, kind = words[4].split("/")
        return package != "constrained_sim" or _takes(kind, yaml.safe_load(words[5]))
    if words[:2] == ["ros2", "run"]:
        return words[2] != "constrained_sim" or words[3] in (ROOT / "CMakeLists.txt").read_text()
    if words[0] in ("scripts/run", "peers/bin/python"):
        return words[1] != "python" or (ROOT / words[2]).exists()
    return words[0] in {"ros2", "cd", "git", "rosdep", "pip", "colcon", ".", "sudo", "python3", "peers/bin/pip"}


def _targets() -> str:
    """Return the targets of the Makefile, each with a colon, one a line."""
    heads = re.findall(r"^([a-z_ -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return "\n".join(f"{target}:" for head in heads for target in head.split())


def _is_launch(file: str, arguments: list[str]) -> bool:
    """Tell whether a launch file is there, and has the arguments."""
    declared = (ROOT / "constrained_sim" / "ros" / "launch_arguments.py").read_text()
    return (ROOT / "launch" / file).exists() and all(f'"{a.partition(":=")[0]}"' in declared for a in arguments)


def _takes(kind: str, request: dict[str, object]) -> bool:
    """Tell whether a service has all fields of a request."""
    fields = (ROOT / "srv" / f"{kind}.srv").read_text().partition("---")[0]
    return all(re.search(rf"^\S+ {name}\b", fields, re.MULTILINE) for name in request)

"""Runs the blocks of a page of the documentation, in the order of a reader."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import yaml
from mechanisms import ROOT
from shell_blocks import provide_files, run_command, run_here, shell_commands

from constrained_sim.config import read_config
from constrained_sim.parameter_file import load_parameters

BLOCK = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
CAPTION = re.compile(r"\A:caption: (\S+)\n\n")
ALL_PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if not {"generated", "_build"} & set(page.parts)
)
"""README and documentation, without what `make docs` writes."""


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


def page_commands(page: Path) -> list[list[str]]:
    """Return the words of each command for a shell on a page."""
    return [words for block in blocks(page) if block.language == "bash" for words in shell_commands(block.text)]


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
    provide_files()
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
            for words in shell_commands(block.text):
                run_here(words, where)
        elif block.language == "yaml":
            check_yaml(block.text)
        elif block.language == "xml":
            ElementTree.fromstring(block.text)
        else:
            assert block.language in ("text", "{toctree}"), f"{where}: nobody runs {block.language!r}"


def run_console(text: str, where: str) -> None:
    """Run each line that begins with ``$``, and compare what it prints with the lines below; ``...`` is anything."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        printed, _ = run_command(shlex.split(command, comments=True))
        pattern = re.escape(expected.strip()).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{where}: {command}\nprints\n{printed}"


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

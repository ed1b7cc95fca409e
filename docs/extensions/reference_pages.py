"""Writes docs/reference/generated/ and the pictures of the theory before each build, from the code itself."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import api_pages
import command_pages
import interface_pages
import parameter_pages
import theory_figures

FOLDER = Path(__file__).resolve().parents[1] / "reference" / "generated"

FIELD = type(NamedTuple("Pair", [("first", int)]).first)
BEFORE_NAPOLEON = 400
"""Priority of a handler that is called before that of sphinx.ext.napoleon, which has the default one, 500."""

PAGES: dict[str, Callable[[], str]] = {
    **api_pages.PAGES,
    "messages.md": interface_pages.messages,
    "services.md": interface_pages.services,
    "node.md": parameter_pages.node,
    "parameter_file.md": parameter_pages.parameter_file,
    "commands.md": command_pages.commands,
}


def write(folder: Path, texts: Mapping[str, Callable[[], str]]) -> Iterator[Path]:
    """Write every file whose text has changed, and yield it."""
    folder.mkdir(exist_ok=True)
    for name, make in texts.items():
        file, text = folder / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        yield file


def skip_field(app, what, name, member, skip, options) -> bool | None:
    """Leave out the fields of a NamedTuple: its docstring describes them, and they have none of their own."""
    return True if isinstance(member, FIELD) else None


def keep_colon(app, what, name, member, options, lines: list[str]) -> None:
    """Begin the text of a property by an empty line, or Napoleon takes what stands before a colon for its type."""
    if what == "property":
        lines.insert(0, "")


def setup(app) -> dict[str, bool]:
    """Write the pages and pictures when Sphinx starts, and leave no other file among them."""
    for folder, texts in ((FOLDER, PAGES), (theory_figures.FOLDER, theory_figures.PICTURES)):
        written = set(write(folder, texts))
        for file in set(folder.iterdir()) - written:
            file.unlink()
    app.connect("autodoc-skip-member", skip_field)
    app.connect("autodoc-process-docstring", keep_colon, priority=BEFORE_NAPOLEON)
    return {"parallel_read_safe": True}

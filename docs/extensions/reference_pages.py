"""Writes the pages of docs/reference/generated/ before each build, from the code and the interfaces themselves."""

from collections.abc import Callable, Iterator
from pathlib import Path

import api_pages
import command_pages
import interface_pages
import parameter_pages

FOLDER = Path(__file__).resolve().parents[1] / "reference" / "generated"

PAGES: dict[str, Callable[[], str]] = {
    **api_pages.PAGES,
    "messages.md": interface_pages.messages,
    "services.md": interface_pages.services,
    "node.md": parameter_pages.node,
    "parameter_file.md": parameter_pages.parameter_file,
    "commands.md": command_pages.commands,
}


def write() -> Iterator[Path]:
    """Write every page whose text has changed, and yield its file."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        file, text = FOLDER / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        yield file


def setup(app) -> dict[str, bool]:
    """Write the pages when Sphinx starts, and leave no other file among them."""
    written = set(write())
    for file in set(FOLDER.iterdir()) - written:
        file.unlink()
    return {"parallel_read_safe": True}

"""Writes docs/reference/generated/ and the pictures of the theory before each build, from the code itself."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import api_pages
import command_pages
import interface_pages
import parameter_pages
import theory_figures

FOLDER = Path(__file__).resolve().parents[1] / "reference" / "generated"

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


def setup(app) -> dict[str, bool]:
    """Write the pages and pictures when Sphinx starts, and leave no other file among them."""
    for folder, texts in ((FOLDER, PAGES), (theory_figures.FOLDER, theory_figures.PICTURES)):
        written = set(write(folder, texts))
        for file in set(folder.iterdir()) - written:
            file.unlink()
    return {"parallel_read_safe": True}

"""Draws all kinds of pictures, and writes them to files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from constrained_sim.exceptions import InvalidValue
from constrained_sim.optional import optional
from constrained_sim.plots.contact_forces import contact_forces
from constrained_sim.plots.energy import energy
from constrained_sim.plots.friction_cones import friction_cones
from constrained_sim.plots.impacts import impacts
from constrained_sim.plots.joints import joints
from constrained_sim.plots.page import Sheet, draw_pages
from constrained_sim.plots.recording import Recording
from constrained_sim.plots.residuals import residuals
from constrained_sim.validation import lookup
from constrained_sim.whole_file import written_whole

KINDS: dict[str, Callable[[Recording], Sheet | None]] = {
    "contact_forces": contact_forces,
    "joints": joints,
    "friction_cones": friction_cones,
    "residuals": residuals,
    "energy": energy,
    "impacts": impacts,
}
"""Kinds of pictures by name, in the order of pages."""

SUFFIXES = ".pdf", ".png", ".svg"
"""Of files that hold pictures; the first holds all pages."""


class Picture(NamedTuple):
    """One page.

    Attributes:
        kind: a name in :data:`KINDS`.
        page: from 1.
        pages: that this kind has.
        figure: matplotlib's.
    """

    kind: str
    page: int
    pages: int
    figure: Any


def make_figures(recording: Recording, kinds: Iterable[str] = KINDS) -> list[Picture]:
    """Draw `recording`; of kinds of which it holds nothing there is no picture.

    Raises:
        UnknownName: no such kind.
        MissingLibrary: the one that draws.
    """
    optional("matplotlib", "plotting")
    pictures = []
    for kind in kinds:
        sheet = lookup("kind of picture", kind, KINDS)(recording)
        figures = [] if sheet is None else draw_pages(sheet)
        pictures += [Picture(kind, i, len(figures), figure) for i, figure in enumerate(figures, 1)]
    return pictures


def write_figures(recording: Recording, path: Path, kinds: Iterable[str] = KINDS) -> list[Path]:
    """Draw `recording` into files, and return them.

    A PDF holds all pages. Of PNG and SVG there is one file for each page, ``NAME_KIND.png`` or ``NAME_KIND_PAGE.png``;
    a single page is written to `path` itself.

    Raises:
        ConfigError: a file that cannot be written.
        InvalidValue: a suffix that is none of :data:`SUFFIXES`, or a recording that holds nothing of these kinds.
        UnknownName: no such kind.
        MissingLibrary: the one that draws.
    """
    kinds = list(kinds)
    if path.suffix not in SUFFIXES:
        raise InvalidValue("file of pictures", str(path), f"one that ends in {', '.join(SUFFIXES)}")
    pictures = make_figures(recording, kinds)
    if not pictures:
        raise InvalidValue("recording", recording.title, f"one that holds something of: {', '.join(kinds)}")
    if path.suffix == ".pdf":
        _write_pdf(pictures, path)
        return [path]
    files = [_file(path, picture, len(pictures)) for picture in pictures]
    for file, picture in zip(files, pictures, strict=True):
        with written_whole(file) as part:
            picture.figure.savefig(part)
    return files


def _write_pdf(pictures: Iterable[Picture], path: Path) -> None:
    pages = optional("matplotlib.backends.backend_pdf", "plotting").PdfPages
    content = io.BytesIO()  # PdfPages writes when it closes too: on a full disk with an error of its own
    with pages(content) as document:
        for picture in pictures:
            document.savefig(picture.figure)
    with written_whole(path) as part:
        part.write_bytes(content.getvalue())


def _file(path: Path, picture: Picture, count: int) -> Path:
    if count == 1:
        return path
    number = f"_{picture.page}" if picture.pages > 1 else ""
    return path.with_name(f"{path.stem}_{picture.kind}{number}{path.suffix}")

"""Tables and lists as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import NamedTuple

from constrained_sim.optional import optional

WIDTH = 100

LEAST = 8
"""Width at least of a first or last column, whose text may be folded."""


class TextTable(NamedTuple):
    """A table of text; a column without any is left out.

    Attributes:
        columns: their headings.
        rows: as many cells in each as there are columns.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables_text(heading: str, tables: Mapping[str, TextTable], lists: Mapping[str, Sequence[str]]) -> str:
    """Return a heading, then `tables` and then `lists` by their titles, :data:`WIDTH` columns wide.

    Raises:
        MissingLibrary: rich is not installed.
    """
    optional("rich", "tables as text")
    from rich.console import Console
    from rich.padding import Padding

    text = StringIO()
    console = Console(file=text, width=WIDTH, force_terminal=False, highlight=False, markup=False)
    console.print(heading)
    for title, table in tables.items():
        console.print(_drawn(title, table) if table.rows else f"\n{title}: none")
    for title, lines in lists.items():
        console.print(f"\n{title}" + ("" if lines else ": none"))
        for line in lines:
            console.print(Padding(line, (0, 0, 0, 2)))
    return text.getvalue()


def _drawn(title: str, table: TextTable) -> object:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=f"\n{title}", title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    used = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows)]
    for place in used:
        text = place in (used[0], used[-1])
        drawn.add_column(table.columns[place], overflow="fold", no_wrap=not text, min_width=LEAST if text else None)
    for row in table.rows:
        drawn.add_row(*(Text(row[place]) for place in used))
    return drawn

"""Small multiples on pages: panels in rows, grouped, with one legend outside; what a page does not hold goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from constrained_sim.optional import optional

NAME_ROOM = 0.22
"""Share of a panel's height above its lines in which its name stands."""

MOST_ROWS = 8
"""Of panels on a page: each stays three centimetres high."""

LETTER, KEY = 0.065, 0.55
"""[inch] Width of a letter in the legend, and of what stands before an entry."""

WORTH = 3
"""Rows that have to be free on a page before a group that no page holds begins there."""

WIDTH, PANEL_HEIGHT, MARGINS = 8.27, 1.25, 1.6
"""[inch] Width of a page (A4), height of a row of panels, and of what stands above and below them."""

DOTS = 120
"""[1/inch] Of pictures made of pixels."""

Draw = Callable[[Any], None]
"""Draws into the axes of one panel."""


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        name: of what it shows.
        group: that it belongs to; panels of a group stand together. Empty: none.
        draw: draws it.
    """

    name: str
    group: str
    draw: Draw


@dataclass(frozen=True)
class Sheet:
    """All panels of one kind.

    Attributes:
        title: of each page.
        panels: row by row.
        columns: panels in a row.
        heads: of the columns; empty: none.
        unit: of all panels, beside them; empty: each has its own.
        legend: handles of matplotlib.
        x_label: of the common axis.
    """

    title: str
    panels: Sequence[Panel]
    columns: int = 1
    heads: Sequence[str] = ()
    unit: str = ""
    legend: Sequence[Any] = field(default_factory=tuple)
    x_label: str = "simulated time [s]"


def draw_pages(sheet: Sheet) -> list[Any]:
    """Return the pages of `sheet`, matplotlib's figures.

    Raises:
        MissingLibrary: the one that draws.
    """
    pages = split_pages(split_rows(sheet.panels, sheet.columns))
    return [_draw_page(sheet, rows, f" ({i} of {len(pages)})" * (len(pages) > 1)) for i, rows in enumerate(pages, 1)]


def split_rows(panels: Sequence[Panel], columns: int) -> list[list[Panel]]:
    """Return rows of at most so many panels, each of one group."""
    rows = []
    for _, group in groupby(panels, key=lambda panel: panel.group):
        members = list(group)
        rows += [members[i : i + columns] for i in range(0, len(members), columns)]
    return rows


def split_pages(rows: Sequence[list[Panel]]) -> list[list[list[Panel]]]:
    """Return pages of at most :data:`MOST_ROWS` rows.

    A group is divided only where a page does not hold it, and then evenly.
    """
    pages: list[list[list[Panel]]] = []
    for _, group in groupby(rows, key=lambda row: row[0].group):
        members = list(group)
        free = MOST_ROWS - len(pages[-1]) if pages else 0
        if len(members) <= free or (len(members) > MOST_ROWS and free >= WORTH):
            pages[-1] += members[:free]
            members = members[free:]
        parts = -(-len(members) // MOST_ROWS)
        pages += [list(part) for part in _evenly(members, parts)]
    return pages


def _legend_columns(labels: Sequence[str]) -> int:
    """Return how many entries stand side by side."""
    longest = max(map(len, labels), default=0)
    return max(1, min(len(labels), int(WIDTH / (longest * LETTER + KEY))))


def _evenly(rows: list[list[Panel]], parts: int) -> list[list[list[Panel]]]:
    cuts = np.linspace(0, len(rows), parts + 1).round().astype(int)
    return [rows[begin:end] for begin, end in pairwise(cuts.tolist())]


def _draw_page(sheet: Sheet, rows: Sequence[Sequence[Panel]], number: str) -> Any:
    size = WIDTH, MARGINS + PANEL_HEIGHT * max(len(rows), 2)
    figure = optional("matplotlib.figure", "plotting").Figure(figsize=size, dpi=DOTS, layout="constrained")
    optional("matplotlib.backends.backend_agg", "plotting").FigureCanvasAgg(figure)
    grid = figure.subplots(len(rows), sheet.columns, sharex=True, squeeze=False)
    shown = ""
    for i, row in enumerate(rows):
        for j, axes in enumerate(grid[i]):
            if j < len(row):
                _draw_panel(axes, row[j])
            else:
                axes.set_visible(False)
        if row[0].group and row[0].group != shown:
            grid[i, 0].set_title(row[0].group, loc="left", fontsize=9, fontweight="bold")
        shown = row[0].group
    for axes, head in zip(grid[0], sheet.heads, strict=False):
        axes.set_title(head, loc="right", fontsize=8)
    _label_lowest(grid, rows)
    figure.supxlabel(sheet.x_label, fontsize=9)
    figure.supylabel(sheet.unit, fontsize=9)
    columns = _legend_columns([handle.get_label() for handle in sheet.legend])
    figure.legend(
        handles=list(sheet.legend), title=sheet.title + number, loc="outside upper center", ncols=columns,
        fontsize=8, title_fontsize=11, frameon=False,
    )  # fmt: skip
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    panel.draw(axes)
    axes.tick_params(labelsize=7)
    axes.yaxis.get_offset_text().set_fontsize(6)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.margins(x=0.0)
    axes.text(
        0.01, 0.96, panel.name, transform=axes.transAxes, fontsize=7, va="top",
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0},
    )  # fmt: skip


def leave_room(axes: Any) -> None:
    """Raise the top of a panel: names stand there."""
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + NAME_ROOM * (top - bottom))


def _label_lowest(grid: Any, rows: Sequence[Sequence[Panel]]) -> None:
    """Show the numbers of the time below the lowest panel of each column, where the last row is not full."""
    for j in range(grid.shape[1]):
        used = [i for i, row in enumerate(rows) if j < len(row)]
        if used:
            grid[used[-1], j].tick_params(labelbottom=True)

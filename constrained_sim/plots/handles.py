"""Entries of legends, and what several kinds of pictures draw."""

from __future__ import annotations

from typing import Any

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.optional import optional
from constrained_sim.plots.recording import ContactSeries
from constrained_sim.plots.style import IMPACT, STATUS_NAMES, STATUS_SHADES, spans, thinned
from constrained_sim.validation import Array


def line_handle(label: str, colour: str, dash: str = "-") -> Any:
    """Return the entry of a line."""
    return optional("matplotlib.lines", "plotting").Line2D([], [], color=colour, linestyle=dash, label=label)


def shade_handles() -> list[Any]:
    """Return the entries of stick, slip and flight."""
    patch = optional("matplotlib.patches", "plotting").Patch
    return [
        patch(facecolor=STATUS_SHADES[status], edgecolor="0.6", linewidth=0.5, label=name)
        for status, name in STATUS_NAMES.items()
    ]


def draw_line(axes: Any, t: Array, y: Array, colour: str, dash: str = "-") -> None:
    """Draw a line, thinned to what a page shows."""
    axes.plot(*thinned(t, y), color=colour, linestyle=dash, linewidth=0.9)


def shade_status(axes: Any, t: Array, contact: ContactSeries) -> None:
    """Shade the times in which the contact sticks and slips; flight stays white."""
    found = spans(t, contact.status)
    for status in (ContactStatus.STICKING, ContactStatus.SLIDING):
        times = [(span.begin, span.end - span.begin) for span in found if span.value == status]
        axes.broken_barh(
            times, (0.0, 1.0), transform=axes.get_xaxis_transform(), color=STATUS_SHADES[status], linewidth=0, zorder=0
        )


def mark_impacts(axes: Any, times: Array) -> None:
    """Mark the instants of impacts [s] at the upper edge."""
    if len(times):
        height = axes.get_xaxis_transform()
        axes.plot(times, [1.0] * len(times), "v", color=IMPACT, markersize=3, transform=height, clip_on=False)


def impact_handle() -> Any:
    """Return the entry of those marks."""
    line = optional("matplotlib.lines", "plotting").Line2D
    return line([], [], color=IMPACT, marker="v", linestyle="", markersize=4, label="impact")

"""Picture of drift and residuals, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from constrained_sim.palette import COLOURS
from constrained_sim.plots.contact_forces import left_out
from constrained_sim.plots.handles import draw_line
from constrained_sim.plots.page import Panel, Sheet
from constrained_sim.plots.recording import Recording, Table
from constrained_sim.validation import Array

FLOOR = 1e-17
"""Below the rounding of numbers of size one: exact zeros are drawn there."""


def residuals(recording: Recording) -> Sheet | None:
    """Return a panel for each residual and each violation; None: nothing of it is known."""
    drift = {name: values for name, values in recording.drift.columns.items() if np.nan_to_num(values).any()}
    shown = Table(recording.drift.t, drift)
    panels = [*_panels(recording.residuals, "residuals"), *_panels(shown, "drift [m, rad]")]
    if not panels:
        return None
    rest = left_out(len(recording.drift.columns) - len(drift), "constraints without drift")
    return Sheet(f"{recording.title}: drift and residuals{rest}", panels, 1 if len(panels) <= 8 else 2)


def _panels(table: Table, group: str) -> Iterator[Panel]:
    for name, values in table.columns.items():
        yield Panel(name, group, _drawing(table.t, values))


def _drawing(t: Array, values: Array) -> Any:
    def draw(axes: Any) -> None:
        shown = np.where(np.isfinite(values), np.maximum(np.abs(values), FLOOR), np.nan)
        draw_line(axes, t, shown, COLOURS[0])
        axes.set_yscale("log")
        finite = shown[np.isfinite(shown)]
        low, high = (finite.min(), finite.max()) if len(finite) else (FLOOR, 1.0)
        axes.set_ylim(0.3 * low, 30.0 * high)

    return draw

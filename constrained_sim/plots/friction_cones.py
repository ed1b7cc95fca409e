"""Picture of the use of the friction cone: ``|f_t| / (mu f_n)`` of each contact; 1 is on the cone."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.palette import COLOURS
from constrained_sim.plots.contact_forces import by_limb, columns_for, left_out
from constrained_sim.plots.handles import draw_line, line_handle, shade_handles, shade_status
from constrained_sim.plots.page import Panel, Sheet
from constrained_sim.plots.recording import Recording
from constrained_sim.plots.style import LIMIT

TOP = 1.35
"""Of a panel: there is room for the name above the cone."""


def friction_cones(recording: Recording) -> Sheet | None:
    """Return the panels, one for each contact with friction; None: there are none, or their normals are unknown."""
    names = [name for name in by_limb(recording) if (recording.contacts[name].friction > 0.0).any()]
    if not names:
        return None
    shown = [name for name in names if np.isfinite(recording.contacts[name].cone_use).any()]
    panels = [_panel(recording, name) for name in shown or names[:1]]
    lines = [line_handle(r"$|f_t| / (\mu f_n)$", COLOURS[0]), line_handle("friction cone", LIMIT, "--")]
    title = f"{recording.title}: use of the friction cone{left_out(len(names) - len(panels), 'contacts without force')}"
    return Sheet(
        title, panels, columns_for(len(panels)), unit="share of the largest friction", legend=[*lines, *shade_handles()]
    )


def _panel(recording: Recording, name: str) -> Panel:
    contact, t = recording.contacts[name], recording.contact_times

    def draw(axes: Any) -> None:
        shade_status(axes, t, contact)
        draw_line(axes, t, contact.cone_use, COLOURS[0])
        axes.axhline(1.0, color=LIMIT, linestyle="--", linewidth=0.8)
        axes.set_ylim(0.0, TOP)

    return Panel(f"{name}, $\\mu$ = {_friction(contact.friction)}", contact.limb, draw)


def _friction(values: Any) -> str:
    found = sorted({f"{value:.3g}" for value in values if value == value})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"

"""Picture of the energy audit: what each cause has given to the robot since the beginning."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.plots.handles import draw_line, line_handle, mark_impacts
from constrained_sim.plots.page import Panel, Sheet, leave_room
from constrained_sim.plots.recording import Recording
from constrained_sim.plots.style import line

RESIDUAL = "residual"
"""Of a status; it has a panel of its own, since it is smaller by many orders."""

LARGE = 0.02
"""Share of the largest column from which on a column stands in the first panel."""


def energy(recording: Recording) -> Sheet | None:
    """Return panels of the large and of the small columns of the audit; None: there is no audit."""
    columns = {n: c for n, c in recording.energy.columns.items() if np.isfinite(c).any() and np.abs(c).max() > 0.0}
    if not columns:
        return None
    looks = {name: line(i) for i, name in enumerate(columns)}
    sizes = {name: float(np.nanmax(np.abs(values))) for name, values in columns.items()}
    bound = LARGE * max(sizes.values())
    large = [name for name in columns if name != RESIDUAL and sizes[name] >= bound]
    small = [name for name in columns if name != RESIDUAL and sizes[name] < bound]
    alone = [name for name in columns if name == RESIDUAL]
    groups = [("the largest", large), ("the others, enlarged", small), ("what the sum leaves unexplained", alone)]

    def drawing(names: list[str]) -> Any:
        def draw(axes: Any) -> None:
            for name in names:
                draw_line(axes, recording.energy.t, columns[name], *looks[name])
            leave_room(axes)
            mark_impacts(axes, recording.impacts.t)

        return draw

    panels = [Panel(text, "", drawing(names)) for text, names in groups if names]
    legend = [line_handle(name, *look) for name, look in looks.items()]
    return Sheet(f"{recording.title}: energy audit", panels, unit="energy given to the robot [J]", legend=legend)

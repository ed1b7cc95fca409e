"""Picture of the impacts: energy lost, and the impulse on each contact."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.palette import COLOURS
from constrained_sim.plots.contact_forces import left_out
from constrained_sim.plots.page import Panel, Sheet
from constrained_sim.plots.recording import Recording
from constrained_sim.validation import Array


def impacts(recording: Recording) -> Sheet | None:
    """Return a panel of the energy lost, and one of the impulse on each contact; None: there was no impact."""
    found = recording.impacts
    if not len(found.t):
        return None
    total = f"energy lost [J]: {found.energy_lost.sum():.4g} in {len(found.t)} impacts"
    panels = [Panel(total, "", _stems(recording, found.energy_lost, COLOURS[1]))]
    impulses = {name: values for name, values in found.impulses.items() if np.nan_to_num(values).any()}
    panels += [
        Panel(f"{name} [N s]", "impulse", _stems(recording, values, COLOURS[0])) for name, values in impulses.items()
    ]
    rest = left_out(len(found.impulses) - len(impulses), "contacts without impulse")
    return Sheet(f"{recording.title}: impacts{rest}", panels, 1 if len(panels) <= 8 else 2)


def _stems(recording: Recording, values: Array, colour: str) -> Any:
    t = recording.impacts.t

    def draw(axes: Any) -> None:
        shown = np.isfinite(values)
        axes.vlines(t[shown], 0.0, values[shown], color=colour, linewidth=0.8)
        axes.plot(t[shown], values[shown], ".", color=colour, markersize=3)
        axes.set_ylim(bottom=0.0, top=1.35 * max(float(np.max(values[shown], initial=0.0)), 1e-12))
        axes.set_xlim(*_times(recording))

    return draw


def _times(recording: Recording) -> tuple[float, float]:
    """Return first and last instant of the run [s]."""
    times = np.concatenate([recording.joint_times, recording.contact_times, recording.impacts.t])
    return float(times.min()), float(times.max())

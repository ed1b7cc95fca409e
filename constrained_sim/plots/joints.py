"""Picture of the joints: position, velocity and effort of each, with their limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from constrained_sim.palette import COLOURS
from constrained_sim.plots.handles import draw_line, line_handle
from constrained_sim.plots.page import Panel, Sheet
from constrained_sim.plots.recording import JointSeries, Recording
from constrained_sim.plots.style import LIMIT
from constrained_sim.validation import Array

NEAR = 0.6
"""Share of the range of the values up to which a limit beyond them widens the panel, so that its line is seen."""

LEAST_RANGE = 2e-3
"""Of a panel, per largest value or per unit: a joint that rests is drawn as a straight line."""

HEADS = "position [rad, m]", "velocity [rad/s, m/s]", "effort [N m, N]"


def joints(recording: Recording) -> Sheet | None:
    """Return three panels for each joint; None: there are no joints with one degree of freedom."""
    if not recording.joints:
        return None
    order = list(dict.fromkeys(joint.limb for joint in recording.joints.values()))
    names = sorted(recording.joints, key=lambda name: order.index(recording.joints[name].limb))
    panels = [panel for name in names for panel in _panels(recording, name)]
    legend = [line_handle("value", COLOURS[0]), line_handle("limit", LIMIT, "--")]
    return Sheet(f"{recording.title}: joints", panels, 3, HEADS, legend=legend)


def _panels(recording: Recording, name: str) -> Iterator[Panel]:
    joint: JointSeries = recording.joints[name]
    parts = (
        (joint.position, joint.limits.position),
        (joint.velocity, joint.limits.velocity),
        (joint.effort, joint.limits.effort),
    )
    for values, limits in parts:
        yield Panel(name, joint.limb, _drawing(recording.joint_times, values, limits))


def _drawing(t: Array, values: Array, limits: tuple[float, float]) -> Any:
    def draw(axes: Any) -> None:
        draw_line(axes, t, values, COLOURS[0])
        bottom, top = view(values, limits)
        axes.set_ylim(bottom, top)
        axes.ticklabel_format(useOffset=False)
        beyond = []
        for limit in limits:
            if bottom <= limit <= top:
                axes.axhline(limit, color=LIMIT, linestyle="--", linewidth=0.8)
            elif np.isfinite(limit):
                beyond.append(limit)
        if beyond:
            text = limit_text(beyond)
            axes.text(0.99, 0.96, text, transform=axes.transAxes, fontsize=6, ha="right", va="top", color=LIMIT)

    return draw


def limit_text(limits: list[float]) -> str:
    """Return what says that `limits` are beyond the panel."""
    if len(limits) == 2 and limits[0] == -limits[1]:
        return f"limit \u00b1{limits[1]:.3g}"
    return f"limit{'s' * (len(limits) > 1)} " + ", ".join(f"{limit:.3g}" for limit in limits)


def view(values: Array, limits: tuple[float, float]) -> tuple[float, float]:
    """Return bottom and top of a panel: the values, and limits that are near them."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    size = max(high - low, LEAST_RANGE * max(1.0, abs(low), abs(high)))
    low, high = min(low, high - size), max(high, low + size)
    near = [limit for limit in limits if low - NEAR * size <= limit <= high + NEAR * size]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.08 * max(high - low, size)
    return low - margin, high + 3.0 * margin  # names stand above

"""The interactive chart of a report: rows over one axis of time, each with a legend that switches lines on and off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.optional import optional
from constrained_sim.plots.recording import ImpactSeries, Recording
from constrained_sim.plots.residuals import FLOOR
from constrained_sim.plots.style import line, thinned
from constrained_sim.validation import Array

ROW, GAP = 250, 60
"""[pixels] Height of a row, and between rows."""

DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
"""Plotly's names for the dashes of matplotlib."""


class Row(NamedTuple):
    """One row of the chart.

    Attributes:
        title: with the unit.
        t: (n,) [s].
        lines: (n,) by name.
        groups: limb by name of the line; of those that are not named, none.
        is_logarithmic: whether magnitudes are drawn on a logarithmic scale.
        are_events: whether points are drawn in place of lines.
    """

    title: str
    t: Array
    lines: Mapping[str, Array]
    groups: Mapping[str, str]
    is_logarithmic: bool = False
    are_events: bool = False


def rows_of(recording: Recording) -> list[Row]:
    """Return the rows of which `recording` holds something."""
    return [row for row in _all_rows(recording) if len(row.t) and row.lines]


def chart(recording: Recording) -> Any:
    """Return plotly's figure of `recording`; all rows zoom in time together.

    Raises:
        MissingLibrary: plotly.
    """
    rows = rows_of(recording)
    subplots = optional("plotly.subplots", "a report")
    height = len(rows) * (ROW + GAP) + GAP
    figure = subplots.make_subplots(
        max(len(rows), 1), 1, shared_xaxes="all", vertical_spacing=min(GAP / max(height - GAP, 1), 0.5),
        subplot_titles=[row.title for row in rows],
    )  # fmt: skip
    scatter = optional("plotly.graph_objects", "a report").Scatter
    for i, row in enumerate(rows, 1):
        for k, (name, values) in enumerate(row.lines.items()):
            figure.add_trace(_trace(scatter, row, name, values, k, i), row=i, col=1)
        top = figure.layout[f"yaxis{i if i > 1 else ''}"].domain[1]
        legend = {"y": top, "yanchor": "top", "maxheight": ROW, "groupclick": "togglegroup", "font": {"size": 11}}
        figure.update_layout({f"legend{i if i > 1 else ''}": legend})
        figure.update_yaxes(type="log" if row.is_logarithmic else "linear", exponentformat="e", row=i, col=1)
    figure.update_xaxes(showticklabels=True, title_text="simulated time [s]", title_standoff=2)
    figure.update_layout(height=height, margin={"l": 60, "r": 20, "t": 40, "b": 40}, template="plotly_white")
    return figure


def _trace(scatter: Any, row: Row, name: str, values: Array, k: int, i: int) -> Any:
    t, y = thinned(row.t, np.maximum(np.abs(values), FLOOR) if row.is_logarithmic else values)
    look, group = line(k), row.groups.get(name, "")
    return scatter(
        x=_short(t),
        y=_short(y),
        name=name,
        mode="markers" if row.are_events else "lines",
        line={"color": look.colour, "dash": DASHES[look.dash], "width": 1.3},
        marker={"color": look.colour, "size": 5},
        legend=f"legend{i if i > 1 else ''}",
        legendgroup=f"{i} {group}" if group else None,
        legendgrouptitle={"text": group} if group else None,
    )


def _short(values: Array) -> npt.NDArray[np.floating[Any]]:
    """Return `values` with the digits that a picture shows; what is too large for that stays as it is."""
    fits = np.abs(np.nan_to_num(values, posinf=0.0, neginf=0.0)).max(initial=0.0) <= np.finfo(np.float32).max
    return values.astype(np.float32) if fits else values


def _all_rows(recording: Recording) -> Iterator[Row]:
    yield from _contact_rows(recording)
    limbs = {name: joint.limb for name, joint in recording.joints.items()}
    for title, attribute in (
        ("joint positions [rad, m]", "position"),
        ("joint velocities [rad/s, m/s]", "velocity"),
        ("joint efforts [N m, N]", "effort"),
    ):
        lines = {name: getattr(joint, attribute) for name, joint in recording.joints.items()}
        shown = {name: values for name, values in lines.items() if attribute != "effort" or np.nan_to_num(values).any()}
        yield Row(title, recording.joint_times, shown, limbs)
    yield Row("energy audit: given to the robot [J]", recording.energy.t, recording.energy.columns, {})
    yield Row("residuals", recording.residuals.t, recording.residuals.columns, {}, is_logarithmic=True)
    yield Row("drift [m, rad]", recording.drift.t, recording.drift.columns, {}, is_logarithmic=True)
    yield from _impact_rows(recording.impacts)


def _contact_rows(recording: Recording) -> Iterator[Row]:
    contacts, t = recording.contacts, recording.contact_times
    limbs = {name: contact.limb for name, contact in contacts.items()}
    known = {name: contact for name, contact in contacts.items() if contact.has_normal}
    yield Row("normal forces [N]", t, {name: contact.normal for name, contact in known.items()}, limbs)
    yield Row("tangential forces [N]", t, {name: contact.tangential for name, contact in known.items()}, limbs)
    cones = {name: contact.cone_use for name, contact in known.items() if np.isfinite(contact.cone_use).any()}
    yield Row("use of the friction cone: |f_t| / (mu f_n)", t, cones, limbs)
    others = [name for name in contacts if name not in known]
    forces = {f"{name} {axis}": contacts[name].force[:, k] for name in others for k, axis in enumerate("xyz")}
    yield Row("contact forces along the world's axes [N]", t, forces, {})


def _impact_rows(impacts: ImpactSeries) -> Iterator[Row]:
    yield Row("energy lost in impacts [J]", impacts.t, {"energy lost": impacts.energy_lost}, {}, are_events=True)
    yield Row("impulses [N s]", impacts.t, impacts.impulses, {}, are_events=True)

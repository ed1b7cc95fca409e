"""The report of a study: one page (HTML) that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from constrained_sim.campaign.results import Results
from constrained_sim.campaign.statistics import Correlation, partial_rank_correlations
from constrained_sim.campaign.table import trajectory_file
from constrained_sim.optional import optional
from constrained_sim.palette import BLUE, VERMILION
from constrained_sim.validation import Array
from constrained_sim.whole_file import write_texts

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .2rem .7rem; text-align: right; }
th { border-bottom: 1px solid #888; } td:first-child, th:first-child { text-align: left; }
code { background: #eee; padding: .1rem .3rem; } img { max-width: 100%; } .weak { color: #888; }
dt { margin-top: .6rem; } dt:target { font-weight: bold; } dd { margin: 0; overflow-wrap: anywhere; }
"""

PASSED, FAILED = BLUE, VERMILION

SIGNIFICANT = 0.01
"""Probability above which a correlation may be by chance."""

MOST_POINTS = 5000
"""Runs in the map of failures: more hide each other."""

MOST_TICKS = 6
"""Numbers along an axis: more run into each other."""


def write_report(results: Results, path: Path) -> None:
    """Write the report of `results` into the file `path`.

    Raises:
        ConfigError: it cannot be written.
        MissingLibrary: the one that draws.
    """
    parts = [_head(results), _endings(results), _distributions(results), _influences(results), _worst(results)]
    text = f"<!doctype html><html lang=en><meta charset=utf-8><title>Study</title><style>{STYLE}</style>"
    write_texts({path: text + "".join(parts)})


class Influence(NamedTuple):
    """How failing goes with a variation.

    Attributes:
        growth: with its value.
        departure: with its distance from the median, as where too much and too little are bad alike.
    """

    growth: Correlation
    departure: Correlation

    @property
    def strength(self) -> float:
        """The larger magnitude."""
        return max(abs(self.growth.value), abs(self.departure.value))


def influences(results: Results) -> dict[str, Influence]:
    """Return how failing goes with each variation, strongest first; choices count by the order of their values."""
    names = list(results.study.variations)
    failed = ~results.column("passed").astype(np.bool_)
    columns = [_numbers(results.column(name)) for name in names]
    columns += [_departure(column) for column in columns]
    values = np.column_stack(columns) if columns else np.zeros((len(failed), 0))
    found = partial_rank_correlations(values, failed.astype(np.float64))
    both = {name: Influence(found[i], found[len(names) + i]) for i, name in enumerate(names)}
    return dict(sorted(both.items(), key=lambda item: -item[1].strength))


def _departure(column: Array) -> Array:
    """Return (n,) the distance from the median; zeros where it grows as the value does, or falls, as of two values."""
    away, ranks = np.abs(column - np.median(column)), rankdata(column)
    says_the_same = any(np.array_equal(rankdata(away), order) for order in (ranks, len(ranks) + 1.0 - ranks))
    return np.zeros_like(away) if says_the_same else away


def _head(results: Results) -> str:
    study, interval = results.study, results.interval()
    return (
        f"<h1>{results.passed} of {results.runs} runs passed</h1><p>Share <b>{results.share_passed:.4g}</b>, 95 % "
        f"confidence {interval.lower:.4g} to {interval.upper:.4g} (Clopper and Pearson; for independent runs). "
        f"Passed means <code>{html.escape(study.passed or 'came to its end')}</code>. Seed {study.seed}, sampling "
        f"{study.sampling}, {study.duration:g} s each.</p>"
    )


def _endings(results: Results) -> str:
    """Return the table of how runs ended."""
    counts = Counter(zip(results.column("status").tolist(), results.column("reason").tolist(), strict=True))
    rows = [[status, str(count), html.escape(reason[:200])] for (status, reason), count in counts.most_common(20)]
    return "<h2>How they ended</h2>" + _table(["", "runs", "reason"], rows)


def _distributions(results: Results) -> str:
    """Return a histogram of each measure, and its quantiles."""
    if not results.study.measures:
        return ""
    if not any(np.isfinite(_numbers(results.column(name))).any() for name in results.study.measures):
        return "<h2>Measures</h2><p>No run came to a measure.</p>"
    figure, axes = _subplots(len(results.study.measures))
    passed, rows = results.column("passed").astype(np.bool_), list[list[str]]()
    for axis, name in zip(axes, results.study.measures, strict=True):
        values = _numbers(results.column(name))
        there = np.isfinite(values)
        if there.any():
            bins = np.histogram_bin_edges(values[there], 30)
            groups = [values[there & passed], values[there & ~passed]]
            axis.hist(groups, bins, stacked=True, color=[PASSED, FAILED], label=["passed", "failed"])
            axis.locator_params(axis="x", nbins=MOST_TICKS)
            if not rows:
                axis.legend()
            quantiles = np.quantile(values[there], [0.0, 0.05, 0.5, 0.95, 1.0])
            rows.append([name, *(f"{value:.5g}" for value in quantiles), str(int((~there).sum()))])
        axis.set_title(name)
    head = ["measure", "least", "5 %", "median", "95 %", "largest", "missing"]
    return "<h2>Measures</h2>" + _table(head, rows) + _picture(figure)


def _influences(results: Results) -> str:
    """Return which variation matters, and the map of failures in the two that matter most."""
    if not results.study.variations:
        return ""
    if results.passed in (0, results.runs):
        each = "passed" if results.passed else "failed"
        return f"<h2>Which variation matters</h2><p>There is nothing to compare: all runs {each}.</p>"
    found, rows = influences(results), []
    for name, influence in found.items():
        cells = []
        for correlation in influence:
            mark = "" if correlation.p < SIGNIFICANT else " class=weak"
            cells += [f"<span{mark}>{text}</span>" for text in (f"{correlation.value:+.3f}", f"{correlation.p:.2g}")]
        rows.append([html.escape(name), *cells])
    text = (
        "<h2>Which variation matters</h2><p>Partial rank correlation of failing with its value, and with the distance "
        "from its median; grey: it may be by chance.</p>"
    )
    text += _table(["variation", "value", "p", "distance", "p"], rows)
    names = list(found)[:2]
    return text + _picture(_map(results, names)) if len(names) == 2 else text


def _map(results: Results, names: list[str]) -> Any:
    """Return a picture of the runs in the plane of two variations."""
    figure, (axis, *_) = _subplots(1)
    passed = results.column("passed").astype(np.bool_)[:MOST_POINTS]
    x, y = (_numbers(results.column(name))[:MOST_POINTS] for name in names)
    for name, along in zip(names, (axis.xaxis, axis.yaxis), strict=True):
        if texts := _texts(results.column(name)):
            along.set_ticks(range(len(texts)), texts)
        else:
            along.get_major_locator().set_params(nbins=MOST_TICKS)
    for which, color, marker, label in ((passed, PASSED, "o", "passed"), (~passed, FAILED, "x", "failed")):
        axis.scatter(x[which], y[which], s=12, color=color, marker=marker, linewidths=0.8, label=label, alpha=0.6)
    axis.set_xlabel(names[0])
    axis.set_ylabel(names[1])
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _worst(results: Results) -> str:
    """Return the ten worst runs, with what shows them again."""
    study, rows, again_list = results.study, [], []
    for run in results.worst(10):
        row, kept = _row(results, run), trajectory_file(results.directory, run)
        link = f", <a href='trajectories/{kept.name}'>trajectory</a>" if kept.is_file() else ""
        measures = ["" if np.isnan(row[name]) else f"{row[name]:.5g}" for name in study.measures]
        again = f"<a href='#again-{run}'>command</a>{link}"
        rows.append([str(run), "passed" if row["passed"] else "failed", row["status"], *measures, again])
        command = study.replay_command(run) + (" --view" if study.file else "")
        values = ", ".join(f"{name} {_text(row[name])}" for name in study.variations)
        again_list.append(f"<dt id=again-{run}>Run {run}: {html.escape(values)}<dd><code>{html.escape(command)}</code>")
    by = f", by {results.worst_by}" if study.measures else ""
    table = _table(["run", "", "", *study.measures, "again"], rows)
    return f"<h2>The ten worst{by}</h2>{table}<h2>Again</h2><dl>{''.join(again_list)}</dl>"


def _row(results: Results, run: int) -> dict[str, Any]:
    """Return the row of a `run` that is done, but for its traceback."""
    place = int(np.searchsorted(results.column("run"), run))
    names = ("passed", "status", "reason", *results.study.variations, *results.study.measures)
    return {name: results.column(name)[place] for name in names}


def _texts(column: Any) -> list[str]:
    """Return the texts or lists that are in a column, in order; none of numbers."""
    if column.dtype == object and any(isinstance(value, str | np.ndarray) for value in column):
        return sorted({_text(value) for value in column})
    return []


def _text(value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, np.ndarray):
        return f"[{', '.join(f'{part:.5g}' for part in value)}]"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _numbers(column: Any) -> Array:
    """Return (n,) a column as numbers; texts and lists by the order of their values."""
    if texts := _texts(column):
        return np.searchsorted(texts, [_text(value) for value in column]).astype(np.float64)
    return np.asarray(column, dtype=np.float64)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr><tr>{'</tr><tr>'.join(lines)}</tr></table>"


def _subplots(count: int) -> tuple[Any, list[Any]]:
    """Return a figure with so many pictures, three in a row."""
    figures = optional("matplotlib.figure", "the report of a study")
    columns = min(3, count)
    rows = -(-count // columns)
    figure = figures.Figure(figsize=(max(5.0, 3.6 * columns), 3.0 * rows if count > 1 else 4.0), layout="constrained")
    axes = list(np.ravel(figure.subplots(rows, columns)))
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def _picture(figure: Any) -> str:
    """Return a figure as part of the page."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return f"<img alt='' src='data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}'>"

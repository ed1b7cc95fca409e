"""Lines and shades of all plots."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.palette import COLOURS
from constrained_sim.validation import Array

DASHES = ("-", "--", ":", "-.")
"""Of lines beyond the first seven, seven by seven."""

STATUS_SHADES = {
    ContactStatus.OPEN: "#FFFFFF",
    ContactStatus.STICKING: "#DCEAF5",
    ContactStatus.SLIDING: "#FAD9A8",
}
"""Behind the lines, and much paler than these; they differ in lightness too."""

STATUS_NAMES = {ContactStatus.OPEN: "flight", ContactStatus.STICKING: "stick", ContactStatus.SLIDING: "slip"}

LIMIT = "#B22222"
IMPACT = "#666666"

POINTS = 2000
"""Of a line at most: a page is about half as many pixels wide."""


class Line(NamedTuple):
    """How one of many lines looks."""

    colour: str
    dash: str


def line(index: int) -> Line:
    """Return the look of line number `index`, from 0."""
    return Line(COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)])


class Span(NamedTuple):
    """A time in which something stays as it is.

    Attributes:
        begin: [s].
        end: [s].
        value: that it has.
    """

    begin: float
    end: float
    value: int


def spans(t: Array, values: npt.NDArray[np.int64]) -> list[Span]:
    """Return the times in which `values` (n,) stay the same, where each holds from the instant before to its own."""
    if not len(t):
        return []
    cuts = np.flatnonzero(np.diff(values)) + 1
    begins = np.concatenate([[0], cuts])
    times = np.concatenate([t[:1], t[cuts - 1], t[-1:]])
    return [Span(float(times[k]), float(times[k + 1]), int(values[i])) for k, i in enumerate(begins)]


def thinned(t: Array, y: Array, most: int = POINTS) -> tuple[Array, Array]:
    """Return at most `most` points of a line (n,) that keep the least and the largest value of each stretch."""
    if len(t) <= most:
        return t, y
    edges = np.linspace(0, len(t), most // 2 + 1).astype(int)
    kept: list[int] = []
    for begin, end in pairwise(edges.tolist()):
        stretch = y[begin:end]
        if np.isfinite(stretch).any():
            kept += sorted((begin + int(np.nanargmin(stretch)), begin + int(np.nanargmax(stretch))))
        else:
            kept += [begin, end - 1]
    return t[kept], y[kept]

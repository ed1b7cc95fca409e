"""Draws a run into files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from constrained_sim.exceptions import InvalidValue
from constrained_sim.plots.figures import KINDS, write_figures
from constrained_sim.plots.from_trajectory import recording_of
from constrained_sim.trajectory import Setup, Trajectory
from constrained_sim.validation import instance, names


def plot_trajectory(trajectory: Trajectory, path: str, kinds: Sequence[str] | None, setup: Setup | None) -> list[Path]:
    """Draw a run into files, and return them: see :meth:`~constrained_sim.trajectory.Trajectory.plot`.

    Raises:
        InvalidValue: a path at which no such file can be written, or a run that holds nothing of these kinds.
        UnknownName: no such kind.
        MissingLibrary: the one that draws.
    """
    file = Path(path)
    wanted = tuple(KINDS) if kinds is None else names("kinds", kinds)
    if not wanted:
        raise InvalidValue("kinds", kinds, f"one at least of {', '.join(KINDS)}")
    if setup is not None:
        instance("setup", setup, Setup, "an instance of Setup, or None")
    recording = recording_of(trajectory, setup, "" if setup or trajectory.setup else file.stem)
    return write_figures(recording, file, wanted)

"""Reads what is plotted from a result or from a recording."""

from __future__ import annotations

from pathlib import Path

from constrained_sim.config import Config
from constrained_sim.plots.from_bag import read_bag
from constrained_sim.plots.from_trajectory import recording_of
from constrained_sim.plots.recording import Recording
from constrained_sim.trajectory import Setup, Trajectory


def read(source: Path, config: Config | None = None) -> Recording:
    """Read a result of :meth:`Trajectory.save` or a rosbag2 directory.

    Args:
        source: the file or directory.
        config: what it is of; None: what a recording itself says, and nothing is known of a result.

    Raises:
        ConfigError: a directory that is no recording.
        InvalidValue: a file that holds no trajectory, or a `config` of another robot.
        MissingLibrary: the one that reads bags.
    """
    if source.is_dir():
        return read_bag(source, config)
    setup = None if config is None else Setup(config.robot, config.constraints, config.collisions)
    return recording_of(Trajectory.load(source), setup, source.stem)

"""Reads what is plotted from a result or from a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from constrained_sim.config import Config
from constrained_sim.constraints import point_contacts
from constrained_sim.plots.from_bag import read_bag
from constrained_sim.plots.from_trajectory import recording_of
from constrained_sim.plots.recording import Recording
from constrained_sim.trajectory import Setup, Trajectory

OTHER_FRICTION = "a result does not hold the friction of its contacts: that of the parameter file is shown"
"""Told of a result: the run may have had another one, as by ``--set``."""


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
    trajectory = Trajectory.load(source)
    if config is None:
        return recording_of(trajectory, None, source.stem)
    setup = Setup(config.robot, config.constraints, config.collisions)
    return replace(recording_of(trajectory, setup, source.stem), notes=notes_on(trajectory, setup))


def notes_on(trajectory: Trajectory, setup: Setup) -> tuple[str, ...]:
    """Return what is told of a result that is shown as one of a `setup` from elsewhere."""
    declared = point_contacts(setup.constraints)
    has_friction = any(name not in declared or declared[name].coefficient > 0.0 for name in trajectory.contact_forces)
    return (OTHER_FRICTION,) if has_friction else ()

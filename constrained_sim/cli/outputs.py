"""Outputs of a run; all that can be refused is refused before the simulation begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from constrained_sim.cli.progress_bar import progress_bar
from constrained_sim.cli.texts import wrong_use
from constrained_sim.config import Config
from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional
from constrained_sim.trajectory import Trajectory

Write = Callable[[Trajectory, Config], list[Path]]
"""Writes what a run leaves behind, and returns the files, or the directory."""


def checked_outputs(output: Path | None, plot: Path | None, bag: Path | None, film: Path | None = None) -> list[Write]:
    """Return what writes each file that is given.

    Raises:
        BadParameter: another kind of file.
        ConfigError: a path at which no such file can be written.
        MissingLibrary: the one that writes it.
    """
    writers: list[Write] = []
    if output is not None:
        check_output("--output", output, (".npz",))
        writers.append(lambda trajectory, config: _save(trajectory, output))
    if plot is not None:
        check_picture("--plot", plot)
        writers.append(lambda trajectory, config: trajectory.plot(plot))
    if bag is not None:
        check_output("--bag", bag, ())
        if bag.exists():
            raise ConfigError(f"--bag: {str(bag)!r} is there already, allowed: a new directory")
        optional("rosbags", "--bag")
        writers.append(lambda trajectory, config: _record(trajectory, config, bag))
    if film is not None:
        check_film("--film", film)
        writers.append(lambda trajectory, config: _film(trajectory, film))
    return writers


def beside(source: Path, suffix: str) -> Path:
    """Return the file of this `suffix` beside a `source`, also where that is the folder of the shell."""
    named = source if source.name.strip(".") else source.resolve()
    whole = source.resolve()
    return named.parent / f"{whole.name if whole.is_dir() else whole.stem}{suffix}"


def check_picture(option: str, path: Path) -> None:
    """Refuse a picture that cannot be drawn.

    Raises:
        BadParameter: another kind of file.
        ConfigError: a folder that is not there.
        MissingLibrary: the one that draws it.
    """
    from constrained_sim.plots.figures import SUFFIXES

    check_output(option, path, SUFFIXES)
    optional("matplotlib", "a picture")


def check_film(option: str, path: Path) -> None:
    """Refuse a film that cannot be drawn.

    Raises:
        BadParameter: another kind of file.
        ConfigError: a folder that is not there.
        MissingLibrary: the one that writes it.
    """
    from constrained_sim.viewer.film import SUFFIXES

    check_output(option, path, SUFFIXES)
    optional("imageio", "films")


def check_output(option: str, path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse a file that cannot be written.

    Raises:
        BadParameter: another suffix.
        ConfigError: a directory, or no folder to put it in.
    """
    if suffixes and path.suffix not in suffixes:
        raise wrong_use(option, f"got {str(path)!r}, allowed: a file that ends in {', '.join(suffixes)}")
    if path.is_dir() and suffixes:
        raise ConfigError(f"{option}: {str(path)!r} is a directory")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{option}: there is no directory {str(path.absolute().parent)!r}")


def _save(trajectory: Trajectory, path: Path) -> list[Path]:
    trajectory.save(path)
    return [path]


def _record(trajectory: Trajectory, config: Config, directory: Path) -> list[Path]:
    from constrained_sim.trajectory_bag import write_bag

    write_bag(trajectory, config, directory)
    return [directory]


def _film(trajectory: Trajectory, path: Path) -> list[Path]:
    from constrained_sim.viewer.film import film
    from constrained_sim.viewer.trajectory_source import TrajectorySource

    with progress_bar("drawing") as report:
        film(TrajectorySource(trajectory), path, report=report)
    return [path]

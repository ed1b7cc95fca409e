"""Writes the layouts of a robot."""

from __future__ import annotations

from pathlib import Path

from constrained_sim.config import Config
from constrained_sim.exceptions import ConfigError
from constrained_sim.layouts.foxglove import foxglove_text
from constrained_sim.layouts.plotjuggler import plotjuggler_text
from constrained_sim.layouts.rviz import rviz_text
from constrained_sim.whole_file import write_texts

ENDINGS = {".rviz": rviz_text, ".foxglove.json": foxglove_text, ".plotjuggler.xml": plotjuggler_text}
"""What makes each file, by how its name ends."""


def layout_texts(config: Config, name: str) -> dict[str, str]:
    """Return the text of each file for the robot of `config`, by its name."""
    return {f"{name}{ending}": text(config) for ending, text in ENDINGS.items()}


def write_layouts(config: Config, name: str, folder: Path) -> list[Path]:
    """Write ``NAME.rviz``, ``NAME.foxglove.json`` and ``NAME.plotjuggler.xml``, and return their paths.

    Args:
        config: of the robot.
        name: of the files.
        folder: that exists.

    Raises:
        ConfigError: one of the files is there already or cannot be written, or there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no directory {str(folder)!r}")
    texts = {folder / file: text for file, text in layout_texts(config, name).items()}
    if there := [str(path) for path in texts if path.exists()]:
        raise ConfigError(f"{', '.join(there)}: there already, and not overwritten; allowed: another folder")
    return write_texts(texts)

"""Opening a recording, with an error that tells what to do where it is none or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional

METADATA = "metadata.yaml"
"""What the recorder writes last."""


def is_bag(directory: Path) -> bool:
    """Return whether `directory` is a recording, be it one that was cut off."""
    return (directory / METADATA).is_file() or any(directory.glob("*.mcap"))


@contextmanager
def bag_reader(directory: Path) -> Iterator[Any]:
    """Open the rosbag2 `directory` with the reader of rosbags.

    Raises:
        ConfigError: it is no recording, or a damaged one.
        MissingLibrary: the one that reads bags.
    """
    saves = f"`constrained_sim recover {directory}` saves what is whole in it"
    if not (directory / METADATA).is_file():
        cut_off = f"; {saves}" if is_bag(directory) else ""
        raise ConfigError(f"{str(directory)!r} is not a rosbag2 directory (no {METADATA} in it){cut_off}")
    library = optional("rosbags.highlevel", "reading a recording")
    try:
        with library.AnyReader([directory]) as reader:
            yield reader
    except library.AnyReaderError as error:
        raise ConfigError(f"cannot read the recording {str(directory)!r}: {error}; {saves}") from error

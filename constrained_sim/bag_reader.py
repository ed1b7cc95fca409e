"""Opening a recording, with an error that tells what to do where it is none or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional


@contextmanager
def bag_reader(directory: Path) -> Iterator[Any]:
    """Open the rosbag2 `directory` with the reader of rosbags.

    Raises:
        ConfigError: it is no recording, or a damaged one.
        MissingLibrary: the one that reads bags.
    """
    if not (directory / "metadata.yaml").is_file():
        raise ConfigError(f"{str(directory)!r} is not a rosbag2 directory (no metadata.yaml in it)")
    library = optional("rosbags.highlevel", "reading a recording")
    try:
        with library.AnyReader([directory]) as reader:
            yield reader
    except library.AnyReaderError as error:
        raise ConfigError(
            f"cannot read the recording {str(directory)!r}: {error}; "
            f"`constrained_sim recover {directory}` saves what is whole in it"
        ) from error

"""The file of a trajectory: arrays by name, in an archive of NumPy's."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from constrained_sim.exceptions import ConfigError, InvalidValue
from constrained_sim.validation import Array
from constrained_sim.whole_file import written_whole

UNREADABLE = ValueError, KeyError, OSError, EOFError, NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error
"""What NumPy and the archive raise of a file that is none of ours."""


def write_arrays(target: str, arrays: Mapping[str, Array]) -> None:
    """Write `arrays` into the file `target`.

    Raises:
        InvalidValue: a path at which no file can be written.
    """
    try:
        with written_whole(Path(target)) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    except ConfigError as error:
        raise InvalidValue("path of a trajectory", target, f"one that can be written ({error.message})") from error


def read_arrays(source: str) -> dict[str, Array]:
    """Return the arrays in the file `source`; nothing in it is executed.

    Raises:
        InvalidValue: it is no archive of arrays of numbers.
    """
    what = "a file that Trajectory.save wrote"
    if not Path(source).is_file():  # a pipe would block
        there = "no file" if Path(source).exists() else "nothing"
        raise InvalidValue("trajectory", source, f"{what}; there is {there}")
    try:
        with zipfile.ZipFile(source) as archive:
            if archive.testzip() is not None:
                raise InvalidValue("trajectory", source, f"{what}; this one is damaged")
        with np.load(source, allow_pickle=False) as file:
            return dict(file)
    except InvalidValue:
        raise
    except PermissionError as error:
        raise InvalidValue("trajectory", source, f"{what}, and that may be read") from error
    except UNREADABLE as error:
        raise InvalidValue("trajectory", source, f"{what}; this is another one, or damaged") from error

"""Files that are written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from constrained_sim.exceptions import ConfigError, ConstrainedSimError

UNFINISHED = ".writing"
"""Ends the names of folders in which files are written."""


@contextlib.contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yield a path of the same name in a folder beside `target`, and move what is written there: a file or a folder.

    Of a failure nothing is left, and what was at `target` stays.

    Raises:
        ConfigError: it cannot be written, as on a full disk.
    """
    with writing(target), _folder_beside(target) as folder:
        part = Path(folder) / target.name
        yield part
        for path in (part, *part.rglob("*")):
            sync(path)
        part.replace(target)


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Do what writes `target`.

    Raises:
        ConfigError: it cannot be written, in place of what the system raised.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, ConstrainedSimError):
            raise
        raise ConfigError(f"cannot write {str(target)!r}: {error.strerror or error}") from error


def write_texts(texts: Mapping[Path, str]) -> list[Path]:
    """Write the files of `texts`, each whole, once there is room for all of them, and return their paths.

    Raises:
        ConfigError: one of them cannot be written.
    """
    with contextlib.ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(written_whole(path)).write_text(text, encoding="utf-8")
    return list(texts)


def remove_unfinished(folder: Path) -> None:
    """Remove what processes that were killed left in `folder`, and in the folders in it."""
    for left in [*folder.glob(f"*{UNFINISHED}"), *folder.glob(f"*/*{UNFINISHED}")]:
        shutil.rmtree(left, ignore_errors=True)


def _folder_beside(target: Path) -> TemporaryDirectory[str]:
    """Return a folder on the disk of `target` that ends with its use."""
    name, parent = f"{target.name}.", target.absolute().parent
    return TemporaryDirectory(prefix=name, suffix=UNFINISHED, dir=parent, ignore_cleanup_errors=True)


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

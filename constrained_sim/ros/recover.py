"""`recover BAG`: finishes a recording that was cut off, so that every tool opens it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.bag import RecordedTopic, bag_file, read_records
from constrained_sim.ros.bag_writer import BagWriter

MOST_TOLD = 3
"""Damaged parts that are named; the others are counted."""


class Recovery(NamedTuple):
    """What was recovered.

    Attributes:
        count: messages in the recovered file.
        original: where the file lies that was recovered; None: it was deleted.
        damages: parts of it that could not be read, and where.
    """

    count: int
    original: Path | None
    damages: tuple[str, ...]


def recover(directory: Path, delete_original: bool = False) -> Recovery:
    """Rewrite the MCAP file of a rosbag2 `directory` with all its complete messages, an index and metadata.

    The copy is written beside the original, brought to the disk and read again before it takes the original's name;
    the original is kept beside it, with the ending ``.broken``.

    Args:
        directory: of the bag.
        delete_original: do not keep the original where all of it but a record cut off at its end was copied.

    Raises:
        ConfigError: there is no MCAP file, nothing in it can be read, or the copy cannot be written; nothing changed.
    """
    file = bag_file(directory)
    read_records(file)  # refuses what is no MCAP file before anything is written
    try:
        beside = Path(tempfile.mkdtemp(prefix=".recover_", dir=directory))
    except OSError as error:
        raise ConfigError(f"cannot write to {str(directory)!r}: {error}; nothing was changed") from error
    try:
        count, damages = _copy(file, beside)
        original = _take_place(file, beside)
    except OSError as error:
        raise ConfigError(f"the copy of {str(file)!r} failed: {error}; the original is kept") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    if delete_original and not damages:
        original.unlink()
        return Recovery(count, None, damages)
    return Recovery(count, original, damages)


def _copy(file: Path, beside: Path) -> tuple[int, tuple[str, ...]]:
    """Copy what is readable of `file` into the directory `beside`; return the count and the damaged parts.

    Raises:
        ConfigError: nothing can be read, or the copy does not hold what was read.
    """
    numbers: dict[RecordedTopic, int] = {}
    counts: Counter[RecordedTopic] = Counter()
    records = read_records(file)
    with BagWriter(beside, file.name) as writer:
        for record in records:
            number = numbers.setdefault(record.topic, len(numbers))
            writer.add_channel(number, record.topic)
            writer.add_message(number, record.stamp, record.data)
            counts[record.topic] += 1
    if not counts:
        damaged = f": {_list(records.damages)}" if records.damages else ""
        raise ConfigError(f"no message of {str(file)!r} can be read{damaged}; the original is kept")
    for name in (file.name, "metadata.yaml"):
        _sync(beside / name)
    written = read_records(beside / file.name)
    copied = Counter(record.topic for record in written)
    if copied != counts or written.damages:
        raise ConfigError(
            f"the copy of {str(file)!r} holds {copied.total()} of {counts.total()} messages; the original is kept"
        )
    return counts.total(), tuple(records.damages)


def _take_place(file: Path, beside: Path) -> Path:
    """Give the copy in `beside` the place of `file`; return where the original lies then."""
    original = file.with_suffix(".broken")
    number = 1
    while os.path.lexists(original):
        number += 1
        original = file.with_suffix(f".{number}.broken")
    file.rename(original)
    try:
        (beside / file.name).rename(file)
        (beside / "metadata.yaml").replace(file.parent / "metadata.yaml")
    except OSError:
        original.replace(file)
        raise
    _sync(file.parent)
    return original


def _sync(path: Path) -> None:
    """Bring a file or directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _list(damages: Sequence[str]) -> str:
    rest = f" and {len(damages) - MOST_TOLD} more" if len(damages) > MOST_TOLD else ""
    return ", ".join(damages[:MOST_TOLD]) + rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Recover the bag that is named on the command line; return 1 where something of it could not be read."""
    parser = argparse.ArgumentParser(prog="recover", description=__doc__)
    parser.add_argument("bag", type=Path, help="rosbag2 directory that the node recorded")
    parser.add_argument(
        "--delete-original", action="store_true", help="keep no copy of the original where all of it was recovered"
    )
    given = parser.parse_args(arguments)
    try:
        count, original, damages = recover(given.bag, given.delete_original)
    except ConfigError as error:
        print(f"recover: {error}", file=sys.stderr)
        return 1
    kept = f"; the original is kept as {original.name}" if original is not None else ""
    print(f"{given.bag}: {count} messages{kept}")
    if damages:
        print(f"recover: damaged, and not recovered: {_list(damages)}", file=sys.stderr)
    return 1 if damages else 0

"""`recover BAG`: completes a recording that was cut off or damaged, so that every tool opens it.

It writes a copy beside, and reads it again; only then the copy takes the place of the original, which stays under
another name. Exit codes: 0 where every complete message is there, 1 where nothing was changed, 3 where parts of the
recording could not be read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcap.records import Attachment, Message

from constrained_sim.bag_reader import METADATA
from constrained_sim.exceptions import ConfigError
from constrained_sim.parameter_file import read_yaml
from constrained_sim.ros.bag import bag_file
from constrained_sim.ros.bag_lock import bag_lock
from constrained_sim.ros.bag_writer import NEW, BagWriter
from constrained_sim.ros.mcap_scanner import LOST, McapScanner
from constrained_sim.whole_file import sync

EPILOG = "example: recover recordings/leg_bag; exit codes: 0 done; 1 refused; 2 wrong command line; 3 parts are damaged"

BESIDE = ".recovering"
"""Ends the names of files while they are written."""

KEPT = ".broken"
"""Ends the names of the originals."""

WAIT = 5.0
"""[s] for a recording process to end whose node was killed."""

METADATA_LIMIT = 4 << 20
"""[bytes] of a metadata file that is looked into."""

DAMAGED = 3
"""Exit code where parts of a recording could not be read."""


@dataclass(frozen=True)
class Recovery:
    """What became of a recording.

    Attributes:
        count: messages that it holds now.
        damage: what was wrong with it, a line each.
        is_whole: whether nothing but a record that was cut off at the end is missing.
        originals: where the files that were replaced are now; empty: they were complete, or deleted.
        was_complete: whether nothing was missing, and nothing was changed.
    """

    count: int
    damage: tuple[str, ...]
    is_whole: bool
    originals: tuple[Path, ...] = ()
    was_complete: bool = False


def recover(directory: Path, delete_original: bool = False) -> Recovery:
    """Rewrite the MCAP file of a rosbag2 `directory` with all its complete messages, an index and metadata.

    A recording that is complete stays as it is.

    Args:
        directory: of the bag.
        delete_original: delete what was replaced, where every complete message of it was copied.

    Raises:
        ConfigError: nothing in it can be read, the copy cannot be written, or it is being recorded; it is as it was.
    """
    try:
        with bag_lock(directory, WAIT):  # a recording whose node was killed may still be about to begin its file
            return _recover(bag_file(directory), delete_original)
    except BlockingIOError as error:
        raise ConfigError(f"{str(directory)!r} is still being written: stop the recording first") from error
    except OSError as error:
        raise ConfigError(f"cannot recover {str(directory)!r}: {error.strerror}; nothing was changed") from error


def _recover(file: Path, delete_original: bool) -> Recovery:
    """Do what :func:`recover` says; nobody else writes the bag meanwhile."""
    directory = file.parent
    present = McapScanner(file)
    deque(present.records(), maxlen=0)
    if present.is_complete and not present.damage and _metadata_agrees(directory, file.name, present.count):
        return Recovery(present.count, (), True, was_complete=True)
    if not present.count:
        raise ConfigError(f"nothing in {str(file)!r} can be read: {_reason(present)}")
    source = McapScanner(file)
    try:
        _check(directory / (file.name + BESIDE), _copy(source, directory, file.name, present))
        originals = _replace(directory, file.name)
    finally:
        for name in (file.name, METADATA, METADATA + NEW):
            with suppress(OSError):
                (directory / (name + BESIDE)).unlink()
    if delete_original and source.is_whole:
        for path in originals:
            path.unlink()
        originals = ()
    return Recovery(source.count, tuple(source.damage), source.is_whole, originals)


def _copy(source: McapScanner, directory: Path, name: str, present: McapScanner) -> Counter[str]:
    """Copy everything that `source` can read into files beside the originals; return messages by topic.

    The copy is compressed as the original is, and begins with what is lost: `present` has read all of the original.

    Raises:
        OSError: they cannot be written.
    """
    records = source.records()
    counts: Counter[str] = Counter()
    writer = BagWriter(directory, name, BESIDE, source.profile, False, present.compression)
    numbers: dict[tuple[object, ...], int] = {}
    try:
        if not present.is_whole:
            writer.add_metadata(LOST, {str(number): line for number, line in enumerate(present.damage)})
        for record in records:
            if isinstance(record, Message):
                channel = source.channels[record.channel_id]
                schema = source.schemas.get(channel.schema_id)
                key = (channel.id, channel.topic, channel.message_encoding, schema and (schema.name, schema.data))
                number = numbers.setdefault(key, len(numbers))
                writer.add_channel(number, channel, schema)
                writer.add_message(number, record.log_time, record.data, record.publish_time, record.sequence)
                counts[channel.topic] += 1
            elif isinstance(record, Attachment):
                writer.add_attachment(record.create_time, record.log_time, record.name, record.media_type, record.data)
            else:
                writer.add_metadata(record.name, record.metadata)
        writer.finish()
    finally:
        writer.close()
    return counts


def _check(file: Path, counts: Counter[str]) -> None:
    """Read a copy again.

    Raises:
        ConfigError: it is not complete, or has other messages than were written.
    """
    copy = McapScanner(file)
    found: Counter[str] = Counter()
    for record in copy.records():
        if isinstance(record, Message):
            found[copy.channels[record.channel_id].topic] += 1
    if found != counts or not copy.is_complete or copy.damage:
        raise ConfigError(
            f"the copy of {counts.total()} messages holds {found.total()} when it is read again; nothing was changed"
        )


def _metadata_agrees(directory: Path, name: str, count: int) -> bool:
    """Whether metadata.yaml tells of `count` messages in the file `name`."""
    path = directory / METADATA
    try:
        if not path.is_file() or path.stat().st_size > METADATA_LIMIT:
            return False
        information = read_yaml(path)["rosbag2_bagfile_information"]
        return bool(information["message_count"] == count and information["relative_file_paths"] == [name])
    except (ConfigError, OSError, LookupError, TypeError, RecursionError):
        return False


def _replace(directory: Path, name: str) -> tuple[Path, ...]:
    """Put the copies in the place of the originals; return where those are now.

    Each original has its new name before the old one is given to the copy: at no moment it is gone.

    Raises:
        OSError: a file cannot be renamed.
    """
    kept: dict[Path, Path] = {}
    try:
        for original in (directory / name, directory / METADATA):
            if original.is_symlink() or original.exists():
                kept[original] = _keep(original)
            Path(f"{original}{BESIDE}").replace(original)
        sync(directory)
    except OSError:
        for original, other in kept.items():
            if original.exists() and original.samefile(other):
                other.unlink()
            else:
                os.rename(other, original)
        raise
    return tuple(kept.values())


def _keep(original: Path) -> Path:
    """Give `original` a second name, or a new one where there cannot be two; return it."""
    other = _free_name(original)
    try:
        os.link(original, other, follow_symlinks=False)
    except OSError:  # a file system without hard links, or something that is not a file
        original.rename(other)
    return other


def _free_name(original: Path) -> Path:
    """Return the first of ``NAME.broken``, ``NAME.1.broken``, ``NAME.2.broken``, ... that is not taken."""
    path, number = Path(f"{original}{KEPT}"), 0
    while path.is_symlink() or path.exists():
        number += 1
        path = Path(f"{original}.{number}{KEPT}")
    return path


def _reason(source: McapScanner) -> str:
    if source.damage:
        return source.damage[0]
    return "it is cut off before the first complete message" if source.cut_off else "it holds no message"


def main(arguments: Sequence[str] | None = None) -> int:
    """Recover the bag that is named on the command line; return an exit code, see the top of this file."""
    parser = argparse.ArgumentParser(prog="recover", description=__doc__, epilog=EPILOG)
    parser.add_argument("bag", type=Path, help="rosbag2 directory that the node recorded")
    parser.add_argument(
        "--delete-original",
        action="store_true",
        help="delete the file that was cut off, where all its complete messages were copied",
    )
    options = parser.parse_args(arguments)
    try:
        recovery = recover(options.bag, options.delete_original)
    except ConfigError as error:
        print(f"recover: {error}", file=sys.stderr)
        return 1
    for line in recovery.damage:
        print(f"recover: {line}", file=sys.stderr)
    kept = f"; the original is {recovery.originals[0]}" if recovery.originals else ""
    whole = "; it was complete, and stays as it is" * recovery.was_complete
    lost = "" if recovery.is_whole else "; parts could not be read"
    print(f"{options.bag}: {recovery.count} messages{lost}{kept}{whole}")
    return 0 if recovery.is_whole else DAMAGED

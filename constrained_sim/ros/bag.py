"""Reads recordings message by message, in the order in which they were written; one that was cut off, to its end."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcap.exceptions import McapError
from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader

from constrained_sim.exceptions import ConfigError


@dataclass(frozen=True)
class Record:
    """A message of a recording.

    Attributes:
        topic: that it was recorded on.
        type_name: of the message, as ``std_msgs/msg/String``.
        stamp: [ns].
        data: serialised.
    """

    topic: str
    type_name: str
    stamp: int
    data: bytes


def bag_file(directory: Path) -> Path:
    """Return the MCAP file of a rosbag2 `directory`.

    Raises:
        ConfigError: there is not exactly one.
    """
    files = sorted(directory.glob("*.mcap"))
    if len(files) != 1:
        raise ConfigError(f"{str(directory)!r} holds {len(files)} MCAP files, allowed: one")
    return files[0]


def read_records(file: Path) -> Iterator[Record]:
    """Yield the messages of an MCAP `file`; what is cut off at its end is left out.

    Raises:
        ConfigError: not an MCAP file.
    """
    types: dict[int, str] = {}
    channels: dict[int, tuple[str, str]] = {}
    with file.open("rb") as stream:
        if stream.read(8) != b"\x89MCAP0\r\n":
            raise ConfigError(f"{str(file)!r} is not an MCAP file")
        stream.seek(0)
        records = StreamReader(stream).records
        while True:
            try:
                record = next(records)
            except (StopIteration, McapError, EOFError, ValueError, struct.error):
                return
            if isinstance(record, Schema):
                types[record.id] = record.name
            elif isinstance(record, Channel):
                channels[record.id] = record.topic, types[record.schema_id]
            elif isinstance(record, Message):
                yield Record(*channels[record.channel_id], record.log_time, record.data)

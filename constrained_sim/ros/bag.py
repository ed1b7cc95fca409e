"""Reads recordings message by message, in the order in which they were written; one that was cut off, to its end."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional

QOS_KEY = "offered_qos_profiles"
"""Under which rosbag2 keeps the quality of service of a topic, in the MCAP file and in metadata.yaml."""


class RecordedTopic(NamedTuple):
    """A topic of a recording.

    Attributes:
        name: of the topic.
        type_name: of its messages, as ``std_msgs/msg/String``.
        qos: with which it was published, in the words of rosbag2 (YAML): a player that offers less is not heard.
    """

    name: str
    type_name: str
    qos: str


@dataclass(frozen=True)
class Record:
    """A message of a recording.

    Attributes:
        topic: that it was recorded on.
        stamp: [ns].
        data: serialised.
    """

    topic: RecordedTopic
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
        MissingLibrary: the one that reads them.
    """
    optional("mcap", "a recording")
    from mcap.exceptions import McapError
    from mcap.records import Channel, Message, Schema
    from mcap.stream_reader import StreamReader

    types: dict[int, str] = {}
    topics: dict[int, RecordedTopic] = {}
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
                qos = record.metadata.get(QOS_KEY, "")
                topics[record.id] = RecordedTopic(record.topic, types[record.schema_id], qos)
            elif isinstance(record, Message):
                yield Record(topics[record.channel_id], record.log_time, record.data)

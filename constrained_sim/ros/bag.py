"""Reads recordings message by message, in the order in which they were written; one that was cut off, to its end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mcap.records import Channel, Message, Schema

from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.mcap_records import RecordReader

QOS_KEY = "offered_qos_profiles"
"""Under which rosbag2 keeps the quality of service of a topic, in the MCAP file and in metadata.yaml."""


class RecordedTopic(NamedTuple):
    """A topic of a recording.

    Attributes:
        name: of the topic.
        type_name: of its messages, as ``std_msgs/msg/String``.
        qos: with which it was published, in the words of rosbag2 (YAML): a player that offers less is not heard.
        definition: of its messages; None: that of the installed package.
        encoding: of the definition.
    """

    name: str
    type_name: str
    qos: str
    definition: str | None = None
    encoding: str = "ros2msg"


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


class Records:
    """The messages of an MCAP file in the order in which they were written; what is cut off at its end is left out.

    Attributes:
        damages: what could not be read so far, and where.
    """

    def __init__(self, file: Path) -> None:
        """Read `file`.

        Raises:
            ConfigError: not an MCAP file, or it cannot be read.
        """
        self._reader = RecordReader(file)
        self.damages = self._reader.damages
        self._all = self._messages()

    def __iter__(self) -> Iterator[Record]:
        """Go on where the last look ended."""
        return self._all

    def _messages(self) -> Iterator[Record]:
        schemas: dict[int, Schema] = {}
        topics: dict[int, RecordedTopic] = {}
        unknown = 0
        for record in self._reader:
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                topics[record.id] = _topic(record, schemas.get(record.schema_id))
            elif isinstance(record, Message) and record.channel_id in topics:
                yield Record(topics[record.channel_id], record.log_time, record.data)
            elif isinstance(record, Message):
                unknown += 1
        if unknown:
            self.damages.append(f"{unknown} messages of channels that were not read")


def _topic(channel: Channel, schema: Schema | None) -> RecordedTopic:
    qos = channel.metadata.get(QOS_KEY, "")
    if schema is None:
        return RecordedTopic(channel.topic, "", qos, "", "")
    definition = schema.data.decode(errors="replace")
    return RecordedTopic(channel.topic, schema.name, qos, definition, schema.encoding)


def bag_file(directory: Path) -> Path:
    """Return the MCAP file of a rosbag2 `directory`.

    Raises:
        ConfigError: there is not exactly one.
    """
    try:
        files = sorted(itertools.islice(directory.glob("*.mcap"), 100))
    except OSError as error:
        raise ConfigError(f"{str(directory)!r} cannot be read: {error}") from error
    if len(files) != 1:
        what = f"{len(files)} MCAP files" if directory.is_dir() else "no files: it is not a directory"
        raise ConfigError(f"{str(directory)!r} holds {what}, allowed: one MCAP file")
    return files[0]


def read_records(file: Path) -> Records:
    """Return the messages of an MCAP `file`.

    Raises:
        ConfigError: not an MCAP file, or it cannot be read.
    """
    return Records(file)

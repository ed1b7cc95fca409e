"""Reads recordings message by message, in the order in which they were written; one that was cut off, to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional

if TYPE_CHECKING:
    from constrained_sim.ros.mcap_scanner import McapScanner

QOS_KEY = "offered_qos_profiles"
"""Under which rosbag2 keeps the quality of service of a topic, in the MCAP file and in metadata.yaml."""


HASH_KEY = "topic_type_hash"
"""Under which rosbag2 keeps the hash of a topic's type in the MCAP file."""


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
        ConfigError: not a directory, or there is not exactly one such file in it.
    """
    if not directory.is_dir():
        raise ConfigError(f"{str(directory)!r} is not a directory, allowed: the rosbag2 directory of a recording")
    try:
        files = sorted(path for path in directory.iterdir() if path.suffix == ".mcap")
    except OSError as error:
        raise ConfigError(f"cannot read {str(directory)!r}: {error.strerror}") from error
    if len(files) != 1:
        raise ConfigError(f"{str(directory)!r} holds {len(files)} MCAP files, allowed: one")
    return files[0]


def read_records(source: Path | McapScanner) -> Iterator[Record]:
    """Yield the messages of an MCAP file; what is damaged or cut off is left out.

    Args:
        source: the file, or a scanner of it, which tells afterwards what was left out.

    Raises:
        ConfigError: not an MCAP file, or one that cannot be read.
    """
    optional("mcap", "a recording")
    from mcap.records import Message

    from constrained_sim.ros.mcap_scanner import McapScanner

    scanner = source if isinstance(source, McapScanner) else McapScanner(source)
    for record in scanner.records():
        if isinstance(record, Message):
            channel = scanner.channels[record.channel_id]
            schema = scanner.schemas.get(channel.schema_id)
            qos = channel.metadata.get(QOS_KEY, "")
            topic = RecordedTopic(channel.topic, schema.name if schema is not None else "", qos)
            yield Record(topic, record.log_time, record.data)

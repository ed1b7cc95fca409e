"""Writing a rosbag2 directory with one MCAP file, so that what is on the disk is readable at every moment."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import yaml
from mcap.records import Channel, Schema
from mcap.writer import CompressionType, Writer

from constrained_sim.bag_reader import METADATA
from constrained_sim.ros.bag import HASH_KEY, QOS_KEY

CHUNK_BYTES = {"none": 64 << 10, "lz4": 256 << 10, "zstd": 256 << 10}
"""[bytes] of a chunk before compression: what is compressed together is smaller."""

STORAGE, DISTRO_KEY = "rosbag2", "ROS_DISTRO"
"""Name of the metadata record of the MCAP file that tells of ROS, and its key for the distribution."""

NEW = ".new"
"""Ends the name of metadata before they take the place of older ones, followed by the suffix of the writer."""


class AppendedFile:
    """A new file; what one flush appends is in it whole, or not at all."""

    def __init__(self, path: Path) -> None:
        """Make the file at `path`, empty.

        Raises:
            OSError: it cannot be made.
        """
        self._file = open(path, "wb", buffering=0)
        self._pieces: list[bytes] = []
        self._waiting = self._size = 0

    def write(self, data: bytes) -> int:
        """Take `data`; :meth:`flush` writes them."""
        self._pieces.append(bytes(data))
        self._waiting += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how long the file will be after a flush [bytes]."""
        return self._size + self._waiting

    @property
    def has_waiting(self) -> bool:
        """Whether there is something to flush."""
        return bool(self._pieces)

    def flush(self) -> None:
        """Write what was taken.

        Raises:
            OSError: it could not be written whole, and nothing of it is there.
        """
        data, length = b"".join(self._pieces), self.tell()
        self._pieces, self._waiting = [], 0
        try:
            written = 0
            while written < len(data):
                written += self._file.write(memoryview(data)[written:]) or 0
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size = length

    def sync(self) -> None:
        """Wait until the disk has what was written.

        Raises:
            OSError: the disk does not take it.
        """
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()


class BagWriter:
    """Writes a rosbag2 directory with one MCAP file, see the rosbag2 metadata format, version 8.

    Attributes:
        written: messages that are in the file, readable, whatever happens now.
    """

    def __init__(
        self,
        directory: Path,
        name: str = "",
        suffix: str = "",
        profile: str = "ros2",
        metadata: bool = True,
        compression: str = "none",
    ) -> None:
        """Open the file, empty, and write the first metadata.

        Args:
            directory: of the bag.
            name: of the file in the metadata; empty: one named like the directory.
            suffix: appended to the names of the file and of the metadata while they are written.
            profile: of the MCAP file.
            metadata: write metadata.yaml from the beginning, not only at the end.
            compression: of the chunks of messages: ``none``, ``zstd`` or ``lz4``.

        Raises:
            OSError: they cannot be written.
        """
        self._directory, self._name, self._suffix = directory, name or f"{directory.name}_0.mcap", suffix
        self._file = AppendedFile(directory / (self._name + suffix))
        self._writer = Writer(
            self._file,
            chunk_size=CHUNK_BYTES[compression],
            compression=CompressionType[compression.upper()],
        )
        self._writer.start(profile=profile, library="constrained_sim")
        self._schemas: dict[tuple[str, str, bytes], int] = {}
        self._channels: dict[int, tuple[int, Channel, str]] = {}
        self._counts: Counter[int] = Counter()
        self._first: int | None = None
        self._last = self.written = 0
        self._distribution = ""
        self._early_metadata = metadata
        if metadata:
            self._file.flush()
            self._write_metadata()

    def add_channel(self, number: int, channel: Channel, schema: Schema | None) -> None:
        """Register a topic under a `number` of the caller's; one that is registered already stays as it is."""
        if number in self._channels:
            return
        schema_number = 0
        if schema is not None:
            key = schema.name, schema.encoding, schema.data
            if key not in self._schemas:
                self._schemas[key] = self._writer.register_schema(*key)
            schema_number = self._schemas[key]
        own = self._writer.register_channel(channel.topic, channel.message_encoding, schema_number, channel.metadata)
        self._channels[number] = own, channel, schema.name if schema is not None else ""
        if self._early_metadata:
            self._write_metadata()

    def add_message(
        self, number: int, stamp: int, payload: bytes, published: int | None = None, sequence: int | None = None
    ) -> None:
        """Append a message.

        Args:
            number: of its channel.
            stamp: when it was recorded [ns].
            payload: serialised.
            published: when it was published [ns]; None: at `stamp`.
            sequence: given by its publisher; None: counted here.

        Raises:
            OSError: the file cannot be written.
        """
        published = stamp if published is None else published
        sequence = self._counts[number] if sequence is None else sequence
        self._writer.add_message(self._channels[number][0], stamp, payload, published, sequence)
        self._counts[number] += 1
        self._first = stamp if self._first is None else min(self._first, stamp)
        self._last = max(self._last, stamp)
        if self._file.has_waiting:
            self._append()

    def add_attachment(self, created: int, logged: int, name: str, media_type: str, data: bytes) -> None:
        """Append an attachment, after the messages before it."""
        self.flush()
        self._writer.add_attachment(created, logged, name, media_type, data)
        self._append()

    def add_metadata(self, name: str, data: dict[str, str]) -> None:
        """Append a metadata record of MCAP, after the messages before it; that of rosbag2 tells the distribution."""
        self.flush()
        self._writer.add_metadata(name, data)
        self._append()
        if name == STORAGE:
            self._distribution = data.get(DISTRO_KEY, self._distribution)

    def flush(self) -> None:
        """Write what was added to the file: what is in a chunk is readable only when the chunk is complete.

        Raises:
            OSError: the file cannot be written.
        """
        self._writer._Writer__finalize_chunk()  # mcap has no public name for it
        self._append()

    def finish(self) -> None:
        """Complete the file and its metadata, and wait until the disk has them.

        Raises:
            OSError: they cannot be written.
        """
        self.flush()
        self._writer.finish()
        self._append()
        self._file.sync()
        self._file.close()
        self._write_metadata(sync=True)

    def close(self) -> None:
        """Leave the file as it is, without an index."""
        self._file.close()

    def _append(self) -> None:
        self._file.flush()
        self.written = self._counts.total()

    def _write_metadata(self, sync: bool = False) -> None:
        path = self._directory / (METADATA + self._suffix)
        temporary = self._directory / (METADATA + NEW + self._suffix)
        with temporary.open("w") as file:
            file.write(yaml.safe_dump({"rosbag2_bagfile_information": self._information()}, sort_keys=False))
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)

    def _information(self) -> dict[str, object]:
        """Return the content of the metadata; channels of one topic are one there."""
        start, total = self._first or 0, self._counts.total()
        duration = {"nanoseconds": max(0, self._last - start)}
        begin = {"nanoseconds_since_epoch": start}
        topics: dict[str, dict[str, object]] = {}
        counts: Counter[str] = Counter()
        for number, (_, channel, type_name) in self._channels.items():
            counts[channel.topic] += self._counts[number]
            topics[channel.topic] = {
                "name": channel.topic,
                "type": type_name,
                "serialization_format": channel.message_encoding,
                QOS_KEY: channel.metadata.get(QOS_KEY, ""),
                "type_description_hash": channel.metadata.get(HASH_KEY, ""),
            }
        return {
            "version": 8,
            "storage_identifier": "mcap",
            "duration": duration,
            "starting_time": begin,
            "message_count": total,
            "topics_with_message_count": [
                {"topic_metadata": topic, "message_count": counts[name]} for name, topic in topics.items()
            ],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [self._name],
            "files": [
                {"path": self._name, "starting_time": dict(begin), "duration": dict(duration), "message_count": total}
            ],
            "custom_data": {},
            "ros_distro": self._distribution,
        }

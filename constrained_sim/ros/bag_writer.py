"""Writes rosbag2 directories: one MCAP file in small chunks, and metadata.yaml from the start."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import yaml
from ament_index_python.packages import get_package_share_directory
from mcap.writer import CompressionType, Writer

from constrained_sim.ros.bag import QOS_KEY, RecordedTopic

CHUNK_BYTES = 64 << 10
TEMPORARY = "metadata.yaml.new"


class BagWriter:
    """Writes a rosbag2 directory with one MCAP file, see the rosbag2 metadata format, version 5.

    As a context manager it finishes the bag, or leaves what is complete of it where an error occurs.

    Attributes:
        count: messages that were added.
        flushed: messages that are in the file, in complete chunks.
    """

    def __init__(self, directory: Path, name: str = "") -> None:
        """Open the file `name`, empty: one named like the directory, and write the first metadata."""
        self._directory, self._name = directory, name or f"{directory.name}_0.mcap"
        self.count = self.flushed = self._end_of_flushed = 0
        self._file = open(directory / self._name, "wb")
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES, compression=CompressionType.NONE)
        self._writer.start(profile="ros2", library="constrained_sim")
        self._channels: dict[int, tuple[int, RecordedTopic]] = {}
        self._counts: dict[int, int] = {}
        self._first: int | None = None
        self._last = 0
        self._write_metadata()

    def __enter__(self) -> BagWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the bag, or leave what is complete of it.

        Raises:
            OSError: it could not be written.
        """
        if error is not None:
            self.abandon()
            return
        try:
            self.finish()
        except OSError:
            self.abandon()
            raise

    def add_channel(self, number: int, topic: RecordedTopic) -> None:
        """Register a topic; one that is known already stays as it is."""
        if number in self._channels:
            return
        definition = message_definition(topic.type_name) if topic.definition is None else topic.definition
        schema = self._writer.register_schema(topic.type_name, topic.encoding, definition.encode())
        channel = self._writer.register_channel(topic.name, "cdr", schema, {QOS_KEY: topic.qos})
        self._channels[number] = (channel, topic)
        self._counts[number] = 0
        self._write_metadata()

    def add_message(self, number: int, stamp: int, payload: bytes) -> None:
        """Append a message."""
        self._writer.add_message(self._channels[number][0], stamp, payload, stamp, self._counts[number])
        self._counts[number] += 1
        self.count += 1
        self._first = stamp if self._first is None else min(self._first, stamp)
        self._last = max(self._last, stamp)

    def flush(self) -> None:
        """Bring what was added to the disk: what is in a chunk is readable only when the chunk is complete."""
        self._writer._Writer__finalize_chunk()  # type: ignore[attr-defined] # mcap has no public name for it
        self._file.flush()
        self.flushed, self._end_of_flushed = self.count, self._file.tell()

    def finish(self) -> None:
        """Close the file and write the final metadata."""
        self.flush()
        self._writer.finish()
        self._file.close()
        self._write_metadata()

    def abandon(self) -> None:
        """Close the file where it could not be written on; what is flushed stays, and what is behind it is cut off."""
        try:
            self._file.close()
        except OSError:
            pass  # it cannot write what it holds: that is why it is abandoned
        try:
            os.truncate(self._directory / self._name, self._end_of_flushed)
            self._write_metadata()
        except OSError:
            (self._directory / TEMPORARY).unlink(missing_ok=True)  # the metadata of before are left

    def _write_metadata(self) -> None:
        start, total = self._first or 0, sum(self._counts.values())
        span = {"nanoseconds": max(0, self._last - start)}, {"nanoseconds_since_epoch": start}
        topics = [
            {
                "topic_metadata": {
                    "name": topic.name,
                    "type": topic.type_name,
                    "serialization_format": "cdr",
                    QOS_KEY: topic.qos,
                },
                "message_count": self._counts[number],
            }
            for number, (_, topic) in self._channels.items()
        ]
        information = {
            "version": 5,
            "storage_identifier": "mcap",
            "duration": span[0],
            "starting_time": span[1],
            "message_count": total,
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [self._name],
            "files": [{"path": self._name, "starting_time": span[1], "duration": span[0], "message_count": total}],
        }
        temporary = self._directory / TEMPORARY
        temporary.write_text(yaml.safe_dump({"rosbag2_bagfile_information": information}, sort_keys=False))
        temporary.replace(self._directory / "metadata.yaml")


def message_definition(type_name: str) -> str:
    """Return the definition of a message with those of all messages in it, as MCAP's ``ros2msg`` schema wants it."""
    texts: dict[str, str] = {}
    pending = [type_name]
    while pending:
        name = pending.pop(0)
        if name in texts:
            continue
        package, _, message = name.split("/")
        texts[name] = (Path(get_package_share_directory(package)) / "msg" / f"{message}.msg").read_text()
        pending += _members(texts[name], package)
    separator = "=" * 80
    rest = [f"{separator}\nMSG: {name.replace('/msg/', '/')}\n{text}" for name, text in list(texts.items())[1:]]
    return "\n".join([texts[type_name], *rest])


def _members(definition: str, package: str) -> list[str]:
    """Return the full names of the message types among the fields of `definition`."""
    names = []
    for line in definition.splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2:
            continue
        kind = words[0].split("[")[0].split("<")[0]
        if "/" in kind:
            names.append("/".join((kind.split("/")[0], "msg", kind.split("/")[-1])))
        elif kind[0].isupper():
            names.append(f"{package}/msg/{kind}")
    return names

"""Recording a rosbag2 (MCAP): the node writes serialised messages into a pipe, a process of its own writes the bag.

The bag gets exactly what was published, every control period of it, whatever DDS does. Chunks are small and go to
the disk twice a second, and metadata.yaml is there from the start, so that a bag that was cut off is readable.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from ament_index_python.packages import get_package_share_directory

from constrained_sim.config import NodeOptions
from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional
from constrained_sim.ros.bag import QOS_KEY, RecordedTopic

FRAME = struct.Struct("<HqI")
NEW_TOPIC = -1
PIPE_BYTES = 1 << 20
CHUNK_BYTES = 64 << 10
FLUSH_PERIOD = 0.5


@dataclass
class Recorder:
    """The node's end of the pipe.

    Attributes:
        directory: of the bag; made here.
        patient: wait while the pipe is full; else drop the message, so that a simulation in real time is not held up.
        lost: messages that were not recorded.
    """

    directory: Path
    patient: bool = True
    lost: int = 0
    _topics: dict[str, int] = field(default_factory=dict)
    _announced: set[str] = field(default_factory=set)
    _buffer: bytearray = field(default_factory=bytearray)
    _waiting: int = 0

    def __post_init__(self) -> None:
        """Start the writing process.

        Raises:
            ConfigError: the directory exists already, or cannot be made.
        """
        try:
            self.directory.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(f"cannot record to {str(self.directory)!r}: {error}; give a new directory") from error
        self._process = subprocess.Popen(
            [sys.executable, "-m", "constrained_sim.ros.recorder", str(self.directory)],
            stdin=subprocess.PIPE,
            bufsize=0,
        )
        self._pipe = self._process.stdin
        fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def write(self, topic: RecordedTopic, stamp: int, serialised: bytes) -> None:
        """Take a message with its `stamp` [ns]; :meth:`flush` hands it over."""
        number = self._topics.setdefault(topic.name, len(self._topics))
        if topic.name not in self._announced:
            self._announced.add(topic.name)
            self._put(number, NEW_TOPIC, json.dumps(topic).encode())
        self._put(number, stamp, serialised)
        self._waiting += 1

    def sink(self, topic: RecordedTopic) -> Callable[[bytes, int], None]:
        """Return a function that takes the messages of one topic and their stamps [ns]."""
        return lambda serialised, stamp: self.write(topic, stamp, serialised)

    def flush(self) -> None:
        """Hand over what has been taken, in one piece: once per control period."""
        if not self.patient and self._queued() + len(self._buffer) > PIPE_BYTES:
            return self._lose()
        view = memoryview(bytes(self._buffer))
        try:
            while view:
                view = view[os.write(self._pipe.fileno(), view) :]
        except BrokenPipeError:
            return self._lose()
        self._buffer.clear()
        self._waiting = 0

    def close(self) -> None:
        """Finish the bag."""
        self.flush()
        try:
            self._pipe.close()
        except BrokenPipeError:
            pass
        self._process.wait()

    def _lose(self) -> None:
        """Drop the messages that wait; topics may have been announced among them, and are announced again."""
        self.lost += self._waiting
        self._announced.clear()
        self._buffer.clear()
        self._waiting = 0

    def _queued(self) -> int:
        return struct.unpack("i", fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0" * 4))[0]

    def _put(self, channel: int, stamp: int, payload: bytes) -> None:
        self._buffer += FRAME.pack(channel, stamp, len(payload)) + payload


def make_recorder(options: NodeOptions) -> Recorder | None:
    """Return the recorder that `options` ask for.

    Raises:
        ConfigError: the directory of the recording cannot be made.
        MissingLibrary: the one that writes it.
    """
    if not options.record:
        return None
    optional("mcap", f"recording to {options.record!r}")
    return Recorder(Path(options.record), options.clock_mode != "realtime")


class BagWriter:
    """Writes a rosbag2 directory with one MCAP file, see the rosbag2 metadata format, version 5."""

    def __init__(self, directory: Path, name: str = "") -> None:
        """Open the file `name`, empty: one named like the directory, and write the first metadata."""
        from mcap.writer import CompressionType, Writer

        self._directory, self._name = directory, name or f"{directory.name}_0.mcap"
        self._file = open(directory / self._name, "wb")
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES, compression=CompressionType.NONE)
        self._writer.start(profile="ros2", library="constrained_sim")
        self._channels: dict[int, tuple[int, RecordedTopic]] = {}
        self._counts: dict[int, int] = {}
        self._first: int | None = None
        self._last = 0
        self._write_metadata()

    def add_channel(self, number: int, topic: RecordedTopic) -> None:
        """Register a topic; one that is known already stays as it is."""
        if number in self._channels:
            return
        definition = message_definition(topic.type_name).encode()
        schema = self._writer.register_schema(topic.type_name, "ros2msg", definition)
        channel = self._writer.register_channel(topic.name, "cdr", schema, {QOS_KEY: topic.qos})
        self._channels[number] = (channel, topic)
        self._counts[number] = 0
        self._write_metadata()

    def add_message(self, number: int, stamp: int, payload: bytes) -> None:
        """Append a message."""
        self._writer.add_message(self._channels[number][0], stamp, payload, stamp, self._counts[number])
        self._counts[number] += 1
        self._first = stamp if self._first is None else min(self._first, stamp)
        self._last = max(self._last, stamp)

    def flush(self) -> None:
        """Bring what was added to the disk: what is in a chunk is readable only when the chunk is complete."""
        self._writer._Writer__finalize_chunk()  # type: ignore[attr-defined] # mcap has no public name for it
        self._file.flush()

    def finish(self) -> None:
        """Close the file and write the final metadata."""
        self._writer.finish()
        self._file.close()
        self._write_metadata()

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
        temporary = self._directory / "metadata.yaml.new"
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


def write_bag(stream: int, directory: Path) -> None:
    """Write everything that comes out of the file descriptor `stream` until it ends."""
    writer, waiting = BagWriter(directory), bytearray()
    flushed = time.monotonic()
    try:
        while True:
            left = flushed + FLUSH_PERIOD - time.monotonic()
            if left <= 0.0:
                writer.flush()
                flushed = time.monotonic()
            elif select.select([stream], [], [], left)[0]:
                data = os.read(stream, PIPE_BYTES)
                if not data:
                    break
                waiting += data
                _take_frames(waiting, writer)
    finally:
        writer.finish()


def _take_frames(waiting: bytearray, writer: BagWriter) -> None:
    """Hand all complete frames at the beginning of `waiting` to `writer`, and remove them."""
    begin = 0
    while len(waiting) - begin >= FRAME.size:
        channel, stamp, size = FRAME.unpack_from(waiting, begin)
        end = begin + FRAME.size + size
        if len(waiting) < end:
            break
        payload = bytes(waiting[begin + FRAME.size : end])
        if stamp == NEW_TOPIC:
            writer.add_channel(channel, RecordedTopic(*json.loads(payload)))
        else:
            writer.add_message(channel, stamp, payload)
        begin = end
    del waiting[:begin]


def main() -> None:
    """Write the bag in the directory named on the command line from standard input; only its end stops this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write_bag(sys.stdin.fileno(), Path(sys.argv[1]))


if __name__ == "__main__":
    main()

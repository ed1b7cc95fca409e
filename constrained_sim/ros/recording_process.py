"""The process that writes a recording: it takes serialised messages from a pipe, and tells how many are in the bag.

A process of its own survives the node: what was handed over is written to the end, whatever happens to the node. Until
then it holds the lock of the bag, which it inherits.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

from mcap.records import Channel, Schema

from constrained_sim.ros.bag import HASH_KEY, QOS_KEY, RecordedTopic
from constrained_sim.ros.bag_writer import DISTRO_KEY, STORAGE, BagWriter
from constrained_sim.ros.message_definitions import message_definition
from constrained_sim.ros.recorder import FRAME, NEW_TOPIC, PIPE_BYTES
from constrained_sim.ros.type_hashes import type_hash

FLUSH_PERIOD = 0.5


class _Reports:
    """The way back to the node: lines of JSON."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        os.set_blocking(stream, False)

    def send(self, written: int, error: str = "", ended: bool = False) -> None:
        """Tell how many messages are in the bag, and why there will be no more; a node that is gone needs no report."""
        line = json.dumps({"written": written, "error": error, "ended": ended}) + "\n"
        with contextlib.suppress(OSError):
            os.set_blocking(self._stream, ended)
            os.write(self._stream, line.encode())


def write_bag(stream: int, directory: Path, reports: int, compression: str = "none") -> int:
    """Write everything that comes out of the file descriptor `stream` until it ends; return an exit code."""
    back, writer = _Reports(reports), None
    error = ""
    try:
        writer = BagWriter(directory, compression=compression)
        writer.add_metadata(STORAGE, {DISTRO_KEY: os.environ.get("ROS_DISTRO", "")})
        back.send(0)  # the bag is open
        _write_all(stream, writer, back)
        writer.finish()
    except OSError as problem:
        error = problem.strerror or str(problem)
        if writer is not None:
            writer.close()
    back.send(writer.written if writer is not None else 0, error, ended=True)
    return 1 if error else 0


def _write_all(stream: int, writer: BagWriter, back: _Reports) -> None:
    waiting, flushed, channels = bytearray(), time.monotonic(), _Channels(writer)
    while True:
        left = flushed + FLUSH_PERIOD - time.monotonic()
        if left <= 0.0:
            writer.flush()
            back.send(writer.written)
            flushed = time.monotonic()
        elif select.select([stream], [], [], left)[0]:
            data = os.read(stream, PIPE_BYTES)
            if not data:
                return
            waiting += data
            _take_frames(waiting, channels)


class _Channels:
    """The topics of a recording."""

    def __init__(self, writer: BagWriter) -> None:
        self._writer, self._latest = writer, 0

    def add(self, number: int, topic: RecordedTopic) -> None:
        """Begin the topic `number`."""
        schema = Schema(0, message_definition(topic.type_name).encode(), "ros2msg", topic.type_name)
        about = {QOS_KEY: topic.qos, HASH_KEY: type_hash(topic.type_name)}
        self._writer.add_channel(number, Channel(number, topic.name, "cdr", about, 0), schema)

    def take(self, number: int, stamp: int, payload: bytes) -> None:
        """Write a message; where time goes back, at a reset, a new chunk begins: times never fall within one."""
        if stamp < self._latest:
            self._writer.flush()
        self._latest = stamp
        self._writer.add_message(number, stamp, payload)


def _take_frames(waiting: bytearray, channels: _Channels) -> None:
    """Hand all complete frames at the beginning of `waiting` to `channels`, and remove them."""
    begin = 0
    while len(waiting) - begin >= FRAME.size:
        number, stamp, size = FRAME.unpack_from(waiting, begin)
        end = begin + FRAME.size + size
        if len(waiting) < end:
            break
        payload = bytes(waiting[begin + FRAME.size : end])
        if stamp == NEW_TOPIC:
            channels.add(number, RecordedTopic(*json.loads(payload)))
        else:
            channels.take(number, stamp, payload)
        begin = end
    del waiting[:begin]


def main() -> int:
    """Write the bag in the directory named on the command line, compressed as it says, until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return write_bag(sys.stdin.fileno(), Path(sys.argv[1]), sys.stdout.fileno(), sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())

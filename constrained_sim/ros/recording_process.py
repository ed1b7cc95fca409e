"""The process that writes a recording: it takes serialised messages from a pipe, and tells how many are in the bag.

A process of its own survives the node: what was handed over is written to the end, whatever happens to the node.
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

from constrained_sim.ros.bag import QOS_KEY, RecordedTopic
from constrained_sim.ros.bag_lock import bag_lock
from constrained_sim.ros.bag_writer import BagWriter
from constrained_sim.ros.message_definitions import message_definition
from constrained_sim.ros.recorder import FRAME, NEW_TOPIC, PIPE_BYTES

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


def write_bag(stream: int, directory: Path, reports: int) -> int:
    """Write everything that comes out of the file descriptor `stream` until it ends; return an exit code."""
    back, writer = _Reports(reports), None
    error = ""
    try:
        writer = BagWriter(directory)
        with bag_lock(directory):
            _write_all(stream, writer, back)
            writer.finish()
    except OSError as problem:
        error = problem.strerror or str(problem)
        if writer is not None:
            writer.close()
    back.send(writer.written if writer is not None else 0, error, ended=True)
    return 1 if error else 0


def _write_all(stream: int, writer: BagWriter, back: _Reports) -> None:
    waiting, flushed = bytearray(), time.monotonic()
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
            _take_frames(waiting, writer)


def _take_frames(waiting: bytearray, writer: BagWriter) -> None:
    """Hand all complete frames at the beginning of `waiting` to `writer`, and remove them."""
    begin = 0
    while len(waiting) - begin >= FRAME.size:
        number, stamp, size = FRAME.unpack_from(waiting, begin)
        end = begin + FRAME.size + size
        if len(waiting) < end:
            break
        payload = bytes(waiting[begin + FRAME.size : end])
        if stamp == NEW_TOPIC:
            topic = RecordedTopic(*json.loads(payload))
            schema = Schema(0, message_definition(topic.type_name).encode(), "ros2msg", topic.type_name)
            writer.add_channel(number, Channel(number, topic.name, "cdr", {QOS_KEY: topic.qos}, 0), schema)
        else:
            writer.add_message(number, stamp, payload)
        begin = end
    del waiting[:begin]


def main() -> int:
    """Write the bag in the directory named on the command line from standard input; only its end stops this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return write_bag(sys.stdin.fileno(), Path(sys.argv[1]), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())

"""The process that writes a recording: messages come through a pipe, and reports of what is on the disk go back."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time
from pathlib import Path

from constrained_sim.ros.bag import RecordedTopic
from constrained_sim.ros.bag_writer import BagWriter

FRAME = struct.Struct("<HqI")
NEW_TOPIC = -1
PIPE_BYTES = 1 << 20
FLUSH_PERIOD = 0.5


def write_bag(stream: int, directory: Path) -> str:
    """Write everything that comes out of the file descriptor `stream` until it ends; return why it ended early."""
    writer = None
    try:
        with BagWriter(directory) as writer:
            _write_frames(stream, writer)
    except OSError as error:
        return f"{error.strerror or error}"
    finally:
        report(writer)
    return ""


def _write_frames(stream: int, writer: BagWriter) -> None:
    waiting, flushed = bytearray(), time.monotonic()
    while True:
        left = flushed + FLUSH_PERIOD - time.monotonic()
        if left <= 0.0:
            writer.flush()
            report(writer)
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


def report(writer: BagWriter | None, error: str = "") -> None:
    """Tell the node how many messages are in the file, and why there will be no more."""
    line = json.dumps({"written": writer.flushed if writer is not None else None, "error": error})
    try:
        os.write(sys.stdout.fileno(), f"{line}\n".encode())
    except OSError:
        pass  # the node is gone; the bag is finished without it


def main() -> int:
    """Write the bag in the directory named on the command line from standard input; only its end stops this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    error = write_bag(sys.stdin.fileno(), Path(sys.argv[1]))
    if error:
        report(None, error)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())

"""Recording a rosbag2 (MCAP): the node writes serialised messages into a pipe, a process of its own writes the bag.

The bag gets exactly what was published, every control period of it, whatever DDS does. Chunks are small and go to
the disk twice a second, and metadata.yaml is there from the start, so that a bag that was cut off is readable.
The node never waits for the pipe: what does not fit is kept, and tried again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from constrained_sim.config import NodeOptions
from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.bag import RecordedTopic
from constrained_sim.ros.bag_process import FRAME, NEW_TOPIC, PIPE_BYTES

MOST_WAITING = 1 << 20
"""[bytes] that may wait for their way into the pipe: more is dropped, or the simulation waits."""

STALL = 5.0
"""[s] of wall-clock time without progress after which the end of a recording is no longer waited for."""


class Recorder:
    """The node's end of the pipe.

    Attributes:
        directory: of the bag; made here.
        patient: keep every message, and let the simulation wait while :attr:`is_behind`; else drop what does not fit,
            so that a simulation in real time is not held up.
        error: why the recording ended early; empty while it goes on.
    """

    def __init__(self, directory: Path, patient: bool = True) -> None:
        """Start the writing process.

        Raises:
            ConfigError: the directory exists already, or cannot be made.
        """
        self.directory, self.patient, self.error = directory, patient, ""
        try:
            directory.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(f"cannot record to {str(directory)!r}: {error}; give a new directory") from error
        self._topics: dict[str, int] = {}
        self._buffer, self._reports = bytearray(), bytearray()
        self._taken = self._dropped = self._written = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "constrained_sim.ros.bag_process", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._pipe, self._answers = self._process.stdin, self._process.stdout
        for end in (self._pipe, self._answers):
            os.set_blocking(end.fileno(), False)
        with contextlib.suppress(OSError):  # a system that allows less keeps what it allows
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    @property
    def lost(self) -> int:
        """Number of messages that were not recorded; where the recording ended early, those not known to be."""
        return self._dropped + (self._taken - self._written if self.error else 0)

    @property
    def is_behind(self) -> bool:
        """Whether the simulation is to wait: the writing process does not keep up."""
        return self.patient and not self.error and len(self._buffer) > MOST_WAITING

    def write(self, topic: RecordedTopic, stamp: int, serialised: bytes) -> None:
        """Take a message with its `stamp` [ns]; :meth:`flush` hands it over."""
        if self.error:
            self._dropped += 1
            return
        number = self._topics.get(topic.name)
        announcement = b""
        if number is None:
            number = len(self._topics)
            announcement = _frame(number, NEW_TOPIC, json.dumps(topic).encode())
        frames = announcement + _frame(number, stamp, serialised)
        if not self.patient and len(self._buffer) + len(frames) > MOST_WAITING:
            self._dropped += 1
            return
        self._topics[topic.name] = number
        self._buffer += frames
        self._taken += 1

    def sink(self, topic: RecordedTopic) -> Callable[[bytes, int], None]:
        """Return a function that takes the messages of one topic and their stamps [ns]."""
        return lambda serialised, stamp: self.write(topic, stamp, serialised)

    def flush(self) -> None:
        """Hand over as much of what has been taken as the pipe takes at once."""
        self._read_reports()
        try:
            while self._buffer and not self.error:
                del self._buffer[: os.write(self._pipe.fileno(), self._buffer)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STALL)  # it has reported why by then
            self._read_reports()
            self._fail("the writing process ended")

    def wait(self, timeout: float) -> None:
        """Sleep until the pipe takes more, or `timeout` [s] is over."""
        select.select([], [self._pipe], [], timeout)

    def close(self) -> None:
        """Finish the bag; give up after :data:`STALL` without progress."""
        progress, since = (-1, -1), time.monotonic()
        while self._process.poll() is None and not self.error:
            self.flush()
            if not self._buffer and not self._pipe.closed and not self._queued():
                self._pipe.close()  # its end finishes the bag
            now = (len(self._buffer), 0 if self._pipe.closed else self._queued())
            if now != progress:
                progress, since = now, time.monotonic()
            elif time.monotonic() - since > STALL:
                self._fail(f"the writing process did nothing for {STALL:g} s")
            time.sleep(0.002)
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        self._read_reports()
        if self._written < self._taken:
            self._fail("the writing process ended")

    def _read_reports(self) -> None:
        """Take in what the writing process says of the bag."""
        try:
            self._reports += os.read(self._answers.fileno(), PIPE_BYTES)
        except BlockingIOError:
            return
        *lines, rest = bytes(self._reports).split(b"\n")
        self._reports[:] = rest
        for line in lines:
            told = json.loads(line)
            if told["written"] is not None:
                self._written = told["written"]
            if told["error"]:
                self._fail(told["error"])

    def _fail(self, why: str) -> None:
        """End the recording; the first reason counts."""
        if not self.error:
            self.error = why
            self._buffer.clear()

    def _queued(self) -> int:
        return int(struct.unpack("i", fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0" * 4))[0])


def _frame(channel: int, stamp: int, payload: bytes) -> bytes:
    return FRAME.pack(channel, stamp, len(payload)) + payload


def make_recorder(options: NodeOptions) -> Recorder | None:
    """Return the recorder that `options` ask for.

    Raises:
        ConfigError: the directory of the recording cannot be made.
    """
    return Recorder(Path(options.record), options.clock_mode != "realtime") if options.record else None

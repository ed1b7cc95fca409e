"""Recording a rosbag2 (MCAP): the node writes serialised messages into a pipe, a process of its own writes the bag.

The bag gets exactly what was published, every control period of it, whatever DDS does. Nothing here waits for the
disk: what the pipe does not take is kept, up to a limit, and the loop of the node decides whether to go on.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional
from constrained_sim.ros.bag import RecordedTopic
from constrained_sim.ros.bag_lock import bag_lock

if TYPE_CHECKING:  # the process that records begins at once, without what a simulation needs
    from constrained_sim.options import NodeOptions

FRAME = struct.Struct("<HqI")
NEW_TOPIC = -1
PIPE_BYTES = 1 << 20

HIGH_WATER = 1 << 20
"""[bytes] that wait at most when a patient simulation goes on: those of several hundred periods."""

BUFFER_BYTES = 8 << 20
"""[bytes] that wait at most, for the seconds that a disk may be busy; then messages are lost."""

PATIENCE = 6.0
"""[s] at the end without any progress of the recording process, after which it is left to itself."""

STALL = 1.0
"""[s] for which a simulation waits for the recording process before it says so."""


@dataclass
class Recorder:
    """The node's end of the pipe.

    Attributes:
        directory: of the bag; made here.
        patient: the simulation waits while there is no room; else messages are lost, and time goes on.
        compression: of the bag: ``none``, ``zstd`` or ``lz4``.
    """

    directory: Path
    patient: bool = True
    compression: str = "none"
    _topics: dict[str, int] = field(default_factory=dict)
    _buffer: bytearray = field(default_factory=bytearray)
    _reported: bytearray = field(default_factory=bytearray)
    _taken: int = 0
    _dropped: int = 0
    _confirmed: int = 0
    _opened: bool = False
    _failure: str = ""
    _ended: bool = False
    _full_since: float | None = None

    def __post_init__(self) -> None:
        """Start the writing process.

        Raises:
            ConfigError: the directory exists already, or cannot be made.
        """
        try:
            self.directory.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(f"cannot record to {str(self.directory)!r}: {error}; give a new directory") from error
        with bag_lock(self.directory) as lock:  # else who recovers the bag finds nothing there while that starts
            self._process = subprocess.Popen(
                [sys.executable, "-m", "constrained_sim.ros.recording_process", str(self.directory), self.compression],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                pass_fds=[lock],
            )
        self._pipe, self._reports = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(self._pipe.fileno(), False)
        os.set_blocking(self._reports.fileno(), False)

    @property
    def lost(self) -> int:
        """Number of messages that are not in the recording; while it goes on, of those that were not handed over."""
        return self._dropped + (self._taken - self._confirmed if self._failure else 0)

    @property
    def problem(self) -> str:
        """What keeps messages from being recorded; empty: nothing does."""
        self._read_reports()
        if self._failure:
            return self._failure
        if self._full_since is not None and time.monotonic() - self._full_since > STALL:
            return f"the process that records to {str(self.directory)!r} takes nothing: waiting for it"
        return f"the recording to {str(self.directory)!r} does not keep up: messages are lost" if self._dropped else ""

    def write(self, topic: RecordedTopic, stamp: int, serialised: bytes) -> None:
        """Take a message with its `stamp` [ns]; :meth:`flush` hands it over."""
        if self._failure or (self._buffer and len(self._buffer) + len(serialised) > BUFFER_BYTES):
            self._dropped += 1
            return
        if topic.name not in self._topics:
            self._topics[topic.name] = len(self._topics)
            self._put(self._topics[topic.name], NEW_TOPIC, json.dumps(topic).encode())
        self._put(self._topics[topic.name], stamp, serialised)
        self._taken += 1

    def sink(self, topic: RecordedTopic) -> Callable[[bytes, int], None]:
        """Return a function that takes the messages of one topic and their stamps [ns]."""
        return lambda serialised, stamp: self.write(topic, stamp, serialised)

    def flush(self) -> None:
        """Hand over what the pipe takes now, without waiting."""
        try:
            while self._buffer:
                del self._buffer[: os.write(self._pipe.fileno(), self._buffer)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._read_reports()
            self._fail("its process has ended")

    def has_room(self, timeout: float) -> bool:
        """Return whether a simulation may go on; where it has to wait, wait up to `timeout` [s] for room.

        None begins before the bag is open: what waits in a pipe is lost if all processes are killed.
        """
        if not (self._opened or self._failure):
            select.select([self._reports], [], [], timeout)
            self._read_reports()
            if not (self._opened or self._failure):
                return False
        if self._failure or not self.patient or len(self._buffer) < HIGH_WATER:
            self._full_since = None
            return True
        if self._full_since is None:
            self._full_since = time.monotonic()
        select.select([], [self._pipe], [], timeout)
        self.flush()
        return False

    def close(self) -> None:
        """Finish the bag; a recording process that makes no progress for :data:`PATIENCE` is left to itself."""
        self._full_since, moved = None, time.monotonic()
        while self._buffer and time.monotonic() - moved < PATIENCE:
            before = len(self._buffer)
            select.select([], [self._pipe], [], 0.1)
            self.flush()
            if len(self._buffer) < before:
                moved = time.monotonic()
        self._pipe.close()
        while not self._ended and not self._failure and time.monotonic() - moved < PATIENCE:
            if select.select([self._reports], [], [], 0.1)[0] and self._read_reports():
                moved = time.monotonic()
        if self._ended:
            self._process.wait()
        elif not self._failure:
            self._fail("its process does not answer; what it has not confirmed counts as lost")

    def discard(self) -> None:
        """End a recording that nothing was written to, and remove it."""
        self.close()
        shutil.rmtree(self.directory)

    def _read_reports(self) -> bool:
        """Take in what the process says; return whether it said anything."""
        try:
            data = os.read(self._reports.fileno(), PIPE_BYTES)
        except BlockingIOError:
            return False
        self._reported += data
        *lines, rest = bytes(self._reported).split(b"\n")
        self._reported = bytearray(rest)
        for line in lines:
            report = json.loads(line)
            self._opened, self._confirmed, self._ended = True, report["written"], report["ended"]
            if report["error"]:
                self._fail(report["error"])
        if not data and not self._ended:
            self._fail("its process has ended")
        return bool(data)

    def _fail(self, why: str) -> None:
        """Give up, for the first reason that was found."""
        self._failure = self._failure or f"the recording to {str(self.directory)!r} has ended early: {why}"
        self._buffer.clear()

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
    return Recorder(Path(options.record), options.clock_mode != "realtime", options.record_compression)

"""Opening a recording, with an error that tells what to do where it is none or damaged."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional

METADATA = "metadata.yaml"
"""What the recorder writes last."""

MAGIC = b"\x89MCAP0\r\n"
"""How an MCAP file begins."""


class BagReader:
    """An open recording: the reader of rosbags, whose errors of all kinds become one.

    Attributes:
        connections: topics, as rosbags has them.
        start_time: of the first message [ns].
        end_time: after the last message [ns].
    """

    def __init__(self, reader: Any, directory: Path) -> None:
        """Read with `reader` what is in `directory`."""
        self._reader, self._directory, self._typestore = reader, directory, reader.typestore
        self.connections, self.start_time, self.end_time = list(reader.connections), reader.start_time, reader.end_time

    def messages(self, connections: Collection[Any] = ()) -> Iterator[tuple[Any, int, bytes]]:
        """Yield connection, stamp [ns] and content of the messages on these `connections`; none: on all.

        Raises:
            ConfigError: a damaged recording.
        """
        try:
            yield from self._reader.messages(connections=connections)
        except Exception as error:  # of a damaged file each decompressor raises its own, and rosbags what Python does
            raise damaged(self._directory, error) from error

    def deserialize(self, data: bytes, kind: str) -> Any:
        """Return the message of this `kind` that `data` holds; also after the recording is closed.

        Raises:
            ConfigError: a damaged recording.
        """
        try:
            return self._typestore.deserialize_cdr(data, kind)
        except Exception as error:
            raise damaged(self._directory, error) from error


def damaged(directory: Path, error: Exception) -> ConfigError:
    """Return what is to be raised where reading a recording raised `error`."""
    reason = str(error) or type(error).__name__
    return ConfigError(f"cannot read the recording {str(directory)!r}: {reason}{_advice(directory)}")


def _advice(directory: Path) -> str:
    """Return what saves a recording; empty: `recover` refuses it, too."""
    try:
        (file,) = directory.glob("*.mcap")
        with file.open("rb") as content:
            is_mcap = begins_as_mcap(content.read(len(MAGIC)))
    except (OSError, ValueError):
        return ""
    return f"; `constrained_sim recover {directory}` saves what is whole in it" if is_mcap else ""


def begins_as_mcap(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are those of an MCAP file; one of them may be damaged."""
    return sum(given == wanted for given, wanted in zip(beginning, MAGIC, strict=False)) >= len(MAGIC) - 1


def is_bag(directory: Path) -> bool:
    """Return whether `directory` is a recording, be it one that was cut off."""
    return (directory / METADATA).is_file() or any(directory.glob("*.mcap"))


@contextmanager
def bag_reader(directory: Path) -> Iterator[BagReader]:
    """Open the rosbag2 `directory` with the reader of rosbags.

    Raises:
        ConfigError: it is no recording, or a damaged one.
        MissingLibrary: the one that reads bags.
    """
    if not (directory / METADATA).is_file():
        raise ConfigError(f"{str(directory)!r} is not a rosbag2 directory (no {METADATA} in it){_advice(directory)}")
    library = optional("rosbags.highlevel", "reading a recording")
    with ExitStack() as stack:
        try:
            reader = BagReader(stack.enter_context(library.AnyReader([directory])), directory)
        except Exception as error:
            raise damaged(directory, error) from error
        yield reader

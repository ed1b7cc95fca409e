"""Serialised messages (CDR): the same bytes for the same values, and forms whose numbers are written in place."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, cast

from rclpy.serialization import deserialize_message, serialize_message

from constrained_sim.exceptions import InvalidValue

Message = TypeVar("Message")

ENCAPSULATION = 4
FORMATS = {
    "boolean": "?", "octet": "B", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "float": "f", "int64": "q", "uint64": "Q", "double": "d",
}  # fmt: skip
COLLECTION = re.compile(r"sequence<(?P<item>.+?)(, \d+)?>|(?P<fixed>.+)\[(?P<count>\d+)\]")


def serialise(message: Any) -> bytes:
    """Return the CDR serialisation of `message` with zeros as padding, and nothing behind the last field.

    What is between the fields would otherwise be whatever was in memory before, and some readers of recordings, rosbags
    among them, refuse a message with more behind it.
    """
    return _serialise(message, _Walk(message))


def deserialise(what: str, data: bytes, kind: type[Message]) -> Message:
    """Return the message in its serialisation `data`; `what` says what it is.

    Raises:
        InvalidValue: no such message.
    """
    try:
        return cast(Message, deserialize_message(data, kind))
    except RuntimeError:
        package = kind.__module__.split(".")[0]
        raise InvalidValue(what, f"{len(data)} bytes", f"a serialised {package}/{kind.__name__}") from None


class Form:
    """A message whose texts and lengths stay as they are: its bytes are made once, and its numbers written into them.

    To fill a message and to serialise it takes rclpy about five times as long, and so does the way back.
    """

    def __init__(self, message: Any) -> None:
        """Take texts and lengths from `message`."""
        walk = _Walk(message)
        self._bytes = bytearray(_serialise(message, walk))
        self._texts = [(part, bytes(self._bytes[part])) for part in walk.texts]
        self._end = walk.end
        self._size = len(walk.numbers)
        self._runs: list[tuple[struct.Struct, int, slice]] = []
        begin = 0
        for _, run in itertools.groupby(walk.numbers, key=lambda number: number.run):
            numbers = list(run)
            packer = struct.Struct("=" + "".join(number.format for number in numbers))
            self._runs.append((packer, numbers[0].offset, slice(begin, begin + len(numbers))))
            begin += len(numbers)

    def filled(self, numbers: Sequence[float]) -> bytes:
        """Return the bytes with all `numbers` of the message, in the order of its fields.

        Raises:
            ValueError: more or fewer numbers than the message has.
        """
        if len(numbers) != self._size:
            raise ValueError(f"{len(numbers)} numbers for a message with {self._size}")
        for packer, offset, part in self._runs:
            packer.pack_into(self._bytes, offset, *numbers[part])
        return bytes(self._bytes)

    def numbers(self, data: bytes) -> list[float] | None:
        """Return the numbers in a serialised message, None if it has other texts or lengths."""
        if len(data) < self._end or any(data[part] != text for part, text in self._texts):
            return None
        return [number for packer, offset, _ in self._runs for number in packer.unpack_from(data, offset)]


class _Number(NamedTuple):
    """A number in a serialised message; numbers without anything in between are of one run."""

    format: str
    offset: int
    run: int


class _Walk:
    """Goes through the fields of a message as CDR does.

    A number of n bytes begins at a multiple of n behind the four bytes of the encapsulation header (OMG, DDS-XTypes,
    XCDR version 1); strings and sequences begin with a count of four bytes. The places depend on the lengths of strings
    and sequences only. Behind the last field there may be more: sizes are estimated before, with alignment for empty
    sequences too.

    Attributes:
        padding: where nothing is.
        numbers: the numbers, counts of strings and sequences left out.
        texts: what is neither, the encapsulation header included.
        end: number of bytes up to the last field.
    """

    def __init__(self, message: Any) -> None:
        self.padding: list[slice] = []
        self.numbers: list[_Number] = []
        self._offset = self._run = 0
        self._message(message)
        self.end = ENCAPSULATION + self._offset
        self.padding.append(slice(self.end, None))
        self.texts = self._between()

    def _between(self) -> list[slice]:
        others = [slice(n.offset, n.offset + struct.calcsize(n.format)) for n in self.numbers] + self.padding
        begin, texts = 0, []
        for other in sorted(others, key=lambda part: part.start):
            if other.start > begin:
                texts.append(slice(begin, other.start))
            begin = other.stop
        return texts

    def _message(self, message: Any) -> None:
        for name, kind in message.get_fields_and_field_types().items():
            self._field(kind, getattr(message, name))

    def _field(self, kind: str, value: Any) -> None:
        collection = COLLECTION.fullmatch(kind)
        if collection:
            if collection["item"]:
                self._count()
            item = collection["item"] or collection["fixed"]
            for member in value:
                self._field(item, member)
        elif kind in FORMATS:
            size = struct.calcsize(FORMATS[kind])
            self._align(size)
            self.numbers.append(_Number(FORMATS[kind], ENCAPSULATION + self._offset, self._run))
            self._offset += size
        elif kind.startswith("string"):
            self._count()
            self._offset += len(value.encode()) + 1
        else:
            self._message(value)

    def _count(self) -> None:
        self._align(4)
        self._offset += 4
        self._run += 1

    def _align(self, size: int) -> None:
        gap = -self._offset % size
        if gap:
            start = ENCAPSULATION + self._offset
            self.padding.append(slice(start, start + gap))
            self._offset += gap
            self._run += 1


def _serialise(message: Any, walk: _Walk) -> bytes:
    data = bytearray(serialize_message(message))
    for gap in walk.padding:
        data[gap] = bytes(len(data[gap]))
    return bytes(data[: walk.end])

"""Makes serialised messages reproducible to the byte: padding between fields is whatever was in memory before."""

from __future__ import annotations

import re
from typing import Any

ENCAPSULATION = 4
SIZES = {
    "boolean": 1, "octet": 1, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2,
    "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip
COLLECTION = re.compile(r"sequence<(?P<item>.+?)(, \d+)?>|(?P<fixed>.+)\[(?P<count>\d+)\]")


def padding_of(message: Any) -> list[slice]:
    """Return where the CDR serialisation of `message` holds padding.

    A number of n bytes begins at a multiple of n behind the four bytes of the encapsulation header (OMG, DDS-XTypes,
    XCDR version 1); strings and sequences begin with a count of four bytes. The places depend on the lengths of strings
    and sequences only. Behind the last field there may be more: sizes are estimated before, with alignment for empty
    sequences too.
    """
    walk = _Walk()
    walk.message(message)
    return [*walk.padding, slice(walk.end, None)]


def zero_padding(serialised: bytes, padding: list[slice]) -> bytes:
    """Return `serialised` with zeros at `padding`."""
    data = bytearray(serialised)
    for gap in padding:
        data[gap] = bytes(len(data[gap]))
    return bytes(data)


class _Walk:
    """Goes through the fields of a message as CDR does."""

    def __init__(self) -> None:
        self.padding: list[slice] = []
        self._offset = 0

    @property
    def end(self) -> int:
        """Where the last field ends."""
        return ENCAPSULATION + self._offset

    def message(self, message: Any) -> None:
        for name, kind in message.get_fields_and_field_types().items():
            self._field(kind, getattr(message, name))

    def _field(self, kind: str, value: Any) -> None:
        collection = COLLECTION.fullmatch(kind)
        if collection:
            if collection["item"]:
                self._primitive(4)
            item = collection["item"] or collection["fixed"]
            if item in SIZES and len(value):
                self._primitive(SIZES[item], len(value))
            elif item not in SIZES:
                for member in value:
                    self._field(item, member)
        elif kind in SIZES:
            self._primitive(SIZES[kind])
        elif kind.startswith("string"):
            self._primitive(4)
            self._offset += len(value.encode()) + 1
        else:
            self.message(value)

    def _primitive(self, size: int, count: int = 1) -> None:
        gap = -self._offset % size
        if gap:
            start = ENCAPSULATION + self._offset
            self.padding.append(slice(start, start + gap))
        self._offset += gap + size * count

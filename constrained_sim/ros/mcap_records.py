"""Records of MCAP files, taken from bytes that nobody has checked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import NamedTuple

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import McapRecord

PREFIX = struct.Struct("<BQ")

RECORD_LIMIT = 128 << 20
"""[bytes] of the largest record, and of the largest chunk when unpacked: several images of the largest cameras."""


class Damaged(Exception):
    """What is at a place of the file cannot be read; the text says why."""


class Frame(NamedTuple):
    """Where a record is: its opcode, and where its content begins and ends in the file."""

    opcode: int
    begin: int
    end: int


def parse(read: Callable[[ReadDataStream], McapRecord], body: bytes) -> McapRecord:
    """Return a record with the content `body`.

    Raises:
        Damaged: the content does not fit.
    """
    stream = ReadDataStream(BytesIO(body))
    try:
        record = read(stream)
    except (McapError, ValueError, struct.error, OverflowError) as error:
        raise Damaged("a record whose content does not fit") from error
    if stream.count != len(body):
        raise Damaged("a record whose content does not fit")
    return record


def parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield opcode and content of the records in a chunk.

    Raises:
        Damaged: one that does not belong into a chunk, or does not fit.
    """
    position = 0
    while position < len(data):
        if len(data) - position < PREFIX.size:
            raise Damaged("a chunk that ends within a record")
        opcode, length = PREFIX.unpack_from(data, position)
        begin = position + PREFIX.size
        position = begin + length
        if opcode not in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE) or position > len(data):
            raise Damaged("a chunk whose content does not fit")
        yield opcode, data[begin:position]


def decompress(compression: bytes, data: bytes, size: int) -> bytes:
    """Return `data` decompressed, at most one byte more than `size`.

    Raises:
        Damaged: an unknown compression.
    """
    if not compression:
        return data
    if compression == b"zstd":
        reader = zstandard.ZstdDecompressor(max_window_size=RECORD_LIMIT).stream_reader(
            BytesIO(data), read_across_frames=True
        )
        return reader.read(size + 1)
    if compression == b"lz4":
        decompressor = lz4.frame.LZ4FrameDecompressor()
        unpacked = decompressor.decompress(data, max_length=size + 1)
        if decompressor.unused_data:
            raise Damaged("a chunk that is longer than what it holds")
        return unpacked
    raise Damaged(f"a chunk with the unknown compression {compression!r}")

"""Reads the records of an MCAP file in bounded memory, whatever its bytes are; goes on behind a damaged part.

Source: MCAP format specification, version 0: a record is an opcode of one byte, a length of eight and its content.
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import lz4.frame
import zstandard
from mcap.opcode import Opcode
from mcap.records import Chunk
from mcap.stream_reader import StreamReader

from constrained_sim.exceptions import ConfigError

MAGIC = b"\x89MCAP0\r\n"

LARGEST = 64 << 20
"""[bytes] of the largest record that is read, and of the largest chunk that is unpacked: ours have 64 KiB. What says
that it is larger is damaged, or made to fill the memory."""

MOST_PACKED = 1000
"""Factor by which a chunk may grow when it is unpacked, beside the first :data:`SMALL` bytes."""

SMALL = 1 << 16

MOST_TOLD = 100
"""Damaged parts that are told one by one."""

HEADER = struct.Struct("<BQ")
CHUNK_HEADER = struct.Struct("<QQQII")
CHUNK_BEGINS = re.compile(rb"\x06.{3}[\x00-\x04]\x00{4}", re.DOTALL)
"""Opcode and length of a chunk of at most :data:`LARGEST` bytes."""

ALLOWED_CODECS = ("", "lz4", "zstd")
PARSED = {Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.CHUNK}


class RecordReader:
    """Yields the schemas, channels and messages of an MCAP file, those in chunks too.

    Attributes:
        damages: what could not be read, and where; not the end of a file that was cut off.
        cut_off: [bytes] at the end, of a record that is not complete.
    """

    def __init__(self, file: Path) -> None:
        """Read `file`.

        Raises:
            ConfigError: not a regular file, not readable, or not an MCAP file.
        """
        self.damages: list[str] = []
        self.cut_off = 0
        try:
            if not file.is_file():
                raise ConfigError(f"{str(file)!r} is not a regular file")
            with file.open("rb") as stream:
                if stream.read(len(MAGIC)) != MAGIC:
                    raise ConfigError(f"{str(file)!r} is not an MCAP file")
                self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise ConfigError(f"{str(file)!r} cannot be read: {error}") from error

    def __iter__(self) -> Iterator[Any]:
        """Go through the records in the order in which they were written."""
        place, end = len(MAGIC), len(self._data)
        while place < end:
            size = self._size_at(place)
            if size is None:
                following = self._next_chunk(place + 1)
                if following is None and self._is_cut_off(place):
                    self.cut_off = end - place
                    return
                self._tell(f"{(following or end) - place} bytes", place)
                if following is None:
                    return
                place = following
                continue
            opcode = self._data[place]
            if opcode in (Opcode.DATA_END, Opcode.FOOTER):
                return  # what follows repeats what was there
            if opcode in PARSED:
                yield from self._parse(self._data[place : place + size], place)
            place += size

    def _size_at(self, place: int) -> int | None:
        """Return the size of the record at `place` with its header; None if there is no complete one."""
        if place + HEADER.size > len(self._data):
            return None
        opcode, length = HEADER.unpack_from(self._data, place)
        complete = length <= LARGEST and place + HEADER.size + length <= len(self._data)
        return HEADER.size + length if complete and opcode != 0 else None

    def _is_cut_off(self, place: int) -> bool:
        """Return whether the file can end within the record at `place` because no more of it was written."""
        if place + HEADER.size > len(self._data):
            return True
        opcode, length = HEADER.unpack_from(self._data, place)
        return bool(0 < opcode <= Opcode.DATA_END and length <= LARGEST)

    def _next_chunk(self, place: int) -> int | None:
        """Return where the next chunk begins whose sizes agree with each other; None if there is none."""
        for found in CHUNK_BEGINS.finditer(self._data, place):
            size, header = self._size_at(found.start()), found.end()
            if size is None or size < HEADER.size + CHUNK_HEADER.size + 8:
                continue
            name_size = CHUNK_HEADER.unpack_from(self._data, header)[4]
            inner, end = header + CHUNK_HEADER.size + name_size, found.start() + size
            if name_size <= 8 and inner + 8 <= end:
                (length,) = struct.unpack_from("<Q", self._data, inner)
                if inner + 8 + length == end:
                    return found.start()
        return None

    def _parse(self, record: bytes, place: int, inside: bool = False) -> Iterator[Any]:
        """Yield what is in the bytes of a `record` that begins at `place` of the file."""
        try:
            parsed = next(iter(StreamReader(BytesIO(record), skip_magic=True, emit_chunks=True).records))
            if not isinstance(parsed, Chunk):
                unpacked = None
            elif inside:
                raise ValueError("a chunk within a chunk")
            else:
                unpacked = _unpacked(parsed)
        except Exception as error:  # of any bytes whatsoever: the parsers raise what comes
            self._tell(f"{len(record)} bytes ({' '.join(str(error).split()) or type(error).__name__})", place)
            return
        if unpacked is None:
            yield parsed
        else:
            yield from self._inside(unpacked, place)

    def _inside(self, chunk: bytes, place: int) -> Iterator[Any]:
        """Yield the records of an unpacked `chunk` that begins at `place` of the file."""
        begin = 0
        while begin < len(chunk):
            opcode, length = HEADER.unpack_from(chunk, begin) if begin + HEADER.size <= len(chunk) else (0, 0)
            end = begin + HEADER.size + length
            if opcode == 0 or end > len(chunk):
                self._tell(f"{len(chunk) - begin} bytes of a chunk", place)
                return
            if opcode in PARSED:
                yield from self._parse(chunk[begin:end], place, inside=True)
            begin = end

    def _tell(self, what: str, place: int) -> None:
        if len(self.damages) < MOST_TOLD:
            self.damages.append(f"{what} at byte {place}")


def _unpacked(chunk: Chunk) -> bytes:
    """Return the records of a chunk.

    Raises:
        Exception: they are not what the chunk says of them.
    """
    size = chunk.uncompressed_size
    if chunk.compression not in ALLOWED_CODECS:
        raise ValueError(f"compression {chunk.compression[:20]!r}, allowed: none, lz4, zstd")
    allowed = min(LARGEST, SMALL + MOST_PACKED * len(chunk.data))
    if size > allowed:
        raise ValueError(f"{size} bytes in a chunk, allowed: {allowed}")
    data = chunk.data
    if chunk.compression == "zstd":
        data = zstandard.ZstdDecompressor(max_window_size=LARGEST).stream_reader(chunk.data).read(size + 1)
    elif chunk.compression == "lz4":
        data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=size + 1)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes in a chunk of {size}")
    if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
        raise ValueError("checksum of a chunk")
    return data

"""Reading an MCAP file that may be damaged, cut off or hostile: everything readable, and an account of the rest.

A record is taken where its length fits into the file and its content into its length; a chunk where its checksum fits.
After damage the scan goes on at the next chunk whose checksum fits, or in a file without chunks at the next messages.
Memory and time are bounded by the size of the file, whatever its records claim.

Source: the MCAP specification, version 0, mcap.dev/spec.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

import zstandard
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Header, Message, Metadata, Schema, Statistics

from constrained_sim.bag_reader import MAGIC, begins_as_mcap
from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.mcap_records import PREFIX, RECORD_LIMIT, Damaged, Frame, decompress, parse, parts

MESSAGE = struct.Struct("<HIQQ")
CHUNK = struct.Struct("<QQQII")
FOOTER = struct.Struct("<BQQQI")

DEFINITION_LIMIT = 64 << 20
"""[bytes] of all schemas and channels, which are kept."""

LOST = "constrained_sim.lost"
"""Name of the metadata record that tells what `recover` could not read."""

DATA_END_BYTES = 4

HEADER_LIMIT = 64 << 10
"""[bytes] of a header that is looked into."""

EXTRA_LIMIT = 10_000
"""Attachments and metadata records, of which a writer keeps an index."""

SEARCH_LIMIT = 2 * RECORD_LIMIT
"""[bytes] that are searched for the next readable chunk after damage."""

WORK_LIMIT, WORK_PER_BYTE = 64 << 20, 100
"""[bytes] to read and to unpack at most: a fixed part, and one that grows with the file."""

TOLD = 5
"""Damages that are told one by one."""

CHUNK_LIKE = rb"\x06.{4}\0{4}.{16}.{4}\0{4}.{4}(?:\0{4}|\x03\0{3}lz4|\x04\0{3}zstd).{4}\0{4}|\x0f\x04\0{7}"
CHUNKS = re.compile(CHUNK_LIKE, re.DOTALL)
"""How a chunk or the end of the data begins."""

RECORDS = re.compile(CHUNK_LIKE + rb"|[\x03-\x05].{4}\0{4}", re.DOTALL)
"""How these, a schema, a channel or a message begin."""

CANDIDATE_LIMIT, BYTES_PER_CANDIDATE = 100_000, 64
"""Places that look like a record and are tried after damage: a fixed number, and more as the file is longer."""

SUMMARY_ONLY = {
    Opcode.CHUNK_INDEX,
    Opcode.ATTACHMENT_INDEX,
    Opcode.STATISTICS,
    Opcode.METADATA_INDEX,
    Opcode.SUMMARY_OFFSET,
}


class McapScanner:
    """Reads the messages, attachments and metadata records of a file in the order in which they were written.

    Attributes:
        path: of the file.
        profile: of its header.
        schemas: definitions by number, as far as they are known at the present message.
        channels: the same.
        damage: what is wrong with the file, a line each, the first ones; :attr:`damages` counts those with losses.
        damages: places where something may be lost.
        orphans: messages by the number of their channel, whose definition is lost.
        found: messages, attachments and metadata records that were read.
        promised: messages, attachments and metadata records by the statistics at the end; None: there are none.
        is_complete: whether the file ends as a finished file does; known after the last record.
        has_all_data: whether the end of the data was read, behind which there is an index alone; known then, too.
        lost_before: the same damage of the file that this one was recovered from.
        cut_off: bytes at the end that are no complete record.
        compression: of the chunks, as far as they were unpacked: ``none``, ``zstd`` or ``lz4``.
    """

    def __init__(self, path: Path) -> None:
        """Look at the file at `path`.

        Raises:
            ConfigError: it cannot be read, or is not an MCAP file.
        """
        self.path, self.profile = path, "ros2"
        self.schemas: dict[int, Schema] = {}
        self.channels: dict[int, Channel] = {}
        self.damage: list[str] = []
        self.lost_before: list[str] = []
        self.orphans: Counter[int] = Counter()
        self.promised: tuple[int, ...] | None = None
        self.found = [0, 0, 0]
        self.damages = self.cut_off = 0
        self._file: BinaryIO  # open while records are read
        self.compression = "none"
        self.is_complete = self.has_all_data = self._has_chunks = self._has_end = False
        self._definition_bytes = self._work = self._candidates = 0
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):
                raise ConfigError(f"{str(path)!r} is not a file")
            with path.open("rb") as file:
                self._check_magic(file.read(len(MAGIC)))
                self._read_profile(file)
        except OSError as error:
            raise ConfigError(f"cannot read {str(path)!r}: {error.strerror}") from error
        self._size = status.st_size

    def _check_magic(self, beginning: bytes) -> None:
        if not begins_as_mcap(beginning):
            raise ConfigError(f"{str(self.path)!r} is not an MCAP file")
        if beginning != MAGIC:
            self._tell(f"the file begins with {beginning!r} in place of {MAGIC!r}", lost=False)

    def _read_profile(self, file: BinaryIO) -> None:
        prefix = file.read(PREFIX.size)
        if len(prefix) == PREFIX.size and prefix[0] == Opcode.HEADER:
            with suppress(Damaged):
                self.profile = parse(Header.read, file.read(min(PREFIX.unpack(prefix)[1], HEADER_LIMIT))).profile

    def records(self) -> Iterator[Message | Attachment | Metadata]:
        """Yield what was recorded; the definitions that belong to it are in the attributes.

        Raises:
            ConfigError: the file cannot be read, or claims to hold more than a file of its size can.
        """
        try:
            with self.path.open("rb") as self._file:
                self._read_summary()
                yield from self._scan()
        except OSError as error:
            raise ConfigError(f"cannot read {str(self.path)!r}: {error.strerror}") from error
        for channel, count in list(self.orphans.items())[:TOLD]:
            self._tell(f"{count} messages of channel {channel}, whose definition is lost")
        if not self.damage and not self.is_whole:
            self._tell(f"its statistics count {self.promised} messages, attachments and metadata, read: {self.found}")

    @property
    def is_whole(self) -> bool:
        """Whether every message, attachment and metadata record of the file was read; known after the last one."""
        return tuple(self.found) == self.promised or (self.promised is None and not self.damages)

    @property
    def has_holes(self) -> bool:
        """Whether something between what was read so far is lost."""
        return bool(self.damages or self.orphans or self.lost_before)

    @property
    def count(self) -> int:
        """Messages that were read."""
        return self.found[0]

    def _scan(self) -> Iterator[Message | Attachment | Metadata]:
        position = len(MAGIC)
        while position < self._size:
            try:
                frame = self._frame(position)
                if frame.opcode == Opcode.DATA_END and frame.end - frame.begin == DATA_END_BYTES:
                    return self._check_end(frame)
                yield from self._content(frame)
                position = frame.end
            except Damaged as damaged:
                self._has_chunks |= self._read(position, 1) == bytes([Opcode.CHUNK])
                chunk = self._hidden_chunk(position)
                if chunk is not None:
                    yield from self._chunk(chunk)
                    position = chunk.end
                    continue
                resumed = self._resume(position)
                if resumed is None and not self._has_end and self._frame_is_cut(position):
                    self.cut_off = self._size - position
                    return
                self._tell(f"bytes {position} to {resumed or self._size}: {damaged}")
                if resumed is None:
                    return
                position = resumed

    # -- single records

    def _frame(self, position: int) -> Frame:
        """Return the frame of the record at `position`.

        Raises:
            Damaged: there is none that fits into the file.
        """
        prefix = self._read(position, PREFIX.size)
        if len(prefix) < PREFIX.size:
            raise Damaged("no complete record")
        opcode, length = PREFIX.unpack(prefix)
        begin = position + PREFIX.size
        if opcode == Opcode.CHUNK:
            length = self._chunk_length(begin, length)
        if length > self._size - begin:
            raise Damaged(f"a record that claims {length} bytes, {self._size - begin} are left")
        return Frame(opcode, begin, begin + length)

    def _frame_is_cut(self, position: int) -> bool:
        prefix = self._read(position, PREFIX.size)
        return len(prefix) < PREFIX.size or PREFIX.unpack(prefix)[1] > self._size - position - PREFIX.size

    def _chunk_length(self, begin: int, told: int) -> int:
        """Return the length of the chunk whose content is at `begin`: by what is in it where that is another.

        Raises:
            Damaged: the two differ, and the checksum does not fit.
        """
        head = self._read(begin, CHUNK.size + 12)
        if len(head) < CHUNK.size + 12:
            return told
        name = CHUNK.unpack_from(head)[4]
        if name > 4:
            raise Damaged("a chunk whose beginning makes no sense")
        length = CHUNK.size + name + 8 + int.from_bytes(head[CHUNK.size + name : CHUNK.size + name + 8], "little")
        if length == told or begin + min(length, told) > self._size:
            return told
        for right in (told, length):
            if begin + right <= self._size:
                with suppress(Damaged):
                    self._unpacked(Frame(Opcode.CHUNK, begin, begin + right), checked=True)
                    self._tell(f"byte {begin}: one of the lengths of a chunk was wrong, it is {right}", lost=False)
                    return right
        raise Damaged("a chunk whose checksum does not fit")

    def _hidden_chunk(self, position: int) -> Frame | None:
        """Return the chunk at `position`, known by its checksum, where only its opcode is wrong."""
        prefix = self._read(position, PREFIX.size)
        if len(prefix) == PREFIX.size and prefix[0] != Opcode.CHUNK:
            frame = Frame(Opcode.CHUNK, position + PREFIX.size, position + PREFIX.size + PREFIX.unpack(prefix)[1])
            with suppress(Damaged):
                self._unpacked(frame, checked=True)
                self._tell(f"byte {position}: a chunk that claims to be a record of kind {prefix[0]}", lost=False)
                return frame
        return None

    def _content(self, frame: Frame) -> Iterator[Message | Attachment | Metadata]:
        """Yield what is in a record of the data section.

        Raises:
            Damaged: its content does not fit.
        """
        if frame.opcode == Opcode.CHUNK:
            yield from self._chunk(frame)
        elif frame.opcode in (Opcode.ATTACHMENT, Opcode.METADATA):
            if sum(self.found[1:]) >= EXTRA_LIMIT:
                raise ConfigError(f"{str(self.path)!r} holds more than {EXTRA_LIMIT} attachments and metadata records")
            kind = Attachment if frame.opcode == Opcode.ATTACHMENT else Metadata
            record = parse(kind.read, self._body(frame))
            self.found[1 if kind is Attachment else 2] += 1
            if isinstance(record, Metadata) and record.name == LOST:
                self.lost_before += record.metadata.values()
            yield record
        elif frame.opcode == Opcode.HEADER:
            parse(Header.read, self._body(frame))
        elif frame.opcode == Opcode.MESSAGE_INDEX:
            if int.from_bytes(self._read(frame.begin + 2, 4), "little") != frame.end - frame.begin - 6:
                raise Damaged("an index whose length does not fit")
        elif frame.opcode == Opcode.MESSAGE and self._has_chunks:
            raise Damaged("a message outside of the chunks")
        elif frame.opcode in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE):
            message = self._take(frame.opcode, self._body(frame))
            if message is not None:
                yield message
        else:
            raise Damaged(f"a record of kind {frame.opcode}, which does not belong here")

    def _take(self, opcode: int, body: bytes, overwrite: bool = True) -> Message | None:
        """Keep a definition, or return a message; one of an unknown channel is counted.

        Raises:
            Damaged: its content does not fit.
        """
        if opcode == Opcode.MESSAGE:
            if len(body) < MESSAGE.size:
                raise Damaged("a message that is too short")
            channel, sequence, logged, published = MESSAGE.unpack_from(body)
            known = self.channels.get(channel)
            if known is None or (known.schema_id and known.schema_id not in self.schemas):
                self.orphans[channel] += 1
                return None
            self.found[0] += 1
            return Message(channel, logged, body[MESSAGE.size :], published, sequence)
        self._definition_bytes += len(body)
        if self._definition_bytes > DEFINITION_LIMIT:
            raise ConfigError(f"{str(self.path)!r} holds more than {DEFINITION_LIMIT} bytes of definitions")
        kind, known_ones = (Schema, self.schemas) if opcode == Opcode.SCHEMA else (Channel, self.channels)
        definition = parse(kind.read, body)
        if overwrite or definition.id not in known_ones:
            known_ones[definition.id] = definition
        return None

    # -- chunks

    def _chunk(self, frame: Frame) -> Iterator[Message]:
        """Yield the messages of a chunk.

        Raises:
            Damaged: its checksum does not fit, or its content.
        """
        self._has_chunks = True
        try:
            data = self._unpacked(frame)
        except Damaged:
            self._keep_definitions(frame)
            raise
        for opcode, body in parts(data):
            message = self._take(opcode, body)
            if message is not None:
                yield message

    def _unpacked(self, frame: Frame, checked: bool = False) -> bytes:
        """Return the content of a chunk.

        Args:
            frame: where it is.
            checked: it must have a checksum.

        Raises:
            Damaged: it cannot be unpacked, or its checksum does not fit.
        """
        size, checksum, data = self._packed(frame)
        if zlib.crc32(data) != checksum if checksum else checked:
            raise Damaged("a chunk whose checksum does not fit")
        if len(data) != size:
            raise Damaged("a chunk whose size does not fit")
        return data

    def _packed(self, frame: Frame) -> tuple[int, int, bytes]:
        """Return the size, the checksum and the data of a chunk, decompressed."""
        body = self._body(frame)
        if len(body) < CHUNK.size + 8:
            raise Damaged("a chunk that is too short")
        _, _, size, checksum, name = CHUNK.unpack_from(body)
        begin = CHUNK.size + name + 8
        if name > 4 or size > RECORD_LIMIT:
            raise Damaged("a chunk whose beginning makes no sense")
        self._spend(size)
        compression = body[CHUNK.size : CHUNK.size + name]
        try:
            data = decompress(compression, body[begin:], size)
        except (zstandard.ZstdError, RuntimeError, EOFError) as error:
            raise Damaged(f"a chunk that cannot be decompressed ({error})") from error
        self.compression = compression.decode() or self.compression
        return size, checksum, data

    def _keep_definitions(self, frame: Frame) -> None:
        """Keep the definitions of a damaged chunk that are known from nowhere else."""
        try:
            for opcode, body in parts(self._packed(frame)[2]):
                if opcode != Opcode.MESSAGE:
                    self._take(opcode, body, overwrite=False)
        except Damaged:
            return

    # -- the end of the file, and the way on after damage

    def _read_summary(self) -> None:
        """Keep the definitions that a finished file repeats at its end, for messages whose own are damaged."""
        end = self._size - len(MAGIC) - FOOTER.size
        self._has_end = self._read(max(0, self._size - len(MAGIC)), len(MAGIC)) == MAGIC and self._size > len(MAGIC)
        tail = self._read(end, FOOTER.size) if end > len(MAGIC) else b""
        if len(tail) < FOOTER.size or tail[0] != Opcode.FOOTER:
            return
        position = FOOTER.unpack(tail)[2]
        try:
            fits = self._summary_fits(position, end + FOOTER.size)
            while len(MAGIC) <= position < end:
                frame = self._frame(position)
                if frame.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                    self._take(frame.opcode, self._body(frame))
                elif frame.opcode == Opcode.STATISTICS:
                    told = parse(Statistics.read, self._body(frame))
                    if fits:
                        self.promised = told.message_count, told.attachment_count, told.metadata_count
                elif frame.opcode not in SUMMARY_ONLY:
                    return
                position = frame.end
        except Damaged:
            return

    def _check_end(self, data_end: Frame) -> None:
        """Note whether summary, footer and magic follow the end of the data."""
        position = data_end.end
        self.has_all_data = True
        try:
            while True:
                frame = self._frame(position)
                position = frame.end
                if frame.opcode == Opcode.FOOTER:
                    break
                if frame.opcode not in SUMMARY_ONLY | {Opcode.SCHEMA, Opcode.CHANNEL}:
                    raise Damaged(f"a record of kind {frame.opcode} in the summary")
            if self._read(position, len(MAGIC) + 1) != MAGIC:
                raise Damaged("the end of the file")
            if not self._summary_fits(data_end.end, position):
                raise Damaged("a summary whose checksum does not fit")
            self.is_complete = True
        except Damaged as damaged:
            if self._frame_is_cut(position) and position > data_end.end:
                self.cut_off = self._size - position
            else:
                self._tell(f"the index at the end: {damaged}; no message is in it", lost=False)

    def _summary_fits(self, begin: int, end: int) -> bool:
        if not len(MAGIC) <= begin < end:
            return False
        summary = self._body(Frame(Opcode.FOOTER, begin, end))
        checksum = int.from_bytes(summary[-4:], "little")
        return not checksum or zlib.crc32(summary[:-4]) == checksum

    def _resume(self, position: int) -> int | None:
        """Return where the next readable record is after damage at `position`; None: nowhere."""
        start, end = position + 1, min(self._size, position + SEARCH_LIMIT)
        while start < end:
            block = self._read(start, 1 << 20)
            for match in (CHUNKS if self._has_chunks else RECORDS).finditer(block):
                self._candidates += 1
                if self._candidates > CANDIDATE_LIMIT + self._size // BYTES_PER_CANDIDATE:
                    return None
                if self._is_readable(start + match.start()):
                    return start + match.start()
            start += max(1, len(block) - 64) if len(block) == 1 << 20 else len(block) + 1
        return None

    def _is_readable(self, position: int) -> bool:
        """Whether there is a chunk with a checksum that fits, or, in a file without chunks, three records in a row."""
        try:
            frame = self._frame(position)
            if frame.opcode == Opcode.CHUNK:
                self._unpacked(frame, checked=True)
                return True
            if frame.opcode == Opcode.DATA_END:
                return frame.end == self._size or self._frame(frame.end).opcode in (*SUMMARY_ONLY, 2, 3, 4)
            return not self._has_chunks and all(self._fits(frame := self._frame(frame.end)) for _ in range(2))
        except Damaged:
            return False

    def _fits(self, frame: Frame) -> bool:
        if frame.opcode == Opcode.MESSAGE:
            return int.from_bytes(self._read(frame.begin, 2), "little") in self.channels
        return frame.opcode in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE_INDEX, Opcode.DATA_END)

    # -- bytes

    def _read(self, position: int, count: int) -> bytes:
        self._file.seek(position)
        return self._file.read(count)

    def _body(self, frame: Frame) -> bytes:
        length = frame.end - frame.begin
        if length > RECORD_LIMIT:
            raise Damaged(f"a record of {length} bytes, allowed: {RECORD_LIMIT}")
        self._spend(length)
        return self._read(frame.begin, length)

    def _spend(self, count: int) -> None:
        self._work += count
        if self._work > WORK_LIMIT + WORK_PER_BYTE * self._size:
            raise ConfigError(f"{str(self.path)!r} claims to hold far more than its {self._size} bytes can")

    def _tell(self, text: str, lost: bool = True) -> None:
        self.damages += lost
        if len(self.damage) < TOLD:
            self.damage.append(text)

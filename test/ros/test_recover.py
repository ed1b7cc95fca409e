"""`recover`: what it cannot copy whole stays as it was, whatever is wrong with the bag or the disk."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

from constrained_sim.exceptions import ConfigError
from constrained_sim.plots.from_bag import read_messages
from constrained_sim.ros.bag import bag_file, read_records
from constrained_sim.ros.bag_lock import bag_lock
from constrained_sim.ros.bag_writer import AppendedFile
from constrained_sim.ros.recover import main, recover
from constrained_sim.viewer.bag_source import BagSource

COUNT, TOPICS = 600, ("/x", "/y")
MAGIC = b"\x89MCAP0\r\n"
MEMORY_LIMIT = 700 << 20
"""[bytes] of memory that looking at a hostile bag of a few megabytes may take, the interpreter included."""


def payload(number: int) -> bytes:
    """Return a std_msgs/String of about 500 bytes."""
    text = f"{number:0500d}".encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(text)) + text


def make_bag(
    folder: Path, finish: bool = True, compression: CompressionType = CompressionType.NONE, chunks: bool = True
) -> Path:
    """Write a bag as rosbag2 does, with an attachment and a metadata record; one not finished ends after a chunk."""
    bag = folder / "bag"
    bag.mkdir(parents=True)
    with (bag / "bag_0.mcap").open("wb") as stream:
        writer = Writer(stream, chunk_size=1 << 14, compression=compression, use_chunking=chunks)
        writer.start(profile="ros2", library="test")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        channels = [writer.register_channel(topic, "cdr", schema, {"offered_qos_profiles": ""}) for topic in TOPICS]
        for number in range(COUNT):
            writer.add_message(channels[number % 2], 10 + number, payload(number), 5 + number, number + 7)
            if number == COUNT // 2:
                writer.add_attachment(1, 2, "photo", "image/png", b"pixels")
                writer.add_metadata("rosbag2", {"serialized_metadata": "a: b"})
        writer._Writer__finalize_chunk()
        if finish:
            writer.finish()
    (bag / "metadata.yaml").write_text("rosbag2_bagfile_information: {message_count: 1}\n")
    return bag


def contents(bag: Path) -> dict[str, bytes]:
    """Return all files of a folder."""
    return {path.name: path.read_bytes() for path in bag.iterdir()}


def messages(file: Path) -> list[tuple[str, int, bytes]]:
    """Return topic, stamp and data of what is readable in an MCAP file."""
    return [(record.topic.name, record.stamp, record.data) for record in read_records(file)]


EXPECTED = [(TOPICS[number % 2], 10 + number, payload(number)) for number in range(COUNT)]


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("chunks", [True, False])
@pytest.mark.parametrize("compression", list(CompressionType))
def test_everything_is_copied(tmp_path: Path, finish: bool, chunks: bool, compression: CompressionType) -> None:
    """Messages with both times and their numbers, definitions, attachments and metadata of every form of MCAP file."""
    bag = make_bag(tmp_path, finish, compression, chunks)
    before = contents(bag)
    recovery = recover(bag)
    assert (recovery.count, recovery.is_whole, recovery.damage) == (COUNT, True, ())
    after = contents(bag)
    assert {name: after[f"{name}.broken"] for name in before} == before
    assert set(after) == set(before) | {f"{name}.broken" for name in before}
    with bag_file(bag).open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        read = list(reader.iter_messages(log_time_order=False))
        assert [(c.topic, m.log_time, m.data) for _, c, m in read] == EXPECTED
        assert [(m.publish_time, m.sequence) for _, _, m in read] == [(5 + n, 7 + n) for n in range(COUNT)]
        assert {(s.name, s.encoding, s.data) for s, _, _ in read} == {
            ("std_msgs/msg/String", "ros2msg", b"string data")
        }
        assert [(a.name, a.media_type, a.data) for a in reader.iter_attachments()] == [
            ("photo", "image/png", b"pixels")
        ]
        assert [(m.name, m.metadata) for m in reader.iter_metadata()] == [("rosbag2", {"serialized_metadata": "a: b"})]
    with AnyReader([bag]) as reader:
        assert sum(1 for _ in reader.messages()) == COUNT
    assert recover(bag).originals == ()
    assert contents(bag) == after


def test_every_length_of_a_file_is_recovered(tmp_path: Path) -> None:
    """Cut off anywhere, a bag keeps the messages of its complete chunks, in order, or is refused and left alone."""
    data = bag_file(make_bag(tmp_path / "whole")).read_bytes()
    counts = []
    for number, length in enumerate([*sorted(random.Random(1).sample(range(len(data)), 60)), 0, 7, 8, 9, 40]):
        bag = tmp_path / f"{number}"
        bag.mkdir()
        (bag / "cut.mcap").write_bytes(data[:length])
        try:
            recovery = recover(bag)
        except ConfigError:
            assert contents(bag) == {"cut.mcap": data[:length]}
            assert length < 20_000
            continue
        counts.append(recovery.count)
        assert messages(bag / "cut.mcap") == EXPECTED[: recovery.count]
        assert recovery.is_whole
        assert length < (recovery.count + 80) * 560 or recovery.count == COUNT
        assert (bag / "cut.mcap.broken").read_bytes() == data[:length]
    assert counts[: len(counts) - 1] == sorted(counts[: len(counts) - 1]) and counts[-1] >= 0


def flip(data: bytes, bit: int) -> bytes:
    """Return `data` with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
def test_one_bit_costs_a_chunk_at_most(tmp_path: Path, finish: bool, compression: CompressionType) -> None:
    """Whichever bit is wrong: the original stays, no message is changed, few are lost, and a loss is told."""
    whole = make_bag(tmp_path / "whole", finish, compression)
    data = bag_file(whole).read_bytes()
    bits = list(range(0, 8 * 60, 7)) + random.Random(2).sample(range(8 * len(data)), 30)
    bits += range(8 * (len(data) - 40), 8 * len(data), 23)
    positions, position = [], 8
    while position < len(data) - 8:  # framing and headers of all records
        positions.append(position)
        position += 9 + struct.unpack_from("<Q", data, position + 1)[0]
    bits += [8 * place + random.Random(place).randrange(8 * 45) for place in positions[:-1]]
    for number, bit in enumerate(bits):
        bag = tmp_path / f"{number}"
        bag.mkdir()
        (bag / "flipped.mcap").write_bytes(flip(data, bit))
        try:
            recovery = recover(bag)
        except ConfigError:  # the only definitions are in a compressed chunk that cannot be unpacked
            assert compression == CompressionType.ZSTD and not finish and bit < 8 * positions[2]
            assert contents(bag) == {"flipped.mcap": flip(data, bit)}
            continue
        found = messages(bag / "flipped.mcap")
        assert len(found) == recovery.count >= COUNT - 100, bit
        assert set(found) <= set(EXPECTED), bit
        assert recovery.is_whole <= (found == EXPECTED), bit
        assert recovery.is_whole or recovery.damage, bit
        assert flip(data, bit) in contents(bag).values(), bit
        shutil.rmtree(bag)


def test_one_bit_in_a_file_without_chunks(tmp_path: Path) -> None:
    """Without chunks there are no checksums: whatever is read, the original stays, and most messages are there."""
    data = bag_file(make_bag(tmp_path / "whole", chunks=False)).read_bytes()
    for number, bit in enumerate(random.Random(3).sample(range(8 * 300, 8 * len(data)), 30)):
        bag = tmp_path / f"{number}"
        bag.mkdir()
        (bag / "flipped.mcap").write_bytes(flip(data, bit))
        recovery = recover(bag)
        assert recovery.count >= COUNT - 10
        assert recovery.is_whole <= (recovery.count == COUNT)
        assert flip(data, bit) in contents(bag).values()


@pytest.mark.parametrize("limit", [0, 10, 1_000, 20_000, 100_000, 200_000, 300_000])
def test_full_disk_changes_nothing(tmp_path: Path, limit: int, capsys: pytest.CaptureFixture[str]) -> None:
    """However much room there is, a copy that is not whole is removed; with room the same bag is recovered whole."""
    bag = make_bag(tmp_path, finish=False)
    before = contents(bag)
    sizes = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, sizes[1]))
    try:
        assert main([str(bag)]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, sizes)
    assert "File too large; nothing was changed" in capsys.readouterr().err
    assert contents(bag) == before
    assert main([str(bag)]) == 0
    assert messages(bag_file(bag)) == EXPECTED


def test_every_call_of_the_disk_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write, sync or renaming fails: every file has its name and its content afterwards."""
    calls, fails_at = 0, -1

    def failing(call: Callable[..., object]) -> Callable[..., object]:
        def attempt(*args: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            if calls == fails_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*args, **options)

        return attempt

    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(os, "link", failing(os.link))
    monkeypatch.setattr(Path, "replace", failing(Path.replace))
    monkeypatch.setattr(AppendedFile, "flush", failing(AppendedFile.flush))
    recover(make_bag(tmp_path / "all"))
    refused = 0
    for number in range(1, calls + 1):
        bag = make_bag(tmp_path / f"{number}", finish=False)
        before, calls, fails_at = contents(bag), 0, number
        try:
            recovery = recover(bag)
        except ConfigError as error:
            refused += 1
            assert "No space left on device; nothing was changed" in str(error)
            assert contents(bag) == before
        else:  # without links files are renamed
            assert recovery.count == COUNT
            assert {name: contents(bag)[f"{name}.broken"] for name in before} == before
    assert refused > 10


def test_original_is_deleted_on_request_where_all_was_copied(tmp_path: Path) -> None:
    """--delete-original deletes what was copied whole; a damaged original stays all the same."""
    bag = make_bag(tmp_path / "cut", finish=False)
    assert main([str(bag), "--delete-original"]) == 0
    assert set(contents(bag)) == {"bag_0.mcap", "metadata.yaml"}
    bag = make_bag(tmp_path / "damaged", finish=False)
    data = flip(bag_file(bag).read_bytes(), 8 * 100_000)
    bag_file(bag).write_bytes(data)
    assert main([str(bag), "--delete-original"]) == 3
    assert (bag / "bag_0.mcap.broken").read_bytes() == data
    assert main([str(bag)]) == 0
    assert (bag / "bag_0.mcap.broken").read_bytes() == data


def test_kept_originals_are_never_written_over(tmp_path: Path) -> None:
    """Where a name is taken by an older original, another is used."""
    bag = make_bag(tmp_path, finish=False)
    (bag / "bag_0.mcap.broken").write_text("older")
    before = bag_file(bag).read_bytes()
    assert recover(bag).originals[0].read_bytes() == before
    assert (bag / "bag_0.mcap.broken").read_text() == "older"


def test_bag_that_is_being_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording that goes on, or another recovery, keeps the bag to itself."""
    monkeypatch.setattr("constrained_sim.ros.recover.WAIT", 0.1)
    bag = make_bag(tmp_path, finish=False)
    before = contents(bag)
    with bag_lock(bag), pytest.raises(ConfigError, match="still being written"):
        recover(bag)
    assert contents(bag) == before


def record(opcode: int, body: bytes, length: int | None = None) -> bytes:
    """Return a record of MCAP, with a wrong length on request."""
    return struct.pack("<BQ", opcode, len(body) if length is None else length) + body


def chunk(compression: bytes, data: bytes, size: int, checksum: int = 0) -> bytes:
    """Return a chunk that claims to have `size` bytes when it is unpacked."""
    head = struct.pack("<QQQII", 0, 0, size, checksum, len(compression)) + compression
    return record(6, head + struct.pack("<Q", len(data)) + data)


def hostile_files() -> dict[str, bytes]:
    """Return files that claim, repeat or compress more than they hold."""
    zeros = bytes(100 << 20)
    zstd, lz4_ = zstandard.ZstdCompressor().compress(zeros), lz4.frame.compress(zeros)
    many = record(5, struct.pack("<HIQQ", 1, 0, 0, 0)) * 500_000
    return {
        "empty": b"",
        "text": b"hello\n" * 1000,
        "magic": MAGIC,
        "zeros": MAGIC + bytes(8 << 20),
        "length": MAGIC + record(6, b"", 2**63),
        "lengths": MAGIC + record(6, b"x", 2**31) * 100_000,
        "messages": MAGIC + b"\5\0\0\0\1\0\0\0\0" * 500_000,
        "chunks in chunks": MAGIC + b"\6\0\0\0\4\0\0\0\0" * 500_000,
        "unpacked size": MAGIC + chunk(b"zstd", zstd, 2**62),
        "zstd bomb": MAGIC + chunk(b"zstd", zstd, 100 << 20) * 200,
        "lz4 bomb": MAGIC + chunk(b"lz4", lz4_, 100 << 20) * 20,
        "zstd tells less": MAGIC + chunk(b"zstd", zstd, 1000) * 200,
        "messages in a bomb": MAGIC + chunk(b"zstd", zstandard.compress(many), len(many)) * 50,
        "unknown compression": MAGIC + chunk(b"evil", b"abc", 3) * 2000,
        "metadata": MAGIC + record(12, struct.pack("<II", 0, 0)) * 200_000,
        "attachments": MAGIC + record(9, struct.pack("<QQIIQI", 0, 0, 0, 0, 0, 0)) * 100_000,
        "definitions": MAGIC
        + b"".join(record(3, struct.pack("<HIII", n, 0, 0, 2000) + bytes(2000)) for n in range(40_000)),
        "footers": MAGIC + record(2, struct.pack("<QQI", 8, 8, 0)) * 100_000 + MAGIC,
        "summary of itself": MAGIC
        + record(3, struct.pack("<HIII", 1, 0, 0, 0))
        + record(2, struct.pack("<QQI", 8, 8, 0))
        + MAGIC,
    }


HOSTILE = hostile_files()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_refused_with_one_line(tmp_path: Path, name: str) -> None:
    """A file in which nothing is readable: one line, exit code 1, everything as it was, in bounded memory and time."""
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "bag_0.mcap").write_bytes(HOSTILE[name])
    code = (
        "import resource, sys; from constrained_sim.ros.recover import main; "
        f"resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY_LIMIT},) * 2); sys.exit(main([sys.argv[1]]))"
    )
    begin = time.monotonic()
    run = subprocess.run([sys.executable, "-c", code, str(bag)], capture_output=True, text=True, timeout=120)
    print(f"{name}: {time.monotonic() - begin:.1f} s, {run.stderr.strip()}")
    assert run.returncode == 1, run.stderr
    assert len(run.stderr.strip().splitlines()) == 1 and run.stderr.startswith("recover: ")
    assert contents(bag) == {"bag_0.mcap": HOSTILE[name]}


def test_who_reads_a_damaged_bag_is_told_to_recover_it(tmp_path: Path) -> None:
    """Plots and the viewer name the bag and the command, and end without a traceback."""
    bag = tmp_path / "bag"
    with BagWriter(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kind = get_typestore(Stores.ROS2_JAZZY)
        writer.write(writer.add_connection("/x", "std_msgs/msg/Empty", typestore=kind), 1, b"\0" * 8)
    (file,) = bag.glob("*.mcap")
    file.write_bytes(file.read_bytes()[:-20])
    for read in (read_messages, BagSource):
        with pytest.raises(ConfigError, match=f"{bag}.*constrained_sim recover"):
            read(bag)


def test_what_is_no_bag_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders, pipes, devices and files in the place of a bag or of its file: one line, nothing changed."""
    (tmp_path / "file").write_text("no folder")
    for name in ("folder", "pipe", "device", "none"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "x.mcap").mkdir()
    os.mkfifo(tmp_path / "pipe" / "x.mcap")
    (tmp_path / "device" / "x.mcap").symlink_to("/dev/zero")
    for name in ("file", "folder", "pipe", "device", "none", "absent"):
        before = sorted(tmp_path.rglob("*"))
        assert main([str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert error.startswith("recover: ") and len(error.splitlines()) == 1
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "metadata", ["", "a: [", "rosbag2_bagfile_information: 3", "x" * 5_000_000, "[" * 100_000, "\0"]
)
def test_metadata_of_any_kind_are_kept_and_replaced(tmp_path: Path, metadata: str) -> None:
    """What metadata.yaml says does not matter for the recovery; it is kept beside the new one."""
    bag = make_bag(tmp_path)
    (bag / "metadata.yaml").write_text(metadata)
    recovery = recover(bag)
    assert recovery.count == COUNT
    assert recovery.originals[1].read_text() == metadata
    with AnyReader([bag]) as reader:
        assert reader.message_count == COUNT


@pytest.mark.parametrize("damaged", [False, True])
def test_command_tells_what_became_of_the_bag(tmp_path: Path, damaged: bool) -> None:
    """`constrained_sim recover --json` counts messages, says whether parts are lost, and keeps the original."""
    bag = make_bag(tmp_path, finish=False)
    if damaged:
        file = bag_file(bag)
        file.write_bytes(flip(file.read_bytes(), 8 * (file.stat().st_size // 2)))
    words = [sys.executable, "-m", "constrained_sim", "recover", str(bag), "--json"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    told = json.loads(run.stdout)
    assert run.returncode == (3 if damaged else 0), run.stderr
    assert told["is_whole"] is not damaged
    assert told["messages"] == len(messages(bag_file(bag)))
    assert (told["messages"] == COUNT) is not damaged
    assert bool(told["damage"]) is bool(run.stderr)
    assert all(Path(original).is_file() for original in told["originals"]) and told["originals"]
    again = subprocess.run(words[:-1], capture_output=True, text=True, timeout=120, check=False)
    assert "; it was complete, and stays as it is" in again.stdout

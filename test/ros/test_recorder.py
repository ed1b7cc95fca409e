"""The recorder by itself: what happens when the disk does not keep up."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from rclpy.serialization import serialize_message
from ros.live import CONFIG
from rosbags.highlevel import AnyReader
from std_msgs.msg import String

from constrained_sim import load_config
from constrained_sim.exceptions import ConfigError
from constrained_sim.msg import SimulationStatus
from constrained_sim.ros import recorder as recorder_module
from constrained_sim.ros.bag import RecordedTopic, read_records
from constrained_sim.ros.health import Counters, Health, diagnostics_message
from constrained_sim.ros.recorder import Recorder
from constrained_sim.ros.recover import recover
from constrained_sim.ros.world import World

T = TypeVar("T")

TYPE = "std_msgs/msg/String"
FILLER, LATE = (RecordedTopic(name, TYPE, "") for name in ("/filler", "/late"))


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the recording process as long as a busy machine takes to start it."""
    monkeypatch.setattr(recorder_module, "PATIENCE", 60.0)


def texts(bag: Path) -> dict[str, list[str]]:
    """Return what a bag of strings holds, by topic."""
    found: dict[str, list[str]] = {}
    with AnyReader([bag]) as reader:
        for connection, _, data in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(data, TYPE).data)
    return found


def wait_for(look: Callable[[], T]) -> T:
    """Return what `look` returns as soon as that is true."""
    end = time.monotonic() + 60.0
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def messages_in(file: Path) -> int:
    """Return how many messages of an MCAP file are readable now: none of one in which nothing is yet."""
    return sum(1 for _ in read_records(file)) if file.stat().st_size else 0


def hand_over(recorder: Recorder) -> None:
    """Flush until everything that waits is in the pipe."""
    end = time.monotonic() + 60.0
    while not recorder.has_room(0.1) or recorder._buffer:
        recorder.flush()
        assert time.monotonic() < end


@pytest.mark.parametrize("patient", [False, True])
def test_nothing_begins_before_the_bag_is_open(tmp_path: Path, patient: bool) -> None:
    """There is no room before the bag is on the disk: what waits in the pipe is lost if all processes are killed."""
    recorder = Recorder(tmp_path / "bag", patient)
    os.kill(recorder._process.pid, signal.SIGSTOP)
    assert not recorder.has_room(0.5) and not list(tmp_path.glob("bag/*.mcap"))
    os.kill(recorder._process.pid, signal.SIGCONT)
    wait_for(lambda: recorder.has_room(0.1))
    assert list(tmp_path.glob("bag/*.mcap"))
    recorder.close()


def test_impatient_recorder_counts_what_it_drops(tmp_path: Path) -> None:
    """While the writing process stands still messages are dropped and counted; later ones are under their own topic."""
    recorder = Recorder(tmp_path / "bag", patient=False)
    wait_for(lambda: recorder.has_room(0.1))
    os.kill(recorder._process.pid, signal.SIGSTOP)
    filler = serialize_message(String(data="x" * 50_000))
    for stamp in range(300):
        recorder.write(FILLER, stamp, filler)
        recorder.flush()
        assert recorder.has_room(10.0)
    first_loss = recorder.lost
    assert first_loss > 0
    assert "messages are lost" in recorder.problem
    recorder.write(LATE, 300, filler)
    assert recorder.lost == first_loss + 1
    os.kill(recorder._process.pid, signal.SIGCONT)
    hand_over(recorder)
    for number in range(3):
        recorder.write(LATE, 301 + number, serialize_message(String(data=f"late {number}")))
    recorder.close()
    assert recorder.lost == first_loss + 1
    found = texts(tmp_path / "bag")
    assert found["/late"] == ["late 0", "late 1", "late 2"]
    assert len(found["/filler"]) == 300 - first_loss
    assert set(found["/filler"]) == {"x" * 50_000}


def test_patient_recorder_asks_to_wait(tmp_path: Path) -> None:
    """While its process stands still a patient recorder has no room, says so, and loses nothing."""
    recorder = Recorder(tmp_path / "bag")
    wait_for(lambda: recorder.has_room(0.1))
    os.kill(recorder._process.pid, signal.SIGSTOP)
    count = 0
    while recorder.has_room(0.0):
        recorder.write(FILLER, count, serialize_message(String(data=f"{count:050000d}")))
        recorder.flush()
        count += 1
    assert not recorder.has_room(1.5)
    assert "takes nothing" in recorder.problem
    os.kill(recorder._process.pid, signal.SIGCONT)
    recorder.close()
    assert recorder.lost == 0 and recorder.problem == ""
    assert [int(text[-9:]) for text in texts(tmp_path / "bag")["/filler"]] == list(range(count))


def test_patient_recorder_loses_nothing(tmp_path: Path) -> None:
    """A recorder that may wait loses nothing, however much is written at once."""
    recorder = Recorder(tmp_path / "bag")
    for stamp in range(60):
        recorder.write(FILLER, stamp, serialize_message(String(data=f"{stamp:050000d}")))
    recorder.flush()
    recorder.close()
    assert recorder.lost == 0
    assert [int(text[-9:]) for text in texts(tmp_path / "bag")["/filler"]] == list(range(60))


def test_close_leaves_a_process_that_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end does not wait for ever; what is not confirmed counts as lost, and the process may still write it."""
    monkeypatch.setattr(recorder_module, "PATIENCE", 1.0)
    recorder = Recorder(tmp_path / "bag")
    recorder.write(FILLER, 0, serialize_message(String(data="first")))
    recorder.flush()
    (file,) = wait_for(lambda: [path for path in tmp_path.glob("bag/*.mcap") if messages_in(path)])
    assert wait_for(lambda: recorder.problem == "" and recorder._confirmed)
    os.kill(recorder._process.pid, signal.SIGSTOP)
    for stamp in range(1, 100):
        recorder.write(FILLER, stamp, serialize_message(String(data="x" * 50_000)))
    recorder.close()
    assert recorder.lost == 99
    assert "does not answer" in recorder.problem
    os.kill(recorder._process.pid, signal.SIGCONT)
    assert recorder._process.wait(10.0) == 0
    assert 1 < messages_in(file) < 99


def test_recorder_survives_the_death_of_its_process(tmp_path: Path) -> None:
    """Messages for a writing process that is gone are counted as lost; the simulation goes on."""
    recorder = Recorder(tmp_path / "bag")
    recorder._process.kill()
    recorder._process.wait()
    recorder.write(FILLER, 0, serialize_message(String(data="x")))
    recorder.flush()
    recorder.write(FILLER, 1, serialize_message(String(data="x")))
    assert recorder.lost == 2
    assert recorder.has_room(10.0)
    recorder.close()
    assert "ended early" in recorder.problem


def test_a_bag_whose_file_is_not_there_yet_is_recovered_whole(tmp_path: Path) -> None:
    """The node dies while the process that writes still starts: who recovers the bag waits for it."""
    code = (
        "import os, sys; from pathlib import Path; from constrained_sim.ros.recorder import Recorder;"
        "from constrained_sim.ros.bag import RecordedTopic; recorder = Recorder(Path(sys.argv[1]));"
        f"recorder.write(RecordedTopic('/filler', {TYPE!r}, ''), 5, {serialize_message(String(data='last words'))!r});"
        "recorder.flush(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "bag")])
    assert recover(tmp_path / "bag").is_whole
    assert texts(tmp_path / "bag") == {"/filler": ["last words"]}


@pytest.mark.parametrize("limit", [0, 100, 3_000, 200_000, 333_333])
def test_full_disk_is_told_and_its_losses_counted(tmp_path: Path, limit: int) -> None:
    """On a disk that takes `limit` bytes of a file the rest is counted to the message, what is there is readable."""
    sizes = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, sizes[1]))
    try:
        recorder = Recorder(tmp_path / "bag")  # the process that writes has this limit too
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, sizes)
    for stamp in range(500):
        recorder.write(FILLER, stamp, serialize_message(String(data="x" * 1_000)))
        recorder.flush()
    recorder.close()
    assert "ended early: File too large" in recorder.problem
    (file,) = (tmp_path / "bag").glob("*.mcap")
    there = messages_in(file)
    assert recorder.lost == 500 - there
    assert (there > 100) == (limit >= 200_000)
    if there:
        assert recover(tmp_path / "bag").count == there == len(texts(tmp_path / "bag")["/filler"])


def test_diagnostics_say_once_what_keeps_messages_from_being_recorded() -> None:
    """The problem is the last thing that happened too: both are told, and what is equal is told once."""
    world = World(load_config(CONFIG))
    told = {
        text: diagnostics_message(
            world, Health("/simulator", SimulationStatus.RUNNING, text, 1.0, "disk full", "late"), Counters()
        ).status[0].message
        for text in ("disk full", "paused", "")
    }  # fmt: skip
    assert told == {"disk full": "disk full; late", "paused": "disk full; late; paused", "": "disk full; late"}


def test_folder_that_exists_is_refused(tmp_path: Path) -> None:
    """A recording never overwrites another."""
    with pytest.raises(ConfigError, match="new directory"):
        Recorder(tmp_path)

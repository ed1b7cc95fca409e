"""The recorder by itself: what happens when the disk does not keep up."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader
from std_msgs.msg import String

from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.bag import RecordedTopic
from constrained_sim.ros.recorder import Recorder

TYPE = "std_msgs/msg/String"
FILLER, LATE = (RecordedTopic(name, TYPE, "") for name in ("/filler", "/late"))


def texts(bag: Path) -> dict[str, list[str]]:
    """Return what a bag of strings holds, by topic."""
    found: dict[str, list[str]] = {}
    with AnyReader([bag]) as reader:
        for connection, _, data in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(data, TYPE).data)
    return found


def test_impatient_recorder_counts_what_it_drops(tmp_path: Path) -> None:
    """While the writing process stands still messages are dropped and counted; later ones are under their own topic."""
    recorder = Recorder(tmp_path / "bag", patient=False)
    os.kill(recorder._process.pid, signal.SIGSTOP)
    filler = serialize_message(String(data="x" * 50_000))
    for stamp in range(100):
        recorder.write(FILLER, stamp, filler)
        recorder.flush()
    assert recorder.lost > 0
    first_loss = recorder.lost
    recorder.write(LATE, 100, filler)
    recorder.flush()
    assert recorder.lost == first_loss + 1
    os.kill(recorder._process.pid, signal.SIGCONT)
    recorder.patient = True
    for number in range(3):
        recorder.write(LATE, 101 + number, serialize_message(String(data=f"late {number}")))
        recorder.flush()
    recorder.close()
    found = texts(tmp_path / "bag")
    assert found["/late"] == ["late 0", "late 1", "late 2"]
    assert len(found["/filler"]) == 100 - first_loss
    assert set(found["/filler"]) == {"x" * 50_000}


def test_patient_recorder_waits(tmp_path: Path) -> None:
    """A recorder that may wait loses nothing, however much is written at once."""
    recorder = Recorder(tmp_path / "bag")
    for stamp in range(60):
        recorder.write(FILLER, stamp, serialize_message(String(data=f"{stamp:050000d}")))
    recorder.flush()
    recorder.close()
    assert recorder.lost == 0
    assert [int(text[-9:]) for text in texts(tmp_path / "bag")["/filler"]] == list(range(60))


def test_recorder_survives_the_death_of_its_process(tmp_path: Path) -> None:
    """Messages for a writing process that is gone are counted as lost; the simulation goes on."""
    recorder = Recorder(tmp_path / "bag")
    recorder._process.kill()
    recorder._process.wait()
    recorder.write(FILLER, 0, serialize_message(String(data="x")))
    recorder.flush()
    assert recorder.lost == 1
    recorder.close()


def test_folder_that_exists_is_refused(tmp_path: Path) -> None:
    """A recording never overwrites another."""
    with pytest.raises(ConfigError, match="new directory"):
        Recorder(tmp_path)

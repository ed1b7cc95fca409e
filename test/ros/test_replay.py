"""`replay`: a recording is simulated again from its inputs, and what differs is named."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from mcap.reader import make_reader
from mcap.records import Footer
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer
from rclpy.serialization import deserialize_message, serialize_message
from ros.bags import Bag
from ros.live import NODE
from sensor_msgs.msg import JointState

from constrained_sim.exceptions import ConfigError
from constrained_sim.msg import Contact, Input
from constrained_sim.objects.world_object import primitive
from constrained_sim.ros.bag import bag_file, read_records
from constrained_sim.ros.message_definitions import message_definition
from constrained_sim.ros.recover import recover
from constrained_sim.ros.replay import INPUT, main, replay
from constrained_sim.srv import (
    AddConstraint,
    AddContact,
    ApplyWrench,
    DeleteObject,
    Reset,
    SetSolver,
    SpawnObject,
    Step,
)


def test_lockstep_run_is_repeated_bit_by_bit(hopping, capsys):
    """Commands of another process: every state, force, impact and clock message of 4 s follows from them."""
    comparison = replay(hopping.path)
    assert comparison.difference == "" and comparison.warnings == ()
    for topic, messages in hopping.raw.items():
        if topic not in (f"{NODE}/status", f"{NODE}/inputs", "/diagnostics"):
            assert comparison.counts[topic] == len(messages) > 0
    assert main([str(hopping.path)]) == 0
    assert "identical, bit by bit" in capsys.readouterr().out


def test_run_that_depended_on_the_wall_clock_is_repeated(hopping_in_real_time):
    """In real time the periods in which commands act differ from run to run; the recording says which they were."""
    assert replay(hopping_in_real_time.path).difference == ""


@pytest.fixture(scope="module")
def served(simulate, tmp_path_factory):
    """The bag of a run in which every kind of request and input took effect."""
    folder = tmp_path_factory.mktemp("served") / "bag"
    with simulate(clock_mode="fast", start_paused=True, record=folder) as sim:
        sim.meet()
        sim.command(["hip", "knee"], [1.0, 2.0])
        sim.wait_for_commands()
        sim.step(20)
        sim.client.publish("/joint_commands", JointState(name=["knee"], position=[-1.1], velocity=[0.5], effort=[0.1]))
        sim.wait_for_commands()
        sim.step(20)
        assert sim.call(SetSolver, "set_solver", solver="null_space").success
        assert not sim.call(SetSolver, "set_solver", solver="magic").success
        push = ApplyWrench.Request(link="foot")
        push.wrench.force.z, push.duration.nanosec = 3.0, 5_000_000
        assert sim.call(ApplyWrench, "apply_wrench", **fields(push)).success
        sim.step(10)
        contact = Contact(name="knee", link="lower_leg", friction=0.3)
        contact.normal.z = 1.0
        assert sim.call(AddContact, "add_contact", contact=contact).success
        hold = AddConstraint.Request()
        hold.constraint.name, hold.constraint.kind = "hold", "joint_velocity"
        hold.constraint.joint, hold.constraint.velocity = "hip", 0.0
        answer = sim.call(AddConstraint, "add_constraint", constraint=hold.constraint)
        assert answer.success and answer.energy_lost > 0.0
        sim.step(300)
        ball = primitive("sphere", (0.05,), 0.5, 0.4).urdf
        spawn = SpawnObject.Request(name="ball", description=ball)
        spawn.pose.position.x, spawn.pose.position.z = -0.5, 0.3
        assert sim.call(SpawnObject, "spawn_object", **fields(spawn)).success
        assert not sim.call(SpawnObject, "spawn_object", **fields(spawn)).success
        sim.step(50)
        assert sim.call(DeleteObject, "delete_object", name="ball").success
        sim.step(10)
        assert sim.call(Reset, "reset", keep_time=True, keep_constraints=True).success
        assert sim.call(Step, "step", periods=50).success
    return folder


def fields(request):
    return {name: getattr(request, name) for name in request.get_fields_and_field_types()}


def test_requests_are_repeated(served):
    """Services take effect at the recorded boundaries; those that were refused are not in the recording."""
    inputs = [deserialize_message(r.data, Input) for r in read_records(bag_file(served)) if r.topic.type_name == INPUT]
    names = [given.name for given in inputs]
    assert names[0] == "configuration"
    assert names[1:] == [
        "commands",
        "commands",
        "parameters",
        "apply_wrench",
        "add_contact",
        "add_constraint",
        "spawn_object",
        "delete_object",
        "reset",
    ]
    assert json.loads(inputs[3].content)["solver"] == "null_space"
    comparison = replay(served)
    assert comparison.difference == ""
    assert comparison.counts["/impacts"] >= 1
    assert comparison.counts["/object_states"] == 52  # spawned, 50 periods, gone


def rewritten(bag, folder, change):
    """Return a copy of `bag` whose records went through `change`."""
    shutil.copytree(bag, folder)
    records = list(read_records(bag_file(bag)))
    with bag_file(folder).open("wb") as stream:
        writer = Writer(stream, compression=CompressionType.NONE)
        writer.start(profile="ros2", library="test")
        channels = {}
        for record in records:
            if record.topic.name not in channels:
                schema = writer.register_schema(
                    record.topic.type_name, "ros2msg", message_definition(record.topic.type_name).encode()
                )
                channels[record.topic.name] = writer.register_channel(record.topic.name, "cdr", schema)
            data = change(record)
            if data is not None:
                writer.add_message(channels[record.topic.name], record.stamp, data, record.stamp)
        writer.finish()
    return folder


def test_first_step_that_differs_is_named(served, tmp_path):
    """An effort that is changed in its last bits shows in the first state that follows, and the field is named."""

    def change(record):
        given = deserialize_message(record.data, Input) if record.topic.type_name == INPUT else None
        if given is None or given.name != "commands":
            return record.data
        given.content = given.content.replace("1.0", repr(1.0 + 2.0**-40))
        return serialize_message(given)

    changed = rewritten(served, tmp_path / "changed", change)
    difference = replay(changed).difference
    step = int(difference.split()[1])
    assert difference.startswith(f"step {step} (stamp ") and "/joint_states: " in difference
    assert "recorded" in difference and "replayed" in difference
    inputs = [deserialize_message(r.data, Input) for r in read_records(bag_file(served)) if r.topic.type_name == INPUT]
    assert step == next(given.step for given in inputs if given.name == "commands") + 1
    assert main([str(changed)]) == 3


def test_changed_model_is_named(served, tmp_path):
    """A recording whose robot was another says so beside what differs."""

    def change(record):
        given = deserialize_message(record.data, Input) if record.topic.type_name == INPUT else None
        if given is None or given.name != "configuration":
            return record.data
        content = json.loads(given.content)
        content["digest"] = "0" * 64
        content["versions"]["numpy"] = "0.1"
        given.content = json.dumps(content)
        return serialize_message(given)

    comparison = replay(rewritten(served, tmp_path / "changed", change))
    assert comparison.difference == ""
    assert any("description of the robot" in text for text in comparison.warnings)
    assert any("numpy: recorded with 0.1" in text for text in comparison.warnings)


def test_recording_without_transforms_is_repeated(served, tmp_path):
    """Recordings of before the option `tf`, on machines without tf2_msgs, hold none: none are missed."""

    def change(record):
        if record.topic.name in ("/tf", "/tf_static"):
            return None
        given = deserialize_message(record.data, Input) if record.topic.type_name == INPUT else None
        if given is None or given.name != "configuration":
            return record.data
        content = json.loads(given.content)
        del content["parameters"]["tf"], content["parameters"]["tf_rate"]
        given.content = json.dumps(content)
        return serialize_message(given)

    comparison = replay(rewritten(served, tmp_path / "before", change))
    assert comparison.difference == "" and comparison.counts["/joint_states"] > 300


def test_bag_of_others_is_refused(served, tmp_path):
    """Without inputs there is nothing to replay."""
    folder = rewritten(
        served, tmp_path / "other", lambda record: None if record.topic.type_name == INPUT else record.data
    )
    with pytest.raises(ConfigError, match="does not begin with a configuration"):
        replay(folder)
    assert main([str(tmp_path)]) == 1


def test_cut_off_recording_is_read_and_recovered(served, tmp_path):
    """What is complete of a file that was cut off is replayed, and after `recover` every tool reads it."""
    folder = tmp_path / "cut"
    shutil.copytree(served, folder)
    file = bag_file(folder)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3])
    whole, cut = (sum(1 for _ in read_records(bag_file(bag))) for bag in (served, folder))
    topics = {record.topic for record in read_records(file)}
    assert 0 < cut < whole
    comparison = replay(folder)
    assert comparison.difference == "" and not comparison.is_whole
    assert any("cut off" in warning for warning in comparison.warnings)
    recovery = recover(folder)
    assert recovery.count == cut and recovery.is_whole
    assert recovery.originals[0].read_bytes() == data[: len(data) * 2 // 3]
    assert {record.topic for record in read_records(file)} == topics
    bag = Bag(folder)
    assert sum(len(messages) for messages in bag.raw.values()) == cut == bag.metadata["message_count"]
    assert replay(folder).difference == ""


def cut(bag, folder, count):
    """Return a copy of `bag` without the last `count` bytes."""
    shutil.copytree(bag, folder)
    file = bag_file(folder)
    file.write_bytes(file.read_bytes()[:-count])
    return folder


def end_of_data(bag):
    """Return how many bytes of `bag` begin with the mark at the end of its data."""
    with bag_file(bag).open("rb") as stream:
        footer = next(record for record in StreamReader(stream).records if isinstance(record, Footer))
    return bag_file(bag).stat().st_size - footer.summary_start + DATA_END


DATA_END = 13
"""[bytes] of the record at the end of the data."""


@pytest.mark.parametrize("beyond", [0, 200], ids=["between records", "in a record"])
def test_a_replay_says_that_parts_are_lost(served, tmp_path, capsys, beyond):
    """By its last line and its exit code, also where what is left ends with a whole record."""
    folder = cut(served, tmp_path / "cut", end_of_data(served) + beyond)
    assert main([str(folder)]) == 3
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "the replay is identical, bit by bit, to what is left of the recording: parts of it are lost"


def test_a_replay_says_how_much_it_compares(served, tmp_path, capsys):
    """Also of a recording that was cut off and recovered, and is shorter; what is not there is not counted as bytes."""
    folder = cut(served, tmp_path / "cut", end_of_data(served))
    assert main([str(folder)]) == 3
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "note: the recording is cut off: what followed is lost"
    for bag in (served, cut(served, tmp_path / "shorter", bag_file(served).stat().st_size // 2)):
        recover(bag)
        assert main([str(bag)]) == 0
        *_, extent, last = capsys.readouterr().out.splitlines()
        records = [r for r in read_records(bag_file(bag)) if r.topic.name == "/joint_states"]
        assert re.search(rf"compared: \d+ messages, up to step \d+ \(stamp {records[-1].stamp / 1e9:.9f} s\)", extent)
        assert last == "the replay is identical, bit by bit"


def holed(bag, folder):
    """Return a copy of `bag` with a wrong bit in the middle one of its chunks."""
    shutil.copytree(bag, folder)
    data = bytearray(bag_file(folder).read_bytes())
    with bag_file(bag).open("rb") as stream:
        chunks = make_reader(stream).get_summary().chunk_indexes
    assert len(chunks) > 2
    middle = chunks[len(chunks) // 2]
    data[middle.chunk_start_offset + middle.chunk_length // 2] ^= 1
    bag_file(folder).write_bytes(data)
    return folder


@pytest.mark.parametrize("recovers", [False, True])
def test_what_is_behind_a_hole_is_compared(dropped, tmp_path, capsys, recovers):
    """Messages that are lost are counted and said, not what follows them; recover leaves in the bag that there are."""
    folder = holed(dropped.path, tmp_path / "holed")
    if recovers:
        assert not recover(folder).is_whole
        assert recover(folder).originals == ()  # it is complete now
    comparison = replay(folder)
    assert comparison.difference == "" and not comparison.is_whole and not comparison.is_proven
    left = sum(comparison.counts.values())
    whole = sum(replay(dropped.path).counts.values())
    assert 0 < left < whole and comparison.steps == 400
    assert any(text.startswith(f"{whole - left} messages are missing") for text in comparison.warnings)
    assert any("checksum does not fit" in text for text in comparison.warnings)
    assert main([str(folder)]) == 3
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "the replay is identical, bit by bit, to what is left of the recording: parts of it are lost"


def test_commands_that_are_lost_in_a_hole_are_no_other_simulation(hopping, tmp_path):
    """What differs behind it is told as that."""
    comparison = replay(holed(hopping.path, tmp_path / "holed"))
    assert "behind a hole in the recording, in which inputs may be lost" in comparison.difference
    assert not comparison.is_whole and any("messages are missing" in text for text in comparison.warnings)


def test_a_recording_without_messages_is_called_empty(served, tmp_path):
    """It is none of others."""
    with pytest.raises(ConfigError, match="the recording is empty"):
        replay(rewritten(served, tmp_path / "empty", lambda record: None))


def test_an_index_that_is_cut_off_is_no_loss(served, tmp_path, capsys):
    """All messages are before it."""
    folder = cut(served, tmp_path / "cut", 100)
    assert main([str(folder)]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "note: the index at the end of the recording is cut off; no message is in it"
    assert last == "the replay is identical, bit by bit"


def test_the_command_tells_of_losses(served, tmp_path):
    """`constrained_sim replay --json`, by its exit code too."""
    for count, is_whole in ((end_of_data(served) + 200, False), (1, True)):
        folder = cut(served, tmp_path / str(count), count)
        words = [sys.executable, "-m", "constrained_sim", "replay", str(folder), "--json"]
        run = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert run.returncode == (0 if is_whole else 3), run.stderr
        told = json.loads(run.stdout)
        assert (told["is_whole"], told["difference"]) == (is_whole, "")
        assert "cut off" in run.stderr

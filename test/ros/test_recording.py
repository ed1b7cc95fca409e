"""The recorder: rosbag2 directories that hold every control period, whatever happens to the node."""

import json
import os
import random
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from ament_index_python.packages import get_package_share_directory
from mcap.reader import make_reader
from mcap.records import Chunk, Message
from mcap.stream_reader import StreamReader, breakup_chunk
from ros.bags import TYPES, Bag, Mechanics
from ros.live import CONFIG, NODE, PERIOD, URDF, Process, arguments, free_domain, stamp
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from constrained_sim import load_config
from constrained_sim.ros.bag import bag_file, read_records
from constrained_sim.ros.message_types import type_name
from constrained_sim.ros.recover import recover
from constrained_sim.ros.replay import replay

TOPICS = set(TYPES) - {"/constraint_forces", "/odom"}  # the leg has no bilateral constraints, and a fixed base


def log_times(file):
    """Return the log times of the messages of an MCAP file, a list for each chunk."""
    with file.open("rb") as stream:
        records = StreamReader(stream, emit_chunks=True).records
        return [
            [part.log_time for part in breakup_chunk(record) if isinstance(part, Message)]
            for record in records
            if isinstance(record, Chunk)
        ]


@pytest.fixture(scope="module")
def reset_once(simulate, tmp_path_factory):
    """A bag in which time is turned back once, amidst a chunk."""
    folder = tmp_path_factory.mktemp("reset") / "bag"
    with simulate(clock_mode="fast", start_paused=True, record=folder) as sim:
        sim.meet()
        sim.step(20)
        sim.reset()
        sim.step(20)
    return Bag(folder)


@pytest.fixture(scope="module")
def coarse(run_to_end):
    """A bag with odd times: steps of 0.3 ms, control periods of 0.9 ms, which end at 1.8 s, begin at 5.5 s."""
    return run_to_end("none", 0.36, clock_mode="fast", dt=0.0003, control_period=0.0009, start_time=5.5)


def test_every_period_is_in_the_bag(dropped, standing, hopping, hopping_in_real_time):
    """States, forces and clocks of all periods, with exact stamps, in every clock mode."""
    for bag, seconds in ((dropped, 0.4), (standing, 1.0), (hopping, 4.0), (hopping_in_real_time, 4.0)):
        count = round(seconds * 1000)
        bag.assert_every_period(PERIOD, count)
        assert len(bag.raw["/clock"]) == count + 2
        assert bag.messages(f"{NODE}/status")[-1].records_lost == 0
        assert set(bag.raw) == TOPICS


def test_stamps_are_whole_nanoseconds(coarse):
    """Stamps are start_time + k periods in integers, also where neither step nor period is a round binary number."""
    coarse.assert_every_period(900_000, 400, start=5_500_000_000)


def test_log_times_are_stamps(dropped):
    """A message's time in the bag is its own stamp."""
    for topic in ("/joint_states", "/contact_forces", "/clock"):
        assert dropped.log_times[topic] == [stamp(message) for message in dropped.messages(topic)]


def test_forces_of_several_steps_are_averaged(coarse):
    """With three steps per period the mean force times the period, with the impulses, is what moved the leg."""
    assert abs(Mechanics(URDF.read_text()).momentum_defects(coarse)).max() < 1e-9
    assert len(coarse.raw["/impacts"]) >= 1


def test_metadata_tells_what_is_in_the_bag(dropped, hopping):
    """Counts, types, times and the file of metadata.yaml are those of the messages."""
    for bag in (dropped, hopping):
        metadata = bag.metadata
        counts = {t["topic_metadata"]["name"]: t["message_count"] for t in metadata["topics_with_message_count"]}
        types = {
            t["topic_metadata"]["name"]: t["topic_metadata"]["type"] for t in metadata["topics_with_message_count"]
        }
        assert counts == {topic: len(messages) for topic, messages in bag.raw.items()}
        assert types == {topic: type_name(TYPES[topic]) for topic in counts}
        assert metadata["message_count"] == sum(counts.values())
        assert metadata["storage_identifier"] == "mcap"
        assert metadata["starting_time"]["nanoseconds_since_epoch"] == 1_000_000_000
        assert metadata["duration"]["nanoseconds"] == stamp(bag.messages("/clock")[-1]) - 1_000_000_000
        assert [(bag.path / path).exists() for path in metadata["relative_file_paths"]] == [True]


def generated_hash(type_name):
    """Return the hash of a message type that rosidl has left beside its definition."""
    package, _, name = type_name.split("/")
    file = Path(get_package_share_directory(package)) / "msg" / f"{name}.json"
    return json.loads(file.read_text())["type_hashes"][0]["hash_string"]


def test_metadata_is_of_version_8(standing):
    """Distribution and hashes of types are those that ROS computes, in metadata.yaml and in the file."""
    metadata = standing.metadata
    assert (metadata["version"], metadata["ros_distro"], metadata["custom_data"]) == (8, os.environ["ROS_DISTRO"], {})
    topics = [topic["topic_metadata"] for topic in metadata["topics_with_message_count"]]
    with bag_file(standing.path).open("rb") as stream:
        reader = make_reader(stream)
        channels = {c.topic: c.metadata for c in reader.get_summary().channels.values()}
        assert [(m.name, m.metadata) for m in reader.iter_metadata()] == [
            ("rosbag2", {"ROS_DISTRO": os.environ["ROS_DISTRO"]})
        ]
    known = get_typestore(Stores.ROS2_JAZZY)
    for topic in topics:
        assert channels[topic["name"]]["topic_type_hash"] == topic["type_description_hash"]
        if topic["type"] in known.types:
            assert topic["type_description_hash"] == known.hash_rihs01(topic["type"])
        else:
            assert topic["type_description_hash"] == generated_hash(topic["type"])


def test_log_times_never_fall_within_a_chunk(hopping, reset_once):
    """Messages are in the order of their times; only a reset, which turns time back, begins anew, in another chunk."""
    assert len(hopping.raw["/impacts"]) > 3  # earlier than the ends of their periods
    for bag, resets in ((hopping, 0), (reset_once, 1)):
        chunks = log_times(bag_file(bag.path))
        assert all(times == sorted(times) for times in chunks)
        every = [time for times in chunks for time in times]
        assert sum(after < before for before, after in pairwise(every)) == resets
    assert replay(reset_once.path).difference == ""


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_chosen_topics_compressed(run_to_end, dropped, compression):
    """A compressed bag of some topics is read by rosbags and mcap, recovered, and replayed from all that entered."""
    chosen = ["joint_states", "/contact_f*"]
    bag = run_to_end("none", 1.2, clock_mode="fast", record_topics=chosen, record_compression=compression)
    assert set(bag.raw) == {"/joint_states", "/contact_forces", f"{NODE}/inputs"}
    for topic in ("/joint_states", "/contact_forces"):
        assert bag.raw[topic][: len(dropped.raw[topic])] == dropped.raw[topic]
    file = bag_file(bag.path)
    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        chunks = reader.get_summary().chunk_indexes  # two at least: there is more than fits into one
        assert {chunk.compression for chunk in chunks} == {compression}
        assert sum(1 for _ in reader.iter_messages()) == bag.metadata["message_count"]
    comparison = replay(bag.path)
    assert comparison.difference == ""
    assert comparison.counts == {topic: len(bag.raw[topic]) for topic in ("/joint_states", "/contact_forces")}
    whole = list(read_records(file))
    file.write_bytes(file.read_bytes()[: chunks[-1].chunk_start_offset + 20])
    assert recover(bag.path).is_whole
    found = list(read_records(file))
    assert 0 < len(found) < len(whole) and found == whole[: len(found)]
    with file.open("rb") as stream:
        chunks = make_reader(stream).get_summary().chunk_indexes
    assert {chunk.compression for chunk in chunks} == {compression}
    assert Bag(bag.path).metadata["ros_distro"] == os.environ["ROS_DISTRO"]


def test_topic_that_is_not_there_is_refused(tmp_path):
    """A topic to be recorded that nobody publishes is named, with those that there are; no bag is left behind."""
    words = arguments(record=tmp_path / "bag", record_topics=["joint_states", "/contact_force"])
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        assert process.wait(20.0) == 1
    finally:
        process.stop()
    assert "nothing is published on ['/contact_force'], allowed: [" in process.stderr
    assert "'contact_forces'" in process.stderr
    assert not (tmp_path / "bag").exists()


def test_bag_tells_with_which_qos_topics_were_published(standing):
    """A player offers what the node offered: the robot's description to those that come late too.

    The numbers are those of rmw (types.h): reliable 1, transient local 1, volatile 2, keep last 1.
    """
    topics = [topic["topic_metadata"] for topic in standing.metadata["topics_with_message_count"]]
    (file,) = standing.path.glob("*.mcap")
    with file.open("rb") as stream:
        channels = {c.topic: c.metadata for c in make_reader(stream).get_summary().channels.values()}
    told = {}
    for topic in topics:
        assert channels[topic["name"]]["offered_qos_profiles"] == topic["offered_qos_profiles"]
        (told[topic["name"]],) = yaml.safe_load(topic["offered_qos_profiles"])
    assert {qos["reliability"] for qos in told.values()} == {qos["history"] for qos in told.values()} == {1}
    latched = {name for name, qos in told.items() if qos["durability"] == 1}
    assert latched == {name for name, qos in told.items() if qos["depth"] == 1}
    assert {"/robot_description", "/object_descriptions"} <= latched
    assert told["/contact_forces"]["durability"] == told["/joint_states"]["durability"] == 2
    assert told["/clock"]["deadline"] == {"sec": 0, "nsec": 0}


def test_definitions_in_the_bag_suffice_to_read_it(standing):
    """A reader that knows nothing of this package decodes every topic by the definitions in the file."""
    (file,) = standing.path.glob("*.mcap")
    with file.open("rb") as stream:
        schemas = {schema.name: schema for schema in make_reader(stream).get_summary().schemas.values()}
    assert "geometry_msgs/Wrench" in schemas["constrained_sim/msg/ContactForces"].data.decode()
    assert "uint8 STICKING=1" in schemas["constrained_sim/msg/ContactForces"].data.decode()
    seen = {}
    with AnyReader([standing.path]) as reader:
        for connection, _, data in reader.messages():
            seen[connection.topic] = reader.deserialize(data, connection.msgtype)
    assert set(seen) == TOPICS
    last = standing.messages("/contact_forces")[-1].contacts[0]
    assert seen["/contact_forces"].contacts[0].normal_force == last.normal_force
    assert seen["/contact_forces"].contacts[0].name == "foot"
    assert seen["/robot_description"].data == URDF.read_text()
    assert seen[f"{NODE}/status"].solver == "range_space"


def test_bag_holds_what_the_core_computes(dropped):
    """The recorded states of the uncommanded leg are those of the simulator without ROS, bit for bit."""
    sim = load_config(CONFIG).simulator()
    for state in dropped.messages("/joint_states")[1:]:
        result = sim.step()
        assert list(state.position) == result.state.q.tolist()
        assert list(state.velocity) == result.state.v.tolist()


def test_the_node_says_at_its_end_where_its_bag_is(tmp_path):
    """Whoever let a launch file name it finds it."""
    words = arguments(clock_mode="fast", duration=0.01, record=tmp_path / "bag")
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        assert process.wait(20.0) == 0, process.stderr
    finally:
        process.stop()
    assert f"recorded to '{tmp_path / 'bag'}'" in process.stderr.splitlines()[-1]
    assert Bag(tmp_path / "bag").messages("/joint_states")


def test_bag_of_a_killed_node_is_readable(tmp_path):
    """SIGKILL leaves a finished bag without gaps, and no process."""
    words = arguments(clock_mode="fast", record=tmp_path / "bag")
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        end = time.monotonic() + 20.0
        while not any(file.stat().st_size > 300_000 for file in tmp_path.glob("bag/*.mcap")):
            assert time.monotonic() < end, process.stderr
            time.sleep(0.05)
        assert len(process.family()) == 2
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(5.0) == -signal.SIGKILL
        process.wait_for_family()
    finally:
        process.stop()
    bag = Bag(tmp_path / "bag")
    count = len(bag.raw["/contact_forces"])
    assert count > 100
    stamps = [stamp(message) for message in bag.messages("/contact_forces")]
    assert stamps == [1_000_000_000 + k * PERIOD for k in range(1, count + 1)]
    counts = {t["topic_metadata"]["name"]: t["message_count"] for t in bag.metadata["topics_with_message_count"]}
    assert counts == {topic: len(messages) for topic, messages in bag.raw.items()}


def test_killed_at_any_moment_a_recording_is_replayed(tmp_path):
    """SIGKILL at random moments: recovered, the bag replays bit by bit, up to the last half second that was heard."""
    moments, domain = random.Random(4), free_domain()
    for number in range(4):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        words = arguments(clock_mode="realtime", record=folder / "bag")
        process = Process(folder, domain, "simulator", *words)
        try:
            end = time.monotonic() + 60.0
            while not any(file.stat().st_size > 10_000 for file in folder.glob("bag/*.mcap")):
                assert time.monotonic() < end, process.stderr
                time.sleep(0.05)
            begin, already = time.monotonic(), len(list(read_records(bag_file(folder / "bag"))))
            time.sleep(moments.uniform(0.0, 1.5))
            ran = time.monotonic() - begin
            os.kill(process.pid, signal.SIGKILL)
            process.wait(5.0)
        finally:
            process.stop()
        recovery = recover(folder / "bag")
        assert recovery.is_whole and recovery.count >= already
        clocks = [record for record in read_records(bag_file(folder / "bag")) if record.topic.name == "/clock"]
        assert clocks[-1].stamp - clocks[0].stamp > 1e9 * (ran - 0.5)
        assert replay(folder / "bag").difference == ""

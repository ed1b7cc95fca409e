"""How the node starts and ends: exit codes, messages, nothing left over."""

import gc
import os
import signal
import time
from pathlib import Path

import pytest
import rclpy
import yaml
from ros.bags import Bag
from ros.live import CONFIG, PERIOD, START_TIME, URDF, Process, arguments, free_domain, stamp

from constrained_sim import load_config
from constrained_sim.ros.node import main


def massless(folder):
    """Return the path of the leg's URDF with a weightless lower leg."""
    text = URDF.read_text()
    for mass in ("0.22", "0.03"):
        text = text.replace(f'<mass value="{mass}"/>', '<mass value="0"/>')
    begin = text.index('<link name="lower_leg">')
    tail = text[begin:]
    for value in ("0.00062", "0.00003", "0.000004", "0.000002"):
        tail = tail.replace(f'"{value}"', '"0"')
    path = folder / "massless.urdf"
    path.write_text(text[:begin] + tail)
    return path


def broken_yaml(folder):
    path = folder / "broken.yaml"
    path.write_text("/**:\n  ros__parameters:\n    dt: [0.001\n    solver: direct\n")
    return path


def unknown_key(folder):
    content = yaml.safe_load(CONFIG.read_text())
    content["/**"]["ros__parameters"]["contacts"]["foot"]["stickiness"] = 2.0
    path = folder / "unknown.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def existing(folder):
    (folder / "bag").mkdir()
    return folder / "bag"


REFUSED = {
    "missing URDF": (lambda folder: arguments(robot__urdf=folder / "no.urdf"), ["no.urdf"]),
    "broken YAML": (lambda folder: arguments(broken_yaml(folder)), ["broken.yaml", "YAML"]),
    "missing file": (lambda folder: arguments(folder / "no.yaml"), ["no.yaml"]),
    "unknown key in a contact": (lambda folder: arguments(unknown_key(folder)), ["stickiness", "friction"]),
    "unknown parameter": (lambda folder: arguments(nonsense=1), ["nonsense", "solver"]),
    "unknown solver": (lambda folder: arguments(solver="magic"), ["magic", "direct", "range_space", "null_space"]),
    "factorization for null_space": (
        lambda folder: arguments(solver="null_space", factorization="lu"),
        ["null_space", "factorization"],
    ),
    "unknown clock mode": (lambda folder: arguments(clock_mode="warp"), ["warp", "lockstep"]),
    "period that is no multiple": (lambda folder: arguments(control_period=0.0015), ["control_period", "0.0015"]),
    "massless joint": (lambda folder: arguments(robot__urdf=massless(folder)), ["knee"]),
    "text over the number of the file": (lambda folder: arguments(dt="soon"), ["dt", "soon", "0.001"]),
    "number over the whole one of the file": (lambda folder: arguments(lockstep_commands=2.5), ["commands", "2.5"]),
    "empty list over that of the file": (
        lambda folder: arguments(robot__actuated_joints=[]),
        ["robot.actuated_joints", "[]", "['hip', 'knee']", "ROS keeps"],
    ),
    "existing directory": (lambda folder: arguments(record=existing(folder)), ["bag", "new directory"]),
}


@pytest.fixture
def own_signals(monkeypatch):
    """For a node in this process: signals are as before when it has ended."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(free_domain()))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_bad_start_is_refused_in_one_line(tmp_path, capfd, own_signals, given):
    """Exit code 1, and one line on standard error that names what was given and what is allowed."""
    words, expected = REFUSED[given]
    assert main(["simulator", *words(tmp_path)]) == 1
    assert_one_line(capfd.readouterr().err, expected)


def test_refused_node_gives_its_name_back(tmp_path, capfd, own_signals):
    """At once, in a process in which ROS goes on: it would tell the next node that the name is taken in /rosout."""
    other = rclpy.Context()
    rclpy.init(context=other)
    gc.disable()
    try:
        for given in ("unknown parameter", "unknown solver", "unknown parameter"):
            words, expected = REFUSED[given]
            assert main(["simulator", *words(tmp_path)]) == 1
            assert_one_line(capfd.readouterr().err, expected)
    finally:
        gc.enable()
        rclpy.try_shutdown(context=other)


def test_empty_lists_are_taken(tmp_path, own_signals):
    """A robot without motors, in a file or on the command line, in a bag of all topics."""
    content = yaml.safe_load(CONFIG.read_text())
    parameters = content["/**"]["ros__parameters"]
    parameters["robot"]["actuated_joints"], parameters["record_topics"] = [], []
    del parameters["servo"], parameters["joints"]
    path = tmp_path / "passive.yaml"
    path.write_text(yaml.safe_dump(content))
    words = arguments(path, duration=0.01, clock_mode="fast", record=tmp_path / "bag", joints=[])
    assert main(["simulator", *words]) == 0
    (status, *_) = Bag(tmp_path / "bag").messages("/constrained_sim/status")
    assert status.actuated_joints == []


def test_frozen_node_with_a_duration_ends(tmp_path, capfd, own_signals):
    """Exit code 1, and the last line says why: nobody may be there to reset it."""
    content = yaml.safe_load(CONFIG.read_text())
    content["/**"]["ros__parameters"]["initial"]["velocities"]["hip"] = 1e200
    path = tmp_path / "fast.yaml"
    path.write_text(yaml.safe_dump(content))
    assert main(["simulator", *arguments(path, duration=0.2, clock_mode="fast")]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("constrained_sim: frozen: step 0") and "before its duration of 0.2 s" in last


@pytest.mark.parametrize("given", ["existing directory", "unknown parameter"])
def test_refused_process_ends_with_all_that_it_started(tmp_path, given):
    """Its exit code is 1, too, and its recorder is gone."""
    words, expected = REFUSED[given]
    process = Process(tmp_path, free_domain(), "simulator", *words(tmp_path))
    try:
        assert process.wait(20.0) == 1
        process.wait_for_family()
    finally:
        process.stop()
    assert_one_line(process.stderr, expected)


def assert_one_line(stderr, expected):
    """Check that there is one line, and that it holds all of `expected`."""
    (line,) = (line for line in stderr.splitlines() if not line.startswith("[INFO]"))
    assert line.startswith("constrained_sim: ")
    for text in expected:
        assert text in line


@pytest.mark.parametrize(("executable", "name"), [("simulator", "constrained_sim"), ("monitor", "monitor")])
@pytest.mark.parametrize("words", [["-p", "foo"], ["--nonsense"]], ids=" ".join)
def test_arguments_that_ros_does_not_take(tmp_path, executable, name, words):
    """Likewise, after what ROS itself may say."""
    process = Process(tmp_path, free_domain(), executable, "--ros-args", *words)
    try:
        assert process.wait(20.0) == 1
    finally:
        process.stop()
    *of_ros, line = process.complaints.splitlines()
    assert all("[rcl]" in other for other in of_ros)
    assert line.startswith(f"{name}: ")
    assert " ".join(words) in line


def _terminal_interrupt(process):
    os.killpg(process.pid, signal.SIGINT)


def _interrupt(process):
    process.popen.send_signal(signal.SIGINT)


def _terminate(process):
    process.popen.send_signal(signal.SIGTERM)


ENDED = {
    "Ctrl-C of a running one": ({"clock_mode": "realtime"}, _terminal_interrupt),
    "SIGINT of one that waits": ({"clock_mode": "lockstep"}, _interrupt),
    "SIGTERM of a fast one": ({"clock_mode": "fast"}, _terminate),
    "SIGTERM of a paused one": ({"clock_mode": "realtime", "start_paused": True}, _terminate),
}


@pytest.mark.parametrize("case", ENDED, ids=str)
def test_signal_ends_the_node_and_its_recorder(simulate, tmp_path, case):
    """Exit code 0, no process left over, nothing on standard error, and a complete bag."""
    parameters, kill = ENDED[case]
    runs = "start_paused" not in parameters and parameters["clock_mode"] != "lockstep"
    with simulate(record=tmp_path / "bag", **parameters) as sim:
        sim.wait_for(lambda: sim.process.family() and sim.client.node.count_publishers("/joint_states"), "node")
        sim.wait_for(lambda: list(tmp_path.glob("bag/*.mcap")), "bag")
        sim.wait_for(lambda: sim.states, "the first state")
        if runs:
            sim.wait_for(lambda: stamp(sim.states[-1]) > START_TIME * 1e9 + 100 * PERIOD, "states")
        else:
            sim.client.spin(0.3)
        kill(sim.process)
        assert sim.process.wait(10.0) == 0
        sim.process.wait_for_family()
        assert "Traceback" not in sim.process.stderr
    bag = Bag(tmp_path / "bag")
    count = len(bag.raw.get("/contact_forces", []))
    stamps = [stamp(message) for message in bag.messages("/joint_states")]
    assert stamps == [1_000_000_000 + k * PERIOD for k in range(count + 1)]
    assert bag.metadata["message_count"] == sum(map(len, bag.raw.values()))
    assert (count >= 100) == runs


def handles_signals(process):
    """Return whether our code has begun: Python by itself leaves SIGTERM to the system."""
    (caught,) = (
        line.split()[1] for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "SigCgt" in line
    )
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def wait_until_it_handles_signals(process):
    """Wait until our code has begun; the process is not to end before."""
    while not handles_signals(process):
        assert process.popen.poll() is None
        time.sleep(0.002)


@pytest.mark.parametrize("delay", [0.0, 0.5, 1.1, 1.4, 1.7, 2.4])
def test_signal_ends_the_node_whatever_it_does(tmp_path, delay):
    """Exit code 0 and nothing on standard error while it imports, is set up, loads kernels and waits for commands."""
    words = arguments(clock_mode="lockstep", record=tmp_path / "bag")
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        wait_until_it_handles_signals(process)
        time.sleep(delay)
        _interrupt(process)
        assert process.wait(10.0) == 0
        process.wait_for_family()
        assert not process.complaints
    finally:
        process.stop()
    if (tmp_path / "bag" / "metadata.yaml").exists():
        bag = Bag(tmp_path / "bag")
        assert bag.metadata["message_count"] == sum(map(len, bag.raw.values()))


@pytest.mark.parametrize("kill", [_interrupt, _terminate])
def test_signal_ends_the_monitor(tmp_path, kill):
    """Without a word, also while it waits for a simulation."""
    process = Process(tmp_path, free_domain(), "monitor")
    try:
        end = time.monotonic() + 30.0
        while not any("waiting for a simulator" in out.read_text() for out in tmp_path.glob("monitor*.out")):
            assert time.monotonic() < end, process.stderr
            time.sleep(0.05)
        kill(process)
        assert process.wait(10.0) == 0
        assert not process.complaints
    finally:
        process.stop()


def test_signal_ends_the_example_controller(simulate, tmp_path):
    """Between two callbacks, without a word, while states come as fast as they are made."""
    with simulate(clock_mode="lockstep") as sim:
        for kill in (_interrupt, _terminate):
            sim.forget()
            process = Process(tmp_path, sim.domain, "leg_controller")
            try:
                sim.wait_for(lambda: handles_signals(process), "the controller's own code")  # noqa: B023
                sim.forget()
                sim.wait_for(lambda: len(sim.states) > 200, "200 states")
                kill(process)
                assert process.wait(10.0) == 0
                assert not process.complaints
            finally:
                process.stop()


@pytest.mark.parametrize("executable", ["leg_controller", "quadruped_controller", "monitor"])
def test_interrupt_never_looks_like_a_crash(tmp_path, executable):
    """Ctrl-C twice, as under `ros2 launch`, while a program imports, begins and runs: exit code 0, and no traceback."""
    for delay in (0.0, 0.4, 0.8, 1.6):
        process = Process(tmp_path, free_domain(), executable)
        try:
            wait_until_it_handles_signals(process)
            time.sleep(delay)
            _interrupt(process)
            time.sleep(0.01)
            if process.popen.poll() is None:
                _interrupt(process)
            assert process.wait(10.0) == 0, process.stderr
            assert "Traceback" not in process.stderr
        finally:
            process.stop()


def test_duration_ends_the_node(dropped):
    """With parameter duration the node ends by itself, after exactly that much simulated time."""
    assert stamp(dropped.messages("/clock")[-1]) == 1_400_000_000


def test_example_configuration_is_the_one_that_runs(dropped):
    """The file for --params-file is the file for load_config: same initial state."""
    config = load_config(CONFIG)
    assert list(dropped.messages("/joint_states")[0].position) == config.q.tolist()

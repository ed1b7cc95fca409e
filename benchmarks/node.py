"""Measures the node: lock-step cycles beside a bare rclpy ping-pong, and viewed; real time, start, kills, memory, ...

    make bench-node              # everything, about half an hour
    make bench-node ARGS=lock    # measurements whose name contains "lock"

What competes for the processor shows in the results: measure on an idle machine.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import rclpy
from ament_index_python.packages import get_package_share_directory
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from websockets.sync.client import connect

from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.msg import ContactForce, ContactForces
from constrained_sim.ros.bag import bag_file, read_records
from constrained_sim.ros.discovery import loopback_settings
from constrained_sim.ros.recover import recover
from constrained_sim.ros.replay import replay
from constrained_sim.testing.ros import arguments, package_executable

SHARE = Path(get_package_share_directory("constrained_sim"))
SECONDS = 3.0
ROUNDS = 5
RESTARTS = 100
FUZZ_CALLS = 50_000
FLOOD_RATE = 10_000
FLOOD_SECONDS = 10.0
REAL_TIME_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")
ROBOTS = {"leg": ("leg_controller", {"mode": "stand"}), "quadruped": ("quadruped_controller", {"mode": "stand"})}

Row = tuple[str, str]


def ping_pong(joints: int, contacts: int) -> float:
    """Return cycles per second of two bare nodes: state, forces and clock one way, a command back."""
    names = [f"joint_{number}" for number in range(joints)]
    zeros = [0.0] * joints
    state = JointState(name=names, position=zeros, velocity=zeros, effort=zeros)
    forces = ContactForces(contacts=[ContactForce(name=f"foot_{number}", link="foot") for number in range(contacts)])
    node = Node("ping")
    publishers = [node.create_publisher(type(m), t, 100) for m, t in ((state, "states"), (forces, "forces"))]
    clock = node.create_publisher(Clock, "ticks", 100)
    answered: list[JointState] = []
    node.create_subscription(JointState, "answers", answered.append, 100)
    pong = subprocess.Popen([sys.executable, __file__, "--pong"])

    def send() -> None:
        publishers[0].publish(state)
        publishers[1].publish(forces)
        clock.publish(Clock())

    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(node)
    while not answered:
        send()
        executor.spin_once(timeout_sec=0.2)
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        answered.clear()
        send()
        while not answered:
            executor.spin_once(timeout_sec=1.0)
        count += 1
    pong.kill()
    pong.wait()
    node.destroy_node()
    return count / (time.perf_counter() - begin)


def answer_pings() -> None:
    """Run the other side of :func:`ping_pong`."""
    rclpy.init()
    node = Node("pong")
    answers = node.create_publisher(JointState, "answers", 100)

    def answer(state: JointState) -> None:
        command = JointState(name=state.name, effort=state.effort)
        command.header.stamp = state.header.stamp
        answers.publish(command)

    node.create_subscription(JointState, "states", answer, QoSProfile(depth=1))
    rclpy.spin(node)


def start_simulator(robot: str, **parameters: object) -> subprocess.Popen[bytes]:
    """Start the simulator of `robot`."""
    return subprocess.Popen(
        [package_executable("simulator"), *arguments(SHARE / "config" / f"{robot}.yaml", parameters)]
    )


@contextmanager
def running(robot: str, **parameters: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run the simulator and the controller of `robot`; yield the simulator's process."""
    controller, options = ROBOTS[robot]
    simulator = start_simulator(robot, **parameters)
    words = [word for name, value in options.items() for word in ("-p", f"{name}:={value}")]
    companion = subprocess.Popen([package_executable(controller), "--ros-args", *words])
    try:
        yield simulator
    finally:
        for process in (simulator, companion):
            process.send_signal(signal.SIGINT)
        for process in (simulator, companion):
            process.wait()


class Listener(Node):
    """Keeps stamps [s] and times of arrival [s] of the states of the simulation."""

    def __init__(self) -> None:
        """Subscribe to joint_states."""
        super().__init__("listener")
        self.stamps: list[float] = []
        self.times: list[float] = []
        self.create_subscription(JointState, "joint_states", self._on_state, 5000)

    def _on_state(self, state: JointState) -> None:
        self.stamps.append(state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec)
        self.times.append(time.perf_counter())


def listen(until: Callable[[Listener], bool], timeout: float = 120.0) -> Listener:
    """Return what a listener heard until `until` is true."""
    listener, end = Listener(), time.monotonic() + timeout
    executor = EventsExecutor()  # the other one takes as much of the processor as the node
    executor.add_node(listener)
    while not until(listener):
        if time.monotonic() > end:
            raise SystemExit("benchmarks/node.py: no states")
        executor.spin_once(timeout_sec=0.1)
    listener.destroy_node()
    return listener


def lockstep() -> Iterator[Row]:
    """Lock-step cycles with a controller in a process of its own: medians of rounds, since machines have moods."""
    for robot, joints, contacts in (("leg", 3, 1), ("quadruped", 12, 4)):
        rounds = []
        for _ in range(ROUNDS):
            bare, cycles = ping_pong(joints, contacts), lockstep_cycles(robot)
            rounds.append((cycles / bare, cycles, bare))
        ratio, cycles, bare = (statistics.median(values) for values in zip(*rounds, strict=True))
        yield f"{robot}: cycles per second", f"{cycles:.0f}"
        yield f"{robot}: bare ping-pong of the same messages", f"{bare:.0f}"
        yield f"{robot}: ratio", f"{ratio:.2f}"


def lockstep_cycles(robot: str) -> float:
    """Return control periods per second of the simulation of `robot` with its controller."""
    with running(robot, clock_mode="lockstep", record="''"):
        listen(lambda heard: len(heard.stamps) > 200)
        return _cycles()


def viewed() -> Iterator[Row]:
    """Lock-step cycles with the viewer, beside those of the same simulation without it just before."""
    for robot in ROBOTS:
        rounds = []
        with running(robot, clock_mode="lockstep", record="''"):
            listen(lambda heard: len(heard.stamps) > 200)
            for _ in range(ROUNDS):
                without = _cycles()
                with viewer():
                    rounds.append((_cycles(), without))
        ratio = statistics.median(with_viewer / without for with_viewer, without in rounds)
        with_viewer, without = (statistics.median(values) for values in zip(*rounds, strict=True))
        yield f"{robot}: cycles per second with the viewer", f"{with_viewer:.0f}"
        yield f"{robot}: cycles per second without", f"{without:.0f}"
        yield f"{robot}: ratio", f"{ratio:.2f}"


@contextmanager
def viewer() -> Iterator[None]:
    """Run the viewer, and who takes all that its page sends; what a browser's drawing costs is not counted."""
    words = [package_executable("viewer"), "--ros-args", "-p", "browser:=false"]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    url = program.stdout.readline().split()[2]
    visitor = subprocess.Popen([sys.executable, __file__, "--visit", url])
    try:
        time.sleep(SECONDS)  # until both are there
        yield
    finally:
        visitor.kill()
        visitor.wait()
        program.send_signal(signal.SIGINT)
        program.wait()


def visit(url: str) -> None:
    """Take all that the page at `url` sends."""
    protocol = f"viser-v{version('viser')}"
    with connect(url.replace("http:", "ws:"), subprotocols=[protocol], max_size=None) as page:
        for _ in page:
            pass


def _cycles() -> float:
    """Return control periods per second of the simulation that runs."""
    first, begin = _newest()
    time.sleep(SECONDS)
    last, end = _newest()
    return (last - first) / 1e-3 / (end - begin)


def _newest() -> tuple[float, float]:
    """Return the stamp of the newest state, and when it came [s]."""
    return listen(lambda heard: bool(heard.stamps)).stamps[-1], time.perf_counter()


def realtime() -> Iterator[Row]:
    """A minute in real time at 1 kHz: periods, factor, processor time and memory of the node."""
    for robot in ROBOTS:
        with running(robot, wait_for_first_command=True) as simulator:
            listen(lambda heard: len(heard.stamps) > 1000)
            begin, used = time.perf_counter(), _processor_time(simulator.pid)
            heard = listen(lambda heard: len(heard.stamps) > 1000 * (REAL_TIME_SECONDS + 1))
            spent = (_processor_time(simulator.pid) - used) / (time.perf_counter() - begin)
            stamps, times = heard.stamps[1000:], heard.times[1000:]  # a new listener hears the first ones late
            wall, simulated = times[-1] - times[0], stamps[-1] - stamps[0]
            expected = round(simulated / 1e-3) + 1
            yield f"{robot}: periods heard", f"{100 * len(set(stamps)) / expected:.2f} %"
            yield f"{robot}: real-time factor", f"{simulated / wall:.4f}"
            yield f"{robot}: of one core", f"{100 * spent:.0f} %"
            yield f"{robot}: resident memory", f"{_memory(simulator.pid):.0f} MB"


def start() -> Iterator[Row]:
    """From the start of the process to the first joint_states, with a warm cache.

    Median and slowest: DDS repeats an announcement that got lost after 3 s.
    """
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        with running("leg"):
            listen(lambda heard: bool(heard.stamps))
            times.append(time.perf_counter() - begin)
    yield "leg: start to first joint_states", f"{statistics.median(times):.2f} s"
    yield "leg: slowest of them", f"{max(times):.2f} s"


def kills() -> Iterator[Row]:
    """Started and killed again and again in one domain: exit codes, and how long the next start takes at most."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    wrong, slowest = 0, 0.0
    for count in range(RESTARTS):
        number, begin = numbers[count % len(numbers)], time.perf_counter()
        simulator = start_simulator("leg")
        listen(lambda heard: bool(heard.stamps))
        slowest = max(slowest, time.perf_counter() - begin)
        simulator.send_signal(number)
        wrong += simulator.wait() != (-number if number == signal.SIGKILL else 0)
    yield f"leg: {RESTARTS} starts, ends that were wrong", f"{wrong}"
    yield "leg: slowest of them to first joint_states", f"{slowest:.2f} s"


def recordings() -> Iterator[Row]:
    """Killed at random moments while recording in real time: whether the bag replays, how much is lost."""
    moments, failed, missing = random.Random(1), 0, []
    for _ in range(RESTARTS):
        with tempfile.TemporaryDirectory() as folder:
            bag = Path(folder) / "bag"
            simulator = start_simulator("leg", clock_mode="realtime", record=bag)
            heard = listen(lambda heard: bool(heard.stamps))
            killed_at = time.monotonic() + moments.uniform(0.1, 2.0)
            heard = listen(lambda heard, end=killed_at: time.monotonic() > end and bool(heard.stamps))
            simulator.kill()
            simulator.wait()
            try:
                recovery, difference = recover(bag), replay(bag).difference
            except ConstrainedSimError as error:
                print(f"benchmarks/node.py: {error}", file=sys.stderr)
                failed += 1
                continue
            failed += bool(difference) or not recovery.is_whole
            missing.append(heard.stamps[-1] - 1e-9 * max(record.stamp for record in read_records(bag_file(bag))))
    yield f"leg: {RESTARTS} kills while recording, bags that do not replay", f"{failed}"
    yield "leg: most that was heard and is not in the bag", f"{max(0.0, *missing):.3f} s"


def memory() -> Iterator[Row]:
    """An hour of simulated time in fast mode: how much the node grows after its first minute."""
    simulator = start_simulator("leg", clock_mode="fast", duration=3600.0, control_period=0.01)
    begin = time.perf_counter()
    listen(lambda heard: bool(heard.stamps) and heard.stamps[-1] > 60.0, 600.0)
    first = last = _memory(simulator.pid)
    while simulator.poll() is None:
        last = _memory(simulator.pid) or last
        time.sleep(1.0)
    yield "leg: resident memory after a simulated minute", f"{first:.1f} MB"
    yield "leg: growth over a simulated hour", f"{last - first:.1f} MB"
    yield "leg: that hour took", f"{time.perf_counter() - begin:.0f} s"


def fuzz() -> Iterator[Row]:
    """Random calls and messages to a node with every option on; the test's checks hold for each."""
    test = Path(__file__).parents[1] / "test" / "ros" / "test_fuzzing.py"
    begin = time.perf_counter()
    environment = os.environ | {"CONSTRAINED_SIM_FUZZ_CALLS": str(FUZZ_CALLS)}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", test], env=environment, stdout=subprocess.DEVNULL)
    yield f"leg: {FUZZ_CALLS} random calls with every option on", "passed" if done.returncode == 0 else "FAILED"
    yield "leg: they took", f"{time.perf_counter() - begin:.0f} s"


def flood() -> Iterator[Row]:
    """Commands at 10 kHz in real time: commands sent, periods heard, real-time factor."""
    simulator = start_simulator("leg")
    try:
        listen(lambda heard: len(heard.stamps) > 100)
        sender = subprocess.Popen([sys.executable, __file__, "--flood"], stdout=subprocess.PIPE, text=True)
        heard = listen(lambda heard: bool(heard.times) and heard.times[-1] - heard.times[0] > FLOOD_SECONDS)
        sender.send_signal(signal.SIGINT)
        sent, seconds = map(float, sender.communicate()[0].split())
        wall, simulated = heard.times[-1] - heard.times[0], heard.stamps[-1] - heard.stamps[0]
        yield "leg: commands sent per second", f"{sent / seconds:.0f}"
        yield "leg: periods heard", f"{100 * len(set(heard.stamps)) / (round(simulated / 1e-3) + 1):.2f} %"
        yield "leg: real-time factor", f"{simulated / wall:.4f}"
    finally:
        simulator.send_signal(signal.SIGINT)
        simulator.wait()


def send_flood() -> None:
    """Run the other side of :func:`flood` until interrupted; print the number of commands, and the time [s]."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("flood")
    publisher = node.create_publisher(JointState, "joint_commands", 100)
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    begin, sent = time.monotonic(), 0
    try:
        while True:
            while sent < FLOOD_RATE * (time.monotonic() - begin):
                publisher.publish(JointState(name=["hip", "knee"], effort=[0.01, -0.01]))
                sent += 1
    except KeyboardInterrupt:
        print(sent, time.monotonic() - begin)


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _memory(pid: int) -> float:
    """Return resident memory [MB]; 0 of a process that has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next((line for line in lines if line.startswith("VmRSS")), "VmRSS: 0").split()[1]) / 1024.0


def main() -> None:
    """Measure what the command line names, or everything."""
    if "--pong" in sys.argv:
        return answer_pings()
    if "--flood" in sys.argv:
        return send_flood()
    if "--visit" in sys.argv:
        return visit(sys.argv[-1])
    os.environ.setdefault("ROS_DOMAIN_ID", "77")
    os.environ.update(loopback_settings())
    rclpy.init()
    for group in (lockstep, viewed, realtime, start, kills, recordings, memory, fuzz, flood):
        if any(word in group.__name__ for word in sys.argv[1:] or [""]):
            for what, value in group():
                print(f"{group.__name__:10} {what:50} {value:>10}", flush=True)


if __name__ == "__main__":
    main()

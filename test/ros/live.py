"""Processes of the package and an rclpy client, for tests: every wait is bounded, and nothing outlives its test."""

import itertools
import os
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import rclpy
from ament_index_python.packages import get_package_prefix
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config" / "leg.yaml"
URDF = ROOT / "urdf" / "leg.urdf"
NODE = "/constrained_sim"
START_TIME = 1.0
PERIOD = 1_000_000
"""[ns] control period of leg.yaml."""

_started = itertools.count()


def nanoseconds(time_or_duration):
    """Return a builtin_interfaces Time or Duration in nanoseconds."""
    return time_or_duration.sec * 1_000_000_000 + time_or_duration.nanosec


def stamp(message):
    """Return the stamp of a message [ns]."""
    return nanoseconds(message.clock if hasattr(message, "clock") else message.header.stamp)


def free_domain():
    """Return a DDS domain that nobody uses on this machine; each process of tests begins its search elsewhere."""
    lines = [line.split() for table in ("udp", "udp6") for line in _lines(Path("/proc/net") / table)[1:]]
    ports = {int(fields[1].rpartition(":")[2], 16) for fields in lines}
    begin = os.getpid() * 37 + next(_started)
    for candidate in range(begin, begin + 100):
        domain = 1 + candidate % 100
        if ports.isdisjoint(range(7400 + 250 * domain, 7650 + 250 * domain)):
            return domain
    raise RuntimeError("all DDS domains are in use")


def _lines(path):
    return path.read_text().splitlines() if path.exists() else [""]


def arguments(config=CONFIG, **parameters):
    """Return the command line of the simulator; two underscores in a name stand for a dot."""
    words = ["--ros-args", "--params-file", str(config)]
    for name, value in parameters.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words += ["-p", f"{name.replace('__', '.')}:={text}"]
    return words


class Process:
    """An installed executable of the package, in a session (process group) of its own."""

    def __init__(self, folder, domain, executable, *words):
        """Start it; its output goes to files in `folder`."""
        number = next(_started)
        self._out, self._err = (folder / f"{executable}_{number}.{end}" for end in ("out", "err"))
        environment = os.environ | {"ROS_DOMAIN_ID": str(domain), "PYTHONUNBUFFERED": "1"}
        path = Path(get_package_prefix("constrained_sim")) / "lib" / "constrained_sim" / executable
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.popen = subprocess.Popen(
                [path, *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                start_new_session=True,
            )
        self.pid = self.popen.pid

    @property
    def stderr(self):
        """What it wrote to standard error so far."""
        return self._err.read_text()

    def wait(self, timeout):
        """Return the exit code; fail if it does not end within `timeout` [s]."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s; stderr: {self.stderr}") from None

    def family(self):
        """Return the living processes that it started, and itself while it lives."""
        alive = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(") ")[2].split()[:4]
            except (OSError, ValueError):
                continue
            if int(session) == self.pid and state != "Z":
                alive.append(int(entry.name))
        return alive

    def wait_for_family(self, timeout=10.0):
        """Wait until nothing that it started is left; fail if something is."""
        end = time.monotonic() + timeout
        while left := self.family():
            assert time.monotonic() < end, f"processes {left} are left over; stderr: {self.stderr}"
            time.sleep(0.02)

    def stop(self):
        """End it: gently, so that it can finish its bag, then by force, with all that it started."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGINT)
            try:
                self.popen.wait(5.0)
            except subprocess.TimeoutExpired:
                pass
        if self.family():
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait(5.0)


class Client:
    """A ROS 2 node in the test process; what arrives is kept in :attr:`got`, by topic."""

    def __init__(self, domain):
        """Join `domain`."""
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = Node("client", context=self.context)
        self.got = defaultdict(list)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._publishers, self._services = {}, {}

    def close(self):
        """Leave."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)

    def spin(self, seconds):
        """Handle what arrives for this long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def wait_for(self, condition, what, timeout=10.0):
        """Handle what arrives until `condition()` is true, and return its value; fail after `timeout` [s]."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            assert time.monotonic() < end, f"no {what} within {timeout} s"
            self._executor.spin_once(timeout_sec=0.05)
        return value

    def subscribe(self, kind, topic, latched=False):
        """Keep the messages of `topic`; return the list that they are appended to."""
        durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
        qos = QoSProfile(depth=5000, durability=durability)
        self.node.create_subscription(kind, topic, self.got[topic].append, qos)
        return self.got[topic]

    def publish(self, topic, message):
        """Publish, once the node listens."""
        if topic not in self._publishers:
            publisher = self.node.create_publisher(type(message), topic, QoSProfile(depth=100))
            self._publishers[topic] = publisher
            self.wait_for(lambda: publisher.get_subscription_count() > 0, f"subscriber of {topic}")
        self._publishers[topic].publish(message)

    def ask(self, kind, service, **fields):
        """Send a request to a service; return the future of its response."""
        name = service if service.startswith("/") else f"{NODE}/{service}"
        if name not in self._services:
            self._services[name] = self.node.create_client(kind, name)
        self.wait_for(self._services[name].service_is_ready, f"service {name}", timeout=20.0)
        return self._services[name].call_async(kind.Request(**fields))

    def call(self, kind, service, timeout=20.0, **fields):
        """Call a service of the simulation node and return its response."""
        future = self.ask(kind, service, **fields)
        self.wait_for(future.done, f"answer of {service}", timeout)
        return future.result()

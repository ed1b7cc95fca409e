"""What the fixtures and scripts/run start opens sockets on the loopback interface only."""

import contextlib
import os
from pathlib import Path

from ros.live import ROOT, free_domain
from sensor_msgs.msg import JointState

from constrained_sim.ros.discovery import LOOPBACK, RANGE, VARIABLES, loopback_settings
from constrained_sim.testing.ros import Client, Process


def addresses(pid):
    """Return the local addresses of the Internet sockets of a process, as /proc/net writes them, without ports."""
    descriptors = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            descriptors.append(os.readlink(entry))
    inodes = {text[8:-1] for text in descriptors if text.startswith("socket:[")}
    tables = [Path("/proc/net") / table for table in ("udp", "udp6", "tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[9] in inodes}


def test_simulator_and_client_are_on_the_loopback_interface(simulate):
    """Both have sockets, all at 127.0.0.1; and they hear each other."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        for pid in (sim.process.pid, os.getpid()):
            assert addresses(pid) == {"0100007F"}


def test_script_starts_processes_on_the_loopback_interface(tmp_path, monkeypatch):
    """`scripts/run` alone; who follows ROS's own settings, as `ros2 topic` would, is heard and hears."""
    for variable in (*VARIABLES, RANGE):
        monkeypatch.delenv(variable, raising=False)
    domain = free_domain()
    monkeypatch.setenv(VARIABLES[0], "/of/the/user.xml")  # no such file: Fast DDS as it is
    client = Client(domain)
    monkeypatch.delenv(VARIABLES[0])
    words = ["-p", "start_paused:=true"]
    config = ["--ros-args", "--params-file", ROOT / "config" / "leg.yaml", *words]
    process = Process(tmp_path, domain, [ROOT / "scripts" / "run", "simulator", *config])
    try:
        states = client.subscribe(JointState, "/joint_states")
        client.wait_for(lambda: states, "state", timeout=60.0)
        found = set().union(*map(addresses, process.family()))
        assert found == {"0100007F"}
    finally:
        client.close()
        process.stop()


def test_settings_of_the_user_stay(monkeypatch):
    """A wider range, or a file of settings, is not narrowed."""
    for variable in (*VARIABLES, RANGE):
        monkeypatch.delenv(variable, raising=False)
    assert set(loopback_settings().values()) == {str(LOOPBACK), "SYSTEM_DEFAULT"}
    monkeypatch.setenv(RANGE, "SUBNET")
    assert str(LOOPBACK) not in loopback_settings().values() and RANGE not in loopback_settings()
    monkeypatch.delenv(RANGE)
    monkeypatch.setenv(VARIABLES[0], "/of/the/user.xml")
    assert loopback_settings() == {}

"""The node under rough treatment: killed with everything it started, flooded, started again, waiting for a recorder."""

import os
import signal
import sys
import time

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from ros.bags import Bag
from ros.live import NODE, PERIOD, Process, arguments, free_domain, stamp
from ros.test_modes import answer
from sensor_msgs.msg import JointState

from constrained_sim.msg import ContactForces
from constrained_sim.ros.recover import recover
from constrained_sim.testing import ros
from constrained_sim.testing.ros import Client

SECOND = 1_000_000_000


LISTENER = """
import sys
import rclpy
from sensor_msgs.msg import JointState

def write(state):
    print(state.header.stamp.sec * 10**9 + state.header.stamp.nanosec, file=heard)

rclpy.init()
node = rclpy.create_node("listener")
heard = open(sys.argv[1], "w", buffering=1)
node.create_subscription(JointState, "joint_states", write, 100)
rclpy.spin(node)
"""


FLOOD = """
import sys
import time
import rclpy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
node = rclpy.create_node("flood")
publisher = node.create_publisher(JointState, "joint_commands", 100)
while not publisher.get_subscription_count():
    time.sleep(0.01)
begin, sent = time.monotonic(), 0
try:
    while True:
        while sent < 1e4 * (time.monotonic() - begin):
            publisher.publish(JointState(name=["hip", "knee"], effort=[0.01, -0.01]))
            sent += 1
except KeyboardInterrupt:
    pass
print(sent, file=sys.stderr)
"""


def test_bag_reaches_to_one_second_before_everything_is_killed(tmp_path):
    """SIGKILL to node and recorder at once: after `recover`, every period up to a second before is in the bag.

    A process of its own listens: Fast DDS may crash a reader whose writer was killed.
    """
    domain, heard = free_domain(), tmp_path / "heard"
    node = Process(tmp_path, domain, "simulator", *arguments(clock_mode="realtime", record=tmp_path / "bag"))
    listener = ros.Process(tmp_path, domain, [sys.executable, "-c", LISTENER, str(heard)])

    def last():
        lines = heard.read_text().splitlines() if heard.exists() else []
        return int(lines[-2]) if len(lines) > 1 else 0

    try:
        end = time.monotonic() + 30.0
        while last() < 4 * SECOND:
            assert time.monotonic() < end, node.stderr
            time.sleep(0.05)
        os.killpg(node.pid, signal.SIGKILL)
        assert node.wait(5.0) == -signal.SIGKILL
        node.wait_for_family()
        time.sleep(0.3)
    finally:
        node.stop()
        listener.stop()
    recover(tmp_path / "bag")
    stamps = [stamp(message) for message in Bag(tmp_path / "bag").messages("/joint_states")]
    assert stamps == list(range(SECOND, stamps[-1] + 1, 1_000_000))
    assert last() - stamps[-1] < SECOND


def test_flood_of_commands_does_not_stop_the_clock(tmp_path, simulate):
    """With a command every tenth of a millisecond time goes on, every command counts, and the last one acts."""
    with simulate(clock_mode="realtime") as sim:
        sim.command(["hip", "knee"], [0.0, 0.0])
        sim.wait_for(lambda: len(sim.states) > 1, "second state")
        flood = ros.Process(tmp_path, sim.domain, [sys.executable, "-c", FLOOD])
        try:
            sim.wait_for(lambda: any(sim.states[-1].effort), "flood")
            begin = stamp(sim.states[-1])
            sim.wait_for(lambda: stamp(sim.states[-1]) > begin + SECOND // 2, "half a second", timeout=30.0)
            end = stamp(sim.states[-1])
            flood.popen.send_signal(signal.SIGINT)
            assert flood.wait(10.0) == 0, flood.stderr
        finally:
            flood.stop()
        sim.command(["hip", "knee"], [0.03, -0.02])
        sim.wait_for(lambda: list(sim.states[-1].effort) == [0.0, 0.03, -0.02], "last command")
        assert int(flood.stderr) > 2 * (end - begin) / PERIOD, "not a flood"
        assert sim.fresh_status().commands_refused == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_started_again_in_the_same_domain(tmp_path, number):
    """After each end the next node is heard at once; SIGINT and SIGTERM end with exit code 0, and nothing is left."""
    domain = free_domain()
    for _ in range(2):
        client = Client(domain)
        process = Process(tmp_path, domain, "simulator", *arguments(clock_mode="realtime"))
        try:
            try:
                states = client.subscribe(JointState, "/joint_states")
                client.wait_for(lambda states=states: len(states) > 20, "states", timeout=60.0)
            finally:
                client.close()
            process.popen.send_signal(number)
            assert process.wait(10.0) == (-number if number == signal.SIGKILL else 0)
            process.wait_for_family()
        finally:
            process.stop()


def test_first_step_waits_for_a_subscriber(simulate):
    """With `wait_for_subscriber` nothing is simulated until that node subscribes to contact_forces."""
    with simulate(clock_mode="lockstep", wait_for_subscriber="client") as sim:
        sim.wait_for(lambda: sim.states, "state")
        state = answer(sim, sim.states[0])
        assert stamp(state) == SECOND + 1_000_000
        sim.wait_for(lambda: sim.forces, "forces")
        assert stamp(sim.forces[0]) == stamp(state)
    with simulate(clock_mode="fast", wait_for_subscriber="somebody_else") as sim:
        told = sim.client.subscribe(DiagnosticArray, "/diagnostics")
        text = "waiting for a subscription of 'somebody_else' to contact_forces"
        sim.wait_for(lambda: told and told[-1].status[0].message == text, "diagnostics")
        assert told[-1].status[0].level == DiagnosticStatus.WARN
        assert told[-1].status[0].name == f"{NODE}: simulation"
        sim.client.spin(0.5)
        assert {stamp(message) for message in sim.states} == {SECOND}
        sim.client.subscribe(ContactForces, "/contact_forces", latched=True)  # cannot connect, and holds nothing up
        other = Node("somebody_else", context=sim.client.node.context)
        other.create_subscription(ContactForces, "/contact_forces", lambda message: None, 10)
        sim.wait_for(lambda: stamp(sim.states[-1]) > SECOND, "first step")
        other.destroy_node()


def test_controller_dies_and_another_takes_over(simulate):
    """A killed controller leaves the legs limp after the command timeout; the next one is obeyed."""
    options = {"clock_mode": "realtime", "command_timeout": 0.05}
    with simulate(**options) as sim:
        folder = sim.process._out.parent
        words = ("--ros-args", "-p", "mode:=stand")
        first = Process(folder, sim.domain, "leg_controller", *words)
        try:
            sim.wait_for(lambda: sim.states and any(sim.states[-1].effort), "first controller", timeout=60.0)
            first.popen.send_signal(signal.SIGKILL)
            sim.wait_for(lambda: not any(sim.states[-1].effort), "timeout")
            assert [m for m in sim.status if "no command for 0.05 s: zero" in m.message]
        finally:
            first.stop()
        second = Process(folder, sim.domain, "leg_controller", *words)
        try:
            sim.wait_for(lambda: any(sim.states[-1].effort), "second controller", timeout=60.0)
            sim.wait_for(lambda: [m for m in sim.status if m.message == "commands come again"], "status")
        finally:
            second.stop()


def test_late_listener_of_a_paused_node_is_told_the_state(simulate):
    """Who subscribes while nothing is simulated gets the present state, again if the first got lost; so do others."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        sim.settle()
        sim.forget()
        late = Client(sim.domain)
        try:
            states = late.subscribe(JointState, "/joint_states")
            late.wait_for(lambda: states, "state")
            sim.wait_for(lambda: len(sim.states) == 2, "state, told again")
            late.spin(1.0)
            sim.settle()
            assert 1 <= len(states) <= len(sim.states) == 2
            assert all(state == sim.states[0] for state in [*states, *sim.states])
        finally:
            late.close()

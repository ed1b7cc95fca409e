"""The viewer of a running node: what it shows is what the node says, and what users ask for is done there."""

import re
import signal
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from ros.live import CONFIG, PERIOD, Process, stamp

from constrained_sim import load_config
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.joints import SingleJoint
from constrained_sim.ros.viewer_source import NodeSource

PATIENCE = 20.0


@pytest.fixture
def source_of():
    """Return a function that opens the source of the node in a domain."""
    contexts, nodes = [], []

    def opened(domain):
        contexts.append(Context())
        rclpy.init(context=contexts[-1], domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        nodes.append(Node("viewer", context=contexts[-1]))
        return NodeSource(nodes[-1])

    yield opened
    for context, node in zip(contexts, nodes, strict=True):
        node.destroy_node()
        rclpy.shutdown(context=context)


def wait(source, condition):
    """Look at frames until `condition` holds for one; return it."""
    end = time.monotonic() + PATIENCE
    while (frame := source.frame()) is None or not condition(frame):
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.01)
    return frame


def ask(source, act):
    """Let a user's thread do something, while frames are looked at as a page does."""
    with ThreadPoolExecutor(1) as user:
        asked = user.submit(act)
        while not asked.done():
            source.frame()
            time.sleep(0.01)
        return asked.result()


def test_frames_are_what_the_node_says(simulate, source_of):
    """Who comes to a paused node sees its robot, its state and its contact forces."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        sim.step(20)
        source, state, forces = source_of(sim.domain), sim.states[-1], sim.forces[-1]
        frame = wait(source, lambda frame: frame.contacts)
        robot = source.world.robot
        assert robot.joint_names == load_config(CONFIG).robot.joint_names
        assert frame.t == pytest.approx(1e-9 * stamp(state), abs=1e-12)
        joints = {name: SingleJoint.of(robot, name) for name in state.name}
        assert [joint.position(frame.q) for joint in joints.values()] == list(state.position)
        assert [frame.v[joint.v] for joint in joints.values()] == list(state.velocity)
        (shown,), (said,) = frame.contacts, forces.contacts
        force = said.wrench.force
        assert (shown.name, list(shown.force)) == (said.name, [force.x, force.y, force.z])


def test_what_users_ask_for_is_done_by_the_node(simulate, source_of):
    """Buttons step, let go on and pause; what the node refuses is told to who asked, and the node goes on."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        source = source_of(sim.domain)
        before = wait(source, lambda frame: source.is_paused)
        ask(source, source.step)
        after = wait(source, lambda frame: frame.t > before.t)
        assert after.t - before.t == pytest.approx(1e-9 * PERIOD, abs=1e-9)
        ask(source, lambda: source.pause(False))
        wait(source, lambda frame: not source.is_paused and frame.t > after.t + 0.1)
        ask(source, lambda: source.pause(True))
        wait(source, lambda frame: source.is_paused)
        with pytest.raises(ConstrainedSimError, match="no such link"):
            ask(source, lambda: source.push("no such link", np.zeros(3), 0.1))
        ask(source, lambda: source.use(solver="null_space"))
        assert sim.fresh_status().solver == "null_space"


def test_program_serves_a_page(simulate, tmp_path):
    """`viewer` says where its page is, serves it there, and ends at Ctrl-C without complaint."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        process = Process(tmp_path, sim.domain, "viewer")
        try:
            (said,) = tmp_path.glob("viewer_*.out")
            end = time.monotonic() + PATIENCE
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", said.read_text())):
                assert process.popen.poll() is None, process.stderr
                assert time.monotonic() < end
                time.sleep(0.05)
            with urllib.request.urlopen(found.group(), timeout=PATIENCE) as page:
                assert b"<html" in page.read().lower()
            process.popen.send_signal(signal.SIGINT)
            assert process.wait(10.0) == 0
            assert "Traceback" not in process.stderr
        finally:
            process.stop()

"""The viewer of a running node: what it shows is what the node says, and what users ask for is done there."""

import contextlib
import re
import signal
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rcl_interfaces.srv import GetParameters
from ros.live import CONFIG, PERIOD, Process, stamp
from ros.sources import PATIENCE, source_of, wait
from viewing import choose, open_url, pixels, set_number

from constrained_sim import load_config
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.joints import SingleJoint

__all__ = ["source_of"]


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
        now = 1e-9 * stamp(state)  # states and forces come one by one
        frame = wait(source, lambda frame: frame.contacts and frame.t == pytest.approx(now, abs=1e-12))
        robot = source.world.robot
        assert robot.joint_names == load_config(CONFIG).robot.joint_names
        joints = {name: SingleJoint.of(robot, name) for name in state.name}
        assert [joint.position(frame.q) for joint in joints.values()] == list(state.position)
        assert [frame.v[joint.v] for joint in joints.values()] == list(state.velocity)
        (shown,), (said,) = frame.contacts, forces.contacts
        force = said.wrench.force
        assert (shown.name, list(shown.force)) == (said.name, [force.x, force.y, force.z])


def test_nothing_of_before_stands_beside_a_robot_that_is_reset(simulate, source_of):
    """Neither forces nor impacts, until the next step."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        sim.step(20)
        source = source_of(sim.domain)
        wait(source, lambda frame: frame.contacts)
        ask(source, source.reset)
        began = wait(source, lambda frame: list(frame.q) == [0.32, 0.6, -1.2])
        assert not began.contacts and not began.impacts
        ask(source, source.step)
        wait(source, lambda frame: frame.contacts)


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
        sim.wait_for(lambda: sim.fresh_status().solver == "null_space", "status with the new solver")


@contextlib.contextmanager
def viewer(folder, domain):
    """Run the program `viewer`; yield its process, and the address of its page."""
    process = Process(folder, domain, "viewer", "--ros-args", "-p", "browser:=false")
    try:
        (said,) = folder.glob("viewer_*.out")
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said.read_text())):
            assert process.popen.poll() is None, process.stderr
            assert time.monotonic() < end
            time.sleep(0.05)
        yield process, found.group()
    finally:
        process.stop()


def test_program_serves_a_page(simulate, tmp_path):
    """`viewer` says where its page is, serves it there, and ends at Ctrl-C without complaint."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        with viewer(tmp_path, sim.domain) as (process, url):
            with urllib.request.urlopen(url, timeout=PATIENCE) as page:
                assert b"<html" in page.read().lower()
            process.popen.send_signal(signal.SIGINT)
            assert process.wait(10.0) == 0
            assert "Traceback" not in process.stderr


def test_buttons_and_sliders_of_the_page_act_on_the_node(simulate, tmp_path, browser):
    """In the browser: the leg moves, and each control does to the node what it says."""
    with simulate(clock_mode="realtime", start_paused=True) as sim:
        sim.meet()
        with viewer(tmp_path, sim.domain) as (_, url), open_url(browser, url) as (tab, _):

            def click(name):
                tab.get_by_role("button", name=name, exact=True).click()

            def step():
                before = stamp(sim.states[-1])
                click("Step")
                sim.wait_for(lambda: stamp(sim.states[-1]) > before, "state after a step")
                state = sim.states[-1]
                return dict(zip(state.name, state.velocity, strict=True)), dict(
                    zip(state.name, state.effort, strict=True)
                )

            first = pixels(tab, "node paused")
            choose(tab, "solver", "null_space")
            sim.wait_for(lambda: sim.fresh_status().solver == "null_space", "solver of the page")
            choose(tab, "stepper", "event_driven")
            sim.wait_for(lambda: sim.fresh_status().stepper == "event_driven", "stepper of the page")
            set_number(tab, "real-time factor", 0.5)
            asked = GetParameters, "get_parameters"
            sim.wait_for(
                lambda: sim.call(*asked, names=["real_time_factor"]).values[0].double_value == 0.5, "factor of the page"
            )
            falling = step()[0]["slider"]
            set_number(tab, "z [N]", 40)
            click("Push")
            assert step()[0]["slider"] > falling
            choose(tab, "joint", "knee")
            set_number(tab, "share of its limit", 0.5)
            limit = load_config(CONFIG).robot.effort_limits[1]
            sim.wait_for(lambda: step()[1]["knee"] == pytest.approx(0.5 * limit), "effort of the page")
            click("Go on")
            sim.wait_for(lambda: stamp(sim.states[-1]) > 1.3e9, "time that goes on")
            click("Pause")
            tab.get_by_role("button", name="Go on").wait_for()
            assert np.mean(first != pixels(tab, "node after a while")) > 0.005
            click("Reset")
            sim.wait_for(lambda: list(sim.states[-1].position) == [0.32, 0.6, -1.2], "initial state")

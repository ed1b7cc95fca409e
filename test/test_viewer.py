"""The viewer, in a real browser: what it draws moves, and its buttons act."""

import re

import numpy as np
import pytest
from mechanisms import ROOT
from viewing import PATIENCE, open_page, pixels, wait_until

from constrained_sim import Trajectory, load_config
from constrained_sim.controllers import CONTROLLERS
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue
from constrained_sim.step_result import ContactStatus
from constrained_sim.trajectory import Setup
from constrained_sim.viewer.film import FilmOptions, film
from constrained_sim.viewer.page import Page
from constrained_sim.viewer.simulator_source import SimulatorSource
from constrained_sim.viewer.trajectory_source import TrajectorySource

LEG = ROOT / "config" / "leg.yaml"


@pytest.fixture(scope="module")
def hop():
    """0.8 s of the leg that is dropped and hops."""
    config = load_config(LEG)
    return config.simulator().run(0.8, CONTROLLERS["leg"](config, "hop").efforts)


def recording(run):
    return TrajectorySource(run, run.setup.robot, run.setup.constraints)


def test_page_draws_the_robot_where_it_is_and_asks_nobody_else(hop, browser):
    with Page(recording(hop)) as page, open_page(browser, page) as (tab, requests):
        page.source.time = 0.1
        page.draw_frame()
        high = pixels(tab, "leg high")
        page.source.time = 0.3
        page.draw_frame()
        low = pixels(tab, "leg low")
        page.server.scene.get_handle_by_name("/robot").visible = False
        empty = pixels(tab, "empty scene")
        assert np.mean(high != empty) > 0.01
        assert np.mean(high != low) > 0.005
    assert all(re.match(r"(http|ws)://127\.0\.0\.1:\d+/|data:|blob:", url) for url in requests)


def test_time_line_jumps_to_the_next_impact(hop, browser):
    with Page(recording(hop)).serve_in_background() as page, open_page(browser, page) as (tab, _):
        tab.get_by_role("button", name="Next impact").click()
        lost = {impact.t: impact.energy_lost for impact in hop.impacts}
        wait_until(lambda: page.source.time in lost)
        tab.get_by_text(f"{lost[page.source.time]:.3g} J").first.wait_for(timeout=1e3 * PATIENCE)


def test_buttons_act_on_a_simulator(browser):
    sim = load_config(LEG).simulator()
    with sim.view() as page, open_page(browser, page) as (tab, _):
        tab.get_by_role("button", name="Step", exact=True).click()
        wait_until(lambda: sim.steps == 1)
        tab.get_by_role("button", name="Go on").click()
        wait_until(lambda: sim.steps > 50)
        tab.get_by_role("button", name="Pause").click()
        wait_until(lambda: page.source.is_paused)
        tab.get_by_role("button", name="Reset").click()
        wait_until(lambda: sim.steps == 0)


def test_frames_of_a_run_are_its_states_forces_and_impacts(hop):
    source = recording(hop)
    for index in (0, len(hop.t) // 2, len(hop.t) - 1):
        source.time = float(hop.t[index])
        frame = source.frame()
        np.testing.assert_array_equal(frame.q, hop.q[index])
        (foot,) = frame.contacts
        np.testing.assert_array_equal(foot.force, hop.contact_forces["foot"][index])
        assert (foot.status is ContactStatus.OPEN) == (foot.normal_force == 0.0)
    assert [event.t for event in source.events] == [impact.t for impact in hop.impacts]
    source.time = 0.0
    assert source.next_event().t == hop.impacts[0].t


def test_a_push_moves_the_robot_and_an_unknown_link_is_refused():
    config = load_config(LEG)
    sim = config.simulator()
    source = SimulatorSource(sim)
    try:
        source.push("carriage", np.array([0.0, 0.0, 100.0]), 0.05)
        for _ in range(20):
            source.step()
        assert sim.state.v[0] > 0.0  # it would fall
        with pytest.raises(ConstrainedSimError, match="nowhere"):
            source.push("nowhere", np.zeros(3), 0.1)
    finally:
        source.close()


def test_film_shows_motion(hop, tmp_path, browser):
    imageio = pytest.importorskip("imageio.v3")
    options = FilmOptions(width=160, height=120, rate=5.0)
    assert film(recording(hop), tmp_path / "hop.gif", options) == 4
    frames = imageio.imread(tmp_path / "hop.gif", index=None)
    assert frames.shape[:3] == (4, 120, 160)
    assert np.mean(frames[0] != frames[2]) > 0.005


def test_a_run_from_a_file_is_shown_with_its_robot_only(hop, tmp_path):
    hop.save(tmp_path / "hop.npz")
    run = Trajectory.load(tmp_path / "hop.npz")
    with pytest.raises(InvalidValue, match="Setup"):
        run.view()
    with run.view(Setup(hop.setup.robot, hop.setup.constraints)) as page:
        assert page.url.startswith("http://127.0.0.1:")

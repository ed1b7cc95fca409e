"""The viewer, in a real browser: what it draws moves, and its buttons act."""

import re

import numpy as np
import pytest
from mechanisms import ROOT
from viewing import choose, click_at, open_page, pixels, set_number, wait_until

from constrained_sim import Collisions, Plane, Robot, Simulator, Trajectory, WorldObject, load_config
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.controllers import CONTROLLERS
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue
from constrained_sim.trajectory import Setup
from constrained_sim.viewer.film import FilmOptions, film, gif_delays
from constrained_sim.viewer.page import Page
from constrained_sim.viewer.simulator_source import SimulatorSource
from constrained_sim.viewer.trajectory_source import TrajectorySource

LEG = ROOT / "config" / "leg.yaml"


def run_of(name, mode, seconds):
    config = load_config(ROOT / "config" / f"{name}.yaml")
    return config.simulator().run(seconds, CONTROLLERS[name](config, mode).efforts)


@pytest.fixture
def boxes():
    """A simulator of the leg with two boxes beside it, one of which falls."""
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf")
    lying = WorldObject.box("lying", (0.2, 0.2, 0.2), 2.0, 0.5, (-0.4, 0.0, 0.1, 0, 0, 0, 1))
    falling = WorldObject.box("falling", (0.1, 0.1, 0.2), 2.0, 0.5, (-0.1, 0.4, 0.6, 0, 0, 0, 1))
    robot = leg.with_objects([lying, falling])
    q = robot.configuration({"slider": 0.5, "hip": 0.6, "knee": -1.2})
    return Simulator(robot, q=q, collisions=Collisions({"floor": Plane()}))


@pytest.fixture(scope="module")
def hop():
    """0.8 s of the leg that is dropped and hops."""
    return run_of("leg", "hop", 0.8)


def test_page_draws_the_robot_where_it_is_and_asks_nobody_else(hop, browser):
    """The leg moves; a click on its foot tells the force there and draws the friction cone."""
    with Page(TrajectorySource(hop)) as page, open_page(browser, page) as (tab, requests):

        def drawn(name, t=None):
            page.source.time = page.source.time if t is None else t
            page.draw_frame()
            return pixels(tab, name)

        high, low = drawn("leg high", 0.05), drawn("leg low", 0.3)
        assert np.mean(high != low) > 0.005
        (foot,) = page.source.frame().contacts
        click_at(tab, page, foot.position)
        wait_until(lambda: page.options.chosen == "foot")
        chosen = drawn("leg chosen foot")
        assert tab.get_by_text(f"normal {foot.normal_force:.2f} N").count() == 1
        assert np.mean(chosen != low) > 0.005
        click_at(tab, page, foot.position)
        wait_until(lambda: not page.options.chosen)
        tab.get_by_label("friction cones").check()
        wait_until(lambda: page.options.cones)
        assert np.mean(drawn("leg cones") != low) > 0.005
        page.server.scene.get_handle_by_name("/world/robot").visible = False
        assert np.mean(low != drawn("empty scene")) > 0.01
    assert all(re.match(r"(http|ws)://127\.0\.0\.1:\d+/|data:|blob:", url) for url in requests)


def test_anchor_of_a_closed_loop_tells_its_force(browser):
    with (
        Page(TrajectorySource(run_of("four_bar", "turn", 0.1))).serve_in_background() as page,
        open_page(browser, page) as (tab, _),
    ):
        page.draw()
        tab.get_by_role("button", name="Pause").click()
        tab.get_by_role("button", name="Play").wait_for()
        (anchor,) = page.source.frame().anchors
        click_at(tab, page, anchor.position)
        tab.get_by_text(f"{np.linalg.norm(anchor.force):.2f} N in all").first.wait_for()
        pixels(tab, "four-bar linkage")


def test_buttons_and_sliders_act_on_a_simulator(browser):
    sim = load_config(LEG).simulator()
    with sim.view() as page, open_page(browser, page) as (tab, _):
        tab.get_by_role("button", name="Step", exact=True).click()
        wait_until(lambda: sim.steps == 1)
        choose(tab, "solver", "null_space")
        wait_until(lambda: sim.solver.name == "null_space")
        choose(tab, "joint", "knee")
        set_number(tab, "share of its limit", 0.5)
        wait_until(lambda: page._controls._shares == {"knee": 0.5})
        choose(tab, "joint", "hip")
        wait_until(lambda: page._controls._share.value == 0.0)
        choose(tab, "joint", "knee")
        wait_until(lambda: page._controls._share.value == 0.5)
        set_number(tab, "real-time factor", 0.5)
        wait_until(lambda: page.source.speed == 0.5)
        tab.get_by_role("button", name="Go on").click()
        wait_until(lambda: sim.steps > 50)
        knee = sim.robot.actuated_joints.index("knee")
        assert page.source.frame().efforts["knee"] == pytest.approx(0.5 * sim.robot.effort_limits[knee])
        pixels(tab, "leg simulated")
        tab.get_by_role("button", name="Pause").click()
        wait_until(lambda: page.source.is_paused)
        tab.get_by_role("button", name="Reset").click()
        wait_until(lambda: sim.steps == 0 and page._controls._share.value == 0.0)
        set_number(tab, "z [N]", 40)
        tab.get_by_role("button", name="Push").click()
        wait_until(lambda: sim._applied)  # what clicks call may come in another order
        tab.get_by_role("button", name="Step", exact=True).click()
        wait_until(lambda: sim.steps == 1)
        assert sim.state.v[0] > 0.0  # it would fall


def test_objects_beside_the_robot_are_drawn_where_they_are(boxes, browser):
    """In a run: each frame has the poses of its instant, and the picture of a box changes as it falls."""
    run, leg = boxes.run(0.5), boxes.robot.without_objects
    with Page(TrajectorySource(run)) as page, open_page(browser, page) as (tab, _):

        def drawn(name, t):
            page.source.time = t
            page.draw_frame()
            return pixels(tab, name)

        high, low = drawn("box high", 0.0), drawn("box low", 0.3)
        assert np.mean(high != low) > 0.005
        frame, index = page.source.frame(), page.source.index()
        assert [one.name for one in frame.objects] == ["lying", "falling"]
        assert len(frame.q) == leg.nq and len(frame.v) == leg.nv
        np.testing.assert_array_equal(np.concatenate([frame.q, *(one.q for one in frame.objects)]), run.q[index])
        node = page.server.scene.get_handle_by_name("/world/objects/falling/body")
        np.testing.assert_allclose(node.position, run.q[index, -7:-4], atol=1e-15)
        page.server.scene.get_handle_by_name("/world/objects").visible = False
        assert np.mean(low != drawn("boxes hidden", 0.3)) > 0.005


def test_an_object_is_pushed_by_the_page(boxes, browser):
    """The list of links has those of objects; what is drawn is the simulator's state."""
    lying = boxes.robot.objects[0]
    sim = boxes.with_objects([lying])
    with sim.view() as page, open_page(browser, page) as (tab, _):
        choose(tab, "link", "lying/body")
        set_number(tab, "x [N]", 60)
        tab.get_by_role("button", name="Push").click()
        tab.wait_for_timeout(500)  # [ms] what clicks call may come in another order
        for steps in range(1, 4):
            tab.get_by_role("button", name="Step", exact=True).click()
            wait_until(lambda steps=steps: sim.steps == steps and page.source.frame().t == sim.state.t)
        assert sim.state.v[-6] > 0.01
        (shown,) = page.source.frame().objects
        np.testing.assert_array_equal(shown.q, sim.state.q[-7:])
        page.source.reset()
        (shown,) = page.source.frame().objects
        np.testing.assert_array_equal(shown.q, lying.pose)


def test_notebook_shows_the_page_where_the_call_stands(hop, browser, tmp_path):
    """What a notebook puts into its own page is a frame that shows ours."""
    with hop.view() as page:
        assert repr(page) == f"Page({page.url!r})"
        notebook = tmp_path / "notebook.html"
        notebook.write_text(f"<html><body>{page._repr_html_()}</body></html>")
        tab = browser.new_page(viewport={"width": 900, "height": 700})
        try:
            tab.goto(notebook.as_uri())
            inside = tab.frame_locator("iframe")
            inside.get_by_role("button", name="Next impact").click()
            wait_until(lambda: page.source.time >= hop.impacts[0].t)
            pixels_of_frame = inside.locator("canvas").first
            pixels_of_frame.wait_for()
        finally:
            tab.close()


def test_camera_follows_a_robot_that_moves_and_leaves_the_view_to_the_visitor(browser):
    """The robot stays where it is in the picture while it travels; who turned the view keeps it so."""
    run = run_of("quadruped", "trot", 0.5)
    moved = np.array([2.0, -1.0])
    run.q[-1, :2] += moved
    with Page(TrajectorySource(run)) as page, open_page(browser, page) as (tab, _):
        page.draw_frame()
        (client,) = page.server.get_clients().values()
        before = page.camera.look_at + page.server.scene.get_handle_by_name("/world").position
        page.source.time = page.source.end
        page.draw_frame()
        pixels(tab, "quadruped moved")
        world = page.server.scene.get_handle_by_name("/world").position
        assert np.linalg.norm(np.asarray(world)[:2] + moved) < 0.1
        np.testing.assert_allclose(client.camera.look_at, before, atol=1e-6)


def test_frames_of_a_run_are_its_states_forces_and_impacts(hop):
    source = TrajectorySource(hop)
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


def test_controller_that_fails_pauses_and_the_page_says_why():
    sim = load_config(LEG).simulator()
    source = SimulatorSource(sim, lambda t, q, v: [][0])
    try:
        source.pause(False)
        wait_until(lambda: source.is_paused)
        assert source.frame().text == "IndexError: list index out of range"
    finally:
        source.close()


def test_plots_of_a_simulation_are_numbers_from_its_first_instant_on():
    """The browser shows no line in which one is none. Kinetic and potential energy are the robot's."""
    sim = load_config(LEG).simulator()
    with Page(SimulatorSource(sim)) as page:
        for group in page._signals._groups:
            page._signals.group.value = group
            page._signals._is_chosen = True
            page.source.reset()
            for _ in range(3):
                page.draw_frame()
                page.source.step()
            page._signals.draw()
            assert page._signals._shown
            assert all(np.isfinite(column).all() and len(column) == 3 for column in page._signals._plot.data)
        energy = page.source.frame().energy
        assert energy["kinetic"] == sim.kinetic_energy() > 0.0
        assert energy["kinetic"] + energy["potential"] == pytest.approx(sim.mechanical_energy(), rel=1e-14)
        assert energy["damping"] == sim.energy.damping < 0.0


def test_energies_of_a_run_are_those_of_the_simulator(hop):
    """At its end; the robot of the run at its state tells kinetic and potential energy."""
    source = TrajectorySource(hop)
    sim = Simulator(hop.setup.robot, q=hop.q[-1], v=hop.v[-1])
    source.time = source.end
    energy = source.frame().energy
    assert energy["kinetic"] == pytest.approx(sim.kinetic_energy(), rel=1e-12)
    assert energy["kinetic"] + energy["potential"] == pytest.approx(sim.mechanical_energy(), rel=1e-12)
    assert energy["impact losses"] == pytest.approx(sum(impact.energy_lost for impact in hop.impacts), rel=1e-12)


def test_contacts_are_there_before_the_first_step():
    """Where the robot begins, open as long as no force is known."""
    config = load_config(LEG)
    (foot,) = SimulatorSource(config.simulator()).frame().contacts
    assert (foot.name, foot.status, foot.link) == ("foot", ContactStatus.OPEN, "foot")
    expected = config.simulator().step().contact_forces["foot"].position
    np.testing.assert_allclose(foot.position, expected, atol=1e-4)


def test_support_is_that_of_the_robot_alone(boxes):
    """Boxes lie on the floor, the leg is above it: nothing supports the leg."""
    run = boxes.run(0.1)
    with Page(TrajectorySource(run)) as page, Page(SimulatorSource(boxes)) as live:
        page.source.time = page.source.end
        page.draw_frame()
        live.source.step()
        live.draw_frame()
        assert any(contact.normal_force > 0.0 for contact in live.source.frame().contacts)
        for shown in (page, live):
            assert shown.server.scene.get_handle_by_name("/world/com") is not None
            assert shown.server.scene.get_handle_by_name("/world/support") is None


def test_impacts_shrink_and_vanish(hop):
    """The disc is at the contact; 0.15 s later there is none, and none without the checkbox."""
    (first, *_), name = hop.impacts, "/world/impacts/foot"
    with Page(TrajectorySource(hop)) as page:
        sizes = []
        for after in (0.002, 0.1):
            page.source.time = first.t + after
            page.draw_frame()
            sizes.append(page.server.scene.get_handle_by_name(name).point_size)
        assert sizes[0] > 2.0 * sizes[1] > 0.0
        page.options.impacts = False
        page.draw_frame()
        assert page.server.scene.get_handle_by_name(name) is None
        page.options.impacts = True
        page.source.time = first.t + 0.16
        page.draw_frame()
        assert page.server.scene.get_handle_by_name(name) is None


def test_a_recording_ends_and_begins_again(hop):
    """Without "repeat" it stops at its end, and the button plays it from the beginning."""
    with Page(TrajectorySource(hop)) as page:
        panel, source = page._controls, page.source
        panel._repeat.value = False
        panel._advance(2.0 * source.end)
        assert source.time == source.end and panel._play.label == "Play"
        panel._play_or_pause()
        assert source.time == source.begin and panel._play.label == "Pause"
        panel._repeat.value = True
        panel._advance(2.0 * source.end)
        assert source.time == source.begin and panel._play.label == "Pause"


def test_time_goes_where_a_user_has_moved_it_while_a_recording_plays(hop):
    """Pictures and buttons that come meanwhile do not take it back."""
    with Page(TrajectorySource(hop)) as page:
        panel, source = page._controls, page.source
        page.draw()
        for follow in (page.draw, panel._play_or_pause):
            assert panel.plays
            panel._slider.value = 0.6  # as a browser's message sets it
            follow()
            assert 0.6 <= source.time < 0.7
            panel._slider.value = 0.2
            page.draw()
            assert 0.2 <= source.time < 0.3
        panel._slider.value = source.begin
        panel._jump()
        assert source.time == pytest.approx(hop.impacts[0].t, abs=2e-3)


def test_films_begin_within_their_recording_and_keep_its_time(hop, tmp_path):
    """A GIF counts in hundredths of a second; what cannot be is refused before anything is drawn."""
    source = TrajectorySource(hop)
    length = source.end - source.begin
    assert FilmOptions(begin=length).instants(source).tolist() == [source.end]
    for rate in (24.0, 30.0, 50.0):
        delays = gif_delays(120, rate)
        assert min(delays) >= 20 and len(delays) == 120
        np.testing.assert_allclose(np.cumsum(delays), 1e3 / rate * np.arange(1, 121), atol=5.0 + 1e-9)
    for options, said in ((FilmOptions(begin=2.0), "begin"), (FilmOptions(rate=60.0), "rate")):
        with pytest.raises(InvalidValue, match=said):
            film(source, tmp_path / "hop.gif", options)
    wrong = {"zoom": 0.0, "elevation": 90.0, "azimuth": np.nan, "begin": -0.1, "rate": 0.0, "width": 0, "speed": np.inf}
    for name, value in wrong.items():
        with pytest.raises(InvalidValue, match=f"{name} of a film"):
            FilmOptions(**{name: value})
    assert not list(tmp_path.iterdir())


def test_film_is_drawn_as_asked(hop, tmp_path, browser):
    """All pictures of one state are the same, the first one too; from another side it looks different."""
    imageio, told = pytest.importorskip("imageio.v3"), []
    size = {"width": 160, "height": 120, "rate": 5000.0, "speed": 1e-3, "duration": 3e-7}
    still = {}
    for name, camera in {"as ever": {}, "from above": {"elevation": 80.0}, "near": {"zoom": 3.0}}.items():
        path = tmp_path / f"{name}.mp4"
        assert film(TrajectorySource(hop), path, FilmOptions(**size, **camera), lambda *at: told.append(at)) == 2
        still[name] = imageio.imread(path, index=None).astype(float)
        assert np.abs(still[name][0] - still[name][1]).mean() < 0.5
    assert told[:2] == [(1, 2), (2, 2)]
    for other in ("from above", "near"):
        assert np.mean(np.abs(still[other][0] - still["as ever"][0]) > 8.0) > 0.02


def test_film_shows_motion(hop, tmp_path, browser):
    imageio = pytest.importorskip("imageio.v3")
    options = FilmOptions(width=160, height=120, rate=5.0)
    assert film(TrajectorySource(hop), tmp_path / "hop.gif", options) == 4
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

"""The viewer of a recorded bag: its pictures are what was recorded, and its time line leads through them."""

import time

import numpy as np
import pytest
from ros.live import stamp
from viewing import open_page, pixels, set_number, wait_until

from constrained_sim.joints import SingleJoint
from constrained_sim.viewer.bag_source import BagSource
from constrained_sim.viewer.page import Page

PERIOD = 1e-3
"""[s] Of control, between two pictures."""


@pytest.fixture(scope="module")
def source(hopping):
    return BagSource(hopping.path)


def test_frames_are_what_was_recorded(source, hopping):
    """At each instant: the state, and the forces of the period that ended then."""
    states = hopping.messages("/joint_states")
    forces = {stamp(message): message.contacts[0].wrench.force for message in hopping.messages("/contact_forces")}
    assert len(source.times) == len(states)
    for state in states[1 : len(states) : 200]:
        source.time = 1e-9 * stamp(state)
        frame = source.frame()
        joints = [SingleJoint.of(source.world.robot, name) for name in state.name]
        assert [joint.position(frame.q) for joint in joints] == list(state.position)
        assert [frame.v[joint.v] for joint in joints] == list(state.velocity)
        force = forces[stamp(state)]
        np.testing.assert_array_equal(frame.contacts[0].force, [force.x, force.y, force.z])


def test_events_are_the_impacts(source, hopping):
    impacts = hopping.messages("/impacts")
    assert len(impacts) >= 3
    assert [event.t for event in source.events] == [pytest.approx(1e-9 * stamp(impact)) for impact in impacts]
    source.time = source.events[1].t
    assert source.next_event() is source.events[2]
    source.time = source.end
    assert source.next_event() is source.events[0]
    for event in source.events:
        source.time = source.picture_of(event)
        frame = source.frame()
        assert 0.0 <= frame.t - event.t <= PERIOD + 1e-9  # the first picture after it


def test_frames_of_the_past_fill_the_plot(source):
    """In the order of time, between the instant asked for and the present one, as far apart as asked."""
    source.time = source.end - 0.5
    times = [frame.t for frame in source.frames_since(source.time - 1.0, 0.05)]
    assert source.time - 1.0 < times[0] and times[-1] < source.time
    np.testing.assert_allclose(np.diff(times), 0.05, atol=2.0 * PERIOD)
    assert len(times) in (19, 20)


def test_time_line_plays_scrubs_and_jumps_to_the_next_impact(source, browser):
    with Page(source).serve_in_background() as page, open_page(browser, page) as (tab, _):
        tab.get_by_role("button", name="Pause").click()  # else time goes on while this is typed
        tab.get_by_role("button", name="Play").wait_for()
        set_number(tab, "speed", 0.1)
        begin = round(source.begin, 3) + 0.01
        set_number(tab, "t [s]", begin)
        wait_until(lambda: source.time == pytest.approx(begin, abs=5e-3))
        tab.get_by_role("button", name="Play").click()
        wait_until(lambda: source.time > begin + 5e-3)
        before, began = source.time, time.monotonic()
        wait_until(lambda: source.time > before + 0.05)
        assert source.time - before == pytest.approx(0.1 * (time.monotonic() - began), rel=0.5)
        tab.get_by_role("button", name="Pause").click()
        tab.get_by_role("button", name="Play").wait_for()
        marks = tab.locator(".mantine-Slider-root").first.locator(".mantine-Slider-mark")
        assert marks.count() == len(source.events)
        middle = round(0.5 * (source.begin + source.end), 3)
        set_number(tab, "t [s]", middle)
        wait_until(lambda: source.time == pytest.approx(middle, abs=5e-3))
        assert source.frame().t == pytest.approx(source.time, abs=PERIOD)
        event = source.next_event()
        tab.get_by_role("button", name="Next impact").click()
        tab.get_by_text(f"{event.t:.4f} s: {event.text}").wait_for()
        assert source.time == pytest.approx(event.t, abs=PERIOD)
        tab.get_by_text(f"t = {source.frame().t:.3f} s").wait_for()
        pixels(tab, "impact in a bag")

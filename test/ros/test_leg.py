"""The leg and its example controller in closed loop, judged by what was recorded."""

import numpy as np
import pytest
from ros.bags import Mechanics, phases
from ros.live import PERIOD, URDF, stamp


@pytest.fixture(scope="module")
def mechanics():
    return Mechanics(URDF.read_text())


@pytest.fixture(params=["dropped", "standing", "hopping", "hopping_in_real_time"])
def bag(request):
    """Each of the recorded runs."""
    return request.getfixturevalue(request.param)


def test_momentum_balances(bag, mechanics):
    """Contact forces, impulses and weight are the change of momentum: in each period, and over the whole bag."""
    defects = mechanics.momentum_defects(bag)
    assert len(defects) == len(bag.raw["/contact_forces"])
    assert np.abs(defects).max() < 1e-9
    assert abs(defects.sum()) < 1e-9


def test_foot_stays_above_the_ground(bag, mechanics):
    """Rigid means rigid: the foot sinks in by less than a hundredth of a micrometre, ever."""
    assert min(mechanics.foot_height(state) for state in bag.messages("/joint_states")) > -1e-8


HOPS = [("hopping", np.min), ("hopping_in_real_time", np.median)]
"""Runs, and what of their hops is judged: commands of a real-time run come late where the machine stalls, so that
single hops are low there."""


@pytest.mark.parametrize(("mode", "judged"), HOPS)
def test_leg_hops(request, mode, judged, mechanics):
    """Cycle by cycle the foot clears the ground for at least 0.1 s, then lands with an impact and stands."""
    bag = request.getfixturevalue(mode)
    heights = np.array([mechanics.foot_height(state) for state in bag.messages("/joint_states")[1:]])
    runs = phases(heights > 1e-3)
    assert runs[0][0]  # it begins in the air
    complete = runs[:-1]  # the last phase is cut off
    flights = [length for flying, length in complete if flying]
    stances = [length for flying, length in complete if not flying]
    assert len(stances) >= 5
    assert judged(flights) * PERIOD >= 100_000_000
    assert judged(stances) * PERIOD >= 100_000_000
    ends = np.cumsum([length for _, length in runs])
    impacts = [stamp(impact) // PERIOD - 1000 for impact in bag.messages("/impacts")]
    forces = bag.normal_forces()
    cleared = []
    for (flying, length), end in zip(complete, ends, strict=False):
        if flying:
            assert forces[end - length : end].max() == 0.0
            assert any(end - 1 <= impact < end + 10 for impact in impacts)
            cleared.append(heights[end - length : end].max())
        else:
            assert forces[end - length : end].max() > mechanics.weight
    assert judged(cleared) > 0.01


@pytest.mark.parametrize(("mode", "judged"), HOPS)
def test_contact_does_not_chatter(request, mode, judged):
    """Each time that the contact force ends it stays away for at least 0.1 s: a landing is one landing."""
    bag = request.getfixturevalue(mode)
    runs = phases(bag.normal_forces() > 0.0)
    lost = [length for touching, length in runs[:-1] if not touching]
    assert judged(lost) * PERIOD >= 100_000_000


@pytest.fixture(scope="module")
def hopping_again(run_to_end):
    """The bag of another 2 s of the hopping leg, in lockstep."""
    return run_to_end("hop", 2.0, clock_mode="lockstep")


@pytest.mark.parametrize(("topic", "count"), [("/joint_states", 2001), ("/contact_forces", 2000)])
def test_lockstep_gives_the_same_values_again(hopping, hopping_again, topic, count):
    """Two closed-loop runs over DDS, whatever the processes' timing, agree in every bit of every number."""
    first, again = hopping.messages(topic)[:count], hopping_again.messages(topic)
    assert len(again) == count
    differing = [k for k in range(count) if repr(first[k]) != repr(again[k])]  # repr tells 0.0 from -0.0
    assert differing == []


@pytest.mark.parametrize(("topic", "count"), [("/joint_states", 2001), ("/contact_forces", 2000)])
def test_lockstep_gives_the_same_bytes_again(hopping, hopping_again, topic, count):
    """The recorded messages of the two runs agree byte by byte, the padding between their fields included."""
    differing = [k for k in range(count) if hopping.raw[topic][k] != hopping_again.raw[topic][k]]
    assert differing == []


@pytest.fixture(scope="module")
def standing_fast(run_to_end):
    """The bag of 1.5 s of the standing leg in mode fast, which does not wait for its controller."""
    return run_to_end("stand", 1.5, clock_mode="fast")


def test_commands_act_in_fast_mode(standing_fast, mechanics):
    """However late the controller answers, it moves the joints, and momentum balances in every period."""
    assert any(any(state.effort) for state in standing_fast.messages("/joint_states"))
    standing_fast.assert_every_period(PERIOD, 1500)
    assert np.abs(mechanics.momentum_defects(standing_fast)).max() < 1e-9


def test_leg_stands_still_in_lockstep(standing, mechanics):
    """At the end of the standing run the foot sticks and carries the weight."""
    last = standing.messages("/contact_forces")[-1].contacts[0]
    assert last.status == last.STICKING
    assert standing.normal_forces()[-100:].mean() == pytest.approx(mechanics.weight, rel=0.01)

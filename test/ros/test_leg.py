"""The leg and its example controller in closed loop, judged by what was recorded."""

import numpy as np
import pytest

from ros.bags import Mechanics, phases
from ros.live import PERIOD, URDF


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


@pytest.mark.parametrize("mode", ["hopping", "hopping_in_real_time"])
def test_leg_hops(request, mode, mechanics):
    """Every flight lasts at least 0.1 s and ends in a stance; each landing that closes a flight is an impact."""
    bag = request.getfixturevalue(mode)
    runs = phases(bag.normal_forces() > 0.0)
    assert runs[0][0] is False  # it begins in the air
    complete = runs[:-1] if not runs[-1][0] else runs
    flights = [length * PERIOD * 1e-9 for touching, length in complete if not touching]
    stances = [length * PERIOD * 1e-9 for touching, length in complete if touching]
    assert len(flights) >= 6
    assert min(flights) >= 0.1
    assert min(stances) >= 0.1
    assert len(bag.raw["/impacts"]) >= len(flights)
    heights = [mechanics.foot_height(state) for state in bag.messages("/joint_states")]
    ends = np.cumsum([length for _, length in complete])
    for (touching, length), end in zip(complete, ends, strict=True):
        if not touching:
            assert max(heights[end - length : end]) > 0.01


def test_lockstep_gives_the_same_bytes_again(hopping, run_to_end):
    """Two closed-loop runs over DDS, whatever the processes' timing, agree in every byte of states and forces."""
    again = run_to_end("hop", 2.0, clock_mode="lockstep")
    for topic, count in (("/joint_states", 2001), ("/contact_forces", 2000)):
        assert len(again.raw[topic]) == count
        assert again.raw[topic] == hopping.raw[topic][:count]


@pytest.fixture(scope="module")
def standing_fast(run_to_end):
    """The bag of 4 s of the standing leg in mode fast, which does not wait for its controller."""
    return run_to_end("stand", 4.0, clock_mode="fast")


def test_leg_stays_up_in_fast_mode(standing_fast, mechanics):
    """In the last second the slider stays within 1 cm of its mean and the ground carries the weight."""
    heights = np.array([state.position[0] for state in standing_fast.messages("/joint_states")])[-1000:]
    assert np.abs(heights - heights.mean()).max() < 0.01
    assert heights.mean() > 0.2
    forces = standing_fast.normal_forces()[-1000:]
    assert forces.min() > 0.0
    assert forces.mean() == pytest.approx(mechanics.weight, rel=0.01)
    assert np.abs(mechanics.momentum_defects(standing_fast)).max() < 1e-9


def test_leg_stands_still_in_lockstep(standing, mechanics):
    """At the end of the standing run the foot sticks and carries the weight."""
    last = standing.messages("/contact_forces")[-1].contacts[0]
    assert last.status == last.STICKING
    assert standing.normal_forces()[-100:].mean() == pytest.approx(mechanics.weight, rel=0.01)

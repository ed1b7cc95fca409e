"""External wrenches, by service and by topic: which momentum they give, and when."""

import math

import pytest
from geometry_msgs.msg import WrenchStamped
from ros.live import NODE, PERIOD

from constrained_sim.srv import ApplyWrench

DT = PERIOD * 1e-9
G = 9.81


def apply(sim, link="carriage", z=0.0, nanoseconds=0, **values):
    request = ApplyWrench.Request(link=link, **values)
    request.wrench.force.z = z
    request.duration.nanosec = nanoseconds
    return sim.call(ApplyWrench, "apply_wrench", link=link, wrench=request.wrench, duration=request.duration, **values)


def fall(sim, periods):
    """Return the slider's velocity [m/s] after so many periods."""
    state, _ = sim.step(periods)
    return state.velocity[state.name.index("slider")]


def work_external(sim):
    return sim.fresh_status().work_external


def test_wrench_acts_for_its_duration(stepped):
    """The work of a force on the carriage is force times its way while it lasts, then stays as it is."""
    assert apply(stepped, z=10.0, nanoseconds=5 * PERIOD).success
    state, _ = stepped.step(5)
    height = state.position[state.name.index("slider")]
    during = work_external(stepped)
    assert during == pytest.approx(10.0 * (height - 0.32), rel=1e-9)
    stepped.step(5)
    assert work_external(stepped) == during


def test_zero_duration_is_one_period(stepped):
    """A request without a duration acts during one control period."""
    stepped.step()
    one = fall(stepped, 2)
    stepped.reset()
    stepped.step()
    assert apply(stepped, z=100.0).success
    pushed = fall(stepped, 2)
    work = work_external(stepped)
    assert pushed > one and work != 0.0
    stepped.step(3)
    assert work_external(stepped) == work


def push(sim, frame, z=50.0, y=0.0):
    message = WrenchStamped()
    message.header.frame_id = frame
    message.wrench.force.z, message.wrench.force.y = z, y
    sim.publish(f"{NODE}/external_wrench", message)


def test_wrenches_of_the_topic_add_up_for_one_period(stepped):
    """Two messages act together during the next period only: as one service call with their sum."""
    push(stepped, "carriage", 20.0)
    push(stepped, "carriage", 30.0)
    push(stepped, "nobody")
    stepped.wait_for_refusals(1)
    states = [fall(stepped, 1), fall(stepped, 4)]
    stepped.reset()
    assert apply(stepped, z=50.0).success
    assert [fall(stepped, 1), fall(stepped, 4)] == pytest.approx(states, rel=1e-12)
    assert states[0] > -G * DT


@pytest.mark.parametrize(
    ("frame", "force"), [("", 1.0), ("world", 1.0), ("tail", 1.0), ("foot", math.nan), ("foot", math.inf)]
)
def test_bad_wrench_of_the_topic_is_counted_and_does_nothing(stepped, frame, force):
    """The motion is that without it."""
    free = [fall(stepped, 3)]
    stepped.reset()
    push(stepped, frame, force)
    stepped.wait_for_refusals(1)
    assert [fall(stepped, 3)] == free
    assert stepped.fresh_status().commands_refused == 1


def test_bad_wrench_of_the_service_is_refused(stepped):
    """The answer says what is allowed."""
    answer = apply(stepped, link="tail", z=1.0)
    assert not answer.success and "tail" in answer.message and "foot" in answer.message
    assert not apply(stepped, link="world", z=1.0).success
    assert not apply(stepped, z=math.nan).success
    assert not apply(stepped, z=1.0, frame_id="tail").success
    assert work_external(stepped) == 0.0

"""The three clock modes: when time passes, and which commands count as answers."""

import math
import time

import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from ros.live import NODE, PERIOD, START_TIME, stamp
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from constrained_sim.msg import SimulationStatus
from constrained_sim.ros import pace

START = round(START_TIME * 1e9)


def test_fast_takes_commands_and_never_waits(simulate):
    """Nobody commands, yet time passes, faster than the wall clock allows in real time; commands act meanwhile."""
    with simulate(clock_mode="fast", real_time_factor=0.01) as sim:
        sim.wait_for(lambda: len(sim.states) > 100 and sim.forces, "states")
        first = stamp(sim.states[-1])
        sim.command(["hip", "knee"], [0.125, -0.25])
        sim.wait_for(lambda: sim.states[-1].effort[1] == 0.125, "effect of the command")
        sim.wait_for(lambda: stamp(sim.states[-1]) - first > 5e8, "half a second, which would take 50 s in real time")
        assert list(sim.states[-1].effort) == [0.0, 0.125, -0.25]
        assert sim.fresh_status().late_periods == 0


def test_real_time_that_is_not_held_is_logged(simulate):
    """Once, after a while, with what to do; the diagnostics say so as long as it lasts; it is told of again later."""
    too_fast, slow = (Parameter("real_time_factor", value=value) for value in (1e4, 0.01))
    with simulate(clock_mode="realtime", real_time_factor=1e4, control_period=0.05) as sim:
        heard = sim.client.subscribe(DiagnosticArray, "/diagnostics")

        def warns():
            return bool(heard) and "real time is not held" in heard[-1].status[0].message

        def logged():
            return sim.process.stderr.count("real time is not held")

        sim.wait_for(warns, "warning in the diagnostics")
        sim.client.spin(2.5)
        assert logged() == 1 and warns()
        assert "take a smaller real_time_factor" in sim.process.stderr
        assert sim.parameters(slow)[0].successful
        sim.wait_for(lambda: not warns(), "end of the warning")
        assert sim.parameters(too_fast)[0].successful
        sim.wait_for(lambda: logged() == 2, "second warning")


@pytest.fixture(scope="module")
def _lockstep(simulate):
    with simulate(clock_mode="lockstep", lockstep_timeout=1.0) as simulation:
        simulation.wait_for(lambda: simulation.states, "state")
        yield simulation


@pytest.fixture
def lockstep(_lockstep):
    """A node in lockstep that waits for the answer to its initial state."""
    _lockstep.pause(False)
    _lockstep.reset()
    return _lockstep


def answer(sim, state, efforts=(0.1, -0.2)):
    """Answer a state; return the next one."""
    sim.command(["hip", "knee"], list(efforts), stamp=state.header.stamp)
    return later(sim, state)


def later(sim, state):
    """Return the first state after `state`."""

    def found():
        return [message for message in sim.states if stamp(message) > stamp(state)]

    return sim.wait_for(found, "next state")[0]


def test_each_answer_lets_one_period_pass(lockstep):
    """Every answered state is followed by exactly one other, in which the answer acts, and by its forces."""
    state = lockstep.states[-1]
    lockstep.forget()
    for k in range(1, 41):
        state = answer(lockstep, state, (0.01 * k, -0.02 * k))
        assert stamp(state) == START + k * PERIOD
        assert list(state.effort) == [0.0, 0.01 * k, -0.02 * k]
    lockstep.wait_for(lambda: lockstep.forces and stamp(lockstep.forces[-1]) == stamp(state), "forces")
    told = dict.fromkeys(stamp(message) for message in lockstep.forces)  # one is told again to who is found late
    assert list(told) == [START + k * PERIOD for k in range(1, 41)]


def test_unanswered_state_is_repeated_and_no_time_passes(lockstep):
    """A controller that comes late sees the present state again; nothing else changes."""
    state = lockstep.states[-1]
    lockstep.forget()
    lockstep.wait_for(lambda: len(lockstep.states) >= 2, "repetition of the state")
    assert all(message == state for message in lockstep.states)
    assert not lockstep.forces
    assert not lockstep.clock


def test_stale_stamps_are_dropped_and_counted(lockstep):
    """An answer to another state neither acts nor lets time pass; commands_dropped counts it, and the log says why."""
    dropped = _dropped(lockstep)
    state = answer(lockstep, answer(lockstep, lockstep.states[-1]))
    for wrong in (START, stamp(state) - PERIOD, stamp(state) + PERIOD, stamp(state) + 1):
        header = Time(sec=wrong // 10**9, nanosec=wrong % 10**9)
        lockstep.command(["hip", "knee"], [5.0, 5.0], stamp=header)
    lockstep.wait_for(lambda: _dropped(lockstep) == dropped + 4, "count of the dropped commands")
    lockstep.wait_for(lambda: "the state that waits has 1.002000000:" in lockstep.process.stderr, "warning in the log")
    assert stamp(lockstep.states[-1]) == stamp(state)
    assert list(answer(lockstep, state, (0.5, 0.25)).effort) == [0.0, 0.5, 0.25]


def _dropped(sim):
    """Return the count of dropped commands; the status is asked for without pausing the lockstep for good."""
    status = sim.fresh_status()
    sim.pause(False)
    return status.commands_dropped


def test_zero_stamps_and_arrays_count_by_arrival(lockstep):
    """A command without a stamp answers the last state, and so does ~/commands."""
    state = lockstep.states[-1]
    lockstep.publish("/joint_commands", JointState(name=["hip"], effort=[0.75]))
    state = later(lockstep, state)
    assert (stamp(state), state.effort[1]) == (START + PERIOD, 0.75)
    lockstep.publish(f"{NODE}/commands", Float64MultiArray(data=[0.5, 0.25]))
    state = later(lockstep, state)
    assert (stamp(state), list(state.effort)) == (START + 2 * PERIOD, [0.0, 0.5, 0.25])


def test_refused_command_is_no_answer(lockstep):
    """A bad command with the right stamp is counted, and the simulation still waits for a good one."""
    state = lockstep.states[-1]
    before = lockstep.fresh_status().commands_refused
    lockstep.pause(False)
    lockstep.command(["hip", "knee"], [math.nan, 0.0], stamp=state.header.stamp)
    lockstep.wait_for_refusals(before + 1)
    lockstep.pause(False)
    lockstep.client.spin(0.1)
    assert stamp(lockstep.states[-1]) == START
    assert stamp(answer(lockstep, state)) == START + PERIOD


def test_wall_clock_guard_says_who_is_missing(lockstep):
    """Nobody answers for lockstep_timeout: the status waits and says for what, the log warns, and time may go on."""
    begun = time.monotonic()
    state = answer(lockstep, lockstep.states[-1])
    lockstep.status.clear()

    def warnings():
        return [s for s in lockstep.status if s.state == SimulationStatus.WAITING and "1 of 1 commands" in s.message]

    (status, *_) = lockstep.wait_for(warnings, "status of waiting")
    assert time.monotonic() - begun > 0.5
    assert "1 publisher(s) of commands" in status.message or "2 publisher(s) of commands" in status.message
    assert "1 subscriber(s) of joint_states" in status.message
    assert "dropped" not in status.message
    assert "simulating leg in lockstep, dt 0.001 s, actuated: hip, knee; waits" in lockstep.process.stderr
    lockstep.wait_for(lambda: "waiting for 1 of 1 commands" in lockstep.process.stderr, "warning in the log")
    assert stamp(answer(lockstep, state)) == stamp(state) + PERIOD


def test_waiting_node_tells_what_it_drops(simulate):
    """The status shows the count of dropped and refused commands long before the guard reacts."""
    with simulate(clock_mode="lockstep", lockstep_timeout=600.0) as sim:
        state = answer(sim, sim.wait_for(lambda: sim.states, "state")[0])
        sim.wait_for(lambda: sim.status and sim.status[-1].state == SimulationStatus.WAITING, "status of waiting")
        for number in range(1, 4):
            sim.command(["hip"], [5.0], stamp=Time(sec=7))
            sim.command(["tail"], [5.0], stamp=state.header.stamp)
            told = (SimulationStatus.WAITING, number, number)
            last = lambda: (sim.status[-1].state, sim.status[-1].commands_dropped, sim.status[-1].commands_refused)  # noqa: E731
            sim.wait_for(lambda told=told, last=last: last() == told, "counts")
        count = len(sim.status)
        sim.client.spin(1.0)
        assert len(sim.status) == count  # nothing new, nothing told
        assert stamp(answer(sim, state)) == stamp(state) + PERIOD


def test_lockstep_waits_for_every_controller(simulate):
    """With lockstep_commands 2 one answer is not enough; two let one period pass, and both act."""
    with simulate(clock_mode="lockstep", lockstep_commands=2) as sim:
        state = sim.wait_for(lambda: sim.states, "state")[-1]
        for k in range(1, 6):
            sim.command(["hip"], [0.1 * k], stamp=state.header.stamp)
            sim.client.spin(0.05)
            assert stamp(sim.states[-1]) == START + (k - 1) * PERIOD
            sim.command(["knee"], [-0.1 * k], stamp=state.header.stamp)
            state = later(sim, state)
            assert stamp(state) == START + k * PERIOD
            assert list(state.effort) == [0.0, 0.1 * k, -0.1 * k]


@pytest.mark.parametrize("other", ["knee", "hip"])
def test_repeated_answers_of_one_controller_are_not_those_of_two(simulate, other):
    """While one of two is silent the state is repeated, and the other answers each time: no time passes for that.

    It does once the second answers too, whether it commands other joints or the same.
    """
    with simulate(clock_mode="lockstep", lockstep_commands=2) as sim:
        state = sim.wait_for(lambda: sim.states, "state")[-1]
        seen = answered = 0

        def answer(*joints):
            nonlocal seen, answered
            while len(sim.states) > seen:
                seen, answered = seen + 1, answered + 1
                for joint in joints:
                    sim.command([joint], [0.1], stamp=state.header.stamp)
            sim.client.spin(0.02)

        end = time.monotonic() + 20.0
        while answered < 4:
            assert time.monotonic() < end
            answer("hip")
            assert stamp(sim.states[-1]) == START
        end = time.monotonic() + 20.0
        sim.command([other], [0.1], stamp=state.header.stamp)
        while stamp(sim.states[-1]) == START:
            assert time.monotonic() < end
            answer("hip", other)
        assert stamp(sim.states[-1]) == START + PERIOD


def test_first_command_starts_the_time(simulate):
    """With wait_for_first_command no period passes until a command has come; the command acts in the first period."""
    # Slow: a client that waits for a processor misses the first of many fast periods, which a writer keeps no longer.
    with simulate(clock_mode="realtime", real_time_factor=0.005, wait_for_first_command=True) as sim:
        sim.wait_for(lambda: len(sim.states) > 2, "repeated initial state")
        assert {stamp(state) for state in sim.states} == {START}
        assert not sim.forces
        sim.command(["hip", "knee"], [0.5, -0.5])
        sim.wait_for(lambda: sim.forces, "first period")
        sim.wait_for(lambda: stamp(sim.states[-1]) > START, "state after it")
        first = next(state for state in sim.states if stamp(state) > START)
        assert stamp(first) == START + PERIOD
        assert list(first.effort) == [0.0, 0.5, -0.5]


@pytest.mark.parametrize(
    ("durations", "least", "most"),
    [
        ([0.8e-3] * 500, 0, 0),
        ([0.8e-3] * 100 + [0.05] + [0.8e-3] * 400, 1, 1),
        ([0.8e-3] * 100 + [0.5] + [0.8e-3] * 400, 1, 1),
        ([2e-3] * 500, 450, 500),
    ],
    ids=["in time", "one delay", "one long delay", "half as fast as real time"],
)
def test_periods_that_fall_behind_are_counted(monkeypatch, durations, least, most):
    """One delay is one, however many periods make up for it; who never keeps up is told so by nearly each."""
    clock = [10.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock[0])
    realtime, late = pace.Realtime(1e-3, 1.0), 0
    for duration in durations:
        clock[0] += realtime.delay(0)
        late += realtime.begun()
        clock[0] += duration
    assert least <= late <= most

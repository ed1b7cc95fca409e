"""What happens when commands stop: the timeout in simulated time, and the guard of lockstep in wall-clock time."""

import pytest
from ros.live import Process, stamp
from ros.test_modes import answer, later

from constrained_sim.msg import SimulationStatus

TIMEOUT_NS = 20_000_000

GUARD = 5.0
"""[s] Longer than the 3 s in which DDS repeats an announcement that got lost: an answer has to be heard first."""


def efforts(sim):
    return list(sim.states[-1].effort)


@pytest.mark.parametrize("action", ["zero", "hold", "damping"])
def test_command_timeout(simulate, action):
    """After so much simulated time without a command the configured action takes over; a new command ends it."""
    parameters = {"command_timeout": TIMEOUT_NS * 1e-9, "timeout_action": action, "timeout_damping": 0.05}
    with simulate(clock_mode="fast", start_paused=True, **parameters) as sim:
        sim.meet()
        sim.reset()
        sim.command(["hip", "knee"], [0.25, -0.5])
        sim.wait_for_commands()
        sim.step(20)
        assert efforts(sim) == [0.0, 0.25, -0.5]
        before = sim.states[-1]
        sim.step()
        if action == "damping":
            hip, knee = (before.velocity[before.name.index(name)] for name in ("hip", "knee"))
            assert efforts(sim) == pytest.approx([0.0, -0.05 * hip, -0.05 * knee], rel=1e-12)
        else:
            assert efforts(sim) == ([0.0, 0.25, -0.5] if action == "hold" else [0.0, 0.0, 0.0])
        sim.wait_for(lambda: [m for m in sim.status if f"no command for 0.02 s: {action}" in m.message], "status")
        sim.command(["hip"], [0.125])
        sim.wait_for_commands()
        sim.step()
        assert efforts(sim) == [0.0, 0.125, -0.5]
        sim.wait_for(lambda: sim.status[-1].message == "commands come again", "status")


def test_reset_is_no_command(simulate):
    """After a reset no command is overdue, and nobody says that one came; the next timeout is told as the first was."""
    with simulate(clock_mode="fast", start_paused=True, command_timeout=TIMEOUT_NS * 1e-9) as sim:
        sim.meet()
        for times in (1, 2):
            sim.command(["hip"], [0.25])
            sim.wait_for_commands()
            sim.step(21)
            sim.wait_for(lambda: [m for m in sim.status if m.message == "no command for 0.02 s: zero"], "status")
            sim.wait_for(lambda times=times: sim.process.stderr.count("no command for 0.02 s") == times, "log")
            sim.reset()
            sim.step(21)
            assert not [m for m in sim.status if m.message == "commands come again"]
            sim.status.clear()
        assert "commands come again" not in sim.process.stderr


def test_guard_pauses(simulate):
    """With `pause` the simulation pauses where its controller is silent, says so, and can be taken up again."""
    with simulate(clock_mode="lockstep", lockstep_timeout=GUARD, lockstep_action="pause") as sim:
        sim.wait_for(lambda: sim.states, "state")
        state = answer(sim, sim.states[0])
        sim.wait_for(lambda: [m for m in sim.status if m.state == SimulationStatus.PAUSED], "pause")
        assert "1 of 1 commands" in sim.status[-1].message and "paused" in sim.status[-1].message
        assert stamp(sim.states[-1]) == stamp(state)
        sim.pause(False)
        answer(sim, state)


def test_guard_continues_until_a_controller_takes_over(simulate):
    """With `continue` time goes on without a controller, at the pace of the wall clock; then lockstep is back."""
    options = {"lockstep_action": "continue", "command_timeout": 0.05, "lockstep_timeout": GUARD}
    with simulate(clock_mode="lockstep", **options) as sim:
        sim.wait_for(lambda: sim.states, "state")
        state = answer(sim, sim.states[0], (0.1, -0.2))
        sim.wait_for(lambda: [m for m in sim.status if "going on in real time" in m.message], "status")
        sim.wait_for(lambda: stamp(sim.states[-1]) > stamp(state) + 200_000_000, "later states")
        assert efforts(sim) == [0.0, 0.0, 0.0]
        assert [m for m in sim.status if m.message == "no command for 0.05 s: zero"]
        controller = Process(sim.process._out.parent, sim.domain, "leg_controller", "--ros-args", "-p", "mode:=stand")
        try:
            sim.wait_for(lambda: [m for m in sim.status if "commands come again" in m.message], "controller")
            sim.wait_for(lambda: all(any(state.effort) for state in sim.states[-200:]), "states under control")
        finally:
            controller.stop()


def test_answers_are_matched_again_after_the_guard(simulate):
    """Once a controller is back, a command with an old stamp is dropped as ever."""
    with simulate(clock_mode="lockstep", lockstep_timeout=GUARD, lockstep_action="continue") as sim:
        sim.wait_for(lambda: sim.states, "state")
        old = sim.states[0]
        sim.wait_for(lambda: stamp(sim.states[-1]) > stamp(old) + 50_000_000, "free run")
        sim.command(["hip", "knee"], [0.1, 0.2], stamp=old.header.stamp)
        sim.wait_for(lambda: [m for m in sim.status if "commands come again" in m.message], "end of the free run")
        sim.wait_for(lambda: efforts(sim) == [0.0, 0.1, 0.2], "the state that the command leads to")
        state = sim.states[-1]
        dropped = sim.fresh_status().commands_dropped
        sim.pause(False)
        sim.command(["hip", "knee"], [0.1, 0.2], stamp=old.header.stamp)
        sim.wait_for(lambda: sim.status[-1].commands_dropped == dropped + 1, "the dropped command")
        assert later(sim, state)

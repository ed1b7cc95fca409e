"""pause, step and reset."""

import math
import os

import pytest
from ros.live import NODE, PERIOD, ROOT, START_TIME, nanoseconds, stamp
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from constrained_sim.compilation.progress import PROGRESS
from constrained_sim.msg import Contact, SimulationStatus
from constrained_sim.ros.process import LateCompilation
from constrained_sim.srv import AddContact, ApplyWrench, ListContacts, RemoveContact, Reset, SetSolver, Step

START = round(START_TIME * 1e9)


def names_of_contacts(sim):
    return [contact.name for contact in sim.call(ListContacts, "list_contacts").contacts]


def state_now(sim):
    """Return stamp, positions and velocities, as the next period leaves them."""
    state, _ = sim.step()
    return stamp(state), list(state.position), list(state.velocity)


def test_paused_simulation_stands_still(stepped):
    """While paused nothing is published and no time passes; then a step goes on from there."""
    stepped.step(3)
    stepped.forget()
    stepped.client.spin(0.3)
    assert not stepped.states and not stepped.forces and not stepped.clock
    assert stamp(stepped.step()[0]) == START + 4 * PERIOD


def test_pause_and_go_on(stepped):
    """SetBool(false) lets time pass, SetBool(true) stops it; the status says so each time."""
    assert stepped.call(SetBool, "pause", data=False).success
    stepped.wait_for(lambda: len(stepped.states) > 20, "states of the running simulation")
    assert stepped.wait_for(lambda: stepped.status, "status")[-1].state == SimulationStatus.RUNNING
    assert stepped.fresh_status().state == SimulationStatus.PAUSED
    stepped.forget()
    stepped.client.spin(0.2)
    assert not stepped.states
    # No period was skipped or repeated on the way.
    state, _ = stepped.step()
    assert (stamp(state) - START) % PERIOD == 0


def test_step_answers_with_the_last_period(stepped):
    """The answer holds the stamp of the last published state and the number of physics steps since the reset."""
    total = 0
    for periods in (1, 5, 20):
        total += periods
        answer = stepped.call(Step, "step", periods=periods)
        assert answer.success, answer.message
        assert answer.step == total
        assert nanoseconds(answer.stamp) == START + total * PERIOD
        state, forces = stepped.step()
        total += 1
        assert stamp(state) == stamp(forces) == START + total * PERIOD


def test_the_status_follows_steps(stepped):
    """Once after each request, of the state that it answers with."""
    for periods in (5, 1):
        stepped.settle()
        stepped.status.clear()
        answer = stepped.call(Step, "step", periods=periods)
        stepped.wait_for(lambda: stepped.status, "status")
        stepped.settle()
        (status,) = stepped.status
        assert (status.step, status.state) == (answer.step, SimulationStatus.PAUSED)
        assert status.time == answer.step * status.dt


def test_step_of_no_periods_is_refused(stepped):
    """Zero periods are refused, nothing moves."""
    answer = stepped.call(Step, "step", periods=0)
    assert not answer.success
    assert "periods" in answer.message
    assert stamp(stepped.step()[0]) == START + PERIOD


def test_step_is_refused_while_running(stepped):
    """The answer says that the simulation runs, and how to pause it."""
    stepped.pause(False)
    try:
        answer = stepped.call(Step, "step", periods=1)
    finally:
        stepped.pause(True)
    assert not answer.success
    assert "paused" in answer.message


def test_second_step_is_refused_during_the_first(stepped):
    """One request at a time; the first ends as it was asked to."""
    first = stepped.client.ask(Step, "step", periods=10_000)
    second = stepped.call(Step, "step", periods=1)
    stepped.wait_for(first.done, "answer of the first step")
    assert not second.success
    assert "one at a time" in second.message
    assert first.result().success
    assert first.result().step == 10_000


def test_pause_ends_a_step(stepped):
    """It answers with the reason, and no more periods follow."""
    first = stepped.client.ask(Step, "step", periods=1_000_000)
    stepped.wait_for(lambda: len(stepped.states) > 10, "states")
    assert stepped.call(SetBool, "pause", data=True).success
    stepped.wait_for(first.done, "answer of the step", timeout=30.0)
    assert not first.result().success
    assert "paused" in first.result().message
    stepped.wait_for_period(nanoseconds(first.result().stamp))
    stepped.settle()
    assert nanoseconds(first.result().stamp) == stamp(stepped.states[-1])


def test_a_step_that_waits_for_a_command_says_so(simulate):
    """Once it comes, the step is made."""
    with simulate(start_paused=True, wait_for_first_command=True) as sim:
        asked = sim.client.ask(Step, "step", periods=3)
        text = "the step that was asked for is waiting for a command"
        sim.wait_for(lambda: text in sim.process.stderr, "warning")
        assert not asked.done()
        sim.command(["hip"], [0.0])
        sim.wait_for(asked.done, "answer of the step")
        assert asked.result().success and asked.result().step == 3


def test_a_step_that_waits_again_says_so_again(simulate):
    """After the node has waited before the pause, and after a pause that ended a step."""
    with simulate(wait_for_first_command=True) as sim:
        sim.wait_for(lambda: any("waiting for a command" in status.message for status in sim.status), "status")
        for count in (1, 2):
            assert sim.call(SetBool, "pause", data=True).success
            asked = sim.client.ask(Step, "step", periods=3)
            sim.wait_for(lambda count=count: sim.process.stderr.count("step that was asked for") == count, "warning")
            assert not asked.done()


def test_single_steps_are_not_late(simulate):
    """In real time, what a pause takes is no delay of the step after it; a busy machine takes less than 0.1 s."""
    with simulate(clock_mode="realtime", start_paused=True, control_period=0.1) as sim:
        for _ in range(4):
            sim.client.spin(0.3)
            assert sim.call(Step, "step", periods=1).success
        assert sim.fresh_status().late_periods == 0


def test_reset_interrupts_a_step(stepped):
    """A reset during a long step answers it with a refusal, and starts anew."""
    first = stepped.client.ask(Step, "step", periods=1_000_000)
    stepped.wait_for(lambda: len(stepped.states) > 10, "states")
    assert stamp(stepped.reset()) == START
    stepped.wait_for(first.done, "answer of the step", timeout=30.0)
    assert not first.result().success
    assert "reset" in first.result().message
    stepped.settle()
    stepped.forget()
    stepped.client.spin(0.2)
    assert not stepped.states


def test_reset_publishes_the_state_and_the_time(stepped):
    """After a reset states and clock show the configured start, and the answer carries that stamp."""
    stepped.step(30)
    stepped.forget()
    answer = stepped.call(Reset, "reset")
    assert answer.success
    assert nanoseconds(answer.stamp) == START
    state = stepped.wait_for(lambda: stepped.states, "state")[0]
    assert list(state.position) == [0.32, 0.60, -1.20]
    assert stamp(state) == stamp(stepped.wait_for(lambda: stepped.clock, "clock")[0]) == START


def test_reset_to_given_joints(stepped):
    """Named joints begin where asked, with the velocities asked; the others as configured."""
    request = JointState(name=["knee", "slider"], position=[-0.5, 0.4], velocity=[0.25, -1.0])
    assert stepped.call(Reset, "reset", joints=request).success
    state = stepped.wait_for(lambda: stepped.states, "state")[-1]
    assert list(state.position) == [0.4, 0.60, -0.5]
    assert list(state.velocity) == [-1.0, 0.0, 0.25]
    assert state.effort[1] == 0.0


def test_reset_elsewhere_than_asked_is_told(simulate):
    """Where a loop has to be closed, the answer and the log name the joint."""
    with simulate(config=ROOT / "config" / "four_bar.yaml", start_paused=True) as sim:
        crank = JointState(name=["crank"], position=[0.3])
        answer = sim.call(Reset, "reset", joints=crank)
        assert answer.success and "crank at " in answer.message and "given 0.3" in answer.message
        assert sim.call(Reset, "reset").message == ""
        assert sim.process.stderr.count("crank at ") == 1


def test_reset_beyond_limits_is_told(stepped):
    """In the answer and in the log; the robot is there."""
    request = JointState(name=["slider", "hip"], position=[0.9, 40.0])
    answer = stepped.call(Reset, "reset", joints=request)
    assert answer.success and "hip at 40, limits " in answer.message and "slider" not in answer.message
    stepped.wait_for(lambda: "hip at 40, limits " in stepped.process.stderr, "warning in the log")
    within = stepped.call(Reset, "reset", joints=JointState(name=["slider"], position=[0.5]))
    assert within.success and not within.message


def test_kernels_that_are_compiled_late_are_told_now_and_then():
    """Before the first of them, not of each."""
    said = []
    with PROGRESS.told_to(LateCompilation(said.append)):
        for done in range(3):
            PROGRESS.report(done, 3, "kernel")
        PROGRESS.report(3, 3, "")
    (line,) = said
    assert "1 of 3 (kernel)" in line and "services do not answer" in line


def test_reset_forgets_commands(stepped):
    """Efforts commanded before a reset do not act after it."""
    stepped.command(["hip", "knee"], [1.5, -1.5])
    stepped.wait_for(lambda: stepped.step()[0].effort[1] == 1.5, "effect of the command")
    stepped.reset()
    state, _ = stepped.step()
    assert list(state.effort) == [0.0, 0.0, 0.0]


REFUSED = {
    "unknown joint": (JointState(name=["tail"], position=[0.0]), ["tail", "slider", "hip", "knee"]),
    "unknown joint of a velocity": (JointState(name=["tail"], velocity=[0.0]), ["tail", "hip"]),
    "joint twice": (JointState(name=["hip", "hip"], position=[0.0, 0.1]), ["hip"]),
    "NaN": (JointState(name=["hip"], position=[math.nan]), ["nan"]),
    "infinite velocity": (JointState(name=["hip"], velocity=[math.inf]), ["inf"]),
    "fewer positions than names": (JointState(name=["hip", "knee"], position=[0.1]), ["position"]),
    "more velocities than names": (JointState(name=["hip"], velocity=[0.1, 0.2]), ["velocity"]),
    "position without names": (JointState(position=[0.1]), ["names for the position of a reset: got []"]),
    "velocity without names": (JointState(velocity=[0.1]), ["names for the velocity of a reset: got []"]),
    "effort": (JointState(name=["hip"], position=[0.1], effort=[2.0]), ["effort of a reset: got [2.0]", "none"]),
    "names alone": (JointState(name=["hip"]), ["hip"]),
    "foot below the ground": (JointState(name=["slider"], position=[0.1]), ["foot"]),
}


@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_bad_reset_is_refused_and_nothing_changes(stepped, given):
    """The answer names what was given; the simulation goes on where it was."""
    joints, expected = REFUSED[given]
    stepped.step(4)
    answer = stepped.call(Reset, "reset", joints=joints)
    assert not answer.success
    for text in expected:
        assert text in answer.message
    refused = state_now(stepped)
    stepped.reset()
    stepped.step(4)
    assert refused == state_now(stepped)


def test_reset_may_keep_the_time(stepped):
    """keep_time goes on counting where it was; the state is the configured one."""
    stepped.step(25)
    state = stepped.reset(keep_time=True)
    assert stamp(state) == START + 25 * PERIOD
    assert list(state.position) == [0.32, 0.60, -1.20]
    assert stamp(stepped.step()[0]) == START + 26 * PERIOD
    status = stepped.fresh_status()
    assert (status.step, stamp(status)) == (1, START + 26 * PERIOD)


def test_reset_may_keep_the_constraints(stepped):
    """keep_constraints keeps what was added and removed; without it the configured contacts are back."""
    toe = Contact(name="toe", link="foot", offset=-0.5)
    toe.normal.z = 1.0
    assert stepped.call(AddContact, "add_contact", contact=toe).success
    assert stepped.call(RemoveContact, "remove_contact", name="foot").success
    stepped.reset(keep_constraints=True)
    assert names_of_contacts(stepped) == ["toe"]
    stepped.reset()
    assert names_of_contacts(stepped) == ["foot"]


def test_reset_may_keep_the_state(stepped):
    """keep_state: what is not named stays bit for bit; the constraints of the configuration are back."""
    assert stepped.call(RemoveContact, "remove_contact", name="foot").success
    before, _ = stepped.step(25)
    assert before.velocity[0] != 0.0
    hip = JointState(name=["hip"], position=[0.4])
    answer = stepped.call(Reset, "reset", keep_state=True, joints=hip)
    assert answer.success, answer.message
    after = stepped.wait_for(lambda: [s for s in stepped.states if stamp(s) == START], "state after the reset")[-1]
    assert list(after.position) == [before.position[0], 0.4, before.position[2]]
    assert after.velocity == before.velocity
    assert names_of_contacts(stepped) == ["foot"]


def test_reset_keeps_the_solver(stepped):
    """The solver that was chosen stays in effect."""
    assert stepped.call(SetSolver, "set_solver", solver="null_space", contact_method="gauss_seidel").success
    stepped.reset()
    answer = stepped.call(SetSolver, "set_solver")
    assert (answer.solver, answer.contact_method) == ("null_space", "gauss_seidel")


def test_run_after_a_reset_equals_a_fresh_start(stepped, dropped):
    """Whatever happened before, 400 periods after a reset are those of a node that just started, bit by bit."""
    toe = Contact(name="toe", link="lower_leg", offset=0.1, restitution=0.7)
    toe.normal.z = 1.0
    assert stepped.call(AddContact, "add_contact", contact=toe).success
    stepped.command(["hip", "knee"], [2.0, -3.0])
    stepped.step(170)
    stepped.reset()
    stepped.forget()
    stepped.step(400)
    assert stepped.states == dropped.messages("/joint_states")[1:]
    assert stepped.forces == dropped.messages("/contact_forces")
    stepped.wait_for(lambda: len(stepped.impacts) == len(dropped.raw["/impacts"]), "impacts")
    assert stepped.impacts == dropped.messages("/impacts")


def test_reset_begins_the_counters_anew(stepped):
    """The counters of the status count since the reset, as SimulationStatus.msg says."""
    stepped.command(["tail"], [1.0])
    stepped.wait_for(lambda: stepped.fresh_status().commands_refused > 0, "refused command")
    stepped.reset()
    status = stepped.fresh_status()
    assert (status.late_periods, status.commands_dropped, status.commands_refused, status.records_lost) == (0, 0, 0, 0)
    assert (status.step, status.time) == (0, 0.0)


def test_state_that_turns_infinite_freezes_the_simulation(stepped):
    """The status says so, with the step; steps are refused; a reset mends it; the node lives on."""
    request = JointState(name=["hip"], velocity=[1e200])
    assert stepped.call(Reset, "reset", joints=request).success
    answer = stepped.call(Step, "step", periods=5)
    assert not answer.success
    assert "step 0" in answer.message
    status = stepped.wait_for(lambda: [s for s in stepped.status if s.state == SimulationStatus.FROZEN], "status")[0]
    assert "step 0" in status.message
    answer = stepped.call(Step, "step", periods=1)
    assert not answer.success
    assert "frozen" in answer.message
    stepped.reset()
    assert stamp(stepped.step()[0]) == START + PERIOD
    assert stepped.fresh_status().state == SimulationStatus.PAUSED


def test_frozen_simulation_keeps_its_reason(stepped):
    """Whatever is asked for afterwards, the status says at which step and why; a pause answers with it.

    Commands that are refused meanwhile are counted in it, without any request.
    """
    request = JointState(name=["hip"], velocity=[1e200])
    assert stepped.call(Reset, "reset", joints=request).success
    why = stepped.call(Step, "step", periods=1).message
    stepped.settle()
    stepped.status.clear()
    assert stepped.call(RemoveContact, "remove_contact", name=names_of_contacts(stepped)[0]).success
    assert [stepped.call(SetBool, "pause", data=on).message for on in (False, True)] == [why, why]
    stepped.wait_for(lambda: len(stepped.status) >= 3, "a status of each request")
    stepped.command(["hip"], [math.nan])
    stepped.wait_for(lambda: stepped.status[-1].commands_refused == 1, "a status that counts the refusal")
    assert {(status.state, status.message) for status in stepped.status} == {(SimulationStatus.FROZEN, why)}
    stepped.reset()
    assert stepped.call(SetBool, "pause", data=True).message == stepped.fresh_status().message == "paused"


@pytest.mark.parametrize(("periods", "message"), [(50, ""), (51, "the node ends")])
def test_step_to_the_end_of_the_duration_is_answered(simulate, periods, message):
    """The answer comes before the node ends, and says whether all steps were made."""
    with simulate(clock_mode="fast", start_paused=True, duration=0.05) as sim:
        answer = sim.call(Step, "step", periods=periods)
        assert (answer.success, answer.message, answer.step) == (not message, message, 50)
        assert sim.process.wait(20.0) == 0


def test_every_request_of_a_burst_is_answered(stepped):
    """A running node answers one request in 20 ms; those that come faster wait, and are carried out in their turn."""
    stepped.call(ApplyWrench, "apply_wrench", link="carriage")  # the node knows the client from here on
    stepped.pause(False)
    answers = [stepped.client.ask(ApplyWrench, "apply_wrench", link="carriage") for _ in range(40)]
    stepped.wait_for(lambda: all(answer.done() for answer in answers), "answer to each request")
    assert all(answer.result().success for answer in answers)


def test_services_have_their_documented_names(stepped):
    """Every service of this package that exists is private to the node."""
    ours = {
        name
        for name, kinds in stepped.client.node.get_service_names_and_types()
        if any(kind.startswith(("constrained_sim/", "std_srvs/")) for kind in kinds)
    }
    wanted = ("add_contact", "remove_contact", "list_contacts", "set_solver", "pause", "step", "reset")
    assert {f"{NODE}/{name}" for name in wanted} <= ours


def test_standard_services_are_absent_without_their_package(simulate, tmp_path, monkeypatch):
    """Where simulation_interfaces cannot be imported, the node runs as ever, and offers nothing of it."""
    package = tmp_path / "simulation_interfaces" / "__init__.py"
    package.parent.mkdir()
    package.write_text("raise ImportError")
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, others)]))
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        found = sim.client.node.get_service_names_and_types()
    assert f"{NODE}/step" in [name for name, _ in found]
    assert not [name for name, kinds in found if any(kind.startswith("simulation_interfaces/") for kind in kinds)]

"""A node in real time that goes on while contacts come and go and bad commands arrive."""

import itertools
import math
import time

import pytest
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter
from ros.live import NODE, PERIOD, nanoseconds, stamp
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from constrained_sim.msg import Contact, SimulationStatus
from constrained_sim.srv import AddContact, RemoveContact, Step

NAN = math.nan


@pytest.fixture(scope="module")
def _node(simulate):
    with simulate(clock_mode="realtime", start_paused=True, real_time_factor=0.5) as simulation:
        simulation.meet()
        yield simulation


@pytest.fixture
def running(_node):
    """A node that runs at half the speed of the wall clock, just reset."""
    _node.pause()
    _node.parameters(Parameter("real_time_factor", value=0.5))
    _node.reset()
    _node.settle()
    _node.forget()
    _node.pause(False)
    return _node


def refused(sim):
    """Return the count of refused commands once a new status says it."""
    sim.status.clear()
    return sim.wait_for(lambda: sim.status, "status")[-1].commands_refused


def named(name, effort):
    return "/joint_commands", JointState(name=name, effort=effort)


BAD = {
    "unknown joint": named(["hip", "tail"], [1.0, 1.0]),
    "fewer efforts than names": named(["hip", "knee"], [1.0]),
    "more efforts than names": named(["hip"], [1.0, 2.0]),
    "names alone": ("/joint_commands", JointState(name=["hip", "knee"])),
    "fewer positions": ("/joint_commands", JointState(name=["hip", "knee"], position=[0.1])),
    "infinite position": ("/joint_commands", JointState(name=["hip", "knee"], position=[0.1, math.inf])),
    "NaN": named(["hip", "knee"], [1.0, NAN]),
    "infinity": named(["hip", "knee"], [math.inf, 1.0]),
    "joint twice": named(["hip", "hip"], [1.0, 2.0]),
    "too short array": (f"{NODE}/commands", Float64MultiArray(data=[1.0])),
    "too long array": (f"{NODE}/commands", Float64MultiArray(data=[1.0, 2.0, 3.0])),
    "empty array": (f"{NODE}/commands", Float64MultiArray()),
    "array with NaN": (f"{NODE}/commands", Float64MultiArray(data=[NAN, 1.0])),
}


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_command_is_refused_whole_and_counted(running, bad):
    """The last good command stays for every joint, commands_refused rises by one, and the simulation goes on."""
    running.command(["hip", "knee"], [0.375, -0.25])
    running.wait_for(lambda: running.states and running.states[-1].effort[1] == 0.375, "effect of the good command")
    before = refused(running)
    running.publish(*BAD[bad])
    running.wait_for(lambda: refused(running) > before, "count of the refusal")
    running.forget()
    running.wait_for(lambda: len(running.states) > 20, "further states")
    assert {tuple(state.effort) for state in running.states} == {(0.0, 0.375, -0.25)}
    assert refused(running) == before + 1


def test_status_says_running(running):
    """State, mode and speed of the status of a running simulation."""
    running.wait_for(lambda: [s for s in running.status if s.time > 0.4], "statuses of 0.4 s")
    status = running.status[-1]
    assert status.state == SimulationStatus.RUNNING
    assert status.clock_mode == "realtime"
    assert 0.1 < status.real_time_factor < 0.9
    for residual in (status.dynamics_residual, status.constraint_residual, status.complementarity_residual):
        assert residual < 1e-9


def test_time_follows_the_wall_clock_times_a_factor(running):
    """Simulated time is never faster than the factor allows, and the factor can be changed while the node runs."""
    for factor in (0.5, 0.125):
        (result,) = running.parameters(Parameter("real_time_factor", value=factor))
        assert result.successful, result.reason
        running.pause()
        running.settle()
        first, begun = stamp(running.states[-1]), time.monotonic()
        running.pause(False)
        running.client.spin(1.5)
        running.pause()
        elapsed = time.monotonic() - begun
        running.settle()
        simulated = (stamp(running.states[-1]) - first) * 1e-9
        running.pause(False)
        assert simulated <= factor * (elapsed + 0.1)  # debts of up to 0.1 s are made up for
        assert simulated >= 0.1 * factor * elapsed


def test_whole_factor_is_a_real_number(running):
    """As the option is: who asks for it afterwards gets a number of the type that is described."""
    (result,) = running.parameters(Parameter("real_time_factor", value=1))
    assert result.successful, result.reason
    (value,) = running.call(GetParameters, "get_parameters", names=["real_time_factor"]).values
    assert (value.type, value.double_value) == (ParameterType.PARAMETER_DOUBLE, 1.0)


@pytest.mark.parametrize("factor", [0.0, -1.0, NAN, math.inf, "fast"])
def test_bad_factor_is_refused(running, factor):
    """The real-time factor is a positive number."""
    (result,) = running.parameters(Parameter("real_time_factor", value=factor))
    assert not result.successful
    assert "real_time_factor" in result.reason
    running.forget()
    running.wait_for(lambda: len(running.states) > 5, "further states")


def test_step_is_refused(running):
    """A running simulation cannot be stepped; it does not stop over it."""
    answer = running.call(Step, "step", periods=1)
    assert not answer.success
    assert "pause" in answer.message
    running.forget()
    running.wait_for(lambda: running.states, "state")


def test_contacts_come_and_go_between_two_periods(running):
    """The stamp of the answer is the boundary: up to it periods have the old contacts, after it the new ones."""
    toe = Contact(name="toe", link="lower_leg", offset=-50.0)
    toe.normal.z = 1.0
    running.wait_for(lambda: len(running.forces) > 10, "periods before")
    added = running.call(AddContact, "add_contact", contact=toe)
    assert added.success, added.message
    running.wait_for(lambda: stamp(running.forces[-1]) > nanoseconds(added.stamp) + 10 * PERIOD, "periods after")
    removed = running.call(RemoveContact, "remove_contact", name="foot")
    assert removed.success, removed.message
    running.wait_for(lambda: stamp(running.forces[-1]) > nanoseconds(removed.stamp) + 10 * PERIOD, "periods after")
    for message in running.forces:
        names = [contact.name for contact in message.contacts]
        assert ("toe" in names) == (stamp(message) > nanoseconds(added.stamp))
        assert ("foot" in names) == (stamp(message) <= nanoseconds(removed.stamp))
    stamps = [stamp(message) for message in running.forces]
    assert {after - before for before, after in itertools.pairwise(stamps)} == {PERIOD}


def test_without_its_foot_the_leg_falls_through_the_ground(running):
    """The contact force of the landed leg ends with its contact, and the slider sinks."""
    running.wait_for(lambda: any(m.contacts and m.contacts[0].normal_force > 0.0 for m in running.forces), "landing")
    assert running.call(RemoveContact, "remove_contact", name="foot").success
    running.wait_for(lambda: running.states[-1].position[0] < -0.2, "fall")
    # Back in the air the foot can be added again, and holds.
    running.pause()
    running.reset(keep_constraints=True)
    foot = Contact(name="foot", link="foot", friction=0.8)
    foot.normal.z = 1.0
    assert running.call(AddContact, "add_contact", contact=foot).success
    running.pause(False)
    running.forget()
    running.wait_for(lambda: any(m.contacts and m.contacts[0].normal_force > 0.0 for m in running.forces), "landing")

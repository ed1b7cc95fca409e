"""One malformed call must not end the node, nor be without an answer; what is wrong is told."""

import math
import re
import time
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Point, Vector3, WrenchStamped
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from ros.live import CONFIG, NODE, START_TIME, Process, arguments, free_domain, nanoseconds, stamp
from std_msgs.msg import Float64MultiArray

from constrained_sim.msg import Contact, SimulationStatus
from constrained_sim.ros.refusals import REASONS, Refusals
from constrained_sim.srv import AddContact, ListContacts, RemoveContact, Step

LONGEST = 247 - len("/contact_wrenches/")
"""Number of characters that ROS leaves to the name of a contact."""


@pytest.fixture(scope="module")
def wrenches(simulate):
    """A paused node that publishes a wrench for each contact."""
    with simulate(clock_mode="fast", start_paused=True, contact_wrenches=True) as sim:
        sim.meet()
        yield sim


def contact(name):
    """Return a contact of the foot with the ground."""
    return Contact(name=name, link="foot", point=Point(), normal=Vector3(z=1.0), law="rigid", friction=0.5)


def add(sim, name):
    return sim.call(AddContact, "add_contact", contact=contact(name))


def wrench_topics(sim):
    """Return the topics of contact wrenches that have a publisher."""
    names = [name for name, _ in sim.client.node.get_topic_names_and_types() if "/contact_wrenches/" in name]
    return {name.rpartition("/")[2] for name in names if sim.client.node.count_publishers(name)}


@pytest.mark.parametrize("name", ["x" * 240, "x" * (LONGEST + 1), "9" * LONGEST, "\N{SNOWMAN}" * 5000])
def test_name_that_is_too_long_for_a_topic_is_refused(wrenches, name):
    """The answer says so, and nothing was added."""
    answer = add(wrenches, name)
    assert not answer.success and "name" in answer.message and len(answer.message) < 1000
    assert [c.name for c in wrenches.call(ListContacts, "list_contacts").contacts] == ["foot"]
    wrenches.step()


def test_names_of_one_topic_are_refused(wrenches):
    """What topics do not allow becomes an underscore; the second of two that are the same then is refused."""
    assert add(wrenches, "left foot").success
    for name in ("left_foot", "left-foot", "left\N{SNOWMAN}foot"):
        answer = add(wrenches, name)
        assert not answer.success and "left foot" in answer.message
    assert wrenches.call(RemoveContact, "remove_contact", name="left foot").success
    assert add(wrenches, "left_foot").success
    assert wrenches.call(RemoveContact, "remove_contact", name="left_foot").success


def test_topics_are_those_of_the_contacts(wrenches):
    """A contact has its topic from its beginning to its removal, or to a reset that brings back the configured ones."""
    longest = "x" * LONGEST
    for remove in (lambda: wrenches.call(RemoveContact, "remove_contact", name=longest), wrenches.reset):
        assert add(wrenches, longest).success
        wrenches.wait_for(lambda: wrench_topics(wrenches) == {"foot", longest}, "topic of the contact")
        received = wrenches.client.subscribe(WrenchStamped, f"/contact_wrenches/{longest}")
        wrenches.wait_for(lambda received=received: wrenches.step() and received, "wrench of the contact")
        remove()
        wrenches.wait_for(lambda: wrench_topics(wrenches) == {"foot"}, "end of the topic")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({f"contacts.{'y' * 240}.link": "foot"}, "yyy"),
        ({"contacts.a-b.link": "foot", "contacts.a_b.link": "foot"}, "a_b"),
        ({"sensors.9.kind": "imu", "sensors.9.link": "foot"}, "name of a sensor: got '9'"),
        ({"sensors.a b.kind": "imu", "sensors.a b.link": "foot"}, "name of a sensor: got 'a b'"),
        ({"contacts.tip.1.link": "foot"}, "name in contacts: got 'tip.1', allowed: a name without dots"),
        (
            {"sensors.contact_wrenches.kind": "force_torque", "sensors.contact_wrenches.link": "foot"}
            | {"contacts.wrench.link": "foot"},
            "wrench",
        ),
    ],
    ids=["long contact", "two of one topic", "digit", "space", "dot", "contact and sensor"],
)
def test_configured_names_are_checked(tmp_path, parameters, expected):
    """One line, exit code 1."""
    lines = ["/**:", "  ros__parameters:"]
    text = CONFIG.read_text()
    for name, value in parameters.items():
        lines.append(f"    {name}: {value}")
    (tmp_path / "more.yaml").write_text("\n".join(lines))
    (tmp_path / "leg.yaml").write_text(text)
    words = [*arguments(tmp_path / "leg.yaml"), "--params-file", tmp_path / "more.yaml"]
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        assert process.wait(30.0) == 1, process.stderr
    finally:
        process.stop()
    (line,) = process.complaints.splitlines()
    assert line.startswith("constrained_sim: ") and expected in line


def test_parameters_of_another_node_do_not_make_a_robot(tmp_path):
    """One line, which says whose parameters are looked for."""
    text = CONFIG.read_text().replace("/**:", "leg_simulator:")
    (tmp_path / "leg.yaml").write_text(text)
    process = Process(tmp_path, free_domain(), "simulator", *arguments(tmp_path / "leg.yaml"))
    try:
        assert process.wait(30.0) == 1, process.stderr
    finally:
        process.stop()
    (line,) = process.complaints.splitlines()
    assert "where /**: or /constrained_sim: stands above" in line


@pytest.mark.parametrize("name", ["solver", "real_time_factor", "dt", "use_sim_time", "nonsense", "", "x" * 100_000])
def test_parameters_of_any_type_are_answered(wrenches, name):
    """Types that there are and types that there are not, for every kind of name; nothing changes."""
    before = wrenches.call(Step, "step", periods=1)
    assert before.success
    for kind in (*range(12), 255):
        value = ParameterValue(type=kind, string_value="none such", double_value=math.nan, string_array_value=["a"])
        message = ParameterMessage(name=name, value=value)
        results = wrenches.call(SetParameters, "set_parameters", parameters=[message, message]).results
        results.append(wrenches.call(SetParametersAtomically, "set_parameters_atomically", parameters=[message]).result)
        assert len(results) == 3
        allowed = name == "use_sim_time" and kind == ParameterType.PARAMETER_BOOL
        for result in results:
            assert result.successful == allowed
            assert allowed or result.reason
    assert wrenches.call(Step, "step", periods=1).success


def test_steps_before_one_that_fails_are_published(simulate):
    """An absurd effort acts three steps after its command: the first period ends there, and is published so far.

    Its state, forces and clock have the stamp of the last good step, and the forces say how long their period is.
    """
    limits = {"robot__joints__hip__effort": 1e300}
    with simulate(clock_mode="fast", start_paused=True, control_period=0.01, command_delay=0.003, **limits) as sim:
        sim.meet()
        sim.reset()
        sim.forget()
        sim.command(["hip"], [1e250])
        sim.settle()
        answer = sim.call(Step, "step", periods=1)
        assert not answer.success and "step 3" in answer.message
        assert answer.step == 3
        end = START_TIME * 1e9 + 3_000_000
        sim.wait_for(lambda: sim.states and sim.forces and sim.clock, "what the steps gave")
        assert (
            stamp(sim.states[-1]) == stamp(sim.forces[-1]) == stamp(sim.clock[-1]) == nanoseconds(answer.stamp) == end
        )
        assert sim.forces[-1].period.nanosec == 3_000_000
        assert all(map(math.isfinite, [*sim.states[-1].position, *sim.states[-1].velocity]))
        status = sim.wait_for(lambda: [s for s in sim.status if s.state == SimulationStatus.FROZEN], "status")[-1]
        assert status.step == 3
        sim.reset()
        sim.step()


def test_namesake_is_told_of(simulate, tmp_path):
    """The first of two nodes of a name warns, in its log and in the diagnostics, and says when it is alone again."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        heard = sim.client.subscribe(DiagnosticArray, "/diagnostics")
        sim.wait_for(lambda: sim.client.node.count_publishers("/clock"), "clock of the first")
        second = Process(tmp_path, sim.domain, "simulator", *arguments(start_paused=True))
        try:
            sim.wait_for(
                lambda: [
                    m for m in heard if m.status[0].level == DiagnosticStatus.WARN and NODE in m.status[0].message
                ],
                "diagnostics",
                timeout=30.0,
            )
            sim.wait_for(lambda: f"name {NODE}" in sim.process.stderr and f"name {NODE}" in second.stderr, "both logs")
        finally:
            second.stop()
        heard.clear()
        sim.wait_for(lambda: [m for m in heard if m.status[0].level == DiagnosticStatus.OK], "all well", timeout=30.0)


def test_duration_ends_a_waiting_lockstep(tmp_path):
    """Nobody answers: the node ends by itself, says why, and its exit code tells of it."""
    words = arguments(clock_mode="lockstep", duration=1.0, lockstep_timeout=1.0)
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        begun = time.monotonic()
        assert process.wait(40.0) == 1
        assert time.monotonic() - begun >= 1.0
    finally:
        process.stop()
    assert "lockstep: no answer" in process.stderr.splitlines()[-1]


def test_commands_for_joints_without_actuator(simulate):
    """They are taken for the others and warned of once; a controller that echoes the states drives lock-step on."""
    with simulate(clock_mode="lockstep", start_paused=False) as sim:
        for number in range(5):
            sim.wait_for(lambda n=number: len({stamp(s) for s in sim.states}) > n, "next state", timeout=20.0)
            state = sim.states[-1]
            sim.command(list(state.name), [9.0, 0.25, -0.5], stamp=state.header.stamp)
        sim.wait_for(lambda: list(sim.states[-1].effort) == [0.0, 0.25, -0.5], "effect")
        assert sim.process.stderr.count("commands for slider have no effect") == 1
        status = sim.wait_for(lambda: sim.status, "status")[-1]
        assert status.actuated_joints == ["hip", "knee"]
        assert status.commands_refused == 0


def test_each_reason_of_a_refusal_is_logged(simulate):
    """At once, however soon after another one; of those that come again, how many there were and the last one."""
    with simulate(clock_mode="realtime", start_paused=True) as sim:
        sim.meet()
        for _ in range(3):
            sim.command(["tail"], [0.0])
            sim.command(["hip"], [math.nan])
        sim.publish("/constrained_sim/commands", Float64MultiArray(data=[1.0]))
        sim.wait_for_refusals(7)
        told = (
            "refused: unknown actuated joint 'tail'",
            "refused: effort of a joint command",
            "refused: efforts of hip",
        )
        sim.wait_for(lambda: all(text in sim.process.stderr for text in told), "three reasons", timeout=5.0)
        sim.wait_for(lambda: "more, the last one: effort" in sim.process.stderr, "the others", timeout=5.0)
        assert [sim.process.stderr.count(text) for text in told] == [1, 1, 1]
        more = re.findall(r"refused (\d+) more", sim.process.stderr)
        assert sum(map(int, more)) == 4


def test_refusals_do_not_fill_the_log():
    """Of a mistake that varies in every message, a few are told of, and one line each second."""
    lines = []
    refusals = Refusals(SimpleNamespace(warning=lines.append))
    for second in range(3):
        for number in range(1000):
            refusals.tell(f"{second} {number}")
        refusals.tell_more()
    assert lines[:REASONS] == [f"refused: 0 {number}" for number in range(REASONS)]
    assert lines[REASONS:] == [
        f"refused {1000 - REASONS} more, the last one: 0 999",
        *(f"refused 1000 more, the last one: {second} 999" for second in (1, 2)),
    ]
    refusals.tell_more()
    refusals.tell("2 999")
    assert lines[-1] == "refused: 2 999"


def test_strict_commands(simulate):
    """With strict_commands they are refused, and counted."""
    with simulate(clock_mode="realtime", start_paused=True, strict_commands=True) as sim:
        sim.meet()
        sim.pause(False)
        sim.command(["slider", "hip"], [9.0, 0.25])
        sim.wait_for(lambda: sim.status and sim.status[-1].commands_refused == 1, "count of the refusal")
        assert not any(sim.states[-1].effort)

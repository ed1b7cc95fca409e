"""Whatever is sent to the node: it answers every call, stays alive, and its state stays finite."""

import math
import os
import re

import pytest
from geometry_msgs.msg import WrenchStamped
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from ros.live import NODE
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from constrained_sim import srv
from constrained_sim.ros.message_json import SEQUENCE, message_type

CALLS = int(os.environ.get("CONSTRAINED_SIM_FUZZ_CALLS", "1000"))
"""benchmarks/node.py asks for more."""

PARAMETERS = ["solver", "real_time_factor", "stepper", "dt"]
LINKS = ["hip", "knee", "slider", "foot", "lower_leg", "world"]
NAMES = [*PARAMETERS, *LINKS, "direct", "null_space", "rigid", "compliant", "newton"]
NASTY = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-320, 1e308, -1e308, 1e30, 1.0, -1.0]

text = st.one_of(
    st.sampled_from(["", *NAMES, "point_anchor", "frame_anchor", "joint_coupling", "joint_velocity"]),
    st.sampled_from(["x" * 100_000, "../../etc/passwd", "$(reboot)", "{{ x }}", "\N{SNOWMAN}", "a\nb", "%s%n"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)
real = st.one_of(st.sampled_from(NASTY), st.floats(-10.0, 10.0), st.floats())
INTEGERS = re.compile(r"(u?)int(\d+)")


def primitive(kind):
    """Return a strategy for values of a primitive type."""
    whole = INTEGERS.fullmatch(kind)
    if whole:
        bits = int(whole[2])
        low, high = (0, 2**bits - 1) if whole[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return st.one_of(st.sampled_from([0, 1, low, high]), st.integers(low, high))
    return {
        "boolean": st.booleans(),
        "double": real,
        "float": st.floats(width=32),
        "octet": st.binary(min_size=1, max_size=1),
    }.get(kind, text)


def value_of(kind):
    """Return a strategy for the values of a field."""
    collection = SEQUENCE.fullmatch(kind)
    if collection:
        item = collection["item"] or collection["fixed"]
        return st.one_of(st.lists(value_of(item), max_size=4), st.just([]))
    return message_of(message_type(kind)) if "/" in kind else primitive(kind)


def message_of(kind):
    """Return a strategy for messages of `kind`; most fields are as in a fresh message, so that some are accepted."""
    fields = {name: value_of(field) for name, field in kind.get_fields_and_field_types().items()}
    if not fields:
        return st.just(kind())

    def build(values):
        message = kind()
        for name, value in values.items():
            setattr(message, name, value)
        return message

    return st.fixed_dictionaries({}, optional=fields).map(build)


SERVICES = {
    "add_contact": srv.AddContact,
    "remove_contact": srv.RemoveContact,
    "list_contacts": srv.ListContacts,
    "add_constraint": srv.AddConstraint,
    "remove_constraint": srv.RemoveConstraint,
    "list_constraints": srv.ListConstraints,
    "apply_wrench": srv.ApplyWrench,
    "set_solver": srv.SetSolver,
    "reset": srv.Reset,
    "set_parameters": SetParameters,
    "set_parameters_atomically": SetParametersAtomically,
    "get_parameters": GetParameters,
    "get_parameter_types": GetParameterTypes,
    "describe_parameters": DescribeParameters,
    "list_parameters": ListParameters,
}
OPTIONS = {
    "clock_mode": "fast",
    "start_paused": True,
    "control_period": 0.002,
    "contact_wrenches": True,
    "joint_limits": True,
    "velocity_limits": True,
    "command_delay": 0.002,
    "command_timeout": 0.05,
    "timeout_action": "damping",
    "status_rate": 1000.0,
    "marker_rate": 1000.0,
    "frame_prefix": "robot/",
    "sensors__body__kind": "imu",
    "sensors__body__link": "carriage",
    "sensors__ankle__kind": "force_torque",
    "sensors__ankle__link": "foot",
    "scene__table__kind": "box",
    "scene__table__size": [0.2, 0.2, 0.2],
    "scene__table__position": [1.0, 0.0, 0.1],
}
"""All that a node can be asked to do beside."""

TOPICS = {
    "/joint_commands": JointState,
    f"{NODE}/commands": Float64MultiArray,
    f"{NODE}/external_wrench": WrenchStamped,
}

call = st.sampled_from(sorted(SERVICES)).flatmap(
    lambda name: st.tuples(st.just(name), message_of(SERVICES[name].Request))
)
publication = st.sampled_from(sorted(TOPICS)).flatmap(
    lambda name: st.tuples(st.just(name), st.one_of(message_of(TOPICS[name]), st.binary(max_size=200)))
)


@pytest.fixture(scope="module")
def fuzzed(simulate, tmp_path_factory):
    """A node with every option on that steps between the calls."""
    with simulate(record=tmp_path_factory.mktemp("fuzz") / "bag", **OPTIONS) as sim:
        sim.meet()
        for name, kind in TOPICS.items():
            sim.publish(name, kind())  # bytes, which are of no type, can follow
        yield sim


def step(sim):
    """Run a period; a simulation that froze, as one with absurd masses or forces may, is reset."""
    answer = sim.call(srv.Step, "step", periods=1)
    if not answer.success:
        assert "frozen" in answer.message or "failed" in answer.message, answer.message
        assert sim.call(srv.Reset, "reset").success
    for state in sim.states[-1:]:
        assert all(map(math.isfinite, [*state.position, *state.velocity, *state.effort]))
    sim.forget()


def test_node_survives_everything(fuzzed):
    """Thousands of calls and messages with random and nasty fields: each call is answered with a text where refused."""
    counts = {"calls": 0, "accepted": 0}

    @settings(
        max_examples=CALLS,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(call, call, publication))
    def attack(what):
        name, message = what
        if name in TOPICS:
            fuzzed.publish(name, message)
        else:
            fields = {field: getattr(message, field) for field in message.get_fields_and_field_types()}
            answer = fuzzed.call(SERVICES[name], name, **fields)
            if hasattr(answer, "success"):
                assert answer.success or answer.message
                assert "internal error" not in answer.message, answer.message
                counts["accepted"] += answer.success
            for result in [*getattr(answer, "results", []), *filter(None, [getattr(answer, "result", None)])]:
                assert getattr(result, "successful", True) or result.reason
        counts["calls"] += 1
        if counts["calls"] % 5 == 0:
            step(fuzzed)

    attack()
    assert counts["calls"] >= CALLS
    assert 0.02 * CALLS < counts["accepted"] < 0.98 * CALLS
    assert fuzzed.call(srv.Reset, "reset").success
    assert fuzzed.call(SetBool, "pause", data=True).success
    step(fuzzed)
    assert fuzzed.process.popen.poll() is None
    for unforeseen in ("a callback failed", "a message of", "Traceback"):
        assert unforeseen not in fuzzed.process.stderr

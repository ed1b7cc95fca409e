"""Positions and velocities on joint_commands: followed by the gains of the parameters, as the core does it."""

import json
import math
import time

import numpy as np
import pytest
from ros.live import CONFIG
from sensor_msgs.msg import JointState

from constrained_sim import Servo, load_config
from constrained_sim.config import read_config
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.parameter_file import load_parameters
from constrained_sim.ros.cdr import serialise
from constrained_sim.ros.command_reader import CommandReader
from constrained_sim.ros.commands import WARN_PERIOD
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.message_json import commands_from_json, commands_to_plain
from constrained_sim.ros.world import World
from constrained_sim.servo import JointCommand

NAN = math.nan


@pytest.fixture
def reader():
    """Reads commands of the leg, whose efforts are those of hip and knee."""
    return CommandReader(JointNames(load_config(CONFIG).robot))


def message(**fields):
    return serialise(JointState(name=["knee", "hip"], **fields))


def same(first, second):
    """Whether two sets of commands are equal, NaN to NaN."""
    return first.keys() == second.keys() and all(np.array_equal(first[i], second[i], equal_nan=True) for i in first)


def test_each_field_may_be_left_out(reader):
    """And each command is read a second time by its form, in other orders of forms too."""
    given = {
        "effort": {"effort": [1.0, 2.0]},
        "position": {"position": [0.1, 0.2]},
        "velocity": {"velocity": [0.3, 0.4]},
        "all": {"position": [0.1, NAN], "velocity": [NAN, 0.4], "effort": [1.0, 2.0]},
        "some": {"position": [0.1, NAN], "velocity": [NAN, NAN], "effort": [NAN, 2.0]},
        "one": {"position": [NAN, 0.2]},
    }
    expected = {
        "effort": {1: JointCommand(1.0), 0: JointCommand(2.0)},
        "position": {1: JointCommand(0.0, 0.1), 0: JointCommand(0.0, 0.2)},
        "velocity": {1: JointCommand(0.0, NAN, 0.3), 0: JointCommand(0.0, NAN, 0.4)},
        "all": {1: JointCommand(1.0, 0.1, NAN), 0: JointCommand(2.0, NAN, 0.4)},
        "some": {1: JointCommand(0.0, 0.1, NAN), 0: JointCommand(2.0)},
        "one": {0: JointCommand(0.0, 0.2)},
    }
    for what in (*given, *reversed(given)):
        _, commands = reader.read(message(**given[what]))
        assert same(commands, expected[what]), what
        assert same(commands_from_json(json.dumps(commands_to_plain(commands))), commands)
    modes = [expected["all"][0].mode, expected["position"][0].mode, expected["effort"][0].mode]
    assert modes == ["velocity", "position", "effort"]
    assert JointCommand(0.0, 1.0, 1.0).mode == "position+velocity"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "names alone"),
        ({"position": [0.1]}, "position"),
        ({"position": [0.1, math.inf]}, "position"),
        ({"velocity": [0.1, -math.inf]}, "velocity"),
        ({"effort": [0.1, NAN]}, "effort"),
        ({"position": [0.1, 0.2], "effort": [0.1]}, "effort"),
    ],
    ids=str,
)
def test_what_is_no_command_is_refused(reader, fields, named):
    """Where the form is known, too."""
    reader.read(message(position=[0.1, 0.2]))
    reader.read(message(effort=[0.1, 0.2]))
    reader.read(message(velocity=[0.1, 0.2]))
    with pytest.raises(InvalidValue, match=named):
        reader.read(message(**fields))


def test_a_command_without_names_is_refused(reader):
    """It is not the number of values that is wrong."""
    with pytest.raises(InvalidValue, match=r"name of a joint command: got \[\], allowed: one for each effort: 2"):
        reader.read(serialise(JointState(effort=[0.1, 0.2])))


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"effort": [1.0, NAN]}, "effort of a joint command: got {'hip': nan}, allowed: finite numbers"),
        ({"effort": [NAN, math.inf]}, "effort of a joint command: got {'knee': nan, 'hip': inf}"),
        (
            {"position": [-math.inf, NAN]},
            "position of a joint command: got {'knee': -inf}, allowed: finite numbers, or NaN",
        ),
        ({"position": [0.0, 0.0], "velocity": [NAN, math.inf]}, "velocity of a joint command: got {'hip': inf}"),
    ],
)
def test_a_refusal_names_the_joints_whose_numbers_are_wrong(reader, fields, refusal):
    """Those and no others, of a command of a new form as of a known one."""
    for _ in range(2):
        with pytest.raises(InvalidValue) as caught:
            reader.read(message(**fields))
        assert refusal in str(caught.value)
        reader.read(message(**{what: [0.0, 0.0] for what in fields}))


def test_a_world_without_gains_takes_efforts_alone():
    """A target is refused, and the command before it goes on."""
    parameters = load_parameters(CONFIG)
    world = World(read_config({name: value for name, value in parameters.items() if name != "servo"}))
    world.command({0: JointCommand(0.25)})
    with pytest.raises(InvalidValue, match="no servo"):
        world.command({0: JointCommand(0.0, 0.1)})
    assert world.advance().result.tau_applied[0] == 0.25
    partly = World(read_config(parameters | {"servo": {"hip": {"stiffness": 60.0}}}))
    with pytest.raises(InvalidValue, match="position of joint 'knee'"):
        partly.command({1: JointCommand(0.0, 0.1)})
    with pytest.raises(InvalidValue, match="velocity of joint 'hip'"):
        partly.command({0: JointCommand(0.0, 0.1, 0.2)})
    with pytest.raises(UnknownName, match="ankle"):
        read_config(parameters | {"servo": {"ankle": {"stiffness": 60.0}}})


def test_the_node_follows_as_the_core_does(stepped):
    """Bit by bit; a joint that gets an effort is in another mode, and the status says so."""
    config = load_config(CONFIG)
    sim, servo = config.simulator(), Servo(config.robot, 60.0, 1.5)
    stepped.client.publish("/joint_commands", JointState(name=["hip"], position=[0.7], velocity=[NAN], effort=[0.1]))
    stepped.wait_for(lambda: stepped.step()[0].effort[1] != 0.0, "effect of the command")
    for _ in range(20):
        stepped.step()
    targets, begun = servo.targets([0.7, NAN], effort=[0.1, 0.0]), False
    for state in stepped.states:
        begun = begun or state.effort[1] != 0.0
        result = sim.step(targets if begun else None)
        assert list(state.position) == sim.state.q.tolist()
        assert list(state.effort[1:]) == result.tau_applied.tolist()
    status = stepped.fresh_status()
    assert dict(zip(status.actuated_joints, status.command_modes, strict=True)) == {"hip": "position", "knee": "effort"}
    stepped.command(["hip"], [0.5])
    stepped.wait_for(lambda: stepped.step()[0].effort[1] == 0.5, "effect of an effort")


def test_commanded_positions_beyond_limits_are_told_now_and_then(stepped):
    """As of degrees: once within some seconds, whatever is sent again; the command is followed."""
    sent, begin = 0, time.monotonic()

    def told():
        nonlocal sent
        stepped.client.publish("/joint_commands", JointState(name=["hip"], position=[50.0]))
        stepped.step()
        sent += 1
        return stepped.process.stderr.count("hip at 50, limits ")  # the node is shared: a reset elsewhere asks for 40

    stepped.wait_for(told, "warning of a position beyond its limits")
    while sent < 20:
        told()
    assert told() <= 1 + (time.monotonic() - begin) // WARN_PERIOD < sent

"""Parameters of the node: described in full, and enough to run the same simulation again."""

import sys
from dataclasses import fields

import pytest
import yaml
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters, GetParameterTypes, ListParameters, SetParameters
from rclpy.parameter import Parameter, parameter_value_to_python
from ros.live import CONFIG, NODE, START_TIME, stamp

from constrained_sim import load_config
from constrained_sim.options import NodeOptions, SimulationOptions
from constrained_sim.ros.group_parameters import group_description


def dump(sim):
    """Return all parameters, nested as `ros2 param dump` writes them."""
    names = [name for name in sim.call(ListParameters, "list_parameters").result.names if "qos" not in name]
    values = sim.call(GetParameters, "get_parameters", names=names).values
    nested = {}
    for name, value in zip(names, values, strict=True):
        *groups, key = name.split(".")
        level = nested
        for group in groups:
            level = level.setdefault(group, {})
        value = parameter_value_to_python(value)
        level[key] = value if isinstance(value, (str, bool, int, float)) else list(value)
    return {NODE: {"ros__parameters": nested}}


def test_dump_reproduces_the_run(simulate, tmp_path):
    """A node that reads the parameters of another simulates the same, bit by bit, whatever was overridden."""
    with simulate(
        clock_mode="fast", start_paused=True, solver="projected", factorization="''", initial__positions__hip=0.5
    ) as sim:
        sim.meet()
        sim.reset()
        parameters = dump(sim)
        state, forces = sim.step(250)
        expected = list(state.position), list(state.velocity), forces.contacts[0].normal_force
        assert parameters[NODE]["ros__parameters"]["solver"] == "projected"
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump(parameters))
    assert load_config(file).simulation.solver == "projected"  # without ROS too
    with simulate(config=file) as sim:
        sim.meet()
        assert stamp(sim.reset()) == START_TIME * 1e9
        state, forces = sim.step(250)
        assert (list(state.position), list(state.velocity), forces.contacts[0].normal_force) == expected


@pytest.mark.parametrize("name", ["real_time_factor", "solver", "dt"])
def test_parameters_cannot_be_deleted(stepped, name):
    """What the node runs on stays."""
    before = stepped.call(GetParameters, "get_parameters", names=[name]).values
    (result,) = stepped.call(SetParameters, "set_parameters", parameters=[ParameterMessage(name=name)]).results
    assert not result.successful
    assert stepped.call(GetParameters, "get_parameters", names=[name]).values == before


def test_what_is_not_declared_has_no_value_and_no_type(stepped):
    """Who asks for it is answered, and cannot set it."""
    assert list(stepped.call(GetParameterTypes, "get_parameter_types", names=["nobody"]).types) == [0]
    (value,) = stepped.call(GetParameters, "get_parameters", names=["nobody"]).values
    assert value.type == ParameterType.PARAMETER_NOT_SET
    (result,) = stepped.parameters(Parameter("nobody", value=1))
    assert not result.successful and result.reason.startswith("unknown parameter 'nobody'")


@pytest.fixture(scope="module")
def described(simulate):
    """Descriptors of all options by name."""
    names = [f.name for kind in (SimulationOptions, NodeOptions) for f in fields(kind) if f.default != ()]
    with simulate(clock_mode="fast", start_paused=True, lockstep_timeout=3) as sim:
        descriptors = sim.call(DescribeParameters, "describe_parameters", names=names).descriptors
    return dict(zip(names, descriptors, strict=True))


def test_every_option_is_described(described):
    """Type, description, and whether it can change."""
    for name, descriptor in described.items():
        assert descriptor.type != ParameterType.PARAMETER_NOT_SET, name
        assert len(descriptor.description) > 10, name
        assert descriptor.read_only is not descriptor.dynamic_typing
    changeable = {name for name, descriptor in described.items() if not descriptor.read_only}
    assert changeable == {"solver", "factorization", "stepper", "contact_method", "real_time_factor"}


def test_ranges_are_those_of_the_checks(described):
    """Numbers have a range, names a list; a whole number is taken where a real one is wanted."""
    assert described["dt"].type == ParameterType.PARAMETER_DOUBLE
    assert described["dt"].floating_point_range[0].from_value == sys.float_info.min * sys.float_info.epsilon
    assert described["duration"].floating_point_range[0].from_value == 0.0
    assert described["lockstep_timeout"].type == ParameterType.PARAMETER_DOUBLE
    assert described["lockstep_commands"].integer_range[0].from_value == 1
    assert described["clock_mode"].additional_constraints == "one of realtime, fast, lockstep"
    assert "null_space" in described["solver"].additional_constraints


@pytest.mark.parametrize("robot", ["leg", "quadruped", "four_bar", "cassie"])
def test_groups_are_described(robot):
    """Every key that a shipped configuration has in a group means something, and no option is taken for one."""
    options = {option.name for kind in (SimulationOptions, NodeOptions) for option in fields(kind)}
    nested = yaml.safe_load(CONFIG.with_name(f"{robot}.yaml").read_text())["/**"]["ros__parameters"]
    names = [name for name in flat(nested) if name not in options]
    assert names and all(group_description(name) for name in names)
    assert not any(group_description(name) for name in options)


def flat(nested, prefix=""):
    """Yield the names of the values in nested mappings, with dots."""
    for key, value in nested.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def test_groups_are_read_only_and_say_what_they_mean(stepped):
    """As `ros2 param describe` shows them; setting one is refused, and the value stays."""
    names = ["contacts.foot.friction", "robot.urdf", "initial.positions.hip"]
    descriptors = stepped.call(DescribeParameters, "describe_parameters", names=names).descriptors
    assert all(descriptor.read_only and descriptor.description for descriptor in descriptors)
    assert "Coulomb" in descriptors[0].description
    (result,) = stepped.parameters(Parameter("contacts.foot.friction", value=0.1))
    assert not result.successful
    (value,) = stepped.call(GetParameters, "get_parameters", names=names[:1]).values
    assert value.double_value == 0.8

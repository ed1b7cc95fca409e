"""Between the flat parameters of a ROS node and the nested ones of a configuration."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from constrained_sim.exceptions import ConfigError
from constrained_sim.options import CHANGEABLE, NodeOptions, SimulationOptions
from constrained_sim.parameter_file import NOT_OURS
from constrained_sim.ros.attribute_docs import attribute_docs

NAMED = ("contacts", "constraints", "sensors", "scene", "objects")
"""Groups of which each member has a name of the user's, and values alone below it."""


REAL = [
    name
    for name in CHANGEABLE
    for kind in (SimulationOptions, NodeOptions)
    if isinstance(getattr(kind, name, None), float)
]
"""Options that can be changed and are real numbers."""


def nested_parameters(node: Node) -> dict[str, Any]:
    """Return the parameters of `node` as nested mappings: ``contacts.foot.link`` becomes three levels.

    Raises:
        ConfigError: a name that is both a value and a group.
    """
    return nested_values(node.get_parameters_by_prefix("").values())


def nested_values(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the values of `parameters` as nested mappings, without those that are not set and those of every node.

    Raises:
        ConfigError: a name that is both a value and a group.
    """
    nested: dict[str, Any] = {}
    for parameter in parameters:
        name = parameter.name
        if name.split(".")[0] in NOT_OURS or parameter.type_ == Parameter.Type.NOT_SET:
            continue
        *groups, key = name.split(".")
        level = nested
        for group in groups:
            level = level.setdefault(group, {})
            if not isinstance(level, dict):
                raise ConfigError(f"parameter {name!r}: {group!r} is a value, not a group")
        value = parameter.value
        level[key] = value if isinstance(value, (str, bool, int, float)) else tuple(value)
    return nested


def check_group_names(node: Node) -> None:
    """Refuse names with dots of what the user names: there would be another level of parameters.

    Raises:
        ConfigError: such a name.
    """
    for name in node.get_parameters_by_prefix(""):
        group, *levels = name.split(".")
        if group in NAMED and len(levels) > 2:
            allowed = "a name without dots, which separate the levels of ROS parameters"
            raise ConfigError(f"name in {group}: got {'.'.join(levels[:-1])!r}, allowed: {allowed}")


def let_parameters_change(node: Node) -> None:
    """Let what a file or command line gave be mended before it is read: set to another type, too, or deleted."""
    for name in node.get_parameters_by_prefix(""):
        if name.split(".")[0] not in NOT_OURS:
            node.set_descriptor(name, ParameterDescriptor(dynamic_typing=True))


def declare_options(node: Node) -> None:
    """Declare every option with its type, range and description; what a file or command line gave is kept."""
    for kind in (SimulationOptions, NodeOptions):
        documentation = attribute_docs(kind)
        for option in fields(kind):
            # An empty list has no type in a parameter, so it is left out: absent means empty.
            if option.default == ():
                continue
            descriptor = _descriptor(option, documentation[option.name])
            if not node.has_parameter(option.name):
                node.declare_parameter(option.name, option.default, descriptor)
                continue
            convert: Callable[[Any], Any] = type(option.default)  # 1 means 1.0 where wanted
            node.set_parameters([Parameter(option.name, value=convert(node.get_parameter(option.name).value))])
            node.set_descriptor(option.name, descriptor)


def of_wanted_type(parameter: Parameter) -> Parameter:
    """Return `parameter`; a whole number for an option that can be changed and is a real one becomes one."""
    is_whole = parameter.type_ == Parameter.Type.INTEGER
    return Parameter(parameter.name, value=float(parameter.value)) if is_whole and parameter.name in REAL else parameter


def check_types(values: Mapping[str, Any]) -> None:
    """Check the types of `values` of parameters that can be changed.

    Raises:
        ConfigError: a value of another type.
    """
    defaults = {option.name: option.default for kind in (SimulationOptions, NodeOptions) for option in fields(kind)}
    for name, value in values.items():
        wanted, is_bool = type(defaults[name]), isinstance(value, bool)
        if is_bool or not isinstance(value, (int, float) if wanted is float else wanted):
            raise ConfigError(f"{name}: got {value!r}, allowed: a {'number' if wanted is float else 'string'}")


def _descriptor(option: Field[Any], description: str) -> ParameterDescriptor:
    """Return what ``ros2 param describe`` tells of an option."""
    limits, is_integer = option.metadata, isinstance(option.default, int)
    descriptor = ParameterDescriptor(
        type=Parameter.Type.from_parameter_value(option.default).value,
        description=description,
        read_only=option.name not in CHANGEABLE,
        dynamic_typing=option.name in CHANGEABLE,  # a wrong type is refused by us: what was given, what is allowed
    )
    if "allowed" in limits:
        descriptor.additional_constraints = f"one of {', '.join(limits['allowed'])}"
    elif "lower" in limits and is_integer:
        descriptor.integer_range = [IntegerRange(from_value=limits["lower"], to_value=2**31 - 1, step=1)]
    elif "lower" in limits:
        lower = math.nextafter(limits["lower"], math.inf) if limits["open"] else limits["lower"]
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=lower, to_value=limits.get("upper", sys.float_info.max))
        ]
    return descriptor

"""ROS messages as JSON and back; floating-point numbers keep every bit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from constrained_sim.ros.message_types import message_type
from constrained_sim.servo import JointCommand

SEQUENCE = re.compile(r"sequence<(?P<item>.+?)(, \d+)?>|(?P<fixed>.+)\[\d+\]")


def to_json(message: Any) -> str:
    """Return the fields of `message` as a JSON object."""
    return json.dumps(to_plain(message))


def from_json(kind: type, text: str) -> Any:
    """Return a message of `kind` from what :func:`to_json` gave."""
    return _filled(kind(), json.loads(text))


def to_plain(value: Any) -> Any:
    """Return `value`, a message or a part of one, as mappings, lists and numbers."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: to_plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, (str, bool, int, float)):
        return value
    return [item.item() if isinstance(item, np.generic) else to_plain(item) for item in value]


def commands_to_plain(commands: Mapping[int, JointCommand]) -> dict[str, Any]:
    """Return joint commands by index: efforts alone, or effort, position and velocity with None for what is NaN."""
    return {
        str(index): command.effort
        if command.mode == "effort"
        else [None if math.isnan(value) else value for value in command]
        for index, command in commands.items()
    }


def commands_from_json(text: str) -> dict[int, JointCommand]:
    """Return the joint commands in a JSON object of what :func:`commands_to_plain` gave."""
    return {
        int(index): JointCommand(*(math.nan if part is None else part for part in value))
        if isinstance(value, list)
        else JointCommand(value)
        for index, value in json.loads(text).items()
    }


def _filled(message: Any, values: dict[str, Any]) -> Any:
    for name, kind in message.get_fields_and_field_types().items():
        if name not in values:
            continue  # what was recorded before there was this field
        value, present = values[name], getattr(message, name)
        collection = SEQUENCE.fullmatch(kind)
        if hasattr(present, "get_fields_and_field_types"):
            value = _filled(present, value)
        elif collection and "/" in (item := collection["item"] or collection["fixed"]):
            value = [_filled(message_type(item)(), part) for part in value]
        setattr(message, name, value)
    return message

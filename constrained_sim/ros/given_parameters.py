"""Parameters on the command line: files and single values that ROS reads on its own."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rclpy.node import Node

from constrained_sim.exceptions import ConfigError
from constrained_sim.parameter_file import load_parameters, read_value, read_yaml

FILES, VALUES = ("--params-file",), ("-p", "--param")
"""Options of ROS before them."""


def check_parameter_files(arguments: Sequence[str]) -> None:
    """Read the files named after ``--params-file`` with a YAML parser that says what is wrong with them, and where.

    Raises:
        ConfigError: a file that cannot be read or is not valid.
    """
    for option, path in itertools.pairwise(arguments):
        if option in FILES:
            read_yaml(path)


def check_overrides(arguments: Sequence[str], node: Node) -> None:
    """Check that `node` has the value of each parameter that was given last.

    ROS keeps one value of each type for a parameter, and takes the first of a truth value, a whole number, a number and
    a text, or of lists of these: with ``duration: 5`` in a file, ``-p duration:=2.5`` is lost without a word. An empty
    list has no type, so that it never takes the place of another one.

    Raises:
        ConfigError: a value is lost.
    """
    given: dict[str, list[Any]] = defaultdict(list)
    for name, value in _given(arguments):
        given[name].append(value)
    for name, values in given.items():
        taken, last = node.get_parameter(name).value, values[-1]
        taken = taken if taken is None or isinstance(taken, (bool, int, float, str)) else list(taken)
        is_lost = type(taken) is not type(last) or taken != last
        if is_lost and taken in values:
            allowed = f"a value of the type of {taken!r}, which was given before and which ROS keeps"
            raise ConfigError(f"parameter {name!r}: got {last!r}, allowed: {allowed}")


def _given(arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that `arguments` give to this node, in their order."""
    for option, word in itertools.pairwise(arguments):
        if option in VALUES:
            name, _, text = word.partition(":=")
            yield name.rpartition(":")[2], read_value(text)
        elif option in FILES:
            with contextlib.suppress(ConfigError):  # a file for other nodes
                yield from _flat(load_parameters(word))


def _flat(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

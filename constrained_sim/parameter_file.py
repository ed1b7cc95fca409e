"""Parameter files: YAML that holds the parameters of one node or several, read as ROS reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import yaml

from constrained_sim.exceptions import ConfigError, listed
from constrained_sim.text_file import read_regular_file
from constrained_sim.validation import path as checked_path

OURS = ("/**", "constrained_sim", "/constrained_sim")
"""Names under which a file of several nodes has the parameters of this one."""

NOT_OURS = ("use_sim_time", "start_type_description_service", "qos_overrides")
"""Parameters that ROS gives to every node; a dump has them."""


LARGEST_FILE = 500_000
"""Bytes of the largest file; a configuration has some thousand."""

MOST_VALUES = 15_000
"""Values and keys in a file, with aliases written out."""

DEEPEST = 50
"""Mappings and lists inside each other."""


class _Loader(yaml.SafeLoader):
    """Refuses what no configuration is: a key that is there twice, deep nesting, aliases that stand for thousands."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._count = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node; count what it holds, aliases written out."""
        event = self.peek_event()
        mark, is_alias = event.start_mark, isinstance(event, yaml.AliasEvent)
        self._depth += 1
        self._count += 1
        if self._depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"more than {DEEPEST} levels inside each other", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if is_alias and id(node) not in self._sizes:
            raise yaml.composer.ComposerError(None, None, "an alias inside what it stands for", mark)
        if not is_alias:
            self._sizes[id(node)] = 1 + sum(self._sizes[id(child)] for child in _children(node))
        if max(self._count, self._sizes[id(node)]) > MOST_VALUES:
            raise yaml.composer.ComposerError(None, None, f"more than {MOST_VALUES} values, aliases written out", mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping whose keys are all different."""
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if (key.tag, key.value) in seen:
                    text = f"the key {key.value[:80]!r} is there twice"
                    raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _children(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes in a node."""
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


NUMBERS = {
    "tag:yaml.org,2002:int": r"[-+]?(0o?[0-7]+|0x[0-9a-fA-F]+|[0-9]+)$",
    "tag:yaml.org,2002:float": r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$",
}
"""Numbers as ROS and YAML 1.2 know them: ``1e-3`` is one, ``1:30`` and ``1_000`` are text, and so are dates."""

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (*NUMBERS, "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in NUMBERS.items():
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list("-+.0123456789"))


def read_value(text: str) -> Any:
    """Return the value that `text` means in a parameter file.

    Raises:
        ConfigError: it is not valid YAML.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r} is not valid YAML: {' '.join(str(error).split())}") from error


def read_yaml(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Return the mapping that a YAML file holds.

    Raises:
        InvalidValue: no path.
        ConfigError: the file cannot be read, is too large, or is not YAML with a mapping in it.
    """
    name = checked_path("path of the configuration", path)
    what = repr(name[:300])
    try:
        text = read_regular_file(name, LARGEST_FILE)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"cannot read the configuration {what}: {error}") from error
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise ConfigError(f"{what} is XML, no parameter file: `constrained_sim new` writes one for a robot description")
    try:
        content = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{what} is not valid YAML: {' '.join(str(error).split())[:500]}") from error
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
        # PyYAML's constructors of numbers, dates and the like let through what Python says of odd ones.
        raise ConfigError(f"{what} holds a value that cannot be read: {' '.join(str(error).split())[:500]}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{what} must hold a mapping, got {type(content).__name__}")
    return content


def load_parameters(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the parameters in a configuration file, nested as they stand there.

    They are those of its only node, or the file itself; of several nodes those of :data:`OURS`, the later over the
    earlier.

    Raises:
        ConfigError: the file cannot be read, is not YAML with a mapping in it, or is for other nodes.
    """
    content = read_yaml(path)
    nodes = {
        str(name): value["ros__parameters"]
        for name, value in content.items()
        if isinstance(value, Mapping) and "ros__parameters" in value
    }
    for name, parameters in nodes.items():
        if not isinstance(parameters, Mapping):
            raise ConfigError(f"{str(path)!r}: ros__parameters of {name} must hold a mapping, got {parameters!r}")
    ours = [parameters for name, parameters in nodes.items() if len(nodes) == 1 or name in OURS]
    if nodes and not ours:
        raise ConfigError(
            f"{str(path)!r} has parameters of {', '.join(nodes)}, allowed: one node, or {', '.join(OURS)}"
        )
    for name, value in content.items():  # of a node as ROS writes them: /**, /left/sim
        if not nodes and str(name).startswith("/") and isinstance(value, Mapping):
            raise ConfigError(
                f"{str(path)!r}: below {name} got {listed(map(str, value))}, allowed: ros__parameters (two underscores)"
            )
    values: Mapping[str, Any] = {} if nodes else content
    for parameters in ours:
        values = _merged(values, parameters)
    return {name: value for name, value in values.items() if str(name).split(".")[0] not in NOT_OURS}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is in either: of two values that of `second`, of two mappings what this function makes of them."""
    both = dict(first)
    for name, value in second.items():
        old = both.get(name)
        both[name] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both

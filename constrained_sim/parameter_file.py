"""Parameter files: YAML that holds the parameters of one node or several, read as ROS reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from constrained_sim.exceptions import ConfigError

OURS = ("/**", "constrained_sim", "/constrained_sim")
"""Names under which a file of several nodes has the parameters of this one."""

NOT_OURS = ("use_sim_time", "start_type_description_service", "qos_overrides")
"""Parameters that ROS gives to every node; a dump has them."""


class _Loader(yaml.SafeLoader):
    """Reads ``1e-3`` as a number, as ROS does (YAML 1.2); in YAML 1.1 it needs a point."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)


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
        ConfigError: the file cannot be read or is not YAML with a mapping in it.
    """
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {str(path)!r}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{str(path)!r} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{str(path)!r} must hold a mapping, got {type(content).__name__}")
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
    values: Mapping[str, Any] = {} if nodes else content
    for parameters in ours:
        values = _merged(values, parameters)
    return {name: value for name, value in values.items() if str(name).split(".")[0] not in NOT_OURS}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is in either; where both have a value that of `second`, and mappings merged likewise."""
    both = dict(first)
    for name, value in second.items():
        old = both.get(name)
        both[name] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both

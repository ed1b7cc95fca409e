"""Parameter file and changed values of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrained_sim.cli.texts import wrong_use
from constrained_sim.exceptions import ConfigError
from constrained_sim.package_paths import find_config
from constrained_sim.parameter_file import read_value
from constrained_sim.shipped import no_robot, shipped_robots


def find_robot(text: str) -> Path:
    """Return the absolute path of the parameter file `text`, or of the shipped robot of this name.

    Raises:
        ConfigError: there is neither.
    """
    path = shipped_robots().get(text) or find_config(text).absolute()
    if not path.is_file():
        raise ConfigError(no_robot(text, Path()))
    return path


def read_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``NAME=VALUE``, by name; values are read as in a parameter file.

    Raises:
        BadParameter: no assignment, one that is no YAML, or one name twice.
    """
    values: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise wrong_use("--set", f"got {text!r}, allowed: NAME=VALUE, as contacts.foot.friction=0.3")
        if name in values:
            raise wrong_use("--set", f"got {name!r} twice, allowed: each parameter once")
        try:
            values[name] = read_value(value)
        except ConfigError as error:
            raise wrong_use("--set", error.message) from error
    return values

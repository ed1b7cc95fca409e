"""The controller that the command line names: one of the shipped robots', or a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from constrained_sim.config import Config
from constrained_sim.config_sections import DESCRIPTIONS
from constrained_sim.controllers import CONTROLLERS, ControlLaw
from constrained_sim.exceptions import ConfigError, MissingLibrary, UnknownName
from constrained_sim.package_paths import resolve_path
from constrained_sim.parameter_file import load_parameters
from constrained_sim.python_file import load_python_file
from constrained_sim.shipped import shipped_robots
from constrained_sim.validation import Array

Efforts = Callable[[float, Array, Array], Array]


def controller_of(text: str, file: Path, config: Config) -> Efforts | None:
    """Return the controller ``none``, ``MODE`` or ``FILE.py:FUNCTION`` of the robot in parameter file `file`.

    Modes are those of the shipped robot that the file describes, whatever the file is called.

    Raises:
        UnknownName: no such mode of the robot's controller, or the robot is none of those that are shipped.
        ConfigError: a file that cannot be loaded, or without such a function.
    """
    if text == "none":
        return None
    path, colon, name = text.rpartition(":")
    if colon:
        return _function(Path(path), name)
    law = _law_of(config)
    modes = () if law is None else law.MODES
    if law is None or text not in modes:
        raise UnknownName(f"controller of {file.stem}", text, (*modes, "none", "FILE.py:FUNCTION"))
    return law(config, text).efforts


def _law_of(config: Config) -> type[ControlLaw] | None:
    """Return the controller of the shipped robot that `config` describes; None: it describes another robot."""
    described = _described(config.parameters, config.folder)
    for name, file in shipped_robots().items():
        with suppress(ConfigError, MissingLibrary):  # what needs a package that is not there is not the robot at hand
            if name in CONTROLLERS and _described(load_parameters(file), file.parent) == described:
                return CONTROLLERS[name]
    return None


def _described(parameters: Mapping[str, Any], folder: Path) -> tuple[object, ...]:
    """Return what decides which joints and efforts a robot has: its description, its base, and what is actuated.

    Raises:
        ConfigError: the description is in a package that is not there.
        MissingLibrary: the same, of the package that shipped robots refer to.
    """
    robot = parameters.get("robot", {})
    files = tuple(str(resolve_path(robot[kind], folder)) for kind in DESCRIPTIONS if kind in robot)
    return files, bool(robot.get("floating_base")), list(robot.get("actuated_joints", ()))


def _function(path: Path, name: str) -> Efforts:
    """Return the function `name` of a Python file.

    Raises:
        ConfigError: the file cannot be loaded, or has none.
    """
    function = getattr(load_python_file(path), name, None)
    if not callable(function) or isinstance(function, type):
        what = "no such name" if function is None else f"a {type(function).__name__}"
        raise ConfigError(f"controller {name!r} in {str(path)!r}: got {what}, allowed: a function efforts(t, q, v)")
    found: Efforts = function
    return found

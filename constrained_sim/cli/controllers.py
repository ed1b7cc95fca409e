"""The controller that the command line names: one of the shipped robots', or a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from constrained_sim.config import Config
from constrained_sim.controllers import CONTROLLERS
from constrained_sim.exceptions import ConfigError, UnknownName
from constrained_sim.python_file import load_python_file
from constrained_sim.validation import Array

Efforts = Callable[[float, Array, Array], Array]


def controller_of(text: str, file: Path, config: Config) -> Efforts | None:
    """Return the controller ``none``, ``MODE`` or ``FILE.py:FUNCTION`` of the robot in parameter file `file`.

    Raises:
        UnknownName: no such mode of the robot's controller.
        ConfigError: a file that cannot be loaded, or without such a function.
    """
    if text == "none":
        return None
    path, colon, name = text.rpartition(":")
    if colon:
        return _function(Path(path), name)
    law = CONTROLLERS.get(file.stem)
    modes = () if law is None else law.MODES
    if law is None or text not in modes:
        raise UnknownName(f"controller of {file.stem}", text, (*modes, "none", "FILE.py:FUNCTION"))
    return law(config, text).efforts


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

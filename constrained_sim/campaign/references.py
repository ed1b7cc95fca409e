"""References ``MODULE:NAME`` and ``FILE.py:NAME`` in a study."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

from constrained_sim.exceptions import ConfigError
from constrained_sim.python_file import load_python_file


@functools.cache
def find_object(text: str, folder: Path) -> Any:
    """Return the object that `text` names; a file, and a module beside the study, are looked up in `folder`.

    Raises:
        ConfigError: no such form, a module that cannot be loaded, or one without this name.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise ConfigError(f"got {text!r}, allowed: MODULE:NAME or FILE.py:NAME")
    module = _file(folder / place) if place.endswith(".py") else _module(place, folder)
    if not hasattr(module, name):
        raise ConfigError(f"{text!r}: {place!r} has nothing of the name {name!r}")
    return getattr(module, name)


_file = functools.cache(load_python_file)
"""Of a file, whose module is made once."""


def _module(name: str, folder: Path) -> Any:
    """Return a module that can be imported, or lies in `folder`.

    Raises:
        ConfigError: neither, or an error in it.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"module {name!r} cannot be loaded: {type(error).__name__}: {error}") from error

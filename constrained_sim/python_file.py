"""Python files that users name, and that no package holds."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from constrained_sim.exceptions import ConfigError


def load_python_file(path: Path) -> ModuleType:
    """Return the module in a Python file.

    Raises:
        ConfigError: no such file, or an error in it.
    """
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"{str(path)!r} is not there, or no Python file (.py)")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{str(path)!r} cannot be loaded: {type(error).__name__}: {error}") from error
    return module

"""Imports what not everybody has installed; what is missing is named, with how to get it."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from constrained_sim.exceptions import EXTRAS, MissingLibrary


def optional(module: str, needed_for: str) -> Any:
    """Return the imported `module`.

    Args:
        module: its whole name.
        needed_for: what needs it, for the message.

    Raises:
        MissingLibrary: it cannot be imported, or something that it imports.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = (error.name or module).split(".")[0]
        raise MissingLibrary(name, needed_for) from error


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed `distribution`; None if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def ros_module(module: str, needed_for: str) -> Any:
    """Return `module` of :mod:`constrained_sim.ros`, which needs ROS 2.

    Raises:
        MissingLibrary: there is no ROS 2, or none with the messages of this package; or a library of pip is missing.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = (error.name or "").split(".")[0]
        library = name if name in EXTRAS else "ROS 2"
        raise MissingLibrary(library, needed_for) from error

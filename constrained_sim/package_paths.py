"""Finds what ``package://`` means: files of this package, of ROS 2 packages and of Python packages."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from constrained_sim.exceptions import ConfigError, InvalidValue, MissingLibrary
from constrained_sim.shipped import PACKAGE, share_folder

ROBOTS = "example-robot-data"
"""The package that holds the quadruped and Cassie: a ROS 2 package, or a Python package on PyPI."""


def resolve_path(text: str, base: Path) -> str | Path:
    """Return the file that `text` means: XML is returned as it is; ``package://name/path`` is looked up.

    This package is the one that runs, see :func:`~constrained_sim.shipped.share_folder`. Another one is looked up in
    the ament index where there is one, then among the parents of `base`, then among the Python packages of that name
    that bring a share folder (``example-robot-data`` from PyPI).

    Raises:
        ConfigError: no such package.
        MissingLibrary: none of the package of robots that parameter files of this one refer to.
    """
    if text.lstrip().startswith("<"):
        return text
    if not text.startswith("package://"):
        return base / text
    package, _, path = text.removeprefix("package://").partition("/")
    if package == PACKAGE:
        return share_folder() / path
    try:
        from ament_index_python.packages import get_package_share_directory

        try:
            return Path(get_package_share_directory(package)) / path
        except (LookupError, ValueError, OSError):
            pass
    except ImportError:
        pass
    for folder in (base, *base.parents):
        manifest = folder / "package.xml"
        if manifest.is_file() and f"<name>{package}</name>" in manifest.read_text(encoding="utf-8"):
            return folder / path
    share = _share_of_wheel(package)
    if share is None and package == ROBOTS:
        raise MissingLibrary(ROBOTS, repr(text))
    if share is None:
        raise ConfigError(
            f"{text!r}: package {package!r} is neither in the ament index nor around {str(base)!r} nor installed by pip"
        )
    return share / path


def find_config(path: str | os.PathLike[str]) -> Path:
    """Return the path of a configuration file as it is given; ``package://name/path`` is looked up.

    Raises:
        ConfigError: no such package.
        InvalidValue: not a path.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue("path", path, "that of a configuration file")
    text = os.fspath(path)
    return Path(resolve_path(text, Path.cwd()) if text.startswith("package://") else text)


def _share_of_wheel(package: str) -> Path | None:
    """Return the share folder of an installed wheel, laid out as those of Pinocchio and its relatives are."""
    try:
        share = Path(str(distribution(package).locate_file(f"cmeel.prefix/share/{package}")))
    except (PackageNotFoundError, ValueError):
        return None
    return share if share.is_dir() else None

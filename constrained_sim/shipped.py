"""Finds the files that come with the package, however it was installed: the robots and their parameter files."""

from __future__ import annotations

import difflib
from pathlib import Path

from constrained_sim.exceptions import ConfigError

PACKAGE = "constrained_sim"


def share_folder() -> Path:
    """Return the folder that ``package://constrained_sim`` means: it holds ``config``, ``msg`` and ``urdf``.

    A wheel has it inside the package. An editable installation, and one of links into the sources as colcon makes it,
    use the source tree. One of copies, as colcon and Debian packages make it, has it at ``share/constrained_sim`` of
    its prefix. Always the files belong to the Python code that runs, whatever else is installed.

    Raises:
        ConfigError: the installation lacks it.
    """
    module = Path(__file__)
    inside, source = module.parent / "share", module.resolve().parents[1]
    if inside.is_dir():
        return inside
    for folder in (source, *(parent / "share" / PACKAGE for parent in module.parents)):
        manifest = folder / "package.xml"
        if manifest.is_file() and f"<name>{PACKAGE}</name>" in manifest.read_text(encoding="utf-8"):
            return folder
    raise ConfigError(
        f"the files of {PACKAGE} are neither in {inside} nor in a share folder above it: install it again"
    )


def shipped_robots() -> dict[str, Path]:
    """Return the parameter files of the shipped robots, by name."""
    return {file.stem: file for file in sorted((share_folder() / "config").glob("*.yaml")) if _is_robot(file)}


def no_robot(text: str, folder: Path) -> str:
    """Return what is to be said of a `text` that is neither a parameter file in `folder` nor a shipped robot's name."""
    robots = shipped_robots()
    files = (str(Path(text).with_suffix(suffix)) for suffix in (".yaml", ".yml"))
    near = [file for file in files if (folder / file).is_file()] if Path(text).name else []
    near = near or difflib.get_close_matches(text, robots, 1)
    meant = f" ({near[0]}?)" if near else ""
    return f"{text!r}{meant} is no parameter file, nor a robot of the package: {', '.join(robots)}"


def _is_robot(file: Path) -> bool:
    """Return whether a parameter file describes a robot; there are those of other nodes too."""
    return any(line.strip() == "robot:" for line in file.read_text(encoding="utf-8").splitlines())

"""`constrained_sim version`: what is installed, as far as it matters to results."""

import platform

from constrained_sim.cli.texts import Json, write_json
from constrained_sim.optional import installed_version

LIBRARIES = "numpy", "scipy", "pin", "coal", "numba", "llvmlite"
OPTIONAL = "proxsuite", "matplotlib", "mcap", "rosbags", "example-robot-data", "typer", "rich"


def version_command(as_json: Json = False) -> None:
    """Say which versions of this package and of what it depends on are installed.

    Examples:
        $ constrained_sim version

        $ constrained_sim version --json > versions.json
    """
    versions = installed_versions()
    if as_json:
        write_json(versions)
    else:
        for name, number in versions.items():
            print(f"{name:20} {number or 'not installed'}")


def installed_versions() -> dict[str, str | None]:
    """Return versions by name; None of what is not installed."""
    return {
        "constrained_sim": _own_version(),
        "python": platform.python_version(),
        **{name: installed_version(name) for name in (*LIBRARIES, *OPTIONAL)},
        "ros": _ros(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _own_version() -> str | None:
    """Return the version of this package: colcon installs no metadata of Python packages, but its package.xml."""
    from xml.etree import ElementTree

    from constrained_sim.shipped import PACKAGE, share_folder

    number = installed_version(PACKAGE)
    if number is None:
        return ElementTree.parse(share_folder() / "package.xml").findtext("version")
    return number


def _ros() -> str | None:
    """Return the distribution of ROS 2 that is sourced; None if there is none."""
    import os
    from importlib.util import find_spec

    return os.environ.get("ROS_DISTRO") if find_spec("rclpy") is not None else None

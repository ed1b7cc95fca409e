"""Discovery: how the processes of this package, and those that they start, find each other."""

from __future__ import annotations

import os
from pathlib import Path

PROFILES = Path(__file__).with_name("fastdds.xml")
"""Settings of Fast DDS: announce yourself until whatever started with you must have heard it."""

LOOPBACK = Path(__file__).with_name("fastdds_loopback.xml")
"""The same, and sockets on the loopback interface only."""

VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
"""Where Fast DDS looks for a file of settings: from version 3 on, and before. Other middleware looks at neither."""

WITH_OLD_NAME = ("", "jazzy")
"""Distributions, or none known, whose Fast DDS may be of version 2; later ones warn of the old name at each start."""

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
"""How far ROS looks for others."""


def discovery_settings() -> dict[str, str]:
    """Return the environment variables that a process needs before it starts ROS; none where the user has set one."""
    given = _given_profiles()
    if given == {LOOPBACK.name} and os.environ.get(RANGE) == "LOCALHOST":
        return {RANGE: "SYSTEM_DEFAULT"}  # as the profile needs it
    return {} if given else _settings(PROFILES)


def loopback_settings() -> dict[str, str]:
    """Return the variables for sockets on the loopback interface only; what the user has set stays.

    Where the user names settings of Fast DDS, or asks for a wider range, these are the ones of
    :func:`discovery_settings`.
    """
    if not _given_profiles() <= {LOOPBACK.name} or os.environ.get(RANGE, "") not in ("", "LOCALHOST"):
        return discovery_settings()
    return _settings(LOOPBACK) | {RANGE: "SYSTEM_DEFAULT"}


def _settings(file: Path) -> dict[str, str]:
    """Return the variables that name a file of settings, as far as this distribution reads them."""
    has_old_name = os.environ.get("ROS_DISTRO", "") in WITH_OLD_NAME
    return dict.fromkeys(VARIABLES if has_old_name else VARIABLES[:1], str(file))


def _given_profiles() -> set[str]:
    """Return the names of the files of settings that the environment names."""
    return {Path(os.environ[variable]).name for variable in VARIABLES if variable in os.environ}

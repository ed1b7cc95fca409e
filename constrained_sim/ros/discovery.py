"""How the processes of this package, and those that they start, find each other."""

from __future__ import annotations

import os
from pathlib import Path

PROFILES = Path(__file__).with_name("fastdds.xml")
"""Settings of Fast DDS: announce yourself until whatever started with you must have heard it."""

VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
"""Where Fast DDS looks for a file of settings: from version 3 on, and before. Other middleware looks at neither."""


def discovery_settings() -> dict[str, str]:
    """Return the environment variables that a process needs before it starts ROS; none where the user has set one."""
    if any(variable in os.environ for variable in VARIABLES):
        return {}
    return dict.fromkeys(VARIABLES, str(PROFILES))

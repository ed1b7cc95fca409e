"""The shipped robots, and what their controllers make them do."""

from __future__ import annotations

from constrained_sim.controllers import CONTROLLERS
from constrained_sim.shipped import PACKAGE

__all__ = ["MODES", "PACKAGE"]

MODES: dict[str, tuple[str, ...]] = {robot: law.MODES for robot, law in CONTROLLERS.items()}
"""By robot, as ``config/<robot>.yaml``, ``launch/<robot>.launch.py`` and ``<robot>_controller`` name it; the first mode
is the default."""

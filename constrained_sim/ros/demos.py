"""The shipped robots, and what their controllers make them do."""

from __future__ import annotations

PACKAGE = "constrained_sim"

MODES: dict[str, tuple[str, ...]] = {
    "leg": ("hop", "stand"),
    "quadruped": ("trot", "stand"),
    "four_bar": ("turn",),
    "cassie": ("stand",),
}
"""By robot, as ``config/<robot>.yaml``, ``launch/<robot>.launch.py`` and ``<robot>_controller`` name it; the first mode
is the default."""

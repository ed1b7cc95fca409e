"""Functions that are found by name at their first call: so that no module imports one that builds on it.

A robot is read by :mod:`~constrained_sim.descriptions`, and carries :mod:`~constrained_sim.constraints`; both build on
:mod:`~constrained_sim.robot`, as does the assembly of objects. A simulation is shown by
:mod:`~constrained_sim.viewer`, and drawn by :mod:`~constrained_sim.plots`, which build on simulations.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = {
    "read_robot_from_urdf": "descriptions.robot_reader",
    "read_robot_from_sdf": "descriptions.robot_reader",
    "read_robot_from_mjcf": "descriptions.robot_reader",
    "refuse_impossible_bodies": "descriptions.description",
    "refuse_massless_joints": "descriptions.description",
    "combine": "objects.combined_robot",
    "assemble": "assembly",
    "checked_constraints": "constraints.constraint",
    "joint_limits_of": "constraints.joint_limit",
    "summarize": "bringup.summary",
    "plot_trajectory": "plots.of_trajectory",
    "view_simulator": "viewer.open_page",
    "view_trajectory": "viewer.open_page",
}
"""Where each function is, below the package."""


def call_late(function: str, *arguments: Any) -> Any:
    """Call a function of :data:`MODULES` by its name, and return what it returns."""
    return getattr(import_module(f"constrained_sim.{MODULES[function]}"), function)(*arguments)

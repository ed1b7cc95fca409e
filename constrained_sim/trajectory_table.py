"""A trajectory as a table of text: one column for each number of a step, with its name and unit."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from constrained_sim.exceptions import ConfigError, InvalidValue
from constrained_sim.validation import Array
from constrained_sim.whole_file import written_whole

if TYPE_CHECKING:
    import pinocchio as pin

    from constrained_sim.robot import Robot

POSITION, QUATERNION = ("x [m]", "y [m]", "z [m]"), ("qx [1]", "qy [1]", "qz [1]", "qw [1]")

COORDINATES = {
    "FreeFlyer": (*POSITION, *QUATERNION),
    "Spherical": QUATERNION,
    "Planar": ("x [m]", "y [m]", "cos [1]", "sin [1]"),
    "Translation": POSITION,
}
"""Entries of q, by Pinocchio's name of a joint with several."""

SPEEDS = {
    "FreeFlyer": ("[m/s]",) * 3 + ("[rad/s]",) * 3,
    "Spherical": ("[rad/s]",) * 3,
    "Planar": ("[m/s]", "[m/s]", "[rad/s]"),
    "Translation": ("[m/s]",) * 3,
}
"""Units of the entries of v, by the same."""


Groups = Mapping[str, Mapping[str, Array]]
"""``"forces"``, ``"moments"``, ``"multipliers"`` and ``"energy"`` of a trajectory."""


def write_table(target: str, states: Mapping[str, Array], groups: Groups, robot: Robot | None) -> None:
    """Write a row for each of n steps into the file `target`.

    Args:
        target: the file.
        states: t (n,), q (n, nq), v (n, nv) and tau (n, nu) of a trajectory.
        groups: what else there is of each step, by what it is and by its name.
        robot: whose joints give the names; None: they are counted.

    Raises:
        InvalidValue: a path at which no file can be written.
    """
    names = ["t [s]", *(_counted(states) if robot is None else _names_of(robot)), *_group_names(groups)]
    tables = [*states.values(), *(table for group in groups.values() for table in group.values())]
    rows = np.column_stack([table.reshape(len(states["t"]), -1) for table in tables])
    try:
        with written_whole(Path(target)) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows.tolist())
    except ConfigError as error:
        raise InvalidValue("path of a table", target, f"one that can be written ({error.message})") from error


def _counted(states: Mapping[str, Array]) -> Iterator[str]:
    """Yield names of the entries of q, v and tau of an unknown robot."""
    for name, units in (("q", "rad or m"), ("v", "rad/s or m/s"), ("tau", "N m or N")):
        yield from (f"{name}.{i} [{units}]" for i in range(states[name].shape[1]))


def _group_names(groups: Groups) -> Iterator[str]:
    """Yield the names of the other columns."""
    for what, unit in (("force", "N"), ("moment", "N m")):
        yield from (f"{what} {name} {axis} [{unit}]" for name in groups[f"{what}s"] for axis in "xyz")
    for name, rows in groups["multipliers"].items():
        yield from (f"multiplier {name}.{i} [N or N m]" for i in range(rows.shape[1]))
    yield from (f"energy {name} [J]" for name in groups["energy"])


def _names_of(robot: Robot) -> Iterator[str]:
    """Yield the names of the entries of q, v and tau."""
    joints = robot.joint_models
    for name, joint in joints.items():
        yield from (f"q {name}{' ' if joint.nq > 1 else ''}{entry}" for entry in _coordinates(joint))
    speeds = [unit for joint in joints.values() for unit in _speeds(joint)]
    yield from (f"v {name} {unit}" for name, unit in zip(robot.velocity_names, speeds, strict=True))
    for i in robot.actuation:
        yield f"tau {robot.velocity_names[i]} {EFFORTS[speeds[i]]}"


EFFORTS = {"[m/s]": "[N]", "[rad/s]": "[N m]", "[rad/s or m/s]": "[N m or N]"}
"""Units of an effort, by those of the speed that it drives."""


def _coordinates(joint: pin.JointModel) -> tuple[str, ...]:
    """Return names and units of the entries of q of a joint."""
    if joint.nq == 1:
        return (" [m]" if _kind(joint).startswith("P") else " [rad]",)
    if joint.nv == 1:
        return ("cos [1]", "sin [1]")
    return COORDINATES.get(_kind(joint), tuple(f"{i} [rad or m]" for i in range(joint.nq)))


def _speeds(joint: pin.JointModel) -> tuple[str, ...]:
    """Return the units of the entries of v of a joint."""
    if joint.nv == 1:
        return ("[m/s]" if _kind(joint).startswith("P") else "[rad/s]",)
    return SPEEDS.get(_kind(joint), ("[rad/s or m/s]",) * joint.nv)


def _kind(joint: pin.JointModel) -> str:
    """Return Pinocchio's name of a joint."""
    return str(joint.shortname()).removeprefix("JointModel")

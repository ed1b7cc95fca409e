"""A trajectory as a table of text: one column for each number of a step, with its name and unit."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from constrained_sim.exceptions import ConfigError, InvalidValue
from constrained_sim.validation import Array
from constrained_sim.whole_file import written_whole

if TYPE_CHECKING:
    import pinocchio as pin

    from constrained_sim.robot import Robot
    from constrained_sim.trajectory import Trajectory

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


def write_table(target: str, trajectory: Trajectory, robot: Robot | None) -> None:
    """Write the steps of `trajectory` into the file `target`, with names of joints where the `robot` is known.

    Raises:
        InvalidValue: a path at which no file can be written.
    """
    names = list(_names(trajectory, robot))
    rows = np.column_stack([table.reshape(len(trajectory.t), -1) for table in _tables(trajectory)])
    try:
        with written_whole(Path(target)) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows.tolist())
    except ConfigError as error:
        raise InvalidValue("path of a table", target, f"one that can be written ({error.message})") from error


def _tables(trajectory: Trajectory) -> Iterator[Array]:
    """Yield the arrays of a trajectory in the order of their names."""
    yield from (trajectory.t, trajectory.q, trajectory.v, trajectory.tau)
    for group in (trajectory.contact_forces, trajectory.contact_moments, trajectory.multipliers, trajectory.energy):
        yield from group.values()


def _names(trajectory: Trajectory, robot: Robot | None) -> Iterator[str]:
    """Yield the names of the columns."""
    yield "t [s]"
    if robot is None:
        for name, units in (("q", "rad or m"), ("v", "rad/s or m/s"), ("tau", "N m or N")):
            yield from (f"{name}.{i} [{units}]" for i in range(getattr(trajectory, name).shape[1]))
    else:
        yield from _names_of(robot)
    for what, unit, group in (("force", "N", trajectory.contact_forces), ("moment", "N m", trajectory.contact_moments)):
        yield from (f"{what} {name} {axis} [{unit}]" for name in group for axis in "xyz")
    for name, rows in trajectory.multipliers.items():
        yield from (f"multiplier {name}.{i} [N or N m]" for i in range(rows.shape[1]))
    yield from (f"energy {name} [J]" for name in trajectory.energy)


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

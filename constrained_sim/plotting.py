"""Plots contact forces and joint positions of a rosbag2 recording or of a trajectory; needs no ROS."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.exceptions import ConfigError, ConstrainedSimError
from constrained_sim.joints import SingleJoint
from constrained_sim.optional import optional
from constrained_sim.robot import Robot
from constrained_sim.trajectory import Trajectory
from constrained_sim.validation import Array

KINDS = {
    "sensor_msgs/msg/JointState": "states",
    "constrained_sim/msg/ContactForces": "forces",
    "constrained_sim/msg/Impact": "impacts",
}
"""What is plotted, by the type of the message."""

EPILOG = "example: plot_bag recordings/leg_bag; exit codes: 0 done; 1 refused; 2 wrong command line"


@dataclass
class Recording:
    """What is plotted; times in seconds, those of the stamps.

    Attributes:
        state_times: (n,) of the joint states.
        positions: (n,) by joint [rad, m].
        force_times: (m,) of the contact forces.
        forces: (m, 3) mean force by contact [N], world axes.
        normal_forces: (m,) by contact [N]; of contacts whose normal is not recorded there are none.
        impact_times: of the impacts.
        impact_losses: [J].
    """

    state_times: Array = field(default_factory=lambda: np.zeros(0))
    positions: dict[str, Array] = field(default_factory=dict)
    force_times: Array = field(default_factory=lambda: np.zeros(0))
    forces: dict[str, Array] = field(default_factory=dict)
    normal_forces: dict[str, Array] = field(default_factory=dict)
    impact_times: Array = field(default_factory=lambda: np.zeros(0))
    impact_losses: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, trajectory: Trajectory, robot: Robot | None = None) -> Recording:
        """Return what `trajectory` holds; without its `robot`, positions have numbers in place of names."""
        if robot is None:
            positions = {f"q[{i}]": column for i, column in enumerate(trajectory.q.T)}
        else:
            names = [name for name, joint in robot.joint_models.items() if joint.nv == 1]
            joints = {name: SingleJoint.of(robot, name) for name in names}
            positions = {name: np.array([joint.position(q) for q in trajectory.q]) for name, joint in joints.items()}
        return cls(
            trajectory.t,
            positions,
            trajectory.t,
            dict(trajectory.contact_forces),
            {},
            np.array([impact.t for impact in trajectory.impacts]),
            np.array([impact.energy_lost for impact in trajectory.impacts]),
        )


def read(source: Path) -> Recording:
    """Read a result of :meth:`Trajectory.save` or a rosbag2 directory.

    Raises:
        ConfigError: neither of them.
        InvalidValue: a file that holds no trajectory.
        MissingLibrary: the one that reads bags.
    """
    return read_bag(source) if source.is_dir() else Recording.of(Trajectory.load(source))


def read_bag(directory: Path) -> Recording:
    """Read the joint states, contact forces and impacts of a rosbag2 directory.

    Raises:
        ConfigError: it is none.
        MissingLibrary: the one that reads bags.
    """
    if not (directory / "metadata.yaml").is_file():
        raise ConfigError(f"{str(directory)!r} is not a rosbag2 directory (no metadata.yaml in it)")
    reader_of = optional("rosbags.highlevel", "reading a recording").AnyReader
    times: dict[str, list[float]] = defaultdict(list)
    positions, forces, normal = defaultdict(list), defaultdict(list), defaultdict(list)
    losses = []
    with reader_of([directory]) as reader:
        wanted = [c for c in reader.connections if c.msgtype in KINDS and not c.topic.endswith("joint_commands")]
        for connection, _, data in reader.messages(connections=wanted):
            message: Any = reader.deserialize(data, connection.msgtype)
            kind = KINDS[connection.msgtype]
            times[kind].append(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)
            if kind == "states":
                for name, position in zip(message.name, message.position, strict=True):
                    positions[name].append(position)
            elif kind == "forces":
                for contact in message.contacts:
                    force = contact.wrench.force
                    forces[contact.name].append((len(times[kind]) - 1, force.x, force.y, force.z))
                    normal[contact.name].append((len(times[kind]) - 1, contact.normal_force))
            else:
                losses.append(message.energy_lost)
    count = len(times["forces"])
    return Recording(
        np.array(times["states"]),
        {name: np.array(values) for name, values in positions.items()},
        np.array(times["forces"]),
        {name: _scatter(values, count) for name, values in forces.items()},
        {name: _scatter(values, count)[:, 0] for name, values in normal.items()},
        np.array(times["impacts"]),
        np.array(losses),
    )


def plot(recording: Recording, path: Path, title: str) -> None:
    """Draw the recording into an image file.

    Raises:
        MissingLibrary: the one that draws.
    """
    figure = optional("matplotlib.figure", "plotting").Figure(figsize=(10, 7), layout="constrained")
    optional("matplotlib.backends.backend_agg", "plotting").FigureCanvasAgg(figure)
    force_axes, joint_axes = figure.subplots(2, 1, sharex=True)
    figure.suptitle(title)
    for name, force in recording.forces.items():
        normal = recording.normal_forces.get(name)
        if normal is None:
            for axis, values in zip("xyz", force.T, strict=True):
                force_axes.plot(recording.force_times, values, label=f"{name}: {axis}", linewidth=0.8)
            continue
        tangential = np.sqrt(np.maximum(0.0, np.sum(force**2, axis=1) - normal**2))
        force_axes.plot(recording.force_times, normal, label=f"{name}: normal")
        force_axes.plot(recording.force_times, tangential, label=f"{name}: tangential", linewidth=0.8)
    for i, t in enumerate(recording.impact_times):
        force_axes.axvline(t, color="0.7", linewidth=0.8, zorder=0, label=None if i else "impact")
    force_axes.set_ylabel("contact force [N]")
    for name, position in recording.positions.items():
        joint_axes.plot(recording.state_times, position, label=name)
    joint_axes.set_ylabel("joint position [rad, m]")
    joint_axes.set_xlabel("simulated time [s]")
    for axes in (force_axes, joint_axes):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper right")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """Plot the bag that the command line names; return 0, or 1 where that cannot be."""
    parser = argparse.ArgumentParser(
        prog="plot_bag", description="Plots contact forces and joint positions of a bag.", epilog=EPILOG
    )
    parser.add_argument("bag", type=Path, help="directory of a rosbag2 recording")
    parser.add_argument("--output", type=Path, help="image file (default: beside the bag, .png)")
    options = parser.parse_args(arguments)
    output = options.output or options.bag.with_suffix(".png")
    try:
        plot(read_bag(options.bag), output, options.bag.resolve().name)
    except ConstrainedSimError as error:
        print(f"plot_bag: {error}", file=sys.stderr)
        return 1
    print(output)
    return 0


def _scatter(rows: Sequence[tuple[float, ...]], count: int) -> Array:
    """Return (count, k) values from rows (index, k values); NaN where there is none."""
    table = np.array(rows)
    values = np.full((count, table.shape[1] - 1), np.nan)
    values[table[:, 0].astype(int)] = table[:, 1:]
    return values

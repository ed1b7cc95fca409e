"""A rosbag2 recording as what is plotted; needs no ROS."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.bag_reader import bag_reader
from constrained_sim.config import Config
from constrained_sim.constraints import Constraint, point_contacts
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.nanoseconds import NANOSECONDS, seconds_of
from constrained_sim.plots.from_trajectory import declared_contact, joint_limits
from constrained_sim.plots.limbs import Limbs
from constrained_sim.plots.recording import (
    UNKNOWN,
    ContactSeries,
    ImpactSeries,
    JointLimits,
    JointSeries,
    Recording,
    Table,
)
from constrained_sim.recorded_configuration import RecordedConfiguration, check_joints
from constrained_sim.robot import Robot
from constrained_sim.validation import Array

OTHER_STATES = "joint_commands", "/joint_state"
"""Ends of topics with messages of the same type: commands, and encoders, whose readings have errors."""

STATES, FORCES, WRENCH, IMPACT, IMPULSE, NUMBER, STATUS = (
    "sensor_msgs/msg/JointState",
    "constrained_sim/msg/ContactForces",
    "geometry_msgs/msg/WrenchStamped",
    "constrained_sim/msg/Impact",
    "geometry_msgs/msg/Vector3Stamped",
    "std_msgs/msg/Float64",
    "constrained_sim/msg/SimulationStatus",
)
"""What is plotted, by the type of the message."""

WRENCHES, LOSSES, IMPULSES = "/contact_forces/", "/impacts/energy_lost", "/impacts/"
"""Topics of standard messages in the bags of `constrained_sim run --bag`."""

RESIDUALS = {
    "dynamics, relative": "dynamics_residual",
    "constraints, relative": "constraint_residual",
    "contact problem, relative": "complementarity_residual",
}
DRIFT = {"position error [m, rad]": "position_error", "velocity error [m/s, rad/s]": "velocity_error"}
ENERGIES = {
    "kinetic energy": "kinetic_energy",
    "potential energy": "potential_energy",
    "actuators": "work_actuators",
    "external wrenches": "work_external",
    "contacts": "work_contacts",
    "constraints": "work_constraints",
    "joint damping and friction": "work_damping",
    "impacts": "impact_losses",
    "removal of drift": "projection_energy",
    "integration": "integration_energy",
    "residual": "energy_residual",
}
"""Fields of a status, by what a picture calls them."""

LOST = "impacts"
"""The one of :data:`ENERGIES` that a status counts as a loss; pictures show what the robot got."""


def read_bag(directory: Path, config: Config | None = None) -> Recording:
    """Read the joint states, contact forces, impacts and status of a rosbag2 directory.

    Args:
        directory: the recording.
        config: what it is of; None: what the recording itself says, if it does.

    Raises:
        ConfigError: it is no recording, or a damaged one.
        InvalidValue: a `config` of another robot.
        MissingLibrary: the one that reads bags.
    """
    return read_messages(directory).recording(directory.resolve().name, config)


def read_messages(directory: Path) -> BagMessages:
    """Read what is plotted, and what the recording tells of its simulation.

    Raises:
        ConfigError: it is no recording, or a damaged one.
        MissingLibrary: the one that reads bags.
    """
    messages = BagMessages()
    with bag_reader(directory) as reader:
        for connection, stamp, data in reader.messages(connections=list(filter(_is_wanted, reader.connections))):
            messages.add(connection.topic, connection.msgtype, stamp, reader.deserialize(data, connection.msgtype))
    return messages


def _is_wanted(connection: Any) -> bool:
    if connection.msgtype == WRENCH:
        return connection.topic.startswith(WRENCHES)
    if connection.msgtype == IMPULSE:
        return connection.topic.startswith(IMPULSES)
    if connection.msgtype == NUMBER:
        return connection.topic == LOSSES
    if connection.msgtype == STATES:
        return not connection.topic.endswith(OTHER_STATES)
    return connection.msgtype in (FORCES, IMPACT, STATUS) or RecordedConfiguration.is_told_by(
        connection.topic, connection.msgtype
    )


class BagMessages:
    """What the messages of a recording tell.

    Attributes:
        configuration: of the simulation.
    """

    def __init__(self) -> None:
        """Nothing has been read yet."""
        self.configuration = RecordedConfiguration()
        self._states: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
        self._contacts: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        self._links: dict[str, str] = {}
        self._impacts: list[tuple[float, float, dict[str, float]]] = []
        self._statuses: list[tuple[float, Any]] = []

    @property
    def last_status(self) -> Any:
        """The last SimulationStatus; None: there is none."""
        return self._statuses[-1][1] if self._statuses else None

    def add(self, topic: str, kind: str, stamp: int, message: Any) -> None:
        """Take a message that was recorded at `stamp` [ns]."""
        if kind == STATES:
            t, unknown = _time(message), [np.nan] * len(message.name)
            known = (list(values) or unknown for values in (message.position, message.velocity, message.effort))
            for name, position, velocity, effort in zip(message.name, *known, strict=True):
                self._states[name].append((t, position, velocity, effort))
        elif kind == FORCES:
            self._add_forces(_time(message), message.contacts)
        elif kind == WRENCH:
            force = message.wrench.force
            row = _time(message), force.x, force.y, force.z, np.nan, np.nan, UNKNOWN
            self._contacts[topic.removeprefix(WRENCHES)].append(row)
        elif kind == IMPACT:
            impulses = {i.name: _norm(i.linear) for i in message.impulses}
            self._impacts.append((_time(message), message.energy_lost, impulses))
        elif kind == NUMBER:
            self._impacts.append((seconds_of(stamp), message.data, {}))
        elif kind == IMPULSE and self._impacts:
            self._impacts[-1][2][topic.removeprefix(IMPULSES)] = _norm(message.vector)  # after its energy
        elif kind == STATUS:
            self._statuses.append((_time(message), message))
        else:
            self.configuration.add(topic, kind, message)

    def _add_forces(self, t: float, contacts: Iterable[Any]) -> None:
        for contact in contacts:
            force = contact.wrench.force
            row = t, force.x, force.y, force.z, contact.normal_force, contact.friction, contact.status
            self._contacts[contact.name].append(row)
            self._links[contact.name] = contact.link

    def recording(self, title: str, config: Config | None = None) -> Recording:
        """Return all that was taken, with limits and limbs of the robot of `config`; None: that the recording tells.

        Raises:
            InvalidValue: a `config` of another robot.
        """
        if config is not None:
            check_joints(config.robot, self._states)
        try:
            config = config or self.configuration.config()
            robot = self.configuration.robot() if config is None else config.robot
            return self._recording(title, robot, () if config is None else config.constraints)
        except ConstrainedSimError as error:
            note = f"without limits and limbs of the robot: {error}"
            return replace(self._recording(title, None), notes=(note,))

    def _recording(self, title: str, robot: Robot | None, constraints: Iterable[Constraint] = ()) -> Recording:
        limits = {} if robot is None else joint_limits(robot)
        limbs = None if robot is None else Limbs(robot)
        states = {name: np.array(rows) for name, rows in self._states.items()}
        joint_times, joint_rows = _aligned(states)
        contact_times, contact_rows = _aligned({name: np.array(rows) for name, rows in self._contacts.items()})
        joints = {
            name: JointSeries(
                rows[:, 0],
                rows[:, 1],
                rows[:, 2],
                limits.get(name, JointLimits()),
                limbs.of_joint(name) if limbs is not None and name in limits else "",
            )
            for name, rows in joint_rows.items()
        }
        declared = point_contacts(c for c in constraints if c.name not in self._links)
        contacts = {
            name: _contact(rows, "" if limbs is None else limbs.of_link(self._links.get(name, "")))
            if limbs is None or name not in declared
            else declared_contact(rows[:, :3], declared[name], limbs)
            for name, rows in contact_rows.items()
        }
        energy = self._status_table(ENERGIES)
        if LOST in energy.columns:
            energy = Table(energy.t, {k: -c if k == LOST else c for k, c in energy.columns.items()})
        return Recording(
            title,
            joint_times,
            joints,
            contact_times,
            contacts,
            _impact_series(self._impacts),
            energy,
            self._status_table(RESIDUALS),
            self._status_table(DRIFT),
        )

    def _status_table(self, fields: dict[str, str]) -> Table:
        if not self._statuses:
            return Table()
        times = np.array([t for t, _ in self._statuses])
        messages = [message for _, message in self._statuses]
        return Table(times, {text: np.array([getattr(m, f) for m in messages]) for text, f in fields.items()})


def _contact(rows: Array, limb: str) -> ContactSeries:
    status = np.where(np.isfinite(rows[:, 5]), rows[:, 5], UNKNOWN).astype(int)
    return ContactSeries(rows[:, :3], rows[:, 3], rows[:, 4], status, limb)


def _aligned(rows_by_name: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    """Return the times of all rows (time, values), and each name's values at them, NaN where it has none."""
    if not rows_by_name:
        return np.zeros(0), {}
    times = np.unique(np.concatenate([rows[:, 0] for rows in rows_by_name.values()]))
    aligned = {}
    for name, rows in rows_by_name.items():
        aligned[name] = np.full((len(times), rows.shape[1] - 1), np.nan)
        aligned[name][np.searchsorted(times, rows[:, 0])] = rows[:, 1:]
    return times, aligned


def _impact_series(impacts: Sequence[tuple[float, float, dict[str, float]]]) -> ImpactSeries:
    names = dict.fromkeys(name for _, _, impulses in impacts for name in impulses)
    return ImpactSeries(
        np.array([t for t, _, _ in impacts]),
        np.array([lost for _, lost, _ in impacts]),
        {name: np.array([impulses.get(name, np.nan) for _, _, impulses in impacts]) for name in names},
    )


def _time(message: Any) -> float:
    stamp = message.header.stamp
    return seconds_of(stamp.sec * NANOSECONDS + stamp.nanosec)


def _norm(vector: Any) -> float:
    return float(np.linalg.norm([vector.x, vector.y, vector.z]))

"""Values of a running simulation, as the live table shows them."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.msg import ConstraintForces, ContactForces, Impact, SimulationStatus
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.plots.limbs import Limbs
from constrained_sim.robot import Robot
from constrained_sim.ros.conversions import to_nanoseconds
from constrained_sim.ros.process import COMPILING

SIMULATOR = "constrained_sim"

SAMPLES = 24
"""Number of readings of every force that are kept: columns of the sparkline."""

WINDOW = 1.0
"""Simulated seconds over which impacts are counted."""

STATES = {
    SimulationStatus.RUNNING: "running",
    SimulationStatus.PAUSED: "paused",
    SimulationStatus.WAITING: "waiting for a command",
    SimulationStatus.FROZEN: "frozen",
}


class LiveValues:
    """The newest message of each topic, and what has to be kept of those before.

    Attributes:
        joints: newest JointState; None before the first, as the next three.
        contacts: newest ContactForces.
        odometry: of a floating base.
        status: newest SimulationStatus.
        robot: from its description; None before it comes, or where it cannot be read here.
        limbs: of the robot.
        ungrouped: why joints cannot be grouped by limb; empty where they can.
        impacts: number since `counted_from`.
        energy_lost: by them [J].
        counted_from: simulated seconds from zero: 0 since the last reset, more where the monitor came later.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.joints: JointState | None = None
        self.contacts: ContactForces | None = None
        self.odometry: Odometry | None = None
        self.status: SimulationStatus | None = None
        self.robot: Robot | None = None
        self.limbs: Limbs | None = None
        self.ungrouped = ""
        self.impacts, self.energy_lost, self.counted_from = 0, 0.0, 0.0
        self._compiles = False
        self._forces: dict[type, dict[str, deque[float]]] = {ContactForces: {}, ConstraintForces: {}}
        self._impact_times: deque[float] = deque()

    def keep(self, message: Any) -> None:
        """Take over a message of any of the topics."""
        match message:
            case JointState():
                self.joints = message
            case ContactForces():
                self.contacts = message
                self._sample(ContactForces, {contact.name: contact.normal_force for contact in message.contacts})
            case ConstraintForces():
                sizes = {force.name: float(np.linalg.norm(force.multipliers)) for force in message.constraints}
                self._sample(ConstraintForces, sizes)
            case Odometry():
                self.odometry = message
            case SimulationStatus():
                if self.status is None:
                    self.counted_from = message.time
                elif message.step < self.status.step:
                    self._forget()
                self.status = message
            case Impact():
                self.impacts += 1
                self.energy_lost += message.energy_lost
                self._impact_times.append(_seconds(message))
            case String():
                self._read(message.data)
            case Log():
                if message.msg == COMPILING and message.name.rpartition(".")[2] == SIMULATOR:
                    self._compiles = True

    def phase(self, is_there: bool) -> str:
        """Return what the simulation is doing; before its first status, how its start goes; that it is gone.

        Args:
            is_there: whether a simulator publishes its status.
        """
        status = self.status
        if status is None:
            loading = COMPILING if self._compiles else "the simulator loads its kernels"
            return loading if is_there else "waiting for a simulator"
        if not is_there:
            return "the simulator is gone; this is the last it told"
        if status.state == SimulationStatus.WAITING and status.step == 0:
            return status.message or "waiting for the first command"
        told = f": {status.message}" if status.state == SimulationStatus.FROZEN else ""
        return STATES[status.state] + told

    @property
    def time(self) -> float | None:
        """Simulated seconds since the start or the last reset, of the newest state; None before the first."""
        if self.joints is None or self.status is None:
            return None
        return max(0.0, _seconds(self.joints) - (_seconds(self.status) - self.status.time))

    @property
    def impact_rate(self) -> float:
        """Impacts per simulated second, over the last one."""
        now = 0.0 if self.joints is None else _seconds(self.joints)
        while self._impact_times and self._impact_times[0] <= now - WINDOW:
            self._impact_times.popleft()
        return len(self._impact_times) / WINDOW

    def main_force(self) -> tuple[str, list[float]]:
        """Return the contact that carried most on average, without contacts the constraint, and its forces [N, N m]."""
        forces = self._forces[ContactForces] or self._forces[ConstraintForces]
        if not forces:
            return "", []
        name = max(forces, key=lambda name: sum(forces[name]))
        return name, list(forces[name])

    def _sample(self, kind: type, sizes: dict[str, float]) -> None:
        """Append a reading of every force; those that are no longer there are forgotten."""
        before = self._forces[kind]
        self._forces[kind] = {name: before.get(name, deque(maxlen=SAMPLES)) for name in sizes}
        for name, size in sizes.items():
            self._forces[kind][name].append(size)

    def _forget(self) -> None:
        """Count anew after a reset."""
        self.impacts, self.energy_lost, self.counted_from = 0, 0.0, 0.0
        self._forces = {ContactForces: {}, ConstraintForces: {}}
        self._impact_times.clear()

    def _read(self, description: str) -> None:
        """Find the limbs of the robot of a description; whether its base is free makes no difference to them."""
        try:
            self.robot = Robot.from_urdf(description)
            self.limbs, self.ungrouped = Limbs(self.robot), ""
        except ConstrainedSimError as error:
            self.robot, self.limbs, self.ungrouped = None, None, str(error)


def _seconds(message: Any) -> float:
    return seconds_of(to_nanoseconds(message.header.stamp))

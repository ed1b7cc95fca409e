"""What a test sees of a robot, from the messages of the simulation node."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.config import Config, whole_nanoseconds
from constrained_sim.exceptions import NotSupported
from constrained_sim.step_result import ContactForce, ContactStatus
from constrained_sim.testing.ros.session import stamp
from constrained_sim.testing.snapshot import Snapshot
from constrained_sim.trajectory import ImpactRecord
from constrained_sim.validation import Array


class Readings:
    """Turns messages into snapshots.

    Numbers are those of the simulator, bit by bit, but for continuous joints: the topic has the angle, from which sine
    and cosine are computed anew.
    """

    def __init__(self, config: Config) -> None:
        """Read messages about the robot of `config`.

        Raises:
            NotSupported: a joint with several degrees of freedom, which joint_states does not have.
        """
        robot = config.robot
        joints = {name: robot.model.joints[robot.model.getJointId(name)] for name in robot.joint_names}
        for name, joint in joints.items():
            if joint.nv != 1:
                raise NotSupported("topic joint_states", name, "joints with one degree of freedom")
        self._robot, self._joints, self._prefix = robot, joints, config.node.frame_prefix
        self._start = round(config.node.start_time * 1e9)
        self._dt, self._dt_ns = config.simulation.dt, whole_nanoseconds("dt", config.simulation.dt)

    def time(self, nanoseconds: int) -> float:
        """Return the time since the last reset [s] of a stamp, as the simulator counts it: steps times dt."""
        return (nanoseconds - self._start) // self._dt_ns * self._dt

    def state(self, message: Any) -> tuple[float, Array, Array]:
        """Return time [s], q (nq,) and v (nv,) of a joint state."""
        q, v = np.zeros(self._robot.nq), np.zeros(self._robot.nv)
        for name, position, velocity in zip(message.name, message.position, message.velocity, strict=True):
            joint = self._joints[name]
            q[joint.idx_q : joint.idx_q + joint.nq] = (
                position if joint.nq == 1 else (np.cos(position), np.sin(position))
            )
            v[joint.idx_v] = velocity
        q.flags.writeable = v.flags.writeable = False
        return self.time(stamp(message)), q, v

    def snapshot(self, state: Any, forces: Any | None) -> Snapshot:
        """Return the snapshot of a joint state, with the contact forces of the same stamp where there are some."""
        efforts = dict(zip(state.name, state.effort, strict=True))
        by_index = {joint.idx_v: efforts[name] for name, joint in self._joints.items()}
        tau = np.array([by_index[index] for index in self._robot.actuation.tolist()])
        contacts = {contact.name: self._contact(contact) for contact in forces.contacts} if forces is not None else {}
        return Snapshot(*self.state(state), tau, contacts, self._robot)

    def impact(self, message: Any) -> ImpactRecord:
        """Return an impact."""
        return ImpactRecord(
            (stamp(message) - self._start) * 1e-9,
            message.energy_lost,
            np.array(message.velocity_minus),
            np.array(message.velocity_plus),
        )

    def _contact(self, message: Any) -> ContactForce:
        return ContactForce(
            message.name,
            message.link.removeprefix(self._prefix),
            ContactStatus(message.status),
            _xyz(message.position),
            _xyz(message.normal),
            _xyz(message.wrench.force),
            message.normal_force,
            message.friction,
            message.gap,
            _xyz(message.slip),
        )


def _xyz(vector: Any) -> Array:
    return np.array([vector.x, vector.y, vector.z])

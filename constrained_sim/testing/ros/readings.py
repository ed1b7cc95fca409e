"""Readings of a robot in a test, from the messages of the simulation node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from constrained_sim.config import Config
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.exceptions import InvalidValue, NotSupported
from constrained_sim.impact_record import ImpactRecord
from constrained_sim.nanoseconds import nanoseconds_of, seconds_of, whole_nanoseconds
from constrained_sim.ros.controller import States
from constrained_sim.ros.conversions import xyz
from constrained_sim.ros.odometry_reader import BaseMotion
from constrained_sim.step_result import ContactForce
from constrained_sim.testing.ros.session import stamp
from constrained_sim.testing.snapshot import Snapshot
from constrained_sim.validation import Array, read_only


class Readings:
    """Turns messages into snapshots.

    Numbers are those of the simulator, bit by bit, but for continuous joints: the topic has the angle, from which sine
    and cosine are computed anew.
    """

    def __init__(self, config: Config) -> None:
        """Read messages about the robot of `config`.

        Raises:
            NotSupported: a joint with several degrees of freedom other than a floating base.
        """
        robot, first = config.robot, int(config.robot.floating_base)
        joints = {name: robot.joint_models[name] for name in robot.joint_names[first:]}
        for name, joint in joints.items():
            if joint.nv != 1:
                raise NotSupported("topic joint_states", name, "joints with one degree of freedom, and a floating base")
        self._anchors = {c.name for c in (*robot.constraints, *config.constraints) if not c.is_unilateral}
        self._robot, self._joints, self._frames = robot, joints, config.node.frames
        self._states = States(config)
        self._start = nanoseconds_of(config.node.start_time)
        self._dt, self._dt_ns = config.simulation.dt, whole_nanoseconds("dt", config.simulation.dt)

    def time(self, nanoseconds: int) -> float:
        """Return the time since the last reset [s] of a stamp, as the simulator counts it: steps times dt."""
        return (nanoseconds - self._start) // self._dt_ns * self._dt

    def state(self, messages: Sequence[Any]) -> tuple[float, Array, Array] | None:
        """Return time [s], q (nq,) and v (nv,) of a JointState and, of a floating base, an Odometry.

        None if they are not of the same stamp.
        """
        self._states.take_joints(messages[0])
        for base in messages[1:]:
            self._states.take_base(BaseMotion.of(base))
        at = stamp(messages[0])
        state = self._states.complete(at)
        return None if state is None else (self.time(at), read_only(state[0]), read_only(state[1]))

    def snapshot(self, messages: Sequence[Any], forces: Any | None) -> Snapshot:
        """Return the snapshot of the messages of a state, with the contact forces of the same stamp, None: none yet.

        Raises:
            InvalidValue: messages of different stamps.
        """
        state = self.state(messages)
        if state is None:
            raise InvalidValue("stamps of a state", [stamp(message) for message in messages], "equal ones")
        efforts = dict(zip(messages[0].name, messages[0].effort, strict=True))
        by_index = {joint.idx_v: efforts[name] for name, joint in self._joints.items()}
        tau = np.array([by_index[index] for index in self._robot.actuation.tolist()])
        contacts = {contact.name: self._contact(contact) for contact in forces.contacts} if forces is not None else {}
        return Snapshot(*state, tau, contacts, self._robot)

    def impact(self, message: Any) -> ImpactRecord:
        """Return an impact."""
        at_points = [part for part in message.impulses if part.link and part.name not in self._anchors]
        return ImpactRecord(
            seconds_of(stamp(message) - self._start),
            message.energy_lost,
            np.array(message.velocity_minus),
            np.array(message.velocity_plus),
            {part.name: _vector(part.linear) for part in at_points},
        )

    def _contact(self, message: Any) -> ContactForce:
        return ContactForce(
            message.name,
            self._frames.link(message.link, self._robot.links),
            ContactStatus(message.status),
            _vector(message.position),
            _vector(message.normal),
            _vector(message.wrench.force),
            message.normal_force,
            message.friction,
            message.gap,
            _vector(message.slip),
            _vector(message.wrench.torque),
        )


def _vector(message: Any) -> Array:
    return np.array(xyz(message))

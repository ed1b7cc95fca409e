"""The messages of a control period, filled from its results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Transform, Twist, Wrench
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Header

from constrained_sim import msg
from constrained_sim.frame_names import FrameNames
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.robot import Robot
from constrained_sim.ros.cdr import Form
from constrained_sim.ros.conversions import JointNames, point, to_duration, vector
from constrained_sim.ros.world import Period
from constrained_sim.step_result import ConstraintForce
from constrained_sim.validation import Array

UNKNOWN_COVARIANCE = [0.0] * 36


FREE_JOINT = pin.JointModelFreeFlyer().shortname()
"""Whose configuration is a pose: of the two quaternions that mean it, odometry has the one in the configuration too."""


class PeriodMessages:
    """The messages of every control period; those that come in each one as bytes, see :class:`Form`.

    Attributes:
        header: stamp of the period's end, and the world frame.
    """

    def __init__(self, robot: Robot, joints: JointNames, frames: FrameNames, period: int) -> None:
        """Prepare messages with `frames` for control periods of `period` [ns]."""
        self._robot, self._joints, self._frames = robot, joints, frames
        self.header = Header(frame_id=frames.world)
        self._stamp, self._period = (0, 0), divmod(period, NANOSECONDS)
        self._whole = self._length = period
        self._constraints = msg.ConstraintForces(header=self.header, period=to_duration(period))
        self._several = [(name, joint) for name, joint in robot.own_joint_models.items() if joint.nv > 1]
        zeros, base = [0.0] * len(joints.names), frames.of(robot.root_link)
        self._clock = Form(Clock())
        self._state = Form(
            JointState(header=self.header, name=joints.names, position=zeros, velocity=zeros, effort=zeros)
        )
        self._odometry = Form(Odometry(header=self.header, child_frame_id=base))
        count = len(self._several)
        self._multi_dof = Form(
            MultiDOFJointState(
                header=self.header,
                joint_names=[name for name, _ in self._several],
                transforms=[Transform() for _ in range(count)],
                twist=[Twist() for _ in range(count)],
                wrench=[Wrench() for _ in range(count)],
            )
        )
        self._forces = lru_cache(maxsize=64)(self._form_of_forces)

    @property
    def has_multi_dof_joints(self) -> bool:
        """Whether any joint has more than one degree of freedom."""
        return bool(self._several)

    def stamp(self, nanoseconds: int, period: int | None = None) -> None:
        """Set the stamp of all messages, and the length of their period [ns]; None: a whole one."""
        length = self._whole if period is None else period
        if length != self._length:
            self._length, self._period = length, divmod(length, NANOSECONDS)
            self._constraints.period = to_duration(length)
        self._stamp = divmod(nanoseconds, NANOSECONDS)
        self.header.stamp.sec, self.header.stamp.nanosec = self._stamp

    def clock(self) -> bytes:
        """Return the clock (Clock) at the stamp."""
        return self._clock.filled(self._stamp)

    def state(self, q: Array, v: Array, tau: Array) -> bytes:
        """Return the state (JointState) of all joints with one degree of freedom."""
        joints = self._joints
        return self._state.filled([*self._stamp, *joints.positions(q), *joints.velocities(v), *joints.efforts(tau)])

    def odometry(self, q: Array, v: Array) -> bytes:
        """Return the placement of the floating base in the world, and its velocity in its own axes (Odometry)."""
        pose, twist = q[:7].tolist(), v[:6].tolist()
        return self._odometry.filled([*self._stamp, *pose, *UNKNOWN_COVARIANCE, *twist, *UNKNOWN_COVARIANCE])

    def multi_dof(self, q: Array, v: Array, tau: Array) -> bytes:
        """Return the joints with several degrees of freedom (MultiDOFJointState).

        A transform is that of the joint's moving side in its fixed side; twist and applied effort are in the axes of
        the moving side.
        """
        placements: list[float] = []
        twists: list[float] = []
        wrenches: list[float] = []
        efforts = np.zeros(self._robot.nv)
        efforts[self._robot.actuation] = tau
        for _, joint in self._several:
            data = joint.createData()
            joint.calc(data, q, v)
            effort = np.linalg.pinv(np.asarray(data.S).reshape(6, -1)).T @ efforts[joint.idx_v : joint.idx_v + joint.nv]
            is_free = joint.shortname() == FREE_JOINT
            placements += q[joint.idx_q :][:7].tolist() if is_free else pin.SE3ToXYZQUAT(pin.SE3(data.M)).tolist()
            twists += pin.Motion(data.v).vector.tolist()
            wrenches += effort.tolist()
        return self._multi_dof.filled([*self._stamp, *placements, *twists, *wrenches])

    def forces(self, period: Period) -> bytes:
        """Return all contacts at the end of `period` with their mean wrenches, ordered by name (ContactForces)."""
        contacts = sorted(period.contacts.items())
        numbers: list[float] = [*self._stamp, *self._period]
        for name, contact in contacts:
            force = period.mean_forces[name]
            numbers.append(int(contact.status))
            numbers += contact.position.tolist()
            numbers += contact.normal.tolist()
            numbers += force.tolist()
            numbers += period.mean_moments[name].tolist()
            numbers += (float(force @ contact.normal), contact.friction, contact.gap)
            numbers += contact.slip.tolist()
        return self._forces(tuple((name, contact.link) for name, contact in contacts)).filled(numbers)

    def _form_of_forces(self, named: tuple[tuple[str, str], ...]) -> Form:
        """Return the form for contacts of these names and links."""
        contacts = [msg.ContactForce(name=name, link=self._frames.of(link)) for name, link in named]
        return Form(msg.ContactForces(header=self.header, contacts=contacts))

    def constraint_forces(
        self, constraints: Mapping[str, ConstraintForce], means: Mapping[str, tuple[Array, Array]]
    ) -> msg.ConstraintForces:
        """Return all bilateral constraints, ordered by name.

        Args:
            constraints: at the end of the period.
            means: multipliers (dim,) and wrench (6,) over the period by name [N, N m], world axes.
        """
        self._constraints.constraints = []
        for name in sorted(constraints):
            constraint, (multipliers, wrench) = constraints[name], means[name]
            message = msg.ConstraintForce(
                name=name,
                multipliers=multipliers.tolist(),
                position_error=constraint.position_error.tolist(),
                velocity_error=constraint.velocity_error.tolist(),
                position=point(constraint.position),
            )
            if constraint.link_a:
                message.link_a, message.link_b = self._frames.of(constraint.link_a), self._frames.of(constraint.link_b)
            message.wrench = Wrench(force=vector(wrench[:3]), torque=vector(wrench[3:]))
            self._constraints.constraints.append(message)
        return self._constraints

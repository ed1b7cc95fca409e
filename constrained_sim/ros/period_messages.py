"""The messages of a control period, filled from its results."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3, Wrench, WrenchStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from constrained_sim import msg
from constrained_sim.constraints import PointContact
from constrained_sim.dynamics import kinematics_at
from constrained_sim.impact import Impact
from constrained_sim.robot import Robot
from constrained_sim.ros.conversions import NANOSECONDS, JointNames, fill, point, to_duration, vector
from constrained_sim.step_result import ConstraintForce, ContactForce
from constrained_sim.validation import Array

STATUS_COLOURS = {1: (0.1, 0.7, 0.2), 2: (0.9, 0.5, 0.1)}


class PeriodMessages:
    """Fills the messages of every control period; made once, since making one costs more than filling it.

    A message is the same object at every call: serialise it before the next.

    Attributes:
        header: stamp of the period's end, and the world frame.
        last_state: as :meth:`state` filled it last.
        last_odometry: as :meth:`odometry` did.
        layout: changes whenever the lengths of strings and sequences in the forces do.
    """

    def __init__(self, robot: Robot, joints: JointNames, frame: str, period: int, prefix: str) -> None:
        """Prepare messages in `frame` for control periods of `period` [ns]; `prefix` is put before names of links."""
        self._robot, self._joints, self._prefix = robot, joints, prefix
        self.header = Header(frame_id=frame)
        self._clock = Clock()
        self.last_state = JointState(header=self.header, name=joints.names)
        self._forces = msg.ContactForces(header=self.header, period=to_duration(period))
        self._constraints = msg.ConstraintForces(header=self.header, period=to_duration(period))
        self._names: list[str] = []
        self.layout = 0
        self.last_odometry = Odometry(header=self.header, child_frame_id=prefix + robot.root_link)
        self._several = [(name, joint) for name, joint in robot.joint_models.items() if joint.nv > 1]
        names = [name for name, _ in self._several]
        self._multi_dof = MultiDOFJointState(header=self.header, joint_names=names)
        self._efforts = {int(index): u for u, index in enumerate(robot.actuation)}

    @property
    def has_multi_dof_joints(self) -> bool:
        """Whether any joint has more than one degree of freedom."""
        return bool(self._several)

    def stamp(self, nanoseconds: int) -> None:
        """Set the stamp of all messages."""
        for stamp in (self.header.stamp, self._clock.clock):
            stamp.sec, stamp.nanosec = divmod(nanoseconds, NANOSECONDS)

    @property
    def clock(self) -> Clock:
        """The clock at the stamp."""
        return self._clock

    def state(self, q: Array, v: Array, tau: Array) -> JointState:
        """Return the state of all joints with one degree of freedom."""
        self.last_state.position = self._joints.positions(q)
        self.last_state.velocity = self._joints.velocities(v)
        self.last_state.effort = self._joints.efforts(tau)
        return self.last_state

    def odometry(self, q: Array, v: Array) -> Odometry:
        """Return the placement of the floating base in the world, and its velocity in its own axes."""
        pose, twist = self.last_odometry.pose.pose, self.last_odometry.twist.twist
        fill(pose.position, q[:3])
        turn = pose.orientation
        turn.x, turn.y, turn.z, turn.w = q[3:7].tolist()
        fill(twist.linear, v[:3])
        fill(twist.angular, v[3:6])
        return self.last_odometry

    def multi_dof(self, q: Array, v: Array, tau: Array) -> MultiDOFJointState:
        """Return the joints with several degrees of freedom.

        A transform is that of the joint's moving side in its fixed side; twist and applied effort are in the axes of
        the moving side.
        """
        message = self._multi_dof
        message.transforms, message.twist, message.wrench = [], [], []
        efforts = np.zeros(self._robot.nv)
        efforts[self._robot.actuation] = tau
        for _, joint in self._several:
            data = joint.createData()
            joint.calc(data, q, v)
            x, y, z, w = map(float, pin.SE3ToXYZQUAT(pin.SE3(data.M))[3:])
            rates = pin.Motion(data.v)
            effort = np.linalg.pinv(np.asarray(data.S).reshape(6, -1)).T @ efforts[joint.idx_v : joint.idx_v + joint.nv]
            message.transforms.append(
                Transform(translation=vector(pin.SE3(data.M).translation), rotation=Quaternion(x=x, y=y, z=z, w=w))
            )
            message.twist.append(Twist(linear=vector(rates.linear), angular=vector(rates.angular)))
            message.wrench.append(Wrench(force=vector(effort[:3]), torque=vector(effort[3:])))
        return message

    def forces(
        self,
        contacts: Mapping[str, ContactForce],
        mean_forces: Mapping[str, Array],
        mean_moments: Mapping[str, Array],
    ) -> msg.ContactForces:
        """Return all contacts, ordered by name.

        Args:
            contacts: at the end of the period.
            mean_forces: (3,) over the period by name [N], world axes.
            mean_moments: (3,) likewise, about the contact points [N m].
        """
        names = sorted(contacts)
        if names != self._names:
            self._names = names
            self.layout += 1
            self._forces.contacts = [msg.ContactForce(name=name) for name in names]
        for name, message in zip(names, self._forces.contacts, strict=True):
            contact, force = contacts[name], mean_forces[name]
            message.link = self._prefix + contact.link
            message.status = int(contact.status)
            message.normal_force = float(force @ contact.normal)
            message.friction = contact.friction
            message.gap = contact.gap
            fill(message.position, contact.position)
            fill(message.normal, contact.normal)
            fill(message.wrench.force, force)
            fill(message.wrench.torque, mean_moments[name])
            fill(message.slip, contact.slip)
        return self._forces

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
                message.link_a, message.link_b = self._prefix + constraint.link_a, self._prefix + constraint.link_b
            fill(message.wrench.force, wrench[:3])
            fill(message.wrench.torque, wrench[3:])
            self._constraints.constraints.append(message)
        return self._constraints

    def contact_wrenches(
        self,
        q: Array,
        contacts: Mapping[str, ContactForce],
        mean_forces: Mapping[str, Array],
        mean_moments: Mapping[str, Array],
    ) -> dict[str, WrenchStamped]:
        """Return the mean wrench of each contact on its link, about the link's origin, in its axes, by topic name."""
        dynamics = kinematics_at(self._robot, q)
        messages = {}
        for name, contact in contacts.items():
            joint, in_joint = self._robot.link_placement(contact.link)
            link = dynamics.placement(joint) * in_joint
            moment = np.cross(contact.position, mean_forces[name]) + mean_moments[name]
            force = pin.Force(mean_forces[name], moment)
            there = link.actInv(force)
            header = Header(stamp=self.header.stamp, frame_id=self._prefix + contact.link)
            wrench = Wrench(force=vector(there.linear), torque=vector(there.angular))
            messages[topic_name(name)] = WrenchStamped(header=header, wrench=wrench)
        return messages

    def markers(
        self, contacts: Mapping[str, ContactForce], mean_forces: Mapping[str, Array], scale: float
    ) -> MarkerArray:
        """Return an arrow of `scale` [m/N] at each contact that carries force; those of before are deleted."""
        markers = [Marker(header=self.header, ns="contacts", action=Marker.DELETEALL)]
        for number, name in enumerate(sorted(contacts)):
            contact, force = contacts[name], mean_forces[name]
            if not force.any():
                continue
            red, green, blue = STATUS_COLOURS.get(int(contact.status), (0.5, 0.5, 0.5))
            markers.append(
                Marker(
                    header=self.header,
                    ns="contacts",
                    id=number,
                    type=Marker.ARROW,
                    action=Marker.ADD,
                    points=[point(contact.position), point(contact.position + scale * force)],
                    scale=Vector3(x=0.01, y=0.02, z=0.03),
                    color=ColorRGBA(r=red, g=green, b=blue, a=1.0),
                )
            )
        return MarkerArray(markers=markers)


def topic_name(name: str) -> str:
    """Return `name` as part of a topic: what topics do not allow becomes an underscore."""
    allowed = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return allowed if not allowed[0].isdigit() else f"_{allowed}"


def impact_message(header: Header, impact: Impact, robot: Robot, prefix: str) -> msg.Impact:
    """Return an impact with the impulses of everything that took part."""
    message = msg.Impact(
        header=header,
        velocity_names=list(robot.velocity_names),
        velocity_minus=impact.v_minus.tolist(),
        velocity_plus=impact.v_plus.tolist(),
        energy_lost=impact.energy_lost,
        restitution_scale=impact.restitution_scale,
    )
    names = [member.name for member in impact.constraints.contacts.members]
    places = dict(zip(names, zip(impact.points, impact.moments, strict=True), strict=True))
    for member in impact.constraints.members:
        rows = impact.constraints.slice(member.name)
        if not impact.impulse[rows].any():
            continue
        impulse = msg.Impulse(
            name=member.name,
            rows=impact.impulse[rows].tolist(),
            row_velocity_minus=impact.row_velocity_minus[rows].tolist(),
            row_velocity_plus=impact.row_velocity_plus[rows].tolist(),
        )
        declaration = member.declaration
        if isinstance(declaration, PointContact):
            impulse.link = prefix + declaration.link
            position, moment = places[member.name]
            impulse.position, impulse.angular = point(position), vector(moment)
            impulse.linear = vector(impact.impulse[rows] @ declaration.surface.axes)
        message.impulses.append(impulse)
    return message

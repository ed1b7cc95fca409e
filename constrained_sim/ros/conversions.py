"""Between the objects of the simulator and ROS messages; no other module fills or reads message fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Vector3
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from constrained_sim import msg
from constrained_sim.constraints import PointContact
from constrained_sim.contact import Plane, make_law
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.impact import Impact
from constrained_sim.robot import Robot
from constrained_sim.step_result import ContactForce
from constrained_sim.validation import Array, finite_array

NANOSECONDS = 1_000_000_000


def to_time(nanoseconds: int) -> Time:
    """Return a stamp."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def to_duration(nanoseconds: int) -> Duration:
    """Return a duration."""
    return Duration(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def to_nanoseconds(stamp: Time) -> int:
    """Return the stamp in nanoseconds."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


class JointNames:
    """The joints with one degree of freedom, as joint_states lists them, and the actuated joints among them.

    Continuous joints, which Pinocchio stores as (cos, sin), are unwrapped: their angle goes on beyond a turn.
    """

    def __init__(self, robot: Robot, order: Sequence[str] = ()) -> None:
        """Look up the joints of `robot`; `order` is that of command arrays, empty: the actuated joints."""
        model = robot.model
        joints = [(name, model.joints[model.getJointId(name)]) for name in robot.joint_names]
        single = [(name, joint) for name, joint in joints if joint.nv == 1]
        self.names = [name for name, _ in single]
        self._q = np.array([joint.idx_q for _, joint in single], dtype=int)
        self._v = np.array([joint.idx_v for _, joint in single], dtype=int)
        self._turning = np.array([joint.nq == 2 for _, joint in single], dtype=bool)
        efforts = {int(v): u for u, v in enumerate(robot.actuation)}
        self._commanded = {name: efforts[joint.idx_v] for name, joint in single if joint.idx_v in efforts}
        self._driven = np.array([self.names.index(name) for name in self._commanded], dtype=int)
        self._drives = np.array(list(self._commanded.values()), dtype=int)
        self.order = tuple(order) or tuple(self._commanded)
        self._last = np.zeros(len(single))

    @property
    def commanded(self) -> Mapping[str, int]:
        """Index into tau of every joint that takes commands by name."""
        return self._commanded

    def positions(self, q: Array) -> list[float]:
        """Return the positions [rad, m] at `q`; the angle of a continuous joint is the one nearest to the last."""
        values = q[self._q]
        if self._turning.any():
            angle = np.arctan2(q[np.minimum(self._q + 1, len(q) - 1)], values)
            turns = np.round((self._last - angle) / (2.0 * np.pi))
            values = np.where(self._turning, angle + 2.0 * np.pi * turns, values)
            self._last = values
        return values.tolist()

    def velocities(self, v: Array) -> list[float]:
        """Return the velocities [rad/s, m/s]."""
        return v[self._v].tolist()

    def efforts(self, tau: Array) -> list[float]:
        """Return the applied efforts [N m, N], 0 of passive joints."""
        all_efforts = np.zeros(len(self.names))
        all_efforts[self._driven] = tau[self._drives]
        return all_efforts.tolist()


class StateMessages:
    """Fills the messages of every control period; made once, since making one costs more than filling it.

    A message is the same object at every call: serialise it before the next.

    Attributes:
        layout: changes whenever the lengths of strings and sequences in the contact forces do.
    """

    def __init__(self, joints: JointNames, frame: str, period: int, link_prefix: str) -> None:
        """Prepare messages in `frame` for control periods of `period` [ns]."""
        self._joints, self._prefix = joints, link_prefix
        self._header = Header(frame_id=frame)
        self._clock = Clock()
        self._state = JointState(header=self._header, name=joints.names)
        self._forces = msg.ContactForces(header=self._header, period=to_duration(period))
        self._names: list[str] = []
        self.layout = 0

    def stamp(self, nanoseconds: int) -> None:
        """Set the stamp of all messages."""
        for stamp in (self._header.stamp, self._clock.clock):
            stamp.sec, stamp.nanosec = divmod(nanoseconds, NANOSECONDS)

    @property
    def clock(self) -> Clock:
        """The clock at the stamp."""
        return self._clock

    def state(self, q: Array, v: Array, tau: Array) -> JointState:
        """Return the state of all joints with one degree of freedom."""
        self._state.position = self._joints.positions(q)
        self._state.velocity = self._joints.velocities(v)
        self._state.effort = self._joints.efforts(tau)
        return self._state

    def forces(self, contacts: Mapping[str, ContactForce], mean_forces: Mapping[str, Array]) -> msg.ContactForces:
        """Return all contacts, ordered by name.

        Args:
            contacts: at the end of the period.
            mean_forces: (3,) over the period by name [N], world axes.
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
            fill(message.slip, contact.slip)
        return self._forces


def fill(message: Point | Vector3, values: Array) -> None:
    """Set x, y and z."""
    message.x, message.y, message.z = values.tolist()


def efforts_by_name(message: JointState, joints: JointNames) -> dict[int, float]:
    """Return the efforts of a command by index into tau.

    Raises:
        UnknownName: a joint that takes no commands.
        InvalidValue: not one effort for each name, a name twice, NaN or infinity.
    """
    names = list(message.name)
    for name in names:
        if name not in joints.commanded:
            raise UnknownName("actuated joint", name, joints.commanded)
    if len(set(names)) != len(names):
        raise InvalidValue("name of a joint command", names, "each joint once")
    efforts = finite_array("effort of a joint command", message.effort, (len(names),))
    return {joints.commanded[name]: float(effort) for name, effort in zip(names, efforts, strict=True)}


def contact_from_message(message: msg.Contact) -> PointContact:
    """Return the declared contact.

    Raises:
        ConstrainedSimError: a value that is not allowed.
    """
    if message.surface:
        raise UnknownName("surface", message.surface, ['"" (the plane normal . x = offset)'])
    return PointContact(
        message.name,
        message.link,
        [message.point.x, message.point.y, message.point.z],
        Plane([message.normal.x, message.normal.y, message.normal.z], message.offset),
        make_law(message.law, {key: getattr(message, key) for key in SOFT_PARAMETERS if getattr(message, key)}),
        message.friction,
        message.restitution,
        message.radius,
    )


def contact_to_message(contact: PointContact) -> msg.Contact:
    """Return the declaration of `contact` as in effect."""
    return msg.Contact(
        name=contact.name,
        link=contact.link,
        point=_point(contact.point),
        radius=contact.radius,
        normal=_vector(contact.surface.normal),
        offset=contact.surface.offset,
        law=contact.law.name,
        friction=contact.friction,
        restitution=contact.restitution,
        **{key: getattr(contact.law, key, 0.0) for key in SOFT_PARAMETERS},
    )


SOFT_PARAMETERS = ("stiffness", "damping")
"""Fields of a contact message that belong to the law 'compliant'; zero where they are not given."""


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
    positions = dict(zip((m.name for m in impact.constraints.contacts.members), impact.points, strict=True))
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
            impulse.position = _point(positions[member.name])
            impulse.linear = _vector(impact.impulse[rows] @ declaration.surface.axes)
        message.impulses.append(impulse)
    return message


def _point(values: Sequence[float]) -> Point:
    x, y, z = map(float, values)
    return Point(x=x, y=y, z=z)


def _vector(values: Sequence[float]) -> Vector3:
    x, y, z = map(float, values)
    return Vector3(x=x, y=y, z=z)

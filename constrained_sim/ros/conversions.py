"""Between numbers of the simulator and small ROS messages: times, points, joints by name, joint commands."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from sensor_msgs.msg import JointState

from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.joints import places_of, single_joints
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.robot import Robot
from constrained_sim.validation import Array, finite_array


def to_time(nanoseconds: int) -> Time:
    """Return a stamp."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def to_duration(nanoseconds: int) -> Duration:
    """Return a duration."""
    return Duration(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def to_nanoseconds(time: Time | Duration) -> int:
    """Return a stamp, or a duration, in nanoseconds."""
    return time.sec * NANOSECONDS + time.nanosec


def named_values(what: str, names: Sequence[str], values: Sequence[float]) -> Array:
    """Return the values of a message (n,), one for each of `names`.

    Raises:
        InvalidValue: without names, another number of values, NaN or infinity.
    """
    if not names:
        raise InvalidValue(f"names for the {what}", list(names), f"one for each value: {len(values)}")
    return finite_array(what, list(values), (len(names),))


class JointNames:
    """The robot's own joints with one degree of freedom, as joint_states lists them, and the actuated ones among them.

    Continuous joints, which Pinocchio stores as (cos, sin), are unwrapped: their angle goes on beyond a turn.
    """

    def __init__(self, robot: Robot, order: Sequence[str] = ()) -> None:
        """Look up the joints of `robot`; `order` is that of command arrays, empty: the actuated joints."""
        single = single_joints(robot.own_joint_models)
        self.names = list(single)
        self._all = frozenset(robot.own_joint_models)
        self._q, self._v, self._turning = places_of(list(single.values()))
        self._any_turns = bool(self._turning.any())
        efforts = {int(v): u for u, v in enumerate(robot.actuation)}
        self._commanded = {name: efforts[joint.v] for name, joint in single.items() if joint.v in efforts}
        self._driven = np.array([self.names.index(name) for name in self._commanded], dtype=int)
        self._drives = np.array(list(self._commanded.values()), dtype=int)
        self.order = tuple(order) or tuple(self._commanded)
        self._last = np.zeros(len(single))
        self._listed: tuple[list[str], npt.NDArray[np.intp]] = ([], np.zeros(0, dtype=np.intp))

    @property
    def actuated(self) -> list[str]:
        """Those that take commands."""
        return list(self._commanded)

    def drives(self, names: Sequence[str], strict: bool = False) -> dict[int, int]:
        """Return the index into tau of each joint that takes commands, by its place in `names`.

        Args:
            names: joints, each once; those that the robot has and does not actuate are left out.
            strict: refuse those too.

        Raises:
            UnknownName: no such joint.
            InvalidValue: a name twice.
        """
        for name in names:
            if name not in self._commanded and (strict or name not in self._all):
                raise UnknownName("actuated joint", name, self._commanded)
        if len(set(names)) != len(names):
            raise InvalidValue("name of a joint command", names, "each joint once")
        return {place: self._commanded[name] for place, name in enumerate(names) if name in self._commanded}

    def fill(self, state: JointState, q: Array, v: Array) -> None:
        """Write positions and velocities of a joint state into `q` (nq,) and `v` (nv,).

        Raises:
            InvalidValue: a joint is missing, or there is not one position and one velocity for each name.
        """
        if state.name != self._listed[0]:
            known = [name for name in self.names if name in state.name]
            self._listed = list(state.name), np.array([state.name.index(name) for name in known], dtype=np.intp)
        order = self._listed[1]
        given = len(state.name), len(state.position), len(state.velocity)
        if len(order) < len(self.names) or len(set(given)) > 1:
            what = f"{given[1]} position(s) and {given[2]} velocities of {', '.join(state.name)}"
            raise InvalidValue("joint state", what, f"one of each of {', '.join(self.names)}")
        position = np.array(state.position)[order]
        q[self._q] = np.where(self._turning, np.cos(position), position)
        q[self._q[self._turning] + 1] = np.sin(position[self._turning])
        v[self._v] = np.array(state.velocity)[order]

    def forget(self, names: Collection[str] | None = None) -> None:
        """Start anew: the angles of continuous joints, of these `names` or of all, are then those nearest to zero."""
        anew = np.ones(len(self.names), dtype=bool) if names is None else np.isin(self.names, list(names))
        self._last = np.where(anew, 0.0, self._last)

    def positions(self, q: Array) -> list[float]:
        """Return the positions [rad, m] at `q`; the angle of a continuous joint is the one nearest to the last."""
        values = q[self._q]
        if self._any_turns:
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


def xyz(message: Point | Vector3) -> list[float]:
    """Return x, y and z."""
    return [message.x, message.y, message.z]


def pose_values(message: Pose) -> list[float]:
    """Return the position [m] and the quaternion xyzw of a pose."""
    turn = message.orientation
    return [*xyz(message.position), turn.x, turn.y, turn.z, turn.w]


def pose_message(placement: pin.SE3) -> Pose:
    """Return a placement as a pose."""
    x, y, z, w = map(float, pin.SE3ToXYZQUAT(placement)[3:])
    return Pose(position=point(placement.translation), orientation=Quaternion(x=x, y=y, z=z, w=w))


def point(values: Sequence[float] | Array) -> Point:
    """Return three values as a point."""
    x, y, z = map(float, values)
    return Point(x=x, y=y, z=z)


def vector(values: Sequence[float] | Array) -> Vector3:
    """Return three values as a vector."""
    x, y, z = map(float, values)
    return Vector3(x=x, y=y, z=z)

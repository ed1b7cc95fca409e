"""The motion of a floating base from odometry."""

from __future__ import annotations

from typing import NamedTuple

from nav_msgs.msg import Odometry

from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.ros.cdr import Form, deserialise
from constrained_sim.ros.conversions import pose_values, to_nanoseconds, xyz

COVARIANCE = 36
"""Numbers of each of the two covariances."""


class BaseMotion(NamedTuple):
    """What odometry tells of a floating base.

    Attributes:
        stamp: [ns].
        pose: (7,) position [m] and quaternion xyzw.
        twist: (6,) linear [m/s] and angular velocity [rad/s], body axes.
    """

    stamp: int
    pose: list[float]
    twist: list[float]

    @classmethod
    def of(cls, message: Odometry) -> BaseMotion:
        """Return what `message` tells."""
        twist = message.twist.twist
        stamp = to_nanoseconds(message.header.stamp)
        return cls(stamp, pose_values(message.pose.pose), [*xyz(twist.linear), *xyz(twist.angular)])


class OdometryReader:
    """Reads serialised odometry: quickly, as long as the names of the frames stay the same."""

    def __init__(self) -> None:
        """Know no frames yet."""
        self._form: Form | None = None

    def read(self, data: bytes) -> BaseMotion:
        """Return what a serialised nav_msgs/Odometry tells.

        Raises:
            InvalidValue: no such message.
        """
        numbers = None if self._form is None else self._form.numbers(data)
        if numbers is not None:
            begin = 9 + COVARIANCE
            stamp = int(numbers[0]) * NANOSECONDS + int(numbers[1])
            return BaseMotion(stamp, numbers[2:9], numbers[begin : begin + 6])
        message = deserialise("odometry", data, Odometry)
        self._form = Form(message)
        return BaseMotion.of(message)

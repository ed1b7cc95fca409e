"""The topics of the sensors: readings as messages of sensor_msgs and geometry_msgs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu as ImuMessage

from constrained_sim.config import Config
from constrained_sim.ros.conversions import fill, to_time
from constrained_sim.ros.topics import Topics
from constrained_sim.ros.world import Period
from constrained_sim.sensors import ForceTorque, ForceTorqueReading, Imu, ImuReading


class SensorTopics:
    """Publishes what the sensors read: ``NAME/imu`` and ``NAME/wrench``, as the broadcasters of ros2_control do.

    Stamps are the ends of the control periods in which sensors read; ``frame_id`` is the sensor's link, after the
    configured prefix.
    """

    def __init__(self, topics: Topics, config: Config) -> None:
        """Open the topics of the sensors of `config`."""
        self._sensors = config.sensor_set()
        self._members = {sensor.name: sensor for sensor in config.sensors}
        self._prefix = config.node.frame_prefix
        self._topics = {
            name: topics.open(KINDS[sensor.kind][0], f"{name}/{KINDS[sensor.kind][1]}")
            for name, sensor in self._members.items()
        }

    def restart(self) -> None:
        """Begin anew after a reset: periods and noise."""
        self._sensors.reset()

    def send(self, period: Period) -> None:
        """Publish what is read at the end of `period`."""
        for name, reading in self._sensors.measure(period.result).items():
            sensor = self._members[name]
            message = KINDS[sensor.kind][2](sensor, reading)
            message.header.stamp, message.header.frame_id = to_time(period.stamp), self._prefix + sensor.link
            self._topics[name].send(message, period.stamp, layout=0)


def imu_message(sensor: Imu, reading: ImuReading) -> ImuMessage:
    """Return the reading of an IMU without header; covariances are the squares of the standard deviations."""
    message = ImuMessage()
    turn = message.orientation
    turn.x, turn.y, turn.z, turn.w = reading.orientation.tolist()
    fill(message.angular_velocity, reading.angular_velocity)
    fill(message.linear_acceleration, reading.acceleration)
    message.orientation_covariance = _covariance(sensor.orientation_noise)
    message.angular_velocity_covariance = _covariance(sensor.angular_velocity_noise)
    message.linear_acceleration_covariance = _covariance(sensor.acceleration_noise)
    return message


def wrench_message(sensor: ForceTorque, reading: ForceTorqueReading) -> WrenchStamped:
    """Return the reading of a force-torque sensor without header."""
    message = WrenchStamped()
    fill(message.wrench.force, reading.force)
    fill(message.wrench.torque, reading.torque)
    return message


KINDS: dict[str, tuple[type, str, Callable[[Any, Any], Any]]] = {
    Imu.kind: (ImuMessage, "imu", imu_message),
    ForceTorque.kind: (WrenchStamped, "wrench", wrench_message),
}
"""Type of the message, last part of the topic's name and how the message is filled, by kind of sensor."""


def _covariance(noise: float) -> list[float]:
    """Return the covariance (9,), row by row, of three components with the standard deviation `noise`."""
    variance = noise * noise
    return [variance, 0.0, 0.0, 0.0, variance, 0.0, 0.0, 0.0, variance]

"""The topics of the sensors: readings as messages of sensor_msgs and geometry_msgs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu as ImuMessage
from std_msgs.msg import Header

from constrained_sim.config import Config
from constrained_sim.ros.cdr import Form
from constrained_sim.ros.conversions import NANOSECONDS
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
        self._topics, self._forms = {}, {}
        self._last: dict[str, Callable[[], bytes]] = {}
        for name, sensor in self._members.items():
            kind, end, _ = KINDS[sensor.kind]
            self._topics[name] = topics.open(kind, f"{name}/{end}")
            self._forms[name] = Form(kind(header=Header(frame_id=config.node.frame_prefix + sensor.link)))

    def restart(self) -> None:
        """Begin anew after a reset: periods and noise."""
        self._sensors.reset()
        self._last.clear()

    def send(self, period: Period) -> None:
        """Publish what is read at the end of `period`."""
        for name, reading in self._sensors.measure(period.result).items():
            make = self._last[name] = partial(self._message, name, reading, period.stamp)
            self._topics[name].offer(make, period.stamp)

    def greet(self) -> None:
        """Publish the last readings once more for those who have begun to listen."""
        for name, make in self._last.items():
            self._topics[name].greet(make)

    def _message(self, name: str, reading: Any, stamp: int) -> bytes:
        sensor = self._members[name]
        numbers = KINDS[sensor.kind][2](sensor, reading)
        return self._forms[name].filled([*divmod(stamp, NANOSECONDS), *numbers])


def imu_numbers(sensor: Imu, reading: ImuReading) -> list[float]:
    """Return the numbers of an Imu message after its stamp; covariances are the squares of the standard deviations."""
    return [
        *reading.orientation.tolist(),
        *_covariance(sensor.orientation_noise),
        *reading.angular_velocity.tolist(),
        *_covariance(sensor.angular_velocity_noise),
        *reading.acceleration.tolist(),
        *_covariance(sensor.acceleration_noise),
    ]


def wrench_numbers(sensor: ForceTorque, reading: ForceTorqueReading) -> list[float]:
    """Return the numbers of a WrenchStamped message after its stamp."""
    return [*reading.force.tolist(), *reading.torque.tolist()]


KINDS: dict[str, tuple[type, str, Callable[[Any, Any], list[float]]]] = {
    Imu.kind: (ImuMessage, "imu", imu_numbers),
    ForceTorque.kind: (WrenchStamped, "wrench", wrench_numbers),
}
"""Type of the message, last part of the topic's name and the numbers of the message, by kind of sensor."""


def _covariance(noise: float) -> list[float]:
    """Return the covariance (9,), row by row, of three components with the standard deviation `noise`."""
    variance = noise * noise
    return [variance, 0.0, 0.0, 0.0, variance, 0.0, 0.0, 0.0, variance]

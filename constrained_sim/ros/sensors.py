"""The topics of the sensors: readings as messages of sensor_msgs, geometry_msgs and std_msgs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from geometry_msgs.msg import TwistStamped, WrenchStamped
from sensor_msgs.msg import FluidPressure, JointState, LaserScan, MagneticField, NavSatFix, NavSatStatus, Range
from sensor_msgs.msg import Imu as ImuMessage
from std_msgs.msg import Bool, Header

from constrained_sim.config import Config
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.ros.cdr import Form
from constrained_sim.ros.topics import Topics
from constrained_sim.ros.world import Period
from constrained_sim.sensors import (
    Barometer,
    BarometerReading,
    ContactSwitch,
    Encoder,
    EncoderReading,
    ForceTorque,
    ForceTorqueReading,
    Imu,
    ImuReading,
    Lidar,
    LidarReading,
    Magnetometer,
    MagnetometerReading,
    NavSat,
    NavSatReading,
    RangeFinder,
    RangeReading,
    Twist,
    TwistReading,
)


class SensorTopics:
    """Publishes what the sensors read: ``NAME/imu``, ``NAME/wrench`` and so on, as the broadcasters of ros2_control do.

    The stamp of a reading is that of the state which it shows: the end of the control period in which the sensor reads,
    of a delayed one that of an earlier period. ``frame_id`` is the frame of the sensor's link.
    """

    def __init__(self, topics: Topics, config: Config) -> None:
        """Open the topics of the sensors of `config`."""
        self._sensors = config.sensor_set()
        self._members = {sensor.name: sensor for sensor in config.sensors}
        self._topics, self._forms = {}, {}
        self._last: dict[str, Callable[[], bytes]] = {}
        self._stamps: deque[int] = deque(maxlen=1 + max(self._sensors.late.values(), default=0))
        for name, sensor in self._members.items():
            format_ = FORMATS[sensor.kind]
            header = Header(frame_id=config.node.frames.of(sensor.link))
            self._topics[name] = topics.open(format_.message, f"{name}/{format_.topic}")
            self._forms[name] = Form(format_.blank(sensor, header))

    def restart(self) -> None:
        """Begin anew after a reset: periods and noise."""
        self._sensors.reset()
        self._last.clear()
        self._stamps.clear()

    def send(self, period: Period) -> None:
        """Publish what is read at the end of `period`."""
        self._stamps.append(period.stamp)
        for name, reading in self._sensors.measure(period.result).items():
            shown = self._stamps[-1 - self._sensors.late[name]]
            make = self._last[name] = partial(self._message, name, reading, shown)
            self._topics[name].offer(make, period.stamp)

    def greet(self) -> None:
        """Publish the last readings once more for those who have begun to listen."""
        for name, make in self._last.items():
            self._topics[name].greet(make)

    def _message(self, name: str, reading: Any, stamp: int) -> bytes:
        sensor = self._members[name]
        format_ = FORMATS[sensor.kind]
        time = divmod(stamp, NANOSECONDS) if format_.is_stamped else ()
        return self._forms[name].filled([*time, *format_.numbers(sensor, reading)])


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


def encoder_numbers(sensor: Encoder, reading: EncoderReading) -> list[float]:
    """Return the numbers of a JointState message of one joint after its stamp."""
    return [*reading.position.tolist(), *reading.velocity.tolist()]


def twist_numbers(sensor: Twist, reading: TwistReading) -> list[float]:
    """Return the numbers of a TwistStamped message after its stamp."""
    return [*reading.linear.tolist(), *reading.angular.tolist()]


def range_numbers(sensor: RangeFinder, reading: RangeReading) -> list[float]:
    """Return the numbers of a Range message after its stamp; the beam has no width."""
    numbers = [Range.INFRARED, 0.0, sensor.min_range, sensor.max_range, *reading.range.tolist()]
    return [*numbers, sensor.range_noise**2] if hasattr(Range, "variance") else numbers


def scan_numbers(sensor: Lidar, reading: LidarReading) -> list[float]:
    """Return the numbers of a LaserScan message after its stamp; all beams measure at once."""
    angles = sensor.min_angle, sensor.max_angle, sensor.angle_increment
    times = 0.0, 1.0 / sensor.rate if sensor.rate else 0.0
    return [*angles, *times, sensor.min_range, sensor.max_range, *reading.ranges.tolist()]


def magnetic_field_numbers(sensor: Magnetometer, reading: MagnetometerReading) -> list[float]:
    """Return the numbers of a MagneticField message after its stamp."""
    return [*reading.field.tolist(), *_covariance(sensor.field_noise)]


def pressure_numbers(sensor: Barometer, reading: BarometerReading) -> list[float]:
    """Return the numbers of a FluidPressure message after its stamp."""
    return [*reading.pressure.tolist(), sensor.pressure_noise**2]


def fix_numbers(sensor: NavSat, reading: NavSatReading) -> list[float]:
    """Return the numbers of a NavSatFix message after its stamp; the covariance is along east, north and up."""
    place = (part.item() for part in reading)
    covariance = _covariance(sensor.horizontal_noise)
    covariance[-1] = sensor.vertical_noise**2
    status = NavSatStatus.STATUS_FIX, NavSatStatus.SERVICE_GPS
    return [*status, *place, *covariance, NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN]


class Format(NamedTuple):
    """How readings of a kind of sensor are published.

    Attributes:
        message: type of the message.
        topic: last part of the topic's name.
        numbers: returns the numbers of the message, after its stamp.
        blank: returns the message with its texts and lengths.
        is_stamped: whether the message has a header.
    """

    message: type
    topic: str
    numbers: Callable[[Any, Any], list[float]]
    blank: Callable[[Any, Header], Any]
    is_stamped: bool = True


FORMATS: dict[str, Format] = {
    Imu.kind: Format(ImuMessage, "imu", imu_numbers, lambda sensor, header: ImuMessage(header=header)),
    ForceTorque.kind: Format(
        WrenchStamped, "wrench", wrench_numbers, lambda sensor, header: WrenchStamped(header=header)
    ),
    Encoder.kind: Format(
        JointState,
        "joint_state",
        encoder_numbers,
        lambda sensor, header: JointState(header=header, name=[sensor.joint], position=[0.0], velocity=[0.0]),
    ),
    ContactSwitch.kind: Format(
        Bool, "contact", lambda sensor, reading: reading.is_pressed.tolist(), lambda sensor, header: Bool(), False
    ),
    Twist.kind: Format(TwistStamped, "twist", twist_numbers, lambda sensor, header: TwistStamped(header=header)),
    RangeFinder.kind: Format(Range, "range", range_numbers, lambda sensor, header: Range(header=header)),
    Lidar.kind: Format(
        LaserScan, "scan", scan_numbers, lambda sensor, header: LaserScan(header=header, ranges=[0.0] * sensor.beams)
    ),
    Magnetometer.kind: Format(
        MagneticField, "magnetic_field", magnetic_field_numbers, lambda sensor, header: MagneticField(header=header)
    ),
    Barometer.kind: Format(
        FluidPressure, "pressure", pressure_numbers, lambda sensor, header: FluidPressure(header=header)
    ),
    NavSat.kind: Format(NavSatFix, "fix", fix_numbers, lambda sensor, header: NavSatFix(header=header)),
}
"""By kind of sensor."""


def _covariance(noise: float) -> list[float]:
    """Return the covariance (9,), row by row, of three components with the standard deviation `noise`."""
    variance = noise * noise
    return [variance, 0.0, 0.0, 0.0, variance, 0.0, 0.0, 0.0, variance]

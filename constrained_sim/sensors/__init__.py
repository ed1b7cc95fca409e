"""Sensors that read the results of steps; one file per kind."""

from constrained_sim.sensors.barometer import Barometer, BarometerReading
from constrained_sim.sensors.contact_switch import ContactSwitch, ContactSwitchReading
from constrained_sim.sensors.encoder import Encoder, EncoderReading
from constrained_sim.sensors.force_torque import ForceTorque, ForceTorqueReading
from constrained_sim.sensors.imu import Imu, ImuReading
from constrained_sim.sensors.lidar import Lidar, LidarReading
from constrained_sim.sensors.magnetometer import Magnetometer, MagnetometerReading
from constrained_sim.sensors.nav_sat import NavSat, NavSatReading
from constrained_sim.sensors.range_finder import RangeFinder, RangeReading
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.sensors.sensor_set import SensorSet
from constrained_sim.sensors.twist import Twist, TwistReading

SENSORS: dict[str, type[Sensor]] = {
    kind.kind: kind
    for kind in (
        Imu,
        ForceTorque,
        Encoder,
        ContactSwitch,
        Twist,
        RangeFinder,
        Lidar,
        Magnetometer,
        Barometer,
        NavSat,
    )
}
"""Kinds of sensors by their name in configuration files."""

__all__ = [
    "SENSORS",
    "Barometer",
    "BarometerReading",
    "ContactSwitch",
    "ContactSwitchReading",
    "Encoder",
    "EncoderReading",
    "ForceTorque",
    "ForceTorqueReading",
    "Imu",
    "ImuReading",
    "Lidar",
    "LidarReading",
    "Magnetometer",
    "MagnetometerReading",
    "NavSat",
    "NavSatReading",
    "RangeFinder",
    "RangeReading",
    "Sensor",
    "SensorSet",
    "Twist",
    "TwistReading",
]

"""Sensors that read the results of steps; one file per kind."""

from constrained_sim.sensors.contact_switch import ContactSwitch, ContactSwitchReading
from constrained_sim.sensors.encoder import Encoder, EncoderReading
from constrained_sim.sensors.force_torque import ForceTorque, ForceTorqueReading
from constrained_sim.sensors.imu import Imu, ImuReading
from constrained_sim.sensors.range_finder import RangeFinder, RangeReading
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.sensors.sensor_set import SensorSet
from constrained_sim.sensors.twist import Twist, TwistReading

SENSORS: dict[str, type[Sensor]] = {
    kind.kind: kind for kind in (Imu, ForceTorque, Encoder, ContactSwitch, Twist, RangeFinder)
}
"""Kinds of sensors by their name in configuration files."""

__all__ = [
    "SENSORS",
    "ContactSwitch",
    "ContactSwitchReading",
    "Encoder",
    "EncoderReading",
    "ForceTorque",
    "ForceTorqueReading",
    "Imu",
    "ImuReading",
    "RangeFinder",
    "RangeReading",
    "Sensor",
    "SensorSet",
    "Twist",
    "TwistReading",
]

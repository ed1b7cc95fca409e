"""Sensors that read the results of steps; one file per kind."""

from constrained_sim.sensors.force_torque import ForceTorque, ForceTorqueReading
from constrained_sim.sensors.imu import Imu, ImuReading
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.sensors.sensor_set import SensorSet

SENSORS: dict[str, type[Imu] | type[ForceTorque]] = {kind.kind: kind for kind in (Imu, ForceTorque)}
"""Kinds of sensors by their name in configuration files."""

__all__ = [
    "SENSORS",
    "ForceTorque",
    "ForceTorqueReading",
    "Imu",
    "ImuReading",
    "Sensor",
    "SensorSet",
]

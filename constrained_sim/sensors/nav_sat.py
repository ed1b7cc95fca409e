"""NavSat: where a frame is on the Earth, as a receiver of satellite navigation says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, number

EQUATOR, FLATTENING = 6_378_137.0, 1.0 / 298.257223563
"""Ellipsoid of WGS 84: its radius at the equator [m], and by how much it is flattened."""

ECCENTRICITY_SQUARED = FLATTENING * (2.0 - FLATTENING)

PASSES = 4
"""Of the iteration for the latitude, which gains five digits or more with each near the ground."""


class NavSatReading(NamedTuple):
    """One reading of a :class:`NavSat`.

    Attributes:
        latitude: (1,) [deg], north is positive.
        longitude: (1,) [deg], east is positive.
        altitude: (1,) above the ellipsoid of WGS 84 [m].
    """

    latitude: Array
    longitude: Array
    altitude: Array


@dataclass(frozen=True)
class NavSat(Sensor):
    """A receiver of satellite navigation at the origin of a frame, at the end of the step.

    The world's axes are x east, y north, z up (REP 103) at its origin, which is on the Earth where the attributes say.

    Attributes:
        name: unique among the sensors of the robot.
        link: link or frame that carries the antenna; the world too.
        rate: readings per simulated second [Hz]; 0: one every control period.
        latitude: of the world's origin [deg].
        longitude: of the world's origin [deg].
        altitude: of the world's origin above the ellipsoid of WGS 84 [m].
        horizontal_noise: standard deviation to the east, and to the north [m].
        vertical_noise: standard deviation [m].
    """

    name: str
    link: str
    rate: float = 0.0
    latitude: float = 0.0
    longitude: float = 0.0
    altitude: float = 0.0
    horizontal_noise: float = 0.0
    vertical_noise: float = 0.0

    kind = "nav_sat"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        of = f"of sensor {self.name!r}"
        number(f"latitude {of}", self.latitude, -90.0, 90.0)
        number(f"longitude {of}", self.longitude, -180.0, 180.0)
        number(f"altitude {of}", self.altitude, -1e5, 1e7)
        self._check_errors("horizontal", "vertical")

    def exact(self, robot: Robot, result: StepResult) -> NavSatReading:
        """Return where it is on `robot` after the step `result`, see :meth:`Sensor.exact`."""
        return self._on_earth(self._position(robot, result))

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> NavSatReading:
        """Return what this unit reads, with its errors, see :meth:`Sensor.measure`."""
        noise = self.horizontal_noise, self.horizontal_noise, self.vertical_noise
        return self._on_earth(self._position(robot, result) + noise * generator.standard_normal(3))

    def _position(self, robot: Robot, result: StepResult) -> Array:
        """Return the position (3,) in the world [m]."""
        return np.array(self._frame(kinematics_at(robot, result.state.q, result.state.t)).translation)

    def _on_earth(self, position: Array) -> NavSatReading:
        """Return where a `position` (3,) in the world [m] is."""
        latitude, longitude = np.radians(self.latitude), np.radians(self.longitude)
        up = np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
        east = np.array([-np.sin(longitude), np.cos(longitude), 0.0])
        axes = np.array([east, np.cross(up, east), up])
        found = geodetic(geocentric(latitude, longitude, self.altitude) + position @ axes)
        return NavSatReading(np.degrees(found[:1]), np.degrees(found[1:2]), found[2:])


def geocentric(latitude: float, longitude: float, altitude: float) -> Array:
    """Return the position (3,) about the Earth's centre [m], its axes turning with it, of a place [rad], [rad], [m].

    ``N = a / sqrt(1 - e^2 sin^2 latitude)`` is the radius of curvature across the meridian (NIMA TR8350.2).
    """
    N = EQUATOR / np.sqrt(1.0 - ECCENTRICITY_SQUARED * np.sin(latitude) ** 2)
    across = (N + altitude) * np.cos(latitude)
    along = ((1.0 - ECCENTRICITY_SQUARED) * N + altitude) * np.sin(latitude)
    return np.array([across * np.cos(longitude), across * np.sin(longitude), along])


def geodetic(position: Array) -> Array:
    """Return latitude and longitude [rad] and altitude [m] of a `position` (3,) about the Earth's centre [m].

    Bowring's iteration on the reduced latitude (Transformation from spatial to geographical coordinates, 1976).
    """
    x, y, z = position
    from_axis, pole = np.hypot(x, y), (1.0 - FLATTENING) * EQUATOR
    reduced = np.arctan2(z, (1.0 - FLATTENING) * from_axis)
    for _ in range(PASSES):
        latitude = np.arctan2(
            z + ECCENTRICITY_SQUARED / (1.0 - ECCENTRICITY_SQUARED) * pole * np.sin(reduced) ** 3,
            from_axis - ECCENTRICITY_SQUARED * EQUATOR * np.cos(reduced) ** 3,
        )
        reduced = np.arctan2((1.0 - FLATTENING) * np.sin(latitude), np.cos(latitude))
    below = EQUATOR * np.sqrt(1.0 - ECCENTRICITY_SQUARED * np.sin(latitude) ** 2)
    altitude = from_axis * np.cos(latitude) + z * np.sin(latitude) - below
    return np.array([latitude, np.arctan2(y, x), altitude])

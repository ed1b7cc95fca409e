"""Magnetometer, Barometer and NavSat: against closed forms and published figures."""

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import PROBE

from constrained_sim import Barometer, Magnetometer, NavSat, Robot, SensorSet, Simulator
from constrained_sim.exceptions import InvalidValue
from constrained_sim.sensors.nav_sat import ECCENTRICITY_SQUARED, EQUATOR, FLATTENING, geocentric, geodetic

PERIOD = 1e-3


@pytest.fixture(scope="module")
def probe():
    return Robot.from_urdf(PROBE, floating_base=True)


@pytest.fixture(scope="module")
def result(probe):
    """One step of a body that tumbles through the air."""
    sim = Simulator(probe)
    turn = pin.Quaternion(pin.exp3(np.array([0.4, -1.0, 2.0]))).coeffs()
    sim.reset(probe.configuration({}, (30.0, -20.0, 120.0, *turn)), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    return sim.step()


def mast(probe, result):
    """Return rotation and position of the mast in the world, by Pinocchio."""
    data = probe.model.createData()
    pin.framesForwardKinematics(probe.model, data, result.state.q)
    frame = data.oMf[probe.model.getFrameId("mast")]
    return frame.rotation, frame.translation


def noisy(robot, sensor, result, count=2000, seed=0):
    """Return many readings of the same state, one row each."""
    sensors = SensorSet(robot, [sensor], PERIOD, seed)
    return np.array([np.concatenate(sensors.measure(result)[sensor.name]) for _ in range(count)])


# -- Magnetometer


def test_the_field_is_that_of_the_world_in_the_axes_of_the_frame(probe, result):
    field = np.array([1e-6, 2e-5, -4e-5])
    rotation, _ = mast(probe, result)
    found = Magnetometer("compass", "mast", world_field=tuple(field)).exact(probe, result).field
    assert found == pytest.approx(rotation.T @ field, rel=1e-13)


def test_errors_of_a_magnetometer(probe, result):
    sensor = Magnetometer("compass", "mast", field_noise=1e-7, field_bias=(1e-6, 0.0, -2e-6))
    errors = noisy(probe, sensor, result) - sensor.exact(probe, result).field
    assert errors.mean(axis=0) == pytest.approx([1e-6, 0.0, -2e-6], abs=4e-7 / np.sqrt(2000))
    assert errors.std(axis=0) == pytest.approx(np.full(3, 1e-7), rel=0.07)


# -- Barometer


@pytest.mark.parametrize(
    ("height", "pressure"),
    [(0.0, 101_325.0), (1_000.0, 89_874.6), (5_000.0, 54_019.9), (11_000.0, 22_632.0), (-1_000.0, 113_929.0)],
)
def test_pressure_is_that_of_the_tables(probe, height, pressure):
    """ISO 2533, to the last of the digits that are printed."""
    reading = Barometer("air", "world", altitude=height).exact(probe, Simulator(probe).step())
    assert reading.pressure[0] == pytest.approx(pressure, rel=6e-6)


def test_pressure_falls_as_the_weight_of_the_air_says(probe, result):
    """``dp/dh = -p g / (R T)`` (hydrostatics) at the height of the mast, by central differences."""
    _, position = mast(probe, result)
    p = {d: Barometer("air", "mast", altitude=500.0 + d).exact(probe, result).pressure[0] for d in (-1.0, 0.0, 1.0)}
    temperature = 288.15 - 6.5e-3 * (500.0 + position[2])
    assert (p[1.0] - p[-1.0]) / 2.0 == pytest.approx(-p[0.0] * 9.80665 / (287.05287 * temperature), rel=1e-8)


def test_noise_of_a_barometer(probe, result):
    sensor = Barometer("air", "mast", pressure_noise=3.0)
    errors = noisy(probe, sensor, result) - sensor.exact(probe, result).pressure
    assert errors.std() == pytest.approx(3.0, rel=0.07)
    assert abs(errors.mean()) < 4 * 3.0 / np.sqrt(2000)


# -- NavSat


@pytest.mark.parametrize("latitude", [-90.0, -60.0, -1e-7, 0.0, 30.0, 48.0, 89.9999, 90.0])
@pytest.mark.parametrize("altitude", [-400.0, 0.0, 8_000.0, 400_000.0])
def test_places_are_found_again(latitude, altitude):
    """From latitude, longitude and altitude to coordinates about the centre, and back: a nanometre of each."""
    place = np.array([np.radians(latitude), 2.5, altitude])
    found = geodetic(geocentric(*place))
    assert found[0] == pytest.approx(place[0], abs=5e-16)
    assert found[2] == pytest.approx(altitude, abs=3e-9)
    if abs(latitude) < 90.0:  # at a pole all longitudes are the same place
        assert found[1] == pytest.approx(2.5, abs=1e-15)


def test_the_ellipsoid_is_that_of_wgs_84():
    """Published: 6,356,752.3142 m to a pole; a place on the surface obeys the equation of the ellipsoid."""
    assert geocentric(np.pi / 2, 0.0, 0.0)[2] == pytest.approx(6_356_752.3142, abs=1e-4)
    x, y, z = geocentric(0.7, 1.1, 0.0)
    pole = EQUATOR * (1.0 - FLATTENING)
    assert (x * x + y * y) / EQUATOR**2 + z * z / pole**2 == pytest.approx(1.0, rel=1e-15)


def test_a_metre_to_the_north_and_to_the_east(probe, result):
    """Curvatures along and across the meridian: ``M = a (1 - e^2) / w^3``, ``N = a / w``, ``w^2 = 1 - e^2 sin^2``."""
    _, position = mast(probe, result)
    here = NavSat("gps", "mast", latitude=48.0, longitude=11.0, altitude=500.0).exact(probe, result)
    sine = np.sin(np.radians(48.0))
    w = np.sqrt(1.0 - ECCENTRICITY_SQUARED * sine**2)
    north, east = EQUATOR * (1.0 - ECCENTRICITY_SQUARED) / w**3 + 500.0, EQUATOR / w + 500.0
    assert np.radians(here.latitude[0] - 48.0) * north == pytest.approx(position[1], abs=3e-3)
    assert np.radians(here.longitude[0] - 11.0) * east * np.sqrt(1.0 - sine**2) == pytest.approx(position[0], abs=3e-3)
    assert here.altitude[0] - 500.0 == pytest.approx(position[2], abs=3e-4)


def test_a_fix_is_where_the_frame_is(probe, result):
    """Back to the world by an independent way: the rotation from the axes at the origin, as angles."""
    _, position = mast(probe, result)
    sensor = NavSat("gps", "mast", latitude=-33.0, longitude=151.0, altitude=20.0)
    latitude, longitude, altitude = (part[0] for part in sensor.exact(probe, result))
    arm = geocentric(np.radians(latitude), np.radians(longitude), altitude)
    arm = arm - geocentric(np.radians(-33.0), np.radians(151.0), 20.0)
    axes = pin.rpy.rpyToMatrix(0.0, 0.0, np.radians(151.0 + 90.0)) @ pin.rpy.rpyToMatrix(
        np.radians(90.0 + 33.0), 0.0, 0.0
    )
    assert axes.T @ arm == pytest.approx(position, abs=1e-8)


def test_noise_of_a_fix(probe, result):
    """Metres to the east, to the north and upwards."""
    sensor = NavSat("gps", "mast", latitude=60.0, horizontal_noise=0.5, vertical_noise=2.0)
    errors = noisy(probe, sensor, result) - np.concatenate(sensor.exact(probe, result))
    metres = np.radians(errors[:, :2]) * EQUATOR * [1.0, 0.5]
    assert metres.std(axis=0) == pytest.approx([0.5, 0.5], rel=0.07)
    assert errors[:, 2].std() == pytest.approx(2.0, rel=0.07)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Magnetometer, {"world_field": (1.0, 2.0)}),
        (Magnetometer, {"field_noise": -1.0}),
        (Magnetometer, {"field_bias": (np.nan, 0.0, 0.0)}),
        (Barometer, {"altitude": 2e4}),
        (Barometer, {"pressure_noise": -1.0}),
        (NavSat, {"latitude": 90.1}),
        (NavSat, {"longitude": np.inf}),
        (NavSat, {"vertical_noise": -1.0}),
    ],
)
def test_what_is_none_is_refused(kind, fields):
    with pytest.raises(InvalidValue):
        kind("sensor", "body", **fields)

"""Lidar: a fan of beams, each of which reads what a range finder along it would."""

import numpy as np
import pytest
from mechanisms import PROBE

from constrained_sim import Box, Collisions, Lidar, Plane, RangeFinder, Robot, SensorSet, Simulator, Sphere
from constrained_sim.config import read_config
from constrained_sim.exceptions import InvalidValue, UnknownName

PERIOD = 1e-3


@pytest.fixture(scope="module")
def probe():
    return Robot.from_urdf(PROBE, floating_base=True)


def step(robot, scene, turn=(0.0, 0.0, 0.0, 1.0)):
    """Return the result of one step after the probe was let go 5 m above the origin."""
    sim = Simulator(robot, collisions=Collisions(scene))
    sim.reset(robot.configuration({}, (0.0, 0.0, 5.0, *turn)))
    return sim.step()


def ranges(robot, sensor, result, seed=0):
    return SensorSet(robot, [sensor], PERIOD, seed).measure(result)[sensor.name].ranges


def test_a_scan_of_a_wall(probe):
    """``d = D / cos a`` to a wall ahead, and nothing beside it and behind."""
    result = step(probe, {"wall": Plane((-1.0, 0.0, 0.0), -2.0)})
    lidar = Lidar("scan", "body", min_angle=-np.pi, max_angle=np.pi, beams=721, max_range=50.0)
    angles = np.linspace(-np.pi, np.pi, 721)
    with np.errstate(divide="ignore"):
        wall = np.where(np.cos(angles) > 1e-9, 2.0 / np.cos(angles), np.inf)
    found = ranges(probe, lidar, result)
    assert found == pytest.approx(np.where(wall <= 50.0, wall, np.inf), rel=1e-12)
    assert np.isinf(found).sum() > 300


def test_each_beam_is_a_range_finder(probe):
    """On a frame that is turned on a body that is turned, before bodies of several kinds."""
    scene = {"floor": Plane(), "ball": Sphere(0.5, (2.0, 0.3, 5.0)), "box": Box((1.0, 1.0, 1.0), (-2.0, 1.0, 5.5))}
    result = step(probe, scene, turn=(0.5, -0.5, 0.5, 0.5))
    lidar = Lidar("scan", "mast", min_angle=-2.0, max_angle=3.0, beams=90, min_range=1.0, max_range=9.0)
    found = ranges(probe, lidar, result)
    for angle, distance in zip(np.linspace(-2.0, 3.0, 90), found, strict=True):
        beam = RangeFinder(
            "beam", "mast", 0.0, direction=(np.cos(angle), np.sin(angle), 0.0), min_range=1.0, max_range=9.0
        )
        assert distance == pytest.approx(beam.exact(probe, result).range[0], rel=1e-12)
    assert np.isfinite(found).any() and np.isinf(found).any()


def test_noise_is_that_of_each_beam(probe):
    result = step(probe, {"wall": Plane((-1.0, 0.0, 0.0), -2.0)})
    lidar = Lidar("scan", "body", min_angle=-1.0, max_angle=1.0, beams=20_001, max_range=50.0, range_noise=0.02)
    first, again, other = (ranges(probe, lidar, result, seed) for seed in (3, 3, 4))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    errors = first - lidar.exact(probe, result).ranges
    assert errors.std() == pytest.approx(0.02, rel=0.02)
    assert abs(errors.mean()) < 4 * 0.02 / np.sqrt(20_001)
    assert abs(np.corrcoef(errors[:-1], errors[1:])[0, 1]) < 4 / np.sqrt(20_001)


@pytest.mark.parametrize(
    "fields",
    [
        {"beams": 1},
        {"beams": 10**7},
        {"beams": 2.5},
        {"min_angle": 1.0, "max_angle": 1.0},
        {"min_angle": -4.0, "max_angle": 4.0},
        {"max_angle": np.nan},
        {"min_range": 3.0, "max_range": 3.0},
        {"range_noise": -0.1},
    ],
)
def test_what_is_no_lidar_is_refused(fields):
    with pytest.raises(InvalidValue):
        Lidar("scan", "body", **fields)


def test_it_is_declared_in_a_file():
    parameters = {
        "robot": {"urdf": PROBE, "floating_base": True},
        "sensors": {"scan": {"kind": "lidar", "link": "mast", "beams": 31, "max_range": 3.0}},
    }
    (lidar,) = read_config(parameters).sensors
    assert (lidar.link, lidar.beams, lidar.max_range) == ("mast", 31, 3.0)
    parameters["sensors"]["scan"]["link"] = "nose"
    with pytest.raises(UnknownName):
        read_config(parameters)

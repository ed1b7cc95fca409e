"""RangeFinder: distances along a beam to bodies of every shape, in closed form."""

import numpy as np
import pytest
from mechanisms import GRAVITY

from constrained_sim import Box, Collisions, Mesh, Plane, RangeFinder, Robot, SensorSet, Simulator, Sphere, WorldObject
from constrained_sim.config import read_config
from constrained_sim.exceptions import InvalidValue, UnknownName

PERIOD = 1e-3

BODY = """
<robot name="probe"><link name="body">
  <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
</robot>
"""

SHAPE = """
<robot name="shape"><link name="body">
  <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry>{}</geometry></collision></link>
</robot>
"""


@pytest.fixture(scope="module")
def probe():
    return Robot.from_urdf(BODY, floating_base=True)


def reading(robot, finder, scene=None, height=5.0, turn=(0.0, 0.0, 0.0, 1.0), seed=0):
    """Return what is read one step after the probe was let go at `height` above the origin, and the height then."""
    sim = Simulator(robot, collisions=Collisions(scene) if scene is not None else None)
    q = robot.neutral()
    q[:7] = [0.0, 0.0, height, *turn]
    sim.reset(q)
    result = sim.step()
    (found,) = SensorSet(robot, [finder], PERIOD, seed).measure(result).values()
    return float(found.range[0]), float(result.state.q[2])


def test_distance_to_a_plane(probe):
    """Straight down, and along a beam that is inclined by 60 degrees; from the origin of the beam on."""
    floor = {"floor": Plane()}
    for angle in (0.0, np.pi / 3):
        down = RangeFinder("eye", "body", 0.0, (0, 0, 0.05), (np.sin(angle), 0.0, -np.cos(angle)), max_range=20.0)
        found, height = reading(probe, down, floor)
        assert found == pytest.approx((height + 0.05) / np.cos(angle), rel=1e-14)
    assert reading(probe, RangeFinder("eye", "body", direction=(0, 0, 1)), floor)[0] == np.inf
    assert reading(probe, RangeFinder("eye", "body", direction=(1, 0, 0)), floor)[0] == np.inf


def test_the_beam_turns_with_its_link(probe):
    """Rolled by a quarter, the y axis looks up and -y down."""
    turn = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
    finder = RangeFinder("eye", "body", direction=(0.0, -2.0, 0.0))
    found, height = reading(probe, finder, {"floor": Plane()}, turn=turn)
    assert found == pytest.approx(height, rel=1e-14)


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.499999, 0.6])
def test_distance_to_a_ball(probe, offset):
    """``d = D - sqrt(r^2 - b^2)`` for a beam that passes its middle at a distance b; a miss beyond r."""
    scene = {"ball": Sphere(0.5, (2.0, offset, 5.0))}
    found, height = reading(probe, RangeFinder("eye", "body"), scene)
    beside = offset**2 + (5.0 - height) ** 2
    assert found == (pytest.approx(2.0 - np.sqrt(0.25 - beside), rel=1e-12) if offset < 0.5 else np.inf)


def test_distance_to_a_box_and_to_a_mesh(probe):
    """A turned box, and a tetrahedron: the first of its planes that the beam comes to."""
    turned = {"box": Box((1.0, 1.0, 4.0), (3.0, 0.0, 5.0), (0.0, 0.0, np.pi / 4))}
    assert reading(probe, RangeFinder("eye", "body"), turned)[0] == pytest.approx(3.0 - np.sqrt(0.5), rel=1e-12)
    corners = [[1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [2.0, 0.0, 0.0], [1.5, 0.0, 9.0]]
    height = 5.0 - GRAVITY * PERIOD**2 / 2
    leaning = 1.0 + 0.5 * height / 9.0  # the face between the first, the second and the top
    assert reading(probe, RangeFinder("eye", "body"), {"peak": Mesh(corners)})[0] == pytest.approx(leaning, rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "pose", "distance"),
    [
        ('<cylinder radius="0.5" length="2"/>', (3, 0.3, 5, 0, 0, 0, 1), 3 - 0.4),
        ('<cylinder radius="0.5" length="2"/>', (3, 0.3, 5, 0, np.sqrt(0.5), 0, np.sqrt(0.5)), 2.0),
        ('<cylinder radius="0.5" length="2"/>', (3, 0.6, 5, 0, 0, 0, 1), np.inf),
        ('<capsule radius="0.5" length="2"/>', (3, 0.3, 5, 0, 0, 0, 1), 3 - 0.4),
        ('<capsule radius="0.5" length="2"/>', (3, 0.3, 5, 0, np.sqrt(0.5), 0, np.sqrt(0.5)), 3 - 1 - 0.4),
        ('<sphere radius="0.5"/>', (3, 0.3, 5, 0, 0, 0, 1), 3 - 0.4),
        ('<box size="1 1 1"/>', (3, 0.3, 5, 0, 0, 0, 1), 2.5),
        ('<box size="1 1 1"/>', (-3, 0.0, 5, 0, 0, 0, 1), np.inf),
    ],
)
def test_distance_to_an_object_beside_the_robot(probe, shape, pose, distance):
    """Both fall together, so the beam stays level with its middle."""
    beside = WorldObject("other", Robot.from_urdf(SHAPE.format(shape), floating_base=True), pose)
    assert reading(probe.with_objects([beside]), RangeFinder("eye", "body"))[0] == pytest.approx(distance, rel=1e-9)


def test_from_inside_it_is_zero_and_the_own_body_is_not_seen(probe):
    inside = {"ball": Sphere(0.5, (0.0, 0.0, 6.0))}
    finder = RangeFinder("eye", "body", origin=(0, 0, 1.0))
    assert reading(probe, finder, inside)[0] == 0.0
    assert reading(probe, RangeFinder("eye", "body"))[0] == np.inf  # through the box that it is in


def test_on_the_world_it_sees_the_robot(probe):
    finder = RangeFinder("eye", "world", direction=(0, 0, 1))
    found, height = reading(probe, finder)
    assert found == pytest.approx(height - 0.1, rel=1e-14)


def test_out_of_reach_it_reads_infinity(probe):
    """REP 117: minus infinity where it is too near."""
    floor = {"floor": Plane()}
    down = {"link": "body", "direction": (0.0, 0.0, -1.0)}
    assert reading(probe, RangeFinder("eye", max_range=4.0, **down), floor)[0] == np.inf
    assert reading(probe, RangeFinder("eye", min_range=5.5, **down), floor)[0] == -np.inf
    assert reading(probe, RangeFinder("eye", min_range=4.5, max_range=5.5, **down), floor)[0] == pytest.approx(
        5.0, abs=1e-4
    )


def test_noise_is_seeded_and_has_its_deviation(probe):
    robot, finder = probe, RangeFinder("eye", "body", direction=(0, 0, -1), max_range=1e4, range_noise=0.02)
    sim = Simulator(robot, collisions=Collisions({"floor": Plane()}))
    sim.reset(robot.configuration({}, (0, 0, 50, 0, 0, 0, 1)))
    sets = [SensorSet(robot, [finder], PERIOD, seed) for seed in (3, 3, 4)]
    heights, found = [], []
    for _ in range(2000):
        result = sim.step()
        heights.append(result.state.q[2])
        found.append([float(one.measure(result)["eye"].range[0]) for one in sets])
    errors = np.array(found) - np.array(heights)[:, None]
    assert np.array_equal(errors[:, 0], errors[:, 1]) and not np.array_equal(errors[:, 0], errors[:, 2])
    assert errors.std(axis=0) == pytest.approx(np.full(3, 0.02), rel=0.06)
    assert errors.mean(axis=0) == pytest.approx(np.zeros(3), abs=4 * 0.02 / np.sqrt(2000))


@pytest.mark.parametrize(
    "fields",
    [
        {"direction": (0.0, 0.0, 0.0)},
        {"direction": (1.0, np.nan, 0.0)},
        {"origin": (1.0, 2.0)},
        {"min_range": -1.0},
        {"min_range": 3.0, "max_range": 3.0},
        {"max_range": np.nan},
        {"range_noise": -0.1},
    ],
)
def test_what_is_no_range_finder_is_refused(fields):
    with pytest.raises(InvalidValue):
        RangeFinder("eye", "body", **fields)


def test_it_is_declared_in_a_file(probe):
    parameters = {
        "robot": {"urdf": BODY, "floating_base": True},
        "sensors": {"eye": {"kind": "range_finder", "link": "body", "direction": [0.0, 0.0, -1.0], "max_range": 3.0}},
    }
    (finder,) = read_config(parameters).sensors
    assert (finder.link, finder.direction, finder.max_range) == ("body", (0.0, 0.0, -1.0), 3.0)
    parameters["sensors"]["eye"]["link"] = "nose"
    with pytest.raises(UnknownName):
        read_config(parameters)

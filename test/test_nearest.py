"""What of two bodies is nearest: of bodies on top of each other, whose distance is known, where coal gets it wrong."""

from __future__ import annotations

from typing import NamedTuple

import coal
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from mechanisms import link, property_test, seeds, urdf

from constrained_sim import Box, Collisions, Mesh, Robot, Simulator
from constrained_sim.collision.manifold import relative_twist
from constrained_sim.collision.nearest import contact_request, find_nearest
from constrained_sim.collision.placed_shape import PlacedShape
from constrained_sim.collision.shapes import Shape

RADII, LENGTHS, EDGES = (0.05, 0.1), (0.05, 0.1, 0.4), (0.05, 0.1, 0.2, 1.0)
GAPS = (0.0, 1e-9, -1e-9, 1e-6, -1e-6, 1e-4, -1e-4, 1e-3, 1e-2)


class Body(NamedTuple):
    """A solid, turned so that it reaches as far up as down, and how far [m]."""

    solid: coal.ShapeBase
    rotation: np.ndarray
    reach: float
    is_round: bool


def random_body(rng: np.random.Generator) -> Body:
    """Return a box or a cylinder that stands, or a cylinder or a capsule that lies, turned about the vertical."""
    yaw = pin.rpy.rpyToMatrix(0.0, 0.0, rng.choice([0.0, 0.5 * np.pi, rng.uniform(-3, 3)]))
    lying = yaw @ pin.rpy.rpyToMatrix(0.5 * np.pi, 0.0, 0.0)
    rolled = lying @ pin.rpy.rpyToMatrix(0.0, 0.0, rng.choice([0.0, rng.uniform(-3, 3)]))
    radius, length = rng.choice(RADII), rng.choice(LENGTHS)
    kind = rng.integers(4)
    if kind == 0:
        edges = rng.choice(EDGES, 3)
        return Body(coal.Box(*edges), yaw, 0.5 * edges[2], False)
    if kind == 1:
        return Body(coal.Cylinder(radius, length), yaw, 0.5 * length, False)
    return Body((coal.Cylinder if kind == 2 else coal.Capsule)(radius, length), rolled, radius, True)


def placed(body: Body, position: np.ndarray) -> PlacedShape:
    """Return a body where it is to be."""
    shape = Shape.of("body", "body", 1, pin.SE3.Identity(), body.solid)
    return PlacedShape(shape, np.vstack([body.rotation.T, position]).copy(), np.zeros((2, 3)))


@property_test(examples=60)
@given(seeds)
def test_distance_of_bodies_on_top_of_each_other(seed: int) -> None:
    """It is the gap between them, and that is how far they are apart along the normal."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        lower, upper, gap = random_body(rng), random_body(rng), float(rng.choice(GAPS))
        aside = np.zeros(2) if lower.is_round and upper.is_round else rng.choice([0, 1]) * rng.uniform(-0.02, 0.02, 2)
        above = placed(upper, np.array([*aside, lower.reach + upper.reach + gap]))
        below = placed(lower, np.zeros(3))
        found = find_nearest(above, below, contact_request(0.02))
        assert found is not None
        assert found.gap == pytest.approx(gap, abs=1e-6)
        apart = -(above.extents(-found.normal[None]) + below.extents(found.normal[None]))[0]
        assert apart == pytest.approx(gap, abs=2e-6)
        assert found.points[0] - found.points[1] == pytest.approx(gap * found.normal, abs=2e-6)


def rim_point(cylinder: coal.Cylinder, direction: np.ndarray) -> np.ndarray:
    """Return the point of a cylinder that is farthest along a direction, on one of its rims."""
    across = direction[:2] / np.linalg.norm(direction[:2])
    return np.array([*(cylinder.radius * across), np.copysign(cylinder.halfLength, direction[2])])


@property_test(examples=40)
@given(seeds)
def test_rims_that_touch(seed: int) -> None:
    """Two cylinders that a plane through the point where their rims touch parts, at gaps of nothing or next to it."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        one, two = coal.Cylinder(rng.choice(RADII), 0.2), coal.Cylinder(rng.choice(RADII), 0.3)
        turned = [pin.exp3(rng.uniform(-3, 3, 3)) for _ in range(2)]
        normal, gap = rng.normal(size=3), float(rng.choice([0.0, 1e-9, 1e-8, 1e-7, 1e-6, -1e-6, 1e-5]))
        normal /= np.linalg.norm(normal)
        below = turned[0] @ rim_point(one, turned[0].T @ normal)
        above = turned[1] @ rim_point(two, -turned[1].T @ normal)
        first = placed(Body(two, turned[1], 0.0, True), below - above + gap * normal)
        second = placed(Body(one, turned[0], 0.0, True), np.zeros(3))
        found = find_nearest(first, second, contact_request(0.02))
        assert found is not None
        apart = -(first.extents(-found.normal[None]) + second.extents(found.normal[None]))[0]
        assert apart == pytest.approx(gap, abs=3e-6)
        assert found.gap == pytest.approx(gap, abs=3e-6)


@given(seeds)
@property_test(examples=30)
def test_velocities_of_placed_shapes(seed: int) -> None:
    """They are the rates of where points are, and those relative to another body its difference; the world stands."""
    rng = np.random.default_rng(seed)
    one, two = (
        PlacedShape(
            Shape.of("body", "body", 1, pin.SE3.Identity(), coal.Sphere(0.1)),
            np.vstack([pin.exp3(rng.uniform(-3, 3, 3)), rng.normal(size=3)]),
            rng.normal(size=(2, 3)),
        )
        for _ in range(2)
    )
    world = PlacedShape(one.shape, np.vstack([np.eye(3), np.zeros(3)]), np.zeros((2, 3)))
    point, h = rng.normal(size=3), 1e-5
    ahead, before = (one.in_joint(point) @ one.after(t).rotation + one.after(t).position for t in (h, -h))
    assert one.velocity_at(point) == pytest.approx((ahead - before) / (2.0 * h), abs=1e-8)
    for other in (two, world):
        linear, angular = relative_twist(one.motion, other.motion)
        seen = linear + np.cross(angular, point - one.position)
        assert seen == pytest.approx(one.velocity_at(point) - other.velocity_at(point), abs=1e-13)


@pytest.mark.parametrize("seed", range(12))
def test_ball_bounces_off_a_sharp_corner(seed: int) -> None:
    """Flown at the corner of a tetrahedron, along any direction between its facets: back along it at half the speed.

    The facets of that corner are at less than a right angle: one may look away from the ball.
    """
    rng, speed, radius = np.random.default_rng(seed), 2.0, 0.05
    corners = 0.1 * np.array([(1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0, 1.0)])
    facets = -corners[1:] / np.linalg.norm(corners[1:], axis=1)[:, None]
    normal = rng.dirichlet(np.ones(3)) @ facets
    normal /= np.linalg.norm(normal)
    ball = link("ball", 1.0, shape=f'<sphere radius="{radius}"/>')
    robot = Robot.from_urdf(urdf(ball), floating_base=True, gravity=(0.0, 0.0, 0.0))
    q = np.array([*(corners[0] + (radius + 0.01) * normal), 0.0, 0.0, 0.0, 1.0])
    v = np.array([*(-speed * normal), 0.0, 0.0, 0.0])
    collisions = Collisions({"tetrahedron": Mesh(corners)}, friction=0.0, restitution=0.5)
    sim = Simulator(robot, collisions=collisions, q=q, v=v)
    trajectory = sim.run(0.02)
    assert [impact.t for impact in trajectory.impacts] == pytest.approx([0.01 / speed], abs=1e-8)
    assert sim.state.v == pytest.approx([*(0.5 * speed * normal), 0.0, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("height", [0.2, 1.0])
def test_cylinder_rolls_over_the_middle_of_a_box(height: float) -> None:
    """At constant speed: right above the middle, coal finds it inside the box as deep as that is high."""
    radius, rate = 0.1, 2.0
    shape = f'<cylinder radius="{radius}" length="0.2"/>'
    moments = (radius**2 / 4 + 0.04 / 12,) * 2 + (radius**2 / 2,)
    robot = Robot.from_urdf(urdf(link("body", 1.0, (0, 0, 0), moments, shape)), floating_base=True)
    lying = pin.rpy.rpyToMatrix(0.5 * np.pi, 0.0, 0.0)
    table = Box((2.0, 2.0, height), position=(0.0, 0.0, -0.5 * height))
    q = np.array([0.0, 0.0, radius, *pin.Quaternion(lying).coeffs()])
    v = np.concatenate([lying.T @ (rate * radius, 0.0, 0.0), lying.T @ (0.0, rate, 0.0)])
    sim = Simulator(robot, collisions=Collisions({"table": table}, friction=0.8), q=q, v=v)
    trajectory = sim.run(0.5)
    assert not trajectory.impacts
    assert sim.state.q[:3] == pytest.approx([0.5 * rate * radius, 0.0, radius], abs=1e-9)

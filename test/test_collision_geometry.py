"""Points, normals and gaps of collision geometry: closed forms, brute force, exclusions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from mechanisms import joint, link, property_test, seeds, solo12, tilted, urdf

from constrained_sim import Box, Collisions, Mesh, Plane, Robot, Sphere
from constrained_sim.collision import manifold
from constrained_sim.collision.detector import CollisionDetector
from constrained_sim.collision.robot_shapes import robot_shapes, scene_shape
from constrained_sim.collision.shapes import Shape
from constrained_sim.contact.bound_contact import BoundContact
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at
from constrained_sim.exceptions import InvalidValue, ModelError, UnknownName

HALF = np.array([0.15, 0.1, 0.05])
SHAPES = {
    "sphere": '<sphere radius="0.2"/>',
    "capsule": '<capsule radius="0.1" length="0.4"/>',
    "box": '<box size="0.3 0.2 0.1"/>',
    "cylinder": '<cylinder radius="0.15" length="0.4"/>',
}
GROUND = {"ground": Plane()}
BLOCK = Box((2.0, 2.0, 1.0), (0, 0, -0.5))
WIDE = '<limit lower="-9" upper="9" effort="9" velocity="9"/>'


def with_shape(name: str, shape: str, origin: str = "") -> str:
    return link(name, 1.0, shape=SHAPES.get(shape, shape), origin=origin)


@cache
def body(shape: str, origin: str = "") -> Robot:
    """Return a free body with one collision element."""
    return Robot.from_urdf(urdf(with_shape("body", shape, origin)), floating_base=True)


def at(position: object, turn: object = (0, 0, 0, 1)) -> np.ndarray:
    """Return the configuration of a free body; `turn` is a quaternion or a matrix."""
    quaternion = pin.Quaternion(turn).coeffs() if np.ndim(turn) == 2 else turn  # type: ignore[arg-type]
    return np.concatenate([np.asarray(position, float), np.asarray(quaternion, float)])


def detector_of(robot: Robot, scene: dict, margin: float = 0.01, **options: object) -> CollisionDetector:  # type: ignore[type-arg]
    return Collisions(scene, margin=margin, **options).bind(robot)  # type: ignore[arg-type]


def touch(contact: BoundContact, gap: float, dynamics: Dynamics) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the surface point of the first body and the normal, world frame, and the gap from its definition."""
    here, there = dynamics.placements[contact.joint], dynamics.placements[contact.other_joint]
    centre = contact.offset @ here[:3] + here[3]
    other = contact.other_offset @ there[:3] + there[3]
    normal = contact.axes[2]
    if contact.rim_radii[0]:
        axis = contact.directions[0] @ here[:3]
        down = (axis @ normal) * axis - normal
        centre = centre + contact.rim_radii[0] * down / np.linalg.norm(down)
    assert float(normal @ (centre - other)) - contact.radius - contact.other_radius == pytest.approx(gap, abs=1e-9)
    assert contact.axes @ contact.axes.T == pytest.approx(np.eye(3), abs=1e-12)
    return centre - contact.radius * normal, normal, gap


def touches(robot: Robot, q: np.ndarray, scene: dict, **options: object) -> list:  # type: ignore[type-arg]
    dynamics = kinematics_at(robot, q)
    found = detector_of(robot, scene, **options).contacts(dynamics)  # type: ignore[arg-type]
    return [touch(contact, float(gap), dynamics) for contact, gap in zip(*found, strict=True)]


def random_turn(rng: np.random.Generator) -> np.ndarray:
    quaternion = rng.normal(size=4)
    return pin.Quaternion(quaternion / np.linalg.norm(quaternion)).matrix()


def reach(shape: str, direction: np.ndarray) -> float:
    """Return the support function of a shape, in its own axes."""
    x, y, z = direction
    return {
        "sphere": 0.2,
        "capsule": 0.1 + 0.2 * abs(z),
        "box": float(HALF @ np.abs(direction)),
        "cylinder": 0.15 * float(np.hypot(x, y)) + 0.2 * abs(z),
    }[shape]


# -- planes


@property_test(25)
@given(seed=seeds)
@pytest.mark.parametrize("shape", SHAPES)
def test_least_gap_to_a_tilted_plane_is_that_of_the_support_function(shape: str, seed: int) -> None:
    """Whatever the attitude, with the element anywhere on the link."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=3)
    normal /= np.linalg.norm(normal)
    turn, position = random_turn(rng), rng.normal(size=3)
    centre = position + turn @ [0.1, -0.2, 0.3]
    axes = turn @ pin.rpy.rpyToMatrix(0.5, -0.4, 0.3)
    offset = float(normal @ centre) - reach(shape, axes.T @ normal) + 1e-3
    robot = body(shape, '<origin xyz="0.1 -0.2 0.3" rpy="0.5 -0.4 0.3"/>')
    found = touches(robot, at(position, turn), {"ground": Plane(normal, offset)})
    assert 1 <= len(found) <= 4
    assert min(gap for *_, gap in found) == pytest.approx(-1e-3, abs=1e-13)
    for point, n, gap in found:
        assert n == pytest.approx(normal, abs=1e-15)
        assert normal @ point - offset == pytest.approx(gap, abs=1e-13)


def test_capsule_lies_on_two_spheres_and_stands_on_one() -> None:
    """Their middles, and the radius."""
    robot = body("capsule")
    dynamics = kinematics_at(robot, at([0, 0, 0.1], tilted(np.pi / 2)))
    lying, gaps = detector_of(robot, GROUND).contacts(dynamics)
    assert [tuple(np.abs(c.offset)) for c in lying] == [(0, 0, 0.2)] * 2
    assert [c.radius for c in lying] == [0.1, 0.1]
    assert gaps == pytest.approx([0, 0], abs=1e-15)
    assert len(touches(robot, at([0, 0, 0.3]), GROUND)) == 1


def test_points_keep_the_area_of_a_polygon() -> None:
    """Four of 40 on a circle: the deepest among them, and no less than 0.95 of the square."""
    angles = 2.0 * np.pi * np.arange(40) / 40
    points = np.stack([np.cos(angles), np.sin(angles), np.zeros(40)], axis=1)
    gaps = np.full(40, 1e-4)
    gaps[7] = 0.0
    chosen = manifold.spread(points, gaps, np.array([0, 0, 1.0]))
    assert 7 in chosen
    x, y, _ = points[chosen].T
    assert 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) > 0.95 * 2.0


def test_points_keep_both_ends_of_an_edge() -> None:
    """Two ends that touch are taken, beside others that are farther apart but a millimetre higher."""
    angles = 2.0 * np.pi * np.arange(12) / 12
    circle = np.stack([np.cos(angles), np.sin(angles), np.full(12, 1e-3)], axis=1)
    points = np.concatenate([circle, [[0.01, 0.0, 0.0], [0.04, 0.01, 1e-9]]])
    chosen = manifold.spread(points, points[:, 2].copy(), np.array([0, 0, 1.0]))
    assert {12, 13} < set(chosen.tolist())
    assert len(chosen) == 4


def test_what_rests_in_the_world_does_not_touch_it() -> None:
    """The foot of an arm that is bolted to the ground is no contact; the slider on it may be one."""
    base = with_shape("base", '<box size="1 1 0.2"/>')
    robot = Robot.from_urdf(
        urdf(base, with_shape("slider", "sphere"), joint("j", "prismatic", "base", "slider", (0, 0, 1), more=WIDE))
    )
    detector = detector_of(robot, {"ground": Plane(), "block": BLOCK})
    assert not detector.contacts(kinematics_at(robot, np.array([1.0])))[0]
    assert {c.name for c in detector.contacts(kinematics_at(robot, np.array([0.2])))[0]} == {
        "slider_0/ground#0",
        "slider_0/block#0",
    }


@pytest.mark.parametrize("margin", [1e-3, 0.05])
def test_margin_decides_what_is_reported(margin: float) -> None:
    """Of planes and of solids; just within and just beyond."""
    robot = body("sphere")
    for height, count in ((0.999 * margin, 2), (1.001 * margin, 0)):
        scene = {"ground": Plane(), "block": BLOCK}
        assert len(touches(robot, at([0, 0, 0.2 + height]), scene, margin=margin)) == count


# -- solids


@property_test(40)
@given(seed=seeds)
def test_sphere_against_a_turned_box_and_a_ball(seed: int) -> None:
    """The nearest point of a box is the clamped one; from within, through the nearest face."""
    rng = np.random.default_rng(seed)
    angles, position = rng.uniform(-1, 1, 3), rng.normal(size=3)
    turn = pin.rpy.rpyToMatrix(angles)
    outside = rng.uniform(-1, 1, 3)
    outside *= 1.2 / np.abs(outside).max()
    edge = np.clip(outside, -HALF, HALF)
    n = (outside - edge) / np.linalg.norm(outside - edge)
    centre = position + turn @ (edge + 0.199 * n)
    ((point, normal, gap),) = touches(body("sphere"), at(centre), {"box": Box(2 * HALF, position, angles)})
    assert normal == pytest.approx(turn @ n, abs=1e-12)
    assert gap == pytest.approx(-1e-3, abs=1e-13)
    assert point == pytest.approx(centre - 0.2 * turn @ n, abs=1e-12)
    ((_, normal, gap),) = touches(body("sphere"), at(centre), {"ball": Sphere(0.5, centre - 0.701 * n)})
    assert normal == pytest.approx(n, abs=1e-12)
    assert gap == pytest.approx(1e-3, abs=1e-13)
    ((_, normal, gap),) = touches(
        body("sphere"), at(position + turn @ [0.01, 0, 0.03]), {"box": Box(2 * HALF, position, angles)}
    )
    assert normal == pytest.approx(turn[:, 2], abs=1e-12)
    assert gap == pytest.approx(-0.02 - 0.2, abs=1e-13)


@pytest.mark.parametrize("gap", [5e-3, 1e-4, 0.0, -1e-9, -1e-4, -2e-3])
def test_box_on_a_box_it_partly_covers(gap: float) -> None:
    """The corners of the overlap, at the exact gap, apart, in touch and in each other."""
    scene = {"block": Box((0.2, 1.0, 1.0), (0.1, 0.03, -0.5))}
    found = touches(body("box"), at([0, 0, 0.05 + gap]), scene)
    corners = sorted((round(float(p[0]), 9), round(float(p[1]), 9)) for p, *_ in found)
    assert corners == [(0.0, -0.1), (0.0, 0.1), (0.15, -0.1), (0.15, 0.1)]
    for point, normal, distance in found:
        assert normal == pytest.approx([0, 0, 1], abs=1e-14)
        assert distance == pytest.approx(gap, abs=1e-14)
        assert point[2] == pytest.approx(gap, abs=1e-14)


@pytest.mark.parametrize("angle", [1e-4, 2e-3, 6e-3])
@pytest.mark.parametrize("support", [BLOCK, Mesh(np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 0.0])).reshape(3, 8).T)])
def test_corners_of_a_tilted_box_have_their_own_gaps(support: Box | Mesh, angle: float) -> None:
    """On one side ``gap``, on the other higher by the tilt."""
    low = HALF[2] * np.cos(angle) + HALF[0] * np.sin(angle)
    found = touches(body("box"), at([0, 0, low + 1e-4], tilted(angle)), {"support": support})
    higher = 2 * HALF[0] * np.sin(angle)
    expected = [1e-4] * 2 + ([1e-4 + higher] * 2 if higher < manifold.BAND else [])
    assert sorted(gap for *_, gap in found) == pytest.approx(expected, abs=1e-12)
    assert [n for _, n, _ in found] == [pytest.approx([0, 0, 1], abs=1e-9)] * len(expected)


def test_large_box_on_a_small_one() -> None:
    """The face is that of the robot then; its normal turns with it, and the corners are those of the small box."""
    angle = 5e-4
    turn = pin.rpy.rpyToMatrix(0.0, angle, 0.0)
    small = Box((0.04, 0.06, 1.0), (0, 0, -0.5))
    found = touches(body("box"), at([0, 0, 0.051], turn), {"small": small})
    assert len(found) == 4
    for point, n, gap in found:
        assert n == pytest.approx(turn[:, 2], abs=1e-12)
        assert HALF[2] + turn[:, 2] @ (point - [0, 0, 0.051]) == pytest.approx(0.0, abs=1e-12)
        corner = point - gap * n
        assert np.abs(corner) == pytest.approx([0.02, 0.03, 0.0], abs=1e-12)


@pytest.mark.parametrize("shape", ["cylinder", "capsule"])
def test_round_bodies_on_a_box(shape: str) -> None:
    """A cylinder stands on eight points of its rim; both lie on the two ends of a line."""
    radius = {"cylinder": 0.15, "capsule": 0.1}[shape]
    lying = touches(body(shape), at([0, 0, radius + 1e-3], tilted(np.pi / 2)), {"block": BLOCK})
    assert sorted(round(float(p[0]), 9) for p, *_ in lying) == [-0.2, 0.2]
    assert [gap for *_, gap in lying] == pytest.approx([1e-3] * 2, abs=1e-12)
    if shape == "cylinder":
        standing = touches(body(shape), at([0, 0, 0.199]), {"block": BLOCK})
        assert [gap for *_, gap in standing] == pytest.approx([-1e-3] * 8, abs=1e-12)
        assert [np.hypot(*p[:2]) for p, *_ in standing] == pytest.approx([0.15] * 8, abs=1e-12)
        assert np.linalg.norm(sum(p[:2] for p, *_ in standing)) < 1e-9


def test_edges_that_cross_touch_at_one_point() -> None:
    """Two boxes, each on its edge, at right angles: the point between the edges."""
    scene = {"roof": Box((1.0, 0.2, 0.2), (0, 0, 0), (np.pi / 4, 0, 0))}
    height = 0.1 * np.sqrt(2.0) + 0.05 * np.sqrt(2.0) + 1e-3
    robot = body('<box size="0.1 0.3 0.1"/>')
    ((point, normal, gap),) = touches(robot, at([0, 0, height], tilted(np.pi / 4)), scene)
    assert normal == pytest.approx([0, 0, 1], abs=1e-6)
    assert gap == pytest.approx(1e-3, abs=1e-7)
    assert point == pytest.approx([0, 0, 0.1 * np.sqrt(2.0) + 1e-3], abs=1e-6)


# -- a whole robot


def standing_scene() -> dict:  # type: ignore[type-arg]
    rng = np.random.default_rng(3)
    return {
        "ground": Plane((0.05, 0.02, 1.0), -0.25),
        "table": Box((0.6, 0.3, 0.3), (0.2, 0.1, -0.38), (0.1, 0.2, 0.3)),
        "ball": Sphere(0.15, (-0.2, -0.15, -0.35)),
        "rock": Mesh(rng.normal(size=(30, 3)) * 0.1, (-0.15, 0.15, -0.3)),
    }


def random_configuration(robot: Robot, rng: np.random.Generator) -> np.ndarray:
    base = at(rng.uniform(-0.15, 0.15, 3), random_turn(rng))
    return np.concatenate([base, rng.uniform(-1.5, 1.5, robot.nq - 7)])


def least_gaps(detector: CollisionDetector, dynamics: Dynamics) -> dict[tuple[str, str], float]:
    """Return the least gap of each pair that is near."""
    gaps: dict[tuple[str, str], float] = {}
    for contact, gap in zip(*detector.contacts(dynamics), strict=True):
        first, _, other = contact.name.rpartition("#")[0].partition("/")
        gaps[first, other] = min(gaps.get((first, other), np.inf), float(gap))
    return gaps


def test_no_pair_that_is_near_is_lost() -> None:
    """At random configurations: bodies by coal's distance, a plane by all points."""
    robot, rng, margin, scene = solo12(), np.random.default_rng(11), 0.03, standing_scene()
    detector = detector_of(robot, scene, margin=margin, self_collision=True)
    own = robot_shapes(robot)
    solids = [scene_shape(name, body) for name, body in scene.items() if not isinstance(body, Plane)]
    neighbours = {frozenset((j, robot.model.parents[j])) for j in range(robot.model.njoints)}
    pairs = [(a, b) for i, a in enumerate(own) for b in own[i + 1 :] if a.joint != b.joint]
    pairs = [
        (a, b)
        for a, b in pairs
        if frozenset((a.joint, b.joint)) not in neighbours and robot.model.parents[a.joint] != b.joint
    ]
    pairs += [(a, b) for a in own for b in solids]
    plane, total, compared = scene["ground"], 0, 0
    for _ in range(20):
        dynamics = kinematics_at(robot, random_configuration(robot, rng))
        found = least_gaps(detector, dynamics)
        for first, second in pairs:
            gap = distance(first, second, dynamics)
            if abs(gap - margin) > 1e-5:
                assert ((first.name, second.name) in found) == (gap < margin), (first.name, second.name, gap)
                total += gap < margin
            if 0.0 < gap < margin - 1e-5:
                assert found[first.name, second.name] == pytest.approx(gap, abs=2e-6)
                compared += 1
        for shape in own:
            here = dynamics.placements[shape.joint]
            least = float(((shape.points @ here[:3] + here[3]) @ plane.normal).min()) - plane.offset - shape.radius
            assert ((shape.name, "ground") in found) == (least <= margin)
            assert least > margin or found[shape.name, "ground"] == pytest.approx(least, abs=1e-14)
    assert total > 100
    assert compared > 30


def distance(first: Shape, second: Shape, dynamics: Dynamics) -> float:
    one, two = (shape.in_world(dynamics.placements[shape.joint]) for shape in (first, second))
    return float(coal.distance(first.solid, one, second.solid, two, coal.DistanceRequest(), coal.DistanceResult()))


def test_detection_is_repeatable() -> None:
    """Equal results and names of two calls, with another configuration between."""
    robot = solo12()
    detector, q = detector_of(robot, standing_scene(), self_collision=True), robot.neutral()
    first, gaps = detector.contacts(kinematics_at(robot, q))
    detector.contacts(kinematics_at(robot, np.r_[q[:7], np.full(12, 0.7)]))
    second, again = detector.contacts(kinematics_at(robot, q))
    assert first
    assert len({c.name for c in first}) == len(first)
    assert np.array_equal(gaps, again)
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(value, getattr(b, name)) for name, value in vars(a).items())


def chain_of_balls(*fixed: int) -> Robot:
    """Return five balls in one place, each on a joint of the one before; those `fixed` are welded to it."""
    links = [with_shape(f"l{i}", "sphere") for i in range(5)]
    kinds = ["fixed" if i in fixed else "prismatic" for i in range(5)]
    joints = [joint(f"j{i}", kinds[i], f"l{i - 1}", f"l{i}", (1, 0, 0), more=WIDE) for i in range(1, 5)]
    return Robot.from_urdf(urdf(*links, *joints), floating_base=True)


def met(robot: Robot, **options: object) -> set[str]:
    detector = detector_of(robot, {}, self_collision=True, **options)  # type: ignore[arg-type]
    return {f"{c.link[1]}{c.other_link[1]}" for c in detector.contacts(kinematics_at(robot, robot.neutral()))[0]}


def test_neighbours_and_excluded_links_do_not_touch() -> None:
    """Links of one joint or of a joint and the next; what a fixed joint welds counts as one."""
    robot = chain_of_balls()
    assert not detector_of(robot, {}).contacts(kinematics_at(robot, robot.neutral()))[0]
    assert met(robot) == {"02", "03", "04", "13", "14", "24"}
    assert met(chain_of_balls(2)) == {"03", "04", "14", "24"}
    assert met(robot, excluded=[("l3", "l0"), ("l2", "l4")]) == {"02", "04", "13", "14"}
    srdf = (
        '<robot name="r"><disable_collisions link1="l4" link2="l1"/><disable_collisions link1="x" link2="l1"/></robot>'
    )
    assert met(robot, srdf=srdf, excluded=[("l0", "l2")]) == {"03", "04", "13", "24"}


def test_bad_input_is_refused(tmp_path: Path) -> None:
    """What was given, and what is allowed; a flat mesh, which coal would crash on."""
    robot = body("box")
    flat = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]
    for wrong in (
        lambda: Mesh(flat),
        lambda: Mesh(3),
        lambda: Mesh([[0, 0], [1, 1]]),
        lambda: Mesh([[0, 0, 0]]),
        lambda: Box((1, 1, np.nan)),
        lambda: Sphere(0.0),
        lambda: detector_of(robot, {}, margin=-1.0),
        lambda: detector_of(robot, {"": Plane()}),
        lambda: detector_of(robot, [Plane()]),  # type: ignore[arg-type]
        lambda: detector_of(robot, {}, excluded=[("body",)]),  # type: ignore[list-item]
    ):
        with pytest.raises(InvalidValue, match="allowed"):
            wrong()
    with pytest.raises(UnknownName, match="arm"):
        detector_of(robot, {}, excluded=[("body", "arm")])
    with pytest.raises(ModelError, match="SRDF"):
        detector_of(robot, {}, srdf="<robot")
    missing = body('<mesh filename="package://nobody/has/this.stl"/>')
    with pytest.raises(ModelError, match=r"link 'body'.*this\.stl"):
        detector_of(missing, {})
    lines = [f"v {x} {y} {z}" for x, y, z in flat] + ["f 1 2 3", "f 2 4 3"]
    (tmp_path / "flat.obj").write_text("\n".join(lines))
    with pytest.raises(ModelError, match=r"body_0.*not in one plane"):
        detector_of(body(f'<mesh filename="{tmp_path / "flat.obj"}"/>'), {})


def test_disc_of_many_corners_is_a_hull() -> None:
    """Coal's triangles over it, a fan, would give a corner more neighbours than it can count."""
    angles = 2.0 * np.pi * np.arange(400) / 400
    rim = np.stack([0.3 * np.cos(angles), 0.3 * np.sin(angles), np.zeros(400)], axis=1)
    found = touches(body("box"), at([0, 0, 0.051]), {"disc": Mesh(np.concatenate([rim, rim - [0, 0, 0.2]]))})
    assert [gap for *_, gap in found] == pytest.approx([1e-3] * 4, abs=1e-10)


def test_rounded_vertices_do_not_break_a_face() -> None:
    """Coordinates in single precision, as in STL: the gaps are off by their rounding, not by that of slivers."""
    turn = pin.rpy.rpyToMatrix(0.3, 0.2, 0.1)
    angles = 2.0 * np.pi * np.arange(60) / 60
    rim = np.stack([0.3 * np.cos(angles), 0.3 * np.sin(angles), np.zeros(60)], axis=1)
    rounded = (np.concatenate([rim, rim - [0, 0, 0.2]]) @ turn.T).astype(np.float32)
    found = touches(body("box"), at(turn @ [0, 0, 0.051], turn), {"disc": Mesh(rounded)})
    assert [gap for *_, gap in found] == pytest.approx([1e-3] * 4, abs=1e-7)
    assert all(n == pytest.approx(turn[:, 2], abs=1e-6) for _, n, _ in found)

"""Contacts found by collision geometry: closed forms of each shape, patches, exclusions, and simulations on them."""

from __future__ import annotations

import copy
import pickle
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from mechanisms import GRAVITY, corners, joint, link, property_test, seeds, simulator, solo12, tilted, urdf
from scipy.integrate import solve_ivp
from scipy.spatial import ConvexHull

from constrained_sim import Box, Collisions, Compliant, Mesh, Plane, Robot, Simulator, Sphere, WorldObject, Wrench
from constrained_sim.collision.flat_faces import flattened
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import dynamics_at, kinematics_at
from constrained_sim.exceptions import InvalidValue, ModelError, NotSupported, UnknownName, ViolatedConstraint

SHAPES = {
    "sphere": '<sphere radius="0.2"/>',
    "box": '<box size="0.3 0.2 0.1"/>',
    "cylinder": '<cylinder radius="0.15" length="0.4"/>',
}


def body(shape: str, mass: float = 2.0, moments: object = (0.02, 0.02, 0.02), origin: str = "0 0 0") -> Robot:
    """Return a free body with one collision element, link ``body``."""
    pose = f'<origin xyz="{origin}"/>'
    return Robot.from_urdf(urdf(link("body", mass, inertia=moments, shape=SHAPES.get(shape, shape), origin=pose)), True)


def touches(robot: Robot, q: np.ndarray, scene: dict, **options: object) -> list:  # type: ignore[type-arg]
    """Return (point, normal, gap) of all contacts found at q, world frame; the surface point of spheres."""
    dynamics = kinematics_at(robot, q)
    bound = ConstraintSet(robot, Collisions(scene, **options).bind(robot).contacts(dynamics)[0])  # type: ignore[arg-type]
    here = bound.contacts.rows(dynamics, np.zeros(robot.nv))
    return [(p, axes[2], float(gap)) for p, axes, gap in zip(here.points, here.axes, here.distances, strict=True)]


def at(position: object, quaternion: object = (0, 0, 0, 1)) -> np.ndarray:
    """Return the configuration of a free body."""
    return np.concatenate([np.asarray(position, float), np.asarray(quaternion, float)])


# -- planes


def test_sphere_over_a_tilted_plane() -> None:
    """One point, at the centre minus radius times normal; gap n . c - r - d."""
    normal = np.array([0.2, -0.3, 0.9]) / np.linalg.norm([0.2, -0.3, 0.9])
    centre = np.array([0.4, 0.1, 0.3])
    offset = float(normal @ centre) - 0.2 - 1e-3
    ((point, n, gap),) = touches(body("sphere"), at(centre, tilted(0.7)), {"ground": Plane(normal, offset)})
    assert n == pytest.approx(normal, abs=1e-15)
    assert gap == pytest.approx(1e-3, abs=1e-15)
    assert point == pytest.approx(centre - 0.2 * normal, abs=1e-15)


def test_box_flat_on_an_edge_and_on_a_corner() -> None:
    """Four corners of a face, two of an edge, one alone; each at its own height."""
    robot, half = body("box"), np.array([0.15, 0.1, 0.05])
    flat = touches(robot, at([0, 0, 0.05 + 1e-3]), {"ground": Plane()})
    expected = {(a * 0.15, b * 0.1) for a in (-1, 1) for b in (-1, 1)}
    assert {(round(p[0], 12), round(p[1], 12)) for p, _, _ in flat} == expected
    assert [gap for *_, gap in flat] == pytest.approx([1e-3] * 4, abs=1e-15)
    angle = 0.3
    low = half[2] * np.cos(angle) + half[0] * np.sin(angle)
    edge = touches(robot, at([0, 0, low], tilted(angle)), {"ground": Plane()})
    assert sorted(round(float(p[1]), 12) for p, *_ in edge) == [-0.1, 0.1]
    assert [gap for *_, gap in edge] == pytest.approx([0.0, 0.0], abs=1e-15)
    turn = pin.rpy.rpyToMatrix(0.4, 0.5, 0.1)
    reach = np.abs(turn[2]) @ half
    quaternion = pin.Quaternion(turn).coeffs()
    corner = touches(robot, at([0, 0, reach - 1e-5], quaternion), {"ground": Plane()})
    assert len(corner) == 1
    assert corner[0][2] == pytest.approx(-1e-5, abs=1e-15)


def test_cylinder_upright_tilted_and_lying() -> None:
    """Upright: four points of the lower rim; tilted: its lowest point; lying: the two ends of a line."""
    robot = body("cylinder")
    upright = touches(robot, at([0, 0, 0.2]), {"ground": Plane()})
    assert len(upright) == 4
    assert all(np.hypot(*p[:2]) == pytest.approx(0.15, abs=1e-14) and abs(gap) < 1e-14 for p, _, gap in upright)
    angle = 0.4
    low = 0.2 * np.cos(angle) + 0.15 * np.sin(angle)
    ((point, _, gap),) = touches(robot, at([0, 0, low], tilted(angle)), {"ground": Plane()})
    assert gap == pytest.approx(0.0, abs=1e-15)
    assert point[1] == pytest.approx(0.0, abs=1e-15)
    lying = touches(robot, at([0, 0, 0.15], tilted(np.pi / 2)), {"ground": Plane()})
    assert sorted(round(float(p[0]), 9) for p, *_ in lying) == [-0.2, 0.2]
    assert [gap for *_, gap in lying] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_mesh_stands_on_points_that_keep_its_area(tmp_path: Path) -> None:
    """A prism over a regular polygon with 24 corners stands on eight of them, whose area is that of an octagon."""
    angles = 2.0 * np.pi * np.arange(24) / 24
    ring = np.stack([0.2 * np.cos(angles), 0.2 * np.sin(angles)], axis=1)
    lines = [f"v {x} {y} {z}" for z in (-0.1, 0.1) for x, y in ring]
    faces = [f"f {i + 1} {(i + 1) % 24 + 1} {i + 25}" for i in range(24)]
    (tmp_path / "prism.obj").write_text("\n".join(lines + faces))
    (tmp_path / "prism.urdf").write_text(
        urdf(
            link("body", 1.0).replace(
                "</link>",
                '<collision><geometry><mesh filename="package://shapes/prism.obj"/></geometry></collision></link>',
            )
        )
    )
    folder = tmp_path.parent / "shapes"
    folder.mkdir(exist_ok=True)
    (folder / "prism.obj").write_text("\n".join(lines + faces))
    robot = Robot.from_urdf(tmp_path / "prism.urdf", floating_base=True)
    found = touches(robot, at([0, 0, 0.1]), {"ground": Plane()})
    assert len(found) == 8
    points = np.array([p[:2] for p, *_ in found])
    order = np.argsort(np.arctan2(points[:, 1], points[:, 0]))
    x, y = points[order].T
    area = 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))
    assert area == pytest.approx(2.0 * np.sqrt(2.0) * 0.2**2, rel=1e-6)
    with pytest.raises(ModelError, match="nothing"):
        text = (tmp_path / "prism.urdf").read_text().replace("shapes/prism", "shapes/nothing")
        Collisions({"ground": Plane()}).bind(Robot.from_urdf(text, True))


@property_test(60)
@given(seed=seeds)
def test_no_point_of_a_box_is_lower_than_the_lowest_contact(seed: int) -> None:
    """Whatever the attitude of box and plane: the least gap is that of the support function."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=3)
    normal /= np.linalg.norm(normal)
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    turn = pin.Quaternion(quaternion).matrix()
    reach = np.abs(turn.T @ normal) @ np.array([0.15, 0.1, 0.05])
    position = rng.normal(size=3)
    offset = float(normal @ position) - reach - 1e-3
    found = touches(body("box"), at(position, quaternion), {"ground": Plane(normal, offset)})
    assert 1 <= len(found) <= 4
    assert min(gap for *_, gap in found) == pytest.approx(1e-3, abs=1e-13)


def test_margin_decides_what_is_watched() -> None:
    """Just within, and just beyond."""
    for height, count in ((0.0199, 1), (0.0201, 0)):
        assert len(touches(body("sphere"), at([0, 0, 0.2 + height]), {"ground": Plane()})) == count
    assert len(touches(body("sphere"), at([0, 0, 0.25]), {"ground": Plane()}, margin=0.06)) == 1


# -- solids


def test_sphere_near_solids() -> None:
    """On a ball, over a face, and off an edge of a box: nearest points in closed form."""
    robot = body("sphere")
    ball = Sphere(0.5, (0, 0, 0))
    direction = np.array([0.6, 0.0, 0.8])
    ((point, n, gap),) = touches(robot, at(0.701 * direction), {"ball": ball})
    assert n == pytest.approx(direction, abs=1e-9)
    assert gap == pytest.approx(1e-3, abs=1e-9)
    assert point == pytest.approx(0.501 * direction, abs=1e-9)
    block = Box((1.0, 1.0, 1.0), (0, 0, -0.5))
    ((_, n, gap),) = touches(robot, at([0.1, 0.2, 0.2 + 2e-3]), {"block": block})
    assert n == pytest.approx([0, 0, 1], abs=1e-7)
    assert gap == pytest.approx(2e-3, abs=1e-8)
    away = np.array([0.6, 0.0, 0.8])
    ((_, n, gap),) = touches(robot, at(np.array([0.5, 0.1, 0.0]) + 0.201 * away), {"block": block})
    assert n == pytest.approx(away, abs=1e-6)
    assert gap == pytest.approx(1e-3, abs=1e-8)


@pytest.mark.parametrize(
    "support",
    [
        Box((1.0, 0.16, 0.4), (0, 0, -0.2)),
        Mesh([[x, y, z] for x in (-0.5, 0.5) for y in (-0.08, 0.08) for z in (-0.4, 0)]),
    ],
    ids=["box", "mesh"],
)
def test_box_on_solids_touches_at_the_overlap(support: Box | Mesh) -> None:
    """The patch is the rectangle in which both overlap; its four corners, all at the gap."""
    found = touches(body("box"), at([0, 0, 0.05 + 1e-3]), {"support": support})
    assert {(round(float(p[0]), 5), round(float(p[1]), 5)) for p, *_ in found} == {
        (a * 0.15, b * 0.08) for a in (-1, 1) for b in (-1, 1)
    }
    assert [gap for *_, gap in found] == pytest.approx([1e-3] * 4, abs=1e-8)
    assert all(n == pytest.approx([0, 0, 1], abs=1e-8) for _, n, _ in found)


WIDE = '<limit lower="-9" upper="9" effort="9" velocity="9"/>'


def two_balls() -> Robot:
    """Return two balls at the ends of two arms that a middle link carries."""
    return Robot.from_urdf(
        urdf(
            link("base", 1.0),
            link("left", 1.0, shape=SHAPES["sphere"]),
            link("right", 1.0, shape=SHAPES["sphere"]),
            joint(
                "l",
                "prismatic",
                "base",
                "left",
                (1, 0, 0),
                more=WIDE,
            ),
            joint(
                "r",
                "prismatic",
                "base",
                "right",
                (1, 0, 0),
                more=WIDE,
            ),
        )
    )


def test_links_touch_each_other_on_request() -> None:
    """Off by default; on, the two balls meet; excluded pairs and those of an SRDF do not."""
    robot, q = two_balls(), np.array([-0.2005, 0.2005])
    assert not Collisions().bind(robot).contacts(kinematics_at(robot, q))[0]
    (contact,) = Collisions(self_collision=True).bind(robot).contacts(kinematics_at(robot, q))[0]
    assert (contact.joint, contact.other_joint) == (1, 2)
    assert contact.axes[2] == pytest.approx([-1, 0, 0], abs=1e-9)
    srdf = '<robot name="r"><disable_collisions link1="right" link2="left" reason="no"/></robot>'
    for excluding in ({"srdf": srdf}, {"excluded": [("left", "right")]}):
        assert not Collisions(self_collision=True, **excluding).bind(robot).contacts(kinematics_at(robot, q))[0]  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="middle"):
        Collisions(self_collision=True, excluded=[("left", "middle")]).bind(robot)
    with pytest.raises(ModelError, match="SRDF"):
        Collisions(self_collision=True, srdf="<robot").bind(robot)


def test_links_that_meet_exchange_momentum() -> None:
    """Two equal sliders collide: the impulses are opposite, restitution e, momentum kept to rounding."""
    robot = two_balls()
    collisions = Collisions(self_collision=True, restitution=0.5)
    sim = Simulator(robot, collisions=collisions)
    sim.reset([-0.3, 0.3], [1.0, -0.4])
    trajectory = sim.run(0.2)
    (impact,) = trajectory.impacts
    assert impact.t == pytest.approx(0.2 / 1.4, abs=1e-8)
    assert impact.v_plus == pytest.approx([0.3 - 0.35, 0.3 + 0.35], abs=1e-9)
    assert sim.state.v.sum() == pytest.approx(0.6, abs=1e-12)


# -- lines beside each other

ALONG_Y = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])


@pytest.mark.parametrize("shape", ['<capsule radius="0.1" length="0.3"/>', '<cylinder radius="0.1" length="0.3"/>'])
@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
@pytest.mark.parametrize("y", [0.0, 1e-3, 0.9])
def test_pipe_at_rest_along_two_edges(shape: str, stepper: str, y: float) -> None:
    """It touches each edge at both ends of what they share, wherever it lies, and these four forces carry it."""
    scene = {name: Box((1.0, 2.0, 1.0), (x, 0.0, -0.5)) for name, x in (("left", -0.56), ("right", 0.56))}
    sim = Simulator(body(shape), collisions=Collisions(scene, friction=0.5), stepper=stepper)
    sim.reset(at([0, y, np.sqrt(0.1**2 - 0.06**2)], ALONG_Y))
    ends = [y - 0.15, min(y + 0.15, 1.0)]
    for _ in range(50):
        result = sim.step()
        forces = result.contact_forces.values()
        assert not result.impacts
        assert sum(contact.force for contact in forces) == pytest.approx([0, 0, 2.0 * GRAVITY], abs=1e-9)
        assert sorted(contact.position[1] for contact in forces) == pytest.approx(np.repeat(ends, 2), abs=1e-9)
    assert np.abs(sim.state.v).max() < 1e-12


def test_wrench_on_either_link() -> None:
    """What presses on a link presses on the other one with the opposite sign."""
    robot = two_balls()
    sim = Simulator(robot, collisions=Collisions(self_collision=True))
    sim.reset([-0.2, 0.2])
    result = sim.step(np.array([3.0, -1.0]))
    (name,) = result.contact_forces
    assert result.wrench(name, "left") == pytest.approx([-2.0, 0, 0, 0, 0, 0], abs=1e-12)
    assert result.wrench(name, "right") == pytest.approx([2.0, 0, 0, 0, 0, 0], abs=1e-12)
    with pytest.raises(UnknownName, match="left, right"):
        result.wrench(name, "base")


def two_capsules(lengths: tuple[float, float]) -> Robot:
    """Return a capsule of radius 0.15 m along y, which slides along y, and a free one of 0.1 m."""
    shapes = [
        f'<capsule radius="{radius}" length="{length}"/>' for radius, length in zip((0.15, 0.1), lengths, strict=True)
    ]
    return Robot.from_urdf(
        urdf(
            '<link name="world_frame"/>',
            link("below", 1.0, shape=shapes[0], origin='<origin rpy="1.5707963267948966 0 0"/>'),
            joint("held", "prismatic", "world_frame", "below", (0, 1, 0), more=WIDE),
            link("above", 2.0, inertia=(0.02, 0.02, 0.01), shape=shapes[1]),
            joint("free", "floating", "world_frame", "above"),
        )
    )


def test_capsules_inside_each_other_have_a_normal() -> None:
    """As deep as both radii where their axes coincide, at both ends of the shorter, along a direction of length one."""
    robot = two_capsules((0.3, 0.2))
    q = robot.configuration({"free": [0.0, 0.0, 0.0, *ALONG_Y]})
    contacts = Collisions(self_collision=True).bind(robot).contacts(kinematics_at(robot, q))[0]
    here = ConstraintSet(robot, contacts).contacts.rows(kinematics_at(robot, q), np.zeros(robot.nv))
    assert sorted(here.points[:, 1]) == pytest.approx([-0.1, 0.1], abs=1e-9)
    assert here.distances == pytest.approx([-0.25, -0.25], abs=1e-9)
    assert np.linalg.norm(here.axes[:, 2], axis=1) == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize(("stepper", "dt", "tolerance"), [("time_stepping", 1e-3, 1e-6), ("event_driven", 5e-3, 1e-11)])
@pytest.mark.parametrize("lengths", [(0.3, 0.2), (0.2, 0.3), (0.3, 0.3)])
def test_capsule_rolls_down_another(stepper: str, dt: float, tolerance: float, lengths: tuple[float, float]) -> None:
    """Along parallel axes, as a solid cylinder does: 3/2 (R + r) phi'' = g sin(phi); it stays in its plane."""
    robot = two_capsules(lengths)
    sim = Simulator(robot, collisions=Collisions(friction=2.0, self_collision=True), stepper=stepper, dt=dt)
    sim.reset(robot.configuration({"free": [0.25 * np.sin(0.1), 0.0, 0.25 * np.cos(0.1), *ALONG_Y]}))
    trajectory = sim.run(0.35)
    phi = solve_ivp(
        lambda t, y: [y[1], GRAVITY * np.sin(y[0]) / 0.375],
        (0.0, 0.35),
        [0.1, 0.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    ).y[0, -1]
    place = robot.joint_models["free"].idx_q
    assert not trajectory.impacts
    assert sim.state.q[place : place + 3] == pytest.approx(
        0.25 * np.array([np.sin(phi), 0.0, np.cos(phi)]), abs=tolerance
    )
    assert sim.state.q[robot.joint_models["held"].idx_q] == pytest.approx(0.0, abs=1e-12)


# -- simulations


def test_box_slides_as_declared_corners_do() -> None:
    """Detected contacts give the motion and the forces of four declared points."""
    half = (0.15, 0.1, 0.05)
    x, y, z = np.square(half) * 2.0 / 3.0
    robot, q, v = body("box", 2.0, (y + z, x + z, x + y)), at([0, 0, 0.05]), [1.0, 0.2, 0, 0, 0, 0.5]
    detected = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=0.3))
    detected.reset(q, v)
    declared = simulator(robot, q, v, [c.__class__(c.name, "body", c.point, friction=0.3) for c in corners(half)])
    for _ in range(300):
        a, b = detected.step(), declared.step()
    assert np.abs(detected.state.q - declared.state.q).max() < 1e-9
    assert np.abs(detected.state.v - declared.state.v).max() < 1e-8
    forces = [sum(f.force for f in r.contact_forces.values()) for r in (a, b)]
    assert forces[0] == pytest.approx(forces[1], abs=1e-6)
    assert forces[0][2] == pytest.approx(2.0 * GRAVITY, abs=1e-3)


def test_ball_rolls_over_the_edge_of_a_box_and_falls() -> None:
    """Rolls along the top, leaves it, falls to the ground beside it; never deeper than 1 um."""
    robot = body("sphere", 1.0, [0.4 * 0.04] * 3)
    scene = {"table": Box((1.0, 1.0, 0.5), (0, 0, 0.25)), "ground": Plane()}
    sim = Simulator(robot, collisions=Collisions(scene, friction=0.6))
    sim.reset(at([0.3, 0, 0.7]), [1.5, 0, 0, 0, 7.5, 0])
    deepest = 0.0
    for _ in range(900):
        result = sim.step()
        deepest = min(deepest, *(force.gap for force in result.contact_forces.values()), 0.0)
        assert result.energy.contacts <= 1e-9
    assert deepest > -1e-6
    assert sim.state.q[2] == pytest.approx(0.2, abs=1e-6)
    assert sim.state.q[0] > 1.0


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
@pytest.mark.parametrize("ground", [Plane(), Box((4.0, 4.0, 1.0), (0.0, 0.0, -0.5))], ids=["plane", "box"])
@pytest.mark.parametrize("radius", [0.15, 0.02])
def test_wheel_rolls(radius: float, ground: Plane | Box, stepper: str) -> None:
    """A cylinder on its side: pressed by its weight, no impacts, no friction, nothing lost, not a step too far.

    Then with a force along its way: friction is a third of it, as ``I = m r^2 / 2`` demands.
    """
    mass, speed, across = 2.0, 20.0 * radius, 2.0 * (0.25 * radius**2 + 0.4**2 / 12.0)
    shape = f'<cylinder radius="{radius}" length="0.4"/>'
    wheel = body(shape, mass, [across, across, 0.5 * mass * radius**2])
    lying = tilted(0.5 * np.pi, 0)
    turn = pin.Quaternion(lying).matrix().T
    spin = np.concatenate([turn @ [speed, 0, 0], turn @ [0, speed / radius, 0]])
    sim = Simulator(wheel, stepper=stepper, dt=1e-3, collisions=Collisions({"ground": ground}, friction=0.6))
    sim.reset(at([0, 0, radius], lying), spin)
    before, tolerance = sim.kinetic_energy(), 1e-9 if stepper == "event_driven" else 1e-3
    too_far = 0.0 if stepper == "event_driven" else (1e-3 * speed / radius) ** 2 / 24.0
    for step in range(100):
        result = sim.step()
        force = sum(contact.force for contact in result.contact_forces.values())
        assert not result.impacts
        assert force == pytest.approx([0.0, 0.0, mass * GRAVITY], abs=1e-9)
        assert sim.state.q[0] == pytest.approx((step + 1) * 1e-3 * speed, abs=1e-9, rel=1.1 * too_far)
    assert sim.kinetic_energy() == pytest.approx(before, rel=1e-10)
    pull = 3.0
    for _ in range(20):
        result = sim.step(wrenches=[Wrench("body", force=(pull, 0.0, 0.0), axes="world")])
        force = sum(contact.force for contact in result.contact_forces.values())
    assert force == pytest.approx([-pull / 3.0, 0.0, mass * GRAVITY], abs=tolerance)


@pytest.mark.parametrize("target", [Plane((-1, 0, 0), -1.0), Box((0.02, 2, 2), (1.01, 0, 0)), Sphere(0.5, (1.5, 0, 0))])
@pytest.mark.parametrize(("speed", "dt", "stepper"), [(100.0, 1e-3, "time_stepping"), (30.0, 1e-2, "event_driven")])
def test_what_is_fast_passes_through_nothing(target: object, speed: float, dt: float, stepper: str) -> None:
    """A ball that does 0.1 m and more in a step bounces off at the right place, whatever the margin."""
    radius, travel = 0.05, 0.95
    ball = link("ball", 1.0, shape=f'<sphere radius="{radius}"/>')
    robot = Robot.from_urdf(urdf(ball), floating_base=True, gravity=(0, 0, 0))
    collisions = Collisions({"target": target}, restitution=1.0)  # type: ignore[dict-item]
    sim = Simulator(robot, stepper=stepper, dt=dt, collisions=collisions)
    sim.reset(v=[speed, 0, 0, 0, 0, 0])
    steps = round(1.5 * travel / speed / dt)
    impacts = [impact for _ in range(steps) for impact in sim.step().impacts]
    assert [impact.t for impact in impacts] == pytest.approx([travel / speed], abs=1e-9)
    assert sim.state.q[0] == pytest.approx(2.0 * travel - speed * steps * dt, abs=1e-9)


def test_ball_on_a_turntable_circles() -> None:
    """Rolling without slip on a plate that turns with W: the centre's velocity turns with 2 W / 7 (Weltner, 1979)."""
    radius, mass, turning = 0.05, 0.3, 3.0
    moment = 0.4 * mass * radius**2
    below, ball = '<origin xyz="0 0 -0.5"/>', f'<sphere radius="{radius}"/>'
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("table", 1e5, inertia=(1e9, 1e9, 1e9), shape='<box size="20 20 1"/>', origin=below),
            joint("turn", "continuous", "base", "table", (0, 0, 1)),
            link("ball", mass, inertia=(moment,) * 3, shape=ball),
            joint("free", "floating", "base", "ball"),
        )
    )
    free, turn = robot.joint_models["free"], robot.joint_models["turn"]
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[free.idx_q : free.idx_q + 3] = [0.5, 0.0, radius]
    v[turn.idx_v] = turning
    slip = np.array([0.2, 0.1 - 0.5 * turning, 0.0])
    v[free.idx_v : free.idx_v + 6] = [0.2, 0.1, 0.0, -slip[1] / radius, slip[0] / radius, 0.0]
    collisions = Collisions({}, friction=2.0, self_collision=True)
    sim = Simulator(robot, stepper="event_driven", dt=5e-3, collisions=collisions)
    sim.reset(q, v)
    rate = 2.0 / 7.0 * turning
    for step in range(20):
        (contact,) = sim.step().contact_forces.values()
        angle = rate * (step + 0.5) * 5e-3
        velocity = np.array([0.2 * np.cos(angle) - 0.1 * np.sin(angle), 0.2 * np.sin(angle) + 0.1 * np.cos(angle)])
        push = mass * rate * np.array([-velocity[1], velocity[0]])
        assert contact.force == pytest.approx([*push, mass * GRAVITY], abs=1e-6)


def test_detection_is_repeatable_and_names_its_contacts() -> None:
    """The quadruped on its feet: equal results of two calls, names of link and body."""
    robot = solo12()
    q = robot.neutral()
    detector = Collisions({"ground": Plane(offset=-0.35)}).bind(robot)
    first, second = (detector.contacts(dynamics_at(robot, q, np.zeros(robot.nv)), 1e-3)[0] for _ in range(2))
    assert first
    assert [c.name for c in first] == [c.name for c in second]
    assert all("/ground#" in c.name for c in first)
    assert all(np.array_equal(a.offset, b.offset) for a, b in zip(first, second, strict=True))


def test_bad_input_is_refused() -> None:
    """What was given, and what is allowed."""
    for wrong in (
        lambda: Box((1, 0, 1)),
        lambda: Sphere(-1.0),
        lambda: Mesh([[0, 0, 0]]),
        lambda: Mesh("/nowhere/at/all.stl"),
        lambda: Collisions({"x": 3}),  # type: ignore[dict-item]
        lambda: Collisions(margin=0.0),
        lambda: Collisions(friction=-1.0),
        lambda: Collisions(law=Compliant(stiffness=1.0)),
    ):
        with pytest.raises(InvalidValue):
            wrong()
    with pytest.raises(ModelError, match="URDF"):
        Collisions().bind(Robot.from_mjcf(MJCF))
    sim = Simulator(body("box"), collisions=Collisions({"ground": Plane()}))
    with pytest.raises(ViolatedConstraint, match="ground"):
        sim.reset(at([0, 0, 0.04]))
    with pytest.raises(NotSupported, match="gauss"):
        Simulator(body("box"), collisions=Collisions({"ground": Plane()}, friction=0.4), solver="gauss")


def test_points_found_again_change_nothing() -> None:
    """A box that tumbles and comes to rest: the same whether its contacts are those of the last step or new.

    Up to rounding, as new ones are observed anew.
    """
    sims = [Simulator(body("box"), collisions=Collisions({"ground": Plane()}, friction=0.4)) for _ in range(2)]
    for sim in sims:
        sim.reset(at([0, 0, 0.2], tilted(0.3)), np.array([0.4, 0.1, 0.0, 1.0, 2.0, 0.5]))
    for _ in range(900):
        results = [sim.step() for sim in sims]
        detected = sims[1]._manager._detected
        assert detected is not None
        detected._detector._on_planes.clear()
        one, other = (np.concatenate([result.state.q, result.state.v]) for result in results)
        assert np.abs(one - other).max() < 1e-11
        forces = [{name: f.force for name, f in result.contact_forces.items()} for result in results]
        assert forces[0].keys() == forces[1].keys()
        assert all(np.abs(force - forces[1][name]).max() < 1e-7 for name, force in forces[0].items())
    assert np.abs(sims[0].state.v).max() < 1e-9


def box_link(name: str, mass: float, edge: float) -> str:
    """Return the URDF of a cube, inertia and collision geometry."""
    inertia = [mass * edge**2 / 6.0] * 3
    return link(name, mass, inertia=inertia, shape=f'<box size="{edge} {edge} {edge}"/>')


@pytest.mark.parametrize(("stepper", "dt"), [("time_stepping", 1e-3), ("event_driven", 5e-3)])
@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-6, 1e-4])
def test_cube_above_the_middle_of_another_falls_straight_on_it(tilt: float, stepper: str, dt: float) -> None:
    """Where two faces just touch, the direction of least distance is theirs, not what is left of it by rounding."""
    robot = Robot.from_urdf(f'<robot name="r">{box_link("box", 1.0, 0.08)}</robot>', floating_base=True)
    rng = np.random.default_rng(0)
    for _ in range(4):
        table = Collisions({"table": Box((0.1, 0.1, 0.1), (0.0, 0.0, -0.05))})
        sim = Simulator(robot, stepper=stepper, dt=dt, collisions=table)
        sim.reset(at([0, 0, 0.041], [*(0.5 * tilt * rng.normal(size=3)), 1.0]))
        sim.run(0.06)
        assert np.abs(sim.state.v[:2]).max() < 1e-10


@pytest.mark.parametrize(("stepper", "dt"), [("time_stepping", 1e-3), ("event_driven", 1e-2)])
def test_heavy_cube_on_a_light_one_stays(stepper: str, dt: float) -> None:
    """A hundred kilograms exactly above ten grams, without friction: neither moves, and the force is the weight."""
    joints = [f'<joint name="{b} free" type="floating"><parent link="w"/><child link="{b}"/></joint>' for b in "ab"]
    cubes = box_link("a", 0.01, 0.1) + box_link("b", 100.0, 0.1)
    robot = Robot.from_urdf(f'<robot name="r"><link name="w"/>{cubes}{"".join(joints)}</robot>', actuated_joints=[])
    sim = Simulator(robot, stepper=stepper, dt=dt, collisions=Collisions({"g": Plane()}, self_collision=True))
    sim.reset(robot.configuration({"a free": [0, 0, 0.05, 0, 0, 0, 1], "b free": [0, 0, 0.15, 0, 0, 0, 1]}))
    for _ in range(round(0.1 / dt)):
        forces = sim.step().contact_forces.values()
        between = [force for force in forces if abs(force.position[2] - 0.1) < 1e-3]
        assert len(between) == 4
        assert all(abs(force.normal[2]) == pytest.approx(1.0, abs=1e-12) for force in between)
        assert sum(force.normal_force for force in between) == pytest.approx(100.0 * GRAVITY, rel=1e-7)
        assert np.abs(sim.state.v).max() < 1e-7


MJCF = """<mujoco><worldbody><body name="body"><joint name="x" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("seed", [0, 1])
def test_humanoid_falls_in_any_attitude(seed: int) -> None:
    """Talos on its collision meshes, joints at their stops: finite, no deeper than 1 mm, contacts never feed energy."""
    (text,) = (file for file in files("example-robot-data") or [] if file.name == "talos_reduced.urdf")
    robot = Robot.from_urdf(Path(str(text.locate())), floating_base=True)
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    q = robot.neutral()
    q[3:7] = quaternion / np.linalg.norm(quaternion)
    collisions = Collisions({"ground": Plane(offset=-1.2)}, friction=0.7)
    sim = Simulator(robot, robot.joint_limits(), collisions=collisions)
    sim.reset(q)
    before, touched = sim.mechanical_energy(), 0
    for _ in range(700):
        result = sim.step()
        touched = max(touched, len(result.contact_forces))
        assert result.energy.contacts <= 1e-6  # of some 800 J; in all but single steps below 1e-15
        assert all(impact.energy_lost >= -1e-12 for impact in result.impacts)
        assert abs(result.energy.residual) < 1e-9
        assert min((force.gap for force in result.contact_forces.values()), default=0.0) > -1e-3
    assert touched >= 4
    assert sim.mechanical_energy() < before - 10.0


# -- soles of meshes


def sole(path: Path, decimals: int, corners_of_outline: int = 24) -> Robot:
    """Return a body of 40 kg on a rounded plate, whose mesh is written in a turned frame with so many decimals."""
    turn = pin.rpy.rpyToMatrix(0.3, 0.4, 0.5)
    angles = 2.0 * np.pi * (np.arange(corners_of_outline) + 0.5) / corners_of_outline
    outline = np.stack([0.02 * np.cos(angles), 0.02 * np.sin(angles)], axis=1)
    outline += np.sign(outline) * [0.08, 0.03]
    points = np.concatenate([np.insert(outline, 2, height, axis=1) for height in (0.0, 0.03)]) @ turn
    vertices = "".join("v " + " ".join(f"{x:.{decimals}f}" for x in point) + "\n" for point in points)
    faces = "".join("f {} {} {}\n".format(*(triangle + 1)) for triangle in ConvexHull(points).simplices)
    path.write_text(vertices + faces)
    shape = f'<mesh filename="{path}"/>'
    moments = '<inertia ixx="3" iyy="3" izz="1" ixy="0" ixz="0" iyz="0"/>'
    inertial = f'<inertial><origin xyz="0 0 0.5"/><mass value="40"/>{moments}</inertial>'
    collision = f'<collision><origin rpy="0.3 0.4 0.5"/><geometry>{shape}</geometry></collision>'
    return Robot.from_urdf(f'<robot name="r"><link name="f">{inertial}{collision}</link></robot>', floating_base=True)


@pytest.mark.parametrize("ground", [Plane(), Box((1.0, 1.0, 0.2), (0.0, 0.0, -0.1))], ids=["plane", "box"])
@pytest.mark.parametrize("decimals", [5, 6, 9])
def test_sole_of_a_rounded_mesh_comes_to_rest(tmp_path: Path, decimals: int, ground: object) -> None:
    """Dropped by 0.1 mm: half a second later it pushes with its weight, without impact and without motion."""
    robot = sole(tmp_path / "sole.obj", decimals)
    sim = Simulator(robot, collisions=Collisions({"ground": ground}, friction=0.7), q=at((0, 0, 1e-4)))  # type: ignore[dict-item]
    run = sim.run(0.6)
    force = sum(np.nan_to_num(contact[500:]) for contact in run.contact_forces.values())
    assert force[:, 2] == pytest.approx(40.0 * GRAVITY, rel=1e-9)
    assert not [impact for impact in run.impacts if impact.t > 0.5]
    assert np.abs(run.v[500:]).max() < 1e-9


@pytest.mark.parametrize("decimals", [5, 9])
def test_sole_at_rest_stays_at_rest_in_both_steppers(tmp_path: Path, decimals: int) -> None:
    """On the three corners that it came to rest on, its weight is carried to rounding, without impact or motion."""
    robot = sole(tmp_path / "sole.obj", decimals)
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=0.7), q=at((0, 0, 1e-4)))
    sim.run(0.6)
    rest = sim.state.q
    for stepper, dt in (("time_stepping", 1e-3), ("event_driven", 1e-2)):
        sim = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=0.7), q=rest, stepper=stepper, dt=dt)
        run = sim.run(0.05)
        force = sum(np.nan_to_num(contact) for contact in run.contact_forces.values())
        assert force == pytest.approx(np.broadcast_to([0.0, 0.0, 40.0 * GRAVITY], force.shape), abs=1e-9)
        assert not run.impacts
        assert np.abs(run.q - rest).max() < 1e-12
        assert np.abs(run.v).max() < 1e-12


def test_a_face_of_rounded_corners_is_flat_again() -> None:
    """Corners move by no more than they were rounded by, and those of a box are where they were before."""
    turn = pin.rpy.rpyToMatrix(0.3, -0.2, 0.5)
    exact = np.array(np.meshgrid([-0.1, 0.1], [-0.05, 0.05], [-0.02, 0.02])).reshape(3, -1).T @ turn.T
    for decimals in (5, 6, 9):
        rounded = exact.round(decimals)
        found = flattened(rounded)
        assert np.abs(found - rounded).max() < 2.0 * 10.0**-decimals
        along = (exact @ turn)[:, 2]
        for face in (found[along > 0.0], found[along < 0.0]):
            assert np.linalg.svd(face - face.mean(axis=0))[1][2] < 1e-15
    assert flattened(exact) == pytest.approx(exact, abs=1e-16)


@pytest.mark.parametrize(("stepper", "dt"), [("time_stepping", 1e-3), ("time_stepping", 1e-2), ("event_driven", 2e-2)])
@pytest.mark.parametrize("turned", [(0, 0, 0, 1), (0, 0, 0.05, 1), (0.05, 0, 0, 1)], ids=["aligned", "yaw", "roll"])
def test_a_box_falls_past_the_edge_of_a_table(stepper: str, dt: float, turned: Any) -> None:
    """By a hair or by more: what passes each other does not touch, wherever a step begins."""
    turned /= np.linalg.norm(turned)
    rotation = pin.Quaternion(turned).matrix()
    reach = np.abs(rotation[0]) @ (0.1, 0.1, 0.05)
    table = Collisions({"table": Box((1.0, 1.0, 0.2), position=(0.5, 0.0, -0.1))}, friction=0.5)
    for clearance, height in ((1e-4, 0.99), (2e-3, 1.0), (2e-3, 1.001)):
        sim = Simulator(body('<box size="0.2 0.2 0.1"/>'), collisions=table, stepper=stepper, dt=dt)
        sim.reset([-reach - clearance, 0.0, height, *turned])
        trajectory = sim.run(0.6)
        assert not trajectory.impacts
        fallen = height - 0.5 * GRAVITY * 0.6**2
        assert sim.state.q[:3] == pytest.approx([-reach - clearance, 0.0, fallen], abs=1e-12)


@pytest.mark.parametrize(("stepper", "dt"), [("time_stepping", 1e-3), ("time_stepping", 5e-3), ("event_driven", 5e-3)])
@pytest.mark.parametrize("begin", [-0.3037, -0.3, -0.2999])
def test_a_box_slides_on_over_a_seam(stepper: str, dt: float, begin: float) -> None:
    """Whose other side is a tenth of a millimetre lower: nothing there stops it."""
    scene = {
        "one": Box((2.0, 1.0, 0.2), position=(-1.0, 0, -0.1)),
        "two": Box((2.0, 1.0, 0.2), position=(1.0, 0, -0.1001)),
    }
    sim = Simulator(
        body('<box size="0.2 0.2 0.1"/>'), collisions=Collisions(scene, friction=0.0), stepper=stepper, dt=dt
    )
    sim.reset([begin, 0.0, 0.05, 0, 0, 0, 1], [1.0, 0, 0, 0, 0, 0])
    trajectory = sim.run(0.25)  # it is over both then, its middle before the seam
    assert sim.state.v[0] == pytest.approx(1.0, abs=1e-12)
    assert trajectory.q[-1, 0] == pytest.approx(begin + 0.25, abs=1e-12)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
@pytest.mark.parametrize("friction", [0.0, 0.8])
@pytest.mark.parametrize("ground", ["plane", "box", "board"])
def test_can_tips_onto_its_end_face(stepper: str, friction: float, ground: str) -> None:
    """It falls flat from its rim: an impact takes what it has gained, as it does of a box; nothing else is lost.

    It is the same on a plane, on a solid of the scene, and on a board that lies there.
    """
    robot, tilt = body("cylinder", 1.0, [0.015, 0.015, 0.011]), 0.2
    scene: dict[str, Any] = {"ground": Box((4.0, 4.0, 1.0), position=(0.0, 0.0, -0.5)) if ground == "box" else Plane()}
    height, top = 0.2 * np.cos(tilt) + 0.15 * np.sin(tilt), 0.0
    if ground == "board":
        board = WorldObject.box("board", (1.0, 1.0, 0.1), 5.0, friction=0.8, pose=(0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0))
        robot, top = robot.with_objects([board]), 0.1
    q = robot.neutral()
    q[:7] = 0.0, 0.0, top + height, 0.0, np.sin(tilt / 2), 0.0, np.cos(tilt / 2)
    sim = Simulator(robot, stepper=stepper, dt=1e-3, collisions=Collisions(scene, friction=friction), q=q)
    trajectory = sim.run(0.4)
    assert sim.state.q[2] == pytest.approx(top + 0.2, abs=1e-9)
    assert sim.energy.impact_losses == pytest.approx(9.81 * (height - 0.2), rel=1e-4)
    assert abs(sim.integration_energy()) < 1e-5
    forces = np.nansum(
        [force[:, 2] for name, force in trajectory.contact_forces.items() if name.startswith("body_0")], axis=0
    )
    assert forces.max() < 1.1 * 9.81
    assert forces[-1] == pytest.approx(9.81, abs=1e-9)


def test_copies_of_bodies_at_rest_go_on_the_same() -> None:
    """Contacts that are those of the last step are kept, in copies and pickles too: pushed later, all move alike."""
    board = WorldObject.box("board", (1.0, 1.0, 0.1), 5.0, friction=0.8, pose=(0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0))
    robot = body("cylinder", 1.0, [0.015, 0.015, 0.011]).with_objects([board])
    q = robot.neutral()
    q[:7] = 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0
    scene = Collisions({"ground": Box((4.0, 4.0, 1.0), position=(0.0, 0.0, -0.5))}, friction=0.8)
    sim = Simulator(robot, collisions=scene, q=q)
    sim.run(0.05)
    copies = [sim, copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))]
    for one in copies:
        one.apply(Wrench("body", force=(12.0, 0.0, 0.0), point=(0.0, 0.0, 0.2)), 0.1)
        one.run(0.3)
    assert np.abs(sim.state.v).max() > 1e-3
    for one in copies[1:]:
        assert np.array_equal(one.state.q, sim.state.q)
        assert np.array_equal(one.state.v, sim.state.v)


@pytest.mark.parametrize(("stepper", "dt"), [("time_stepping", 1e-3), ("time_stepping", 4e-3), ("event_driven", 4e-3)])
def test_can_that_was_dropped_comes_to_stand(stepper: str, dt: float) -> None:
    """It rocks on its rim, ever faster, until it stands: the audit of energy closes on the way."""
    robot = body("cylinder", 1.0, [0.015, 0.015, 0.011])
    q = robot.configuration(
        {}, (0.0, 0.0, 0.35, *np.array([0.05, -0.02, 0.3, 1.0]) / np.linalg.norm([0.05, 0.02, 0.3, 1.0]))
    )
    sim = Simulator(robot, stepper=stepper, dt=dt, collisions=Collisions({"ground": Plane()}, friction=0.8), q=q)
    begin = sim.mechanical_energy()
    sim.run(1.2)
    assert sim.state.q[2] == pytest.approx(0.2, abs=1e-8)
    assert np.abs(sim.state.v).max() < 1e-6
    assert sim.energy.impact_losses == pytest.approx(begin - sim.mechanical_energy(), rel=1e-3)
    assert abs(sim.integration_energy()) < 1e-4

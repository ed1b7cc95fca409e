"""Every kind of bilateral constraint: its derivatives, its forces, and what it does to a motion."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms import (
    GRAVITY,
    ball,
    double_pendulum,
    every_solver,
    joint,
    link,
    placement,
    property_test,
    random_state,
    random_tree,
    simulator,
    tilted,
    urdf,
)

from constrained_sim import (
    STEPPERS,
    Baumgarte,
    CustomConstraint,
    FrameAnchor,
    JointCoupling,
    JointLimit,
    JointVelocity,
    PointAnchor,
    PointContact,
    PointDistance,
    Robot,
    Simulator,
    constrained_acceleration,
    constraint_system,
    resolve_impact,
)
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.kinematics import velocity_at
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue

SEEDS = st.integers(0, 2**31)


def circling(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A point on a circle of 0.2 m, 3 rad/s, with its derivatives."""
    c, s = np.cos(3 * t), np.sin(3 * t)
    return 0.2 * np.array([c, s, t]), 0.6 * np.array([-s, c, 1 / 3]), 1.8 * np.array([-c, -s, 0])


def radius_constraint(name: str, robot) -> CustomConstraint:  # type: ignore[no-untyped-def]
    """Half the squared distance of the last joint from the origin stays as it is: written with Pinocchio alone."""
    data, joint = robot.model.createData(), robot.model.njoints - 1

    def point(q, v):  # type: ignore[no-untyped-def]
        pin.forwardKinematics(robot.model, data, q, v, np.zeros(robot.nv))
        pin.computeJointJacobians(robot.model, data, q)
        J = pin.getJointJacobian(robot.model, data, joint, pin.LOCAL_WORLD_ALIGNED)[:3]
        a = pin.getClassicalAcceleration(robot.model, data, joint, pin.LOCAL_WORLD_ALIGNED).linear
        return data.oMi[joint].translation.copy(), J.copy(), a.copy()

    def phi(q, v, t):  # type: ignore[no-untyped-def]
        p, _, _ = point(q, v)
        return [0.5 * p @ p - 0.3 * np.sin(t)]

    def jacobian(q, v, t):  # type: ignore[no-untyped-def]
        p, J, _ = point(q, v)
        return [p @ J]

    def gamma(q, v, t):  # type: ignore[no-untyped-def]
        p, J, a = point(q, v)
        return [p @ a + (J @ v) @ (J @ v) + 0.3 * np.sin(t)]

    def velocity(q, v, t):  # type: ignore[no-untyped-def]
        p, J, _ = point(q, v)
        return [p @ J @ v - 0.3 * np.cos(t)]

    return CustomConstraint(name, 1, phi, jacobian, gamma, velocity)


class SpeedLimit(CustomConstraint):
    """The squared speed of all joints is prescribed: a velocity-level constraint, not linear in v."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 1)

    def velocity(self, q, v, t):  # type: ignore[no-untyped-def]
        return [0.5 * v @ v - t]

    def jacobian(self, q, v, t):  # type: ignore[no-untyped-def]
        return [v]

    def gamma(self, q, v, t):  # type: ignore[no-untyped-def]
        return [-1.0]


def make(kind: str, robot, rng):  # type: ignore[no-untyped-def]
    """Return a constraint of this kind between random places of `robot`, the same for the same `rng`."""
    pin.seed(int(rng.integers(2**31)))
    links = [name for name in robot.links if name not in ("universe", "world")]
    single = [name for name in robot.joint_names if robot.model.joints[robot.model.getJointId(name)].nv == 1]
    a, b = rng.choice(links), rng.choice(links)
    point, other = rng.normal(size=3) * 0.2, rng.normal(size=3) * 0.2
    if kind == "point_anchor":
        return PointAnchor("c", a, point, b, other, rng.normal(size=(2, 3)))
    if kind == "moving_anchor":
        return PointAnchor("c", a, point, b, circling)
    if kind == "frame_anchor":
        return FrameAnchor("c", a, pin.SE3.Random(), b, pin.SE3.Random())
    if kind == "part_of_a_frame":
        return FrameAnchor("c", a, pin.SE3.Random(), b, pin.SE3.Random(), rng.normal(size=(3, 6)))
    if kind == "point_distance":
        return PointDistance("c", a, point, b, other + (a == b), 0.7)
    if kind == "weld_to_world":
        return FrameAnchor("c", a, np.eye(4))
    if kind == "joint_coupling":
        first, second = rng.choice(single, size=2, replace=False)
        turns = robot.model.joints[robot.model.getJointId(second)].nq == 2
        return JointCoupling("c", first, second, -2.0 if turns else 1.7, 0.2)
    if kind == "joint_velocity":
        return JointVelocity("c", rng.choice(single), lambda t: (np.sin(2 * t), 2 * np.cos(2 * t)))
    if kind == "joint_limit":
        straight = [name for name in single if robot.model.joints[robot.model.getJointId(name)].nq == 1]
        return JointLimit("c", rng.choice(straight or ["none"]), -0.3, 0.7)
    return SpeedLimit("c") if kind == "custom_velocity" else radius_constraint("c", robot)


KINDS = (
    "point_anchor",
    "moving_anchor",
    "frame_anchor",
    "part_of_a_frame",
    "point_distance",
    "weld_to_world",
    "joint_coupling",
    "joint_velocity",
    "joint_limit",
    "custom",
    "custom_velocity",
)


@pytest.mark.parametrize("kind", KINDS)
@property_test(20)
@given(seed=SEEDS)
def test_derivatives_against_finite_differences(kind: str, seed: int) -> None:
    """J v + phi_t is dphi/dt, and J a + gamma is ds/dt, along an arbitrary motion of a random tree."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    a, t0 = rng.normal(size=robot.nv), 0.4
    bound = make(kind, robot, rng).bind(robot, q)
    here = Dynamics.at(robot, q, v, t0)
    s = bound.velocity(here, v, t0)

    def at(h: float) -> tuple[np.ndarray, np.ndarray]:
        moved = pin.integrate(robot.model, q, h * v + 0.5 * h**2 * a)
        # Along a curved path the velocity at h, in body axes, is the derivative of the path there.
        ahead = pin.integrate(robot.model, q, (h + 1e-6) * v + 0.5 * (h + 1e-6) ** 2 * a)
        behind = pin.integrate(robot.model, q, (h - 1e-6) * v + 0.5 * (h - 1e-6) ** 2 * a)
        speed = pin.difference(robot.model, behind, ahead) / 2e-6
        there = Dynamics.at(robot, moved, speed, t0 + h)
        return bound.phi(there), bound.velocity(there, speed, t0 + h)

    h = 1e-4
    (phi_plus, s_plus), (phi_minus, s_minus) = at(h), at(-h)
    scale = 1.0 + np.abs(s).max() + np.abs(bound.gamma(here)).max()
    if bound.is_position_level:
        assert np.abs((phi_plus - phi_minus) / (2 * h) - s).max() < 1e-5 * scale
    predicted = bound.jacobian(here) @ a + bound.gamma(here)
    assert np.abs((s_plus - s_minus) / (2 * h) - predicted).max() < 2e-4 * scale * (1.0 + np.abs(predicted).max())


@pytest.mark.parametrize("kind", KINDS)
@property_test(10)
@given(seed=SEEDS)
def test_accelerations_hold_the_rows(kind: str, seed: int) -> None:
    """The constrained acceleration satisfies ``J a + gamma = 0``, and M a + h = S^T tau + J^T lam with every solver."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    tau, constraint = rng.normal(size=robot.nu), make(kind, robot, rng)
    results = [
        constrained_acceleration(robot, q, v, tau, [constraint], solver, t=0.4)
        for solver in ("direct", "range_space", "null_space")
    ]
    bound, here = constraint.bind(robot, q), Dynamics.at(robot, q, v, 0.4)
    J, gamma = bound.jacobian(here), bound.gamma(here)
    force = np.zeros(robot.nv)
    force[robot.actuation] = tau
    for motion in results:
        residual = here.M @ motion.a + here.h - force - J.T @ motion.lam
        assert np.abs(residual).max() < 1e-9 * max(1.0, np.abs(here.h).max(), np.abs(J.T @ motion.lam).max())
        if motion.rank == bound.dim:
            largest = max(1.0, np.abs(gamma).max(), np.abs(motion.a).max())
            assert np.abs(J @ motion.a + gamma).max() < 1e-9 * largest * max(1.0, np.abs(J).max())


@property_test(10)
@given(seed=SEEDS)
def test_rows_of_anchors_together_are_those_of_each(seed: int) -> None:
    """Neighbouring anchors, moving ones among them, are evaluated in one call; that changes nothing."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    kinds = rng.choice(["point_anchor", "moving_anchor", "joint_velocity"], size=4)
    declared = [replace(make(kind, robot, rng), name=str(i)) for i, kind in enumerate(kinds)]
    rows, here = ConstraintSet.bind(robot, q, declared).bilateral, Dynamics.at(robot, q, v, 0.4)
    for evaluate in ("phi", "jacobian", "gamma"):
        each = [getattr(member, evaluate)(here) for member in rows.members]
        assert np.array_equal(getattr(rows, evaluate)(here), np.concatenate(each))
    speeds = [member.velocity(here, v, 0.4) for member in rows.members]
    assert np.abs(rows.velocity(here, v, 0.4) - np.concatenate(speeds)).max() < 1e-13 * (1.0 + np.abs(v).max())


@pytest.mark.parametrize("kind", ["anchors", "frames", "distance"])
def test_open_targets_are_where_each_call_is(kind: str) -> None:
    """Declarations that were bound before are bound again as far as the configuration counts, and only so far."""
    rng = np.random.default_rng(4)
    robot = random_tree(rng, 5, floating_base=True)
    a, b, c = [name for name in robot.links if name not in ("universe", "world")][-3:]
    declared = {
        "anchors": [PointAnchor("1", a, (0.1, 0.2, 0.3)), PointAnchor("2", b, (0.1, 0.0, 0.2), c)],
        "frames": [FrameAnchor("1", a, np.eye(4)), PointAnchor("2", b, (0.1, 0.0, 0.2), c)],
        "distance": [PointDistance("1", a, (0.1, 0.2, 0.3)), PointAnchor("2", b, point_b=(0.1, 0.0, 0.2))],
    }[kind]
    feedback = Baumgarte(0.1)
    for _ in range(3):
        q, v = random_state(robot, rng)
        again = constrained_acceleration(robot, q, v, np.zeros(robot.nu), declared, stabilization=feedback)
        fresh = [copy(constraint) for constraint in declared]
        once = constrained_acceleration(robot, q, v, np.zeros(robot.nu), fresh, stabilization=feedback)
        assert np.array_equal(again.a, once.a) and np.array_equal(again.lam, once.lam)
        here, bound = Dynamics.at(robot, q, v), ConstraintSet.bind(robot, q, declared)
        held = [m for m in bound.members if m.declaration.has_open_target]
        assert held and all(np.abs(member.phi(here)).max() < 1e-12 for member in held)
    fixed = [PointAnchor("1", a, (0.1, 0.2, 0.3), point_b=(0.0, 0.0, 0.0))]
    assert ConstraintSet.bind(robot, q, fixed) is ConstraintSet.bind(robot, robot.neutral(), fixed)


def test_a_frame_that_is_moved_counts_in_the_next_call() -> None:
    """Of a declaration that was bound before: its placements are Pinocchio's, which anybody can change."""
    robot, q = double_pendulum(), np.array([0.9, -1.4])
    tip, place = robot.model.frames[robot.model.nframes - 1].name, np.array([0.1, 0.2, 0.3])
    weld = FrameAnchor("weld", tip, pin.SE3.Identity(), "world", pin.SE3.Identity())
    before = constraint_system(robot, q, np.zeros(2), [weld]).phi
    weld.placement_b.translation = place
    after = constraint_system(robot, q, np.zeros(2), [weld]).phi
    there = FrameAnchor("weld", tip, pin.SE3.Identity(), "world", pin.SE3(np.eye(3), place))
    assert np.array_equal(after, constraint_system(robot, q, np.zeros(2), [there]).phi)
    assert np.abs(after - before).max() > 0.1


def test_moving_anchor_moves_the_foot_of_a_pendulum() -> None:
    """A point that is anchored to a moving point follows it: the tip of the pendulum oscillates as prescribed."""
    robot = double_pendulum()
    q = np.array([0.9, -1.4])
    dynamics = Dynamics.at(robot, q, np.zeros(2))
    tip = PointAnchor("tip", robot.model.frames[robot.model.nframes - 1].name, (0.0, 0.0, 0.0))
    where = dynamics.placement(2) * robot.link_placement(tip.link_a)[1]
    start = where.translation.copy()

    def path(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        wave = np.array([1.0, 0.0, 0.0]) * 0.05
        return start + wave * np.sin(4 * t) ** 2, wave * 4 * np.sin(8 * t), wave * 32 * np.cos(8 * t)

    anchor = PointAnchor("tip", tip.link_a, (0.0, 0.0, 0.0), "world", path, normals=[(1, 0, 0), (0, 0, 1)])
    sim = simulator(robot, q, constraints=[anchor])
    for _ in range(500):
        sim.step()
    here = Dynamics.at(robot, sim.state.q, sim.state.v, sim.state.t)
    bound = anchor.bind(robot, q)
    assert np.abs(bound.phi(here)).max() < 1e-8
    assert np.abs(bound.velocity(here, sim.state.v, sim.state.t)).max() < 1e-11


def test_prescribed_velocity_is_followed_and_its_effort_is_the_inverse_dynamics() -> None:
    """A driven joint has the prescribed velocity at every step; its multiplier is the torque that this takes."""
    robot = double_pendulum()
    driven = JointVelocity("drive", robot.joint_names[0], lambda t: (1.0 - np.cos(3 * t), 3 * np.sin(3 * t)))
    sim = simulator(robot, [0.3, 0.4], constraints=[driven], dt=1e-3)
    for _ in range(300):
        sim.step()
        assert abs(sim.state.v[0] - driven.at(sim.state.t)[0]) < 1e-12
    motion = constrained_acceleration(robot, sim.state.q, sim.state.v, np.zeros(2), [driven], t=sim.state.t)
    tau = pin.rnea(robot.model, robot.model.createData(), sim.state.q, sim.state.v, motion.a)
    assert motion.multipliers("drive")[0] == pytest.approx(tau[0], rel=1e-11)
    assert abs(tau[1]) < 1e-12


def test_a_ball_on_a_rod_is_a_pendulum() -> None:
    """Its pull is the ball's weight along the rod and what turning takes; its length stays, and its energy."""
    robot, length = ball(), 0.8
    hook, n = np.array([0.1, -0.2, 2.0]), np.array([0.6, 0.0, -0.8])
    q = robot.configuration({}, [*(hook + length * n), 0, 0, 0, 1])
    v = np.array([0.8, 1.5, 0.6, 0.3, 0.2, 0.1])
    rod = PointDistance("rod", "ball", (0, 0, 0), point_b=hook, distance=length)
    motion = constrained_acceleration(robot, q, v, [], [rod])
    pull = robot.mass * (GRAVITY * 0.8 + v[:3] @ v[:3] / length)
    assert motion.multipliers("rod")[0] == pytest.approx(-pull, rel=1e-12)
    np.testing.assert_allclose(motion.wrench("rod", "ball"), [*(-pull * n), 0, 0, 0], rtol=1e-12, atol=1e-12)
    sim = simulator(robot, q, v, [rod])
    before = sim.mechanical_energy()
    sim.run(1.0)
    assert np.linalg.norm(sim.state.q[:3] - hook) == pytest.approx(length, abs=1e-10)
    assert abs(sim.integration_energy()) < 1e-4 * abs(before)
    with pytest.raises(InvalidValue, match="rod"):
        constrained_acceleration(robot, robot.configuration({}, [*hook, 0, 0, 0, 1]), v, [], [rod])


def test_gear_equals_a_single_joint_of_reflected_inertia() -> None:
    """Two joints coupled by a gear accelerate like one joint with inertia ``M11 + 2 r M12 + r^2 M22``."""
    robot, ratio = double_pendulum(), -0.6
    q, v = np.array([0.5, 0.5 * ratio]), np.array([1.1, 1.1 * ratio])
    gear = JointCoupling("gear", robot.joint_names[1], robot.joint_names[0], ratio)
    tau = np.array([0.7, -0.2])
    motion = constrained_acceleration(robot, q, v, tau, [gear])
    here = Dynamics.at(robot, q, v)
    gamma_map = np.array([1.0, ratio])
    reflected = gamma_map @ here.M @ gamma_map
    assert motion.a[0] == pytest.approx(gamma_map @ (tau - here.h) / reflected, rel=1e-12)
    assert motion.a[1] == pytest.approx(ratio * motion.a[0], rel=1e-12)


def test_weld_removes_all_relative_motion() -> None:
    """A link that is welded to the world comes to rest in one impact, and stays where it is under gravity."""
    rng = np.random.default_rng(3)
    robot = random_tree(rng, 4, floating_base=True)
    q, v = random_state(robot, rng)
    held = next(name for name in robot.links if name not in ("universe", "world"))
    weld = FrameAnchor("weld", held, pin.SE3.Identity())
    impact = resolve_impact(robot, q, v, [weld])
    here = Dynamics.at(robot, q, impact.v_plus)
    assert np.abs(weld.bind(robot, q).jacobian(here) @ impact.v_plus).max() < 1e-12
    assert impact.energy_lost > 0.0
    sim = simulator(robot, q, impact.v_plus, [weld])
    before = here.placement(robot.link_placement(held)[0])
    for _ in range(200):
        sim.step()
    after = Dynamics.at(robot, sim.state.q, sim.state.v).placement(robot.link_placement(held)[0])
    assert np.abs(pin.log6(before.actInv(after)).vector).max() < 2e-8


@pytest.mark.parametrize("axes", [None, np.eye(6)[[0, 2, 3, 4]] + 0.3])
def test_wrench_of_a_weld_is_the_multipliers_power(axes: np.ndarray | None) -> None:
    """The wrench on both links does the same power as the multipliers: J^T lam = J_a^T w - J_b^T w at any distance."""
    pin.seed(8)
    rng = np.random.default_rng(8)
    robot = random_tree(rng, 5, floating_base=True)
    q, v = random_state(robot, rng)
    links = [name for name in robot.links if name not in ("universe", "world")]
    weld = FrameAnchor("weld", links[-1], pin.SE3.Random(), links[0], pin.SE3.Random(), axes)
    bound, here = weld.bind(robot, q), Dynamics.at(robot, q, v)
    lam = rng.normal(size=bound.dim)
    joint_a, joint_b = (robot.link_placement(link)[0] for link in (links[-1], links[0]))
    origin = (here.placement(joint_a) * robot.link_placement(links[-1])[1] * weld.placement_a).translation
    power = 0.0
    for name, index in ((links[-1], joint_a), (links[0], joint_b)):
        wrench, body = bound.wrench(here, lam, name), here.body(index)
        power += wrench[:3] @ velocity_at(body, origin) + wrench[3:] @ body.angular_velocity
    assert power == pytest.approx(lam @ (bound.jacobian(here) @ v), rel=1e-11)


class Unnamed(CustomConstraint):
    """Forgets to tell its base class what it is."""

    def __init__(self) -> None:
        """Do nothing."""


def test_subclass_that_says_neither_name_nor_rows_is_refused() -> None:
    """What is missing, and in which class; a simulation does not change."""
    robot = double_pendulum()
    sim = simulator(robot, np.zeros(2))
    with pytest.raises(InvalidValue, match=r"'Unnamed': got 'no name', allowed: .*super\(\).__init__\(name, dim\)"):
        sim.add(Unnamed())
    assert sim.constraints == ()
    assert not hasattr(Unnamed(), "mass")


@pytest.mark.parametrize(
    "bad",
    [
        lambda: JointCoupling("c", "a", "a", 1.0),
        lambda: JointCoupling("c", "a", "b", np.nan),
        lambda: JointVelocity("c", "a", "fast"),
        lambda: FrameAnchor("c", "a", np.ones((4, 4))),
        lambda: FrameAnchor("c", "a", np.zeros(7)),
        lambda: FrameAnchor("c", "a", np.eye(4), axes=np.zeros((1, 6))),
        lambda: FrameAnchor("c", "a", np.eye(4), axes=np.eye(3)),
        lambda: FrameAnchor("c", "a", np.eye(4), axes=[]),
        lambda: CustomConstraint("c", 0),
        lambda: CustomConstraint("c", 1, phi=lambda q, v, t: [0.0]),
        lambda: CustomConstraint("", 1),
        lambda: JointVelocity("c", "no such joint", 1.0).bind(double_pendulum(), np.zeros(2)),
        lambda: (
            CustomConstraint("c", 1, *[lambda q, v, t: [np.nan]] * 3)
            .bind(double_pendulum(), np.zeros(2))
            .phi(Dynamics.at(double_pendulum(), np.zeros(2), np.zeros(2)))
        ),
    ],
)
def test_bad_declarations_are_refused(bad) -> None:  # type: ignore[no-untyped-def]
    """What makes no sense is refused where it enters, with our own exception."""
    with pytest.raises(ConstrainedSimError):
        bad()


@pytest.mark.parametrize(
    "bad",
    [
        lambda: PointContact("c", "world", (0.0, 0.0, 0.0)),
        lambda: PointAnchor("c", "world", (0.0, 0.0, 0.0)),
        lambda: FrameAnchor("c", "world", np.eye(4)),
        lambda: PointDistance("c", "world", distance=1.0),
    ],
)
def test_nothing_is_between_the_world_and_itself(bad) -> None:  # type: ignore[no-untyped-def]
    """What could never act is refused, and the refusal says what has to be named in the world's place."""
    with pytest.raises(InvalidValue, match=r"of .* 'c': got .*world.*, allowed: a link of the robot"):
        bad()


HINGE = np.eye(6)[:5]


def crooked_door(floating: bool) -> Robot:
    """Return a body with its centre of mass off every axis, free or on a hinge about z; gravity along -y."""
    body = link("door", 2.0, (0.4, 0.1, -0.2), (0.3, 0.2, 0.4))
    post = ['<link name="post"/>', joint("turn", "continuous", "post", "door", (0, 0, 1))]
    return Robot.from_urdf(
        urdf(body, *([] if floating else post)), floating_base=floating, gravity=(0.0, -GRAVITY, 0.0)
    )


@pytest.mark.parametrize("angle", [0.3, 2.0, -3.1, 3.14159])
def test_five_axes_of_a_frame_are_a_hinge(angle: float) -> None:
    """Reactions by Newton and Euler, whatever the angle: ``F = m (a - g)``, ``M = dL/dt + r x F``."""
    robot, rate = crooked_door(True), 2.5
    q = np.concatenate([np.zeros(3), tilted(angle, 2)])
    v = np.array([0.0, 0.0, 0.0, 0.0, 0.0, rate])
    hinge = FrameAnchor("hinge", "door", np.eye(4), placement_b=np.eye(4), axes=HINGE)
    turned = pin.Quaternion(tilted(angle, 2)).matrix()
    arm, inertia = turned @ [0.4, 0.1, -0.2], turned @ np.diag([0.3, 0.2, 0.4]) @ turned.T
    gravity, z = np.array([0.0, -GRAVITY, 0.0]), np.array([0.0, 0.0, 1.0])
    about_z = inertia[2, 2] + 2.0 * (arm[0] ** 2 + arm[1] ** 2)
    spin = 2.0 * np.cross(arm, gravity)[2] / about_z
    force = 2.0 * (spin * np.cross(z, arm) + rate**2 * np.cross(z, np.cross(z, arm)) - gravity)
    moment = inertia @ z * spin + rate**2 * np.cross(z, inertia @ z) + np.cross(arm, force)
    for solver in every_solver([hinge]):
        motion = constrained_acceleration(robot, q, v, np.zeros(0), [hinge], solver)
        assert motion.rank == 5
        assert motion.a == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, spin], abs=1e-10)
        assert motion.wrench("hinge", "door") == pytest.approx(np.concatenate([force, moment]), rel=1e-9, abs=1e-9)


def test_hinge_of_a_frame_turns_without_end() -> None:
    """The same motion as on a revolute joint, over two turns."""
    free, hinged = crooked_door(True), crooked_door(False)
    hinge = FrameAnchor("hinge", "door", np.eye(4), placement_b=np.eye(4), axes=HINGE)
    first = simulator(free, free.neutral(), [0.0, 0.0, 0.0, 0.0, 0.0, 12.0], [hinge], stepper="event_driven", dt=0.02)
    other = simulator(hinged, hinged.neutral(), [12.0], stepper="event_driven", dt=0.02)
    first.run(1.2)
    other.run(1.2)
    turned = placement(free, first.state.q, "door").rotation
    assert turned == pytest.approx(placement(hinged, other.state.q, "door").rotation, abs=1e-9)
    assert first.state.v[5] == pytest.approx(other.state.v[0], abs=1e-9)
    stepped = simulator(free, free.neutral(), [0.0, 0.0, 0.0, 0.0, 0.0, 12.0], [hinge])
    stepped.run(1.2)
    assert placement(free, stepped.state.q, "door").rotation == pytest.approx(turned, abs=2e-3)
    assert stepped.largest_violation()[0] < 1e-9


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_rod_whose_ends_meet_is_refused(stepper):
    """The line between them has no direction: nothing goes on as if the rod were not there."""
    sim = Simulator(ball(), [PointDistance("rod", "ball", distance=1e-3)], stepper=stepper, position_tolerance=1.0)
    with pytest.raises(InvalidValue, match="distance of 'rod'"):
        sim.run(0.01)

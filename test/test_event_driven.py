"""The event-driven stepper against closed forms: instants of events, forces between them, jams, limit cycles."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    BLOCK_HALF,
    GRAVITY,
    METHODS,
    ball,
    block,
    chain,
    corners,
    double_pendulum,
    every_solver,
    joint,
    kinetic_energy,
    leg,
    link,
    mechanical_energy,
    point_of,
    relative,
    rod,
    simulator,
    tilted,
    urdf,
)
from scipy.integrate import solve_ivp
from scipy.linalg import null_space
from scipy.optimize import brentq

from constrained_sim import (
    Baumgarte,
    Collisions,
    Compliant,
    FrameAnchor,
    JointCoupling,
    JointLimit,
    Plane,
    PointAnchor,
    PointContact,
    Projection,
    Robot,
    Simulator,
    Sticking,
    WorldObject,
    assemble,
    constraint_system,
)
from constrained_sim.exceptions import InvalidValue, NotSupported
from constrained_sim.solvers import make_solver
from constrained_sim.steppers.event_driven.contact_modes import FrictionBlocks
from constrained_sim.steppers.event_driven.max_margin_forces import max_margin_forces

EVENTS = {"stepper": "event_driven"}
DATA = Path(__file__).parent / "data"


def test_taking_out_drift_leaves_the_way_of_a_free_body():
    """A box that has sunk in by 0.1 mm at a corner is turned and lifted, along the normal: it goes on horizontally."""
    q = np.concatenate([[0.0, 0.0, BLOCK_HALF[2]], tilted(0.3)])
    corner = PointContact("corner", "block", np.multiply(BLOCK_HALF, (1, 1, -1)))
    q[2] -= point_of(block(), q, "block", corner.point)[2]
    sim = simulator(block(), q, [3.0, 2.0, 0.0, 0.0, 0.0, 0.0], [corner], **EVENTS)
    here, stepper = sim._evaluation, sim._stepper
    sunk = stepper.evaluate(here.bound, 0.0, q - 1e-4 * np.eye(7)[2], here.v)
    there, _ = stepper.project(Projection(), sunk, make_solver("direct"), np.array([0]), np.array([2]))
    assert np.abs(there.contact.gaps).max() < 1e-9
    before, after = (pin.Quaternion(state.q[3:]).toRotationMatrix() @ state.v[:3] for state in (sunk, there))
    assert np.linalg.norm(there.q[3:] - q[3:]) > 1e-6
    assert after[:2] == pytest.approx(before[:2], abs=1e-13)


def planar(mass: float = 2.0, inertia: float = 1e-3, more: str = "") -> Robot:
    """Return a body that moves in the plane x, z and turns about y; link ``body``."""
    return Robot.from_urdf(
        urdf(
            '<link name="world_frame"/>',
            link("along", 1e-9, inertia=(1e-12,) * 3),
            joint("x", "prismatic", "world_frame", "along", (1, 0, 0), more=LIMIT + more),
            link("up", 1e-9, inertia=(1e-12,) * 3),
            joint("z", "prismatic", "along", "up", (0, 0, 1), more=LIMIT),
            link("body", mass, inertia=(inertia,) * 3),
            joint("turn", "continuous", "up", "body", (0, 1, 0)),
        )
    )


LIMIT = '<limit lower="-99" upper="99" effort="1e6" velocity="1e6"/>'


def spring_slider(stiffness: float, mass: float) -> Robot:
    """Return a mass on a horizontal spring that may also move along z; joints ``x`` and ``z``, link ``body``.

    The slide itself weighs 1e-13 kg.
    """
    return Robot.from_mjcf(
        f"""<mujoco><option gravity="0 0 {-GRAVITY}"/><worldbody><body name="slide">
        <joint name="x" type="slide" axis="1 0 0" stiffness="{stiffness}"/>
        <inertial pos="0 0 0" mass="1e-13" diaginertia="1 1 1"/>
        <body name="body"><joint name="z" type="slide" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="{mass}" diaginertia="1 1 1"/></body></body></worldbody></mujoco>"""
    )


# -- bounces


def test_instants_of_bounces() -> None:
    """Newton's restitution e: flights of 2 v e^k / g; they accumulate at T (1 + 2 e / (1 - e)) and end in contact."""
    e, height = 0.7, 1.0
    contact = PointContact("c", "ball", (0, 0, 0), radius=0.1, restitution=e)
    q = ball().neutral()
    q[2] = 0.1 + height
    sim = simulator(ball(), q, None, [contact], dt=0.05, **EVENTS)
    trajectory = sim.run(3.0)
    fall, speed = np.sqrt(2.0 * height / GRAVITY), np.sqrt(2.0 * GRAVITY * height)
    times = np.array([impact.t for impact in trajectory.impacts])
    expected = fall + np.cumsum([0.0, *(2.0 * speed * e**k / GRAVITY for k in range(1, len(times)))])
    assert len(times) > 40
    assert np.abs(times - expected).max() < 3e-10
    assert np.abs(times[:30] - expected[:30]).max() < 1e-11
    assert times[-1] == pytest.approx(fall * (1.0 + 2.0 * e / (1.0 - e)), abs=1e-6)
    assert trajectory.contact_forces["c"][-1] == pytest.approx([0.0, 0.0, 0.5 * GRAVITY], abs=1e-12)
    assert abs(trajectory.q[-1, 2] - 0.1) < 1e-11
    lost = [impact.energy_lost for impact in trajectory.impacts]
    assert lost[0] == pytest.approx(0.5 * 0.5 * speed**2 * (1.0 - e**2), rel=1e-12)
    assert min(lost) >= 0.0
    assert sum(lost) == pytest.approx(0.5 * GRAVITY * height, rel=1e-10)


def test_elastic_bounces_between_two_stops() -> None:
    """A slider without friction between two stops with e = 1 meets them at equal intervals, speed kept."""
    robot = Robot.from_urdf(
        urdf('<link name="base"/>', link("mass", 1.3), joint("x", "prismatic", "base", "mass", (1, 0, 0), more=LIMIT))
    )
    stop = JointLimit("stop", "x", -0.2, 0.5, restitution=1.0)
    sim = simulator(robot, [0.1], [0.9], [stop], dt=0.1, **EVENTS)
    times = np.array([impact.t for impact in sim.run(20.0).impacts])
    expected = 0.4 / 0.9 + 0.7 / 0.9 * np.arange(len(times))
    assert len(times) == 26
    assert np.abs(times - expected).max() < 1e-12
    assert abs(sim.state.v[0]) == pytest.approx(0.9, abs=1e-12)


def test_corners_that_touch_at_once_share_one_impact() -> None:
    """A block that falls flat: one impact, four equal impulses of m v / 4, then rest."""
    q = block().neutral()
    q[2] = 0.05 + 0.2
    sim = simulator(block(), q, None, corners(friction=0.5), dt=0.02, **EVENTS)
    trajectory = sim.run(0.4)
    (impact,) = trajectory.impacts
    assert impact.t == pytest.approx(np.sqrt(0.4 / GRAVITY), abs=1e-13)
    assert impact.energy_lost == pytest.approx(2.0 * GRAVITY * 0.2, rel=1e-12)
    for i in range(4):
        assert trajectory.contact_forces[f"corner{i}"][-1] == pytest.approx([0, 0, 0.5 * GRAVITY], abs=1e-12)


# -- friction


@pytest.mark.parametrize("friction", [0.5, 0.3])
def test_block_on_a_slope(friction: float) -> None:
    """20 degrees: at 0.5 it does not move at all; at 0.3 it slides at g (sin - c cos) t."""
    angle = np.radians(20.0)
    normal = np.array([-np.sin(angle), 0.0, np.cos(angle)])
    q = np.concatenate([0.05 * normal, tilted(-angle)])
    sim = simulator(block(), q, None, corners(friction=friction, surface=Plane(normal)), dt=0.05, **EVENTS)
    trajectory = sim.run(1.0)
    moved = np.linalg.norm(sim.state.q[:3] - q[:3])
    total = sum(force[-1] for force in trajectory.contact_forces.values())
    if friction == 0.5:
        assert moved < 1e-13
        assert total == pytest.approx([0.0, 0.0, 2.0 * GRAVITY], abs=1e-12)
    else:
        rate = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
        assert np.linalg.norm(sim.state.v[:3]) == pytest.approx(rate, rel=1e-12)
        assert moved == pytest.approx(0.5 * rate, rel=1e-12)
        assert total @ normal == pytest.approx(2.0 * GRAVITY * np.cos(angle), rel=1e-12)


def test_billiard_ball() -> None:
    """A ball pushed without spin slides for 2 v / (7 c g) and then rolls at 5/7 v, for good."""
    v0, friction = 2.0, 0.3
    contact = PointContact("c", "ball", (0, 0, 0), radius=0.1, friction=friction)
    q = ball().neutral()
    q[2] = 0.1
    sim = simulator(ball(), q, [v0, 0, 0, 0, 0, 0], [contact], dt=0.01, **EVENTS)
    trajectory = sim.run(0.4)
    sliding = 2.0 * v0 / (7.0 * friction * GRAVITY)
    drag = -trajectory.contact_forces["c"][:, 0] * 0.01
    assert drag.sum() / (0.5 * friction * GRAVITY) == pytest.approx(sliding, rel=1e-10)
    rolling = trajectory.t > sliding + 0.01
    assert np.abs(trajectory.contact_forces["c"][rolling, :2]).max() < 1e-12
    turn = pin.Quaternion(sim.state.q[3:]).matrix()
    assert turn @ sim.state.v[:3] == pytest.approx([5.0 / 7.0 * v0, 0.0, 0.0], abs=1e-11)
    assert turn @ sim.state.v[3:] == pytest.approx([0.0, 5.0 / 7.0 * v0 / 0.1, 0.0], abs=1e-10)


def test_spin_turns_the_path_of_a_sliding_ball() -> None:
    """Side spin gives a constant direction of slip, so a parabola: the contact point's velocity keeps its direction."""
    v0, spin, friction, radius = 1.5, 40.0, 0.2, 0.1
    contact = PointContact("c", "ball", (0, 0, 0), radius=radius, friction=friction)
    q = ball(radius).neutral()
    q[2] = radius
    sim = simulator(ball(radius), q, [v0, 0, 0, spin, 0, 0], [contact], dt=0.01, **EVENTS)
    slip = np.array([v0, spin * radius])  # v + omega x (-r n)
    direction = slip / np.linalg.norm(slip)
    trajectory = sim.run(0.05)
    expected = -friction * 0.5 * GRAVITY * direction
    assert trajectory.contact_forces["c"][:, :2] == pytest.approx(np.tile(expected, (5, 1)), abs=1e-10)
    drift = 0.5 * 0.05**2 * expected / 0.5
    assert sim.state.q[:2] == pytest.approx(np.array([v0 * 0.05, 0.0]) + drift, abs=1e-12)


@pytest.mark.parametrize("by_contact", [True, False], ids=["contact", "joint"])
def test_oscillator_with_dry_friction(by_contact: bool) -> None:
    """Half cycles of pi / omega, each 2 c m g / k shorter in amplitude; it sticks where the spring cannot break away.

    The same whether the friction is that of a contact or of the joint: slip reversals and the final sticking.
    """
    stiffness, mass, friction, start = 80.0, 2.0, 0.25, 0.5
    grip = friction * mass * GRAVITY
    robot = spring_slider(stiffness, mass)
    if by_contact:
        constraints = [PointContact("c", "body", (0, 0, 0), friction=friction)]
    else:
        robot = robot.with_joints({"x": {"friction": grip}})
        constraints = [PointContact("c", "body", (0, 0, 0))]
    sim = simulator(robot, [start, 0.0], None, constraints, dt=0.01, **EVENTS)
    trajectory = sim.run(2.5)
    x, cycles = start, 0
    while stiffness * abs(x) > grip:
        x, cycles = -np.sign(x) * (abs(x) - 2.0 * grip / stiffness), cycles + 1
    half = np.pi / np.sqrt(stiffness / mass)
    assert cycles == 4
    assert sim.state.q[0] == pytest.approx(x, abs=1e-11)
    assert np.abs(trajectory.v[trajectory.t > cycles * half + 0.01, 0]).max() < 1e-12
    for k in range(1, cycles):  # the turning points lie on their instants
        near = np.searchsorted(trajectory.t, k * half)
        reach = start - 2.0 * k * grip / stiffness
        amplitude = reach - grip / stiffness
        phase = (trajectory.t[near] - k * half) * np.pi / half
        expected = (-1) ** k * (grip / stiffness + amplitude * np.cos(phase))
        assert trajectory.q[near, 0] == pytest.approx(expected, abs=1e-10)
    path = sum(2.0 * (start - (2 * k + 1) * grip / stiffness) for k in range(cycles))
    work = sim.energy.contacts if by_contact else sim.energy.damping
    assert work == pytest.approx(-grip * path, rel=1e-10)


def test_sticking_contact_breaks_away_exactly_at_its_cone() -> None:
    """On a slope that the pull of a spring adds to, ``k x`` grows with a sinking anchor until it reaches c m g."""
    stiffness, mass, friction, speed = 50.0, 1.5, 0.4, 0.3
    robot = spring_slider(stiffness, mass)
    belt = Plane((0.0, 0.0, 1.0))
    contact = PointContact("c", "body", (0, 0, 0), friction=friction, surface=belt)
    sim = simulator(robot, [0.0, 0.0], None, [contact], dt=1e-3, **EVENTS)
    breakaway = friction * mass * GRAVITY
    broke = None
    for step in range(400):
        ramp = speed * stiffness * step * 1e-3  # efforts are constant within a step
        sim.step([ramp, 0.0])
        if broke is None and abs(sim.state.v[0]) > 1e-9:
            broke = step
    assert broke == int(np.floor(breakaway / (speed * stiffness * 1e-3))) + 1


def test_law_sticking_holds_until_it_would_pull() -> None:
    """A contact with the law 'sticking' has no cone; it lets go where the normal force vanishes."""
    robot = spring_slider(100.0, 1.0)
    contact = PointContact("c", "body", (0, 0, 0), law=Sticking())
    sim = simulator(robot, [0.3, 0.0], None, [contact], dt=0.01, **EVENTS)
    trajectory = sim.run(0.1)
    assert trajectory.contact_forces["c"][-1] == pytest.approx([30.0, 0.0, GRAVITY], abs=1e-11)
    sim.step([0.0, 2.0 * GRAVITY])
    assert sim.state.v == pytest.approx([-30.0 * np.sinc(10.0 * 0.01 / np.pi) * 0.01, 0.01 * GRAVITY], abs=1e-12)


# -- lift-off


def test_lift_off_where_the_normal_force_vanishes() -> None:
    """Two masses on a spring, the lower on the ground: it leaves where m1 a1 = -(m1 + m2) g, at a known phase."""
    upper, lower, stiffness = 1.2, 0.8, 300.0
    robot = Robot.from_mjcf(
        f"""<mujoco><option gravity="0 0 {-GRAVITY}"/><worldbody><body name="foot">
        <joint name="foot" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="{lower}" diaginertia="1 1 1"/>
        <body name="top"><joint name="spring" type="slide" axis="0 0 1" stiffness="{stiffness}"/>
        <inertial pos="0 0 0" mass="{upper}" diaginertia="1 1 1"/></body></body></worldbody></mujoco>"""
    )
    rest, omega = -upper * GRAVITY / stiffness, np.sqrt(stiffness / upper)
    pressed = 0.2
    sim = simulator(robot, [0.0, rest - pressed], None, [PointContact("c", "foot", (0, 0, 0))], dt=1e-3, **EVENTS)
    phase = np.arccos(-(upper + lower) * GRAVITY / (stiffness * pressed))
    instant = phase / omega
    trajectory = sim.run(np.ceil(instant * 1e3) * 1e-3)
    assert trajectory.contact_forces["c"][:-1, 2].min() > 0.0
    impulse = trajectory.contact_forces["c"][:, 2].sum() * 1e-3
    assert impulse == pytest.approx(
        (upper + lower) * GRAVITY * instant + upper * pressed * omega * np.sin(phase), abs=1e-12
    )
    flight, speed = trajectory.t[-1] - instant, pressed * omega * np.sin(phase)
    momentum = upper * speed - (upper + lower) * GRAVITY * flight
    v = sim.state.v
    assert upper * (v[0] + v[1]) + lower * v[0] == pytest.approx(momentum, abs=1e-11)


# -- smooth motion and loops


def test_energy_of_a_double_pendulum() -> None:
    """Passive for 5 s: energy kept to 1e-9 J (it is some 1e-12)."""
    sim = simulator(double_pendulum(), [1.5, 1.0], dt=0.02, **EVENTS)
    before = mechanical_energy(double_pendulum(), sim.state.q, sim.state.v)
    sim.run(5.0)
    assert abs(mechanical_energy(double_pendulum(), sim.state.q, sim.state.v) - before) < 1e-10
    assert abs(sim.energy.residual) < 1e-12


@pytest.mark.parametrize(
    ("name", "options"), [method for method in METHODS if method[0] not in ("gauss", "proximal")], ids=str
)
def test_loops_and_contacts_with_every_solver(name: str, options: dict[str, str]) -> None:
    """A closed chain whose middle falls onto the ground: the same motion and forces with every solver."""
    robot = chain((0.4, 0.5, 0.45))
    anchor = PointAnchor("loop", "tip", (0, 0, 0), normals=[[1, 0, 0], [0, 0, 1]])
    q = np.array([0.3, -0.9, -0.4])
    knee = PointContact("knee", "rod2", (0, 0, 0), friction=0.3, surface=Plane(offset=-0.86))
    constraints = [anchor, knee]
    results = []
    for chosen in (make_solver(name, **options), "null_space"):
        sim = simulator(robot, q, None, constraints, dt=5e-3, solver=chosen, **EVENTS)
        trajectory = sim.run(0.12)
        results.append((sim.state.q, sim.state.v, *trajectory.multipliers.values(), trajectory.impacts))
    *mine, impacts = results[0]
    *theirs, _ = results[1]
    assert impacts
    assert np.abs(point_of(robot, sim.state.q, "tip") - point_of(robot, q, "tip")).max() < 1e-10
    for a, b in zip(mine, theirs, strict=True):
        assert relative(a, b, 1.0) < 1e-8


def test_gauss_supports_what_has_no_friction() -> None:
    """All solvers that can do frictionless contacts agree on a coupled slider that rests on a limit."""
    robot = chain((0.4, 0.3))
    limit = JointLimit("stop", "joint0", -0.5, 2.0)
    coupling = JointCoupling("gear", "joint1", "joint0", 0.5)
    ends = []
    for solver in every_solver([limit, coupling]):
        sim = simulator(robot, [0.4, 0.2], None, [limit, coupling], dt=0.02, solver=solver, **EVENTS)
        trajectory = sim.run(0.4)
        ends.append(np.concatenate([sim.state.q, sim.state.v, trajectory.multipliers["gear"][-1]]))
    assert len(ends) >= 8
    assert max(np.abs(end - ends[0]).max() for end in ends) < 1e-8


# -- soft contact


def test_soft_contact_of_a_falling_ball() -> None:
    """Spring and damper: the rebound of a damped oscillator, until the force would pull."""
    mass, k, d, speed = 0.5, 4e3, 12.0, 1.0
    contact = PointContact("c", "ball", (0, 0, 0), radius=0.1, law=Compliant(stiffness=k, damping=d))
    robot = ball().neutral()
    robot[2] = 0.1
    weightless = Robot.from_urdf(urdf(link("ball", mass, inertia=[2e-3] * 3)), True, gravity=(0, 0, 0))
    sim = simulator(weightless, robot, [0, 0, -speed, 0, 0, 0], [contact], dt=0.01, **EVENTS)
    sim.run(0.1)
    zeta, omega = d / (2.0 * np.sqrt(k * mass)), np.sqrt(k / mass)
    damped = omega * np.sqrt(1.0 - zeta**2)
    instant = np.arctan2(2.0 * zeta * np.sqrt(1.0 - zeta**2), 2.0 * zeta**2 - 1.0) / damped  # force zero
    fade = np.exp(-zeta * omega * instant)
    rebound = -speed * fade * (np.cos(damped * instant) - zeta * omega / damped * np.sin(damped * instant))
    assert sim.state.v[2] == pytest.approx(rebound, abs=1e-9)
    assert sim.energy.contacts == pytest.approx(0.5 * mass * (rebound**2 - speed**2), abs=1e-9)


# -- jams


def painleve(angle: float) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Return a rod that leans by `angle` [rad] over its lower end, which slides on the ground ahead of it."""
    robot = rod(2.0)
    q = np.concatenate([[0.0, 0.0, np.cos(angle)], tilted(angle)])
    return robot, q, np.zeros(6)


def test_jammed_rod_is_an_impact_without_collision() -> None:
    """Painleve's rod, no solution at acceleration level: it jams; the impulse stops the slip, inside the cone.

    Uniform rod of half length l: ``G_nn = (1 + 3 sin^2) / m``, ``G_tn = 3 sin cos / m``; sliding against the lean
    with ``c > (1 + 3 sin^2) / (3 sin cos)`` no finite force keeps the end from sinking.
    """
    angle, friction = np.radians(25.0), 2.0
    robot, q, v = painleve(angle)
    sin, cos = np.sin(angle), np.cos(angle)
    assert friction > (1 + 3 * sin**2) / (3 * sin * cos)
    contact = PointContact("c", "rod", (0, 0, -1.0), friction=friction)
    outcomes = []
    for direction in (1.0, -1.0):
        turn = pin.Quaternion(q[3:]).matrix()
        v[:3] = turn.T @ [direction * 1.0, 0.0, 0.0]
        sim = simulator(robot, q, v, [contact], dt=1e-4, **EVENTS)
        outcomes.append((sim, sim.step()))
    jammed = [(sim, result) for sim, result in outcomes if any(i.without_collision for i in result.impacts)]
    assert len(jammed) == 1
    sim, result = jammed[0]
    impact = result.impacts[0]
    impulse = impact.multipliers("c")
    assert impulse[2] > 0.1
    assert np.hypot(*impulse[:2]) <= friction * impulse[2] * (1.0 + 1e-9)
    assert impact.energy_lost > 0.0
    assert impact.row_velocity_plus[0] == pytest.approx(0.0, abs=1e-6) or impulse[0] * impact.row_velocity_minus[0] < 0
    assert impact.row_velocity_plus[2] >= -1e-8
    moving = simulator(robot, q, impact.v_minus, [contact], dt=1e-6)
    for _ in range(5):
        moving.step()
    assert moving.state.v == pytest.approx(impact.v_plus, abs=1e-3)
    assert kinetic_energy(robot, sim.state.q, sim.state.v) < kinetic_energy(robot, q, impact.v_minus)


@pytest.mark.parametrize("angle", [68.0, 75.0])
def test_sliding_rod_runs_into_its_jam(angle: float) -> None:
    """Where ``1 + 3 sin (sin - c cos)`` vanishes the force grows beyond all bounds, and the slip ends at once.

    Genot and Brogliato, New results on Painleve paradoxes, 1999: a rod gets there only where the free acceleration of
    its end, ``l omega^2 cos - g``, vanishes too. Then an impulse r along the cone leaves the end on the ground, and it
    stops the slip: ``r (c G_tt - G_tn) = s`` with ``G_tt = (1 + 3 cos^2) / m``, ``G_tn = 3 sin cos / m``.
    """
    mass, friction, lean = 1.0, 2.0, np.radians(angle)
    robot = planar(mass, mass / 3.0)
    end = np.array([np.sin(lean), -np.cos(lean)])
    q = robot.configuration({"x": -end[0], "z": -end[1], "turn": -lean})
    v = np.array([8.0 - 2.5 * end[1], 2.5 * end[0], 2.5])
    contact = PointContact("end", "body", (0.0, 0.0, -1.0), friction=friction)
    coarse, sim = (simulator(robot, q, v, [contact], dt=dt, **EVENTS) for dt in (1e-2, 1e-3))
    (collapse,) = coarse.run(0.2).impacts
    assert 0.05 < collapse.t < 0.2
    while not (impacts := sim.step().impacts):
        pass
    (impact,) = impacts
    assert 0.05 < sim.state.t < 0.2 and not sim.run(0.2 - sim.state.t).impacts
    assert sim.state.v == pytest.approx(coarse.state.v, abs=1e-3)
    assert impact.without_collision
    cos, sin = impact.q[2], -impact.q[3]
    assert 1.0 + 3.0 * sin * (sin - friction * cos) == pytest.approx(0.0, abs=1e-8)
    assert impact.v_minus[2] ** 2 * cos == pytest.approx(GRAVITY, rel=3e-3)  # the force is 1e6 of the weight by then
    push, pull = impact.multipliers("end")[2], -impact.multipliers("end")[0]
    slip = impact.row_velocity_minus[0]
    assert pull == pytest.approx(friction * push, rel=1e-6)
    assert push == pytest.approx(slip / (friction * (1.0 + 3.0 * cos**2) - 3.0 * sin * cos) * mass, rel=1e-6)
    assert impact.row_velocity_plus == pytest.approx(np.zeros(3), abs=1e-6)
    assert impact.energy_lost == pytest.approx(0.5 * slip * pull, rel=1e-6)
    assert impact.wrench("end", "body")[[0, 2]] == pytest.approx([-pull, push])
    assert impact.wrench("end", "world")[[0, 2]] == pytest.approx([pull, -push])


@pytest.mark.parametrize("seed", [1, 3])
def test_cube_on_rough_ground_comes_to_rest(seed: int) -> None:
    """Rocking ends in contact, also where friction could jam: contacts that leave slower than rest are no way out."""
    cube = urdf(link("cube", 1.0, inertia=(0.00667,) * 3, shape='<box size="0.2 0.2 0.2"/>'))
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=4)
    sim = Simulator(
        Robot.from_urdf(cube, True), dt=5e-3, collisions=Collisions({"ground": Plane()}, friction=3.0), **EVENTS
    )
    sim.reset(
        np.concatenate([[0.0, 0.0, 0.5], turn / np.linalg.norm(turn)]),
        np.concatenate([rng.normal(size=3), 5.0 * rng.normal(size=3)]),
    )
    trajectory = sim.run(1.2)
    assert np.abs(sim.state.v).max() < 1e-6
    assert sum(force[-1, 2] for force in trajectory.contact_forces.values()) == pytest.approx(GRAVITY, rel=1e-6)


# -- gaits


@pytest.mark.parametrize("stepper", ["event_driven", "time_stepping"])
def test_rimless_wheel_reaches_its_limit_cycle(stepper: str) -> None:
    """After each impact ``omega^2 = eta^2 / (1 - eta^2) 4 m g l sin(alpha) sin(slope) / (I + m l^2)``.

    alpha is half the angle between spokes, ``eta = (I + m l^2 cos 2 alpha) / (I + m l^2)`` (McGeer, Passive dynamic
    walking, 1990, with the inertia of the hub). The trailing foot leaves without any impulse.
    """
    spokes, length, mass, inertia, slope = 8, 0.5, 2.0, 0.02, np.radians(6.0)
    half = np.pi / spokes
    normal = np.array([np.sin(slope), 0.0, np.cos(slope)])
    robot = planar(mass, inertia)
    feet = [
        PointContact(
            f"foot{i}",
            "body",
            (length * np.sin(angle), 0.0, -length * np.cos(angle)),
            friction=5.0,
            surface=Plane(normal),
        )
        for i, angle in enumerate(2.0 * half * np.arange(spokes))
    ]
    around = inertia + mass * length**2
    eta = (inertia + mass * length**2 * np.cos(2.0 * half)) / around
    gain = 4.0 * mass * GRAVITY * length * np.sin(half) * np.sin(slope) / around
    cycle = np.sqrt(eta**2 / (1.0 - eta**2) * gain)
    # Standing on foot 0 along the normal's direction; turning down the slope about y.
    lean = slope
    foot = np.array([length * np.sin(lean), 0.0, length * np.cos(lean)])
    q = robot.configuration({"x": foot[0], "z": foot[2], "turn": lean})
    rate = 1.1 * cycle
    v = np.array([rate * foot[2], -rate * foot[0], rate])
    sim = simulator(robot, q, v, feet, dt=1e-2 if stepper == "event_driven" else 1e-3, stepper=stepper)
    trajectory = sim.run(9.0)
    after = np.array([impact.v_plus[2] for impact in trajectory.impacts if impact.energy_lost > 1e-3])
    assert len(after) > 15 and (np.diff(after) < 0.0).all()
    assert after[-1] == pytest.approx(cycle, rel=1e-5 if stepper == "event_driven" else 1e-3)
    assert abs(after[-1] - after[-2]) < (1e-5 if stepper == "event_driven" else 1e-3)


# -- refusals


def test_settings_that_do_not_fit_are_refused() -> None:
    """Only the adaptive integrator; a solver that cannot do friction says so."""
    with pytest.raises(InvalidValue, match="adaptive"):
        Simulator(ball(), stepper="event_driven", integrator="rk4")
    with pytest.raises(NotSupported, match="gauss"):
        Simulator(ball(), [PointContact("c", "ball", (0, 0, 0), friction=0.5)], stepper="event_driven", solver="gauss")


def test_plank_that_rocks_onto_its_ends_comes_to_rest() -> None:
    """Alternating impacts at the two ends of a tall plank shrink by a factor each, and end."""
    half, tilt = (0.05, 0.1, 0.15), 0.002
    robot = block(half)
    lowest = min(-side * half[0] * np.sin(tilt) - half[2] * np.cos(tilt) for side in (-1, 1))
    q = np.concatenate([[0, 0, 0.005 - lowest], tilted(tilt)])
    ends = [PointContact(f"end{side}", "block", (side * half[0], 0, -half[2])) for side in (-1, 1)]
    sim = simulator(robot, q, constraints=ends, **EVENTS)
    losses: list[float] = []
    for _ in range(120):
        result = sim.step()
        losses += [impact.energy_lost for impact in result.impacts]
    # Each end has G = (1 + x^2 / k^2) / m, both together (1 - x^2 / k^2) / m, with k^2 of the turn about y; an impact
    # at one end stops it and leaves the other the speed times their ratio.
    ratio = half[0] ** 2 / ((half[0] ** 2 + half[2] ** 2) / 3.0)
    shrinks = ((1.0 - ratio) / (1.0 + ratio)) ** 2
    assert 10 < len(losses) < 60
    assert np.array(losses[2:8]) / losses[1:7] == pytest.approx(shrinks, rel=1e-5)
    assert np.abs(sim.state.v).max() < 1e-12
    assert sim.state.q[2] == pytest.approx(half[2], abs=1e-9)


def test_contact_that_lies_deep_and_sinks_on_slowly_while_its_body_tips_away_from_it() -> None:
    """As one is found at the beginning of a step; tipping about the other, it comes up: ``phi + s t + a t^2 / 2``."""
    offset, far, height, mass, inertia, depth, speed = 3e-7, 0.15, 0.1, 2.0, 1e-3, 2e-9, 5e-8
    tilt, rate = depth / (far - offset), speed / (far - offset)
    ends = [PointContact(name, "body", (x, 0.0, -height)) for name, x in (("near", offset), ("far", far))]
    q = planar(mass, inertia).configuration({"z": offset * np.sin(tilt) + height * np.cos(tilt), "turn": tilt})
    sim = Simulator(planar(mass, inertia), ends, q=q, v=[-height * rate, offset * rate, rate], dt=1e-3, **EVENTS)
    result = sim.step()
    turns = -(offset - height * tilt) * mass * GRAVITY / inertia  # tilt and offset change by 1e-4 of these
    gap = -depth - speed * 1e-3 - 0.5 * (far - offset) * turns * 1e-3**2
    assert not result.impacts
    assert result.contact_forces["far"].gap == pytest.approx(gap, abs=1e-13)
    assert result.contact_forces["near"].gap == pytest.approx(0.0, abs=1e-15)
    assert result.contact_forces["near"].normal_force == pytest.approx(mass * GRAVITY, rel=1e-9)


@pytest.mark.parametrize("gap", [0.0, 1e-12, 3e-10, 5e-9])
def test_contact_that_is_about_to_touch_takes_part_in_an_impact(gap: float) -> None:
    """Of the other end of a plank, which that impact turns down: both ends stop at once, as with no gap."""
    half, height, mass, inertia, speed = 0.2, 0.1, 2.0, 1e-3, 1.0
    ends = [PointContact(name, "body", (x, 0.0, -height)) for name, x in (("lying", -half), ("falling", half))]
    robot = planar(mass, inertia)
    tilt, rate = gap / (2.0 * half), (speed - 3e-5) / (2.0 * half)
    z = half * np.sin(tilt) + height * np.cos(tilt)
    v = [0.0, -0.5 * (speed + 3e-5), rate]
    sim = Simulator(robot, ends, q=robot.configuration({"z": z, "turn": tilt}), v=v, dt=1e-3, **EVENTS)
    kinetic = sim.kinetic_energy()
    result = sim.step()
    first, *others = result.impacts
    assert first.energy_lost == pytest.approx(kinetic, rel=1e-12)
    assert np.abs(first.v_plus).max() < 1e-12
    assert sum(impact.energy_lost for impact in others) <= mass * GRAVITY * gap  # of the end that falls by the gap
    assert np.abs(sim.state.v).max() < 1e-12


@pytest.mark.parametrize("dt", [1e-3, 2e-2])
@pytest.mark.parametrize("depth", [1e-4, 1e-2, 0.1])
@pytest.mark.parametrize("rate", [10.0, 100.0])
def test_short_touch_within_a_step_is_not_missed(rate: float, depth: float, dt: float) -> None:
    """The tip of a rotor is below the ground for a fraction of a step: it hits where ``cos angle = 1 - depth / l``."""
    length = 0.5
    rotor = urdf('<link name="base"/>', link("rotor", 1.0, (0, 0, -0.25), (0.02, 0.02, 0.001)),
                 joint("axle", "continuous", "base", "rotor"))  # fmt: skip
    robot = Robot.from_urdf(rotor, gravity=(0.0, 0.0, 0.0))
    sim = Simulator(robot, stepper="event_driven", dt=dt)
    sim.reset(robot.configuration({"axle": np.pi}), [rate])
    sim.add(PointContact("tip", "rotor", (0.0, 0.0, -length), surface=Plane(offset=depth - length)))
    impacts = [impact for _ in range(round(2.0 * np.pi / rate / dt) + 1) for impact in sim.step().impacts]
    assert impacts[0].t == pytest.approx((np.pi - np.arccos(1.0 - depth / length)) / rate, abs=1e-9)


@pytest.mark.parametrize("friction", [0.42, 1.0])
def test_foot_sticks_as_long_as_any_forces_inside_the_cones_hold_it(friction: float) -> None:
    """Heel and toe share friction in any way: a pendulum above swings as on a fixed pivot."""
    moment, mass, arm = 0.01, 1.0, 0.3
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/><link name="along"/><link name="up"/>',
            joint("x", "prismatic", "base", "along", (1, 0, 0), more=LIMIT),
            joint("z", "prismatic", "along", "up", (0, 0, 1), more=LIMIT),
            joint("pitch", "continuous", "up", "foot"),
            link("foot", 2.0, (0, 0, 0.05), (0.02, 0.02, 0.02)),
            link("arm", mass, (0, 0, -arm), (moment,) * 3),
            joint("swing", "continuous", "foot", "arm", origin=(0, 0, 0.5)),
        )
    )
    feet = [PointContact(name, "foot", (x, 0, 0), friction=friction) for name, x in (("heel", -0.2), ("toe", 0.2))]
    sim = simulator(robot, robot.configuration({"swing": 1.5}), None, feet, stepper="event_driven", dt=1e-2)
    drive = mass * GRAVITY * arm / (moment + mass * arm**2)
    exact = solve_ivp(
        lambda t, y: [y[1], -drive * np.sin(y[0])], (0.0, 1.0), [1.5, 0.0], method="DOP853", rtol=1e-12, atol=1e-12
    ).y[0, -1]
    share = 0.0
    for _ in range(100):
        forces = [contact.force for contact in sim.step().contact_forces.values()]
        for force in forces:
            assert abs(force[0]) <= friction * force[2] * (1.0 + 1e-6)
        x, _, z = sum(forces)
        share = max(share, abs(x) / z)
    assert share == pytest.approx(0.399, abs=0.002)
    assert sim.state.q[robot.joint_models["x"].idx_q] == pytest.approx(0.0, abs=1e-12)
    place = robot.joint_models["swing"].idx_q
    assert np.arctan2(sim.state.q[place + 1], sim.state.q[place]) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("stepper", "dt", "tolerance"),
    [("event_driven", 0.2, 1e-10), ("event_driven", 0.01, 1e-10), ("time_stepping", 1e-3, 1e-5)],
)
@pytest.mark.parametrize("friction", [(0.4, 0.4, 0.4, 0.4), (0.1, 0.3, 0.5, 0.2)])
def test_box_that_slides_and_turns_on_four_corners(
    stepper: str, dt: float, tolerance: float, friction: tuple[float, ...]
) -> None:
    """The law leaves one of its normal forces open, and so its motion: they are those of equal springs, at any dt.

    Springs under a rigid body yield by ``c0 + c1 x + c2 y``, and so press.
    """
    half, mass, v0 = (0.2, 0.15, 0.1), 4.0, [1.2, 0.5, 0.0, 0.0, 0.0, 4.0]
    robot = block(half, mass)
    contacts = [replace(one, friction=mu) for one, mu in zip(corners(half), friction, strict=True)]
    sim = simulator(robot, [0, 0, half[2], 0, 0, 0, 1], v0, contacts, stepper=stepper, dt=dt)
    offsets, moment = np.array([contact.point for contact in contacts])[:, :2], mass * (half[0] ** 2 + half[1] ** 2) / 3

    def forces(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (4, 2) where the corners are from the middle, and (4, 3) forces."""
        arms = offsets @ pin.utils.rotate("z", y[2])[:2, :2].T
        slip = y[3:5] + y[5] * np.stack([-arms[:, 1], arms[:, 0]], axis=1)
        drag = -np.array(friction)[:, None] * slip / np.linalg.norm(slip, axis=1)[:, None]
        balance = np.stack([np.ones(4), arms[:, 1] + half[2] * drag[:, 1], arms[:, 0] + half[2] * drag[:, 0]])
        springs = np.hstack([np.ones((4, 1)), arms])
        normal = springs @ np.linalg.solve(balance @ springs, [mass * GRAVITY, 0, 0])
        return arms, normal[:, None] * np.hstack([drag, np.ones((4, 1))])

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        arms, pushes = forces(y)
        spin = arms[:, 0] @ pushes[:, 1] - arms[:, 1] @ pushes[:, 0]
        return np.array([*y[3:], *pushes[:, :2].sum(axis=0) / mass, spin / moment])

    times, begin = [0.2 - 0.5 * dt, 0.2], [0, 0, 0, *v0[:2], v0[5]]
    middle, y = solve_ivp(rate, (0.0, 0.2), begin, method="DOP853", t_eval=times, rtol=1e-13, atol=1e-13).y.T
    result = [sim.step() for _ in range(round(0.2 / dt))][-1]
    v = pin.utils.rotate("z", y[2])[:2, :2] @ sim.state.v[:2]
    assert 2.0 * np.arctan2(sim.state.q[5], sim.state.q[6]) == pytest.approx(y[2], abs=tolerance)
    assert [*sim.state.q[:2], *v, sim.state.v[5]] == pytest.approx([*y[:2], *y[3:]], abs=tolerance)
    if dt <= 1e-3:
        found = np.array([contact.force for contact in result.contact_forces.values()])
        assert found == pytest.approx(forces(middle)[1], abs=1e-4)


@pytest.mark.parametrize("stepper", ["event_driven", "time_stepping"])
@pytest.mark.parametrize(("slope", "speed"), [(0.0, 2.0), (0.4, 0.05), (0.45, 0.05), (0.55, 0.0), (0.55, 0.05)])
@pytest.mark.parametrize("friction", [(1.0, 0.0, 0.0, 1.0), (0.6, 0.4, 0.4, 0.6), (1.0, 1.0, 0.0, 0.0)])
def test_feet_of_unequal_friction_share_the_load_as_equal_springs_do(
    stepper: str, slope: float, speed: float, friction: tuple[float, ...]
) -> None:
    """At the height of the centre of mass each carries a quarter, so that all is as with the mean of the friction."""
    mean, duration = 0.5, 0.3
    feet = [
        PointContact(f"foot{i}", "block", (x, y, 0.0), friction=mu)
        for i, ((x, y), mu) in enumerate(
            zip([(0.2, 0.2), (0.2, -0.2), (-0.2, 0.2), (-0.2, -0.2)], friction, strict=True)
        )
    ]
    robot = block((0.2, 0.2, 0.1), 1.0, (slope * GRAVITY, 0.0, -GRAVITY))
    sim = simulator(robot, [0, 0, 0, 0, 0, 0, 1], [speed, 0, 0, 0, 0, 0], feet, stepper=stepper)
    result = sim.step()
    for contact in result.contact_forces.values():
        assert contact.force[2] == pytest.approx(0.25 * GRAVITY, rel=1e-9)
    sim.run(duration - sim.dt)
    expected = max(speed + (slope - mean) * GRAVITY * duration, 0.0)
    assert sim.state.v == pytest.approx([expected, 0, 0, 0, 0, 0], abs=1e-8)


def least_norm_at_rest(robot: Robot, q: np.ndarray, efforts: np.ndarray, constraints: list) -> np.ndarray:
    """Return the forces of least norm of all rows that balance a robot at rest, by the pseudoinverse."""
    at_rest = constraint_system(robot, q, np.zeros(robot.nv), constraints)
    return np.linalg.pinv(at_rest.J.T) @ (at_rest.h - efforts)


def test_a_closed_loop_that_rests_on_a_contact() -> None:
    """Its pins and the contact share the load by least norm of all forces, mean and end of a long step alike."""
    robot = Robot.from_urdf("package://constrained_sim/urdf/four_bar.urdf", actuated_joints=["crank"])
    pinned = PointAnchor("pin", "coupler_rod", (0, 0, 0.3), "rocker_rod", (0, 0, 0.25), normals=[(1, 0, 0), (0, 0, 1)])
    q = assemble(robot, robot.configuration({"crank": 0.0, "coupler": 1.05, "rocker": -0.08}), [pinned]).q
    height = point_of(robot, q, "coupler_rod", (0, 0, 0.15))[2] - 0.03
    rest = PointContact("rest", "coupler_rod", (0, 0, 0.15), surface=Plane((0, 0, 1), height), friction=0.6)
    sim = simulator(robot, q, None, [pinned, rest], dt=0.01, **EVENTS)
    sim.run(1.5, lambda t, q, v: [0.1])
    result = sim.step([0.1])
    expected = least_norm_at_rest(robot, sim.state.q, np.array([0.1, 0, 0]), [pinned, rest])
    assert result.lam == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("lean", [0.0, 0.4])
def test_a_weld_and_four_corners_bear_a_block_together(lean: float) -> None:
    """A weld takes all motion from the corners: what is left of it is rounding, and tells no forces."""
    normal = np.array([-np.sin(lean), 0.0, np.cos(lean)])
    q = np.concatenate([0.05 * normal, tilted(-lean)])
    constraints = [FrameAnchor("weld", "block"), *corners(friction=0.9, surface=Plane(normal))]
    sim = simulator(block(), q, None, constraints, dt=0.01, **EVENTS)
    for _ in range(3):
        lam = sim.step().lam
    assert lam == pytest.approx(least_norm_at_rest(sim.robot, q, np.zeros(6), constraints), abs=1e-9)


def test_a_gear_at_its_stop_with_dry_friction() -> None:
    """The stop, the gear and dry friction share an effort: the least of ``2 R^2 + f^2`` with ``2.5 R + f = tau``."""
    slide = '<limit lower="-9" upper="9" effort="100" velocity="99"/>'
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("a", 2.0),
            joint("driver", "prismatic", "base", "a", (1, 0, 0), more=slide + '<dynamics friction="2"/>'),
            link("b", 0.7),
            joint("driven", "prismatic", "base", "b", (1, 0, 0), more=slide),
        ),
        actuated_joints=["driver"],
    )
    gear, stop = JointCoupling("gear", "driven", "driver", 2.5), JointLimit("stop", "driven", upper=0.5)
    q = robot.configuration({"driver": 0.2, "driven": 0.5})
    sim = simulator(robot, q, None, [gear, stop], dt=0.01, **EVENTS)
    result = [sim.step([7.0]) for _ in range(3)][-1]
    share = 7.0 * 1.25 / (1.0 + 2.5 * 1.25)
    assert np.abs(result.multipliers("stop")).max() == pytest.approx(share, rel=1e-12)
    assert np.abs(result.multipliers("gear")) == pytest.approx([share], rel=1e-12)
    assert np.abs(result.dry_friction).max() == pytest.approx(7.0 - 2.5 * share, rel=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 1e5])
def test_a_light_box_slides_on_a_heavy_one(ratio: float) -> None:
    """``x = v t - mu g t^2 / 2``; what lies below carries both, and the ground holds it against that friction."""
    friction, speed, duration = 0.5, 1.0, 5e-3
    upper = Robot.from_urdf(urdf(link("box", 1.0, shape='<box size="0.2 0.2 0.2"/>')), floating_base=True)
    lower = WorldObject.box("lower", (0.4, 0.4, 0.2), ratio, friction, (0, 0, 0.1, 0, 0, 0, 1))
    robot = upper.with_objects([lower])
    v = np.zeros(robot.nv)
    v[0] = speed
    q = robot.neutral()
    q[2] = 0.3
    sim = Simulator(robot, dt=1e-3, collisions=Collisions({"ground": Plane()}, friction=friction), q=q, v=v, **EVENTS)
    while sim.state.t < duration - 1e-9:
        result = sim.step()
        above = [contact.force for contact in result.contact_forces.values() if contact.link == "box"]
        below = [contact.force for contact in result.contact_forces.values() if contact.link != "box"]
        assert np.sum(above, axis=0) == pytest.approx([-friction * GRAVITY, 0.0, GRAVITY], abs=1e-9)
        carried = (1.0 + ratio) * GRAVITY
        assert np.sum(below, axis=0) == pytest.approx([-friction * GRAVITY, 0.0, carried], abs=1e-12 * carried + 1e-9)
    assert sim.state.q[0] == pytest.approx(speed * duration - 0.5 * friction * GRAVITY * duration**2, abs=1e-14)
    assert np.abs(sim.state.v[6:]).max() < 1e-12


@pytest.mark.parametrize("held", [0, 2])
def test_forces_inside_their_cones(held: int) -> None:
    """Three feet and a stop: the same effect, margins not less, and above zero where forces of least norm have none.

    The effect is that on the motions which so many bilateral rows leave.
    """
    rng = np.random.default_rng(4)
    for _ in range(20):
        places, friction = rng.normal(size=(3, 3)), rng.uniform(0.3, 1.0, 3)
        J = np.vstack([np.hstack([np.eye(3), pin.skew(place).T]) for place in places] + [rng.normal(size=(1, 6))])
        inside = np.concatenate([rng.normal(size=(3, 3)).ravel(), [1.0]])
        inside[2:9:3] = 2.0 * np.hypot(inside[0:9:3], inside[1:9:3]) / friction
        bilateral = rng.normal(size=(held, 6))
        felt = J @ (null_space(bilateral) if held else np.eye(6))
        rest = np.linalg.lstsq(felt.T, felt.T @ inside)[0]  # of least norm, wherever that is
        contacts = np.arange(3)
        rows = 3 * contacts[:, None] + [0, 1]
        blocks = FrictionBlocks(contacts, 3 * contacts + 2, rows, np.ones(3, dtype=bool), friction)
        found = max_margin_forces((J, bilateral), rest, np.array([2, 5, 8, 9]), blocks, np.zeros(0))
        assert felt.T @ found == pytest.approx(felt.T @ inside, abs=1e-9)
        margins = found[2:9:3] - np.hypot(found[0:9:3], found[1:9:3]) / friction
        at_least = (inside[2:9:3] - np.hypot(inside[0:9:3], inside[1:9:3]) / friction).min()
        assert min(margins.min(), found[9]) > 0.8 * min(at_least, 1.0)


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize("time_constant", [0.02, 0.1])
def test_contact_that_begins_too_deep_comes_up_by_its_feedback(time_constant, dt):
    """With Baumgarte's feedback, ``phi'' + 2/eps phi' + phi/eps^2 = 0``, as long as weight presses on: no impact."""
    robot, depth = leg().with_joints({name: {"damping": 0.0} for name in ("slider", "hip", "knee")}), 5e-5
    q = np.array([0.3, 0.6, -1.2])
    q[0] -= point_of(robot, q, "foot")[2] + depth
    sim = Simulator(robot, stepper="event_driven", stabilization=Baumgarte(time_constant), dt=dt)
    sim.reset(q)
    sim.add(PointContact("foot", "foot", (0, 0, 0), friction=0.7))
    for step in range(round(0.05 / dt)):
        result = sim.step()
        past = (step + 1) * dt / time_constant
        assert not result.impacts
        assert result.contact_forces["foot"].normal_force > 0.0
        assert result.contact_forces["foot"].gap == pytest.approx(-depth * (1.0 + past) * np.exp(-past), abs=1e-12)


def test_contact_that_comes_up_too_slowly_by_itself_is_taken_over_by_its_feedback():
    """Free as long as ``s > -phi / eps``; from then on ``phi'' + 2/eps phi' + phi/eps^2 = 0``: ``e^(-t/eps)``."""
    lift = joint("z", "prismatic", "world_frame", "mass", (0, 0, 1), more=LIMIT)
    robot, eps = Robot.from_urdf(urdf('<link name="world_frame"/>', link("mass", 2.0), lift)), 0.02
    phi, s = -5e-5, 0.0045

    def excess(t):
        return s - GRAVITY * t + (phi + s * t - 0.5 * GRAVITY * t**2) / eps

    switch = brentq(excess, 0.0, 1e-3, xtol=1e-16)
    depth = phi + s * switch - 0.5 * GRAVITY * switch**2
    sim = Simulator(robot, stepper="event_driven", stabilization=Baumgarte(eps), dt=5e-3)
    sim.reset([phi], [s])
    sim.add(PointContact("point", "mass", (0, 0, 0)))
    for step in range(8):
        before, result = sim.state.v[0], sim.step()
        gap = depth * np.exp(-((step + 1) * 5e-3 - switch) / eps)
        assert not result.impacts
        assert sim.state.q[0] == pytest.approx(gap, abs=1e-12)
        assert sim.state.v[0] == pytest.approx(-gap / eps, abs=1e-10)
        push = 2.0 * (GRAVITY + (sim.state.v[0] - before) / 5e-3)
        assert result.contact_forces["point"].normal_force == pytest.approx(push, rel=1e-9)


def test_the_feedback_of_one_contact_is_its_own():
    """As if it were that of all."""
    left = []
    for feedback in (Baumgarte(0.05), Baumgarte(each={"c": 0.05}), Baumgarte()):
        sim = simulator(ball(), [0, 0, -1e-5, 0, 0, 0, 1], stepper="event_driven", dt=1e-2, stabilization=feedback)
        sim.add(PointContact("c", "ball", (0, 0, 0)))
        left.append(sim.run(0.2).q[-1, 2])
    assert left[0] == left[1]
    assert left[0] == pytest.approx(-1e-5 * (1.0 + 0.2 / 0.05) * np.exp(-0.2 / 0.05), rel=1e-6)
    assert left[2] == pytest.approx(-1e-5, rel=1e-9)


def test_feedback_on_speeds_alone_leaves_soft_contacts_as_they_are():
    """Their gaps are infinite to it: without a gain on them, that is no number."""
    law = Compliant(stiffness=1e4, damping=100.0)
    ends = []
    for feedback in (Baumgarte(kd=10.0), Baumgarte()):
        soft = PointContact("c", "ball", (0, 0, 0), friction=0.3, law=law)
        sim = simulator(ball(), [0, 0, 0, 0, 0, 0, 1], None, [soft], stepper="event_driven", stabilization=feedback)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ends.append(sim.run(0.05).q[-1])
    assert (ends[0] == ends[1]).all()


@pytest.mark.parametrize("dt", [1e-3, 13e-3])
def test_dry_friction_alone_stops_a_turntable(dt: float) -> None:
    """Nothing else acts, so that friction is all that there is: ``v^2 / 2 a`` to rest."""
    table, inertia, friction, speed = link("table", 1.0, inertia=(0.1, 0.1, 0.1)), 0.1, 0.5, 1.0
    robot = Robot.from_urdf(urdf('<link name="base"/>', table, joint("axle", "continuous", "base", "table", (0, 0, 1))))
    robot = robot.with_joints({"axle": {"friction": friction}})
    sim = Simulator(robot, v=[speed], dt=dt, **EVENTS)
    way = speed**2 * inertia / (2.0 * friction)
    sim.run(0.1)
    assert sim.state.v[0] == pytest.approx(speed - friction / inertia * sim.state.t, abs=1e-9)
    sim.run(0.2)
    cos, sin = sim.state.q
    assert np.arctan2(sin, cos) == pytest.approx(way, abs=1e-8)
    assert abs(sim.state.v[0]) < 1e-9


def jammed_in_a_loop():
    """Return a hinged link whose sticking foot jams, with a ball joint to a load that swings; its constraints; q and v.

    Found among random mechanisms: forces of least norm at the foot come to the edge of its cone again and again.
    """
    told, model = json.loads((DATA / "jammed_in_a_loop.json").read_text()), pin.Model()
    for name, entry in zip(("load", "arm", "jammed", "ball"), told["joints"], strict=True):
        kind, placement = getattr(pin, entry["type"])(), pin.XYZQUATToSE3(np.array(entry["placement"]))
        index, inertia = model.addJoint(entry["parent"], kind, placement, name), np.zeros((3, 3))
        inertia[np.triu_indices(3)] = entry["inertia"]
        inertia += np.triu(inertia, 1).T
        model.appendBodyToJoint(
            index, pin.Inertia(entry["mass"], np.array(entry["lever"]), inertia), pin.SE3.Identity()
        )
        model.addJointFrame(index, -1)
        model.addBodyFrame(f"{name}_link", index, pin.SE3.Identity(), -1)
    model.damping, model.armature = np.array(told["damping"]), np.array(told["armature"])
    foot = told["contact"]
    loop = PointAnchor("loop", "ball_link", told["loop"]["a"], "arm_link")
    rough = {"friction": foot["friction"], "torsional_friction": 0.01, "radius": 0.02}
    contact = PointContact("foot", "jammed_link", foot["point"], surface=Plane((0, 0, 1), foot["offset"]), **rough)
    robot = Robot(model, ("arm", "jammed"), floating_base=True)
    return robot, [loop, contact], np.array(told["q"]), np.array(told["v"])


@pytest.mark.parametrize("speed", [None, 0.5], ids=["alone", "beside what slides"])
@pytest.mark.parametrize("dt", [1e-3, 1e-4])
def test_a_jammed_foot_bears_a_load_that_swings(dt, speed):
    """Its forces are within their bounds, whichever of them they are, and the motion is that of small steps.

    A puck that slides and turns elsewhere changes nothing.
    """
    robot, constraints, q, v = jammed_in_a_loop()
    if speed is not None:
        height = constraints[1].surface.offset
        robot = robot.with_objects([WorldObject.sphere("puck", 0.1, 1.0, pose=(9.0, 0.0, height, 0.0, 0.0, 0.0, 1.0))])
        link = next(name for name in robot.links if name.startswith("puck/"))
        feet = [(0.1, 0.0, 0.0), (-0.1, 0.1, 0.0), (-0.1, -0.1, 0.0)]
        ground = Plane((0, 0, 1), height)
        constraints += [PointContact(f"p{k}", link, at, surface=ground, friction=0.3) for k, at in enumerate(feet)]
        q, v = np.append(q, robot.neutral()[-7:]), np.append(v, [speed, 0.0, 0.0, 0.0, 0.0, 1.0])
    sim = Simulator(robot, constraints, dt=dt, q=q, v=v, **EVENTS)
    small = Simulator(robot, constraints, dt=1e-5, q=q, v=v)
    for _ in range(3):
        foot = sim.step().contact_forces["foot"]
        assert np.hypot(*foot.force[:2]) <= constraints[1].friction * foot.force[2] * (1 + 1e-9)
        assert abs(foot.moment[2]) <= 0.01 * foot.force[2] * (1 + 1e-9)
    for _ in range(round(3 * dt / 1e-5)):
        small.step()
    assert np.abs(pin.difference(robot.model, sim.state.q, small.state.q)).max() < 1e-8
    assert np.abs(sim.state.v - small.state.v).max() < 1e-6

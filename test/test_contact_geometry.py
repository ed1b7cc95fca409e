"""Contacts between bodies that both move: axes, gaps and rows follow the bodies; against differences and detection."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest
import scipy
from hypothesis import assume, given
from mechanisms import GRAVITY, derivative, joint, link, property_test, seeds, tilted, urdf

from constrained_sim import JointVelocity, Plane, Robot, Simulator, Sphere
from constrained_sim.collision.detector import CollisionDetector, Collisions
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.features import ContactGeometry, NormalOwner
from constrained_sim.dynamics.dynamics import Dynamics

SHAPES = {
    "ball": '<sphere radius="0.1"/>',
    "capsule": '<capsule radius="0.06" length="0.5"/>',
    "cylinder": '<cylinder radius="0.08" length="0.6"/>',
    "box": '<box size="0.3 0.2 0.4"/>',
}
SMOOTH = [("ball", "ball"), ("capsule", "capsule"), ("ball", "capsule"), ("ball", "box"), ("ball", "cylinder")]
SWAPPED = [names[::-1] for names in SMOOTH[2:]]


def pair(first: str, second: str) -> tuple[Robot, CollisionDetector]:
    """Return two free bodies, each with one collision element, and what finds their contacts."""
    texts = ['<link name="base"/>']
    for name, shape in (("one", first), ("two", second)):
        texts += [link(name, 1.0, inertia=(0.1, 0.2, 0.25), shape=SHAPES[shape])]
        texts += [joint(f"free_{name}", "floating", "base", name)]
    robot = Robot.from_urdf(urdf(*texts))
    collisions = Collisions(margin=0.05, self_collision=True, rolling_friction=0.01, torsional_friction=0.01)
    return robot, collisions.bind(robot)


def near(detector: CollisionDetector, rng: np.random.Generator) -> np.ndarray:
    """Return a random configuration in which the bodies are up to the margin apart."""
    robot = detector.robot
    while True:
        q = pin.integrate(robot.model, robot.neutral(), np.concatenate([rng.normal(size=6), rng.normal(size=6)]))
        away = q[7:10] - q[:3]
        away /= np.linalg.norm(away)
        low, high = 0.0, 2.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            q[7:10] = q[:3] + middle * away
            gaps = detector.contacts(Dynamics.at(robot, q, np.zeros(robot.nv)))[1]
            low, high = (middle, high) if gaps.min(initial=np.inf) < 0.01 else (low, middle)
        q[7:10] = q[:3] + low * away
        if low > 0.05 and detector.contacts(Dynamics.at(robot, q, np.zeros(robot.nv)))[0]:
            return q


def moving(first: str, second: str, seed: int) -> tuple[CollisionDetector, np.ndarray, np.ndarray]:
    """Return the detector of two bodies, and a random state in which these are near."""
    (robot, detector), rng = pair(first, second), np.random.default_rng(seed)
    return detector, near(detector, rng), rng.normal(size=robot.nv)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(SHAPES, SHAPES)))
@given(seed=seeds)
@property_test(8)
def test_rows_and_their_rates_are_derivatives(first: str, second: str, seed: int) -> None:
    """Along any motion the gap changes by the normal row, and the row velocities by gamma where nothing accelerates.

    Likewise those in which the bodies turn relative to each other.
    """
    detector, q, v = moving(first, second, seed)
    robot = detector.robot
    table = ConstraintSet(robot, detector.contacts(Dynamics.at(robot, q, v))[0]).contacts

    def at(t: float) -> ContactGeometry:
        return table.rows(Dynamics.at(robot, pin.integrate(robot.model, q, t * v), v), v)

    def turning(t: float) -> np.ndarray:
        dynamics = Dynamics.at(robot, pin.integrate(robot.model, q, t * v), v)
        return table.resistance.rows(dynamics, at(t).axes) @ v

    dynamics = Dynamics.at(robot, q, v)
    here = table.rows(dynamics, v)
    rates = table.resistance.gamma(dynamics, here)
    assert derivative(turning, 1e-4) == pytest.approx(rates, rel=1e-7, abs=1e-6)
    assert derivative(lambda t: at(t).gaps, 1e-4) == pytest.approx(here.s_normal, abs=1e-9)
    assert derivative(lambda t: at(t).s, 1e-4) == pytest.approx(table.gamma(dynamics, here), rel=1e-7, abs=1e-6)
    assert here.axes @ here.axes.transpose(0, 2, 1) == pytest.approx(np.tile(np.eye(3), (len(here.axes), 1, 1)))


@pytest.mark.parametrize(("first", "second"), [*SMOOTH, *SWAPPED])
@given(seed=seeds)
@property_test(8)
def test_contacts_go_where_they_would_be_found(first: str, second: str, seed: int) -> None:
    """What moved with the bodies has the gap, the point and the normal that detection finds there."""
    detector, q, v = moving(first, second, seed)
    robot = detector.robot
    (contact,) = detector.contacts(Dynamics.at(robot, q, v))[0]
    moved = Dynamics.at(robot, pin.integrate(robot.model, q, 1e-3 * v), v)
    (found,) = detector.contacts(moved)[0]
    assume(found.normal_owner == contact.normal_owner)  # not over an edge of the box
    assume(np.array_equal(found.directions.any(axis=1), contact.directions.any(axis=1)))  # nor the end of a capsule
    old, new = (ConstraintSet(robot, [which]).contacts.rows(moved, v) for which in (contact, found))
    assert old.gaps == pytest.approx(new.gaps, abs=1e-7)
    assert old.points == pytest.approx(new.points, abs=1e-5)
    assert old.axes[0, 2] == pytest.approx(new.axes[0, 2], abs=1e-5)


def test_what_normals_follow() -> None:
    """Flat bodies carry the normal; between round ones it follows both."""
    expected = {
        ("ball", "ball"): {NormalOwner.BOTH},
        ("ball", "box"): {NormalOwner.SECOND, NormalOwner.BOTH},
        ("box", "ball"): {NormalOwner.FIRST, NormalOwner.BOTH},
        ("capsule", "capsule"): {NormalOwner.BOTH},
    }
    for names, kinds in expected.items():
        (robot, detector), rng = pair(*names), np.random.default_rng(5)
        found = set()
        for _ in range(12):
            q = near(detector, rng)
            found |= {
                contact.normal_owner for contact in detector.contacts(Dynamics.at(robot, q, np.zeros(robot.nv)))[0]
            }
        assert found == kinds


def test_coin_that_comes_to_lie_within_a_step() -> None:
    """Where no point of its rim is the lowest the gap is that of all of them."""
    coin = link("coin", 1.0, (0, 0, 0), (0.01, 0.01, 0.02), '<cylinder radius="0.2" length="0.02"/>')
    robot = Robot.from_urdf(urdf(coin), floating_base=True)
    detector = Collisions({"ground": Plane()}, margin=0.5).bind(robot)
    tilted_one = np.array([0, 0, 0.25, *tilted(1e-3)])
    contacts = detector.contacts(Dynamics.at(robot, tilted_one, np.zeros(6)))[0]
    lies = Dynamics.at(robot, np.array([0, 0, 0.25, 0, 0, 0, 1.0]), np.zeros(6))
    gaps = ConstraintSet(robot, contacts).contacts.rows(lies, np.zeros(6)).gaps
    assert gaps == pytest.approx(0.24, abs=1e-14)


# -- motions in closed form; forces of a step are means, so they differ from those in its middle by O(dt^2)

STEPPERS = {"time_stepping": 2e-5, "event_driven": 2e-6}
"""And the error of forces, relative to weights, at steps of 1 ms."""

STEPS = [("time_stepping", 1e-3), ("time_stepping", 5e-4), ("event_driven", 1e-3)]
"""Steps [s] at which errors are judged; event-driven ones integrate to a tolerance, whatever their length."""


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("friction", [0.0, 3.0])
def test_ball_on_a_ball(stepper: str, friction: float) -> None:
    """Down a fixed sphere: ``k (R + r) theta'' = g sin theta`` with k = 1 where it slides, 7/5 where it rolls."""
    radius, mass, large, angle = 0.05, 0.3, 0.5, 0.1
    ball = link("ball", mass, (0, 0, 0), (0.4 * mass * radius**2,) * 3, f'<sphere radius="{radius}"/>')
    collisions = Collisions({"globe": Sphere(large)}, friction=friction)
    sim = Simulator(Robot.from_urdf(urdf(ball), floating_base=True), stepper=stepper, dt=1e-3, collisions=collisions)
    k, reach = 1.4 if friction else 1.0, radius + large
    sim.reset([reach * np.sin(angle), 0.0, reach * np.cos(angle), 0.0, 0.0, 0.0, 1.0])
    times = 1e-3 * (np.arange(300) + 0.5)
    exact = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], GRAVITY / (k * reach) * np.sin(y[0])],
        (0.0, 0.3), [angle, 0.0], method="DOP853", t_eval=[*times, 0.3], rtol=1e-12, atol=1e-12,
    ).y  # fmt: skip
    for theta, rate in exact.T[:-1]:
        result = sim.step()
        (contact,) = result.contact_forces.values()
        up, down = np.array([[np.sin(theta), 0.0, np.cos(theta)], [np.cos(theta), 0.0, -np.sin(theta)]])
        push = mass * (GRAVITY * np.cos(theta) - rate**2 * reach)
        drag = mass * GRAVITY * np.sin(theta) * (1.0 - 1.0 / k)
        assert not result.impacts
        assert contact.force == pytest.approx(push * up - drag * down, abs=STEPPERS[stepper] * mass * GRAVITY)
    x, _, z = sim.state.q[:3]
    assert np.arctan2(x, z) == pytest.approx(exact[0, -1], abs=1e-6 if stepper == "time_stepping" else 1e-11)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("order", [1, -1])
def test_plank_rocks_on_a_cylinder(stepper: str, order: int) -> None:
    """A plank that rolls on a fixed cylinder, whichever comes first: its contact lies ``R theta`` from its middle."""
    large, half, mass = 0.3, 0.02, 2.0
    moment = mass * (1.0 + 4.0 * half**2) / 12.0
    lying = '<origin rpy="1.5707963267948966 0 0"/>'
    cylinder = link("log", 1.0, (0, 0, 0), (1.0, 1.0, 1.0), f'<cylinder radius="{large}" length="1"/>', lying)
    plank = link("plank", mass, (0, 0, 0), (moment,) * 3, f'<box size="1 0.4 {2 * half}"/>')
    bodies = [
        [cylinder, joint("hold", "continuous", "base", "log", (0, 1, 0))],
        [plank, joint("free", "floating", "base", "plank")],
    ]
    robot = Robot.from_urdf(urdf('<link name="base"/>', *(text for body in bodies[::order] for text in body)))
    collisions = Collisions(friction=2.0, self_collision=True)
    still = [JointVelocity("still", "hold", 0.0)]
    sim = Simulator(robot, still, stepper=stepper, dt=1e-3, collisions=collisions)

    def slope(t: float, y: np.ndarray) -> list[float]:
        theta, rate = y
        drive = half * np.sin(theta) - large * theta * np.cos(theta)
        inertia = half**2 + large**2 * theta**2 + moment / mass
        return [rate, (GRAVITY * drive - large**2 * theta * rate**2) / inertia]

    def middle(theta: float) -> np.ndarray:
        up, along = np.array([[np.sin(theta), 0, np.cos(theta)], [np.cos(theta), 0, -np.sin(theta)]])
        return (large + half) * up - large * theta * along

    q, place = robot.neutral(), robot.joint_models["free"].idx_q
    q[place : place + 7] = [*middle(0.05), 0.0, np.sin(0.025), 0.0, np.cos(0.025)]
    sim.reset(q)
    end = scipy.integrate.solve_ivp(slope, (0.0, 0.3), [0.05, 0.0], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    results = [sim.step() for _ in range(300)]
    assert not any(result.impacts for result in results)
    turn = sim.state.q[place + 3 : place + 7]
    assert 2.0 * np.arctan2(turn[1], turn[3]) == pytest.approx(
        end[0], abs=2e-7 if stepper == "time_stepping" else 1e-11
    )
    assert sim.state.q[place : place + 3] == pytest.approx(middle(end[0]), abs=1e-8)


@pytest.mark.parametrize("angle", [0.1, 0.6])
@pytest.mark.parametrize(("stepper", "dt"), STEPS)
def test_coin_whirls(stepper: str, angle: float, dt: float) -> None:
    """Its centre stays, its lowest point runs around with ``W^2 = 4 g / (R sin angle)``, the ground carries its weight.

    Euler's disc without losses: the angular velocity is along the line from the centre to the contact. Time stepping
    has errors of order ``dt^2``: the coin rolls by 0.02 rad in a step of 1 ms.
    """
    radius, mass = 0.2, 1.5
    across = 0.25 * mass * radius**2
    coin = link("coin", mass, (0, 0, 0), (across, across, 2.0 * across), f'<cylinder radius="{radius}" length="1e-9"/>')
    collisions = Collisions({"ground": Plane()}, friction=1.0)
    sim = Simulator(Robot.from_urdf(urdf(coin), floating_base=True), stepper=stepper, dt=dt, collisions=collisions)
    whirl = np.sqrt(4.0 * GRAVITY / (radius * np.sin(angle)))
    start = np.array([0.0, 0.0, radius * np.sin(angle) + 0.5e-9 * np.cos(angle)])
    sim.reset([*start, *tilted(angle)], [0.0, 0.0, 0.0, -whirl * np.sin(angle), 0.0, 0.0])
    energy = sim.mechanical_energy()
    for _ in range(round(0.2 / dt)):
        result = sim.step()
        assert not result.impacts
        force = sum(contact.force for contact in result.contact_forces.values())
        assert force == pytest.approx([0.0, 0.0, mass * GRAVITY], abs=1e-3 * mass * GRAVITY)
    tolerance = 1.1 * dt**2 if stepper == "time_stepping" else 1e-9
    assert sim.state.q[:3] == pytest.approx(start, abs=100.0 * tolerance)
    assert sim.mechanical_energy() == pytest.approx(energy, abs=tolerance)
    assert sim.state.q[3:7][[0, 1]] @ sim.state.q[3:7][[0, 1]] == pytest.approx(np.sin(0.5 * angle) ** 2, abs=1e-5)


@pytest.mark.parametrize(("stepper", "dt"), STEPS)
def test_box_on_a_plate_that_tilts(stepper: str, dt: float) -> None:
    """Held by friction on a plate that turns with W about its edge: the force is ``m (a - g)``, and nothing creeps."""
    mass, rate, arm, height = 2.0, 0.8, 0.4, 0.05
    plate = link("plate", 1.0, (0, 0, 0), (1.0, 1.0, 1.0), '<box size="2 1 0.1"/>', '<origin xyz="0 0 -0.05"/>')
    box = link("box", mass, (0, 0, 0), (0.01, 0.02, 0.03), f'<box size="0.3 0.2 {2 * height}"/>')
    hinges = [joint("hinge", "continuous", "base", "plate", (0, 1, 0)), joint("free", "floating", "base", "box")]
    robot = Robot.from_urdf(urdf('<link name="base"/>', plate, box, *hinges))
    collisions = Collisions(friction=0.9, self_collision=True)
    drive = [JointVelocity("drive", "hinge", -rate)]
    sim = Simulator(robot, drive, stepper=stepper, dt=dt, collisions=collisions)
    free, hinge = robot.joint_models["free"], robot.joint_models["hinge"]
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[free.idx_q : free.idx_q + 3] = [arm, 0.0, height]
    v[free.idx_v : free.idx_v + 6] = [-rate * height, 0.0, rate * arm, 0.0, -rate, 0.0]
    v[hinge.idx_v] = -rate
    sim.reset(q, v)
    for step in range(round(0.4 / dt)):
        result = sim.step()
        turn = pin.rpy.rpyToMatrix(0.0, -rate * (step + 0.5) * dt, 0.0)
        force = sum(contact.force for contact in result.contact_forces.values())
        wanted = mass * (-(rate**2) * turn @ [arm, 0.0, height] + [0.0, 0.0, GRAVITY])
        assert not result.impacts
        assert force == pytest.approx(wanted, abs=STEPPERS[stepper] * mass * GRAVITY)
    turn = pin.rpy.rpyToMatrix(0.0, -rate * 0.4, 0.0)
    tolerance = 1.7e-3 * dt**2 if stepper == "time_stepping" else 1e-9  # it moves along chords of its circle
    assert sim.state.q[free.idx_q : free.idx_q + 3] == pytest.approx(turn @ [arm, 0.0, height], abs=tolerance)

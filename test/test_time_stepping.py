"""One step after the other: contacts, impacts, momentum, energy, order of convergence."""

from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    BLOCK_HALF,
    GRAVITY,
    LIMIT,
    METHOD_NAMES,
    METHODS,
    SOLO_FEET,
    ball,
    block,
    chain,
    corners,
    double_pendulum,
    every_solver,
    inertia_of,
    joint,
    leg,
    leg_config,
    linear_momentum,
    link,
    mechanical_energy,
    placement,
    point_of,
    rod,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
    urdf,
)
from scipy.integrate import solve_ivp

from constrained_sim import (
    SOLVERS,
    CustomConstraint,
    JointLimit,
    Plane,
    PointAnchor,
    PointContact,
    Posture,
    Projection,
    Robot,
    Simulator,
    Sticking,
    Trajectory,
    Wrench,
    constrained_acceleration,
    resolve_impact,
)
from constrained_sim.contact_solvers import METHODS as CONTACT_METHODS
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.kinematics import velocity_at
from constrained_sim.exceptions import NonFiniteState, NotSupported
from constrained_sim.steppers.midpoint_friction import correct_midpoint_friction

pytestmark = pytest.mark.xdist_group("time stepping")  # they share a few drops

ORDERS = {"midpoint": 2, "semi_implicit_euler": 1}

every_integrator = pytest.mark.parametrize("integrator", ORDERS)


def hold(robot, q, stiffness=60.0, damping=1.0):
    """Return a PD law that holds the actuated joints of q (joints of one value each)."""
    joints = [robot.model.joints[robot.model.getJointId(name)] for name in robot.actuated_joints]
    positions = [joint.idx_q for joint in joints]
    target = np.array(q)[positions]
    return lambda t, q, v: stiffness * (target - q[positions]) - damping * v[robot.actuation]


def percussion(result, *names):
    """Return the sum of the impulses (3,) of all impacts of a step on level contacts."""
    return sum((impact.multipliers(name) for impact in result.impacts for name in names), np.zeros(3))


def pushes(result):
    """Return the sum of the mean contact forces (3,) of a step."""
    return sum((contact.force for contact in result.contact_forces.values()), np.zeros(3))


# -- the dropped leg


@pytest.fixture(scope="module")
def drop():
    """Return the shipped leg dropped onto its foot, posture held for 1.5 s: simulator, results, initial state."""
    config = leg_config()
    sim, law = config.simulator(), hold(config.robot, config.q)
    start = sim.state
    return sim, [sim.step(law(sim.state.t, sim.state.q, sim.state.v)) for _ in range(1500)], start


def landing(results):
    """Return the index of the step with the first impact."""
    return next(i for i, result in enumerate(results) if result.impacts)


def test_touchdown_at_the_time_of_free_fall(drop):
    """Posture held, the leg falls like a stone: t = sqrt(2 height / g), v = sqrt(2 g height)."""
    _, results, start = drop
    height = point_of(leg(), start.q, "foot")[2]
    impact = results[landing(results)].impacts[0]
    assert height == pytest.approx(0.32 - 0.32 * np.cos(0.6), abs=1e-12)
    assert impact.t == pytest.approx(np.sqrt(2.0 * height / GRAVITY), abs=1e-9)
    assert impact.v_minus[0] == pytest.approx(-np.sqrt(2.0 * GRAVITY * height), abs=1e-8)
    assert impact.points[0, 2] == pytest.approx(0.0, abs=1e-8)


def test_foot_stops_at_the_impact_and_stays(drop):
    """The foot's velocity is zero right after the impact, and no step afterwards lets it sink or move."""
    _, results, _ = drop
    first = landing(results)
    impact = results[first].impacts[0]
    assert np.abs(impact.row_velocity_plus).max() < 1e-14
    assert impact.multipliers("foot")[2] > 0.1
    for result in results[first:]:
        foot = result.contact_forces["foot"]
        assert foot.gap > -1e-7
        if foot.status != ContactStatus.OPEN:
            assert abs(foot.gap) < 1e-7
        if foot.status == ContactStatus.STICKING:
            assert np.abs(foot.slip).max() < 1e-12


def test_no_impact_without_approach_and_no_force_in_the_air(drop):
    """Percussions and forces need a foot on the ground, and never pull."""
    _, results, _ = drop
    first = landing(results)
    assert all(not result.contact_forces["foot"].force.any() for result in results[:first])
    assert all(result.contact_forces["foot"].normal_force >= 0.0 for result in results)
    for result in results:
        foot = result.contact_forces["foot"]
        assert np.hypot(*foot.force[:2]) <= 0.8 * foot.normal_force * (1.0 + 1e-10)


def test_contact_feeds_no_energy(drop):
    """Contact forces take energy or none, impacts take energy, and the audit of every step closes to rounding."""
    _, results, _ = drop
    for result in results:
        assert result.energy.contacts <= 1e-12
        assert result.energy.impact_losses >= 0.0
        assert abs(result.energy.residual) < 1e-13
        assert result.dynamics_residual < 1e-12
    assert sum(result.energy.impact_losses for result in results) > 0.1


def test_weight_is_carried_at_rest(drop):
    """Once at rest the foot carries m g, the joints hold still, and nothing slips."""
    _, results, _ = drop
    last = results[-1]
    assert np.abs(last.state.v).max() < 1e-6
    assert last.contact_forces["foot"].normal_force == pytest.approx(leg().mass * GRAVITY, rel=1e-6)
    assert last.contact_forces["foot"].status == ContactStatus.STICKING


def test_vertical_momentum_of_every_step_and_of_the_run(drop):
    """The slider's momentum changes by weight, contact force and percussion, and by nothing else."""
    _, results, start = drop
    weight, dt = leg().mass * GRAVITY, 1e-3
    q, v, total = start.q, start.v, 0.0
    initial = inertia_of(leg(), q)[0] @ v
    for result in results:
        before, after = inertia_of(leg(), q)[0] @ v, inertia_of(leg(), result.state.q)[0] @ result.state.v
        impulse = dt * (pushes(result)[2] - weight) + percussion(result, "foot")[2]
        assert abs(after - before - impulse) < 1e-12
        q, v, total = result.state.q, result.state.v, total + impulse
    assert abs(after - initial - total) < 1e-12


def test_mechanical_energy_is_accounted_for(drop):
    """What no cause accounts for is the integrator's error: small beside what the impact took."""
    sim, results, start = drop
    terms = sim.energy
    causes = terms.actuators + terms.damping + terms.contacts - terms.impact_losses + terms.projection
    change = mechanical_energy(leg(), sim.state.q, sim.state.v) - mechanical_energy(leg(), start.q, start.v)
    assert sim.integration_energy() == pytest.approx(change - causes, abs=1e-12)
    assert abs(sim.integration_energy()) < 1e-4
    assert terms.impact_losses == pytest.approx(sum(result.energy.impact_losses for result in results), rel=1e-12)


def test_momentum_with_joint_efforts_that_jump():
    """The balance does not depend on smooth efforts: random ones, kicked every step, hop and land included."""
    config, rng = leg_config(), np.random.default_rng(0)
    sim, dt = config.simulator(), 1e-3
    worst = impacts = 0
    for _ in range(600):
        before = inertia_of(leg(), sim.state.q)[0] @ sim.state.v
        result = sim.step(rng.uniform(-4, 4, 2))
        after = inertia_of(leg(), sim.state.q)[0] @ sim.state.v
        impacts += len(result.impacts)
        worst = max(
            worst, abs(after - before - dt * (pushes(result)[2] - leg().mass * GRAVITY) - percussion(result, "foot")[2])
        )
    assert impacts > 0
    assert worst < 1e-12


@pytest.mark.parametrize("seed", [65, 100])
def test_tumbling_leg_lands_in_any_posture(seed):
    """Thrown with its joints free, it strikes the ground where friction could jam: the way on is found."""
    config, rng = leg_config(), np.random.default_rng(seed)
    sim = simulator(config.robot, config.q, rng.normal(size=3) * [1, 5, 5], config.constraints)
    for _ in range(300):
        result = sim.step()
        assert result.energy.contacts <= 1e-12
    assert np.isfinite(sim.state.v).all()


# -- the dropped quadruped


@pytest.fixture(scope="module")
def solo_drop():
    """Return solo12 dropped askew from 5 cm, posture held for 0.6 s: results and initial state."""
    robot, q = solo12(), standing_solo(0.05, tilt=0.1)
    sim, law = simulator(robot, q, constraints=solo_contacts(friction=0.7)), hold(robot, q, 3.0, 0.1)
    start = sim.state
    return [sim.step(law(sim.state.t, sim.state.q, sim.state.v)) for _ in range(600)], start


def test_solo12_stays_on_the_ground(solo_drop):
    """Feet land one after the other, do not sink, and do not pull."""
    results, _ = solo_drop
    assert sum(len(result.impacts) for result in results) >= 3
    assert min(contact.gap for result in results for contact in result.contact_forces.values()) > -1e-7
    assert min(contact.normal_force for result in results for contact in result.contact_forces.values()) >= 0.0


def test_solo12_audit_closes(solo_drop):
    """Each step's energy terms sum up to rounding, and impacts only take."""
    results, _ = solo_drop
    assert max(abs(result.energy.residual) for result in results) < 1e-13
    assert min(result.energy.impact_losses for result in results) >= 0.0


def test_solo12_linear_momentum(solo_drop):
    """Momentum of every step and of the run: weight, contact forces and percussions, and nothing else."""
    results, start = solo_drop
    robot, dt = solo12(), 1e-3
    initial = before = linear_momentum(robot, start.q, start.v)
    total = np.zeros(3)
    for result in results:
        after = linear_momentum(robot, result.state.q, result.state.v)
        impulse = dt * (pushes(result) - [0, 0, robot.mass * GRAVITY]) + percussion(result, *SOLO_FEET)
        assert np.abs(after - before - impulse).max() < 1e-12
        before, total = after, total + impulse
    assert np.abs(before - initial - total).max() < 1e-12


@cache
def kicked_about(integrator, seed):
    """Return, for every step of a solo12 whose efforts jump every step, its result and what momentum lacks [N s]."""
    robot, rng, dt = solo12(), np.random.default_rng(seed), 1e-3
    v0, contacts = 0.3 * rng.normal(size=18), solo_contacts(friction=0.5, restitution=0.3)
    sim = simulator(robot, standing_solo(0.02, 0.2), v0, contacts, integrator=integrator)
    steps = []
    for _ in range(550):
        before = linear_momentum(robot, sim.state.q, sim.state.v)
        result = sim.step(rng.uniform(-2, 2, 12))
        impulse = dt * (pushes(result) - [0, 0, robot.mass * GRAVITY]) + percussion(result, *SOLO_FEET)
        steps.append((result, np.abs(linear_momentum(robot, sim.state.q, sim.state.v) - before - impulse).max()))
    return steps


@every_integrator
@pytest.mark.parametrize("seed", [3, 5])
def test_momentum_of_a_quadruped_that_is_kicked_about(integrator, seed):
    """Feet that bounce, slide and tumble: momentum still is what was reported."""
    steps = kicked_about(integrator, seed)
    assert sum(len(result.impacts) for result, _ in steps) > 10
    assert max(error for _, error in steps) < 1e-12


@every_integrator
@pytest.mark.parametrize("seed", [3, 5])
def test_energy_of_a_quadruped_that_is_kicked_about(integrator, seed):
    """Contacts and impacts take energy only, and every audit closes."""
    steps = kicked_about(integrator, seed)
    assert max(result.energy.contacts for result, _ in steps) <= 1e-12
    assert min(result.energy.impact_losses for result, _ in steps) >= 0.0
    assert max(abs(result.energy.residual) for result, _ in steps) < 1e-12


@pytest.mark.parametrize("seed", [3, 5])
def test_feet_of_a_quadruped_that_is_kicked_about_do_not_sink(seed):
    """However suddenly it is pushed down, a foot ends no step under ground."""
    gaps = [contact.gap for result, _ in kicked_about("midpoint", seed) for contact in result.contact_forces.values()]
    assert min(gaps) > -1e-7


def test_solo12_contacts_feed_no_energy(solo_drop):
    """Contact forces take energy or none, where feet stop slipping too."""
    results, _ = solo_drop
    assert max(result.energy.contacts for result in results) <= 1e-12


@every_integrator
def test_free_robot_keeps_its_momentum(integrator):
    """In free fall, tumbling, joints driven, linear momentum changes by the weight alone."""
    robot, rng = solo12(), np.random.default_rng(1)
    v0, tau = rng.normal(size=robot.nv), 0.3 * rng.normal(size=robot.nu)
    sim = simulator(robot, standing_solo(1.0), v0, integrator=integrator)
    before = linear_momentum(robot, sim.state.q, sim.state.v)
    for _ in range(100):
        sim.step(tau)
    change = linear_momentum(robot, sim.state.q, sim.state.v) - before
    assert np.abs(change - [0, 0, -0.1 * robot.mass * GRAVITY]).max() < 1e-12


# -- blocks on slopes


def slope(angle, friction):
    """Return a block at rest on a slope about y that falls towards +x: simulator."""
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    robot = block()
    q = robot.configuration({}, [*(BLOCK_HALF[2] * normal), *tilted(angle)])
    return simulator(robot, q, constraints=corners(surface=Plane(normal), friction=friction))


@pytest.mark.parametrize("degrees", [5.0, 15.0, 24.2])
def test_block_sticks_below_the_friction_angle(degrees):
    """No creep at all: friction 0.45 holds up to 24.2 degrees."""
    sim = slope(np.radians(degrees), 0.45)
    start = sim.state
    for _ in range(300):
        result = sim.step()
    assert np.abs(sim.state.v).max() < 1e-13
    assert np.abs(sim.state.q - start.q).max() < 1e-13
    assert {contact.status for contact in result.contact_forces.values()} == {ContactStatus.STICKING}
    assert pushes(result) == pytest.approx([0, 0, 2.0 * GRAVITY], abs=1e-10)


@pytest.mark.parametrize("degrees", [24.3, 35.0])
def test_block_slides_above_the_friction_angle(degrees):
    """v = g (sin - mu cos) t down the slope, flat on it, force on the cone."""
    angle, friction = np.radians(degrees), 0.45
    sim = slope(angle, friction)
    for _ in range(300):
        result = sim.step()
    speed = GRAVITY * (np.sin(angle) - friction * np.cos(angle)) * 0.3
    assert sim.state.v == pytest.approx([speed, 0, 0, 0, 0, 0], abs=1e-11)
    assert max(abs(contact.gap) for contact in result.contact_forces.values()) < 1e-9
    for contact in result.contact_forces.values():
        drag = contact.force - contact.normal_force * contact.normal
        assert np.linalg.norm(drag) == pytest.approx(friction * contact.normal_force, rel=1e-10)
    assert result.energy.contacts < 0.0


def test_sliding_block_stops_where_coulomb_says():
    """From 1 m/s on level ground with friction 0.5 a flat block goes v^2 / (2 mu g), then rests for good."""
    half = (0.3, 0.3, 0.02)
    robot = block(half)
    q = robot.configuration({}, [0, 0, 0.02, 0, 0, 0, 1])
    sim = simulator(robot, q, [1.0, 0, 0, 0, 0, 0], corners(half, friction=0.5))
    trajectory = sim.run(0.4)
    assert trajectory.q[-1, 0] == pytest.approx(1.0 / (2 * 0.5 * GRAVITY), abs=1e-6)
    assert trajectory.energy["contacts"].sum() == pytest.approx(-0.5 * 2.0, rel=1e-6)
    assert np.abs(sim.state.v).max() < 1e-13


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("speed", [3.0, 3.1, 3.2])
@pytest.mark.parametrize("dt", [4e-3, 1e-3])
def test_block_thrown_up_a_slope_slides_back(dt, speed, compiled):
    """Up with ``g (sin + mu cos)`` against it, back with ``g (sin - mu cos)``: it turns within a step, exactly then.

    Twice: a block on four points, and a slide with dry friction in its joint, whose axis is the slope.
    """
    angle, friction, half, t = np.deg2rad(35.0), 0.5, (0.1, 0.1, 0.05), 1.5
    along, normal = np.array([np.cos(angle), 0, np.sin(angle)]), np.array([-np.sin(angle), 0, np.cos(angle)])
    robot = block(half)
    q = robot.configuration({}, [*(half[2] * normal), 0, -np.sin(0.5 * angle), 0, np.cos(0.5 * angle)])
    contacts = [PointContact(c.name, c.link, c.point, Plane(tuple(normal)), friction=friction) for c in corners(half)]
    sims = [simulator(robot, q, [speed, 0, 0, 0, 0, 0], contacts, dt=dt)]
    slide = Robot.from_urdf(
        urdf('<link name="w"/>', link("m", 2.0), joint("slide", "prismatic", "w", "m", along, more=LIMIT))
    )
    slide = slide.with_joints({"slide": {"friction": friction * 2.0 * GRAVITY * np.cos(angle)}})
    sims.append(simulator(slide, [0.0], [speed], dt=dt))
    up, down = (GRAVITY * (np.sin(angle) + sign * friction * np.cos(angle)) for sign in (1.0, -1.0))
    turn = speed / up
    way, back = 0.5 * speed * turn - 0.5 * down * (t - turn) ** 2, -down * (t - turn)
    for sim, moved in zip(sims, ("block", "m"), strict=True):
        if not compiled:
            sim.apply(Wrench(moved), t)  # of zeros
        sim.run(t)
        assert along @ placement(sim.robot, sim.state.q, moved).translation == pytest.approx(way, abs=1e-11)
        assert sim.state.v[0] == pytest.approx(back, abs=1e-11)


def test_spinning_ball_begins_to_roll():
    """A ball set down with spin slips until it rolls: v = 2/7 r omega of a homogeneous sphere, then keeps it."""
    robot, radius = ball(), 0.1
    q = robot.configuration({}, [0, 0, radius, 0, 0, 0, 1])
    sim = simulator(
        robot, q, [0, 0, 0, 0, 10.0, 0], [PointContact("c", "ball", (0, 0, 0), friction=0.3, radius=radius)]
    )
    sim.run(0.5)
    velocity = placement(robot, sim.state.q, "ball").rotation @ sim.state.v[:3]
    assert velocity == pytest.approx([2 / 7 * radius * 10.0, 0, 0], abs=1e-6)
    assert sim.state.v[4] == pytest.approx(2 / 7 * 10.0, abs=1e-5)
    assert abs(sim.step().contact_forces["c"].slip[0]) < 1e-10


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("turn", [0.03, 0.15, 0.5])
def test_fast_ball_rolls_on(turn, compiled):
    """However far it turns in a step [rad]: x = v t, the force is the weight, nothing strikes, no energy is lost."""
    robot, radius, dt = ball(), 0.1, 1e-3
    spin, q = turn / dt, robot.configuration({}, [0, 0, radius, 0, 0, 0, 1])
    contact = PointContact("c", "ball", (0, 0, 0), friction=0.6, radius=radius)
    sim = simulator(robot, q, [spin * radius, 0, 0, 0, spin, 0], [contact], dt=dt)
    if not compiled:
        sim.apply(Wrench("ball"), 0.2)  # of zeros
    trajectory, weight = sim.run(0.2), robot.mass * GRAVITY
    assert not trajectory.impacts
    np.testing.assert_allclose(trajectory.contact_forces["c"], [[0.0, 0.0, weight]] * 200, atol=1e-9 * weight)
    np.testing.assert_allclose(trajectory.q[:, 0], spin * radius * trajectory.t, rtol=1e-12)
    energy = 0.5 * robot.mass * (spin * radius) ** 2
    for cause, work in trajectory.energy.items():
        assert np.abs(work).max() < 1e-12 * energy, cause


# -- order of convergence


def observed_order(errors, steps):
    """Return the slope of log error over log step."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@every_integrator
def test_order_on_free_motion(integrator):
    """A double pendulum from rest, against a reference of twelve digits."""
    robot, q0, duration = double_pendulum(), np.array([1.2, -0.7]), 0.4
    reference = solve_ivp(
        lambda t, y: np.concatenate([y[2:], constrained_acceleration(robot, y[:2], y[2:], np.zeros(2), []).a]),
        (0, duration),
        [*q0, 0, 0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    ).y[:, -1]
    steps, errors, of_smooth = (2e-3, 1e-3, 5e-4), [], []
    for dt in steps:
        for stepper, found in (("time_stepping", errors), ("smooth", of_smooth)):
            sim = Simulator(robot, q=q0, dt=dt, stepper=stepper, integrator=integrator)
            sim.run(duration)
            found.append(np.abs(np.concatenate([sim.state.q, sim.state.v]) - reference).max())
    assert observed_order(errors, steps) == pytest.approx(ORDERS[integrator], abs=0.1)
    assert errors[-1] < 1.5 * of_smooth[-1]


PINNED = (0.4, 0.55, 0.3)


def pinned_chain():
    """Return three unequal rods whose tip is pinned to the world, a four-bar linkage: robot, q, anchor."""
    robot, q = chain(PINNED), np.array([0.5, 1.1, -0.4])
    return robot, q, PointAnchor("pin", "tip", (0, 0, 0), normals=[(1, 0, 0), (0, 0, 1)])


@every_integrator
def test_order_on_a_pinned_chain(integrator):
    """A closed chain swings freely, against a reference at acceleration level."""
    robot, q0, anchor = pinned_chain()
    fixed = PointAnchor("pin", "tip", (0, 0, 0), point_b=point_of(robot, q0, "tip"), normals=anchor.normals)
    duration = 0.4

    def rate(t, y):
        return np.concatenate([y[3:], constrained_acceleration(robot, y[:3], y[3:], np.zeros(3), [fixed]).a])

    reference = solve_ivp(rate, (0, duration), [*q0, 0, 0, 0], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    steps, errors = (2e-3, 1e-3, 5e-4), []
    for dt in steps:
        sim = simulator(robot, q0, constraints=[fixed], dt=dt, integrator=integrator)
        sim.run(duration)
        errors.append(np.abs(np.concatenate([sim.state.q, sim.state.v]) - reference).max())
    assert observed_order(errors, steps) == pytest.approx(ORDERS[integrator], abs=0.1)
    assert errors[-1] < {1: 0.1, 2: 2.5e-4}[ORDERS[integrator]]


def test_energy_of_a_passive_double_pendulum():
    """Two seconds at 1 ms lose or gain less than 5 mJ of 10 J."""
    sim = simulator(double_pendulum(), [1.5, 0.5])
    before = sim.mechanical_energy()
    sim.run(2.0)
    assert abs(sim.mechanical_energy() - before) < 5e-3
    assert sim.integration_energy() == pytest.approx(sim.mechanical_energy() - before, abs=1e-12)


# -- stops


@pytest.mark.parametrize("dt", [1e-3, 2e-3, 1e-2, 2e-2])
def test_what_has_stopped_feels_its_weight_alone(dt):
    """In the step after a spinning block has stopped, contacts carry its weight, whatever it did before.

    The stop leaves what the contact methods leave of the impulses that stopped it.
    """
    sim = simulator(block(), [0, 0, BLOCK_HALF[2], 0, 0, 0, 1], [0.15, 0.1, 0, 0, 0, 3.0], corners(friction=2.0), dt=dt)
    while np.abs(sim.state.v).max() > 1e-9:
        sim.step()
    assert 0.0 < sim.state.t < 0.1
    weight = 2.0 * GRAVITY
    assert pushes(sim.step()) == pytest.approx([0, 0, weight], abs=1e-11 * weight)


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_what_a_brake_has_stopped_feels_nothing(dt):
    """Dry joint friction stops a double pendulum without gravity; afterwards it has nothing to do."""
    robot = Robot.from_urdf(double_pendulum().urdf, gravity=(0, 0, 0))
    robot = robot.with_joints({"joint0": {"friction": 40.0}, "joint1": {"friction": 15.0}})
    sim = simulator(robot, [0.3, 0.9], [1.2, -2.0], dt=dt)
    while np.abs(sim.state.v).max() > 1e-9:
        assert np.abs(sim.step().dry_friction).max() > 1.0
    assert 0.0 < sim.state.t < 0.1
    assert np.abs(sim.step().dry_friction).max() < 1e-12


def test_many_touchdowns_in_one_step():
    """Seven sliders reach their stops one after the other: none passes its stop, and those that are late lose no more.

    Five touchdowns are exact, at which one to five stops are touched; what is due after them stops at the instant of
    the fifth, above its stop.
    """
    parts = [link("world_frame", 1.0)]
    for i in range(7):
        parts += [
            link(f"slider{i}", 1.0),
            joint(f"s{i}", "prismatic", "world_frame", f"slider{i}", (0, 0, 1), more=LIMIT),
        ]
    robot = Robot.from_urdf(urdf(*parts))
    dt, speed = 1e-2, 1.0
    gaps = speed * dt * np.linspace(0.1, 0.9, 7)
    sim = simulator(robot, gaps, np.full(7, -speed), [JointLimit(f"l{i}", f"s{i}", 0.0, 1.0) for i in range(7)], dt=dt)
    energy = mechanical_energy(robot, sim.state.q, sim.state.v)
    result = sim.step()
    times = [impact.t for impact in result.impacts]
    fall = (np.sqrt(speed**2 + 2.0 * GRAVITY * gaps[:5]) - speed) / GRAVITY
    assert times == pytest.approx([*fall, fall[-1]], abs=1e-8)
    stopped = gaps[5:] - speed * fall[-1] - 0.5 * GRAVITY * fall[-1] ** 2
    rest = dt - fall[-1]
    assert sim.state.q == pytest.approx([*np.zeros(5), *(stopped - 0.5 * GRAVITY * rest**2)], abs=1e-8)
    assert sim.state.v == pytest.approx([*np.zeros(5), -GRAVITY * rest, -GRAVITY * rest], abs=1e-8)
    lost = sum(impact.energy_lost for impact in result.impacts)
    assert mechanical_energy(robot, sim.state.q, sim.state.v) == pytest.approx(
        energy - lost + result.energy.projection, abs=1e-12
    )
    for _ in range(20):
        sim.step()
        assert sim.state.q.min() > -1e-10
    assert np.abs(sim.state.v).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_corners_of_a_flat_landing(seed):
    """A box lands nearly flat, its corners one after the other within a step: as where each is an event."""
    robot = Robot.from_urdf(urdf(link("box", 2.0, inertia=(0.02, 0.03, 0.04))), floating_base=True)
    places = [(x, y, z) for x in (-0.2, 0.2) for y in (-0.15, 0.15) for z in (-0.1, 0.1)]
    contacts = [PointContact(f"corner{i}", "box", place, friction=0.6) for i, place in enumerate(places)]
    rng = np.random.default_rng(seed)
    q, v, tilt = robot.neutral(), np.zeros(6), 0.02
    q[2], q[3:6] = 0.3, 0.5 * tilt * rng.normal(size=3)
    q[3:7] /= np.linalg.norm(q[3:7])
    v[:3], v[3:] = 0.3 * rng.normal(size=3), tilt * rng.normal(size=3)
    ends, impacts = [], []
    for stepper in ("time_stepping", "event_driven"):
        sim = Simulator(robot, contacts, stepper, q=q, v=v)
        impacts.append([len(sim.step().impacts) for _ in range(350)])
        ends.append(sim.state)
    assert max(impacts[0]) > 3
    assert ends[0].q == pytest.approx(ends[1].q, abs=1e-5)
    assert np.abs(ends[0].v).max() < 1e-12


@pytest.mark.parametrize("slip", [1e-3, -1e-3])
def test_reversed_slip_comes_to_rest(slip):
    """Friction that would do positive work opposes the mean slip, unless that has just made the slip its opposite."""
    s, none, impulse = np.array([slip]), np.zeros(1), np.array([np.sign(slip)])
    for before, turns in ((slip, True), (0.5 * slip, True), (-0.99 * slip, True), (-slip, False)):
        offset = np.zeros(1)
        assert correct_midpoint_friction(s, none, s - before, (0, 1), no_rolling(), offset, impulse, 1e-7) == turns
        assert offset[0] == (slip if turns else 0.0)


# -- closed loops


@pytest.mark.parametrize(("solver", "options"), METHODS, ids=METHOD_NAMES)
def test_closed_loop_stays_closed(solver, options):
    """The pin of a swinging four-bar holds to the projection's tolerance, its row velocity to rounding."""
    robot, q, anchor = pinned_chain()
    sim = simulator(robot, q, constraints=[PointAnchor(anchor.name, anchor.link_a, anchor.point_a)])
    sim.set_solver(solver, **options)
    tip = point_of(robot, q, "tip")
    for _ in range(300):
        result = sim.step()
        violation, speed = sim.largest_violation()
        assert violation <= Projection().position_tolerance
        assert speed < 1e-12
        assert result.energy.constraints <= 1e-14
        assert abs(result.energy.residual) < 1e-13 * max(1.0, sim.kinetic_energy())
    assert np.abs(sim.state.v).max() > 0.3
    assert np.abs(point_of(robot, sim.state.q, "tip") - tip).max() <= 1.01 * Projection().position_tolerance


def test_work_of_a_closed_loop_vanishes():
    """The force of the pin does no work: from one held state to the next, ``lam (s + s') / 2`` is rounding."""
    robot, q, anchor = pinned_chain()
    for dt in (2e-3, 1e-3, 5e-4):
        sim = simulator(robot, q, constraints=[anchor], dt=dt)
        sim.run(0.2)
        assert abs(sim.energy.constraints) < 1e-13


@pytest.mark.parametrize("metric", ["mass", "euclidean"])
def test_closure_to_the_tolerance_that_was_asked_for(metric):
    """A finer projection holds the pin finer, in either metric, and the audit knows what it cost."""
    robot, q, anchor = pinned_chain()
    sim = simulator(robot, q, constraints=[anchor], stabilization=Projection(metric, position_tolerance=1e-13))
    for _ in range(200):
        sim.step()
        assert sim.largest_violation()[0] <= 1e-13
    assert 0.0 < abs(sim.energy.projection) < 1e-4


def test_closure_between_links():
    """A loop closed between two links of a falling tree: no drift, and momentum as if it were not there."""
    robot, q = solo12(), standing_solo(1.0)
    anchors = [
        PointAnchor("front", "FL_FOOT", (0, 0, 0), "FR_FOOT"),
        PointAnchor("hind", "HL_FOOT", (0, 0, 0), "HR_FOOT"),
    ]
    sim = simulator(robot, q, np.concatenate([np.zeros(3), [1.0, 2.0, 0.5], np.zeros(12)]))
    for anchor in anchors:
        sim.add(anchor)
    before = linear_momentum(robot, sim.state.q, sim.state.v)
    tau = 0.2 * np.random.default_rng(2).normal(size=12)
    for _ in range(200):
        sim.step(tau)
        assert sim.largest_violation()[0] <= Projection().position_tolerance
        assert sim.largest_violation()[1] < 1e-12
    change = linear_momentum(robot, sim.state.q, sim.state.v) - before
    assert np.abs(change - [0, 0, -0.2 * robot.mass * GRAVITY]).max() < 1e-3


def pendulum_pair(dt, duration=0.5, angle=1.0):
    """Return the rod's angle at the end: on a revolute joint, and free with its end anchored to the world."""
    jointed = simulator(chain((1.0,), (1.0,)), [angle], dt=dt)
    robot = rod()
    q = robot.configuration({}, [0, 0, 0, *tilted(angle)])
    q[:3] = -placement(robot, q, "rod").rotation @ [0, 0, 0.5]
    anchored = simulator(robot, q, constraints=[PointAnchor("pivot", "rod", (0, 0, 0.5))], dt=dt)
    jointed.run(duration)
    anchored.run(duration)
    return jointed.state, anchored.state


@pytest.mark.parametrize("dt", [4e-3, 2e-3, 1e-3])
def test_free_link_with_an_anchor_swings_like_a_revolute_joint(dt):
    """Two models of one pendulum, one motion, with errors of second order: the free body's centre moves along chords.

    The exact motion is ``a = -3 g / (2 l) sin angle`` of a homogeneous rod.
    """
    exact = solve_ivp(
        lambda t, y: (y[1], -1.5 * GRAVITY * np.sin(y[0])),
        (0.0, 0.5),
        [1.0, 0.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-12,
    )
    angle, speed = exact.y[:, -1]
    jointed, anchored = pendulum_pair(dt)
    assert np.abs(anchored.q[[3, 5]]).max() < 1e-12
    assert jointed.q[0] == pytest.approx(angle, abs=0.6 * dt**2)
    assert 2.0 * np.arctan2(anchored.q[4], anchored.q[6]) == pytest.approx(angle, abs=0.4 * dt**2)
    assert anchored.v[4] == pytest.approx(jointed.v[0], abs=0.6 * dt**2)
    assert anchored.v[4] == pytest.approx(speed, abs=5.5 * dt**2)


# -- free flight


@every_integrator
@pytest.mark.parametrize(("speed", "spin"), [(10.0, 100.0), (50.0, 300.0)])
def test_spinning_ball_flies_straight(integrator, speed, spin):
    """However fast it spins, a light small ball keeps spin, velocity and direction; turning axes are no force."""
    mass, radius = 0.05, 0.02
    inertia = [0.4 * mass * radius**2] * 3
    robot = Robot.from_urdf(urdf(link("ball", mass, inertia=inertia)), True, gravity=(0, 0, 0))
    sim = simulator(robot, robot.neutral(), [speed, 0, 0, 0, 0, spin], integrator=integrator)
    sim.run(1.0)
    assert sim.state.q[:3] == pytest.approx([speed, 0, 0], abs=1e-12 * speed)
    assert sim.state.v[3:] == pytest.approx([0, 0, spin], abs=1e-11 * spin)
    assert np.linalg.norm(sim.state.v[:3]) == pytest.approx(speed, rel=1e-12)


@pytest.mark.parametrize("turn", [0.1, 0.5])
def test_energy_of_a_free_top_stays(turn):
    """About its middle axis it tumbles for 30 s, by `turn` [rad] in each step; its energy swings and comes back.

    An axis (0.01, 1, 0.001) away from that: Dzhanibekov's. The scheme is its own reverse, and keeps the momentum.
    """
    inertia, dt = np.array([1.0, 2.0, 3.0]), 1e-3
    robot = Robot.from_urdf(urdf(link("top", 2.0, centre=(0.1, -0.2, 0.05), inertia=inertia)), True, (0, 0, 0))
    spin = turn / dt * np.array([0.01, 1.0, 0.001])
    v = [*-np.cross(spin, [0.1, -0.2, 0.05]), *spin]
    spins = simulator(robot, robot.neutral(), v, dt=dt).run(30.0).v[:, 3:]
    energy, start = 0.5 * spins**2 @ inertia, 0.5 * spin**2 @ inertia
    assert np.abs(spins[:, 1]).min() < 0.1 * spin[1]  # it does tumble
    assert energy.max() < (1.0 + 1e-7) * start
    assert energy.min() > (1.0 - 0.05 * turn**2) * start
    for second in energy.reshape(30, -1):
        assert second.max() > (1.0 - 1e-6 * turn**2) * start


@pytest.mark.parametrize(
    ("diameter", "spin", "dt"),
    [(1e-2, (10, 40, 1), 1e-3), (3e-3, (5, 20, 10), 1e-3), (1e-3, (2, 3, 5), 1e-3), (1e-3, (5, 10, 20), 5e-4)],
)
def test_a_thin_rod_keeps_its_spin(diameter, spin, dt):
    """A metre of round steel flies free: spin about its axis and energy stay, the rest turns about the axis.

    In its own axes at ``(1 - I_a / I_t) w_a`` (Euler's equations of a symmetric top). Moments of inertia are up to
    7e5 to one: what is wrong by that little across the axis is all of the spin.
    """
    across, along = 1.0 / 12.0 + diameter**2 / 16.0, diameter**2 / 8.0
    robot = Robot.from_urdf(urdf(link("rod", 1.0, inertia=(across, across, along))), True, (0, 0, 0))
    v = simulator(robot, robot.neutral(), [0, 0, 0, *spin], dt=dt).run(1.0).v
    energy = v[:, 3:] ** 2 @ np.array([across, across, along])
    assert energy == pytest.approx(np.full(len(v), energy[0]), rel=1e-11)
    assert v[:, 5] == pytest.approx(np.full(len(v), float(spin[2])), rel=1e-7)
    angle = -(1.0 - along / across) * spin[2]
    turned = pin.exp3(np.array([0.0, 0.0, angle])) @ np.array(spin)
    largest = dt * np.linalg.norm(spin[:2])
    assert v[-1, 3:5] == pytest.approx(turned[:2], abs=0.1 * largest**2 * np.linalg.norm(spin[:2]) * abs(angle))


def test_order_on_a_free_top():
    """Against a step 32 times shorter: turn, place and velocity of a lopsided body are of second order."""
    robot = Robot.from_urdf(urdf(link("top", 2.0, centre=(0.1, -0.2, 0.05), inertia=(1.0, 2.0, 3.0))), True)

    def end(dt):
        sim = simulator(robot, robot.neutral(), [0.3, -0.1, 0.2, 0.5, 20.0, 0.3], dt=dt)
        sim.run(0.2)
        return np.concatenate([sim.state.q, sim.state.v])

    steps = np.array([8e-3, 4e-3, 2e-3])
    exact = end(steps[-1] / 32)
    for errors in np.array([np.abs(end(dt) - exact) for dt in steps]).T:
        assert observed_order(errors, steps) == pytest.approx(2.0, abs=0.05)


@every_integrator
def test_free_bodies_of_one_robot_fly_along_their_parabolas(integrator):
    """Two lopsided bodies: their centres of mass fall freely, exactly; inertia is that of balls, and spin stays."""
    bodies = link("a", 1.0, centre=(0.02, 0.03, 0.01)) + link("b", 3.0, centre=(-0.04, 0.01, 0.02))
    joints = [f'<joint name="{b} free" type="floating"><parent link="w"/><child link="{b}"/></joint>' for b in "ab"]
    robot = Robot.from_urdf(f'<robot name="r"><link name="w"/>{bodies}{"".join(joints)}</robot>', actuated_joints=[])
    v = np.array([10.0, 0, 0, 3, 0, 100, 0, 5, 1, 0, 80, 0])
    sim, t = simulator(robot, robot.neutral(), v, integrator=integrator), 0.5
    begin = [centre_of(robot, name, sim.state) for name in "ab"]
    sim.run(t)
    for (at, moving), (there, still_moving) in zip(begin, (centre_of(robot, n, sim.state) for n in "ab"), strict=True):
        share = 0.5 if integrator == "midpoint" else 0.5 + 0.5 * sim.dt / t
        assert there == pytest.approx(at + t * moving - [0, 0, share * GRAVITY * t**2], abs=1e-11)
        assert still_moving == pytest.approx(moving - [0, 0, GRAVITY * t], abs=1e-11)
    assert sim.state.v[3:6] == pytest.approx(v[3:6], abs=1e-8)
    assert sim.state.v[9:] == pytest.approx(v[9:], abs=1e-8)


@pytest.mark.parametrize("tail", [pin.JointModelSpherical(), pin.JointModelSphericalZYX()], ids=["ball", "angles"])
def test_thrown_body_with_a_tail_on_a_turned_free_flyer(tail):
    """Its momentum is what gravity and a wrench account for, and its centre of mass moves with it, to rounding.

    Also where the frame of the free-flyer is turned in the world, and where joints turn their own axes.
    """
    pin.seed(2)
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.4, 1.1, -0.7), np.array([1.0, 2.0, 3.0]))
    model = pin.Model()
    base = model.addJoint(0, pin.JointModelFreeFlyer(), turned, "base")
    end = model.addJoint(base, tail, pin.SE3.Random(), "tail")
    for joint_index, name in ((base, "body"), (end, "tail_link")):
        model.appendBodyToJoint(joint_index, pin.Inertia.Random(), pin.SE3.Identity())
        model.addBodyFrame(name, joint_index, pin.SE3.Identity(), 0)
    robot, force, t = Robot(model, ()), np.array([5.0, -3.0, 8.0]), 0.2
    v = np.random.default_rng(2).normal(size=model.nv)
    sim, data = Simulator(robot), model.createData()
    for acting in (np.zeros(3), force):
        sim.reset(None, v)
        pin.centerOfMass(model, data, sim.state.q, v)
        begin, speed, mass = data.com[0].copy(), data.vcom[0].copy(), robot.mass
        if acting.any():
            sim.apply(Wrench("body", force=acting), t)
        sim.run(t)
        pin.centerOfMass(model, data, sim.state.q, sim.state.v)
        a = acting / mass - [0, 0, GRAVITY]
        assert np.abs(data.vcom[0] - (speed + t * a)).max() < 1e-12
        assert np.abs(data.com[0] - (begin + t * speed + 0.5 * t**2 * a)).max() < 1e-12


def centre_of(robot, name, state):
    """Return where the centre of mass of a link is [m], and its velocity [m/s]."""
    joint, _ = robot.link_placement(name)
    body = Dynamics.at(robot, state.q, state.v).body(joint)
    there = body.position + body.rotation @ robot.model.inertias[joint].lever
    return there, velocity_at(body, there)


# -- bouncing and landing


@every_integrator
def test_bouncing_ball(integrator):
    """Touchdowns at sqrt(2 h / g) and then every 2 e^k v / g; each bounce keeps e^2 of the energy."""
    restitution, height = 0.6, 0.5
    contact = PointContact("c", "ball", (0, 0, 0), restitution=restitution, radius=0.1)
    robot = ball()
    q = robot.configuration({}, [0, 0, 0.1 + height, 0, 0, 0, 1])
    impacts = simulator(robot, q, constraints=[contact], integrator=integrator).run(1.2).impacts
    t, speed = np.sqrt(2.0 * height / GRAVITY), np.sqrt(2.0 * height * GRAVITY)
    tolerance = {1: 2e-2, 2: 1e-7}[ORDERS[integrator]]
    assert len(impacts) >= 3
    for impact in impacts[:3]:
        assert impact.t == pytest.approx(t, abs=tolerance)
        assert -impact.v_minus[2] == pytest.approx(speed, abs=10.0 * tolerance)
        assert impact.v_plus[2] == pytest.approx(-restitution * impact.v_minus[2], rel=1e-13)
        assert impact.energy_lost == pytest.approx(0.25 * impact.v_minus[2] ** 2 * (1.0 - restitution**2), rel=1e-12)
        speed *= restitution
        t += 2.0 * speed / GRAVITY


def test_bounces_come_to_an_end():
    """An infinity of ever smaller bounces ends in rest at the right time, on the ground."""
    restitution, height = 0.5, 0.2
    robot = ball()
    q = robot.configuration({}, [0, 0, 0.1 + height, 0, 0, 0, 1])
    sim = simulator(robot, q, constraints=[PointContact("c", "ball", (0, 0, 0), restitution=restitution, radius=0.1)])
    first = np.sqrt(2.0 * height / GRAVITY)
    end = first * (1.0 + 2.0 * restitution / (1.0 - restitution))
    sim.run(end - 0.02)
    assert abs(sim.state.v[2]) > 1e-3
    sim.run(0.05)
    assert np.abs(sim.state.v).max() < 1e-13
    result = sim.step()
    assert result.contact_forces["c"].normal_force == pytest.approx(0.5 * GRAVITY, rel=1e-12)
    assert abs(result.contact_forces["c"].gap) < 1e-8


def test_contacts_that_close_within_one_step_do_so_in_order():
    """The corners of a block that comes down almost flat strike within one step, the lowest first."""
    robot, lean = block(), 1e-3
    height = BLOCK_HALF[2] * np.cos(lean) + BLOCK_HALF[0] * np.sin(lean)
    q = robot.configuration({}, [0, 0, height + 1e-3, *tilted(lean)])
    sim = simulator(robot, q, [0, 0, -2.0, 0, 0, 0], corners(friction=0.3))
    results = [sim.step() for _ in range(5)]
    several = next(result for result in results if len(result.impacts) > 1)
    times = [impact.t for impact in several.impacts]
    assert times == sorted(times)
    assert times[0] == pytest.approx((-2.0 + np.sqrt(4.0 + 2e-3 * GRAVITY)) / GRAVITY, abs=1e-9)
    first = several.impacts[0].impulse.reshape(4, 3)[:, 2]
    low = int(np.argmin([point_of(robot, q, "block", contact.point)[2] for contact in corners()])) % 2
    assert first[low::2].min() > 0.0
    assert not first[1 - low :: 2].any()
    assert min(contact.gap for contact in results[-1].contact_forces.values()) > -1e-7
    assert all(result.energy.impact_losses >= 0.0 for result in results)


def test_fast_ball_does_not_tunnel():
    """A step that would take it a metre below ground ends on top of it."""
    robot = ball()
    q = robot.configuration({}, [0, 0, 0.6, 0, 0, 0, 1])
    sim = simulator(robot, q, [0, 0, -1000.0, 0, 0, 0], [PointContact("c", "ball", (0, 0, 0), radius=0.1)])
    result = sim.step()
    assert len(result.impacts) == 1
    assert result.impacts[0].t == pytest.approx(0.5e-3, abs=1e-8)
    assert result.contact_forces["c"].gap == pytest.approx(0.0, abs=1e-8)
    assert np.abs(sim.state.v).max() < 1e-12


def pushed_ball(gap, speed):
    """Return a ball of 0.5 kg without weight that comes down: simulator."""
    robot = Robot.from_urdf(ball().urdf, True, (0, 0, 0))
    q = robot.configuration({}, [0, 0, 0.1 + gap, 0, 0, 0, 1])
    return simulator(robot, q, [0, 0, -speed, 0, 0, 0], [PointContact("c", "ball", (0, 0, 0), radius=0.1)])


def test_no_impact_in_the_air():
    """A ball caught just above the ground by a force that turns round touches nothing: no impact, no loss."""
    sim = pushed_ball(3.7e-3, 1.0)
    sim.step(wrenches=[Wrench("ball", (0, 0, -500.0))])
    result = sim.step(wrenches=[Wrench("ball", (0, 0, 500.0))])
    assert result.contact_forces["c"].gap > 1e-4
    assert not result.impacts
    assert result.energy.impact_losses == 0.0
    assert sim.state.v[2] == pytest.approx(-1.0, rel=1e-12)


@pytest.mark.parametrize("late", [-1e-12, -1e-16, 0.0, 1e-16, 1e-12])
def test_touchdown_at_the_end_of_a_step(late):
    """An impact at the very end of a step counts whole or not yet: momentum is what was reported."""
    sim = pushed_ball(1e-3 * (1.0 + late), 1.0)
    momentum, reported = -0.5, 0.0
    for _ in range(3):
        result = sim.step()
        reported += percussion(result, "c")[2] + 1e-3 * pushes(result)[2]
        assert 0.5 * sim.state.v[2] == pytest.approx(momentum + reported, abs=1e-14)
    assert sim.energy.impact_losses == pytest.approx(0.25, rel=1e-12)


def test_touchdown_within_the_last_nanometres_of_a_step():
    """Predicted or not: an impact that is reported at the end of a step has changed the velocity."""
    sim = pushed_ball(3e-3 + 5e-9, 1.0)
    sim.step(wrenches=[Wrench("ball", (0, 0, -500.0))])
    before = sim.state.v[2]
    result = sim.step(wrenches=[Wrench("ball", (0, 0, 500.0))])
    impulse = 1e-3 * (500.0 + pushes(result)[2]) + percussion(result, "c")[2]
    assert 0.5 * (sim.state.v[2] - before) == pytest.approx(impulse, abs=1e-13)


@every_integrator
@pytest.mark.parametrize(("gap", "speed"), [(3e-5, 0.25), (0.0, 0.25), (3e-5, 0.0), (0.0, 0.0)])
def test_sudden_push_does_not_sink_what_was_about_to_leave(integrator, gap, speed):
    """A ball that rises, just off the ground, and is struck down within one step does not end it under ground.

    The first-order integrator, which moves by the last velocity, may sink by half of what the blow moves it in a step:
    to prevent that, its contact force would have to do work.
    """
    robot = Robot.from_urdf(ball().urdf, True, (0, 0, 0))
    q = robot.configuration({}, [0, 0, 0.1 + gap, 0, 0, 0, 1])
    contact = PointContact("c", "ball", (0, 0, 0), radius=0.1)
    sim = simulator(robot, q, [0, 0, speed, 0, 0, 0], [contact], integrator=integrator)
    result = sim.step(wrenches=[Wrench("ball", (0, 0, -225.0))])
    sinking = 0.5 * 225.0 / 0.5 * 1e-3**2 if integrator == "semi_implicit_euler" else 0.0
    assert result.contact_forces["c"].gap >= -1e-8 - sinking
    assert result.energy.contacts <= 1e-12


def test_contact_lets_go_without_pulling():
    """Pulled up with more than its weight the block leaves at once, at exactly the surplus acceleration."""
    robot = block()
    sim = simulator(
        robot, robot.configuration({}, [0, 0, BLOCK_HALF[2], 0, 0, 0, 1]), constraints=corners(friction=0.5)
    )
    for force, expected in ((1.5 * GRAVITY, 0.0), (3.0 * GRAVITY, 0.5 * GRAVITY)):
        result = sim.step(wrenches=[Wrench("block", (0, 0, force))])
        assert result.a[2] == pytest.approx(expected, abs=1e-11)
        assert pushes(result)[2] == pytest.approx(max(0.0, 2.0 * GRAVITY - force), abs=1e-10)


# -- solvers and methods


def switched(make, steps, law):
    """Return v and forces one step after switching to every solver, from the same state."""
    outcomes = []
    for solver in every_solver(make().constraints):
        sim = make()
        for _ in range(steps):
            sim.step(law(sim.state.t, sim.state.q, sim.state.v))
        sim.set_solver(solver)
        result = sim.step(law(sim.state.t, sim.state.q, sim.state.v))
        outcomes.append((result.state.v, result.lam))
    return outcomes


def swinging_chain():
    """Return a four-bar linkage in motion."""
    robot, q, anchor = pinned_chain()
    return simulator(robot, q, constraints=[anchor])


def crouching_leg():
    """Return the leg with its foot anchored and in contact, all at once."""
    config = leg_config()
    q = config.q.copy()
    q[0] -= point_of(config.robot, q, "foot")[2]
    return simulator(config.robot, q, constraints=[*config.constraints, PointAnchor("held", "foot", (0, 0, 0))])


@pytest.mark.parametrize("make", [swinging_chain, crouching_leg])
def test_switching_the_solver_changes_rounding_only(make):
    """One step after the switch, velocities and forces differ by 1e-12 of their size at most."""
    (v, lam), *others = switched(make, 40, lambda t, q, v: 0.5 * np.ones(3 if make is swinging_chain else 2))
    for v_other, lam_other in others:
        assert np.abs(v_other - v).max() <= 1e-12 * max(1.0, np.abs(v).max())
        assert np.abs(lam_other - lam).max() <= 1e-12 * max(1.0, np.abs(lam).max())


def kicked_leg():
    """Return the leg above the ground."""
    config = leg_config()
    return simulator(config.robot, config.q, constraints=config.constraints), 4.0


def kicked_quadruped():
    """Return solo12 just above the ground, turned and moving."""
    v = 0.3 * np.random.default_rng(3).normal(size=18)
    return simulator(solo12(), standing_solo(0.02, 0.2), v, solo_contacts(friction=0.5)), 1.0


def rubbing_quadruped():
    """Return the same with dry friction in its joints."""
    robot = solo12()
    robot = robot.with_joints({name: {"friction": 0.05} for name in robot.actuated_joints})
    v = 0.3 * np.random.default_rng(3).normal(size=18)
    return simulator(robot, standing_solo(0.02, 0.2), v, solo_contacts(friction=0.5)), 0.2


def kneeling_quadruped():
    """Return it with three points at the end of each leg, of which two lie on the ground, and rubbing hips."""
    robot = solo12()
    robot = robot.with_joints({name: {"friction": 0.02} for name in robot.actuated_joints if name.endswith("HAA")})
    beside = [
        PointContact(f"{contact.name}{k}", contact.link, (0.0, 0.02 * k, 0.001 * k), friction=0.6)
        for contact in solo_contacts()
        for k in range(3)
    ]
    v = 0.2 * np.random.default_rng(4).normal(size=18)
    return simulator(robot, standing_solo(0.01, 0.1), v, beside), 0.2


def limited_leg():
    """Return the leg above the ground, with stops close to where its joints are."""
    config = leg_config()
    stops = [JointLimit("hip stop", "hip", 0.5, 0.7), JointLimit("knee stop", "knee", -1.3, -1.1, restitution=0.3)]
    return simulator(config.robot, config.q, constraints=[*config.constraints, *stops]), 4.0


def sliding_block():
    """Return a flat block that slides to rest."""
    half = (0.3, 0.3, 0.02)
    q = block(half).configuration({}, [0, 0, 0.02, 0, 0, 0, 1])
    return simulator(block(half), q, [1.0, 0, 0, 0, 0, 0], corners(half, friction=0.5)), 0.0


def flying_pendulum():
    """Return a double pendulum without any contact."""
    return simulator(double_pendulum(), [0.3, -1.0], [2.0, 1.0]), 0.0


@pytest.mark.parametrize(
    "make",
    [kicked_leg, kicked_quadruped, rubbing_quadruped, kneeling_quadruped, limited_leg, sliding_block, flying_pendulum],
)
def test_wrench_of_zero_changes_nothing(make):
    """With and without it, all that a step returns is the same up to rounding."""
    (free, kick), (pushed, _) = make(), make()
    rng, nothing = np.random.default_rng(5), [Wrench(free.robot.root_link)]
    for _ in range(250):
        tau = kick * rng.uniform(-1, 1, free.robot.nu)
        ours, theirs = free.step(tau), pushed.step(tau, nothing)
        assert np.abs(ours.state.q - theirs.state.q).max() < 1e-11
        rounding = 1e-11 * max(10.0, np.abs(theirs.state.v).max())
        assert np.abs(ours.state.v - theirs.state.v).max() < rounding
        assert np.abs(ours.a - theirs.a).max() < rounding / free.dt
        assert np.abs(ours.lam - theirs.lam).max(initial=0.0) < rounding / free.dt
        assert (ours.outcome.status == theirs.outcome.status).all()
        assert np.abs(ours.outcome.energy - theirs.outcome.energy).max() < 1e-10
        assert ours.dynamics_residual < 1e-13
        assert ours.complementarity_residual < 1e-11


def standing_leg():
    """Return the leg on the ground, foot not yet held: robot, q."""
    config = leg_config()
    q = config.q.copy()
    q[0] -= point_of(config.robot, q, "foot")[2]
    return config.robot, q


def test_standing_leg_does_not_notice_the_solver():
    """Switching solvers every tenth of a second, the leg on its anchored foot stays within 1e-9 for a second."""
    robot, q = standing_leg()
    law, anchor = hold(robot, q), PointAnchor("held", "foot", (0, 0, 0))
    plain, mixed = (simulator(robot, q, constraints=[anchor]) for _ in range(2))
    for step in range(1000):
        if step % 100 == 50:
            name, options = METHODS[step // 100 % len(METHODS)]
            mixed.set_solver(name, **options)
        for sim in (plain, mixed):
            sim.step(law(sim.state.t, sim.state.q, sim.state.v))
        assert np.abs(plain.state.q - mixed.state.q).max() < 1e-9
        assert np.abs(plain.state.v - mixed.state.v).max() < 1e-9


WITH_FRICTION = [method for method in METHODS if method[0] not in ("gauss", "proximal")]


@pytest.mark.parametrize(("name", "options"), WITH_FRICTION, ids=str)
def test_solver_holds_the_contact_of_a_standing_leg(name, options):
    """The chosen solver is asked in every step, not only where there are bilateral rows; it changes rounding only."""
    cfg = leg_config()
    plain, other = (cfg.simulator() for _ in range(2))
    law = hold(cfg.robot, plain.state.q)
    other.set_solver(name, **options)
    for step in range(200):
        for sim in (plain, other):
            sim.step(law(sim.state.t, sim.state.q, sim.state.v))
        assert np.abs(plain.state.q - other.state.q).max() < 1e-12 * (step + 1)
        assert np.abs(plain.state.v - other.state.v).max() < 1e-11 * (step + 1)
    assert other.solver.calls >= 100  # the leg begins in the air


@pytest.mark.parametrize("name", ["direct", "null_space"])
def test_solver_of_a_run_changes_rounding_only(name):
    """Solvers with kernels: a quadruped that stands, in one run; forces, of least norm, too."""
    robot, q = solo12(), standing_solo()
    plain, other = (
        simulator(robot, q, constraints=solo_contacts(friction=0.8), solver=s) for s in ("range_space", name)
    )
    law = Posture(robot, q, 5.0, 0.1)
    runs = [sim.run(0.2, law) for sim in (plain, other)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-11
    for foot in SOLO_FEET:
        expected = runs[0].contact_forces[foot]
        assert np.abs(runs[1].contact_forces[foot] - expected).max() < 1e-8 * np.abs(expected).max()
    assert other.solver.calls >= 200
    assert plain.solver.calls >= 200


def test_solver_without_contacts_refuses_them():
    """Pinocchio's solver has no model of a contact: it is refused by name, when declared and when chosen."""
    with pytest.raises(NotSupported, match=r"proximal.*foot"):
        simulator(*standing_leg(), constraints=leg_config().constraints, solver="proximal")
    with pytest.raises(NotSupported, match=r"proximal.*foot"):
        leg_config().simulator().set_solver("proximal")


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"gauss", "proximal"}))
def test_foot_held_by_an_anchor_and_a_contact(solver):
    """The contact adds nothing to an anchor of the same foot: the leg comes to rest, the two carry the weight."""
    robot, q = standing_leg()
    sim = simulator(
        robot, q, constraints=[*leg_config().constraints, PointAnchor("held", "foot", (0, 0, 0))], solver=solver
    )
    law = hold(robot, q)
    for _ in range(600):
        result = sim.step(law(sim.state.t, sim.state.q, sim.state.v))
    carried = result.multipliers("foot")[2] + result.multipliers("held")[2]
    assert carried == pytest.approx(robot.mass * GRAVITY, rel=1e-6)


def test_contact_method_changes_no_motion():
    """Whichever contact method begins, a landing solo12 moves the same, step by step."""
    robot, q = solo12(), standing_solo(0.005, tilt=0.05)
    law = hold(robot, q, 3.0, 0.1)
    newton, sweeps = (
        simulator(robot, q, [0.3, 0, -0.5, *np.zeros(15)], solo_contacts(friction=0.4), contact_method=method)
        for method in ("newton", "gauss_seidel")
    )
    slides = 0
    for _ in range(60):
        sweeps.reset(newton.state.q, newton.state.v)
        newton.reset(newton.state.q, newton.state.v)
        tau = law(0.0, newton.state.q, newton.state.v)
        one, other = newton.step(tau), sweeps.step(tau)
        slides += any(contact.status == ContactStatus.SLIDING for contact in one.contact_forces.values())
        assert np.abs(one.state.v - other.state.v).max() < 1e-9
    assert slides > 5


@pytest.mark.parametrize(("integrator", "share"), [("midpoint", 0.5), ("semi_implicit_euler", 0.0)])
def test_a_constraint_is_asked_at_a_time_and_where_the_body_is_then(integrator, share):
    """The rows of a step are those of one instant: q is where the body, led along q = t, is at t."""
    asked = []

    def jacobian(q, v, t):
        asked.append((float(q[0]), t))
        return np.ones((1, 1))

    led = CustomConstraint(
        "led", 1, lambda q, v, t: q - t, jacobian, lambda q, v, t: np.zeros(1), velocity=lambda q, v, t: v - 1.0
    )
    rail = urdf(
        '<link name="base"/>', link("cart", 1.0), joint("slide", "prismatic", "base", "cart", (1, 0, 0), more=LIMIT)
    )
    body = Simulator(Robot.from_urdf(rail), [led], q=[0.0], v=[1.0], dt=0.1, integrator=integrator)
    body.step()
    asked.clear()  # the first step has checked the derivatives, around its beginning
    body.step()
    assert min(t for _, t in asked) == pytest.approx(0.1 * (1.0 + share), abs=1e-15)
    for q, t in asked:
        assert q == pytest.approx(t, abs=1e-15)


def test_a_motion_that_leads_into_the_ground_is_said_to_have_no_solution():
    """A point of a block on the ground is led down: no impulse allows both, whatever method looks for it."""

    def sinking(t):
        down = np.array([0.0, 0.0, 1.0])
        return (BLOCK_HALF[2] - 0.1 * t**2) * down, -0.2 * t * down, -0.2 * down

    held = [*corners(friction=0.4), PointAnchor("led", "block", (0, 0, 0), point_b=sinking)]
    q = block().configuration({}, (0, 0, BLOCK_HALF[2], 0, 0, 0, 1))
    with pytest.raises(NonFiniteState, match="no solution of the contact problem"):
        Simulator(block(), held, q=q).run(0.1)


def test_semi_implicit_euler_holds_contacts_too():
    """The other integrator: the leg lands, stands, and its momentum balances."""
    config = leg_config()
    sim, law, dt = (
        simulator(config.robot, config.q, integrator="semi_implicit_euler"),
        hold(config.robot, config.q),
        1e-3,
    )
    for constraint in config.constraints:
        sim.add(constraint)
    for _ in range(1500):
        before = inertia_of(leg(), sim.state.q)[0] @ sim.state.v
        result = sim.step(law(sim.state.t, sim.state.q, sim.state.v))
        after = inertia_of(leg(), sim.state.q)[0] @ sim.state.v
        balance = dt * (pushes(result)[2] - leg().mass * GRAVITY) + percussion(result, "foot")[2]
        assert abs(after - before - balance) < 1e-12
        assert result.energy.contacts <= 1e-12
        assert result.contact_forces["foot"].gap > -1e-7
    assert result.contact_forces["foot"].normal_force == pytest.approx(leg().mass * GRAVITY, rel=1e-6)


# -- joint damping and external wrenches


def test_joint_damping_takes_energy():
    """Viscous joints take v D v: nothing else brings the damped leg to rest in the air."""
    robot = leg()
    sim = simulator(robot, [0.9, 0.3, -0.5], [0.0, 3.0, -4.0])
    result = sim.step()
    assert result.energy.damping < 0.0
    trajectory = sim.run(0.1)
    assert (trajectory.energy["damping"] <= 0.0).all()
    power = -0.01 * (trajectory.v[:, 1] ** 2 + trajectory.v[:, 2] ** 2)
    assert trajectory.energy["damping"].sum() == pytest.approx(power.sum() * 1e-3, rel=1e-2)


def test_velocity_after_an_impact_enters_the_rest_of_the_step():
    """A ball that strikes in mid-step ends it at v_plus - g (dt - t), at the height that this makes."""
    robot = ball()
    q = robot.configuration({}, [0, 0, 0.1 + 1e-3, 0, 0, 0, 1])
    sim = simulator(
        robot, q, [0, 0, -2.0, 0, 0, 0], [PointContact("c", "ball", (0, 0, 0), restitution=0.5, radius=0.1)]
    )
    result = sim.step()
    impact, rest = result.impacts[0], 1e-3 - result.impacts[0].t
    assert sim.state.v[2] == pytest.approx(impact.v_plus[2] - GRAVITY * rest, rel=1e-12)
    gap = impact.v_plus[2] * rest - 0.5 * GRAVITY * rest**2
    assert result.contact_forces["c"].gap == pytest.approx(gap, abs=2e-9)


def test_two_ways_to_the_same_impact():
    """The percussion within a step is that of resolve_impact at its configuration."""
    config = leg_config()
    sim, law = config.simulator(), hold(config.robot, config.q)
    while not (result := sim.step(law(sim.state.t, sim.state.q, sim.state.v))).impacts:
        pass
    impact = result.impacts[0]
    alone = resolve_impact(config.robot, impact.q, impact.v_minus, config.constraints)
    assert np.abs(alone.v_plus - impact.v_plus).max() < 1e-13
    assert np.abs(alone.impulse - impact.impulse).max() < 1e-13


def test_solo12_stands_still_for_five_seconds():
    """Joint PD, friction 0.7: penetration below 1 um, slide from 1 s to 5 s below 0.1 um (each is some 1e-11 m)."""
    q = standing_solo()
    sim = simulator(solo12(), q, None, solo_contacts(friction=0.7))
    wanted, deepest, feet = q[7:], 0.0, {}
    for step in range(5000):
        state = sim.state
        result = sim.step(6.0 * (wanted - state.q[7:]) - 0.2 * state.v[6:])
        forces = result.contact_forces.values()
        deepest = min(deepest, *(force.gap for force in forces))
        if step in (999, 4999):
            feet[step] = np.array([force.position for force in forces])
    assert deepest > -1e-9
    assert np.abs(feet[4999] - feet[999]).max() < 1e-9
    assert sum(force.normal_force for force in forces) == pytest.approx(solo12().mass * GRAVITY, rel=1e-6)


@pytest.mark.parametrize(("dt", "speed"), [(1e-3, -300.0), (4e-3, -60.0), (1e-2, -30.0)])
def test_uniform_motion_is_not_felt(dt, speed):
    """A leg that falls fast hangs as still as one that falls slowly: what is lost in rounding does not grow."""
    robot, q = leg_config().robot, leg_config().q
    sim = simulator(robot, q, [speed, 1e-9, 0.0], dt=dt)
    for step in range(300):
        sim.step()
        assert sim.state.v[0] == pytest.approx(speed - GRAVITY * (step + 1) * dt, rel=1e-9)
        assert np.abs(sim.state.v[1:]).max() < 1e-8


def test_spinning_knee_takes_energy_from_nowhere():
    """A quadruped in flight with a knee at 300 rad/s, which turns by 0.3 rad in a step: its energy stays as it is."""
    v = np.zeros(18)
    v[8] = 300.0
    sim = simulator(solo12(), standing_solo(1.0), v)
    before = sim.mechanical_energy()
    for _ in range(200):
        sim.step()
        assert sim.mechanical_energy() == pytest.approx(before, rel=0.05)


def test_double_pendulum_keeps_its_energy():
    """Passive for 5 s at 1 ms: the midpoint scheme is within 0.1 J (it is some 0.005 J)."""
    sim = simulator(double_pendulum(), [1.5, 1.0])
    before = mechanical_energy(double_pendulum(), sim.state.q, sim.state.v)
    sim.run(5.0)
    assert abs(mechanical_energy(double_pendulum(), sim.state.q, sim.state.v) - before) < 0.02


@pytest.mark.parametrize(("dt", "accuracy"), [(1e-3, 1e-9), (5e-3, 1e-9)])
def test_elastic_ball_bounces_on(dt: float, accuracy: float) -> None:
    """Contact forces act only where a gap closes: none in the air just before a touchdown, so nothing is lost."""
    contact = PointContact("ground", "ball", (0.0, 0.0, 0.0), radius=0.1, restitution=1.0)
    sim = simulator(ball(radius=0.1), [0, 0, 0.6, 0, 0, 0, 1], None, [contact], dt=dt)
    energy = sim.mechanical_energy()
    bounces = 0
    for _ in range(round(10.0 / dt)):
        result = sim.step()
        bounces += len(result.impacts)
        (force,) = result.contact_forces.values()
        assert force.normal_force == 0.0
    assert bounces > 10
    assert sim.mechanical_energy() == pytest.approx(energy, rel=accuracy)


def test_armature_of_the_base_is_inertia_too():
    """Rotors in the free joint: the base's rows are no momentum of the bodies then. As the smooth stepper, order 2."""
    robot = solo12().with_joints({"root_joint": {"armature": 0.5}})
    q, v = standing_solo(), np.random.default_rng(3).normal(size=18)
    exact = simulator(robot, q, v, stepper="event_driven", dt=0.05)
    exact.run(0.2)
    errors = []
    for dt in (2e-3, 1e-3):
        sim = simulator(robot, q, v, dt=dt)
        sim.run(0.2)
        errors.append(np.abs(sim.state.v - exact.state.v).max())
    assert errors[1] < 1e-3
    assert errors[1] < errors[0] / 3.0


@pytest.mark.parametrize("speed", [5e-7, 5e-5, 5e-4])
def test_what_comes_ever_so_slowly_is_no_impact(speed):
    """It would sink by no more than a tenth of a micrometre: the contact force stops it within the step."""
    radius, mass, dt = 0.1, ball().mass, 1e-3
    q = ball().configuration({}, [0, 0, radius + 1e-10, 0, 0, 0, 1])
    sim = simulator(ball(), q, [0, 0, -speed, 0, 0, 0], dt=dt)
    sim.add(PointContact("c", "ball", (0, 0, 0), radius=radius))
    first = sim.step()
    assert bool(first.impacts) == (speed * dt > 1e-7)
    if not first.impacts:
        stop = mass * (GRAVITY + speed / dt)
        assert first.contact_forces["c"].normal_force == pytest.approx(stop, rel=1e-3)
    assert abs(sim.state.v[2]) < 1e-6 * speed + 1e-13
    assert abs(sim.step().contact_forces["c"].normal_force - mass * GRAVITY) < 1e-9
    assert abs(sim.state.q[2] - radius) < 1e-7


def test_rows_that_nearly_depend_on_each_other_do_not_throw_the_robot():
    """A block balances on three points, two of which make a lever of 10 um: 20 nm there are 2 mrad to first order."""
    _, y, z = BLOCK_HALF
    q = [0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0]
    points = (0.0, y, -z), (0.0, -y, -z), (1e-5, 0.0, -z - 2e-8)
    feet = [PointContact(f"foot{i}", "block", point, friction=0.5) for i, point in enumerate(points)]
    sim = simulator(block(), q, None, feet, dt=1e-3)
    for _ in range(5):
        result = sim.step()
        assert abs(result.energy.projection) < 1e-6
    assert np.abs(sim.state.q - q).max() < 1e-6
    assert np.abs(sim.state.v).max() < 1e-4


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_landing_on_feet_that_stick(stepper):
    """Each landing has a motion: nothing sinks in, pulls or brings energy; what sticks is at rest, or its mean is."""
    robot, posture = solo12(), Posture(solo12(), standing_solo(), 10.0, 0.2)
    rng = np.random.default_rng(1)
    stuck = landings = 0
    for _ in range(5 if stepper == "time_stepping" else 1):
        q, v = standing_solo(0.02, 0.15 * rng.normal()), 0.2 * rng.normal(size=robot.nv)
        sim, slips = Simulator(robot, solo_contacts(law=Sticking()), stepper, q=q, v=v), {}
        for _ in range(300 if stepper == "time_stepping" else 150):
            result = sim.step(posture(0.0, sim.state.q, sim.state.v))
            assert result.energy.contacts < 1e-12
            landings += len(result.impacts)
            assert all(impact.energy_lost >= 0.0 for impact in result.impacts)
            for contact in result.contact_forces.values():
                assert contact.gap > -1e-8
                assert contact.normal_force >= 0.0
                if contact.status == ContactStatus.STICKING and not result.impacts:
                    stuck += 1
                    turned = slips[contact.name] + contact.slip  # see kernels.correct_midpoint_friction
                    assert min(np.linalg.norm(contact.slip), np.linalg.norm(turned)) < 1e-9
                slips[contact.name] = contact.slip
    assert stuck > 100
    assert landings > 4


# -- impacts ahead of time


@pytest.mark.parametrize(("corners_of_plate", "early"), [(4, False), (40, True)])
def test_contacts_that_are_not_waited_for_are_counted(tmp_path: Path, corners_of_plate: int, early: bool) -> None:
    """A plate that lands nearly flat: its four corners are waited for one by one, of forty the last are not."""
    angles = 2.0 * np.pi * np.arange(corners_of_plate) / corners_of_plate
    robot = Robot.from_urdf(urdf(link("plate", 1.0, inertia=(0.3, 0.3, 0.5))), floating_base=True)
    rim = [PointContact(f"p{i}", "plate", (np.cos(a), np.sin(a), 0.0), friction=0.5) for i, a in enumerate(angles)]
    q = robot.neutral()
    q[2:7] = 2.1e-4, 5e-5, 3e-5, 0.0, 1.0
    q[3:7] /= np.linalg.norm(q[3:7])
    v = np.zeros(6)
    v[2] = -1.0
    sim = Simulator(robot, rim, q=q, v=v)
    result = sim.step()
    assert (result.early_impacts > 0) == early
    assert sim.early_impacts == result.early_impacts < corners_of_plate
    trajectory = Trajectory.from_results([result], robot.nq, robot.nv, robot.nu)
    trajectory.save(tmp_path / "run.npz")
    assert Trajectory.load(tmp_path / "run.npz").early_impacts == trajectory.early_impacts == result.early_impacts


def pinned_spin(spin, friction):
    """Return how fast a block on four corners turns faster about a vertical pin through one of them, and its force.

    The corner on the axis cannot slip; what it holds, and how the four share the weight, the laws leave open. They
    share it as equal springs do, whose forces go with a motion y of the block that the pin allows: normal forces, and
    all of the corner that is held. The other three have friction in proportion to theirs, opposite to their slip.
    """
    half, mass = np.array(BLOCK_HALF), 2.0
    _, _, z = mass / 3.0 * (np.sum(half**2) - half**2)
    points, arm = np.array([corner.point for corner in corners()]), -half * [1, 1, 0]
    balance = np.zeros((6, 9))  # of the acceleration, normal forces, the last corner's friction, the pin
    balance[:, 0] = -np.r_[mass * np.cross([0, 0, 1], arm), 0.0, 0.0, z]
    for i, point in enumerate(points):
        slip = np.cross([0, 0, 1], point - half) * [1, 1, 0]
        force = np.array([0, 0, 1]) - (friction * slip / np.linalg.norm(slip) if i < 3 else 0.0)
        balance[:, 1 + i] = np.r_[force, np.cross(point, force)]
    for i, axis in enumerate(np.eye(3)[:2]):
        balance[:, 5 + i], balance[:, 7 + i] = np.r_[axis, np.cross(points[3], axis)], np.r_[axis, np.cross(half, axis)]
    rows = balance.copy()
    rows[:, 1:5] = np.transpose([np.r_[[0, 0, 1], np.cross(point, [0, 0, 1])] for point in points])
    system = np.block([[np.diag([0.0, *[1.0] * 6, 0.0, 0.0]), rows.T], [balance, np.zeros((6, 6))]])
    goal = np.r_[np.zeros(9), mass * (np.array([0, 0, GRAVITY]) - spin**2 * arm), np.zeros(3)]
    found = np.linalg.solve(system, goal)
    return found[0], found[[5, 6, 4]]


@pytest.mark.parametrize(
    "options",
    [
        *({"contact_method": method} for method in CONTACT_METHODS),
        {"dt": 1e-4},
        {"stepper": "event_driven"},
    ],
    ids=lambda options: str(*options.values()),
)
def test_a_corner_on_the_axis_of_a_pin_sticks_though_rows_depend_on_each_other(options):
    """What takes the drift out of the pin must not tilt the block: the corner would slip, by rounding, and drag."""
    friction, spin, duration = 0.3, 0.9, 0.03
    v = np.r_[np.cross([0, 0, spin], -np.array(BLOCK_HALF) * [1, 1, 0]), 0.0, 0.0, spin]
    pin_ = PointAnchor("pin", "block", BLOCK_HALF, normals=[(1, 0, 0), (0, 1, 0)])
    contacts = corners(friction=friction)
    sim = Simulator(block(), [*contacts, pin_], q=[0, 0, BLOCK_HALF[2], 0, 0, 0, 1], v=v, **options)
    for _ in range(round(duration / sim.dt)):
        middle = sim.state.v[5] + 0.5 * sim.dt * pinned_spin(sim.state.v[5], friction)[0]
        acceleration, force = pinned_spin(middle, friction)
        placed = pin.XYZQUATToSE3(sim.state.q).rotation @ pin.exp3(np.array([0, 0, 0.5 * sim.dt * middle]))
        result = sim.step()
        touching = result.contact_forces["corner3"]
        assert touching.status is ContactStatus.STICKING and np.abs(touching.slip).max() < 1e-14
        assert abs(result.a[5] - acceleration) < 0.1 * sim.dt
        assert np.abs(touching.force - placed @ force).max() < 0.1 * sim.dt
    motion = solve_ivp(lambda _, w: pinned_spin(w[0], friction)[:1], (0.0, duration), [spin], rtol=1e-10, atol=1e-12)
    assert abs(sim.state.v[5] - motion.y[0, -1]) < 1e-6


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_a_block_pinned_in_all_directions_above_a_corner_turns_on(stepper):
    """That corner cannot slip, but its force of least norm is on its cone: no reason to stop.

    How pin and corners share the weight is open, not what follows from it: Newton's and Euler's laws about the pin,
    Coulomb's law of each corner.
    """
    friction, spin, mass, half = 0.3, 0.9, 2.0, np.array(BLOCK_HALF)
    v = np.r_[np.cross([0, 0, spin], -half * [1, 1, 0]), 0.0, 0.0, spin]
    held = [*corners(friction=friction), PointAnchor("pin", "block", BLOCK_HALF)]
    sim = Simulator(block(), held, q=[0, 0, BLOCK_HALF[2], 0, 0, 0, 1], v=v, stepper=stepper)
    arm = np.hypot(*half[:2])
    inertia = 4.0 / 3.0 * mass * arm**2  # about the pin
    for _ in range(20):
        before = sim.state.v[5]
        result = sim.step()
        moment, total = 0.0, np.array([0.0, 0.0, -mass * GRAVITY])
        for corner in corners():
            contact = result.contact_forces[corner.name]
            drag, sticks = np.hypot(*contact.force[:2]), contact.status is ContactStatus.STICKING
            assert sticks == (corner.name == "corner3")
            assert drag <= friction * contact.force[2] * (1.0 + 1e-9)
            if not sticks:
                assert drag == pytest.approx(friction * contact.force[2], rel=1e-6)
                moment -= drag * np.hypot(*(np.array(corner.point) - half)[:2])
            total += contact.force
        assert (sim.state.v[5] - before) / sim.dt == pytest.approx(moment / inertia, rel=1e-5)
        total += result.multipliers("pin")
        acceleration = arm * np.hypot((0.5 * (before + sim.state.v[5])) ** 2, moment / inertia)
        assert np.hypot(*total[:2]) == pytest.approx(mass * acceleration, rel=1e-5)
        assert total[2] == pytest.approx(0.0, abs=1e-7)

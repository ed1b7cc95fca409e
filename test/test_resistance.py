"""Contacts that resist rolling and spinning: textbook decelerations, thresholds, moments, energy."""

import numpy as np
import pytest
from hypothesis import given
from mechanisms import (
    GRAVITY,
    LIMIT,
    ball,
    block,
    corners,
    joint,
    kinetic_energy,
    link,
    placement,
    property_test,
    relative,
    seeds,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
    urdf,
)

from constrained_sim import (
    Compliant,
    ForceTorque,
    Frictionless,
    Plane,
    PointContact,
    Robot,
    Sticking,
    Trajectory,
    Wrench,
    constrained_acceleration,
    resolve_impact,
)
from constrained_sim.contact import METHODS, ContactProblem, solve_contacts
from constrained_sim.exceptions import InvalidValue, NotSupported

RADIUS, MASS, INERTIA = 0.1, 0.5, 0.4 * 0.5 * 0.1**2
"""Of the ball [m, kg, kg m^2]."""

WEIGHT = MASS * GRAVITY


def touching(plane=None, **options):
    """Return a contact of the whole ball with `plane`, with friction unless told otherwise."""
    options = {"friction": 0.5, "radius": RADIUS} | options
    return PointContact("c", "ball", (0, 0, 0), plane or Plane(), **options)


def ball_on(contact, v=None, **options):
    """Return a simulator with the ball on the plane of `contact`."""
    q = [*(RADIUS * np.asarray(contact.surface.normal)), 0, 0, 0, 1]
    return simulator(ball(), q, v, [contact], **options)


def world_velocity(sim):
    """Return linear and angular velocity of the ball, world axes."""
    rotation = placement(ball(), sim.state.q, "ball").rotation
    return rotation @ sim.state.v[:3], rotation @ sim.state.v[3:]


# -- rolling


def test_rolling_ball_slows_down_at_the_textbook_rate():
    """Rolling keeps v = w r: with m v' = -F and I w' = F r - mu_r m g, v' = -(mu_r g / r) / (1 + I / (m r^2)).

    It stops after v^2 / (2 |v'|) and stays there, without a rest of speed.
    """
    resistance, speed = 0.01, 1.0
    contact = touching(rolling_friction=resistance)
    sim = ball_on(contact, [speed, 0, 0, 0, speed / RADIUS, 0])
    rate = resistance * GRAVITY / RADIUS / 1.4
    result = sim.step()
    assert world_velocity(sim)[0][0] == pytest.approx(speed - rate * sim.dt, rel=1e-7)
    force = result.contact_forces["c"]
    assert force.moment == pytest.approx([0.0, -resistance * WEIGHT, 0.0], abs=1e-10)
    assert force.force == pytest.approx([-MASS * rate, 0.0, WEIGHT], abs=2e-5)
    assert force.normal_force == pytest.approx(WEIGHT, rel=1e-9)
    trajectory = sim.run(2.0)
    resting = trajectory.t > speed / rate + 2.0 * sim.dt
    assert np.abs(trajectory.v[resting]).max() < 1e-15
    assert len(np.unique(trajectory.q[resting][1:], axis=0)) == 1
    assert trajectory.contact_moments["c"][-1] == pytest.approx(np.zeros(3), abs=1e-12)


def test_the_distance_rolled_converges():
    """To v^2 / (2 |v'|), with an error of second order: the last, partial step of the way aside there is none."""
    resistance, speed = 0.02, 0.5
    rate = resistance * GRAVITY / RADIUS / 1.4
    errors = []
    for dt in (4e-3, 1e-3, 2.5e-4):
        sim = ball_on(touching(rolling_friction=resistance), [speed, 0, 0, 0, speed / RADIUS, 0], dt=dt)
        errors.append(abs(sim.run(0.6).q[-1, 0] - 0.5 * speed**2 / rate) / (rate * dt**2))
    assert max(errors) < 0.5


def test_rolling_resistance_slows_down_a_wheel_on_an_axle():
    """A wheel that cannot leave its place, without friction along the ground: I w' = -mu_r N.

    The axle is passive: a sensor in it, which knows the moment at the ground, finds no moment along it.
    """
    inertia, resistance, push = 0.02, 0.03, 5.0
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("mount", 1.0),
            link("wheel", push / GRAVITY, inertia=[inertia] * 3),
            joint("drop", "prismatic", "base", "mount", (0, 0, 1), more=LIMIT),
            joint("axle", "continuous", "mount", "wheel"),
        )
    )
    contact = PointContact("c", "wheel", (0, 0, 0), radius=0.2, rolling_friction=resistance)
    sim = simulator(robot, robot.configuration({"drop": 0.2}), [0.0, 8.0], [contact])
    normal = push + GRAVITY
    for _ in range(100):
        result = sim.step()
    assert sim.state.v[1] == pytest.approx(8.0 - 0.1 * resistance * normal / inertia, rel=1e-9)
    reading = ForceTorque("axle", "wheel").exact(robot, result)
    assert reading.torque[1] == pytest.approx(0.0, abs=1e-9 * resistance * normal)


@pytest.mark.parametrize("heading", [0.0, 0.7, 2.5])
def test_rolling_resistance_is_a_disc(heading):
    """The same in every direction, opposite to the angular velocity: the ball rolls straight on."""
    along = np.array([np.cos(heading), np.sin(heading), 0.0])
    contact = touching(rolling_friction=0.01)
    sim = ball_on(contact, [*along, *np.cross([0, 0, 1.0], along) / RADIUS])
    result = sim.step()
    expected = -0.01 * WEIGHT * np.cross([0, 0, 1.0], along)
    assert result.contact_forces["c"].moment == pytest.approx(expected, abs=1e-10)
    sim.run(0.5)
    velocity, _ = world_velocity(sim)
    assert np.cross(velocity, along)[2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("excess", "rolls"), [(0.99, False), (1.01, True)])
def test_slope_on_which_a_ball_begins_to_roll(excess, rolls):
    """At tan = mu_r / r. Below it stays to the last bit; above, a = (g sin - mu_r / r g cos) / (1 + I / (m r^2))."""
    resistance = 0.01
    angle = np.arctan(excess * resistance / RADIUS)
    contact = touching(Plane((np.sin(angle), 0, np.cos(angle))), rolling_friction=resistance)
    sim = ball_on(contact)
    q0 = sim.state.q.copy()
    trajectory = sim.run(1.0)
    if not rolls:
        assert np.array_equal(trajectory.q[:, [0, 1, 2, 6]], np.tile(q0[[0, 1, 2, 6]], (1000, 1)))
        assert np.abs(trajectory.q[:, 3:6]).max() < 1e-18
        assert np.abs(trajectory.v).max() < 1e-16
        lever = RADIUS * WEIGHT * np.sin(angle)
        assert trajectory.contact_moments["c"][-1] == pytest.approx([0, -lever, 0], abs=1e-12)
        return
    a = GRAVITY * (np.sin(angle) - resistance / RADIUS * np.cos(angle)) / 1.4
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    assert world_velocity(sim)[0] @ down == pytest.approx(a * 1.0, rel=1e-6)
    assert (trajectory.q[-1, :3] - q0[:3]) @ down == pytest.approx(0.5 * a, rel=1e-6)


def test_a_ball_pushed_off_the_slope_where_it_rests_comes_to_rest_again():
    """Below the threshold it rolls downhill more slowly all the time, and stops."""
    resistance = 0.02
    angle = np.arctan(0.5 * resistance / RADIUS)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    contact = touching(Plane((np.sin(angle), 0, np.cos(angle))), rolling_friction=resistance)
    speed = 0.3
    sim = ball_on(contact, [*(speed * down), 0, speed / RADIUS, 0])
    q0 = sim.state.q.copy()
    trajectory = sim.run(1.0)
    rate = GRAVITY * (resistance / RADIUS * np.cos(angle) - np.sin(angle)) / 1.4
    assert (trajectory.q[-1, :3] - q0[:3]) @ down == pytest.approx(0.5 * speed**2 / rate, abs=2e-6)
    assert np.abs(trajectory.v[-1]).max() < 1e-15


# -- spinning


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_spinning_ball_slows_down_and_stops(friction):
    """I w' = -mu_t m g about the normal, whatever the friction along the surface; then it stands still."""
    resistance, spin = 0.004, 30.0
    contact = touching(friction=friction, torsional_friction=resistance)
    sim = ball_on(contact, [0, 0, 0, 0, 0, spin])
    rate = resistance * WEIGHT / INERTIA
    result = sim.step()
    assert result.contact_forces["c"].moment == pytest.approx([0, 0, -resistance * WEIGHT], rel=1e-12)
    sim.run(0.099)
    assert world_velocity(sim)[1] == pytest.approx([0, 0, spin - 0.1 * rate], rel=1e-11)
    trajectory = sim.run(spin / rate)
    assert np.abs(trajectory.v[-1]).max() < 1e-14
    assert trajectory.q[-1, :3] == pytest.approx([0, 0, RADIUS], abs=1e-14)


def test_spin_does_not_resist_rolling_and_rolling_does_not_resist_spin():
    """Each coefficient is about its own components of the angular velocity."""
    spin = [0, 0, 0, 0, 0, 5.0]
    roll = [1.0, 0, 0, 0, 1.0 / RADIUS, 0]
    for contact, v in ((touching(rolling_friction=0.02), spin), (touching(torsional_friction=0.02), roll)):
        sim = ball_on(contact, v)
        moments = [sim.step().contact_forces["c"].moment for _ in range(20)]
        assert np.abs(moments).max() < 1e-10
        linear, angular = world_velocity(sim)
        assert np.concatenate([linear, angular]) == pytest.approx(v, rel=1e-7, abs=1e-12)


def test_sliding_and_spinning_at_once():
    """While it slides and rolls and spins, force and moments are each at their bounds, against their own motion."""
    friction, rolling, torsional = 0.1, 0.02, 0.002
    contact = touching(friction=friction, rolling_friction=rolling, torsional_friction=torsional)
    v = np.array([2.0, 0.5, 0, 1.0, -3.0, 6.0])
    sim = ball_on(contact, v)
    slip = v[:2] + RADIUS * np.array([-v[4], v[3]])
    result = sim.step()
    force, moment = result.contact_forces["c"].force, result.contact_forces["c"].moment
    assert force[2] == pytest.approx(WEIGHT, rel=1e-12)
    assert force[:2] == pytest.approx(-friction * WEIGHT * slip / np.linalg.norm(slip), rel=5e-3)
    assert np.hypot(*force[:2]) == pytest.approx(friction * WEIGHT, rel=1e-9)
    assert moment[:2] == pytest.approx(-rolling * WEIGHT * v[3:5] / np.hypot(*v[3:5]), rel=2e-2)
    assert np.hypot(*moment[:2]) == pytest.approx(rolling * WEIGHT, rel=1e-9)
    assert moment[2] == pytest.approx(-torsional * WEIGHT, rel=1e-9)
    sim.run(3.0)
    assert np.abs(sim.state.v).max() < 1e-14


# -- what must hold always


@property_test(12)
@given(seed=seeds)
def test_energy_audit_closes_and_contacts_never_add_energy(seed):
    """Balls thrown on a slope that slide, roll, spin and bounce: the audit closes, contact work is never positive."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 0.3)
    contact = touching(
        Plane((np.sin(angle), 0, np.cos(angle))),
        friction=rng.uniform(0, 0.6),
        rolling_friction=rng.uniform(0, 0.02),
        torsional_friction=rng.uniform(0, 0.02),
        restitution=rng.uniform(0, 0.8),
        restitution_law=str(rng.choice(["newton", "poisson"])),
    )
    sim = ball_on(contact)
    sim.reset([*((RADIUS + 0.05) * np.asarray(contact.surface.normal)), 0, 0, 0, 1], 3.0 * rng.normal(size=6))
    for _ in range(400):
        result = sim.step()
        assert abs(result.energy.residual) < 1e-12
        assert result.energy.contacts < 1e-12
        assert result.energy.impact_losses > -1e-13
        assert result.dynamics_residual < 1e-11
        assert result.complementarity_residual < 1e-10
        force, moment = result.contact_forces["c"].force, result.contact_forces["c"].moment
        normal = force @ contact.surface.normal
        about = moment @ contact.surface.normal
        assert abs(about) <= contact.torsional_friction * normal + 1e-9 * WEIGHT
        assert np.linalg.norm(moment - about * np.asarray(contact.surface.normal)) <= (
            contact.rolling_friction * normal + 1e-9 * WEIGHT
        )


def imbalance(dt, **coefficients):
    """Return the largest moment about the centre [N m] that forces and moments of the contact leave unexplained."""
    contact = touching(friction=0.3, **coefficients)
    sim, worst = ball_on(contact, [1.0, -0.5, 0, 2.0, 3.0, 8.0], dt=dt), 0.0
    for _ in range(round(0.1 / dt)):
        before = INERTIA * world_velocity(sim)[1]
        force = sim.step().contact_forces["c"]
        rate = (INERTIA * world_velocity(sim)[1] - before) / dt
        worst = max(worst, np.abs(rate - np.cross([0, 0, -RADIUS], force.force) - force.moment).max())
    return worst


def test_moments_explain_the_motion():
    """The spin changes by the moments of force and contact, but for the second-order error of any rolling ball."""
    coefficients = {"rolling_friction": 0.01, "torsional_friction": 0.005}
    coarse, fine = (imbalance(dt, **coefficients) for dt in (2e-3, 1e-3))
    assert fine < 2.0 * imbalance(1e-3)
    assert fine < 1e-3 * 0.005 * WEIGHT
    assert coarse / fine == pytest.approx(4.0, rel=0.1)


def test_without_coefficients_every_bit_stays():
    """A contact with coefficients of zero, and one that never closes, change no bit of another's motion."""
    robot, runs = solo12(), []
    options = ({}, {"torsional_friction": 0.0, "rolling_friction": 0.0})
    for option in options:
        sim = simulator(robot, standing_solo(0.01), None, solo_contacts(friction=0.6, **option))
        runs.append(sim.run(0.1))
    assert np.array_equal(runs[0].q, runs[1].q)
    assert np.array_equal(runs[0].contact_moments["FL_FOOT"], np.zeros((100, 3)))


def test_many_contacts_that_share_a_body():
    """Four corners that resist turning hold a block on a slope: 24 rows of rank six, and it does not move."""
    angle = 0.3
    normal = (np.sin(angle), 0, np.cos(angle))
    half = (0.15, 0.10, 0.05)
    contacts = corners(half, friction=0.6, surface=Plane(normal), torsional_friction=0.01, rolling_friction=0.01)
    q = np.array([*(half[2] * np.array(normal)), *tilted(angle)])
    sim = simulator(block(half), q, None, contacts)
    trajectory = sim.run(0.2)
    assert np.abs(trajectory.q - q).max() < 1e-14
    total = sum(trajectory.contact_forces[contact.name][-1] for contact in contacts)
    assert total == pytest.approx([0, 0, 2.0 * GRAVITY], abs=1e-10)


# -- impacts and accelerations


@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_impulses_of_a_spinning_ball_that_lands(law):
    """The normal impulse m (1 + e) v brakes spin and roll by mu_t and mu_r times as much, and never reverses them."""
    e, fall, rolling, torsional = 0.5, 2.0, 1e-4, 2e-4
    robot, q = ball(), ball().configuration({}, [0, 0, RADIUS, 0, 0, 0, 1])
    contact = touching(
        friction=0.0, restitution=e, restitution_law=law, rolling_friction=rolling, torsional_friction=torsional
    )
    normal = MASS * (1 + e) * fall
    impact = resolve_impact(robot, q, [0, 0, -fall, 3.0, 4.0, 5.0], [contact])
    assert impact.moments[0] == pytest.approx(normal * np.array([-0.6 * rolling, -0.8 * rolling, -torsional]), rel=1e-9)
    assert impact.v_plus[3:] == pytest.approx([3.0, 4.0, 5.0] + impact.moments[0] / INERTIA, rel=1e-12)
    assert impact.energy_lost == pytest.approx(
        kinetic_energy(robot, q, impact.v_minus) - kinetic_energy(robot, q, impact.v_plus), rel=1e-12
    )
    strong = touching(friction=0.0, restitution=e, restitution_law=law, rolling_friction=0.1, torsional_friction=0.1)
    stopped = resolve_impact(robot, q, [0, 0, -fall, 3.0, 4.0, 5.0], [strong])
    assert stopped.v_plus == pytest.approx([0, 0, e * fall, 0, 0, 0], abs=1e-13)


def test_accelerations():
    """Stateless: held at rest below the threshold, at their bounds in motion, with the moment in the wrench."""
    robot, q = ball(), ball().configuration({}, [0, 0, RADIUS, 0, 0, 0, 1])
    contact = touching(rolling_friction=0.01, torsional_friction=0.002)
    speed = 1.0
    v = np.array([speed, 0, 0, 0, speed / RADIUS, 7.0])
    motion = constrained_acceleration(robot, q, v, np.zeros(robot.nu), [contact])
    rate = 0.01 * GRAVITY / RADIUS / 1.4
    bias = np.cross(v[3:], v[:3])
    assert motion.a[:3] + bias == pytest.approx([-rate, 0, 0], abs=1e-12)
    assert motion.a[3:] == pytest.approx([0, -rate / RADIUS, -0.002 * WEIGHT / INERTIA], abs=1e-10)
    wrench = motion.wrench("c", "ball")
    assert wrench[3:] == pytest.approx([0, -0.01 * WEIGHT, -0.002 * WEIGHT], abs=1e-12)
    assert motion.dynamics_residual < 1e-13
    push = Wrench("ball", (0.9 * WEIGHT * 0.01 / RADIUS, 0, 0))
    held = constrained_acceleration(robot, q, np.zeros(6), np.zeros(0), [contact], wrenches=[push])
    assert np.abs(held.a).max() < 1e-13


# -- the problem itself


def problem(rng):
    """Return a problem of two contacts of one free body, all of whose moments are bounded."""
    count = 2
    J = []
    for _ in range(count):
        lever = rng.uniform(-0.2, 0.2, 3)
        skew = np.array([[0, lever[2], -lever[1]], [-lever[2], 0, lever[0]], [lever[1], -lever[0], 0]])
        J.append(np.hstack([np.eye(3), skew]))
    J += [np.hstack([np.zeros((3, 3)), np.eye(3)])] * count
    J = np.vstack(J)
    M = np.diag([1.0, 1.0, 1.0, *rng.uniform(0.005, 0.02, 3)])
    v = rng.normal(size=6) * [1, 1, 1, 5, 5, 5] - [0, 0, rng.uniform(0, 2), 0, 0, 0]
    discs = [(c, size, rng.uniform(0, 0.05), rng.choice([0.0, 0.01]), 0, 0) for c in range(count) for size in (2, 1)]
    G = J @ np.linalg.solve(M, J.T)
    return ContactProblem(0.5 * (G + G.T), J @ v, rng.uniform(0, 1, count), np.zeros((count, 2)), discs=np.array(discs))


@pytest.mark.parametrize("method", METHODS)
@property_test(60)
@given(seed=seeds)
def test_discs_obey_their_law(method, seed):
    """Inside its radius nothing moves; on it, against the motion: radius and motion of every disc, one by one."""
    given_problem = problem(np.random.default_rng(seed))
    solution = solve_contacts(given_problem, method)
    assert solution.converged
    if method == "pivoting":
        assert solution.method in {"pivoting", "stick"}
    u, r = given_problem.G @ solution.impulse + given_problem.b, solution.impulse
    assert given_problem.cone_violation(r) < 1e-9
    assert given_problem.slip_residual(r) < 1e-8
    row, speed, push = 6, np.abs(given_problem.b).max(), np.abs(r).max()
    for contact, size, coefficient, least, *_ in given_problem.discs:
        rows = slice(row, row + int(size))
        radius = least + coefficient * r[3 * int(contact) + 2]
        length, motion = np.linalg.norm(r[rows]), np.linalg.norm(u[rows])
        assert length <= radius + 1e-10 * push
        if length < radius - 1e-8 * push:
            assert motion < 1e-8 * speed
        elif motion > 1e-6 * speed:
            assert np.abs(r[rows] * motion + radius * u[rows]).max() <= 1e-9 * push * motion
        row += int(size)


def test_methods_find_the_same_motion():
    """Of one ball, whose rows are independent."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        v, contact = rng.normal(size=6), touching(friction=0.3, rolling_friction=0.02, torsional_friction=0.01)
        v[2] = -1.0
        impacts = []
        for method in METHODS:
            sim = ball_on(contact, v, contact_method=method)
            impacts.append(sim.step().state.v)
        assert max(relative(found, impacts[0]) for found in impacts) < 1e-9


# -- refusals


@pytest.mark.parametrize("name", ["torsional_friction", "rolling_friction"])
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "much"])
def test_bad_coefficients_are_refused(name, value):
    """With the contact, what was given and what is allowed."""
    with pytest.raises(InvalidValue, match=f"{name} of contact 'c'"):
        touching(**{name: value})


@pytest.mark.parametrize("law", [Frictionless(), Compliant(stiffness=1e4)])
def test_laws_without_moments_are_refused(law):
    """A frictionless contact passes on a normal force only; the force of a soft one is no rigid resistance."""
    with pytest.raises(InvalidValue, match=law.name):
        PointContact("c", "ball", (0, 0, 0), law=law, rolling_friction=0.01)
    PointContact("c", "ball", (0, 0, 0), law=Sticking(), rolling_friction=0.01)


def test_who_cannot_resist_turning_says_so():
    """The event-driven stepper and Gauss' principle, by name."""
    for options in ({"stepper": "event_driven"}, {"solver": "gauss"}):
        if "solver" in options:
            pytest.importorskip("proxsuite")
        with pytest.raises(NotSupported, match="'c'"):
            ball_on(touching(friction=0.0, rolling_friction=0.01), **options)


def test_trajectories_keep_the_moments(tmp_path):
    """Saved and loaded."""
    sim = ball_on(touching(rolling_friction=0.01), [1.0, 0, 0, 0, 1.0 / RADIUS, 0])
    trajectory = sim.run(0.01)
    trajectory.save(tmp_path / "run.npz")
    loaded = Trajectory.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.contact_moments["c"], trajectory.contact_moments["c"])
    assert loaded.contact_moments["c"][-1][1] == pytest.approx(-0.01 * WEIGHT, rel=1e-9)

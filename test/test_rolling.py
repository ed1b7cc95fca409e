"""Contacts that resist rolling and spinning: textbook decelerations, thresholds, moments, energy."""

import numpy as np
import pytest
from hypothesis import given
from mechanisms import (
    BLOCK_HALF,
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
from scipy.integrate import solve_ivp

from constrained_sim import (
    Collisions,
    Compliant,
    ForceTorque,
    Frictionless,
    JointLimit,
    JointVelocity,
    Plane,
    PointContact,
    Robot,
    Simulator,
    Sticking,
    Trajectory,
    Wrench,
    constrained_acceleration,
    resolve_impact,
)
from constrained_sim.contact_solvers import METHODS, ContactProblem, solve_contacts
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.exceptions import InvalidValue, NotSupported

RADIUS, MASS, INERTIA = 0.1, 0.5, 0.4 * 0.5 * 0.1**2
"""Of the ball [m, kg, kg m^2]."""

WEIGHT = MASS * GRAVITY

EVENTS = {"stepper": "event_driven"}


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


# -- event by event


def instant(trajectory, component, moment):
    """Return when a constant `moment` [N m] about an axis ended [s]: in the one step whose mean is less."""
    moments = trajectory.contact_moments["c"][:, component]
    dt = trajectory.t[1] - trajectory.t[0]
    (last,) = np.flatnonzero((np.abs(moments) > 1e-9) & (np.abs(moments - moment) > 1e-9))
    return trajectory.t[last] - dt + dt * moments[last] / moment


def test_a_rolling_ball_stops_at_its_instant():
    """At v / |v'| and v^2 / (2 |v'|), see the textbook rate above; from then on it rests, without a moment.

    Up to the velocity at which drift is removed, 1e-12 m/s.
    """
    resistance, speed = 0.01, 1.0
    sim = ball_on(touching(rolling_friction=resistance), [speed, 0, 0, 0, speed / RADIUS, 0], dt=0.02, **EVENTS)
    rate = resistance * GRAVITY / RADIUS / 1.4
    trajectory = sim.run(2.0)
    assert trajectory.contact_moments["c"][0] == pytest.approx([0, -resistance * WEIGHT, 0], abs=1e-14)
    assert trajectory.contact_forces["c"][0] == pytest.approx([-MASS * rate, 0, WEIGHT], abs=1e-12)
    assert instant(trajectory, 1, -resistance * WEIGHT) == pytest.approx(speed / rate, abs=1e-12)
    assert trajectory.q[-1, 0] == pytest.approx(0.5 * speed**2 / rate, abs=2e-12)
    assert np.abs(trajectory.v[-1]).max() < 1e-12
    assert np.abs(trajectory.contact_moments["c"][-1]).max() < 1e-14


def test_a_spinning_ball_stops_at_its_instant():
    """The spin falls at mu_t m g / I, ends there, and has turned the ball by w^2 / (2 |w'|)."""
    resistance, spin = 0.004, 30.0
    sim = ball_on(touching(torsional_friction=resistance), [0, 0, 0, 0, 0, spin], dt=0.02, **EVENTS)
    rate = resistance * WEIGHT / INERTIA
    trajectory = sim.run(3.2)
    assert instant(trajectory, 2, -resistance * WEIGHT) == pytest.approx(spin / rate, abs=1e-12)
    half = 0.25 * spin**2 / rate
    assert np.abs(trajectory.q[-1, 5:] @ [np.cos(half), -np.sin(half)]) < 1e-11
    assert np.abs(trajectory.v[-1]).max() < 1e-15


@pytest.mark.parametrize("excess", [-1e-6, 1e-6])
def test_threshold_of_rolling_is_sharp(excess):
    """A slope one part in a million less than tan = mu_r / r holds the ball by r m g sin; one more lets it roll."""
    resistance = 0.01
    angle = np.arctan((1.0 + excess) * resistance / RADIUS)
    contact = touching(Plane((np.sin(angle), 0, np.cos(angle))), rolling_friction=resistance)
    sim = ball_on(contact, dt=0.02, **EVENTS)
    q0 = sim.state.q[:3].copy()
    trajectory = sim.run(1.0)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    if excess < 0.0:
        lever = RADIUS * WEIGHT * np.sin(angle)
        assert trajectory.contact_moments["c"] == pytest.approx(np.tile([0, -lever, 0], (50, 1)), abs=1e-13)
        assert np.abs(trajectory.v).max() < 1e-14
        return
    a = GRAVITY * (np.sin(angle) - resistance / RADIUS * np.cos(angle)) / 1.4
    assert world_velocity(sim)[0] @ down == pytest.approx(a, abs=1e-12)
    assert (sim.state.q[:3] - q0) @ down == pytest.approx(0.5 * a, abs=1e-12)


def test_a_ball_that_resists_rolling_more_than_it_is_rubbed_slides_to_its_rest():
    """With mu_r > mu r friction cannot make it roll: a block, which the moment mu m g r keeps from turning."""
    friction, speed = 0.1, 1.0
    sim = ball_on(touching(friction=friction, rolling_friction=0.02), [speed, 0, 0, 0, 0, 0], dt=0.02, **EVENTS)
    trajectory = sim.run(1.2)
    assert trajectory.contact_moments["c"][0] == pytest.approx([0, -friction * WEIGHT * RADIUS, 0], abs=1e-14)
    assert instant(trajectory, 1, -friction * WEIGHT * RADIUS) == pytest.approx(speed / (friction * GRAVITY), abs=1e-12)
    assert trajectory.q[-1] == pytest.approx([0.5 * speed**2 / (friction * GRAVITY), 0, RADIUS, 0, 0, 0, 1], abs=1e-11)


FRICTION, ROLLING, TORSIONAL = 0.1, 0.005, 0.002
THROWN = [2.0, 0.5, 0, 1.0, -3.0, 6.0]


def thrown(t):
    """Return position along the ground, velocity along it and angular velocity (7,) at `t` of a ball that slides."""

    def rates(_, y):
        v, w = y[2:4], y[4:]
        slip = v + RADIUS * np.array([-w[1], w[0]])
        force = -FRICTION * WEIGHT * slip / np.linalg.norm(slip)
        rolling, spin = -ROLLING * WEIGHT * w[:2] / np.linalg.norm(w[:2]), -TORSIONAL * WEIGHT * np.sign(w[2])
        about = np.cross([0, 0, -RADIUS], [*force, 0]) + np.array([*rolling, spin])
        return np.concatenate([v, force / MASS, about / INERTIA])

    y0 = [0, 0, *THROWN[:2], *THROWN[3:]]
    return solve_ivp(rates, (0.0, t), y0, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


def after(t, **options):
    """Return the same, simulated."""
    contact = touching(friction=FRICTION, rolling_friction=ROLLING, torsional_friction=TORSIONAL)
    sim = ball_on(contact, THROWN, **options)
    sim.run(t)
    linear, angular = world_velocity(sim)
    return np.concatenate([sim.state.q[:2], linear[:2], angular])


def test_sliding_rolling_and_spinning_against_another_integration():
    """All at once, and each in a direction that turns: against the equations of motion of the ball, integrated apart.

    Whatever the step; and time stepping converges to it.
    """
    exact = thrown(0.3)
    for dt in (0.01, 0.1):
        assert after(0.3, dt=dt, **EVENTS) == pytest.approx(exact, abs=2e-11)
    coarse, fine = (np.abs(after(0.3, dt=dt) - exact).max() for dt in (1e-3, 5e-4))
    assert fine < 1e-4
    assert coarse / fine == pytest.approx(4.0, rel=0.05)


def turntable(stiffness=0.0, inertia=0.02):
    """Return a weight of 1 kg that slides along z and turns about it, held by a spring [N m/rad], link ``body``."""
    return Robot.from_mjcf(
        f"""<mujoco><option gravity="0 0 {-GRAVITY}"/><worldbody><body name="slide">
        <joint name="z" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="0.4" diaginertia="1 1 1"/>
        <body name="body"><joint name="turn" type="hinge" axis="0 0 1" stiffness="{stiffness}"/>
        <inertial pos="0 0 0" mass="0.6" diaginertia="1 1 {inertia}"/></body></body></worldbody></mujoco>"""
    )


def test_oscillator_that_spins_on_the_ground():
    """Half cycles of pi / omega, each 2 mu_t N / k less; it ends where the spring cannot break away, and is held there.

    The moment of the contact and that of the spring are opposite then.
    """
    stiffness, inertia, resistance, begin = 5.0, 0.02, 0.02, 0.4
    robot, grip = turntable(stiffness, inertia), resistance * GRAVITY / stiffness
    turn, omega = robot.joint_models["turn"].idx_v, np.sqrt(stiffness / inertia)
    contact = PointContact("c", "body", (0, 0, 0), torsional_friction=resistance)
    cycles = int(np.ceil((begin / grip - 1.0) / 2.0))
    dt = np.pi / omega / 7.0
    sim = simulator(robot, robot.configuration({"turn": begin}), None, [contact], dt=dt, **EVENTS)
    for k in range(cycles):
        for i in range(1, 8):
            sim.step()
            centre, amplitude = (-1) ** k * grip, (-1) ** k * (begin - (2 * k + 1) * grip)
            assert sim.state.q[turn] == pytest.approx(centre + amplitude * np.cos(np.pi * i / 7.0), abs=1e-11)
    rest = (-1) ** cycles * (begin - 2 * cycles * grip)
    for _ in range(5):
        result = sim.step()
    assert sim.state.q[turn] == pytest.approx(rest, abs=1e-11)
    assert np.abs(sim.state.v).max() < 1e-15
    assert result.contact_forces["c"].moment == pytest.approx([0, 0, stiffness * rest], abs=1e-11)


def test_a_holding_moment_gives_way_at_its_instant():
    """A flywheel on a spring on top of a body that the ground holds: it breaks away where ``k x = mu_t N``."""
    stiffness, flywheel, resistance, speed = 3.0, 0.01, 0.03, 8.0
    robot = Robot.from_mjcf(
        f"""<mujoco><option gravity="0 0 {-GRAVITY}"/><worldbody><body name="body">
        <joint name="z" type="slide" axis="0 0 1"/><joint name="turn" type="hinge" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="0.5" diaginertia="1 1 0.02"/>
        <body name="top"><joint name="spring" type="hinge" axis="0 0 1" stiffness="{stiffness}"/>
        <inertial pos="0 0 0" mass="0.5" diaginertia="1 1 {flywheel}"/></body></body></worldbody></mujoco>"""
    )
    contact = PointContact("c", "body", (0, 0, 0), torsional_friction=resistance)
    omega, most = np.sqrt(stiffness / flywheel), resistance * GRAVITY
    twist = most / stiffness
    breakaway = np.arcsin(twist * omega / speed) / omega
    sim = simulator(robot, robot.configuration({}), [0, 0, speed], [contact], dt=breakaway / 2.5, **EVENTS)
    moments = [sim.step().contact_forces["c"].moment[2] for _ in range(3)]
    # it is k x while it holds; from then on the most there is, against the turn
    held = stiffness * speed / omega**2 * (1.0 - np.cos(omega * np.array([0.4, 0.8, 1.0]) * breakaway))
    expected = np.diff([0.0, *held, held[-1] + most * 0.2 * breakaway])
    expected = np.array([*expected[:2], expected[2] + expected[3]]) / (0.4 * breakaway)
    assert moments == pytest.approx(-expected, abs=1e-10)


def test_bounces_do_not_change_when_a_spin_ends():
    """Impacts brake by mu_t times their impulse: the mean normal force is m g while it bounces, too.

    From rest to rest its impulse is m g t, so the spin ends at ``w I / (mu_t m g)`` after the ball is let go.
    """
    resistance, spin, height = 0.002, 30.0, 0.3
    contact = touching(friction=0.0, torsional_friction=resistance, restitution=0.6)
    sim = ball_on(contact, dt=0.02, **EVENTS)
    sim.reset([0, 0, RADIUS + height, 0, 0, 0, 1], [0, 0, 0, 0, 0, spin])
    trajectory = sim.run(6.2)
    rate = resistance * WEIGHT / INERTIA
    bounced = trajectory.impacts[-1].t
    assert len(trajectory.impacts) > 20 and bounced < 2.0
    resting = (trajectory.t > bounced) & (trajectory.t < spin / rate)
    assert trajectory.v[resting, 5] == pytest.approx(spin - rate * trajectory.t[resting], abs=1e-8)
    assert np.abs(trajectory.v[trajectory.t > spin / rate + 0.02]).max() < 1e-14
    assert all(impact.energy_lost >= 0.0 for impact in trajectory.impacts)


def test_a_spin_between_elastic_stops():
    """A stop with restitution 1 turns it back: the way to its end is w^2 / (2 |w'|), whichever direction."""
    resistance, inertia, speed, stop = 0.01, 0.02, 4.0, 0.5
    robot = turntable(0.0, inertia)
    turn = robot.joint_models["turn"].idx_v
    contact = PointContact("c", "body", (0, 0, 0), torsional_friction=resistance)
    limit = JointLimit("stop", "turn", -stop, stop, restitution=1.0)
    v = np.zeros(robot.nv)
    v[turn] = speed
    sim = simulator(robot, robot.configuration({}), v, [contact, limit], dt=0.01, **EVENTS)
    way = 0.5 * speed**2 * inertia / (resistance * GRAVITY)
    trajectory = sim.run(1.0)
    assert len(trajectory.impacts) == 2
    assert sim.state.q[turn] == pytest.approx(way - 4.0 * stop, abs=1e-11)
    assert np.abs(sim.state.v).max() < 1e-15


def ball_on_table(drive, rolling=(0.0, 0.0), resistance=ROLLING, **options):
    """Return a simulator with the ball at (0.3, 0) on a table that turns as `drive`, and what reads the ball's state.

    Args:
        drive: constant speed of the table [rad/s], or from t to speed and acceleration.
        rolling: velocity of the ball relative to the table [m/s].
        resistance: coefficient of rolling friction [m].
        options: of the simulator.
    """
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("table", 5.0, inertia=(1, 1, 2), shape='<box size="4 4 0.2"/>'),
            joint("axle", "continuous", "base", "table", (0, 0, 1), origin=(0, 0, -0.1)),
            link("ball", MASS, inertia=[INERTIA] * 3, shape=f'<sphere radius="{RADIUS}"/>'),
            joint("free", "floating", "base", "ball"),
        )
    )
    free, axle = robot.joint_models["free"], robot.joint_models["axle"]
    speed = drive(0.0)[0] if callable(drive) else drive
    q, v = robot.configuration({}), np.zeros(robot.nv)
    q[free.idx_q : free.idx_q + 3] = 0.3, 0.0, RADIUS
    along, beside = rolling
    v[axle.idx_v] = speed
    v[free.idx_v :][:6] = along, beside + speed * 0.3, 0.0, -beside / RADIUS, along / RADIUS, speed
    collisions = Collisions(
        friction=1.0, rolling_friction=resistance, torsional_friction=TORSIONAL, self_collision=True
    )
    sim = Simulator(robot, collisions=collisions, **options)
    sim.reset(q, v)
    sim.add(JointVelocity("drive", "axle", drive))

    def state():
        rotation = placement(robot, sim.state.q, "ball").rotation
        linear, angular = sim.state.v[free.idx_v :][:6].reshape(2, 3)
        return np.concatenate([sim.state.q[free.idx_q :][:2], (rotation @ linear)[:2], rotation @ angular])

    return sim, state


def rolling_on_table(drive, begin, end, y, resistance=ROLLING, method="DOP853"):
    """Return place along the table and angular velocity along it (4,) of a rolling ball at `end`, from y at `begin` on.

    The table, which turns as ``drive(t) -> (W, W')``, carries the point of contact: ``v + w x (-r n) = W n x x``. With
    ``m v' = F`` and ``I w' = -r n x F + m_r`` the force is
    ``F = (W' n x x + W n x v + r m_r x n / I) / (1 / m + r^2 / I)``.
    """
    up = np.array([0.0, 0.0, 1.0])

    def rates(t, y):
        (speed, gain), x, w = drive(t), np.array([*y[:2], 0.0]), np.array([*y[2:], 0.0])
        v = speed * np.cross(up, x) + RADIUS * np.cross(w, up)
        rolling = -resistance * WEIGHT * w / np.linalg.norm(w)
        a = gain * np.cross(up, x) + speed * np.cross(up, v) + RADIUS * np.cross(rolling, up) / INERTIA
        turn = (np.cross(-RADIUS * up, a / (1.0 / MASS + RADIUS**2 / INERTIA)) + rolling) / INERTIA
        return np.concatenate([v[:2], turn[:2]])

    return solve_ivp(rates, (begin, end), y, method=method, rtol=1e-11, atol=1e-13).y[:, -1]


@pytest.mark.parametrize("solver", ["direct", "range_space", "null_space"])
def test_a_ball_that_rolls_on_a_turning_table(solver):
    """Rolling relative to a surface that turns is resisted; spinning along with it is not, and stays."""
    speed = 2.0
    exact = rolling_on_table(lambda t: (speed, 0.0), 0.0, 0.5, [0.3, 0.0, -0.2 / RADIUS, 0.5 / RADIUS])
    sim, state = ball_on_table(speed, (0.5, 0.2), dt=0.02, solver=solver, **EVENTS)
    sim.run(0.5)
    assert state()[[0, 1, 4, 5, 6]] == pytest.approx([*exact, speed], abs=1e-10)


def test_a_ball_that_a_turning_table_carries():
    """A table that turns ever faster holds the ball by moments, until these leave their disc at a known instant.

    The force is ``F = m a`` of the circle, the moment along the surface ``r n x F``, and ``I W'`` about the normal.
    With ``W = alpha t`` it begins to roll where ``r rho (alpha^2 + W^4)^(1/2) = mu_r g``. The direction in which it
    does turns with the table from the beginning: as w is small, it is that of ``r n x F``, with ``w = k t^2 / 2`` where
    ``(I + m r^2) k`` is the rate of this moment.
    """
    alpha, rho, resistance = 0.5, 0.3, 0.01
    begins = ((resistance * GRAVITY / (RADIUS * rho)) ** 2 - alpha**2) ** 0.25 / alpha
    up = np.array([0.0, 0.0, 1.0])

    def drive(t):
        return alpha * t, alpha

    def circle(t):
        angle = 0.5 * alpha * t**2
        x = rho * np.array([np.cos(angle), np.sin(angle), 0.0])
        return x, alpha * t * np.cross(up, x), alpha * np.cross(up, x) - (alpha * t) ** 2 * x

    dt = begins / 60
    sim, state = ball_on_table(drive, resistance=resistance, dt=dt, **EVENTS)
    for k in range(60):
        (contact,) = sim.step().contact_forces.values()
        sign = 1.0 if contact.link == "ball" else -1.0
        force = MASS * (circle((k + 1) * dt)[1] - circle(k * dt)[1]) / dt
        assert sign * contact.force == pytest.approx(force + WEIGHT * up, abs=1e-9)
        assert sign * contact.moment == pytest.approx(RADIUS * np.cross(up, force) + INERTIA * alpha * up, abs=1e-10)
    x, v, _ = circle(begins)
    assert state() == pytest.approx([*x[:2], *v[:2], 0, 0, alpha * begins], abs=1e-10)
    sim.step()
    soon = 2e-5
    moment = -RADIUS * MASS * np.cross(up, circle(begins + soon)[2])
    rate = RADIUS * MASS * rho * 2.0 * alpha**4 * begins**3 / np.hypot(alpha, (alpha * begins) ** 2)
    w = 0.5 * soon**2 * rate / (INERTIA + MASS * RADIUS**2) * moment / np.linalg.norm(moment)
    y = [*circle(begins + soon)[0][:2], *w[:2]]
    exact = rolling_on_table(drive, begins + soon, begins + dt, y, resistance, "Radau")
    assert state()[[0, 1, 4, 5, 6]] == pytest.approx([*exact, alpha * (begins + dt)], abs=1e-9)


def test_two_links_that_turn_on_each_other():
    """Of a pair on one axle the moment mu_t N brakes one and drives the other, until both turn as one."""
    below, above, mass, slide, resistance, speed = 0.03, 0.02, 0.7, 1e-9, 0.05, 6.0
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("plate", 2.0, inertia=(1, 1, below), shape='<box size="1 1 0.2"/>'),
            joint("axle", "continuous", "base", "plate", (0, 0, 1), origin=(0, 0, -0.1)),
            link("slide", slide, inertia=(1e-12,) * 3),
            joint("lift", "prismatic", "base", "slide", (0, 0, 1), more=LIMIT),
            link("top", mass, inertia=(1, 1, above), shape='<sphere radius="0.1"/>'),
            joint("turn", "continuous", "slide", "top", (0, 0, 1)),
        )
    )
    sim = Simulator(robot, collisions=Collisions(torsional_friction=resistance, self_collision=True), dt=0.01, **EVENTS)
    v = np.zeros(robot.nv)
    turn, axle = robot.joint_models["turn"].idx_v, robot.joint_models["axle"].idx_v
    v[turn] = speed
    sim.reset(robot.configuration({"lift": RADIUS}), v)
    moment = resistance * (mass + slide) * GRAVITY
    until = speed / (moment * (1.0 / below + 1.0 / above))
    for step in range(40):
        result = sim.step()
        t = min((step + 1) * sim.dt, until)
        assert sim.state.v[turn] == pytest.approx(speed - moment * t / above, abs=1e-12)
        assert sim.state.v[axle] == pytest.approx(moment * t / below, abs=1e-12)
        (contact,) = result.contact_forces.values()
        braked = np.clip(until / sim.dt - step, 0.0, 1.0)
        sign = 1.0 if contact.link == "plate" else -1.0
        assert contact.moment == pytest.approx([0, 0, sign * braked * moment], abs=1e-11)
    assert until < 0.3


# -- what must hold always


@pytest.mark.parametrize(("stepper", "dt"), [("time_stepping", 1e-3), ("event_driven", 5e-3)])
@property_test(12)
@given(seed=seeds)
def test_energy_audit_closes_and_contacts_never_add_energy(stepper, dt, seed):
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
    sim = ball_on(contact, stepper=stepper, dt=dt)
    sim.reset([*((RADIUS + 0.05) * np.asarray(contact.surface.normal)), 0, 0, 0, 1], 3.0 * rng.normal(size=6))
    for _ in range(round(0.4 / dt)):
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
    """The spin changes by the moments of force and contact, whatever the step."""
    for dt in (1e-3, 1e-2):
        assert imbalance(dt, rolling_friction=0.01, torsional_friction=0.005) < 1e-12


def test_without_coefficients_every_bit_stays():
    """A contact with coefficients of zero, and one that never closes, change no bit of another's motion."""
    robot, runs = solo12(), []
    options = ({}, {"torsional_friction": 0.0, "rolling_friction": 0.0})
    for option in options:
        sim = simulator(robot, standing_solo(0.01), None, solo_contacts(friction=0.6, **option))
        runs.append(sim.run(0.1))
    assert np.array_equal(runs[0].q, runs[1].q)
    assert np.array_equal(runs[0].contact_moments["FL_FOOT"], np.zeros((100, 3)))


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_many_contacts_that_share_a_body(stepper):
    """Four corners that resist turning hold a block on a slope: 24 rows of rank six, and it does not move."""
    angle = 0.3
    normal = (np.sin(angle), 0, np.cos(angle))
    half = (0.15, 0.10, 0.05)
    contacts = corners(half, friction=0.6, surface=Plane(normal), torsional_friction=0.01, rolling_friction=0.01)
    q = np.array([*(half[2] * np.array(normal)), *tilted(angle)])
    sim = simulator(block(half), q, None, contacts, stepper=stepper)
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
    rolling = [(c, size, rng.uniform(0, 0.05), rng.choice([0.0, 0.01]), 0, 0) for c in range(count) for size in (2, 1)]
    G = J @ np.linalg.solve(M, J.T)
    return ContactProblem(
        0.5 * (G + G.T), J @ v, rng.uniform(0, 1, count), np.zeros((count, 2)), rolling=np.array(rolling)
    )


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
    for moment, (contact, size, coefficient, least, *_) in enumerate(given_problem.rolling):
        rows = slice(row, row + int(size))
        radius = least + coefficient * r[3 * int(contact) + 2]
        length, motion = np.linalg.norm(r[rows]), np.linalg.norm(u[rows])
        assert length <= radius + 1e-10 * push
        status = solution.status[len(given_problem.friction) + moment]
        if length < radius - 1e-8 * push:
            assert motion < 1e-8 * speed and status == STICKING
        elif motion > 1e-6 * speed:
            assert np.abs(r[rows] * motion + radius * u[rows]).max() <= 1e-9 * push * motion
            assert status == (SLIDING if least or solution.status[int(contact)] else OPEN)
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
    """Gauss' principle, by name."""
    with pytest.raises(NotSupported, match="'c'"):
        ball_on(touching(friction=0.0, rolling_friction=0.01), solver="gauss")


def test_trajectories_keep_the_moments(tmp_path):
    """Saved and loaded."""
    sim = ball_on(touching(rolling_friction=0.01), [1.0, 0, 0, 0, 1.0 / RADIUS, 0])
    trajectory = sim.run(0.01)
    trajectory.save(tmp_path / "run.npz")
    loaded = Trajectory.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.contact_moments["c"], trajectory.contact_moments["c"])
    assert loaded.contact_moments["c"][-1][1] == pytest.approx(-0.01 * WEIGHT, rel=1e-9)


RESISTANCES = [
    {"rolling_friction": 0.01},
    {"torsional_friction": 0.01},
    {"rolling_friction": 0.01, "torsional_friction": 0.02},
]
every_resistance = pytest.mark.parametrize("resistance", RESISTANCES, ids=["rolling", "torsional", "both"])


@every_resistance
def test_a_box_that_slides_on_four_corners_slides_straight(resistance):
    """Its contacts depend on each other; of all forces that obey the laws the symmetric ones act."""
    robot = block()
    feet = corners(friction=0.4, **resistance)
    q, v = robot.configuration({}, (0, 0, BLOCK_HALF[2], 0, 0, 0, 1)), np.array([2.0, 0, 0, 0, 0, 0])
    sim = Simulator(robot, feet, q=q, v=v, dt=1e-3)
    result = sim.step()
    normal = np.array([contact.force[2] for contact in result.contact_forces.values()])
    assert normal.sum() == pytest.approx(robot.mass * GRAVITY, rel=1e-11)  # the accuracy of the limit
    points = np.array([foot.point for foot in feet])
    assert normal @ points[:, 1] == pytest.approx(0.0, abs=1e-10)
    sim.run(0.3)
    assert sim.state.q[1] == pytest.approx(0.0, abs=1e-12)
    assert sim.state.v[5] == pytest.approx(0.0, abs=1e-9)
    jump = resolve_impact(robot, q, [1.0, 0, -1.0, 0, 0, 0], feet)
    assert jump.v_plus[[1, 5]] == pytest.approx(0.0, abs=1e-10)


@every_resistance
def test_every_method_finds_the_same_forces_of_a_box_that_slides_and_spins(resistance):
    reference = None
    for method in METHODS:
        sim = Simulator(
            block(),
            corners(friction=0.4, **resistance),
            q=block().configuration({}, (0, 0, BLOCK_HALF[2], 0, 0, 0, 1)),
            v=[0.5, 0.1, 0, 0, 0, 3.0],
            dt=1e-3,
            contact_method=method,
        )
        result = sim.step()
        found = np.concatenate([contact.force for contact in result.contact_forces.values()])
        reference = found if reference is None else reference
        np.testing.assert_allclose(found, reference, atol=1e-8)
        assert found[2::3].min() > 0.0


@pytest.mark.parametrize("rolling_friction", [0.01, 0.001])
def test_a_box_that_resists_rolling_slides_to_its_rest_in_few_events(rolling_friction):
    """It stops where friction has taken its kinetic energy, without a turn."""
    sim = Simulator(
        block(),
        corners(friction=0.4, rolling_friction=rolling_friction),
        q=block().configuration({}, (0, 0, BLOCK_HALF[2], 0, 0, 0, 1)),
        v=[2.0, 0, 0, 0, 0, 0],
        dt=0.01,
        **EVENTS,
    )
    sim.run(0.7)
    assert sim.state.q[0] == pytest.approx(2.0**2 / (2.0 * 0.4 * GRAVITY), rel=1e-9)
    np.testing.assert_allclose(sim.state.q[[1, 3, 4, 5]], 0.0, atol=1e-9)
    np.testing.assert_allclose(sim.state.v, 0.0, atol=1e-9)

"""Poisson's law of restitution: closed forms, Newton's law where both agree, energy, cones."""

import numpy as np
import pytest
from hypothesis import given
from mechanisms import (
    LIMIT,
    SOLO_FEET,
    ball,
    block,
    corners,
    every_solver,
    joint,
    kinetic_energy,
    link,
    placement,
    property_test,
    random_state,
    relative,
    rod,
    seeds,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
    urdf,
)

from constrained_sim import (
    Collisions,
    Frictionless,
    JointLimit,
    JointVelocity,
    Plane,
    PointAnchor,
    PointContact,
    PointDistance,
    Robot,
    Simulator,
    Sticking,
    WorldObject,
    resolve_impact,
)
from constrained_sim.exceptions import NonFiniteState, UnknownName

LAWS = ("newton", "poisson")
HALF, INERTIA = 0.5, 1.0 / 12.0
"""Of the rod of 1 kg: half its length [m], moment about its centre [kg m^2]."""


def tip(law, friction, restitution):
    """Return a contact at the lower end of the rod."""
    return PointContact("tip", "rod", (0, 0, -HALF), friction=friction, restitution=restitution, restitution_law=law)


def falling_rod(angle, v_x, spin):
    """Return a rod that leans by `angle`, its centre falling at 1 m/s: (robot, q, v), G (x, z) and s of its tip."""
    robot = rod()
    q = robot.configuration({}, [0, 0, 0, *tilted(angle)])
    v = np.concatenate([placement(robot, q, "rod").rotation.T @ [v_x, 0, -1.0], [0, spin, 0]])
    x, z = -HALF * np.sin(angle), -HALF * np.cos(angle)
    G = np.eye(2) + np.array([[z * z, -x * z], [-x * z, x * x]]) / INERTIA
    return (robot, q, v), G, np.array([v_x + spin * z, -1.0 - spin * x])


def strike(state, law, friction, restitution):
    """Return the impact of the rod's tip, and its impulse and velocity after along (x, z)."""
    impact = resolve_impact(*state, [tip(law, friction, restitution)])
    return impact, impact.impulse[[0, 2]], impact.row_velocity_plus[[0, 2]]


# -- one contact


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("friction", [0.0, 0.05, 0.5])
def test_a_ball_bounces_as_under_newtons_law(friction, restitution):
    """The normal row of a ball feels no friction: v_n+ = -e v_n-, and both laws are one."""
    robot, v = ball(), np.array([0.4, 0.1, -2.0, 0, 3.0, 1.0])
    q = robot.configuration({}, [0, 0, 0.1, 0, 0, 0, 1])
    impacts = [
        resolve_impact(
            robot,
            q,
            v,
            [
                PointContact(
                    "ball",
                    "ball",
                    (0, 0, 0),
                    friction=friction,
                    restitution=restitution,
                    radius=0.1,
                    restitution_law=law,
                )
            ],
        )
        for law in LAWS
    ]
    newton, poisson = impacts
    assert poisson.v_plus[2] == pytest.approx(2.0 * restitution, abs=1e-14)
    assert np.abs(poisson.v_plus - newton.v_plus).max() < 1e-13
    assert np.abs(poisson.impulse - newton.impulse).max() < 1e-13
    assert poisson.restitution_scale == 1.0


@pytest.mark.parametrize("angle", [0.3, 0.8, 1.2])
def test_rod_without_friction(angle):
    """s_n+ = -e s_n-, with the impulse (1 + e) |s_n-| / G_nn, under either law."""
    state, G, s = falling_rod(angle, 0.5, -1.0)
    for law in LAWS:
        _, impulse, s_plus = strike(state, law, 0.0, 0.6)
        assert impulse == pytest.approx([0.0, -1.6 * s[1] / G[1, 1]], abs=1e-13)
        assert s_plus[1] == pytest.approx(-0.6 * s[1], abs=1e-13)


@pytest.mark.parametrize(("v_x", "spin"), [(0.3, 0.0), (-0.4, 0.5), (0.0, -1.0)])
def test_rod_that_sticks_in_both_phases(v_x, spin):
    """Poisson returns s_n+ = -e (s_n - G_tn / G_tt s_t), Newton -e s_n.

    While the tip sticks its normal mass is 1 / (G_nn - G_tn^2 / G_tt), and what is compressed is the approach that is
    left when the slip has been stopped.
    """
    (state, G, s), e = falling_rod(0.6, v_x, spin), 0.5
    mass = 1.0 / (G[1, 1] - G[0, 1] ** 2 / G[0, 0])
    approach = s[1] - G[0, 1] / G[0, 0] * s[0]
    compression = -np.linalg.solve(G, s)
    expansion = -e * mass * approach * np.array([-G[0, 1] / G[0, 0], 1.0])
    assert compression[1] == pytest.approx(-mass * approach)
    impact, impulse, s_plus = strike(state, "poisson", 5.0, e)
    assert impulse == pytest.approx(compression + expansion, abs=1e-13)
    assert s_plus == pytest.approx([0.0, -e * approach], abs=1e-13)
    assert impact.restitution_scale == 1.0
    newton, _, s_newton = strike(state, "newton", 5.0, e)
    if newton.restitution_scale == 1.0:
        assert s_newton == pytest.approx([0.0, -e * s[1]], abs=1e-13)
        assert abs(s_newton[1] - s_plus[1]) > 0.05


def test_what_does_not_rebound_is_not_reduced():
    """Without restitution there is none to reduce, whatever slides or sticks, and it takes energy."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        state, _, s = falling_rod(*rng.uniform(-1.0, 1.0, 3))
        for law in LAWS:
            impact, _, s_plus = strike(state, law, rng.uniform(0.0, 1.5), 0.0)
            assert impact.restitution_scale == 1.0
            assert impact.energy_lost >= -1e-15
            assert s_plus[1] == pytest.approx(max(s[1], 0.0), abs=1e-13)


def test_rod_that_slides_in_both_phases():
    """With the friction -mu r_n throughout both laws give r_n = (1 + e) |s_n| / (G_nn - mu G_tn)."""
    (state, G, s), friction, e = falling_rod(-0.4, 3.0, 0.0), 0.2, 0.7
    normal = -(1.0 + e) * s[1] / (G[1, 1] - friction * G[0, 1])
    for law in LAWS:
        _, impulse, s_plus = strike(state, law, friction, e)
        assert impulse == pytest.approx([-friction * normal, normal], abs=1e-13)
        assert s_plus[0] > 0.1
        assert s_plus[1] == pytest.approx(-e * s[1], abs=1e-13)


def test_rod_that_slides_and_then_sticks():
    """Slip survives the compression and ends in the expansion: then the laws differ, and this is Poisson's."""
    (state, G, s), friction, e = falling_rod(0.4, 1.75, 0.0), 0.6, 0.8
    pressed = -s[1] / (G[1, 1] - friction * G[0, 1])
    compression = pressed * np.array([-friction, 1.0])
    slip = (s + G @ compression)[0]
    back = e * pressed
    expansion = np.array([-(slip + G[0, 1] * back) / G[0, 0], back])
    assert slip > 0.01
    assert abs(expansion[0]) < friction * expansion[1]
    _, impulse, s_plus = strike(state, "poisson", friction, e)
    assert impulse == pytest.approx(compression + expansion, abs=1e-13)
    assert s_plus == pytest.approx(s + G @ (compression + expansion), abs=1e-13)
    assert s_plus[0] == pytest.approx(0.0, abs=1e-13)
    assert abs(s_plus[1] + e * s[1]) > 0.05


@pytest.mark.parametrize("friction", [0.6, 1.0, 2.0])
def test_poisson_keeps_the_energy_where_newton_creates_some(friction):
    """The rod whose restitution Newton's law must reduce: Poisson's needs no reduction, and loses energy."""
    state, _, _ = falling_rod(0.8, 0.0, -4.0)
    newton, _, _ = strike(state, "newton", friction, 1.0)
    poisson, _, _ = strike(state, "poisson", friction, 1.0)
    assert newton.restitution_scale < 1.0
    assert poisson.restitution_scale == 1.0
    assert poisson.energy_lost > 0.01 * kinetic_energy(*state)


@property_test(150)
@given(seed=seeds)
def test_no_impact_of_a_rod_creates_energy(seed):
    """Any lean, spin, friction and restitution: no energy, impulse in the cone, no slip reversed by friction alone."""
    rng = np.random.default_rng(seed)
    state, G, s = falling_rod(rng.uniform(-1.5, 1.5), rng.uniform(-3, 3), rng.uniform(-6, 6))
    friction, restitution = rng.uniform(0, 2), rng.uniform()
    impact, impulse, s_plus = strike(state, "poisson", friction, restitution)
    before = kinetic_energy(*state)
    assert impact.energy_lost >= -1e-13 * 2.0 * before
    assert impact.energy_lost == pytest.approx(before - kinetic_energy(*state[:2], impact.v_plus), abs=1e-12)
    assert impulse[1] >= 0.0
    assert abs(impulse[0]) <= friction * impulse[1] * (1 + 1e-12) + 1e-15
    assert s_plus == pytest.approx(s + G @ impulse, abs=1e-11)
    plastic = resolve_impact(*state, [tip("poisson", friction, 0.0)])
    returned = (1.0 + impact.restitution_scale * restitution) * plastic.impulse[2]
    assert impulse[1] >= returned * (1 - 1e-12)


# -- several contacts


def lying_rod(v_left, v_right):
    """Return a rod that lies along x, its ends moving up at these velocities: robot, q, v."""
    robot = rod()
    q = robot.configuration({}, [0, 0, 0, *tilted(0.5 * np.pi)])
    # The rod's own z axis is the world's x axis; its lower end is at -x.
    rate = (v_left - v_right) / (2.0 * HALF)
    return robot, q, np.array([-0.5 * (v_left + v_right), 0, 0, 0, rate, 0])


def ends(left, right, law="poisson", **options):
    """Return contacts at both ends with these coefficients of restitution."""
    places = (("left", -HALF, left), ("right", HALF, right))
    return [
        PointContact(name, "rod", (0, 0, z), restitution=e, restitution_law=law, **options) for name, z, e in places
    ]


def test_rocking_rod_rebounds_at_the_end_that_was_at_rest():
    """The right end comes down at v; the left one, at rest, is pressed by half as much, and gives e of it back.

    Compression: r = (1/6, 1/3) m v. With e at the left end only, expansion: r_left = e m v / 6, which the right end
    must stop with half of it: s_left = e v / 2. Newton's coefficient multiplies the vanishing approach: no rebound.
    """
    state, e = lying_rod(0.0, -2.0), 0.8
    impact = resolve_impact(*state, ends(e, 0.0))
    assert impact.row_velocity_minus[[2, 5]] == pytest.approx([0.0, -2.0], abs=1e-14)
    assert impact.row_velocity_plus[[2, 5]] == pytest.approx([0.5 * e * 2.0, 0.0], abs=1e-13)
    assert impact.impulse[[2, 5]] == pytest.approx([2.0 * (1 + e) / 6, 2.0 * (1 / 3 + e / 12)], abs=1e-13)
    newton = resolve_impact(*state, ends(e, 0.0, "newton"))
    assert np.abs(newton.row_velocity_plus[[2, 5]]).max() < 1e-13


def test_either_law_may_be_that_of_each_contact():
    """Newton's contact keeps its rebound velocity through the expansion of the other, or is driven on by it."""
    state = lying_rod(-1.0, -1.0)
    contacts = [ends(0.5, 0.0, "newton")[0], ends(0.0, 0.5)[1]]
    impact = resolve_impact(*state, contacts)
    # Compression brings the left end to 0.5 and the right one to 0; then the right one gives half of its impulse back.
    G = np.array([[4.0, -2.0], [-2.0, 4.0]])
    compression = np.linalg.solve(G, [1.5, 1.0])
    right = 0.5 * compression[1]
    left = right * 2.0 / 4.0
    assert impact.impulse[[2, 5]] == pytest.approx(compression + np.array([left, right]), abs=1e-13)
    assert impact.row_velocity_plus[[2, 5]] == pytest.approx([0.5, G[1] @ [left, right]], abs=1e-13)


@property_test(40)
@given(seed=seeds)
def test_without_friction_and_with_one_coefficient_both_laws_agree(seed):
    """All contacts approach: r_E = e r_C solves the expansion, and (1 + e) r_C Newton's problem."""
    rng = np.random.default_rng(seed)
    robot, restitution = solo12(), rng.uniform()
    q, v = standing_solo(tilt=rng.uniform(-0.3, 0.3)), np.concatenate([[0.3, 0.1, -1.0], 0.2 * rng.normal(size=15)])
    impacts = [
        resolve_impact(robot, q, v, solo_contacts(restitution=restitution, restitution_law=law, law=Frictionless()))
        for law in LAWS
    ]
    if (impacts[0].row_velocity_minus.reshape(4, 3)[:, 2] > 0.0).any():
        return
    assert relative(impacts[1].v_plus, impacts[0].v_plus) < 1e-10
    assert relative(impacts[1].impulse, impacts[0].impulse) < 1e-10


def test_flat_landing_on_redundant_corners():
    """Four corners, twelve rows of rank six: the block leaves at e times its speed, with the least-norm impulses."""
    robot, half = block(), (0.15, 0.10, 0.05)
    q = robot.configuration({}, [0, 0, half[2], 0, 0, 0, 1])
    impact = resolve_impact(
        robot, q, [0, 0, -1.0, 0, 0, 0], corners(friction=0.5, restitution=0.6, restitution_law="poisson")
    )
    assert impact.v_plus == pytest.approx([0, 0, 0.6, 0, 0, 0], abs=1e-12)
    assert impact.impulse.reshape(4, 3)[:, 2] == pytest.approx(np.full(4, 0.25 * 2.0 * 1.6), abs=1e-12)
    assert impact.dynamics_residual < 1e-12


@pytest.mark.parametrize("restitution", [0.3, 1.0])
@property_test(40)
@given(seed=seeds)
def test_no_landing_creates_energy(restitution, seed):
    """Blocks on their corners and quadrupeds on their feet: energy, cones, and nothing that sinks in afterwards."""
    rng = np.random.default_rng(seed)
    friction, options = rng.uniform(0, 1), {"restitution": restitution, "restitution_law": "poisson"}
    if rng.integers(2):
        robot = solo12()
        q, v = standing_solo(), np.concatenate([[0.5, 0.2, -1.0], rng.normal(size=15)])
        contacts = solo_contacts(friction=friction, **options)
    else:
        robot = block()
        q = robot.configuration({}, [0, 0, 0, *tilted(rng.uniform(-0.4, 0.4), int(rng.integers(3)))])
        v = np.concatenate([rng.normal(size=2), [-1.0], 3.0 * rng.normal(size=3)])
        contacts = corners(friction=friction, **options)
    impact, before = resolve_impact(robot, q, v, contacts), kinetic_energy(robot, q, v)
    assert impact.energy_lost >= -1e-12 * before
    assert impact.energy_lost == pytest.approx(before - kinetic_energy(robot, q, impact.v_plus), abs=1e-11 * before)
    impulses = impact.impulse.reshape(-1, 3)
    push = max(np.abs(impulses).max(), 1e-300)
    assert (impulses[:, 2] >= 0.0).all()
    assert (np.hypot(impulses[:, 0], impulses[:, 1]) <= friction * impulses[:, 2] + 1e-9 * push).all()
    assert impact.row_velocity_plus.reshape(-1, 3)[:, 2].min() > -1e-9 * np.abs(v).max()


@property_test(10)
@given(seed=seeds)
def test_solvers_agree(seed):
    """Anchors, redundant ones too, hold through both phases; motion and impulses do not depend on the solver."""
    robot, q, rng = solo12(), standing_solo(), np.random.default_rng(seed)
    v = random_state(robot, rng)[1]
    constraints = [
        PointAnchor("held", SOLO_FEET[0], (0, 0, 0)),
        PointAnchor("again", SOLO_FEET[0], (0, 0, 0)),
        *solo_contacts(friction=0.6, restitution=0.5, restitution_law="poisson")[1:],
    ]
    impacts = [resolve_impact(robot, q, v, constraints, solver) for solver in every_solver(constraints)]
    for impact in impacts:
        assert relative(impact.v_plus, impacts[0].v_plus) < 1e-9
        assert relative(impact.impulse, impacts[0].impulse) < 1e-9
        assert np.abs(impact.row_velocity_plus[:6]).max() < 1e-11 * np.abs(v).max()
        assert impact.dynamics_residual < 1e-11


def test_limits_and_prescribed_velocities_hold():
    """A limit that is reached stays shut through the expansion; a prescribed normal velocity is a lower bound."""
    robot, q = solo12(), standing_solo()
    name = "FL_KFE"
    limit = JointLimit("stop", name, float(q[robot.model.joints[robot.model.getJointId(name)].idx_q]), np.inf)
    v = np.zeros(robot.nv)
    v[2] = -1.0
    contacts = solo_contacts(friction=0.6, restitution=0.9, restitution_law="poisson")
    impact = resolve_impact(robot, q, v, [limit, *contacts])
    rows = impact.constraints.slice("stop")
    assert impact.row_velocity_plus[rows][0] >= -1e-12
    assert impact.multipliers("stop")[0] >= 0.0
    state = lying_rod(-1.0, -1.0)
    raised, driven = (resolve_impact(*state, ends(e, e), row_velocity_plus={"left": (0, 0, 3.0)}) for e in (0.0, 0.5))
    assert raised.row_velocity_plus[[2, 5]] == pytest.approx([3.0, 0.0], abs=1e-12)
    assert driven.row_velocity_plus[2] >= 3.0


def test_a_sticking_contact_rebounds_without_slip():
    """Held along its surface in both phases, whatever that takes."""
    state, G, s = falling_rod(0.6, 2.0, 0.0)
    contact = PointContact("tip", "rod", (0, 0, -HALF), law=Sticking(), restitution=0.5, restitution_law="poisson")
    impact = resolve_impact(*state, [contact])
    assert impact.restitution_scale == 1.0
    assert impact.row_velocity_plus[[0, 2]] == pytest.approx([0.0, -0.5 * (s[1] - G[0, 1] / G[0, 0] * s[0])], abs=1e-13)


# -- in simulations


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_bouncing_ball(stepper):
    """A ball bounces under Poisson's law as under Newton's, and comes to rest."""
    paths = []
    for law in LAWS:
        contact = PointContact("c", "ball", (0, 0, 0), restitution=0.5, radius=0.1, restitution_law=law)
        sim = simulator(ball(), [0, 0, 0.3, 0, 0, 0, 1], None, [contact], stepper=stepper, dt=2e-3)
        trajectory = sim.run(1.0)
        assert trajectory.impacts[0].v_plus[2] == pytest.approx(-0.5 * trajectory.impacts[0].v_minus[2], rel=1e-12)
        assert trajectory.q[-1, 2] == pytest.approx(0.1, abs=1e-9)
        paths.append(trajectory.q)
    assert np.abs(paths[0] - paths[1]).max() < 1e-9


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_rod_rocks_to_rest(stepper):
    """Its ends hit in turn; it loses energy in every impact and lies still in the end."""
    robot, q, v = lying_rod(0.0, 0.0)
    v[4] = -1.0
    sim = simulator(robot, q, v, ends(0.5, 0.5, friction=0.3), stepper=stepper, dt=2e-3)
    trajectory = sim.run(1.2)
    assert len(trajectory.impacts) > 3
    assert all(impact.energy_lost >= -1e-12 for impact in trajectory.impacts)
    assert np.abs(trajectory.v[-1]).max() < 1e-9


def test_unknown_law_is_refused():
    """With the laws that exist."""
    with pytest.raises(UnknownName, match="newton"):
        tip("stronge", 0.0, 0.5)


# -- impacts with what is driven


@pytest.mark.parametrize("law", ["newton", "poisson"])
@pytest.mark.parametrize("restitution", [0.0, 0.8, 1.0])
@pytest.mark.parametrize(("table", "speed"), [(1.0, -2.0), (1.0, 0.0), (-0.5, -2.0)])
def test_ball_on_a_driven_table(table: float, speed: float, restitution: float, law: str) -> None:
    """``v_plus = w + e (w - v)``: the work of the drive is no gain, and ``m (1 - e^2) (w - v)^2 / 2`` is dissipated."""
    mass = 0.3
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("table", 1.0, shape='<box size="1 1 0.1"/>'),
            joint("lift", "prismatic", "base", "table", (0, 0, 1), more=LIMIT),
            link("ball", mass, shape='<sphere radius="0.05"/>'),
            joint("fall", "prismatic", "base", "ball", (0, 0, 1), more=LIMIT),
        ),
        gravity=(0.0, 0.0, 0.0),
    )
    collisions = Collisions(restitution=restitution, restitution_law=law, self_collision=True)
    for stepper in ("time_stepping", "event_driven"):
        sim = Simulator(robot, stepper=stepper, dt=1e-3, collisions=collisions)
        start = {"lift": table, "fall": speed}
        sim.reset(robot.configuration({"fall": 0.101}), [start[name] for name in robot.joint_names])
        sim.add(JointVelocity("drive", "lift", table))
        while not (impacts := sim.step().impacts):
            assert sim.state.t < 0.1
        (impact,) = impacts
        after = impact.v_plus[robot.joint_names.index("fall")]
        assert after == pytest.approx(table + restitution * (table - speed), abs=1e-9)
        assert impact.restitution_scale == 1.0
        loss = 0.5 * mass * (1.0 - restitution**2) * (table - speed) ** 2
        assert impact.dissipated == pytest.approx(loss, abs=1e-9)
        assert impact.energy_lost == pytest.approx(0.5 * mass * (speed**2 - after**2), abs=1e-9)
        assert sim.integration_energy() == pytest.approx(0.0, abs=1e-9)


def test_bounce_does_not_depend_on_the_speed_of_the_carriage() -> None:
    """Galilei: a rod that falls onto a stop of its carriage, which is driven at any speed."""
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("carriage", 1.0),
            joint("rail", "prismatic", "base", "carriage", (1, 0, 0), more=LIMIT),
            link("rod", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)),
            joint("pivot", "continuous", "carriage", "rod"),
        )
    )
    for speed in (0.0, 5.0, -20.0):
        drive = JointVelocity("drive", "rail", speed)
        stop = PointContact("stop", "rod", (1.0, 0.0, 0.0), restitution=0.5)
        impact = resolve_impact(robot, robot.neutral(), [speed, 1.0], [drive, stop])
        assert impact.v_plus == pytest.approx([speed, -0.5], abs=1e-12)


# -- impacts without a solution


@pytest.mark.parametrize("restitution", [0.5, 1.0])
@pytest.mark.parametrize("friction", [0.2, 0.32, 0.5, 2.0])
def test_tip_that_jams_stops(friction: float, restitution: float) -> None:
    """A pendulum strikes a rough floor at a shallow angle: Newton's rebound has no solution above friction tan(angle).

    Any impulse along the edge of the cone presses then, so that nothing rebounds; without restitution the tip sticks,
    its impulse ``m v / sin(angle)`` along the rod at most.
    """
    angle, spin, mass, moment = 0.3, -2.0, 1.0, 0.01
    pendulum = Robot.from_urdf(
        urdf('<link name="w"/>', link("l", mass, (0, 0, -1), (moment,) * 3), joint("j", "continuous", "w", "l"))
    )
    q = pendulum.configuration({"j": angle})
    floor = Plane(offset=-np.cos(angle))
    contact = PointContact("tip", "l", (0, 0, -1), floor, friction=friction, restitution=restitution)
    impact = resolve_impact(pendulum, q, [spin], [contact])
    slides = friction < np.tan(angle)
    assert impact.restitution_scale == (1.0 if slides else 0.0)
    assert impact.v_plus[0] == pytest.approx(-restitution * spin if slides else 0.0, abs=1e-9)
    inertia = mass + moment
    lever = np.array([-np.cos(angle), np.sin(angle)])
    impulse = impact.impulse[[0, 2]]
    assert lever @ impulse == pytest.approx(inertia * (impact.v_plus[0] - spin), rel=1e-9)
    assert abs(impulse[0]) <= friction * impulse[1] * (1.0 + 1e-9)
    assert np.abs(impulse).max() < 50.0
    assert impact.energy_lost > -1e-12
    for stepper in ("time_stepping", "event_driven"):
        sim = simulator(pendulum, pendulum.configuration({"j": angle + 0.01}), [spin], [contact], stepper=stepper)
        (found,) = (impact for _ in range(12) for impact in sim.step().impacts)
        assert found.restitution_scale == impact.restitution_scale
        assert found.impulse == pytest.approx(impact.impulse, rel=0.02, abs=1e-9)


def mass_on_a_rail(mass: float) -> Robot:
    """Return a mass that moves up and down."""
    rail = joint("rail", "prismatic", "w", "m", (0, 0, 1), more=LIMIT)
    return Robot.from_urdf(urdf('<link name="w"/>', link("m", mass), rail))


def test_what_is_caught_does_not_rebound() -> None:
    """A mass that touches an elastic floor is grabbed in the same instant: it stops, and loses its energy."""
    mass = mass_on_a_rail(2.0)
    caught = [PointContact("floor", "m", (0, 0, 0), restitution=0.5), PointAnchor("catch", "m", (0, 0, 0))]
    for solver in every_solver(caught):
        if solver.name != "gauss":  # which refuses what has no motion, whatever the restitution
            impact = resolve_impact(mass, [0.0], [-1.0], caught, solver)
            assert impact.v_plus == pytest.approx([0.0], abs=1e-12)
            assert impact.impulse[[2, 5]].sum() == pytest.approx(2.0, rel=1e-9)
            assert np.abs(impact.impulse).max() <= 2.0 + 1e-9
            assert impact.energy_lost == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_what_is_driven_into_the_ground_fails(stepper: str) -> None:
    """A moving anchor that presses a body into a rigid floor leaves no motion: an error, not forces of 1e300 N."""

    def path(t: float) -> tuple[tuple[float, ...], ...]:
        return (0, 0, 0.001 - 0.5 * t * t), (0, 0, -t), (0, 0, -1.0)

    sim = simulator(mass_on_a_rail(1.0), [0.001], [0.0], stepper=stepper, dt=1e-2)
    sim.add(PointContact("floor", "m", (0, 0, 0)))
    sim.add(PointAnchor("press", "m", (0, 0, 0), point_b=path))
    with pytest.raises(NonFiniteState):
        for _ in range(10):
            result = sim.step()
            assert np.abs(result.lam).max() < 20.0
    assert sim.state.q[0] == pytest.approx(0.0002, abs=1e-9)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
@pytest.mark.parametrize("speed", [9e-3, 1e-4])
def test_slow_bodies_bounce_where_nothing_pulls_them_back(speed: float, dt: float) -> None:
    """Two satellites that dock at millimetres per second: by momentum and Newton's coefficient."""
    restitution = 0.9
    shape = '<collision><geometry><sphere radius="0.5"/></geometry></collision>'
    inertia = '<mass value="100"/><inertia ixx="10" iyy="10" izz="10" ixy="0" ixz="0" iyz="0"/>'
    text = f'<robot name="chaser"><link name="body"><inertial>{inertia}</inertial>{shape}</link></robot>'
    chaser = Robot.from_urdf(text, floating_base=True, gravity=(0, 0, 0))
    target = WorldObject.sphere("target", 0.5, 100.0, pose=(1.0 + 2.0 * speed, 0, 0, 0, 0, 0, 1))
    v = np.zeros(12)
    v[0] = speed
    sim = Simulator(chaser.with_objects([target]), collisions=Collisions({}, restitution=restitution), dt=dt, v=v)
    (impact,) = sim.run(4.0).impacts
    assert impact.t == pytest.approx(2.0, rel=1e-4)
    after = 0.5 * speed * np.array([1.0 - restitution, 1.0 + restitution])
    assert sim.state.v[[0, 6]] == pytest.approx(after, rel=1e-12)


@pytest.mark.parametrize(("dt", "speed"), [(1e-4, 0.08), (1e-5, 0.08), (1e-6, 0.08), (1e-5, 1e-3), (1e-6, 2e-3)])
def test_in_short_steps_an_impact_is_no_force(dt: float, speed: float) -> None:
    """A ball that falls for some steps comes up again as high and as fast, and no force holds its impulse.

    But for the gap of 1e-8 m that counts as closed.
    """
    fall, gap = 20.5 * dt, 1e-8
    height = speed * fall + 0.5 * 9.81 * fall**2
    touch = PointContact("touch", "ball", (0, 0, 0), radius=0.1, restitution=1.0)
    sim = Simulator(ball(), [touch], dt=dt, q=[0, 0, 0.1 + height, 0, 0, 0, 1], v=[0, 0, -speed, 0, 0, 0])
    trajectory = sim.run(41 * dt)
    assert [impact.t for impact in trajectory.impacts] == pytest.approx([fall], abs=1.1 * gap / speed)
    assert not trajectory.contact_forces["touch"].any()
    assert trajectory.q[-1, 2] - 0.1 == pytest.approx(height, abs=2.2 * gap)
    assert trajectory.v[-1, 2] == pytest.approx(speed, abs=2.2 * 9.81 * gap / speed)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
@pytest.mark.parametrize("how", ["add", "enable", "reset"])
@pytest.mark.parametrize("is_detected", [False, True], ids=["declared", "detected"])
def test_ground_takes_part_when_a_bar_stops_a_ball(is_detected: bool, how: str, stepper: str) -> None:
    """A bar to a point ahead and above may not be shortened: together with the ground it leaves no velocity.

    Whether the ground is that of a declared contact, or of collision geometry.
    """
    shape = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    inertia = '<mass value="1"/><inertia ixx="4e-3" iyy="4e-3" izz="4e-3" ixy="0" ixz="0" iyz="0"/>'
    text = f'<robot name="ball"><link name="ball"><inertial>{inertia}</inertial>{shape}</link></robot>'
    robot = Robot.from_urdf(text, floating_base=True)
    touch = PointContact("touch", "ball", (0, 0, 0), radius=0.1, friction=0.0)
    bar = PointDistance("bar", "ball", (0, 0, 0), "world", (1.0, 0.0, 1.1), distance=np.sqrt(2.0))
    q, v = [0, 0, 0.1, 0, 0, 0, 1], [1.0, 0, 0, 0, 0, 0]
    ground = Collisions({"ground": Plane()}, friction=0.0) if is_detected else None
    sim = Simulator(robot, () if is_detected else [touch], stepper, collisions=ground, q=q, v=v)
    if how == "add":
        assert sim.add(bar).energy_lost == pytest.approx(0.5, rel=1e-12)
    else:
        sim.add(bar, enabled=False)
        assert sim.enable("bar").energy_lost == pytest.approx(0.5, rel=1e-12)
        if how == "reset":
            sim.reset(q, v, assemble=True)
    assert np.abs(sim.state.v).max() < 1e-14
    assert not sim.step().impacts
    assert np.abs(sim.state.v).max() < 1e-14


def test_bounces_end_on_the_wall_of_a_turning_drum() -> None:
    """Centrifugal force presses like gravity: nothing bounces that is slower than what it gains in a step."""
    spin, height, dt, restitution = 3.0, 0.85, 5e-3, 0.3
    wall = '<collision><origin xyz="0 0 -1"/><geometry><box size="4 1 0.1"/></geometry></collision>'
    inertia = '<mass value="5"/><inertia ixx="5" iyy="5" izz="5" ixy="0" ixz="0" iyz="0"/>'
    drum = Robot.from_urdf(
        f"""<robot name="drum"><link name="hub"/><link name="drum"><inertial>{inertia}</inertial>{wall}</link>
        <joint name="turn" type="continuous"><parent link="hub"/><child link="drum"/><axis xyz="0 1 0"/></joint>
        </robot>""",
        gravity=(0, 0, 0),
    )
    robot = drum.with_objects([WorldObject.sphere("ball", 0.1, 0.2, pose=(0, 0, -height + 0.05, 0, 0, 0, 1))])
    v = np.array([spin, -spin * (height - 0.05), 0, 0, 0, spin, 0])
    collisions = Collisions({}, friction=0.6, restitution=restitution)
    sim = Simulator(robot, [JointVelocity("drive", "turn", spin)], collisions=collisions, dt=dt, q=robot.neutral(), v=v)
    impacts = [impact for _ in range(160) for impact in sim.step().impacts]  # then it rolls off the wall
    speeds = np.array([-impact.row_velocity_minus.min() for impact in impacts])
    assert speeds[1:] / speeds[:-1] == pytest.approx([restitution] * 3, rel=0.01)
    assert speeds[2] > spin**2 * height * dt > speeds[3]
    assert impacts[2].row_velocity_plus.max() == pytest.approx(restitution * speeds[2], rel=1e-9)
    assert np.abs(impacts[3].row_velocity_plus).max() < 1e-12

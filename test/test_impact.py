"""Velocity jumps: solvers against each other, against Pinocchio, and against closed forms."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given
from mechanisms import (
    SOLO_FEET,
    ball,
    block,
    corners,
    every_solver,
    inertia_of,
    kinetic_energy,
    leg,
    leg_config,
    linear_momentum,
    placement,
    property_test,
    random_state,
    random_tree,
    relative,
    rod,
    rows_at,
    seeds,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
)

from constrained_sim import (
    CustomConstraint,
    Plane,
    PointAnchor,
    PointContact,
    Sticking,
    project_velocity,
    resolve_impact,
)
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.exceptions import DuplicateName, InvalidValue, UnknownName


def jacobian(robot, q, *constraints):
    """Return the rows of `constraints`."""
    return rows_at(robot, ConstraintSet.bind(robot, q, constraints), q, np.zeros(robot.nv))[0]


def feet():
    """Return an anchor at each foot of solo12."""
    return [PointAnchor(foot, foot, (0, 0, 0)) for foot in SOLO_FEET]


# -- bilateral rows


@property_test(20)
@given(seed=seeds)
def test_solvers_agree(seed):
    """Velocity and impulses do not depend on the solver, and M (v_plus - v_minus) = J^T impulse."""
    robot, rng = solo12(), np.random.default_rng(seed)
    q, v = random_state(robot, rng)
    constraints = [*feet(), PointAnchor("again", "FL_FOOT", (0, 0, 0), normals=[(1, 1, 0), (0, 0, 1)])]
    M, J = inertia_of(robot, q), jacobian(robot, q, *constraints)
    assume(np.linalg.svd(J, compute_uv=False)[11] > 1e-2)
    impacts = [resolve_impact(robot, q, v, constraints, solver) for solver in every_solver(constraints)]
    for impact in impacts:
        assert relative(impact.v_plus, impacts[0].v_plus) < 1e-10
        assert relative(impact.impulse, impacts[0].impulse) < 1e-10
        assert relative(M @ (impact.v_plus - v), J.T @ impact.impulse) < 1e-11
        assert np.abs(J @ impact.v_plus).max() < 1e-11 * np.abs(v).max()


def test_solvers_agree_on_the_leg_with_a_zero_row():
    """The y row of the planar leg carries no impulse."""
    rng, anchor = np.random.default_rng(1), PointAnchor("foot", "foot", (0, 0, 0))
    for _ in range(10):
        q, v = random_state(leg(), rng)
        impacts = [resolve_impact(leg(), q, v, [anchor], solver) for solver in every_solver()]
        for impact in impacts:
            assert impact.impulse[1] == 0.0
            assert relative(impact.v_plus, impacts[0].v_plus, np.abs(v).max()) < 1e-10
            assert relative(impact.impulse, impacts[0].impulse) < 1e-10


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
def test_pinocchio_agrees(restitution):
    """pin.impulseDynamics gives the same velocity and impulses where all rows are independent."""
    robot, rng = solo12(), np.random.default_rng(2)
    for _ in range(5):
        q, v = random_state(robot, rng)
        impact = resolve_impact(robot, q, v, feet(), restitution=restitution)
        data = robot.model.createData()
        v_plus = pin.impulseDynamics(robot.model, data, q, v, jacobian(robot, q, *feet()), restitution, 0.0)
        assert relative(impact.v_plus, v_plus) < 1e-9
        assert relative(impact.impulse, data.impulse_c) < 1e-9


@property_test(25)
@given(seed=seeds)
def test_energy_lost_is_the_difference_of_kinetic_energies(seed):
    """-(s_minus + s_plus)^T impulse / 2, for any restitution and any prescribed row velocity; s = J v."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = [
        PointAnchor("one", "link3", rng.normal(size=3)),
        PointAnchor("two", "link6", (0.1, 0, 0), "link1", normals=[(1, 1, 0)]),
    ]
    J = jacobian(robot, q, *anchors)
    impact = resolve_impact(robot, q, v, anchors, restitution=rng.uniform(), row_velocity_plus=rng.normal(size=4))
    lost = kinetic_energy(robot, q, v) - kinetic_energy(robot, q, impact.v_plus)
    scale = max(kinetic_energy(robot, q, v), kinetic_energy(robot, q, impact.v_plus))
    assert impact.energy_lost == pytest.approx(lost, abs=1e-10 * scale)
    assert relative(impact.row_velocity_minus, J @ v) < 1e-12
    assert relative(impact.row_velocity_plus, J @ impact.v_plus) < 1e-10


@property_test(20)
@given(seed=seeds)
def test_plastic_impact_loses_the_energy_of_the_rows(seed):
    """With s_plus = 0 the loss is s_minus^T (J M^-1 J^T)^-1 s_minus / 2 (Carnot)."""
    robot, rng = solo12(), np.random.default_rng(seed)
    q, v = random_state(robot, rng)
    J = jacobian(robot, q, *feet())
    assume(np.linalg.svd(J, compute_uv=False).min() > 1e-2)
    expected = 0.5 * (J @ v) @ np.linalg.solve(J @ np.linalg.solve(inertia_of(robot, q), J.T), J @ v)
    impact = resolve_impact(robot, q, v, feet())
    assert impact.energy_lost == pytest.approx(expected, rel=1e-9)
    assert 0.0 < impact.energy_lost <= kinetic_energy(robot, q, v) * (1.0 + 1e-12)


def test_restitution_reverses_the_rows():
    """s_plus = -e s_minus on bilateral rows, by number and by name; the default is 0."""
    robot, rng = solo12(), np.random.default_rng(3)
    q, v = random_state(robot, rng)
    for restitution, factors in (
        (0.3, [0.3] * 4),
        ({"FL_FOOT": 0.5, "HR_FOOT": 1.0}, [0.5, 0, 0, 1.0]),
        (None, [0.0] * 4),
    ):
        impact = resolve_impact(robot, q, v, feet(), restitution=restitution)
        expected = -np.repeat(factors, 3) * impact.row_velocity_minus
        assert np.abs(impact.row_velocity_plus - expected).max() < 1e-11


def test_prescribed_row_velocities():
    """Rows leave the impact with the velocity that was asked for, by order and by name."""
    robot, rng = solo12(), np.random.default_rng(4)
    q, v = random_state(robot, rng)
    wanted = rng.normal(size=12)
    impact = resolve_impact(robot, q, v, feet(), row_velocity_plus=wanted)
    assert np.abs(impact.row_velocity_plus - wanted).max() < 1e-11
    for by_name, expected in (((1.0, 2.0, 3.0), [1, 2, 3]), (0.5, [0.5, 0.5, 0.5])):
        impact = resolve_impact(robot, q, v, feet(), row_velocity_plus={"FR_FOOT": by_name})
        assert impact.row_velocity_plus == pytest.approx([0, 0, 0, *expected, 0, 0, 0, 0, 0, 0], abs=1e-11)


@property_test(20)
@given(seed=seeds)
def test_impulses_between_links_keep_the_momentum(seed):
    """Two links of a free robot that catch each other: linear momentum, and angular about the origin, stay."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    a, b = rng.choice([f"link{i}" for i in range(7)], 2, replace=False)
    impact = resolve_impact(
        robot, q, v, [PointAnchor("catch", str(a), rng.uniform(-0.3, 0.3, 3), str(b), normals=[(1, 2, 3)])]
    )
    before, after = (centroidal_momentum(robot, q, x) for x in (v, impact.v_plus))
    assert np.abs(after - before).max() < 1e-11 * max(np.abs(before).max(), np.abs(impact.impulse).max())


def centroidal_momentum(robot, q, v):
    """Return linear and angular momentum about the centre of mass, by Pinocchio alone."""
    return pin.computeCentroidalMomentum(robot.model, robot.model.createData(), q, v).vector.copy()


# -- contacts


@pytest.mark.parametrize("restitution", [0.0, 0.7, 1.0])
def test_ball_bounces_with_its_restitution(restitution):
    """v_n+ = -e v_n-; the loss is (1 - e^2) T; nothing else changes without friction."""
    robot = ball()
    contact = PointContact("ball", "ball", (0, 0, 0), restitution=restitution, radius=0.1)
    q, v = robot.configuration({}, [0, 0, 0.1, 0, 0, 0, 1]), np.array([0.4, 0, -2.0, 0, 3.0, 1.0])
    impact = resolve_impact(robot, q, v, [contact])
    assert impact.v_plus == pytest.approx([0.4, 0, 2.0 * restitution, 0, 3.0, 1.0], abs=1e-14)
    assert impact.multipliers("ball") == pytest.approx([0, 0, 0.5 * 2.0 * (1 + restitution)], abs=1e-14)
    assert impact.energy_lost == pytest.approx(0.5 * 0.5 * 4.0 * (1 - restitution**2), abs=1e-14)
    assert impact.restitution_scale == 1.0
    assert impact.points == pytest.approx(np.zeros((1, 3)), abs=1e-15)


@pytest.mark.parametrize(("friction", "rolls"), [(0.05, False), (0.5, True)])
def test_ball_with_friction_slips_or_grips(friction, rolls):
    """Tangential impulse: mu times the normal one, or what makes it roll, 2/7 of the slip's momentum (homogeneous)."""
    robot, mass, radius, slip = ball(), 0.5, 0.1, 1.0
    contact = PointContact("ball", "ball", (0, 0, 0), friction=friction, radius=radius)
    impact = resolve_impact(
        robot, robot.configuration({}, [0, 0, radius, 0, 0, 0, 1]), [slip, 0, -2.0, 0, 0, 0], [contact]
    )
    normal, tangential = mass * 2.0, mass * slip * 2.0 / 7.0 if rolls else friction * mass * 2.0
    assert impact.impulse == pytest.approx([-tangential, 0, normal], abs=1e-13)
    left = impact.v_plus[0] - impact.v_plus[4] * radius
    assert left == pytest.approx(0.0 if rolls else slip - 3.5 * tangential / mass, abs=1e-13)


def test_a_contact_that_opens_takes_no_impulse():
    """A contact that moves away stays out of the impact, however it is passed."""
    v = np.array([0.3, 0, 1.0, 0, 0, 0])
    impact = resolve_impact(ball(), ball().neutral(), v, [PointContact("c", "ball", (0, 0, -0.1), friction=0.5)])
    assert not impact.impulse.any()
    assert np.abs(impact.v_plus - v).max() < 1e-15


def falling_rod(angle, v_x, spin):
    """Return a rod that leans by `angle` from the vertical, its centre falling at 1 m/s: robot, q, v."""
    robot = rod()
    q = robot.configuration({}, [0, 0, 0, *tilted(angle)])
    return robot, q, np.concatenate([placement(robot, q, "rod").rotation.T @ [v_x, 0, -1.0], [0, spin, 0]])


@pytest.mark.parametrize("friction", [0.6, 1.0, 2.0])
def test_restitution_with_friction_creates_no_energy(friction):
    """Newton's law would make this rod leave with more energy than it came with: restitution is reduced until not."""
    robot, q, v = falling_rod(0.8, 0.0, -4.0)
    contact = PointContact("tip", "rod", (0, 0, -0.5), friction=friction, restitution=1.0)
    J = jacobian(robot, q, contact)
    s = J @ v
    newton = -np.linalg.solve(J @ np.linalg.solve(inertia_of(robot, q), J.T), s * [1, 1, 2])
    assert np.hypot(*newton[:2]) < friction * newton[2]  # it would stick, with s_n reversed
    before = kinetic_energy(robot, q, v)
    assert kinetic_energy(robot, q, v + np.linalg.solve(inertia_of(robot, q), J.T @ newton)) > 1.2 * before
    impact = resolve_impact(robot, q, v, [contact])
    assert 0.5 < impact.restitution_scale < 1.0
    assert impact.row_velocity_plus[2] == pytest.approx(-impact.restitution_scale * s[2], rel=1e-10)
    assert kinetic_energy(robot, q, impact.v_plus) == pytest.approx(before, rel=1e-12)
    assert impact.energy_lost >= -1e-13 * 2.0 * before


@property_test(80)
@given(seed=seeds)
def test_no_impact_of_a_rod_creates_energy(seed):
    """Any lean, spin, friction and restitution; the contact law holds after the impact."""
    rng = np.random.default_rng(seed)
    robot, q, v = falling_rod(rng.uniform(-1.5, 1.5), rng.uniform(-3, 3), rng.uniform(-6, 6))
    friction, restitution = rng.uniform(0, 2), rng.uniform()
    impact = resolve_impact(
        robot, q, v, [PointContact("tip", "rod", (0, 0, -0.5), friction=friction, restitution=restitution)]
    )
    assert impact.energy_lost >= -1e-13 * 2.0 * kinetic_energy(robot, q, v)
    assert impact.energy_lost == pytest.approx(
        kinetic_energy(robot, q, v) - kinetic_energy(robot, q, impact.v_plus), abs=1e-12
    )
    assert impact.impulse[2] >= 0.0
    assert np.hypot(*impact.impulse[:2]) <= friction * impact.impulse[2] * (1 + 1e-12) + 1e-15


def rocking(width, height):
    """Return a block that rocks on its left edge and comes down flat: robot, q, v, contacts at the four corners."""
    half = (width / 2, 0.2, height / 2)
    robot = block(half)
    spin = 1.0  # about y: the right edge comes down
    q = robot.configuration({}, [0, 0, height / 2, 0, 0, 0, 1])
    v = np.array([spin * height / 2, 0, -spin * width / 2, 0, spin, 0])
    return robot, q, v, corners(half, friction=5.0)


def test_rocking_block_is_not_held_by_both_edges():
    """A slender block rocks on: the edge it stood on lets go. Spin ratio 1 - 1.5 sin^2(alpha) (Housner, 1963)."""
    width, height = 0.2, 0.8
    robot, q, v, contacts = rocking(width, height)
    impact = resolve_impact(robot, q, v, contacts)
    left, right = impact.impulse.reshape(4, 3)[[0, 2]], impact.impulse.reshape(4, 3)[[1, 3]]
    sine = width / np.hypot(width, height)
    assert impact.v_plus[4] == pytest.approx(1.0 - 1.5 * sine**2, rel=1e-11)
    assert np.abs(left).max() < 1e-13
    assert right[:, 2].min() > 0.1
    assert impact.row_velocity_plus.reshape(4, 3)[[0, 2], 2].min() > 0.1
    assert 0.0 < impact.energy_lost < 0.5 * kinetic_energy(robot, q, v)


def test_flat_block_comes_to_rest():
    """A flat block (width > sqrt 2 height) cannot rock on without pulling: both edges take impulses and it stops."""
    robot, q, v, contacts = rocking(0.8, 0.2)
    impact = resolve_impact(robot, q, v, contacts)
    assert np.abs(impact.v_plus).max() < 1e-12
    assert impact.impulse.reshape(4, 3)[:, 2].min() > 0.0
    assert impact.energy_lost == pytest.approx(kinetic_energy(robot, q, v), rel=1e-12)


def test_landing_quadruped():
    """Four feet of solo12 at once: impulses inside the cones, momentum from them alone, no energy created."""
    robot, q, rng = solo12(), standing_solo(), np.random.default_rng(5)
    for restitution in (0.0, 0.5):
        v = np.concatenate([[0.3, 0.1, -1.0], 0.3 * rng.normal(size=15)])
        impact = resolve_impact(robot, q, v, solo_contacts(friction=0.6, restitution=restitution))
        impulses = impact.impulse.reshape(4, 3)
        assert (np.hypot(impulses[:, 0], impulses[:, 1]) <= 0.6 * impulses[:, 2] * (1 + 1e-10) + 1e-14).all()
        change = linear_momentum(robot, q, impact.v_plus) - linear_momentum(robot, q, v)
        assert np.abs(change - impulses.sum(axis=0)).max() < 1e-13
        assert impact.energy_lost >= 0.0


@property_test(10)
@given(seed=seeds)
def test_solvers_agree_with_contacts(seed):
    """Anchors, redundant ones too, and frictional contacts in one impact."""
    robot, q, rng = solo12(), standing_solo(), np.random.default_rng(seed)
    v = rng.normal(size=robot.nv)
    constraints = [
        PointAnchor("held", "FL_FOOT", (0, 0, 0)),
        PointAnchor("again", "FL_FOOT", (0, 0, 0)),
        *solo_contacts(friction=0.6)[1:],
    ]
    impacts = [resolve_impact(robot, q, v, constraints, solver) for solver in every_solver(constraints)]
    for impact in impacts[1:]:
        assert relative(impact.v_plus, impacts[0].v_plus) < 1e-10
        assert relative(impact.impulse, impacts[0].impulse) < 1e-10


def test_normal_velocity_of_a_contact_can_be_prescribed():
    """As a lower bound: a floor that moves up takes the ball along, one that moves down does not pull it."""
    contact = PointContact("c", "ball", (0, 0, 0), radius=0.1)
    for wanted, expected in ((0.5, 0.5), (-2.0, -1.0)):
        impact = resolve_impact(
            ball(), ball().neutral(), [0, 0, -1.0, 0, 0, 0], [contact], row_velocity_plus={"c": (0, 0, wanted)}
        )
        assert impact.v_plus[2] == pytest.approx(expected, abs=1e-14)


def test_sticking_contact_stops_all_slip():
    """A sticking contact that closes leaves its point at rest."""
    robot, q, v = falling_rod(0.6, 2.0, 0.0)
    impact = resolve_impact(robot, q, v, [PointContact("tip", "rod", (0, 0, -0.5), law=Sticking())])
    assert np.abs(impact.row_velocity_plus).max() < 1e-14


def test_tilted_plane():
    """The jump is along the normal of the plane."""
    plane = Plane((1.0, 0.0, 1.0))
    impact = resolve_impact(
        ball(), ball().neutral(), [0, 0, -1.0, 0, 0, 0], [PointContact("c", "ball", (0, 0, 0), plane, radius=0.1)]
    )
    assert impact.v_plus == pytest.approx([0.5, 0, -0.5, 0, 0, 0], abs=1e-15)


# -- refusals


@pytest.mark.parametrize(
    "wrong",
    [
        {"q": [0.0]},
        {"v": [np.nan] * 3},
        {"restitution": 1.5},
        {"restitution": -0.1},
        {"restitution": np.nan},
        {"restitution": {"anchor": 2.0}},
        {"row_velocity_plus": [1.0]},
        {"row_velocity_plus": [np.inf] * 6},
        {"row_velocity_plus": {"anchor": [1.0]}},
        {"row_velocity_plus": {"contact": [1.0, 0.0, 0.0]}},
        {"solver": 3},
        {"constraints": ["foot"]},
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong):
    """Wrong lengths, coefficients out of range, tangential targets of contacts."""
    config = leg_config()
    constraints = [PointAnchor("anchor", "carriage", (0, 0, 0)), PointContact("contact", "foot", (0, 0, 0))]
    parts = {"q": config.q, "v": config.v, "constraints": constraints} | wrong
    with pytest.raises(InvalidValue):
        resolve_impact(leg(), **parts)


def test_unknown_names_are_refused():
    """Constraints, links and solvers are looked up by name."""
    state, anchor = (leg(), leg().neutral(), np.zeros(3)), PointAnchor("a", "foot", (0, 0, 0))
    for options in ({"restitution": {"b": 0.1}}, {"row_velocity_plus": {"b": [0.0]}}, {"solver": "magic"}):
        with pytest.raises(UnknownName):
            resolve_impact(*state, [anchor], **options)
    with pytest.raises(UnknownName, match="nowhere"):
        resolve_impact(*state, [PointContact("c", "nowhere", (0, 0, 0))])
    with pytest.raises(UnknownName, match="a"):
        resolve_impact(*state, [anchor]).multipliers("b")
    with pytest.raises(DuplicateName):
        resolve_impact(*state, [anchor, anchor])


def test_results_cannot_be_written():
    """Results own read-only arrays."""
    impact = resolve_impact(leg(), leg().neutral(), np.ones(3), [PointAnchor("a", "foot", (0, 0, 0))])
    for array in (
        impact.v_minus,
        impact.v_plus,
        impact.impulse,
        impact.row_velocity_minus,
        impact.row_velocity_plus,
        impact.q,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("solver", ["direct", "range_space", "null_space"])
def test_rows_that_bend_with_the_velocity(solver):
    """``|v_hip, v_knee| = 2`` is linearised at the velocity before, where alone it may be defined; the rest is told."""

    def speed(v):
        return np.hypot(v[1], v[2])

    row = CustomConstraint(
        "speed",
        1,
        velocity=lambda q, v, t: [speed(v) - 2.0],
        jacobian=lambda q, v, t: [[0.0, v[1] / speed(v), v[2] / speed(v)]],
        gamma=lambda q, v, t: [0.0],
    )
    robot, q, v = leg(), np.array([0.3, 0.6, -1.2]), np.array([0.4, 3.0, 1.0])
    impact, unit = resolve_impact(robot, q, v, [row], solver), np.array([0.0, *v[1:]]) / speed(v)
    assert unit @ impact.v_plus == pytest.approx(2.0, abs=1e-12)
    assert inertia_of(robot, q) @ (impact.v_plus - v) == pytest.approx(impact.impulse[0] * unit, abs=1e-12)
    assert impact.row_velocity_plus == pytest.approx([speed(impact.v_plus) - 2.0], abs=1e-14)
    found = v
    for _ in range(8):
        found = project_velocity(robot, q, found, [row], solver=solver)
    assert speed(found) == pytest.approx(2.0, abs=1e-14)
    sim = simulator(robot, q, v, solver=solver)
    assert sim.add(row).v_plus == pytest.approx(impact.v_plus, abs=1e-12)
    for _ in range(20):
        assert not sim.step().impacts
    assert speed(sim.state.v) == pytest.approx(2.0, abs=1e-9)

"""Identities that cut across the package: the same mathematics by different ways."""

import numpy as np
import pytest
from hypothesis import given
from mechanisms import (
    GRAVITY,
    MATRIX_METHOD_NAMES,
    MATRIX_METHODS,
    bias_of,
    inertia_of,
    leg_config,
    mechanical_energy,
    property_test,
    random_state,
    random_tree,
    relative,
    rows_at,
    seeds,
    simulator,
    solo12,
    standing_solo,
)

from constrained_sim import (
    PointAnchor,
    PointContact,
    Wrench,
    constrained_acceleration,
    resolve_impact,
    solve_kkt,
)
from constrained_sim.constraints.constraint_set import ConstraintSet

every_method = pytest.mark.parametrize(("method", "options"), MATRIX_METHODS, ids=MATRIX_METHOD_NAMES)


def two_anchors(rng):
    """Return a point held in all directions and one held along a line."""
    along = PointAnchor("b", "link6", rng.normal(size=3), normals=[(1, 2, 3)])
    return [PointAnchor("a", "link3", rng.normal(size=3)), along]


def random_problem(seed):
    """Return M and independent rows J of a random tree with random anchors, unit length in the metric of M^-1."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = two_anchors(rng)
    J, _ = rows_at(robot, ConstraintSet.bind(robot, q, anchors), q, v)
    return inertia_of(robot, q), J


def motion_and_force(M, J, f, b, method, options):
    """Return x and lam of several right-hand sides (columns of f and b) at once."""
    solved = [solve_kkt(M, J, f[:, i], b[:, i], method, **options) for i in range(f.shape[1])]
    return np.array([x for x, _ in solved]).T, np.array([lam for _, lam in solved]).T


@every_method
@property_test(10)
@given(seed=seeds)
def test_blocks_of_the_inverse(method, options, seed):
    """The KKT inverse, column by column: projectors, Delassus inverse, and their products.

    x = A f + B b, lam = -B^T f + Lambda b with Lambda J M^-1 J^T = 1, B = M^-1 J^T Lambda, A = M^-1 - B J M^-1.
    """
    M, J = random_problem(seed)
    n, m = len(M), len(J)
    A, C = motion_and_force(M, J, np.eye(n), np.zeros((m, n)), method, options)
    B, Lambda = motion_and_force(M, J, np.zeros((n, m)), np.eye(m), method, options)
    delassus = J @ np.linalg.solve(M, J.T)
    tolerance = 1e-13 * max(np.linalg.cond(delassus), np.linalg.cond(M))
    assert np.abs(Lambda @ delassus - np.eye(m)).max() < tolerance * 10
    assert relative(Lambda, Lambda.T) < tolerance
    assert relative(A, A.T) < tolerance
    assert relative(C, -B.T) < tolerance
    assert np.abs(J @ B - np.eye(m)).max() < tolerance * 10
    assert np.abs(J @ A).max() < tolerance * np.abs(J).max() * np.abs(A).max() * 10
    projector = np.eye(n) - B @ J
    assert relative(projector @ projector, projector) < tolerance * 10
    assert relative(A @ M, projector) < tolerance * 10
    assert np.linalg.matrix_rank(A, tol=1e-9 * np.abs(A).max()) == n - m


@every_method
@property_test(10)
@given(seed=seeds)
def test_gauss_principle(method, options, seed):
    """Of all motions that obey the rows, x is nearest to the free one in the metric of M."""
    M, J = random_problem(seed)
    rng = np.random.default_rng(seed)
    f, b = rng.normal(size=len(M)), rng.normal(size=len(J))
    x, _ = solve_kkt(M, J, f, b, method, **options)
    free = np.linalg.solve(M, f)
    null = np.linalg.svd(J)[2][len(J) :].T
    gradient = null.T @ M @ (x - free)
    assert np.abs(gradient).max() < 1e-11 * np.abs(M).max() * max(np.abs(x).max(), np.abs(free).max())


@every_method
@property_test(8)
@given(seed=seeds)
def test_superposition(method, options, seed):
    """The problem is linear: solutions of sums are sums of solutions, redundant rows included."""
    M, J = random_problem(seed)
    J = np.vstack([J, J[0] + J[1], np.zeros(len(M))])
    rng = np.random.default_rng(seed)
    (f1, f2), (b1, b2) = rng.normal(size=(2, len(M))), rng.normal(size=(2, len(J)))
    x1, lam1 = solve_kkt(M, J, f1, b1, method, **options)
    x2, lam2 = solve_kkt(M, J, f2, b2, method, **options)
    x, lam = solve_kkt(M, J, 2.0 * f1 - f2, 2.0 * b1 - b2, method, **options)
    assert relative(x, 2.0 * x1 - x2) < 1e-10
    assert relative(lam, 2.0 * lam1 - lam2) < 1e-10


@property_test(15)
@given(seed=seeds)
def test_acceleration_is_the_matrix_problem(seed):
    """constrained_acceleration is solve_kkt with f = S^T tau - h and b = -gamma."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = two_anchors(rng)
    tau = rng.normal(size=robot.nu)
    motion = constrained_acceleration(robot, q, v, tau, anchors)
    J, _ = rows_at(robot, ConstraintSet.bind(robot, q, anchors), q, v)
    f = -bias_of(robot, q, v)
    f[robot.actuation] += tau
    a, lam = solve_kkt(inertia_of(robot, q), J, f, -motion.gamma)
    assert relative(motion.a, a) < 1e-9
    assert relative(motion.lam, lam) < 1e-9


@property_test(15)
@given(seed=seeds)
def test_impact_is_the_limit_of_a_large_force(seed):
    """An impulse p at a point, rows held, changes v as the acceleration under p as a force, less that without it."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchor = PointAnchor("a", "link3", rng.normal(size=3))
    push = Wrench("link6", rng.normal(size=3), rng.normal(size=3), rng.normal(size=3))
    held = resolve_impact(robot, q, v, [anchor]).v_plus
    pushed, unpushed = (
        constrained_acceleration(robot, q, held, np.zeros(6), [anchor], wrenches=w) for w in ([push], [])
    )
    generalised = inertia_of(robot, q) @ (
        constrained_acceleration(robot, q, held, np.zeros(6), [], wrenches=[push]).a
        - constrained_acceleration(robot, q, held, np.zeros(6), []).a
    )
    after = resolve_impact(robot, q, held + np.linalg.solve(inertia_of(robot, q), generalised), [anchor])
    assert relative(after.v_plus - held, pushed.a - unpushed.a, np.abs(held).max()) < 1e-9
    assert relative(after.impulse, pushed.lam - unpushed.lam) < 1e-8


@property_test(15)
@given(seed=seeds)
def test_impacts_project(seed):
    """A second impact onto the same rows changes nothing: the plastic impact is a projection."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = [PointAnchor("a", "link3", rng.normal(size=3)), PointAnchor("b", "link6", rng.normal(size=3), "link1")]
    once = resolve_impact(robot, q, v, anchors)
    twice = resolve_impact(robot, q, once.v_plus, anchors)
    assert relative(twice.v_plus, once.v_plus) < 1e-10
    assert np.abs(twice.impulse).max() < 1e-10 * np.abs(once.impulse).max()


def test_a_sticking_contact_is_an_anchor_as_long_as_it_presses():
    """The same rows by two ways: contact forces and anchor forces agree where nothing slips or lifts."""
    robot, q = solo12(), standing_solo()
    feet = ("FL_FOOT", "FR_FOOT", "HL_FOOT")
    anchors = [PointAnchor(foot, foot, (0, 0, 0)) for foot in feet]
    contacts = [PointContact(foot, foot, (0, 0, 0), friction=50.0) for foot in feet]
    push = Wrench("base_link", (1.0, 2.0, -30.0), point=(0.1, 0.05, 0.0))
    held = constrained_acceleration(robot, q, np.zeros(18), np.zeros(12), anchors, wrenches=[push])
    touching = constrained_acceleration(robot, q, np.zeros(18), np.zeros(12), contacts, wrenches=[push])
    assert held.lam.reshape(-1, 3)[:, 2].min() > 0.0
    assert relative(touching.lam, held.lam) < 1e-10
    assert relative(touching.a, held.a) < 1e-10


def test_energy_audit_closes():
    """Kinetic change of every step = sum of the works; mechanical energy = works + integrator's error, over a run."""
    config = leg_config()
    sim = config.simulator()
    sim.apply(Wrench("carriage", (0, 0, 30.0)), 0.05)
    start = sim.state
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(400):
        here = sim.state
        result = sim.step(20.0 * (config.q[1:] - here.q[1:]) - 0.5 * here.v[1:] + 0.1 * rng.normal(size=2))
        terms = result.energy
        total = (
            terms.gravity_coriolis
            + terms.actuators
            + terms.external
            + terms.damping
            + terms.contacts
            + terms.constraints
        )
        worst = max(worst, abs(terms.kinetic - total - terms.constraints))
    assert worst < 1e-13
    terms = sim.energy
    works = terms.actuators + terms.external + terms.damping + terms.contacts + terms.constraints + terms.projection
    change = mechanical_energy(config.robot, sim.state.q, sim.state.v) - mechanical_energy(
        config.robot, start.q, start.v
    )
    assert sim.integration_energy() == pytest.approx(change - works + terms.impact_losses, abs=1e-12)
    assert abs(sim.integration_energy()) < 1e-3
    assert terms.external > 0.0 > terms.damping


def test_gravity_and_coriolis_work_is_potential_energy():
    """Between smooth states their work is what potential energy gives up, to the integrator's order."""
    robot, q = solo12(), standing_solo(1.0)
    errors = []
    for dt in (2e-3, 1e-3):
        sim = simulator(robot, q, [1.0, 0, 0, 1.0, 2.0, 0.5, *np.zeros(12)], dt=dt)
        before = sim.mechanical_energy()
        trajectory = sim.run(0.1)
        assert not any(trajectory.energy[name].any() for name in ("actuators", "external", "contacts", "constraints"))
        errors.append(abs(sim.mechanical_energy() - before))
    assert errors[1] < errors[0] / 3.0
    assert errors[1] < 1e-3 * robot.mass * GRAVITY

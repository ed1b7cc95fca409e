"""Constrained accelerations and forces: solvers against each other, against Pinocchio, and against first principles."""

import itertools

import mechanisms
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given
from mechanisms import (
    BLOCK_HALF,
    GRAVITY,
    SOLO_FEET,
    bias_of,
    block,
    chain,
    corners,
    derivative,
    every_solver,
    exact_kkt,
    inertia_of,
    joint,
    leg,
    leg_config,
    link,
    mechanical_energy,
    placement,
    point_of,
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
    urdf,
)

from constrained_sim import (
    Baumgarte,
    Compliant,
    Frictionless,
    JointCoupling,
    JointLimit,
    JointVelocity,
    Plane,
    PointAnchor,
    PointContact,
    Projection,
    Robot,
    Sticking,
    Wrench,
    constrained_acceleration,
    constraint_system,
    resolve_impact,
)
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import (
    DuplicateName,
    InconsistentConstraints,
    InvalidValue,
    NonFiniteMotion,
    NotSupported,
    UnknownName,
)

FREE = np.zeros(0)

EPS = np.finfo(float).eps


def bind(robot, q, *constraints):
    """Return the bound rows of `constraints`."""
    return ConstraintSet.bind(robot, q, constraints)


def random_anchor(rng, robot, name, rows=3, closed=False):
    """Return an anchor between a random link and the world, or (`closed`) another link."""
    links = [link for link in robot.links if link.startswith("link")]
    link_a = str(rng.choice(links[1:]))
    link_b = str(rng.choice([link for link in links if link != link_a])) if closed else "world"
    normals = None if rows == 3 else rng.normal(size=(rows, 3))
    return PointAnchor(name, link_a, rng.uniform(-0.3, 0.3, 3), link_b, normals=normals)


def compare_solvers(robot, q, v, tau, constraints, tolerance=1e-10):
    """Check that all solvers find one motion and one set of multipliers that satisfy both equations."""
    motions = [constrained_acceleration(robot, q, v, tau, constraints, solver) for solver in every_solver(constraints)]
    bound = bind(robot, q, *constraints)
    J, _ = rows_at(robot, bound, q, v)
    M, h = inertia_of(robot, q), bias_of(robot, q, v)
    force = np.zeros(robot.nv)
    force[robot.actuation] = tau
    first = motions[0]
    for motion in motions:
        assert relative(motion.a, first.a) < tolerance
        assert relative(motion.lam, first.lam) < tolerance
        largest = max(
            np.abs(M @ motion.a).max(), np.abs(h).max(), np.abs(J.T @ motion.lam).max(), np.abs(tau).max(initial=0)
        )
        assert np.abs(M @ motion.a + h - force - J.T @ motion.lam).max() < 1e-10 * largest
        assert np.abs(J @ motion.a + motion.gamma).max() < 1e-10 * max(np.abs(J).max() * np.abs(motion.a).max(), 1.0)
        assert motion.dynamics_residual < 1e-11
    return first, J


# -- solvers agree


def test_solvers_agree_on_the_leg_with_a_zero_row():
    """The y row of a point foot on a planar leg is zero: it carries nothing and spoils nothing."""
    robot = leg()
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v = random_state(robot, rng)
        v = resolve_impact(robot, q, v, [PointAnchor("foot", "foot", (0, 0, 0))]).v_plus
        motion, J = compare_solvers(robot, q, v, rng.normal(size=2), [PointAnchor("foot", "foot", (0, 0, 0))])
        assert not J[1].any()
        assert motion.lam[1] == 0.0
        assert motion.rank == 2


@property_test(25)
@given(seed=seeds)
def test_solvers_agree_on_solo12_with_four_feet_anchored(seed):
    """Twelve rows on eighteen degrees of freedom."""
    robot, rng = solo12(), np.random.default_rng(seed)
    q, v = random_state(robot, rng)
    anchors = [PointAnchor(foot, foot, (0, 0, 0)) for foot in SOLO_FEET]
    motion, J = compare_solvers(robot, q, v, rng.normal(size=robot.nu), anchors)
    assume(np.linalg.matrix_rank(J, tol=1e-6) == 12)
    assert motion.rank == 12


@property_test(60)
@given(seed=seeds)
def test_solvers_agree_on_random_trees(seed):
    """Random trees, anchored to the world and closed on themselves."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(3, 10)), bool(rng.integers(2)))
    q, v = random_state(robot, rng)
    anchors = [
        random_anchor(rng, robot, f"anchor{i}", int(rng.integers(1, 4)), bool(rng.integers(2)))
        for i in range(rng.integers(1, 4))
    ]
    J, _ = rows_at(robot, bind(robot, q, *anchors), q, v)
    assume(well_conditioned(robot, q, J))
    compare_solvers(robot, q, v, rng.normal(size=robot.nu), anchors)


def test_residuals_of_a_robot_that_is_held_at_rest():
    """Held firmly, nothing accelerates: that J a is a rounding and not quite zero is no violation."""
    robot, q = leg(), leg_config().q
    anchors = [PointAnchor("foot", "foot", (0, 0, 0)), PointAnchor("carriage", "carriage", (0, 0, 0))]
    for solver in every_solver():
        motion = constrained_acceleration(robot, q, np.zeros(3), np.array([0.3, -0.7]), anchors, solver)
        assert np.abs(motion.a).max() < 1e-12
        assert motion.constraint_residual < 1e-10


@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_a_loop_that_falls_freely_has_no_residual(tilt):
    """It falls as one: all that its rows say cancels to rounding, which is no contradiction; nor is it an impact's."""
    limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'
    parts = (
        *(
            link(name, mass, (0.13, 0.02, 0.0), (0.01, 0.02, 0.03))
            for name, mass in (("base", 2.0), ("a", 1.0), ("b", 1.0))
        ),
        *(
            joint(f"to_{child}", "revolute", parent, child, (0, 0, 1), (0.31, 0.1, 0.0), limit)
            for parent, child in (("base", "a"), ("a", "b"))
        ),
    )
    robot = Robot.from_urdf(urdf(*parts), True)
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(tilt, 0.5, 0.3)).coeffs()
    q[7:] = 0.4, -0.7
    v[:6] = 0.3, -0.2, 0.5, 0.4, 0.1, -0.6
    for normals in ([(1, 0, 0)], None):
        anchors = [PointAnchor("loop", "b", (0.2, 0, 0), "base", normals=normals)]
        for solver in every_solver(anchors):
            motion = constrained_acceleration(robot, q, 0 * v, np.zeros(2), anchors, solver, refuse_inconsistent=True)
            assert motion.constraint_residual < 1e-12
            assert np.abs(motion.a[6:]).max() < 1e-12
        impact = resolve_impact(robot, q, v, anchors, refuse_inconsistent=True)
        assert impact.v_plus == pytest.approx(v, abs=1e-12)


def test_where_a_joint_moves_nothing_the_error_says_so():
    """A point mass on the axis of a hinge: no acceleration follows from its torque, with rows or without."""
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/><link name="arm"/>',
            link("tip", 1.0, (0, 0, 0), (0.0, 0.0, 0.0)),
            joint("hinge", "revolute", "base", "arm", (0, 0, 1), more=limit),
            joint("slide", "prismatic", "arm", "tip", (1, 0, 0), (0.25, 0, 0), limit),
        )
    )
    rows = [PointAnchor("row", "tip", (0, 0, 0), normals=[(1, 0, 0)])]
    for constraints in ([], rows):
        with pytest.raises(NonFiniteMotion):
            constrained_acceleration(robot, [0.0, -0.25], np.zeros(2), [0.1, 0.0], constraints)


def test_the_residual_of_forces_that_cancel_is_relative_to_them():
    """A block that stays at rest, and one that an impact stops: all that is left of large forces is rounding."""
    robot, q = block(), [0, 0, BLOCK_HALF[2], 0, 0, 0, 1]
    motion = constrained_acceleration(robot, q, np.zeros(6), [], corners(friction=1.0))
    assert np.abs(motion.a).max() < 1e-12
    assert motion.dynamics_residual < 1e-14
    impact = resolve_impact(robot, q, [0, 0, -1.0, 0, 0, 0], corners(friction=1.0))
    assert np.abs(impact.v_plus).max() < 1e-12
    assert impact.dynamics_residual < 1e-14


def test_residual_shows_rows_that_contradict_each_other():
    """A hand that is to be in two places at once: the residual is of the order of the contradiction."""
    robot, q = leg(), leg_config().q
    anchors = [PointAnchor(str(z), "foot", (0, 0, 0), point_b=(0.0, 0.0, z)) for z in (0.0, 0.3)]
    feedback = Baumgarte(0.1)
    for solver in every_solver():
        motion = constrained_acceleration(robot, q, np.zeros(3), np.zeros(2), anchors, solver, feedback)
        assert motion.constraint_residual > 0.1
        assert motion.dynamics_residual < 1e-12


def test_contact_on_a_link_that_cannot_move():
    """A contact of the fixed rail touches nothing and disturbs nothing."""
    state = (leg(), leg_config().q, np.zeros(3), np.zeros(2))
    rail = PointContact("rail", "rail", (0, 0, 0), friction=0.5)
    motion = constrained_acceleration(*state, [rail])
    assert relative(motion.a, constrained_acceleration(*state, []).a) < 1e-14
    assert not motion.lam.any()


@pytest.mark.parametrize("friction", [0.0, 0.7])
def test_contact_of_a_foot_that_is_anchored(friction):
    """An anchor already holds the foot: a contact of the same foot adds nothing to the motion."""
    robot, q = leg(), leg_config().q
    anchor, contact = (
        PointAnchor("anchor", "foot", (0, 0, 0)),
        PointContact("contact", "foot", (0, 0, 0), friction=friction),
    )
    expected = constrained_acceleration(robot, q, np.zeros(3), np.zeros(2), [anchor])
    for solver in every_solver([contact]):
        motion = constrained_acceleration(robot, q, np.zeros(3), np.zeros(2), [anchor, contact], solver)
        assert relative(motion.a, expected.a) < 1e-11
        assert relative(motion.multipliers("anchor") + motion.multipliers("contact"), expected.lam) < 1e-11


@property_test(30)
@given(seed=seeds)
def test_solvers_agree_on_redundant_anchors(seed):
    """The same point held twice, and along directions that depend on each other: one motion, least-norm forces."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(4, 9)), bool(rng.integers(2)))
    q, v = random_state(robot, rng)
    once = random_anchor(rng, robot, "once")
    again = PointAnchor("again", once.link_a, once.point_a, normals=rng.normal(size=(4, 3)))
    J, _ = rows_at(robot, bind(robot, q, once), q, v)
    assume(well_conditioned(robot, q, J, full_rank=False))
    v = resolve_impact(robot, q, v, [once]).v_plus
    tau = rng.normal(size=robot.nu)
    expected = constrained_acceleration(robot, q, v, tau, [once])
    motion, J = compare_solvers(robot, q, v, tau, [once, again])
    assert relative(motion.a, expected.a) < 1e-10
    assert relative(np.linalg.pinv(J.T, rcond=1e-9) @ (J.T @ motion.lam), motion.lam) < 1e-9
    assert motion.rank == expected.rank


def well_conditioned(robot, q, J, full_rank=True):
    """Return whether the rows, each of unit length in the metric of M^-1, are clearly independent (or zero)."""
    M = inertia_of(robot, q)
    whitened = np.linalg.solve(np.linalg.cholesky(M), J.T).T
    lengths = np.linalg.norm(whitened, axis=1)
    moving = lengths > 1e-9
    values = np.linalg.svd(whitened[moving] / lengths[moving, None], compute_uv=False)
    clear = (values > 1e-2) if full_rank else (values > 1e-2) | (values < 1e-12)
    return (
        moving.any()
        and (moving.all() or not full_rank)
        and clear.all()
        and values.size == moving.sum()
        and np.linalg.cond(M) < 1e5
    )


@property_test(40)
@given(seed=seeds)
def test_pinocchio_agrees(seed):
    """Pinocchio's forward dynamics finds the same motion and forces where all rows are independent."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, int(rng.integers(4, 10)), True)
    q, v = random_state(robot, rng)
    anchors = [random_anchor(rng, robot, "a"), random_anchor(rng, robot, "b", 2, closed=True)]
    J, _ = rows_at(robot, bind(robot, q, *anchors), q, v)
    assume(well_conditioned(robot, q, J))
    tau = rng.normal(size=robot.nu)
    motion = constrained_acceleration(robot, q, v, tau, anchors)
    data, force = robot.model.createData(), np.zeros(robot.nv)
    force[robot.actuation] = tau
    a = pin.forwardDynamics(robot.model, data, q, v, force, J, motion.gamma, 0.0)
    assert relative(motion.a, a) < 1e-9
    assert relative(motion.lam, data.lambda_c) < 1e-9


def test_pinocchio_agrees_on_solo12():
    """Four anchored feet, against pin.forwardDynamics."""
    robot, rng = solo12(), np.random.default_rng(3)
    anchors = [PointAnchor(foot, foot, (0, 0, 0)) for foot in SOLO_FEET]
    for _ in range(5):
        q, v = random_state(robot, rng)
        tau = rng.normal(size=robot.nu)
        motion = constrained_acceleration(robot, q, v, tau, anchors)
        J, _ = rows_at(robot, bind(robot, q, *anchors), q, v)
        data, force = robot.model.createData(), np.concatenate([np.zeros(6), tau])
        a = pin.forwardDynamics(robot.model, data, q, v, force, J, motion.gamma, 0.0)
        assert relative(motion.a, a) < 1e-9
        assert relative(motion.lam, data.lambda_c) < 1e-9


def test_free_motion_is_that_of_the_articulated_body_algorithm():
    """Without constraints the acceleration is ABA's."""
    rng = np.random.default_rng(4)
    for floating in (False, True):
        robot = random_tree(rng, 7, floating)
        q, v = random_state(robot, rng)
        force = np.zeros(robot.nv)
        force[robot.actuation] = tau = rng.normal(size=robot.nu)
        a = pin.aba(robot.model, robot.model.createData(), q, v, force)
        assert relative(constrained_acceleration(robot, q, v, tau, []).a, a) < 1e-11


# -- rows: phi, J, gamma


def anchors_of_all_sorts(rng, robot, q):
    """Return anchors to the world and between links, all axes and oblique ones, closed and violated."""
    links = [link for link in robot.links if link.startswith("link")]
    a, b = (str(name) for name in rng.choice(links[1:], 2, replace=False))
    return [
        PointAnchor("world", a, rng.normal(size=3)),
        PointAnchor("world oblique", a, rng.normal(size=3), normals=rng.normal(size=(2, 3))),
        PointAnchor("links", a, rng.normal(size=3), b),
        PointAnchor("links oblique", a, rng.normal(size=3), b, normals=rng.normal(size=(2, 3))),
        PointAnchor("violated", a, rng.normal(size=3), b, rng.normal(size=3), normals=rng.normal(size=(2, 3))),
        PointAnchor("violated world", a, rng.normal(size=3), point_b=rng.normal(size=3)),
    ]


@property_test(20)
@given(seed=seeds)
def test_anchor_position_is_that_of_the_definition(seed):
    """phi = N^T R_b^T (p_a - p_b), with Pinocchio's placements; zero where point_b was left to the activation."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, bool(rng.integers(2)))
    q0, v = random_state(robot, rng)
    q, _ = random_state(robot, rng)
    for anchor in anchors_of_all_sorts(rng, robot, q0):
        bound = bind(robot, q0, anchor)
        point_b = anchor.point_b
        if point_b is None:
            point_b = placement(robot, q0, anchor.link_b).actInv(point_of(robot, q0, anchor.link_a, anchor.point_a))
        b = placement(robot, q, anchor.link_b)
        normals = np.eye(3) if anchor.normals is None else anchor.normals
        expected = (
            normals @ b.rotation.T @ (point_of(robot, q, anchor.link_a, anchor.point_a) - b.act(np.asarray(point_b)))
        )
        assert np.abs(bound.bilateral.phi(Dynamics.at(robot, q, v)) - expected).max() < 1e-13
        if anchor.point_b is None:
            assert np.abs(bound.bilateral.phi(Dynamics.at(robot, q0, v))).max() < 1e-13


@property_test(20)
@given(seed=seeds)
def test_anchor_jacobian_and_gamma(seed):
    """J v is the rate of phi, and gamma that of J v at constant v, where the anchor is closed (J is taken at p_a)."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, bool(rng.integers(2)))
    q, v = random_state(robot, rng)
    for anchor in anchors_of_all_sorts(rng, robot, q):
        bound = bind(robot, q, anchor)

        def along(t, what, bound=bound):
            q_t = pin.integrate(robot.model, q, t * v)
            dynamics = Dynamics.at(robot, q_t, v)
            return bound.bilateral.phi(dynamics) if what == "phi" else bound.bilateral.jacobian(dynamics) @ v

        _, s = rows_at(robot, bound, q, v)
        gamma = constrained_acceleration(robot, q, v, np.zeros(robot.nu), [anchor]).gamma
        scale = max(1.0, np.abs(v).max()) ** 3
        assert np.abs(derivative(lambda t, along=along: along(t, "phi")) - s).max() < 1e-10 * scale
        assert np.abs(derivative(lambda t, along=along: along(t, "s")) - gamma).max() < 1e-9 * scale


def contacts_of_all_sorts(rng, robot):
    """Return contacts of points and spheres with level and tilted planes."""
    links = [link for link in robot.links if link.startswith("link") and link != "link0"]
    return [
        PointContact(f"contact{i}", str(rng.choice(links)), rng.normal(size=3), plane, radius=radius)
        for i, (plane, radius) in enumerate(
            itertools.product((Plane(), Plane(rng.normal(size=3), 0.3), Plane((0, 0, -1))), (0.0, 0.2))
        )
    ]


@property_test(20)
@given(seed=seeds)
def test_contact_rows(seed):
    """Gap, J and gamma of points and spheres, by Pinocchio's placements and by finite differences."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, bool(rng.integers(2)))
    q, v = random_state(robot, rng)
    contacts = contacts_of_all_sorts(rng, robot)
    table = bind(robot, q, *contacts).contacts

    def along(t):
        return table.rows(Dynamics.at(robot, pin.integrate(robot.model, q, t * v), v), v)

    geometry = along(0.0)
    gaps = []
    for contact in contacts:
        centre = point_of(robot, q, contact.link, contact.point)
        gaps.append(contact.surface.normal @ centre - contact.radius - contact.surface.offset)
    normal_speeds = derivative(lambda t: along(t).gaps)
    gamma = np.concatenate([constrained_acceleration(robot, q, v, np.zeros(robot.nu), [c]).gamma for c in contacts])
    scale = max(1.0, np.abs(v).max()) ** 3
    assert np.abs(geometry.gaps - gaps).max() < 1e-13
    assert np.abs(geometry.s_normal - normal_speeds).max() < 1e-10 * scale
    assert np.abs(geometry.J @ v - geometry.s).max() < 1e-12 * scale
    assert np.abs(derivative(lambda t: along(t).s) - gamma).max() < 1e-9 * scale


@property_test(20)
@given(seed=seeds)
def test_contact_rows_move_with_the_body_point_that_touches(seed):
    """s is the velocity, along t1, t2 and n, of the body point that is at centre - radius n."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, True)
    q, v = random_state(robot, rng)
    for contact in contacts_of_all_sorts(rng, robot):
        body, axes = placement(robot, q, contact.link), contact.surface.axes
        touching = point_of(robot, q, contact.link, contact.point) - contact.radius * contact.surface.normal
        fixed = body.actInv(touching)
        velocity = derivative(
            lambda t, c=contact, p=fixed: point_of(robot, pin.integrate(robot.model, q, t * v), c.link, p)
        )
        _, s = rows_at(robot, bind(robot, q, contact), q, v)
        assert np.abs(axes @ velocity - s).max() < 1e-9 * max(1.0, np.abs(v).max())


def test_axes_of_a_plane():
    """Rows t1, t2, n are orthonormal and right-handed; on level ground they are x, y, z."""
    assert np.array_equal(Plane().axes, np.eye(3))
    for normal in np.random.default_rng(0).normal(size=(20, 3)):
        axes = Plane(normal).axes
        assert np.abs(axes @ axes.T - np.eye(3)).max() < 1e-15
        assert np.linalg.det(axes) == pytest.approx(1.0, abs=1e-14)
        assert axes[2] == pytest.approx(normal / np.linalg.norm(normal), abs=1e-15)


# -- forces


@property_test(20)
@given(seed=seeds)
def test_anchor_forces_as_external_wrenches_give_the_same_motion(seed):
    """Read back as wrenches and applied from outside, constraint forces move the robot as the constraints did."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = [random_anchor(rng, robot, "ground", 2), random_anchor(rng, robot, "loop", 2, closed=True)]
    J, _ = rows_at(robot, bind(robot, q, *anchors), q, v)
    assume(well_conditioned(robot, q, J))
    tau = rng.normal(size=robot.nu)
    motion = constrained_acceleration(robot, q, v, tau, anchors)
    wrenches = []
    for anchor in anchors:
        meeting = point_of(robot, q, anchor.link_a, anchor.point_a)
        for end in (anchor.link_a, anchor.link_b):
            force = motion.wrench(anchor.name, end)
            assert not force[3:].any()
            wrenches.append(Wrench(end, force[:3], point=placement(robot, q, end).actInv(meeting)))
    free = constrained_acceleration(robot, q, v, tau, [], wrenches=wrenches)
    assert relative(free.a, motion.a) < 1e-10


def test_wrench_in_the_axes_of_a_link():
    """The same force, in other axes, and opposite on the other link."""
    rng = np.random.default_rng(5)
    robot = random_tree(rng, 5, True)
    q, v = random_state(robot, rng)
    motion = constrained_acceleration(robot, q, v, np.zeros(5), [PointAnchor("a", "link2", (0.1, 0, 0), "link4")])
    world, turned = motion.wrench("a", "link2"), motion.wrench("a", "link2", axes="link5")
    rotation = placement(robot, q, "link5").rotation
    assert np.abs(world[:3]).max() > 0.1
    assert relative(rotation @ turned[:3], world[:3]) < 1e-13
    assert np.array_equal(motion.wrench("a", "link4"), -world)
    with pytest.raises(UnknownName, match="link2"):
        motion.wrench("a", "link1")
    with pytest.raises(UnknownName, match="a"):
        motion.wrench("b", "link1")


@property_test(20)
@given(seed=seeds)
def test_forces_between_links_leave_the_momentum_to_gravity(seed):
    """Inner constraint forces and torques neither push nor turn a free robot: its momentum changes by m g alone."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = [random_anchor(rng, robot, "one", 2, closed=True), random_anchor(rng, robot, "two", 1, closed=True)]
    J, _ = rows_at(robot, bind(robot, q, *anchors), q, v)
    assume(well_conditioned(robot, q, J))
    motion = constrained_acceleration(robot, q, v, rng.normal(size=robot.nu), anchors)
    rate = pin.computeCentroidalMomentumTimeVariation(robot.model, robot.model.createData(), q, v, motion.a)
    scale = max(np.abs(motion.lam).max(), robot.mass * GRAVITY)
    assert np.abs(rate.linear - [0.0, 0.0, -robot.mass * GRAVITY]).max() < 1e-11 * scale
    assert np.abs(rate.angular).max() < 1e-11 * scale


@property_test(20)
@given(seed=seeds)
def test_constraints_do_no_work(seed):
    """On a motion that obeys the constraints, energy changes by the joint efforts alone."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 7, bool(rng.integers(2)))
    q, v = random_state(robot, rng)
    anchors = [random_anchor(rng, robot, "ground", 2), random_anchor(rng, robot, "loop", 2, closed=True)]
    J, _ = rows_at(robot, bind(robot, q, *anchors), q, v)
    assume(well_conditioned(robot, q, J))
    v = resolve_impact(robot, q, v, anchors).v_plus
    tau = rng.normal(size=robot.nu)
    a = constrained_acceleration(robot, q, v, tau, anchors).a

    def energy(t):
        return mechanical_energy(robot, pin.integrate(robot.model, q, t * v + 0.5 * t**2 * a), v + t * a)

    scale = max(1.0, np.abs(v).max()) ** 2 * max(1.0, np.abs(a).max()) ** 2
    assert derivative(energy, 1e-4 / np.sqrt(scale)) == pytest.approx(tau @ v[robot.actuation], abs=1e-7 * scale)


def test_hanging_block_is_carried_by_its_anchor():
    """A block hung by a point above its centre pulls with its weight; the anchor pushes up."""
    robot = block()
    motion = constrained_acceleration(
        robot, robot.neutral(), np.zeros(6), FREE, [PointAnchor("hook", "block", (0, 0, 0.05))]
    )
    assert motion.multipliers("hook") == pytest.approx([0.0, 0.0, 2.0 * GRAVITY], abs=1e-13)
    assert motion.wrench("hook", "block") == pytest.approx([0, 0, 2.0 * GRAVITY, 0, 0, 0], abs=1e-13)
    assert np.abs(motion.a).max() < 1e-13


def test_free_link_with_an_anchor_is_a_pendulum():
    """A free rod anchored at its end accelerates like the same rod on a revolute joint, and pulls as hard."""
    pendulum, free = chain((1.0,), (1.0,)), rod()
    anchor = PointAnchor("pivot", "rod", (0, 0, 0.5))
    for angle, speed in ((0.3, 0.0), (1.2, -2.0), (3.0, 5.0)):
        q = free.neutral()
        q[3:] = tilted(angle)
        q[:3] = -placement(free, q, "rod").rotation @ [0, 0, 0.5]
        v = resolve_impact(free, q, np.array([0, 0, 0, 0, speed, 0.0]), [anchor]).v_plus
        motion = constrained_acceleration(free, q, v, FREE, [anchor])
        expected = constrained_acceleration(pendulum, [angle], [v[4]], np.zeros(1), [])
        assert motion.a[4] == pytest.approx(expected.a[0], rel=1e-12)
        along = np.array([-np.sin(angle), 0.0, -np.cos(angle)])
        pull = GRAVITY * np.cos(angle) + 0.5 * v[4] ** 2
        assert motion.wrench("pivot", "rod")[:3] @ -along == pytest.approx(pull, rel=1e-12)


# -- stabilisation


def test_baumgarte_feedback():
    """Violations and row velocities are fed back: J a = -gamma - kd s - kp phi."""
    rng = np.random.default_rng(6)
    robot = random_tree(rng, 6, True)
    q, v = random_state(robot, rng)
    anchors = [
        PointAnchor("one", "link3", (0, 0, 0.1), point_b=(0.3, 0.2, 0.1)),
        PointAnchor("two", "link5", (0, 0, 0.1), "link1"),
    ]
    feedback = Baumgarte(0.05)
    assert (feedback.kp, feedback.kd) == (pytest.approx(400.0), pytest.approx(40.0))
    motion = constrained_acceleration(robot, q, v, np.zeros(robot.nu), anchors, stabilization=feedback)
    bound = bind(robot, q, *anchors)
    J, s = rows_at(robot, bound, q, v)
    phi = bound.bilateral.phi(Dynamics.at(robot, q, v))
    assert np.abs(phi).max() > 0.1
    expected = -motion.gamma - 40.0 * s - 400.0 * phi
    assert relative(J @ motion.a, expected) < 1e-11


def test_baumgarte_feedback_on_a_contact_acts_along_the_normal_only():
    """A contact that has sunk in is pushed out; friction rows have nothing to return to."""
    robot, plane = block(), Plane((0, 0, 1), 0.01)
    q, v = robot.neutral(), np.array([0.0, 0, -0.1, 0, 0, 0])
    contact = PointContact("c", "block", (0, 0, 0), plane, Sticking())
    motion = constrained_acceleration(robot, q, v, FREE, [contact], stabilization=Baumgarte(kp=100.0, kd=20.0))
    assert motion.a[:3] == pytest.approx([0.0, 0.0, 20.0 * 0.1 + 100.0 * 0.01], abs=1e-13)


@pytest.mark.parametrize("wrong", [{"kp": -1.0}, {"kd": np.nan}, {"kp": "1"}], ids=str)
def test_gains_must_be_numbers_and_not_negative(wrong):
    """Feedback that drives violations apart is refused."""
    with pytest.raises(InvalidValue):
        Baumgarte(**wrong)
    with pytest.raises(InvalidValue):
        Baumgarte(0.0)


# -- contacts at acceleration level


def lcp_by_enumeration(G, b):
    """Return G r for the solution of ``0 <= G r + b _|_ r >= 0``, by trying all active sets."""
    for size in range(len(b) + 1):
        for active in map(list, itertools.combinations(range(len(b)), size)):
            r = np.zeros(len(b))
            r[active] = np.linalg.lstsq(G[np.ix_(active, active)], -b[active], rcond=1e-10)[0] if active else []
            u = G @ r + b
            if (r > -1e-10).all() and (u > -1e-10).all() and np.abs(u[active]).max(initial=0.0) < 1e-10:
                return G @ r
    raise AssertionError("no active set solves the problem")


@property_test(30)
@given(seed=seeds)
def test_frictionless_contacts_against_enumeration(seed):
    """Which contacts press and which open is what trying all combinations finds; contacts never pull."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 4, True) if rng.integers(2) else block()
    link = "link2" if robot.nv > 6 else "block"
    q, v = random_state(robot, rng)
    contacts = [
        PointContact(f"c{i}", link, rng.normal(size=3), Plane(rng.normal(size=3)), Frictionless()) for i in range(4)
    ]
    tau = rng.normal(size=robot.nu)
    motion = constrained_acceleration(robot, q, v, tau, contacts)
    free = constrained_acceleration(robot, q, v, tau, [])
    J, _ = rows_at(robot, bind(robot, q, *contacts), q, v)
    Jn, gamma = J[2::3], motion.gamma[2::3]
    G = Jn @ np.linalg.solve(inertia_of(robot, q), Jn.T)
    expected = lcp_by_enumeration(G, Jn @ free.a + gamma)
    force = motion.lam.reshape(-1, 3)
    assert np.abs(force[:, :2]).max() <= 1e-14 * force[:, 2].max()
    assert force[:, 2].min() >= 0.0
    assert np.abs(G @ force[:, 2] - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())


def test_block_at_rest_is_carried_evenly():
    """Four corners carry a quarter of the weight each: the least-norm one of all possible distributions."""
    robot = block()
    motion = constrained_acceleration(robot, robot.neutral(), np.zeros(6), FREE, corners(friction=0.5))
    forces = motion.lam.reshape(-1, 3)
    assert forces[:, 2] == pytest.approx([2.0 * GRAVITY / 4] * 4, rel=1e-12)
    assert np.abs(forces.sum(axis=0)[:2]).max() < 1e-12
    assert np.abs(motion.a).max() < 1e-12


def test_indeterminate_forces_are_the_smallest_inside_the_cones():
    """Pressed down near one corner, the block's forces are those of least norm among all that push and balance."""
    robot = block()
    q, push = robot.neutral(), Wrench("block", (0, 0, -100.0), point=(0.9 * BLOCK_HALF[0], 0.6 * BLOCK_HALF[1], 0))
    contacts = corners(law=Frictionless())
    motion = constrained_acceleration(robot, q, np.zeros(6), FREE, contacts, wrenches=[push])
    forces = motion.lam.reshape(-1, 3)[:, 2]
    assert np.abs(motion.a).max() < 1e-11
    x, y = (np.array([c.point[i] for c in contacts]) for i in (0, 1))
    balance = np.array([np.ones(4), x, y])
    load = balance @ forces
    assert load == pytest.approx([100 + 2 * GRAVITY, 90 * BLOCK_HALF[0], 60 * BLOCK_HALF[1]], rel=1e-11)
    smallest = least_norm_inside(balance, load)
    assert forces == pytest.approx(smallest, abs=1e-9)


def least_norm_inside(balance, load):
    """Return the forces of least norm >= 0 with ``balance @ forces = load``, by trying which are zero."""
    best = None
    for zeros in itertools.product((False, True), repeat=balance.shape[1]):
        used = ~np.array(zeros)
        forces = np.zeros(len(used))
        forces[used] = np.linalg.pinv(balance[:, used]) @ load
        if (forces > -1e-12).all() and np.abs(balance @ forces - load).max() < 1e-9:
            best = forces if best is None or forces @ forces < best @ best else best
    return best


@pytest.mark.parametrize("friction", [0.1, 0.4])
def test_sliding_block_decelerates_with_friction_times_gravity(friction):
    """Coulomb: the deceleration of a sliding block is mu g against its motion, whatever that direction."""
    robot = block((0.3, 0.3, 0.02))
    for direction in (0.0, 0.7, 2.5):
        v = np.array([np.cos(direction), np.sin(direction), 0, 0, 0, 0])
        motion = constrained_acceleration(robot, robot.neutral(), v, FREE, corners((0.3, 0.3, 0.02), friction=friction))
        assert motion.a[:3] == pytest.approx(-friction * GRAVITY * v[:3], abs=1e-11)
        assert np.abs(motion.a[3:]).max() < 1e-10


def test_sticking_contact_may_not_pull():
    """A stuck foot lets go as soon as it would have to pull."""
    robot, held = block(), PointContact("c", "block", (0, 0, 0), law=Sticking())
    for lift, force in ((5.0, 2.0 * GRAVITY - 5.0), (30.0, 0.0)):
        wrench = Wrench("block", (1.0, 0, lift))
        motion = constrained_acceleration(robot, robot.neutral(), np.zeros(6), FREE, [held], wrenches=[wrench])
        assert motion.multipliers("c")[2] == pytest.approx(force, abs=1e-12)
        assert motion.multipliers("c")[0] == pytest.approx(-1.0 if force else 0.0, abs=1e-12)


@property_test(15)
@given(seed=seeds)
def test_solvers_agree_with_anchors_and_frictional_contacts_together(seed):
    """The contact law is physics, the solver linear algebra: forces and motion do not depend on the solver."""
    rng = np.random.default_rng(seed)
    robot, q = solo12(), standing_solo()
    v = 0.1 * rng.normal(size=robot.nv)
    constraints = [PointAnchor("held", "FL_FOOT", (0, 0, 0)), PointAnchor("again", "FL_FOOT", (0, 0, 0))]
    constraints += [PointContact(foot, foot, (0, 0, 0), friction=0.6) for foot in SOLO_FEET[1:]]
    tau = rng.normal(size=robot.nu)
    motions = [constrained_acceleration(robot, q, v, tau, constraints, solver) for solver in every_solver(constraints)]
    for motion in motions[1:]:
        assert relative(motion.a, motions[0].a) < 1e-10
        assert relative(motion.lam, motions[0].lam) < 1e-10


# -- what a caller meets


def test_the_configured_leg_stands_on_its_foot():
    """With the efforts that balance it, the leg's foot carries the weight and nothing moves."""
    config, robot = leg_config(), leg()
    J = rows_at(robot, bind(robot, config.q, *config.constraints), config.q, config.v)[0]
    weight = robot.mass * GRAVITY
    tau = (bias_of(robot, config.q, config.v) - J[2] * weight)[robot.actuation]
    motion = constrained_acceleration(robot, config.q, config.v, tau, config.constraints)
    assert motion.multipliers("foot")[2] == pytest.approx(weight, rel=1e-11)
    assert np.abs(motion.a).max() < 1e-10


def test_external_wrench_is_the_jacobian_transpose():
    """A wrench at a point, in a link's axes, against Pinocchio's frame Jacobian."""
    rng = np.random.default_rng(8)
    robot = random_tree(rng, 5, True)
    q, v = random_state(robot, rng)
    force, torque, point = rng.normal(size=(3, 3))
    motion = constrained_acceleration(
        robot, q, v, np.zeros(5), [], wrenches=[Wrench("link3", force, torque, point, "link1")]
    )
    data = robot.model.createData()
    J = pin.computeFrameJacobian(robot.model, data, q, robot.model.getFrameId("link3"), pin.LOCAL_WORLD_ALIGNED)
    turn = placement(robot, q, "link1").rotation
    arm = placement(robot, q, "link3").rotation @ point
    generalised = J.T @ np.concatenate([turn @ force, turn @ torque + np.cross(arm, turn @ force)])
    assert relative(inertia_of(robot, q) @ motion.a, generalised - bias_of(robot, q, v)) < 1e-11


@pytest.mark.parametrize("part", ["q", "v", "tau"])
@pytest.mark.parametrize("bad", [[np.nan] * 3, [0.0], [np.inf, 0.0, 0.0], "text", None], ids=str)
def test_bad_input_is_refused(part, bad):
    """Wrong lengths and values that are not finite never enter."""
    given = {"q": leg().neutral(), "v": np.zeros(3), "tau": np.zeros(2)} | {part: bad}
    with pytest.raises(InvalidValue):
        constrained_acceleration(leg(), **given, constraints=[])


def test_unknown_and_duplicate_names_are_refused():
    """Links, solvers and constraints are looked up by name."""
    state = (leg(), leg().neutral(), np.zeros(3), np.zeros(2))
    anchor = PointAnchor("a", "foot", (0, 0, 0))
    with pytest.raises(UnknownName, match="lower_leg"):
        constrained_acceleration(*state, [PointAnchor("b", "nowhere", (0, 0, 0))])
    with pytest.raises(DuplicateName, match="a"):
        constrained_acceleration(*state, [anchor, anchor])
    with pytest.raises(UnknownName, match="null_space"):
        constrained_acceleration(*state, [anchor], "magic")
    with pytest.raises(InvalidValue):
        constrained_acceleration(*state, [anchor], 3)
    with pytest.raises(InvalidValue):
        constrained_acceleration(*state, ["a"])


@pytest.mark.parametrize(
    "wrong",
    [{"point_a": (0, 0)}, {"point_a": (0, 0, np.nan)}, {"point_b": (1,)}, {"normals": [(0, 0, 0)]}, {"normals": []},
     {"normals": [(1, 0)]}, {"normals": 3.0}, {"name": ""}, {"name": 4}],
    ids=str,
)  # fmt: skip
def test_anchors_check_their_values(wrong):
    """A point, a direction or a name that means nothing is refused on creation."""
    with pytest.raises(InvalidValue):
        PointAnchor(**{"name": "a", "link_a": "foot", "point_a": (0, 0, 0)} | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"point": (0, 0)},
        {"friction": -0.1},
        {"friction": np.inf},
        {"friction": True},
        {"restitution": 1.1},
        {"restitution": -0.1},
        {"radius": -1.0},
        {"law": "rigid"},
        {"surface": "ground"},
        {"law": Frictionless(), "friction": 0.1},
        {"law": Sticking(), "friction": 0.1},
        {"name": ""},
    ],
    ids=str,
)
def test_contacts_check_their_values(wrong):
    """Coefficients stay in their ranges, and laws that have none take none."""
    with pytest.raises(InvalidValue):
        PointContact(**{"name": "c", "link": "foot", "point": (0, 0, 0)} | wrong)


def test_results_cannot_be_written():
    """Results own read-only arrays."""
    motion = constrained_acceleration(
        leg(), leg().neutral(), np.zeros(3), np.zeros(2), [PointAnchor("a", "foot", (0, 0, 0))]
    )
    for array in (motion.a, motion.lam, motion.gamma):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# -- solvers that do not do everything, and Pinocchio's


def refused_by(solver, constraint, robot, q):
    """Check that a solver names what it cannot do, in every call that takes one, and that nothing changes."""
    state = robot, q, np.zeros(robot.nv)
    for call, arguments in ((constrained_acceleration, (np.zeros(robot.nu),)), (resolve_impact, ())):
        with pytest.raises(NotSupported, match=constraint.name):
            call(*state, *arguments, [constraint], solver)
    sim = simulator(robot, q, constraints=[constraint])
    with pytest.raises(NotSupported, match=constraint.name):
        sim.set_solver(solver)
    assert sim.solver.name == "range_space"
    sim = simulator(robot, q, solver=solver)
    with pytest.raises(NotSupported, match=constraint.name):
        sim.add(constraint)
    assert sim.constraints == ()


def test_solvers_name_what_they_cannot_do():
    """Gauss' principle knows no Coulomb friction; Pinocchio has no model of a coupling or of a single held row."""
    robot, q = solo12(), standing_solo()
    refused_by("gauss", PointContact("foot", "FL_FOOT", (0, 0, 0), friction=0.5), robot, q)
    refused_by("proximal", JointCoupling("gear", "FL_HFE", "FR_HFE", 1.0), robot, q)
    refused_by("proximal", PointAnchor("line", "FL_FOOT", (0, 0, 0), normals=[(0, 0, 1)]), robot, q)


@property_test(20)
@given(seed=seeds)
def test_gauss_with_normal_contacts(seed):
    """The inequalities of Gauss' principle are the complementarity of frictionless contacts."""
    rng = np.random.default_rng(seed)
    robot, q = solo12(), standing_solo(tilt=0.1)
    v, tau = 0.1 * rng.normal(size=robot.nv), rng.normal(size=robot.nu)
    constraints = [PointAnchor("held", "FL_FOOT", (0, 0, 0)), *solo_contacts()[1:]]
    expected = constrained_acceleration(robot, q, v, tau, constraints)
    motion = constrained_acceleration(robot, q, v, tau, constraints, "gauss")
    assert relative(motion.a, expected.a) < 1e-9
    assert relative(motion.lam, expected.lam) < 1e-9
    assert max(motion.dynamics_residual, motion.constraint_residual) < 1e-11


@property_test(20)
@given(seed=seeds)
def test_gauss_principle(seed):
    """Of all accelerations that the constraints allow, the true one is nearest to the free one in the metric of M."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    tau = rng.normal(size=robot.nu)
    anchor = random_anchor(rng, robot, "anchor", rows=2)
    J, _ = rows_at(robot, bind(robot, q, anchor), q, v)
    assume(well_conditioned(robot, q, J))
    M = inertia_of(robot, q)
    free = constrained_acceleration(robot, q, v, tau, []).a
    true = constrained_acceleration(robot, q, v, tau, [anchor]).a

    def compulsion(a):
        return 0.5 * (a - free) @ M @ (a - free)

    allowed = np.eye(robot.nv) - np.linalg.pinv(J) @ J
    for _ in range(20):
        other = true + allowed @ rng.normal(size=robot.nv)
        gain = compulsion(other) - compulsion(true)
        assert gain == pytest.approx(0.5 * (other - true) @ M @ (other - true), rel=1e-6)
        assert gain > 0.0


@property_test(20)
@given(seed=seeds)
def test_proximal_is_pinocchio(seed):
    """Acceleration and multipliers of frame and point anchors are those of pinocchio.constraintDynamics."""
    rng = np.random.default_rng(seed)
    robot, q = solo12(), standing_solo()
    q = pin.integrate(robot.model, q, 0.3 * rng.normal(size=robot.nv))
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nu)
    model, data = robot.model, robot.model.createData()
    anchors, contacts = [], pin.StdVec_RigidConstraintModel()
    for foot in SOLO_FEET[:2]:
        frame = model.frames[model.getFrameId(foot)]
        anchors.append(PointAnchor(foot, foot, (0, 0, 0)))
        at_foot = pin.SE3(np.eye(3), frame.placement.translation)
        ground = pin.SE3(np.eye(3), point_of(robot, q, foot))
        contacts.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, model, 0, ground, frame.parentJoint, at_foot, pin.ReferenceFrame.LOCAL
            )
        )
    datas = pin.StdVec_RigidConstraintData()
    for contact in contacts:
        datas.append(contact.createData())
    pin.initConstraintDynamics(model, data, contacts, datas)
    force = np.concatenate([np.zeros(6), tau])
    expected = pin.constraintDynamics(
        model, data, q, v, force, contacts, datas, pin.ProximalSettings(1e-14, 1e-14, 1e-9, 100)
    )
    motion = constrained_acceleration(robot, q, v, tau, anchors, "proximal")
    assert relative(motion.a, expected) < 1e-9
    assert relative(motion.lam, -data.lambda_c) < 1e-9  # Pinocchio's is the force on its first joint, the world


def test_condition_and_refusal_of_contradictions():
    """A foot in two places at once is refused on request, by name of what is wrong; one place twice is not."""
    robot, q = leg(), leg_config().q
    places = [PointAnchor(str(z), "foot", (0, 0, 0), point_b=(0.0, 0.0, z)) for z in (0.0, 0.3)]
    state, tau = (robot, q, np.zeros(3)), np.zeros(2)
    with pytest.raises(InconsistentConstraints):
        constrained_acceleration(*state, tau, places, stabilization=Baumgarte(0.1), refuse_inconsistent=True)
    with pytest.raises(InconsistentConstraints):
        resolve_impact(*state, places, row_velocity_plus={"0.3": (0, 0, 1.0)}, refuse_inconsistent=True)
    twice = [PointAnchor(name, "foot", (0, 0, 0)) for name in ("one", "other")]
    motion = constrained_acceleration(*state, tau, twice, refuse_inconsistent=True)
    J, _ = rows_at(robot, bind(robot, q, twice[0]), q, np.zeros(3))
    whitened = np.linalg.svd(np.linalg.solve(np.linalg.cholesky(inertia_of(robot, q)), J.T), compute_uv=False)
    assert motion.rank == 2
    assert motion.condition == pytest.approx((whitened[0] / whitened[1]) ** 2, rel=1e-9)
    assert resolve_impact(*state, twice).condition == pytest.approx(motion.condition, rel=1e-9)


@property_test(10)
@given(seed=seeds)
def test_external_forces_with_every_solver(seed):
    """A wrench on a link is a force like all others, for Kokkevis' method too."""
    rng = np.random.default_rng(seed)
    robot, q = solo12(), standing_solo()
    q = pin.integrate(robot.model, q, 0.2 * rng.normal(size=robot.nv))
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nu)
    feet = [PointAnchor(foot, foot, (0, 0, 0)) for foot in SOLO_FEET[:3]]
    push = Wrench("base_link", 20.0 * rng.normal(size=3), rng.normal(size=3), (0.1, 0.0, 0.05))
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    frame = robot.model.getFrameId("base_link")
    J_ext = pin.computeFrameJacobian(robot.model, data, q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    force = np.asarray(push.force)
    moment = np.asarray(push.torque) + np.cross(data.oMf[frame].rotation @ np.asarray(push.point), force)
    generalised = J_ext.T @ np.concatenate([force, moment])
    generalised[6:] += tau
    bound = bind(robot, q, *feet)
    J, _ = rows_at(robot, bound, q, v)
    for solver in every_solver(feet):
        motion = constrained_acceleration(robot, q, v, tau, feet, solver, wrenches=[push])
        rest = inertia_of(robot, q) @ motion.a + bias_of(robot, q, v) - generalised - J.T @ motion.lam
        assert np.abs(rest).max() < 1e-11 * np.abs(bias_of(robot, q, v)).max() + 1e-11 * np.abs(motion.lam).max()
        assert np.abs(J @ motion.a + motion.gamma).max() < 1e-9


@pytest.mark.parametrize("condition", [1e4, 1e7, 1e10])
def test_ill_conditioned_anchors_of_a_robot(condition):
    """Directions that are nearly one: no solver loses more digits than the condition that it states."""
    robot, rng = solo12(), np.random.default_rng(1)
    q = pin.integrate(robot.model, standing_solo(), 0.2 * rng.normal(size=robot.nv))
    v, tau = np.zeros(robot.nv), rng.normal(size=robot.nu)
    narrow = condition**-0.5
    normals = np.array([[0, 0, 1], [narrow, 0, 1], [0, 1, 1]])
    anchors = [PointAnchor("held", "FL_FOOT", (0, 0, 0), normals=normals)]
    bound = bind(robot, q, *anchors)
    J, _ = rows_at(robot, bound, q, v)
    force = np.zeros(robot.nv)
    force[6:] = tau
    for solver in every_solver(anchors):
        motion = constrained_acceleration(robot, q, v, tau, anchors, solver)
        M, h = inertia_of(robot, q), bias_of(robot, q, v)
        a, lam = exact_kkt(M, J, force - h, -motion.gamma)
        assert motion.rank == 3
        assert 0.02 * condition < motion.condition < 50.0 * condition
        assert motion.condition == pytest.approx(np.linalg.cond(J @ np.linalg.solve(M, J.T)), rel=1e-3)
        assert max(relative(motion.a, a), relative(motion.lam, lam)) < 100.0 * EPS * motion.condition


def test_stabilised_unilateral_rows_follow_their_activity_conditions():
    """``alpha = ddphi + 2/eps dphi + phi/eps^2``: complementary where phi <= 0 and dphi <= -phi/eps, else no force.

    A slider against its stop at -0.01: violated, touched, above; approaching, at rest, returning.
    """
    slide = mechanisms.joint("z", "prismatic", "base", "mass", (0, 0, 1), more=mechanisms.LIMIT)
    robot = Robot.from_urdf(mechanisms.urdf('<link name="base"/>', mechanisms.link("mass", 2.0), slide))
    stop, eps = JointLimit("stop", "z", -0.01, np.inf), 0.05
    pushed = 0
    for phi, s, force in itertools.product((-1e-3, 0.0, 1e-3), (-0.1, 0.0, 0.015, 0.03, 0.1), (0.0, 60.0)):
        motion = constrained_acceleration(robot, [phi - 0.01], [s], [force], [stop], stabilization=Baumgarte(eps))
        (lam,), free = motion.lam, force / 2.0 - GRAVITY
        alpha = motion.a[0] + 2.0 / eps * s + phi / eps**2
        if phi > 0.0 or s > -phi / eps + 1e-6:
            assert lam == 0.0
            assert motion.a[0] == pytest.approx(free, rel=1e-14)
        else:
            assert lam >= 0.0
            assert alpha >= -1e-9
            assert lam == pytest.approx(2.0 * max(0.0, -2.0 / eps * s - phi / eps**2 - free), abs=1e-9)
            pushed += lam > 0.0
    assert pushed >= 5


def test_rows_at_their_bound_that_leave_it_do_not_push():
    """Tedrake, sec. 3.1: no force where phi = 0 and dphi > 0; complementary where dphi = 0, up to rounding."""
    robot, q = mechanisms.leg(), np.array([0.3, 0.6, -1.2])
    stop = JointLimit("stop", "hip", 0.6, np.inf)
    free = constrained_acceleration(robot, q, [0.0, 0.5, 0.0], [-10.0, 0.0], [])
    leaving = constrained_acceleration(robot, q, [0.0, 0.5, 0.0], [-10.0, 0.0], [stop])
    assert leaving.lam == 0.0
    assert leaving.a == pytest.approx(free.a, rel=1e-12)
    for speed in (0.0, 1e-12):
        resting = constrained_acceleration(robot, q, [0.0, speed, 0.0], [-10.0, 0.0], [stop])
        assert resting.lam[0] > 1.0
        assert resting.a[1] == pytest.approx(0.0, abs=1e-9)


def test_what_is_no_feedback_or_no_list_is_refused():
    """By name, not by an error from within."""
    robot, anchor = mechanisms.leg(), PointAnchor("foot", "foot", (0, 0, 0))
    state = robot.neutral(), np.zeros(3), np.zeros(2)
    for wrong in (Projection(), 0.05):
        with pytest.raises(InvalidValue, match="None or a Baumgarte"):
            constrained_acceleration(robot, *state, [anchor], stabilization=wrong)
    with pytest.raises(InvalidValue, match="a list of them"):
        constrained_acceleration(robot, *state, anchor)


def test_functions_of_the_user_may_ask_about_the_same_robot():
    """What a function of time, a law or a generator of wrenches computes meanwhile leaves the call's results alone."""
    robot, q, v, tau = mechanisms.leg(), np.array([0.25, 0.6, -1.2]), np.array([0.1, 0.3, -0.4]), [1.0, -2.0]

    def elsewhere(value):
        constraint_system(robot, q + 0.3, -3.0 * v, [])
        return value

    def wrenches(pass_on):
        for k in range(2):
            yield Wrench("foot", force=pass_on((1.0, 2.0, 3.0 + k)))

    def constraints(pass_on):
        law = Compliant(law=lambda depth, rate: pass_on(max(0.0, 1e4 * depth + 100.0 * rate)))
        moving = PointAnchor(
            "moving",
            "foot",
            (0, 0, 0),
            point_b=lambda t: pass_on(([0.1 * t, 0.0, 0.1], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0])),
            normals=[(1, 0, 0)],
        )
        return [
            [JointVelocity("driven", "hip", lambda t: pass_on((0.3 + t, 1.0)))],
            [moving],
            [PointContact("soft", "foot", (0, 0, 0), law=law)],
        ]

    for plain, nested in zip(constraints(lambda value: value), constraints(elsewhere), strict=True):
        expected = constrained_acceleration(robot, q, v, tau, plain, t=0.2, wrenches=wrenches(lambda value: value))
        found = constrained_acceleration(robot, q, v, tau, nested, t=0.2, wrenches=wrenches(elsewhere))
        assert np.array_equal(found.a, expected.a)
        assert np.array_equal(found.lam, expected.lam)
        impacts = [resolve_impact(robot, q, v, some, t=0.2).v_plus for some in (plain, nested)]
        assert np.array_equal(*impacts)


def test_declarations_cannot_be_written():
    """Points, directions and wrenches are taken once; what is done to them later could change a simulation half-way."""
    contact = PointContact("c", "foot", (0, 0, 0))
    anchor = PointAnchor("a", "foot", (0, 0, 0), point_b=(0, 0, 1), normals=[(0, 0, 1)])
    for array in (contact.point, anchor.point_a, anchor.point_b, anchor.normals, Wrench("foot").force):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0

"""Each formula of the source texts, as a call, against plain NumPy on robots with nontrivial numbers."""

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    bias_of,
    chain,
    inertia_of,
    leg,
    leg_config,
    point_of,
    random_state,
    random_tree,
    relative,
    simulator,
    solo12,
    standing_solo,
)
from scipy.linalg import null_space

from constrained_sim import (
    Baumgarte,
    ContactConsistentDynamics,
    CustomConstraint,
    FrameAnchor,
    JointCoupling,
    JointVelocity,
    PointAnchor,
    PointContact,
    constrained_acceleration,
    constraint_system,
    inverse_dynamics,
    minimal_acceleration,
    project_velocity,
    solve_kkt,
)
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.textbook import (
    SpringDamper,
    UnweightedProjection,
    jacobian_rate,
    kokkevis_system,
    null_space_basis,
    null_space_method,
    point_force,
    position_step,
    row_equivalent,
    sparse_factorize_ltl,
    sparse_solve_ltx,
    sparse_solve_lx,
    weighted_pseudo_inverse,
)


def closed_robot(seed=3):
    """Return a floating tree in motion, efforts, and a loop with a gear: seven rows."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 7, floating_base=True)
    q, v = random_state(robot, rng)
    single = [
        name for name in robot.joint_names if robot.joint_models[name].nv == 1 and robot.joint_models[name].nq == 1
    ]
    loop = [
        PointAnchor("hand", "link5", (0.1, 0.2, -0.1)),
        FrameAnchor("part", "link7", pin.SE3.Identity(), axes=np.eye(6)[[1, 3, 5]]),
        JointCoupling("gear", single[0], single[1], -1.7),
    ]
    return robot, q, v, rng.normal(size=robot.nu), loop


def numbers(seed=3):
    """Return M, J, f and b of the accelerations of the closed robot."""
    robot, q, v, tau, loop = closed_robot(seed)
    system = constraint_system(robot, q, v, loop)
    f = -system.h
    f[robot.actuation] += tau
    return np.array(system.M), np.array(system.J), f, -system.gamma


def kkt(M, J, f, b):
    """Return x and lam of the whole system, by NumPy."""
    n, m = len(M), len(J)
    found = np.linalg.solve(np.block([[M, -J.T], [J, np.zeros((m, m))]]), np.concatenate([f, b]))
    return found[:n], found[n:]


# -- RBDL


def test_null_space_method_with_bases_of_the_caller():
    """Any Y and Z: the motion, the multipliers, and the coordinates of both parts."""
    M, J, f, b = numbers()
    rng = np.random.default_rng(1)
    m, n = J.shape
    Y = J.T @ rng.normal(size=(m, m)) + null_space(J) @ rng.normal(size=(n - m, m))
    Z = null_space(J) @ rng.normal(size=(n - m, n - m))
    x, lam = kkt(M, J, f, b)
    for bases in ({}, {"Y": Y}, {"Z": Z}, {"Y": Y, "Z": Z}):
        found = null_space_method(M, J, f, b, **bases)
        assert relative(found.x, x) < 1e-9
        assert relative(found.lam, lam) < 1e-8
        assert relative(found.Y @ found.x_y + found.Z @ found.x_z, x) < 1e-9
        assert relative(J @ found.Y @ found.x_y, b) < 1e-10
    coordinates = np.linalg.solve(np.column_stack([Y, Z]), x)
    assert relative(np.concatenate([found.x_y, found.x_z]), coordinates) < 1e-8


def test_bases_that_are_none_are_refused():
    """Z outside the null space, columns that depend on each other, Y without range, other shapes."""
    M, J, f, b = numbers()
    Z, Y = null_space(J), J.T
    wrong = (
        {"Z": Z + 1e-6 * np.ones_like(Z)},
        {"Z": np.column_stack([Z[:, 1:], Z[:, 1]])},
        {"Y": np.column_stack([Y[:, 1:], Y[:, 1]])},
        {"Y": np.tile(Z[:, :1], len(J))},
        {"Y": Y[1:]},
    )
    for bases in wrong:
        with pytest.raises(InvalidValue, match=f"^{next(iter(bases))}"):
            null_space_method(M, J, f, b, **bases)
    with pytest.raises(InvalidValue, match=r"^J"):
        null_space_method(M, np.vstack([J, J[:1]]), f, np.append(b, b[0]))


def test_factorisation_with_branches():
    """L^T L = M without fill-in, and its solves, for the parents of a quadruped, and of the caller's own tree."""
    robot, q = solo12(), standing_solo()
    M, parents = inertia_of(robot, q), robot.model.createData().parents_fromRow
    L = sparse_factorize_ltl(M, parents)
    assert relative(L.T @ L, M) < 1e-14
    legs = [slice(6 + 3 * i, 9 + 3 * i) for i in range(4)]
    assert not any(L[one, other].any() for one in legs for other in legs if one != other)
    x = np.random.default_rng(5).normal(size=robot.nv)
    assert relative(L.T @ sparse_solve_ltx(L, parents, x), x) < 1e-13
    assert relative(L @ sparse_solve_lx(L, parents, x), x) < 1e-13
    assert relative(M @ sparse_solve_lx(L, parents, sparse_solve_ltx(L, parents, x)), x) < 1e-12


def test_range_space_with_the_parents_of_the_caller():
    """RBDL's SolveContactSystemRangeSpaceSparse, for matrices that no robot of ours has made."""
    parents = [-1, 0, 1, 0, 3, 3, -1, 6]
    rng = np.random.default_rng(8)
    size = len(parents)
    L = np.diag(rng.uniform(1.0, 2.0, size))
    for i, parent in enumerate(parents):
        while parent >= 0:
            L[i, parent], parent = rng.normal(), parents[parent]
    M, J = L.T @ L, rng.normal(size=(3, size))
    f, b = rng.normal(size=size), rng.normal(size=3)
    np.testing.assert_allclose(sparse_factorize_ltl(M, parents), L, atol=1e-14)
    for found, expected in zip(solve_kkt(M, J, f, b, "range_space", parents=parents), kkt(M, J, f, b), strict=True):
        assert relative(found, expected) < 1e-11
    for wrong in ([-1, 0, 1, 2, 3, 4, 5], [0] * 8, [-1, 0, 1, 0, 3, 3, -1, 7], [-1.5] * 8, "x", [-1] * 8):
        with pytest.raises(InvalidValue):
            solve_kkt(M, J, f, b, "range_space", parents=wrong)


def test_kokkevis_system():
    """Phi and phi of vdot = Phi f + phi; solved for vdot = 0 they give the multipliers, contacts included."""
    robot, q, v, tau, loop = closed_robot()
    M, J, f, b = numbers()
    Phi, phi = kokkevis_system(robot, q, v, tau, loop)
    assert relative(Phi, J @ np.linalg.solve(M, J.T)) < 1e-9
    assert relative(phi, J @ np.linalg.solve(M, f) - b) < 1e-9
    assert relative(np.linalg.solve(Phi, -phi), kkt(M, J, f, b)[1]) < 1e-7
    foot = PointContact("floor", "foot", (0, 0, 0))
    system = constraint_system(leg(), leg_config().q, [0.1, 0.2, 0.3], [foot])
    Phi, _ = kokkevis_system(leg(), leg_config().q, [0.1, 0.2, 0.3], [1.0, 2.0], [foot])
    np.testing.assert_allclose(Phi, system.J @ np.linalg.solve(system.M, system.J.T), atol=1e-10)


# -- the lecture, and Aghili


def test_projection_without_weights():
    """P = I - J^+ J, Mc = P M + I - P, and the acceleration and multipliers that they give; for dependent rows too."""
    M, J, f, b = numbers()
    P = np.eye(len(M)) - np.linalg.pinv(J) @ J
    for rows, right in ((J, b), (np.vstack([J, 2.0 * J[:2]]), np.concatenate([b, 2.0 * b[:2]]))):
        projection = UnweightedProjection(M, rows)
        assert np.abs(projection.P - P).max() < 1e-12
        assert np.abs(projection.P @ rows.T).max() < 1e-12
        assert np.abs(projection.Mc - (P @ M + np.eye(len(M)) - P)).max() < 1e-11
        x, _ = kkt(M, J, f, b)
        assert relative(projection.acceleration(f, right), x) < 1e-9
        expected = np.linalg.pinv(rows.T) @ (M @ x - f)
        assert relative(projection.multipliers(projection.acceleration(f, right), f), expected) < 1e-7


@pytest.mark.parametrize("weight", ["mass", "identity", "any"])
def test_pseudo_inverse_with_a_weight(weight):
    """(A^T W A)^-1 A^T W with A = J^T: a left inverse, whose projector removes J^T; for M^-1 that of ``Lambda``."""
    M, J, _, _ = numbers()
    root = np.random.default_rng(4).normal(size=M.shape)
    W = {"mass": np.linalg.inv(M), "identity": np.eye(len(M)), "any": root @ root.T + 0.1 * np.eye(len(M))}[weight]
    inverse = weighted_pseudo_inverse(J.T, W)
    assert relative(inverse, np.linalg.solve(J @ W @ J.T, J @ W)) < 1e-8
    np.testing.assert_allclose(inverse @ J.T, np.eye(len(J)), atol=1e-10)
    N = np.eye(len(M)) - J.T @ inverse
    assert np.abs(N @ J.T).max() < 1e-10
    if weight == "mass":
        assert relative(inverse, ContactConsistentDynamics(M, J).J_bar.T) < 1e-8
    elif weight == "identity":
        assert relative(inverse, np.linalg.pinv(J.T)) < 1e-11


def test_weights_and_columns_that_are_none_are_refused():
    """A weight that is not positive definite or not symmetric, of another shape, and columns that depend."""
    A, W = np.array([[1.0, 2.0], [0.5, 1.0], [0.3, 0.1]]), np.eye(3)
    for name, wrong in (("W", -W), ("W", np.triu(np.ones((3, 3)))), ("W", np.eye(2)), ("W", W * np.nan)):
        with pytest.raises(InvalidValue, match=f"^{name}"):
            weighted_pseudo_inverse(A, wrong)
    for wrong in (A[:, [0, 0]], A.T, "x", A * np.inf):
        with pytest.raises(InvalidValue):
            weighted_pseudo_inverse(wrong, W)


def test_soft_contact_by_a_law_of_the_user():
    """Springs and dampers with other constants along the surface; a force that only pushes; the motion that follows."""
    robot, q, v = leg(), leg_config().q, np.array([0.1, -0.4, 0.3])
    p0, K, D = np.array([0.02, 0.0, 0.01]), np.array([300.0, 100.0, 2000.0]), np.array([3.0, 1.0, 20.0])
    wrench = point_force(robot, q, v, "foot", (0, 0, 0), lambda p, s: K * (p0 - p) - D * s)
    system = constraint_system(robot, q, v, [PointAnchor("foot", "foot", (0, 0, 0))])
    force = K * (p0 - point_of(robot, q, "foot")) - D * (system.J @ v)
    np.testing.assert_allclose(wrench.force, force, rtol=1e-12)
    a = constrained_acceleration(robot, q, v, [0.5, 1.0], [], wrenches=[wrench]).a
    expected = np.linalg.solve(system.M, system.J.T @ force - system.h + np.array([0.0, 0.5, 1.0]))
    assert relative(a, expected) < 1e-12
    with pytest.raises(InvalidValue, match="force of a law"):
        point_force(robot, q, v, "foot", (0, 0, 0), lambda p, s: [np.nan, 0, 0])
    with pytest.raises(UnknownName):
        point_force(robot, q, v, "hand", (0, 0, 0), lambda p, s: p)


def test_spring_between_two_points():
    """Hooke's law; the opposite at the other end; its power is what its energy loses, a damper's never positive."""
    robot, q, v = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4]), np.array([0.7, -1.2, 0.4])
    spring = SpringDamper("rod1", (0.0, 0.0, -0.2), "tip", (0, 0, 0), stiffness=200.0, rest_length=0.3)
    pull, back = spring.wrenches(robot, q, v)
    line = point_of(robot, q, "tip") - point_of(robot, q, "rod1", (0, 0, -0.2))
    length = np.linalg.norm(line)
    np.testing.assert_allclose(pull.force, 200.0 * (length - 0.3) * line / length, rtol=1e-12)
    np.testing.assert_array_equal(pull.force, -back.force)

    def effort(spring):
        moved, free = (
            constrained_acceleration(robot, q, v, np.zeros(3), [], wrenches=wrenches).a
            for wrenches in (spring.wrenches(robot, q, v), ())
        )
        return inertia_of(robot, q) @ (moved - free)

    gained = (spring.energy(robot, q + 1e-6 * v) - spring.energy(robot, q - 1e-6 * v)) / 2e-6
    assert effort(spring) @ v == pytest.approx(-gained, rel=1e-8)
    assert abs(gained) > 0.1
    damper = SpringDamper("rod1", (0.0, 0.0, -0.2), "tip", (0, 0, 0), damping=5.0)
    rate = (np.linalg.norm(_line(robot, q + 1e-6 * v)) - np.linalg.norm(_line(robot, q - 1e-6 * v))) / 2e-6
    assert effort(damper) @ v == pytest.approx(-5.0 * rate**2, rel=1e-6)
    with pytest.raises(InvalidValue, match="direction"):
        SpringDamper("tip", (0, 0, 0), "tip", (0, 0, 0), 1.0).wrenches(robot, q, v)


def _line(robot, q):
    return point_of(robot, q, "tip") - point_of(robot, q, "rod1", (0, 0, -0.2))


# -- Savin


def test_null_space_and_projection_of_velocities():
    """N = null(F), orthonormal; N N^+ v is what the call gives."""
    robot, q, v, _, loop = closed_robot()
    F = constraint_system(robot, q, v, loop).J
    N = null_space_basis(F)
    assert N.shape == (robot.nv, robot.nv - len(F))
    np.testing.assert_allclose(N.T @ N, np.eye(N.shape[1]), atol=1e-13)
    assert np.abs(F @ N).max() < 1e-12
    assert relative(project_velocity(robot, q, v, loop, "euclidean"), N @ N.T @ v) < 1e-10
    assert null_space_basis(np.zeros((0, 4))).shape == null_space_basis(np.zeros((2, 4))).shape == (4, 4)


def test_position_in_one_step():
    """q = (I - N N^+)(q0 - F^+ g0) + N N^+ qe, as printed: a curved row keeps what the linearisation leaves."""
    robot, q0 = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    pinned = PointAnchor("pin", "tip", (0, 0, 0), point_b=point_of(robot, q0, "tip") + np.array([0.01, 0.0, -0.02]))
    estimate = q0 + np.array([0.02, -0.03, 0.05])
    system = constraint_system(robot, q0, np.zeros(3), [pinned])
    N = null_space(system.J, rcond=1e-10)
    particular = q0 - np.linalg.pinv(system.J, rcond=1e-10) @ system.phi
    expected = (np.eye(3) - N @ N.T) @ particular + N @ N.T @ estimate
    found = position_step(robot, estimate, [pinned], about=q0)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    left = np.abs(constraint_system(robot, found, np.zeros(3), [pinned]).phi).max()
    assert 1e-6 < left < 1e-3


# -- inverse dynamics


@pytest.mark.parametrize("seed", range(4))
def test_orthogonal_decomposition_of_dependent_rows(seed):
    """R has full row rank and the null space of G: G = Q [R; 0] with orthogonal Q."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(6, 3)) @ rng.normal(size=(3, 8))
    R = row_equivalent(G)
    assert R.shape == (3, 8)
    assert np.abs(R @ null_space(G)).max() < 1e-12
    np.testing.assert_allclose(R.T @ R, G.T @ G, atol=1e-11)  # which says that a Q exists
    assert row_equivalent(np.zeros((2, 4))).shape == row_equivalent(np.zeros((0, 4))).shape == (0, 4)


def test_actuation_by_a_matrix():
    """A differential: motors that act on sums and differences of joints; forward, minimal and inverse agree."""
    robot, q = chain((0.5, 0.3, 0.4, 0.2)), np.array([0.5, 1.1, -0.4, 0.3])
    v, B = np.array([0.3, -0.2, 0.5, 0.1]), np.array([[0.0, 0.0], [1.0, 1.0], [2.0, -2.0], [0.0, 0.5]])
    loop = [PointAnchor("loop", "tip", (0, 0, 0))]
    v = project_velocity(robot, q, v, loop)
    M, h, u = inertia_of(robot, q), bias_of(robot, q, v), np.array([0.7, -0.4])
    J = constraint_system(robot, q, v, loop).J[[0, 2]]
    gamma = constraint_system(robot, q, v, loop).gamma[[0, 2]]
    a, _ = kkt(M, J, B @ u - h, -gamma)
    motion = constrained_acceleration(robot, q, v, u, loop, actuation=B)
    assert relative(motion.a, a) < 1e-10
    assert relative(minimal_acceleration(robot, q, v, u, loop, actuation=B), a) < 1e-10
    names = ("joint1", "joint2")
    wanted = a[[robot.velocity_names.index(name) for name in names]]
    inverse = inverse_dynamics(robot, q, v, wanted, loop, independent=names, actuation=B)
    assert relative(inverse.tau, u) < 1e-8
    assert inverse.residual < 1e-12
    plain = constrained_acceleration(robot, q, v, [0.1, 0.2, 0.3, 0.4], loop)
    same = constrained_acceleration(robot, q, v, [0.1, 0.2, 0.3, 0.4], loop, actuation=np.eye(4))
    np.testing.assert_array_equal(plain.a, same.a)
    with pytest.raises(InvalidValue, match="actuation"):
        constrained_acceleration(robot, q, v, u, loop, actuation=B[:3])
    with pytest.raises(InvalidValue, match="limited"):
        inverse_dynamics(robot, q, v, wanted, loop, independent=names, limited=True, actuation=B)


def test_rate_of_the_jacobian():
    """Jdot v is gamma, and Jdot what a difference of J gives, for a floating robot with loops and contacts."""
    robot, q, v, _, loop = closed_robot()
    Jdot = jacobian_rate(robot, q, v, loop)
    np.testing.assert_allclose(Jdot @ v, constraint_system(robot, q, v, loop).gamma, atol=1e-7)
    h = 1e-6
    far, near = (constraint_system(robot, pin.integrate(robot.model, q, s * v), v, loop[:1]).J for s in (h, -h))
    np.testing.assert_allclose(Jdot[:3], (far - near) / (2.0 * h), atol=1e-6)


# -- Tedrake


def test_each_constraint_has_its_own_time_constant():
    """lambda = -(J H^-1 J^T)^-1 (J H^-1 (Bu - C) + Jdot v + 2/eps phidot + phi/eps^2), eps row by row."""
    robot, q = chain((0.5, 0.3, 0.4, 0.2)), np.array([0.5, 1.1, -0.4, 0.3])
    v, tau = np.array([0.3, -0.2, 0.5, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    target = point_of(robot, q, "tip") + np.array([0.01, 0.0, 0.02])
    loop = PointAnchor("loop", "tip", (0, 0, 0), point_b=target, normals=[(1, 0, 0), (0, 0, 1)])
    gear, drive = JointCoupling("gear", "joint2", "joint1", 0.8, 0.1), JointVelocity("drive", "joint0", 0.7)
    constraints, eps = [loop, gear, drive], {"loop": 0.05, "gear": 0.2, "drive": 0.5}
    M, J, h, gamma, phi, s, slices = (
        getattr(constraint_system(robot, q, v, constraints), name)
        for name in ("M", "J", "h", "gamma", "phi", "s", "slices")
    )
    feedback = np.zeros(4)
    for name, rows in slices.items():
        e = eps[name]
        feedback[rows] = s[rows] / e if name == "drive" else 2.0 / e * s[rows] + phi[rows] / e**2
    a, lam = kkt(M, J, tau - h, -gamma - feedback)
    for stabilization in (Baumgarte(each=eps), Baumgarte(0.5, each={"loop": Baumgarte(0.05), "gear": 0.2})):
        motion = constrained_acceleration(robot, q, v, tau, constraints, stabilization=stabilization)
        assert relative(motion.a, a) < 1e-9
        assert relative(motion.lam, lam) < 1e-9
    with pytest.raises(UnknownName, match="rope"):
        constrained_acceleration(robot, q, v, tau, constraints, stabilization=Baumgarte(each={"rope": 0.1}))
    with pytest.raises(InvalidValue):
        Baumgarte(each={"loop": -1.0})


def test_velocity_constraints_of_the_caller():
    """lambda of psi(q, v) = 0 that is not linear in v: -(K H^-1 K^T)^-1 (K H^-1 (Bu - C) + dpsi/dq v + psi / eps)."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    v, tau, eps = np.array([0.7, -1.2, 0.4]), np.array([0.1, 0.2, 0.3]), 0.1
    drive = CustomConstraint(
        "drive",
        2,
        velocity=lambda q, v, t: [v[0] * v[1] + np.sin(q[2]) * v[2] - 0.3, v[2] + q[0] * v[0]],
        jacobian=lambda q, v, t: [[v[1], v[0], np.sin(q[2])], [q[0], 0.0, 1.0]],
        gamma=lambda q, v, t: [np.cos(q[2]) * v[2] ** 2, v[0] ** 2],
    )
    psi = np.array([v[0] * v[1] + np.sin(q[2]) * v[2] - 0.3, v[2] + q[0] * v[0]])
    K, rate = np.array([[v[1], v[0], np.sin(q[2])], [q[0], 0.0, 1.0]]), [np.cos(q[2]) * v[2] ** 2, v[0] ** 2]
    Minv, h = np.linalg.inv(inertia_of(robot, q)), bias_of(robot, q, v)
    expected = -np.linalg.inv(K @ Minv @ K.T) @ (K @ Minv @ (tau - h) + rate + psi / eps)
    motion = constrained_acceleration(robot, q, v, tau, [drive], stabilization=Baumgarte(eps))
    assert relative(motion.lam, expected) < 1e-10
    assert relative(motion.a, Minv @ (tau - h + K.T @ expected)) < 1e-10


@pytest.mark.parametrize("stepper", ["smooth", "event_driven"])
def test_violations_decay_each_at_its_own_rate(stepper):
    """phi(t) = phi_0 (1 + t / eps) exp(-t / eps) of critically damped rows that start at rest."""
    robot = chain((0.5, 0.3, 0.4))
    q0, off = np.array([0.5, 1.1, -0.4]), np.array([5e-5, -8e-5])
    rows = [
        CustomConstraint(
            f"row{i}",
            1,
            phi=lambda q, v, t, i=i: [q[i] - q0[i] - off[i]],
            jacobian=lambda q, v, t, i=i: np.eye(3)[[i]],
            gamma=lambda q, v, t: [0.0],
        )
        for i in range(2)
    ]
    eps = np.array([0.02, 0.1])
    feedback = Baumgarte(each={"row0": eps[0], "row1": eps[1]})
    sim = simulator(robot, q0, constraints=rows, stepper=stepper, stabilization=feedback, dt=1e-3)
    sim.run(0.05)
    expected = -off * (1.0 + 0.05 / eps) * np.exp(-0.05 / eps)
    np.testing.assert_allclose(sim.state.q[:2] - q0[:2] - off, expected, rtol=1e-4)


def test_a_contact_has_its_own_time_constant():
    """The least value of alpha = J a + gamma + 2 / eps s + phi / eps^2 is 0, the feedback added, not taken away."""
    q = leg_config().q
    q = q - np.array([point_of(leg(), q, "foot")[2] + 1e-3, 0, 0])
    depth = point_of(leg(), q, "foot")[2]
    foot = PointContact("floor", "foot", (0, 0, 0))
    for eps in (0.05, 0.2):
        motion = constrained_acceleration(
            leg(), q, np.zeros(3), [0, 0], [foot], stabilization=Baumgarte(1.0, each={"floor": eps})
        )
        J = constraint_system(leg(), q, np.zeros(3), [foot]).J
        assert motion.multipliers("floor")[2] > 0.0
        assert J[2] @ motion.a == pytest.approx(-depth / eps**2, rel=1e-9)


def test_a_slip_in_the_text_on_inverse_dynamics():
    """Gamma v_ind = v holds; the text's Gamma^T v = v_ind does not, Gamma^+ v = v_ind does."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    loop = [PointAnchor("loop", "tip", (0, 0, 0), normals=[(1, 0, 0)])]
    v = project_velocity(robot, q, np.array([0.3, -0.2, 0.5]), loop)
    found = inverse_dynamics(robot, q, v, [0.0, 0.0], loop, independent=("joint0", "joint1"))
    Gamma = found.velocity_map
    np.testing.assert_allclose(Gamma @ v[:2], v, atol=1e-12)
    assert np.abs(Gamma.T @ v - v[:2]).max() > 0.05
    np.testing.assert_allclose(np.linalg.pinv(Gamma) @ v, v[:2], atol=1e-12)

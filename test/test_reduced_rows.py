"""Contacts of the same two bodies, and joints that dry friction holds: sticking with fewer unknowns."""

import numpy as np
import pytest
from mechanisms import double_pendulum, inertia_of, pseudo_kkt, random_state, random_tree, relative

from constrained_sim import JointVelocity, Simulator
from constrained_sim.contact_solvers.reduced_rows import (
    expand_rows,
    expanded_diagonal,
    reduce_contact_rows,
    reduce_rows,
    reduce_vector,
)
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.contact_solvers.scaled_problem import ContactLaws
from constrained_sim.contact_solvers.smallest_motion import smallest_motion, smallest_reduced_motion
from constrained_sim.contact_solvers.sticking_dynamics import sticking_dynamics
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.tree import contract
from constrained_sim.linalg.products import gram, largest_entry, matvec, vecdot, vecmat
from constrained_sim.solvers.held_dynamics import TreeInertia
from constrained_sim.solvers.held_rows import DIRECT, NULL_SPACE, RANGE_SPACE, hold_rows

NO_ROLLING = no_rolling()


def random_axes(rng, count):
    """Return (count, 3, 3) rows t1, t2, n."""
    return np.array([np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(count)]).reshape(-1, 3, 3)


def dense(reduced):
    """Return Q as a matrix."""
    first, width, entries, columns = reduced
    Q = np.zeros((len(first), columns))
    for i, (begin, count) in enumerate(zip(first, width, strict=True)):
        Q[i, begin : begin + count] = entries[i, :count]
    return Q


@pytest.mark.parametrize(
    ("where", "axis", "expected"),
    [
        ("anywhere", slice(None), 6),
        ("on a line", slice(None), 5),
        ("at one point", slice(None), 3),
        ("in a plane", slice(2, 3), 3),
        ("on a line", slice(2, 3), 2),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_basis_of_contacts_of_one_body(where, axis, expected, offset):
    """Q is orthonormal, has as many columns as the rows are independent, and loses nothing of them."""
    rng = np.random.default_rng(0)
    count = 4
    points = rng.normal(size=(count, 3)) * {"on a line": (0, 1, 0), "in a plane": (1, 1, 0)}.get(where, 1.0)
    points = np.zeros((count, 3)) if where == "at one point" else points
    axes = random_axes(rng, count) if axis == slice(None) else np.tile(np.eye(3), (count, 1, 1))
    arms = np.cross(points[:, None], axes)
    A = np.concatenate([axes, arms], axis=2)[:, axis].reshape(-1, 6)
    J = A @ rng.normal(size=(6, 9))
    rows = np.array([3 * c + i for c in range(count) for i in range(3)[axis]])
    reduced = reduce_contact_rows(rows, np.tile([[2, 0]], (count, 1)), axes, points + offset)
    Q = dense(reduced)
    rounding = 1e-15 * max(1.0, offset)
    assert reduced[3] == expected
    assert np.abs(Q.T @ Q - np.eye(expected)).max() < 1e-14
    assert relative(Q @ (Q.T @ J), J) < 100 * rounding
    values, combined = rng.normal(size=len(rows)), rng.normal(size=expected)
    H = (Q.T @ J) @ (Q.T @ J).T
    assert relative(reduce_rows(reduced, J), Q.T @ J) < 1e-14
    assert relative(reduce_vector(reduced, values), Q.T @ values) < 1e-14
    assert relative(expand_rows(reduced, combined), Q @ combined) < 1e-14
    assert relative(expanded_diagonal(reduced, H), np.diag(Q @ H @ Q.T)) < 1e-14


def test_rows_of_other_bodies_and_limits_stay_what_they_are():
    """Only neighbours of the same two bodies are combined: contacts of others, and one-sided rows, keep theirs."""
    rng = np.random.default_rng(1)
    bodies = np.array([[1, 0], [2, 0], [2, 0], [2, 1], [3, 0]])
    rows = np.arange(17)  # three of each contact, and two limits
    Q = dense(reduce_contact_rows(rows, bodies, random_axes(rng, 5), rng.normal(size=(5, 3))))
    assert Q.shape == (17, 16)  # two points of a body: five of six
    alone = [*range(3), *range(9, 17)]
    assert (np.sort(Q[alone], axis=1)[:, -1] == 1.0).all()
    assert (Q[alone] != 0.0).sum() == len(alone)
    assert (Q[3:9] != 0.0).any(axis=0).sum() == 5


def standing(seed, dry):
    """Return a robot with four points of one link and one of its base on something, and what it takes to hold it.

    Forces inside all cones hold it still, up to their part that does not show.
    """
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 9, floating_base=True)
    q, v = random_state(robot, rng)
    dynamics, M = Dynamics.at(robot, q, v), inertia_of(robot, q)
    bodies = np.array([[robot.model.njoints - 1, 0]] * 4 + [[1, 0]])
    middles = dynamics.placements[bodies[:, 0], 3]
    points, axes = middles + 0.1 * rng.normal(size=(5, 3)), random_axes(rng, 5)
    axes[:4] = axes[0]
    held = np.sort(rng.choice(np.arange(6, robot.nv), size=dry, replace=False))
    J = np.vstack([dynamics.row_jacobian(bodies[:, 0].copy(), points, axes), np.eye(robot.nv)[held]])
    G = J @ np.linalg.solve(M, J.T)
    wanted = np.concatenate([np.tile([0.0, 0.0, 1.0], 5), 0.1 * rng.normal(size=dry)])
    x0 = rng.normal(size=robot.nv)
    offset = -G @ wanted - J @ x0
    reduced = reduce_contact_rows(np.arange(15 + dry), bodies, axes, points)
    others = contract(robot.tree.rows, held)
    return robot, M, J, M @ x0, offset, reduced, (held, *others), np.linalg.pinv(G, 1e-10, hermitian=True) @ G @ wanted


def condition_of_rows(M, J):
    """Return by how much rounding of what 18 rows have to do grows in their forces of least norm.

    These are ``r = G^+ w``: rounding of the products, 18 eps |G| |r| at most, divided by the least singular value of G
    that is not zero.
    """
    values = np.linalg.svd(J @ np.linalg.solve(M, J.T), compute_uv=False)
    return values[0] / values[values > 1e-10 * values[0]].min()


@pytest.mark.parametrize("factorization", [DIRECT, RANGE_SPACE, NULL_SPACE])
@pytest.mark.parametrize("dry", [0, 3])
def test_sticking_with_fewer_unknowns(dry, factorization):
    """Forces are those of least norm, velocities what they lead to, where all stick: against the pseudo-inverse."""
    solved = 0
    for seed in range(100):
        robot, M, J, f, offset, reduced, held, expected = standing(seed, dry)
        free = np.linalg.solve(M, f)
        friction, slip, most = np.full(5, 5.0), np.zeros((5, 2)), np.full(dry, 100.0)
        x, found, dynamics = sticking_dynamics(
            factorization,
            TreeInertia(M, robot.tree.rows),
            f,
            (J, offset),
            reduced,
            held,
            ContactLaws(friction, slip, -most, most, NO_ROLLING),
            1e-12,
        )
        inside = (np.hypot(expected[0:15:3], expected[1:15:3]) < 5.0 * expected[2:15:3]).all()
        if not inside:
            assert not found.solved
            continue
        solved += found.solved
        condition = np.linalg.cond(M)
        rounding = 1e-14 * condition_of_rows(M, J)
        assert relative(found.impulse, expected) < rounding
        assert relative(x, free + np.linalg.solve(M, J.T @ expected)) < rounding
        assert np.abs(J @ x + offset).max() < 1e-13 * condition * max(1.0, np.abs(offset).max())
        assert (found.status == 1).all()
        assert found.residual < 1e-11
        assert dynamics < 1e-14
        assert 0.5 * np.abs(expected).max() < found.magnitude
    assert solved > 15


@pytest.mark.parametrize("factorization", [DIRECT, RANGE_SPACE, NULL_SPACE])
def test_contacts_on_what_dry_friction_holds_share_the_load(factorization):
    """Contacts and dry friction that hold the same body: forces are those of least norm, against the pseudo-inverse."""
    rng = np.random.default_rng(4)
    robot = random_tree(rng, 5)
    q, v = random_state(robot, rng)
    dynamics, M = Dynamics.at(robot, q, v), inertia_of(robot, q)
    bodies, held = np.array([[robot.model.njoints - 1, 0]]), np.arange(robot.nv)
    points, axes = rng.normal(size=(1, 3)), random_axes(rng, 1)
    J = np.vstack([dynamics.row_jacobian(bodies[:, 0].copy(), points, axes), np.eye(robot.nv)])
    reduced, most = reduce_contact_rows(np.arange(len(J)), bodies, axes, points), np.full(robot.nv, 100.0)
    wanted = np.array([0.1, 0.2, 1.0, *rng.normal(size=robot.nv)])
    G = J @ np.linalg.solve(M, J.T)
    laws = ContactLaws(np.ones(1), np.zeros((1, 2)), -most, most, NO_ROLLING)
    joint_friction = held, *contract(robot.tree.rows, held)
    x, found, _ = sticking_dynamics(
        factorization,
        TreeInertia(M, robot.tree.rows),
        -J.T @ wanted,
        (J, np.zeros(len(J))),
        reduced,
        joint_friction,
        laws,
        0.0,
    )
    expected = np.linalg.pinv(G, 1e-10, hermitian=True) @ G @ wanted
    assert np.abs(x).max() < 1e-13
    condition = np.linalg.cond(M) * np.linalg.cond(J @ J.T + 1e-3 * np.eye(len(J)))
    assert relative(found.impulse, expected) < 1e-14 * condition
    assert found.solved == (np.hypot(*expected[:2]) <= expected[2])


@pytest.mark.parametrize("factorization", [DIRECT, RANGE_SPACE, NULL_SPACE])
@pytest.mark.parametrize("repeated", [0, 4])
def test_held_rows(factorization, repeated):
    """Motion and multipliers of least norm, also of zero rows and of rows that repeat others: by the pseudo-inverse."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        robot = random_tree(rng, 9, floating_base=True)
        M = inertia_of(robot, random_state(robot, rng)[0])
        J = rng.normal(size=(6, robot.nv))
        J = np.vstack([J, np.zeros((1, robot.nv)), rng.normal(size=(repeated, 6)) @ J])
        f, b = rng.normal(size=robot.nv), J @ rng.normal(size=robot.nv)
        held = hold_rows(factorization, M, robot.tree.rows, J, f, b)
        expected_x, expected_y = pseudo_kkt(M, J, f, b)
        rounding = 1e-15 * condition_of_rows(M, J) * np.linalg.cond(M)
        assert relative(held.x, expected_x) < rounding
        assert relative(held.y, expected_y) < rounding
        assert relative(held.free, J @ np.linalg.solve(M, f)) < 1e-14 * np.linalg.cond(M)
        assert relative(held.delassus, J @ np.linalg.solve(M, J.T)) < 1e-14 * np.linalg.cond(M)
        assert held.is_independent == (not repeated)


def test_smallest_motion_with_shared_rows():
    """It is that of all rows, for gaps that a body can close and for such that it cannot (least squares)."""
    for seed in range(20):
        robot, M, J, _, _, reduced, _, _ = standing(seed, 0)
        target = 1e-6 * np.random.default_rng(seed).normal(size=15)
        for gaps in (J @ np.linalg.lstsq(J, target)[0], target):
            ours = smallest_reduced_motion(M, robot.tree.rows, J, reduced, gaps)
            assert relative(ours, smallest_motion(M, robot.tree.rows, J, gaps)) < 1e-13 * np.linalg.cond(M)


@pytest.mark.parametrize("shape", [(0, 3), (3, 3), (7, 0), (16, 20), (17, 20), (44, 38)])
def test_products(shape):
    """They are NumPy's, up to the order of sums; NaN stays."""
    rng = np.random.default_rng(0)
    A, x, y = rng.normal(size=shape), rng.normal(size=shape[1]), rng.normal(size=shape[0])
    assert np.allclose(matvec(A, x), A @ x, rtol=0.0, atol=1e-13)
    assert np.allclose(vecmat(y, A), y @ A, rtol=0.0, atol=1e-13)
    assert np.isclose(vecdot(x, x), x @ x, rtol=1e-14)
    assert np.allclose(gram(A), A @ A.T, rtol=0.0, atol=1e-13)
    assert np.array_equal(gram(A), gram(A).T)
    assert largest_entry(x) == np.abs(x).max(initial=0.0)
    if A.size:
        x[0] = np.nan
        assert np.isnan(matvec(A, x)).all()
        assert np.isnan(largest_entry(x))
        assert np.isnan(largest_entry(x[::-1]))


@pytest.mark.parametrize("solver", ["direct", "range_space", "null_space", "projected", "gauss", "kokkevis"])
def test_rows_that_contradict_each_other_are_met_halfway(solver):
    """Two speeds are asked of one joint: least squares give their mean, and equal multipliers, whatever the solver."""
    robot = double_pendulum()
    motors = [JointVelocity(f"to {speed}", robot.joint_names[0], speed) for speed in (0.3, 0.5)]
    sim = Simulator(robot, motors, q=[0.1, 0.2], v=[0.4, 0.0], solver=solver)
    for _ in range(20):
        low, high = sim.step().constraint_forces.values()
        assert sim.state.v[0] == pytest.approx(0.4, abs=1e-14)
        assert low.multipliers == pytest.approx(high.multipliers, rel=1e-9)
        assert (low.velocity_error, high.velocity_error) == (pytest.approx(0.1), pytest.approx(-0.1))

"""Linear complementarity problems by pivoting: closed forms, random problems, degenerate ones, and physics."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from mechanisms import property_test, relative, seeds, solo12, solo_contacts, standing_solo

from constrained_sim import constrained_acceleration
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers import LinearComplementarity
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import ContactNotSolved, InvalidValue


def random_problem(rng, n, rank):
    """Return a problem with a positive semidefinite matrix of this rank that has a solution."""
    J = rng.normal(size=(n, rank))
    A = J @ J.T
    z = np.maximum(rng.normal(size=n), 0.0)
    w = np.where(z > 0.0, 0.0, np.abs(rng.normal(size=n)) * (rng.random(n) < 0.7))
    return A, w - A @ z


@property_test(60)
@given(seed=seeds)
def test_random_problems(seed):
    """The solution satisfies all conditions to rounding; A z is the same as for every other solution."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    A, b = random_problem(rng, n, int(rng.integers(1, n + 3)))
    problem = LinearComplementarity(A, b)
    z = problem.solve()
    assert z.min() >= 0.0
    assert problem.residual(z) < 1e-9
    assert problem.residual(z + 0.1) > 1e-3


@property_test(40)
@given(seed=seeds)
def test_against_every_active_set(seed):
    """Where A is positive definite there is one solution: the one that trying all active sets finds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    J = rng.normal(size=(n, n + 2))
    A, b = J @ J.T, rng.normal(size=n)
    for active in itertools.product([False, True], repeat=n):
        a = np.flatnonzero(active)
        z = np.zeros(n)
        z[a] = -np.linalg.solve(A[np.ix_(a, a)], b[a]) if len(a) else 0.0
        if z.min(initial=0.0) >= 0.0 and (A @ z + b).min() >= -1e-12:
            expected = z
    assert relative(LinearComplementarity(A, b).solve(), expected, 1e-3) < 1e-10


def test_table_on_four_legs():
    """Four forces, three equations: whichever legs push, together they carry the weight and no moment."""
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    J = np.column_stack([np.ones(4), corners])
    A = J @ np.diag([1 / 10.0, 1.0, 1.0]) @ J.T
    z = LinearComplementarity(A, np.full(4, -9.81)).solve()
    np.testing.assert_allclose(A @ z, 9.81, rtol=1e-13)
    assert z.sum() == pytest.approx(98.1, rel=1e-13)


def test_normal_forces_of_a_robot():
    """Frictionless feet of solo12: forces and accelerations are those of the package's own method."""
    robot, q = solo12(), standing_solo(tilt=0.1)
    rng = np.random.default_rng(2)
    for _ in range(10):
        v, tau = 0.2 * rng.normal(size=robot.nv), 3.0 * rng.normal(size=robot.nu)
        contacts = solo_contacts()
        motion = constrained_acceleration(robot, q, v, tau, contacts)
        free = constrained_acceleration(robot, q, v, tau, [])
        table = ConstraintSet.bind(robot, q, contacts).contacts
        dynamics = Dynamics.at(robot, q, v)
        here = table.rows(dynamics, v)
        J = here.J[table.normals]
        b = J @ free.a + table.gamma(dynamics, here)[table.normals]
        z = LinearComplementarity(J @ np.linalg.solve(dynamics.M, J.T), b).solve()
        assert relative(z, motion.lam[2::3], 1e-6) < 1e-10


def test_nothing_to_do_and_no_solution():
    """Rows that separate need no force; a row that nothing moves and that must move has none."""
    assert not LinearComplementarity(np.eye(2), [1.0, 0.0]).solve().any()
    assert LinearComplementarity(np.zeros((0, 0)), []).solve().shape == (0,)
    with pytest.raises(ContactNotSolved):
        LinearComplementarity([[0.0]], [-1.0]).solve()
    with pytest.raises(ContactNotSolved):
        LinearComplementarity([[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0]).solve()
    for A, b in (([[1.0]], [1.0, 2.0]), ([[np.nan]], [1.0]), ([[1.0]], [np.inf])):
        with pytest.raises(InvalidValue):
            LinearComplementarity(A, b)

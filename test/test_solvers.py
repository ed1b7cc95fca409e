"""solve_kkt: every solver, every factorisation, against independent oracles."""

import sys

import numpy as np
import pytest
from hypothesis import given
from mechanisms import MATRIX_METHOD_NAMES, MATRIX_METHODS, exact_kkt, property_test, pseudo_kkt, relative, seeds

from constrained_sim import SOLVERS, ContactConsistentDynamics, solve_kkt
from constrained_sim.exceptions import InconsistentConstraints, InvalidValue, MissingLibrary, UnknownName
from constrained_sim.solvers import System, kkt_inverse, make_solver

EPS = np.finfo(float).eps

MATRIX_METHODS = {
    label: method
    for label, method in zip(MATRIX_METHOD_NAMES, MATRIX_METHODS, strict=True)
    if not SOLVERS[method[0]].needs_robot
}
every_method = pytest.mark.parametrize(("method", "options"), MATRIX_METHODS.values(), ids=MATRIX_METHODS)


def random_inertia(rng, n, condition=1e2):
    """Return a symmetric positive definite matrix."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    M = (basis * np.geomspace(1.0, condition, n)) @ basis.T
    return 0.5 * (M + M.T)


def residuals(M, J, f, b, x, lam):
    """Return both residuals of the KKT system, relative to the largest of their terms."""
    reaction = J.T @ lam
    largest = max(np.abs(f).max(initial=0.0), np.abs(M @ x).max(), np.abs(reaction).max(initial=0.0))
    rows = max(np.abs(b).max(initial=0.0), (np.abs(J) @ np.abs(x)).max(initial=0.0), 1e-300)
    return np.abs(M @ x - reaction - f).max() / largest, np.abs(J @ x - b).max(initial=0.0) / rows


def redundant_rows(rng, kind, n):
    """Return rows that depend on each other, and right-hand sides that do not contradict each other."""
    J = rng.normal(size=(3, n))
    if kind == "zero row":
        J = np.vstack([J[:1], np.zeros((1, n)), J[1:]])
    elif kind == "repeated row":
        J = np.vstack([J, J[0], -2.0 * J[1]])
    elif kind == "combined row":
        J = np.vstack([J, rng.normal(size=(2, 3)) @ J])
    elif kind == "more rows than dof":
        J = rng.normal(size=(n + 4, n))
    elif kind == "zero rows only":
        J = np.zeros((2, n))
    return J, J @ rng.normal(size=n)


KINDS = ("zero row", "repeated row", "combined row", "more rows than dof", "zero rows only")


@every_method
@property_test(40)
@given(seed=seeds)
def test_full_rank(method, options, seed):
    """Motion and multipliers are those of the exact solution; both equations hold to rounding."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    m = int(rng.integers(1, n + 1))
    M, J, f, b = random_inertia(rng, n), rng.normal(size=(m, n)), rng.normal(size=n), rng.normal(size=m)
    x, lam = solve_kkt(M, J, f, b, method, **options)
    condition = np.linalg.cond(J @ np.linalg.solve(M, J.T))
    x_expected, lam_expected = pseudo_kkt(M, J, f, b)
    assert max(relative(x, x_expected), relative(lam, lam_expected)) < max(1e-13 * condition, 1e-12)
    assert max(residuals(M, J, f, b, x, lam)) < 1e-10


@every_method
@pytest.mark.parametrize("kind", KINDS)
@property_test(12)
@given(seed=seeds)
def test_redundant_rows(method, options, kind, seed):
    """Rows that repeat each other change no motion, and the multipliers are those of least 2-norm."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 10))
    M, f = random_inertia(rng, n), rng.normal(size=n)
    J, b = redundant_rows(rng, kind, n)
    x, lam = solve_kkt(M, J, f, b, method, **options)
    x_expected, lam_expected = pseudo_kkt(M, J, f, b)
    assert relative(x, x_expected) < 1e-10
    assert relative(lam, lam_expected, 1e-6) < 1e-10
    assert max(residuals(M, J, f, b, x, lam)) < 1e-10
    assert relative(np.linalg.pinv(J.T) @ (J.T @ lam), lam, 1e-6) < 1e-10


@every_method
@property_test(25)
@given(seed=seeds)
def test_contradicting_rows(method, options, seed):
    """Where rows contradict each other, J x is nearest to b, and the equation of motion holds all the same."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    M, f = random_inertia(rng, n), rng.normal(size=n)
    J = rng.normal(size=(n + 3, 2)) @ rng.normal(size=(2, n))
    b = rng.normal(size=n + 3)
    x, lam = solve_kkt(M, J, f, b, method, **options)
    x_expected, lam_expected = pseudo_kkt(M, J, f, b)
    nearest = J @ np.linalg.lstsq(J, b, rcond=1e-10)[0]
    assert relative(J @ x, nearest) < 1e-10
    assert relative(x, x_expected) < 1e-10
    assert relative(lam, lam_expected) < 1e-9
    assert residuals(M, J, f, b, x, lam)[0] < 1e-10


@every_method
@pytest.mark.parametrize("condition", [1e2, 1e6, 1e10])
def test_ill_conditioned_rows(method, options, condition):
    """Up to a condition of 1e10 of the Delassus matrix no more digits are lost than it must lose."""
    rng = np.random.default_rng(7)
    for n, m in ((4, 2), (8, 4), (8, 8)):
        left, right = np.linalg.qr(rng.normal(size=(m, m)))[0], np.linalg.qr(rng.normal(size=(n, n)))[0]
        J = (left * np.geomspace(1.0, condition**-0.5, m)) @ right[:m]
        M, f, b = random_inertia(rng, n, 3.0), rng.normal(size=n), J @ rng.normal(size=n)
        x, lam = solve_kkt(M, J, f, b, method, **options)
        x_exact, lam_exact = exact_kkt(M, J, f, b)
        actual = np.linalg.cond(J @ np.linalg.solve(M, J.T))
        assert max(relative(x, x_exact), relative(lam, lam_exact)) < 10.0 * EPS * actual


@every_method
@pytest.mark.parametrize("condition", [1e4, 1e8])
def test_ill_conditioned_inertia(method, options, condition):
    """A light link on a heavy one costs no more digits than the whole problem must lose."""
    rng = np.random.default_rng(8)
    for n, m in ((4, 2), (8, 4)):
        M, J = random_inertia(rng, n, condition), rng.normal(size=(m, n))
        f, b = rng.normal(size=n), rng.normal(size=m)
        x, lam = solve_kkt(M, J, f, b, method, **options)
        x_exact, lam_exact = exact_kkt(M, J, f, b)
        assert max(relative(x, x_exact), relative(lam, lam_exact)) < 10.0 * EPS * condition


@every_method
def test_metres_and_radians(method, options):
    """Rows of very different units are all independent: rank does not depend on the units."""
    rng = np.random.default_rng(9)
    M, f = random_inertia(rng, 6), rng.normal(size=6)
    J, units = rng.normal(size=(3, 6)), np.array([1e-8, 1.0, 1e8])
    b = J @ rng.normal(size=6)
    x, lam = solve_kkt(M, J, f, b, method, **options)
    x_scaled, lam_scaled = solve_kkt(M, units[:, None] * J, f, units * b, method, **options)
    assert relative(x_scaled, x) < 1e-12
    assert relative(units * lam_scaled, lam) < 1e-12


@every_method
def test_no_rows(method, options):
    """Without rows the motion is M^-1 f."""
    rng = np.random.default_rng(1)
    M, f = random_inertia(rng, 5), rng.normal(size=5)
    x, lam = solve_kkt(M, np.zeros((0, 5)), f, np.zeros(0), method, **options)
    assert lam.shape == (0,)
    assert relative(x, np.linalg.solve(M, f)) < 1e-13


@every_method
def test_mass_on_a_rail(method, options):
    """A mass pressed on a rail is held by the opposite force; positive multipliers push phi up."""
    x, lam = solve_kkt(2.0 * np.eye(2), [[0.0, 1.0]], [3.0, -20.0], [0.0], method, **options)
    assert x == pytest.approx([1.5, 0.0], abs=1e-14)
    assert lam == pytest.approx([20.0], rel=1e-14)


def test_symmetric_up_to_rounding_is_accepted():
    """Two isotropic bodies in turned axes: what is left off the diagonal is rounding, symmetric or not."""
    turn = np.kron(np.eye(2), np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0])
    M = turn @ np.diag([2.0, 2.0, 2.0, 3.0, 3.0, 3.0]) @ turn.T
    assert 0.0 < np.abs(M - M.T).max() < 1e-15
    x, _ = solve_kkt(M, np.zeros((0, 6)), np.ones(6), np.zeros(0))
    assert x == pytest.approx([0.5, 0.5, 0.5, 1 / 3, 1 / 3, 1 / 3], rel=1e-14)


def refused(M=None, J=None, f=None, b=None, **options):
    """Check that a problem with these parts is refused as an invalid value."""
    parts = {"M": np.eye(3), "J": np.ones((1, 3)), "f": np.ones(3), "b": np.ones(1)}
    parts |= {name: part for name, part in (("M", M), ("J", J), ("f", f), ("b", b)) if part is not None}
    with pytest.raises(InvalidValue):
        solve_kkt(**parts, **options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"M": np.eye(2)},
        {"J": np.ones((1, 2))},
        {"J": np.ones((2, 3))},
        {"J": np.ones(3)},
        {"f": np.ones(2)},
        {"f": np.ones((3, 1))},
        {"b": np.ones((1, 1))},
        {"b": np.ones(0)},
        {"f": 1.0},
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused(wrong):
    """Every part must fit the others."""
    refused(**wrong)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("part", "shape"), [("M", (3, 3)), ("J", (1, 3)), ("f", (3,)), ("b", (1,))])
def test_not_finite_is_refused(part, shape, bad):
    """NaN and infinity come in nowhere."""
    value = np.eye(3) if part == "M" else np.ones(shape)
    value[(0,) * len(shape)] = bad
    refused(**{part: value})


@pytest.mark.parametrize(
    "M", [np.diag([1.0, 1.0, 0.0]), np.diag([1.0, -1.0, 1.0]), np.eye(3) + np.eye(3, k=1), np.ones((3, 3))], ids=str
)
def test_inertia_must_be_symmetric_positive_definite(M):
    """Singular, indefinite and unsymmetric matrices are no inertias."""
    refused(M=M)


def test_unknown_names_are_refused_with_those_that_exist():
    """The refusal lists the solvers and factorisations."""
    problem = (np.eye(2), np.ones((1, 2)), np.ones(2), np.ones(1))
    with pytest.raises(UnknownName, match="range_space"):
        solve_kkt(*problem, method="magic")
    with pytest.raises(UnknownName, match="ldlt"):
        solve_kkt(*problem, method="direct", factorization="magic")
    with pytest.raises(InvalidValue, match="null_space"):
        solve_kkt(*problem, method="null_space", factorization="lu")


@every_method
def test_the_caller_keeps_its_matrices(method, options):
    """Factoring overwrites nothing that was passed."""
    rng = np.random.default_rng(3)
    parts = (random_inertia(rng, 5), rng.normal(size=(2, 5)), rng.normal(size=5), rng.normal(size=2))
    copies = [part.copy() for part in parts]
    solve_kkt(*parts, method, **options)
    for part, copy in zip(parts, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


# -- the inverse of the KKT matrix, condition, consistency


@every_method
@pytest.mark.parametrize("kind", ["independent", *KINDS])
def test_blocks_of_the_inverse(method, options, kind):
    """The blocks solve every problem, satisfy a projector's identities, and are those of NumPy's pseudo-inverse."""
    rng = np.random.default_rng(11)
    n = 7
    M, J = random_inertia(rng, n), rng.normal(size=(3, n)) if kind == "independent" else redundant_rows(rng, kind, n)[0]
    f, b = rng.normal(size=n), J @ rng.normal(size=n)
    inverse = kkt_inverse(M, J, method, **options)
    x, lam = solve_kkt(M, J, f, b, method, **options)
    assert relative(inverse.L11 @ f + inverse.L12 @ b, x) < 1e-11
    assert relative(inverse.L21 @ f + inverse.L22 @ b, lam, 1e-6) < 1e-11
    delassus_inverse = np.linalg.pinv(J @ np.linalg.solve(M, J.T), rcond=1e-11, hermitian=True)
    assert relative(inverse.L22, delassus_inverse, 1e-6) < 1e-10
    assert relative(inverse.L12, np.linalg.solve(M, J.T) @ delassus_inverse, 1e-6) < 1e-10
    assert relative(inverse.L21, -inverse.L12.T, 1e-6) < 1e-11
    assert np.abs(J @ inverse.L11).max() < 1e-11
    assert np.abs(inverse.L11 @ M @ inverse.L11 - inverse.L11).max() < 1e-12


@pytest.mark.parametrize("method", ["direct", "range_space"])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e10])
def test_condition_is_that_of_the_delassus_matrix(method, condition):
    """Over the range of J, whether rows repeat each other or not."""
    rng = np.random.default_rng(5)
    left, right = np.linalg.qr(rng.normal(size=(4, 4)))[0], np.linalg.qr(rng.normal(size=(6, 6)))[0]
    M = random_inertia(rng, 6)
    root = np.linalg.cholesky(M)
    J = (left * np.geomspace(1.0, condition**-0.5, 4)) @ right[:4] @ root.T
    for rows in (J, np.vstack([J, np.zeros((1, 6))])):
        factorization = make_solver(method).factor(System(M, rows))
        assert factorization.rank == 4
        assert factorization.condition == pytest.approx(condition, rel=1e-6)


@every_method
def test_contradicting_rows_are_refused_on_request(method, options):
    """A point cannot be in two places: the refusal carries the residual, and nothing is refused unasked."""
    M, J, f = np.diag([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.0, 3.0])
    x, _ = solve_kkt(M, J, f, np.array([0.0, 1.0]), method, **options)
    assert x == pytest.approx([0.5, 1.5], abs=1e-13)
    with pytest.raises(InconsistentConstraints) as refusal:
        solve_kkt(M, J, f, np.array([0.0, 1.0]), method, refuse_inconsistent=True, **options)
    assert refusal.value.residual == pytest.approx(0.5)
    x, _ = solve_kkt(M, J, f, np.array([1.0, 1.0]), method, refuse_inconsistent=True, **options)
    assert x == pytest.approx([1.0, 1.5], abs=1e-13)


def test_a_missing_library_is_named(monkeypatch):
    """Without proxsuite the solver gauss says what to install."""
    monkeypatch.setitem(sys.modules, "proxsuite", None)
    with pytest.raises(MissingLibrary, match="pip install proxsuite"):
        make_solver("gauss")


@every_method
def test_matrices_may_lie_in_memory_as_they_like(method, options):
    """Column by column, or as every other entry of a larger one: the same solution, and the caller's stay untouched."""
    rng = np.random.default_rng(3)
    M, J, f, b = random_inertia(rng, 5), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=3)
    expected = solve_kkt(M, J, f, b, method, **options)
    for laid_out in (np.asfortranarray, lambda A: np.repeat(np.repeat(A, 2, axis=0), 2, axis=-1)[::2, ::2]):
        other = laid_out(M), laid_out(J)
        for actual, wanted in zip(solve_kkt(*other, f, b, method, **options), expected, strict=True):
            assert np.array_equal(actual, wanted)
        assert np.array_equal(kkt_inverse(*other, method, **options).L21, kkt_inverse(M, J, method, **options).L21)
        assert np.array_equal(other[0], M)
        assert np.array_equal(other[1], J)


@every_method
def test_nearly_dependent_rows_do_not_contradict_each_other(method, options):
    """Rounding times the condition is no contradiction; what no motion can do is one."""
    J = np.array([[1.0, 0.0, 0.0], [1.0, 1e-5, 0.0]])
    x, _ = solve_kkt(np.eye(3), J, np.zeros(3), np.array([0.0, 1e-5]), method, refuse_inconsistent=True, **options)
    assert x == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)
    J[1, 1] = 0.0
    with pytest.raises(InconsistentConstraints):
        solve_kkt(np.eye(3), J, np.zeros(3), np.array([0.0, 1e-5]), method, refuse_inconsistent=True, **options)


def test_contact_consistent_dynamics_checks_and_copies():
    """Lists will do; what is no inertia is called so; what the caller does to the matrices later changes nothing."""
    M, J = np.diag([1.0, 2.0, 3.0]), np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], order="F")
    operators = ContactConsistentDynamics(M.tolist(), J.tolist())
    kept = ContactConsistentDynamics(M, J)
    M[0, 0], J[0, 0] = 5.0, 7.0
    assert np.array_equal(kept.N, operators.N)
    assert kept.J @ kept.J_bar == pytest.approx(np.eye(2), abs=1e-14)
    for wrong in (-np.eye(3), np.eye(3) + np.eye(3, k=1)):
        with pytest.raises(InvalidValue, match=r"^M: got"):
            ContactConsistentDynamics(wrong, kept.J)


def test_options_that_a_solver_does_not_have_are_refused_with_those_it_has():
    """By their names."""
    with pytest.raises(InvalidValue, match=r"factorization.*none"):
        make_solver("range_space", factorization="qr")
    with pytest.raises(InvalidValue, match=r"speed.*factorization"):
        make_solver("direct", speed=1)

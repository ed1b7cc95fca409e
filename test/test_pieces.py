"""Newton's method piece by piece, against an exact method and against what other methods find."""

import numpy as np
import pytest
from test_contact_problem import block_problem, leg_problem, solo_problem

from constrained_sim.contact import ContactProblem, kernels, solve_contacts
from constrained_sim.contact.complementarity import LinearComplementarity
from constrained_sim.contact.pieces import change_pieces


def found_from(problem, start, tolerance, changes):
    """Return the impulses that changing pieces leads to from `start`, their error, and how many were looked at."""
    scale = kernels.inverse_scale(problem.G, len(problem.friction), problem.discs)
    return change_pieces(problem.G, problem.b, *problem.laws, scale, start, tolerance, changes)


def test_one_sided_rows_against_lemke():
    """Without friction this is principal pivoting: from no force at all to the one solution, a row at a time."""
    most = solved = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(2, 9))
        J, b = rng.normal(size=(rows, rows + 1)), rng.normal(size=rows)
        bounds = np.zeros(rows), np.full(rows, np.inf)
        problem = ContactProblem(J @ J.T, b, np.zeros(0), np.zeros((0, 2)), *bounds)
        r, error, looked_at = found_from(problem, np.zeros(rows), 1e-12, 50)
        if error < 1e-12:
            exact = LinearComplementarity(problem.G, b).solve()
            np.testing.assert_allclose(r, exact, rtol=0.0, atol=1e-9 * max(np.abs(exact).max(), 1.0))
            solved, most = solved + 1, max(most, looked_at)
    assert solved >= 299
    assert 3 < most <= 9


@pytest.mark.parametrize("make", [solo_problem, leg_problem])
def test_it_leads_back_to_a_solution(make):
    """From impulses that are wrong by a twentieth, contacts on the wrong piece among them."""
    solved = wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        problem = make(rng, rng.uniform(0.1, 1.0, size=1 if make is leg_problem else 4))
        impulse = solve_contacts(problem).impulse
        noise = 0.05 * impulse + 0.02 * np.abs(impulse).max()
        r, error, looked_at = found_from(problem, impulse + noise * rng.normal(size=len(impulse)), 1e-12, 10)
        if error < 1e-11:
            np.testing.assert_allclose(problem.G @ (r - impulse), 0.0, rtol=0.0, atol=1e-9 * np.abs(problem.b).max())
            solved, wrong = solved + 1, wrong + (looked_at > 1)
    assert solved >= 95
    assert wrong > 1


def test_rows_that_depend_on_each_other():
    """Four corners of a block: where sticking has no solution on a piece, impulses grow, and tell what opens."""
    solved = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        problem = block_problem(rng, rng.uniform(0.1, 1.0, size=4))
        start = np.tile([0.0, 0.0, np.abs(problem.b).max()], 4)
        r, error, _ = found_from(problem, start, 1e-12, 30)
        scale = kernels.inverse_scale(problem.G, 4, problem.discs)
        assert error == pytest.approx(problem.error(scale, r), rel=1e-6, abs=1e-15)
        solved += error < 1e-11
    assert solved > 60


def test_rows_that_turn_are_left_to_others():
    """Resistance to rolling is not on one of these pieces: nothing is changed."""
    G, b = np.eye(5), np.array([1.0, 0.0, -1.0, 0.3, 0.2])
    discs = np.array([[0.0, 2.0, 0.1, 0.0, 0.0, 0.0]])
    problem = ContactProblem(G, b, np.array([0.5]), np.zeros((1, 2)), discs=discs)
    r, _, looked_at = found_from(problem, np.zeros(5), 1e-12, 10)
    assert looked_at == 0
    assert not r.any()

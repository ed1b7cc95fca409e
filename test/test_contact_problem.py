"""The frictional contact problem, judged by Signorini's and Coulomb's laws themselves."""

import itertools
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from mechanisms import (
    block,
    corners,
    inertia_of,
    leg,
    leg_config,
    property_test,
    random_state,
    rows_at,
    seeds,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
)
from scipy.optimize import minimize

from constrained_sim import LAWS, Frictionless, Plane, Rigid, Sticking
from constrained_sim.constrained_dynamics import ConstrainedSolution
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers import (
    METHODS,
    ContactMethod,
    ContactProblem,
    LinearComplementarity,
    solve_contacts,
)
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.problem import ContactSolution
from constrained_sim.exceptions import ContactNotSolved, InexactContact, InvalidValue, UnknownName

OPEN, STICKING, SLIDING = 0, 1, 2
DATA = Path(__file__).parent / "data"


def problem_of(robot, q, contacts, rng, friction, level=0.0):
    """Return the problem of `contacts` of `robot` at q for a random velocity, `level` its normal part [m/s]."""
    J, _ = rows_at(robot, ConstraintSet.bind(robot, q, contacts), q, np.zeros(robot.nv))
    G = J @ np.linalg.solve(inertia_of(robot, q), J.T)
    v = rng.normal(size=robot.nv) + J[2::3].sum(axis=0) * level
    return ContactProblem(
        0.5 * (G + G.T), J @ v, np.broadcast_to(friction, len(contacts)).astype(float), np.zeros((len(contacts), 2))
    )


def solo_problem(rng, friction):
    """Return the four feet of a solo12 that lands."""
    robot = solo12()
    q = standing_solo(tilt=rng.uniform(-0.3, 0.3)) if rng.integers(2) else random_state(robot, rng)[0]
    return problem_of(robot, q, solo_contacts(), rng, friction, -rng.uniform(0, 1))


def block_problem(rng, friction):
    """Return the four corners of a block: twelve rows of rank six."""
    robot = block()
    q = robot.configuration({}, [0, 0, 0, *tilted(rng.uniform(-0.5, 0.5), int(rng.integers(3)))])
    return problem_of(robot, q, corners(), rng, friction, -rng.uniform(0, 1))


def leg_problem(rng, friction):
    """Return the foot of the planar leg: three rows, one of them zero."""
    return problem_of(leg(), leg_config().q, leg_config().constraints, rng, friction)


PROBLEMS = {"solo12": solo_problem, "block": block_problem, "leg": leg_problem}

every_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)


def check_laws(problem, r, tolerance=1e-9):
    """Check Signorini's conditions and Coulomb's law, contact by contact, relative to the velocities in play."""
    count, u = 3 * len(problem.friction), problem.G @ r + problem.b
    speed = max(np.abs(problem.b).max(), (np.abs(problem.G) @ np.abs(r)).max())
    push = max(np.abs(r).max(), 1e-300)
    check_bounds(u[count:] / speed, r[count:] / push, problem.lower / push, problem.upper / push, tolerance)
    for velocity, impulse, friction in zip(
        u[:count].reshape(-1, 3), r[:count].reshape(-1, 3), problem.friction, strict=True
    ):
        assert impulse[2] >= 0.0
        assert velocity[2] >= -tolerance * speed
        assert abs(impulse[2] * velocity[2]) <= tolerance * speed * push
        slip, drag = np.hypot(*velocity[:2]), np.hypot(*impulse[:2])
        if impulse[2] == 0.0:
            assert drag == 0.0
        elif np.isinf(friction):
            assert slip <= tolerance * speed
        else:
            assert drag <= friction * impulse[2] + tolerance * push
            if slip > 10.0 * tolerance * speed:
                against = -friction * impulse[2] * velocity[:2] / slip
                assert np.abs(impulse[:2] - against).max() <= 10.0 * tolerance * push * speed / slip


def check_bounds(u, r, lower, upper, tolerance):
    """Check box rows: no velocity inside the bounds, and none but outward at a bound."""
    assert (r >= lower - tolerance).all()
    assert (r <= upper + tolerance).all()
    inside = (r > lower + tolerance) & (r < upper - tolerance)
    assert np.abs(u[inside]).max(initial=0.0) <= tolerance
    assert u[r <= lower + tolerance].min(initial=0.0) >= -tolerance
    assert u[r >= upper - tolerance].max(initial=0.0) <= tolerance


@every_problem
@pytest.mark.parametrize("method", METHODS)
@property_test(80)
@given(seed=seeds)
def test_solution_obeys_the_laws(make, method, seed):
    """No penetration, no pull, no work across an open gap; friction inside the cone and against the slip."""
    rng = np.random.default_rng(seed)
    problem = make(rng, rng.uniform(0.0, 1.2))
    solution = solve_contacts(problem, method)
    assert solution.converged
    check_laws(problem, solution.impulse)


@every_problem
@property_test(80)
@given(seed=seeds)
def test_methods_find_the_same_motion(make, seed):
    """Where forces are not unique the motion still is, whichever method begins.

    Not so where dependent rows slide: which corner of a block presses how much then decides where friction drags.
    """
    rng = np.random.default_rng(seed)
    problem = make(rng, rng.uniform(0.0, 0.6))
    newton, sweeps = (solve_contacts(problem, method) for method in ("newton", "gauss_seidel"))
    assume(is_determined(problem, newton) and is_determined(problem, sweeps))
    scale = max(np.abs(problem.b).max(), 1e-300)
    assert np.abs(problem.G @ (newton.impulse - sweeps.impulse)).max() < 1e-9 * scale


def is_determined(problem, solution):
    """Return whether the motion is unique: the rows of what presses are independent, or nothing slides."""
    rows = np.repeat(solution.status != OPEN, 3) & (np.diag(problem.G) > 1e-12)
    return SLIDING not in solution.status or np.linalg.cond(problem.G[np.ix_(rows, rows)]) < 1e8


@every_problem
@property_test(40)
@given(seed=seeds)
def test_classification(make, seed):
    """Open contacts carry nothing; sliding ones are on the cone; the points of sticking ones rest, inside it."""
    rng = np.random.default_rng(seed)
    problem = make(rng, rng.uniform(0.1, 0.8))
    solution = solve_contacts(problem)
    u = (problem.G @ solution.impulse + problem.b).reshape(-1, 3)
    speed = max(np.abs(problem.b).max(), 1e-300)
    for status, velocity, impulse, friction in zip(
        solution.status, u, solution.impulse.reshape(-1, 3), problem.friction, strict=True
    ):
        slip, drag = np.hypot(*velocity[:2]), np.hypot(*impulse[:2])
        if status == OPEN:
            assert not impulse.any()
        elif status == STICKING:
            assert slip < 1e-9 * speed
        else:
            assert status == SLIDING
            assert drag == pytest.approx(friction * impulse[2], rel=1e-9)
        if slip > 1e-6 * speed and impulse[2] > 0.0:
            assert status == SLIDING


@every_problem
@property_test(30)
@given(seed=seeds)
def test_zero_friction(make, seed):
    """Without friction impulses are normal, and the problem is a linear complementarity problem."""
    problem = make(np.random.default_rng(seed), 0.0)
    solution = solve_contacts(problem)
    check_laws(problem, solution.impulse)
    impulse = solution.impulse.reshape(-1, 3)
    assert np.abs(impulse[:, :2]).max() <= 1e-13 * max(impulse[:, 2].max(), 1e-300)
    assert STICKING not in solution.status


@every_problem
@property_test(60)
@given(seed=seeds)
def test_infinite_friction(make, seed):
    """What presses does not slip. Where there is no such motion, only there, strong friction lets something slide."""
    problem = make(np.random.default_rng(seed), np.inf)
    solution = solve_contacts(problem)
    assert solution.converged
    if SLIDING in solution.status:
        assert not has_sticking_solution(problem)
        problem = replace(problem, friction=np.full(len(problem.friction), OPTIONS.strong_friction))
    check_laws(problem, solution.impulse)


def has_sticking_solution(problem):
    """Return whether, for some choice of the contacts that hold, none of them pulls and none of the others sinks in."""
    for held in itertools.product((False, True), repeat=len(problem.friction)):
        rows = np.flatnonzero(np.repeat(held, 3))
        r = np.zeros(len(problem.b))
        r[rows] = -np.linalg.lstsq(problem.G[np.ix_(rows, rows)], problem.b[rows], rcond=1e-11)[0] if rows.size else []
        u = problem.G @ r + problem.b
        if r[2::3].min() >= -1e-12 and u[2::3].min() >= -1e-10 and np.abs(u[rows]).max(initial=0.0) < 1e-9:
            return True
    return False


@every_problem
@property_test(20)
@given(seed=seeds)
def test_scaling(make, seed):
    """In other units of velocity and mass it is the same problem: r scales with b and with 1 / G."""
    rng = np.random.default_rng(seed)
    problem = make(rng, 0.5)
    scaled = ContactProblem(1e-4 * problem.G, 1e3 * problem.b, problem.friction, problem.slip)
    expected, found = solve_contacts(problem), solve_contacts(scaled)
    assume(is_determined(problem, expected))
    assert np.array_equal(found.status, expected.status)
    assert np.abs(scaled.G @ found.impulse - 1e3 * problem.G @ expected.impulse).max() < 1e-9 * np.abs(scaled.b).max()


def test_single_mass_sticks_and_slides():
    """A point mass with a tangential velocity: sticks below mu times the normal impulse, else slides on."""

    def solve(slip, friction=0.5):
        return solve_contacts(
            ContactProblem(np.eye(3), np.array([slip, 0, -1.0]), np.array([friction]), np.zeros((1, 2)))
        )

    assert solve(0.4).impulse == pytest.approx([-0.4, 0, 1.0], abs=1e-14)
    assert solve(0.4).status.tolist() == [STICKING]
    assert solve(2.0).impulse == pytest.approx([-0.5, 0, 1.0], abs=1e-14)
    assert solve(2.0).status.tolist() == [SLIDING]


def planar_solutions(G, b, friction):
    """Return all (r_t, r_n) that solve a single planar contact: open, stuck, sliding either way."""
    stuck = np.linalg.solve(G, -b)
    solutions = [np.zeros(2)] if b[1] >= 0.0 else []
    if stuck[1] >= 0.0 and abs(stuck[0]) <= friction * stuck[1]:
        solutions.append(stuck)
    for sign in (1.0, -1.0):
        cone = np.array([-sign * friction, 1.0])
        normal = -b[1] / (G[1] @ cone)
        if normal >= 0.0 and sign * (G[0] @ cone * normal + b[0]) >= 0.0:
            solutions.append(normal * cone)
    return solutions


@pytest.mark.parametrize("method", METHODS)
@property_test(400)
@given(seed=seeds)
def test_single_planar_contact_against_enumeration(method, seed):
    """Open, stuck or sliding either way: one of the solutions is found, also where friction could jam."""
    rng = np.random.default_rng(seed)
    angle, ratio, friction = rng.uniform(0, np.pi), 10.0 ** rng.uniform(-2, 0), rng.uniform(0, 1.5)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    planar = turn @ np.diag([1.0, ratio]) @ turn.T
    near_the_cone = [rng.choice([-1.0, 1.0]) * friction * (1.0 + 0.01 * rng.normal()), 1.0]
    b = rng.normal(size=2) * [1.0, 0.1] if rng.integers(2) else -planar @ near_the_cone
    solutions = planar_solutions(planar, b, friction)
    assert solutions
    G = np.zeros((3, 3))
    G[np.ix_([0, 2], [0, 2])] = 0.5 * (planar + planar.T)
    problem = ContactProblem(G, np.array([b[0], 0.0, b[1]]), np.array([friction]), np.zeros((1, 2)))
    solution = solve_contacts(problem, method)
    assert solution.converged
    scale = 1e-8 * max(1.0, np.abs(solution.impulse).max())
    assert min(np.abs(solution.impulse[[0, 2]] - found).max() for found in solutions) < scale


@pytest.mark.parametrize("method", METHODS)
def test_solution_names_its_method(method):
    """What begins and solves is named; where all contacts stick there is nothing left for it."""

    def solved_by(slip):
        problem = ContactProblem(np.eye(3), np.array([slip, 0, -1.0]), np.array([0.5]), np.zeros((1, 2)))
        return solve_contacts(problem, method).method

    assert solved_by(2.0) == method
    assert solved_by(0.4) == "stick"


def test_sliding_does_not_lift_off():
    """The exact law, not its convex relaxation: a fast sliding contact keeps u_n = 0, no matter how fast."""
    problem = ContactProblem(np.eye(3), np.array([100.0, 0, -1.0]), np.array([0.9]), np.zeros((1, 2)))
    solution = solve_contacts(problem)
    assert solution.impulse == pytest.approx([-0.9, 0, 1.0], abs=1e-12)


def test_open_contacts():
    """What moves apart takes no impulse."""
    solution = solve_contacts(
        ContactProblem(np.eye(6), np.array([1.0, 2, 3, 1, 2, 0.1]), np.full(2, 0.5), np.zeros((2, 2)))
    )
    assert not solution.impulse.any()
    assert solution.status.tolist() == [OPEN, OPEN]


def test_contacts_at_rest_without_load():
    """b = 0: nothing moves, nothing is needed."""
    solution = solve_contacts(ContactProblem(np.eye(3), np.zeros(3), np.array([0.5]), np.zeros((1, 2))))
    assert not solution.impulse.any()
    assert solution.converged


def test_rows_of_zeros():
    """A contact of something immovable takes nothing and disturbs no other."""
    G, b = np.zeros((6, 6)), np.zeros(6)
    G[3:, 3:], b[3:] = np.eye(3), [0.1, 0, -1.0]
    problem = ContactProblem(G, b, np.full(2, 0.5), np.zeros((2, 2)))
    assert solve_contacts(problem).impulse == pytest.approx([0, 0, 0, -0.1, 0, 1.0], abs=1e-14)
    alone = ContactProblem(np.zeros((3, 3)), np.zeros(3), np.array([0.5]), np.zeros((1, 2)))
    assert not solve_contacts(alone).impulse.any()


def test_known_slip_direction():
    """At acceleration level a contact that slips is dragged against its slip, whatever it accelerates to."""
    slip = np.array([[0.6, 0.8]])
    problem = ContactProblem(np.eye(3), np.array([0.0, 0.0, -2.0]), np.array([0.5]), slip)
    for method in METHODS:
        solution = solve_contacts(problem, method)
        assert solution.impulse == pytest.approx([-0.6, -0.8, 2.0], abs=1e-13)
        assert solution.status.tolist() == [SLIDING]


def test_result_depends_on_the_problem_only():
    """Solving others in between changes not one bit."""
    rng = np.random.default_rng(1)
    problem = block_problem(rng, 0.5)
    first = solve_contacts(problem)
    for _ in range(5):
        solve_contacts(block_problem(rng, 0.3))
    assert np.array_equal(solve_contacts(problem).impulse, first.impulse)


def test_residual_of_what_solves_nothing():
    """The problem judges candidates: zero impulses do not stop what comes in."""
    problem = ContactProblem(np.eye(3), np.array([0, 0, -1.0]), np.array([0.5]), np.zeros((1, 2)))
    assert problem.residual(np.zeros(3)) == pytest.approx(1.0)
    assert problem.residual(np.array([0, 0, 1.0])) == 0.0


def test_unknown_method_is_refused():
    """The refusal lists the methods."""
    with pytest.raises(UnknownName, match="gauss_seidel"):
        solve_contacts(leg_problem(np.random.default_rng(0), 0.5), "magic")


def test_laws():
    """Coefficients in effect: the declared one, none, infinity."""
    assert set(LAWS) >= {"rigid", "frictionless", "sticking"}
    assert Rigid().coefficient(0.4) == 0.4
    assert Frictionless().coefficient(0.0) == 0.0
    assert Sticking().coefficient(0.0) == np.inf
    for law in (Frictionless(), Sticking()):
        with pytest.raises(InvalidValue):
            law.coefficient(0.4)


@pytest.mark.parametrize(
    "wrong", [{"normal": (0, 0, 0)}, {"normal": (0, 1)}, {"normal": (np.nan, 0, 1)}, {"offset": np.inf}], ids=str
)
def test_planes_check_their_values(wrong):
    """A plane has a direction and a finite level."""
    with pytest.raises(InvalidValue):
        Plane(**wrong)


def table_problem(load, friction=0.3):
    """Return a block at rest on its four corners whose weight acts at `load` (2,) from its middle [m]."""
    robot = block()
    q = robot.configuration({}, [0, 0, 0.05, 0, 0, 0, 1])
    J, _ = rows_at(robot, ConstraintSet.bind(robot, q, corners()), q, np.zeros(6))
    weight = -2.0 * 9.81 * np.array([0, 0, 1, load[1], -load[0], 0])
    M = inertia_of(robot, q)
    G, b = J @ np.linalg.solve(M, J.T), J @ np.linalg.solve(M, weight)
    return ContactProblem(0.5 * (G + G.T), b, np.full(4, friction), np.zeros((4, 2)))


def least_norm_by_program(problem, r):
    """Return the forces of least norm with the motion of r, pressing only, by SciPy's program for the normal rows."""
    normals = np.arange(2, len(r), 3)
    found = minimize(
        lambda x: 0.5 * x @ x,
        np.maximum(r[normals], 0.0),
        jac=lambda x: x,
        bounds=[(0.0, None)] * len(normals),
        constraints={"type": "eq", "fun": lambda x: problem.G[:, normals] @ x - problem.G @ r},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize("load", [(0.0, 0.0), (0.1, 0.0), (0.12, 0.07), (-0.14, 0.095), (0.03, -0.08)])
def test_indeterminate_forces_are_those_of_least_norm(load):
    """A table on four legs, its load anywhere: the same forces whichever method begins, and wherever it begins.

    Near a corner the solution of least norm of the equations alone would pull at the opposite one.
    """
    problem = table_problem(load)
    expected = least_norm_by_program(problem, solve_contacts(problem).impulse)
    rng = np.random.default_rng(3)
    for method in METHODS:
        for start in (None, np.array([0, 0, 49.0] * 4), 20.0 * rng.normal(size=12), np.zeros(12)):
            r = solve_contacts(problem, method, start).impulse
            assert r[2::3] == pytest.approx(expected, abs=2e-6)
            assert r == pytest.approx(solve_contacts(problem).impulse, abs=1e-9)
    if load == (-0.14, 0.095):
        assert np.linalg.lstsq(problem.G, -problem.b, 1e-11)[0][2::3].min() < -1.0
        assert solve_contacts(problem).impulse[2::3].min() >= 0.0


@pytest.mark.parametrize("number", range(3))
def test_sliding_and_rubbing_leave_a_choice_too(number):
    """A humanoid slides on its meshes: contacts at cones, joints at the bounds of their friction, and a choice left.

    SciPy's program over the normal forces of what slides and all forces of what is at rest comes to no smaller norm.
    """
    problem = stored_problem("sliding_humanoid.npz", number)
    solution = solve_contacts(problem)
    r, u, c = solution.impulse, problem.G @ solution.impulse + problem.b, problem.friction
    assert problem.residual(r) < 1e-12
    values, vectors = np.linalg.eigh(problem.G)
    motion = vectors[:, values > 1e-11 * values[-1]].T
    columns, bounds, cones = [], [], []
    for i, status in enumerate(solution.status[: len(c)]):
        sliding = np.hypot(*u[3 * i : 3 * i + 2]) > 1e-9
        assert status == (SLIDING if sliding else STICKING)
        if not sliding:
            cones.append((len(columns), c[i]))
        ray = np.append(-c[i] * u[3 * i : 3 * i + 2] / np.hypot(*u[3 * i : 3 * i + 2]), 1.0)
        for force in [ray] if sliding else np.eye(3):
            columns.append(np.zeros(len(r)))
            columns[-1][3 * i : 3 * i + 3] = force
        bounds += [(0.0, None)] if sliding else [(None, None), (None, None), (0.0, None)]
    fixed = np.zeros(len(r))
    for j, row in enumerate(range(3 * len(c), len(r))):
        if abs(u[row]) > 1e-9:
            fixed[row] = problem.lower[j] if u[row] > 0.0 else problem.upper[j]
        else:
            columns.append(np.eye(len(r))[row])
            bounds.append((problem.lower[j], problem.upper[j]))
    forces = np.array(columns).T
    assert np.linalg.matrix_rank(motion @ forces, 1e-9) < len(columns)
    rest = [
        {"type": "ineq", "fun": lambda x, k=k, c=c: (c * x[k + 2]) ** 2 - x[k] ** 2 - x[k + 1] ** 2} for k, c in cones
    ]
    least = minimize(
        lambda x: 0.5 * np.sum((forces @ x) ** 2),
        np.linalg.lstsq(forces, r - fixed)[0],
        jac=lambda x: forces.T @ (forces @ x),
        bounds=bounds,
        constraints=[{"type": "eq", "fun": lambda x: motion @ (forces @ x + fixed - r)}, *rest],
        method="SLSQP",
        options={"ftol": 1e-18, "maxiter": 500},
    )
    assert np.abs(motion @ (forces @ least.x + fixed - r)).max() < 1e-9
    assert forces @ least.x + fixed == pytest.approx(r, abs=1e-6)
    for method in ("gauss_seidel", "pivoting", ContactMethod(tolerance=1e-7)):
        assert solve_contacts(problem, method).impulse == pytest.approx(r, abs=1e-6 * np.abs(r).max())


@property_test(60)
@given(seed=seeds)
def test_same_motion_means_same_forces(seed):
    """Whatever slides or lifts off: solutions with one motion have one set of forces."""
    rng = np.random.default_rng(seed)
    problem = block_problem(rng, rng.uniform(0.0, 1.0))
    first = solve_contacts(problem)
    push = max(np.abs(first.impulse).max(), 1e-300)
    for method in METHODS:
        other = solve_contacts(problem, method, push * rng.normal(size=12))
        check_laws(problem, other.impulse)
        if np.abs(problem.G @ (other.impulse - first.impulse)).max() < 1e-11 * np.abs(problem.b).max():
            assert np.abs(other.impulse - first.impulse).max() < 1e-6 * push


def stored_problem(name, number):
    """Return one of the problems in a file of test/data."""
    with np.load(DATA / name) as file:
        G, b, friction, lower, upper = (file[f"{field}_{number}"] for field in "G b friction lower upper".split())
    return ContactProblem(G, b, friction, np.zeros((len(friction), 2)), lower, upper)


STORED = {
    "creeping": 1,  # all is at rest, and little forces would let it creep on
    "falling": 1,  # nearly a solution in one direction of slip, and a solution at another, ten degrees away
    "lying": 2,
    "resting": 3,  # many contacts that depend on each other, all about to stick or slip
    "sliding": 3,
    "slipping": 1,  # a contact about to stop
    "stubborn": 2,  # in the midst of a fall
    "turning": 2,  # the solutions of ever stiffer contacts end before the rigid one
}
"""How many contact problems of a humanoid on its collision meshes are kept of each kind, joint friction included."""


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, number) for kind, count in STORED.items() for number in range(count)]
)
def test_stored_problem_is_solved(kind, number):
    """Whichever method begins: the laws hold, and all come to the same motion and the same forces."""
    problem = stored_problem(f"{kind}_humanoid.npz", number)
    velocities, forces = [], []
    for method in METHODS:
        solution = solve_contacts(problem, method)
        assert solution.converged
        assert problem.cone_violation(solution.impulse) < 1e-10
        assert problem.slip_residual(solution.impulse) < 1e-10
        check_laws(problem, solution.impulse)
        velocities.append(problem.G @ solution.impulse)
        forces.append(solution.impulse)
    assert np.ptp(velocities, axis=0).max() < 1e-9 * np.abs(problem.b).max()
    assert np.ptp(forces, axis=0).max() < 1e-7 * np.abs(forces[0]).max()


def test_what_lies_still_does_not_creep():
    """To rounding: an error of 1e-12 of the largest impulse that would stop a row moves light joints by 1e-10 rad/s."""
    problem = stored_problem("creeping_humanoid.npz", 0)
    assert problem.residual(solve_contacts(problem).impulse) < 2e-13


@every_problem
@pytest.mark.parametrize("method", METHODS)
@property_test(40)
@given(seed=seeds)
def test_friction_of_any_strength(make, method, seed):
    """None, little, much, or whatever it takes to stick: the laws hold, whichever method begins."""
    rng = np.random.default_rng(seed)
    friction = rng.choice([0.0, 0.1, 0.8, OPTIONS.strong_friction, np.inf], p=[0.2, 0.3, 0.3, 0.1, 0.1], size=4)
    problem = make(rng, friction[: 1 if make is leg_problem else 4])
    solution = solve_contacts(problem, method)
    assert solution.converged
    if (np.isinf(problem.friction) & (solution.status == SLIDING)).any():  # there may be no motion in which it sticks
        problem = replace(problem, friction=np.minimum(problem.friction, OPTIONS.strong_friction))
    check_laws(problem, solution.impulse)


def alone(method, problem):
    """Return the impulses, and their error [N s], of one method without the help of others."""
    return METHODS[method].solve(problem, np.zeros(len(problem.b)), 0.0, METHODS[method].budget)[:2]


@pytest.mark.parametrize("method", ["interior_point", "pivoting"])
@every_problem
@property_test(30)
@given(seed=seeds)
def test_method_alone(make, method, seed):
    """These two need no other method: what they find by themselves obeys the laws."""
    rng = np.random.default_rng(seed)
    friction = rng.choice([0.0, 0.1, 0.8], size=4)
    problem = make(rng, friction[: 1 if make is leg_problem else 4])
    r, error = alone(method, problem)
    assert error < 1e-9
    check_laws(problem, np.where(np.repeat(r[2::3] > 1e-11 * np.abs(r).max(), 3), r, 0.0))


@pytest.mark.parametrize("method", METHODS)
def test_one_sided_rows_against_lemke(method):
    """Without friction it is a linear complementarity problem, which pivoting solves exactly."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(2, 9))
        J, b = rng.normal(size=(rows, rows + 1)), rng.normal(size=rows)
        bounds = np.zeros(rows), np.full(rows, np.inf)
        problem = ContactProblem(J @ J.T, b, np.zeros(0), np.zeros((0, 2)), *bounds)
        exact = LinearComplementarity(problem.G, b).solve()
        found = solve_contacts(problem, method).impulse
        np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-9 * max(np.abs(exact).max(), 1.0))


def test_friction_beyond_all_numbers_raises_nothing():
    """Squares of such coefficients overflow: what is found is finite, and some forces of least norm are left out."""
    rng, solved = np.random.default_rng(1), 0
    for _ in range(400):
        contacts = int(rng.integers(2, 5))
        J = rng.normal(size=(3 * contacts, int(rng.integers(3, 3 * contacts - 1))))
        b, friction = J @ rng.normal(size=J.shape[1]), rng.choice([0.3, 1e160], size=contacts)
        problem = ContactProblem(J @ J.T, b, friction, np.zeros((contacts, 2)))
        solution = solve_contacts(problem, ContactMethod(tolerance=1e-3 * np.abs(problem.b).max()))
        assert np.isfinite(solution.impulse).all()
        solved += solution.converged
    assert solved > 200


@pytest.mark.parametrize("method", ["interior_point", "pivoting"])
@property_test(60)
@given(seed=seeds)
def test_between_bounds(method, seed):
    """Interval rows with both bounds, one or none: zero velocity inside, none but outward at a bound."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(6, 4))
    lower = np.where(rng.integers(2, size=6), -rng.uniform(0.1, 1.0, 6), rng.choice([0.0, -np.inf], 6))
    upper = np.where(rng.integers(2, size=6), rng.uniform(0.1, 1.0, 6), np.inf)
    problem = ContactProblem(J @ J.T, 2.0 * J @ rng.normal(size=4), np.zeros(0), np.zeros((0, 2)), lower, upper)
    r, error = alone(method, problem)
    assert error < 1e-11
    check_bounds(problem.G @ r + problem.b, r, lower, upper, 1e-9)


def test_unsolved_problem_is_told_or_refused():
    """Close to a solution a simulation goes on with a warning; otherwise, and with any NaN, it does not."""

    def motion(residual):
        none = np.zeros(0)
        solution = ContactSolution(none, np.zeros(0, dtype=np.int64), "newton", 1, residual)
        return ConstrainedSolution(none, none, none, solution, 0.0, 0.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion(1e-10).check_contacts()
    with pytest.warns(InexactContact, match=r"below 1e-06.*contact_tolerance"):
        motion(5e-7).check_contacts(OPTIONS.tolerable)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for residual in (5e-7, 2e-7, 4e-6, 3e-7):
            motion(residual).check_contacts(OPTIONS.tolerable)
    assert [warning.message.residual for warning in told] == [5e-7, 4e-6]  # once for each power of ten
    for residual, tolerable in ((5e-7, 0.0), (2e-5, OPTIONS.tolerable), (np.nan, OPTIONS.tolerable)):
        with pytest.raises(ContactNotSolved):
            motion(residual).check_contacts(tolerable)


@every_problem
def test_pinocchios_method_comes_near(make):
    """ADMM alone, dependent rows and rows of zeros included, to a few digits; Newton's method makes them all."""
    rng = np.random.default_rng(8)
    for _ in range(10):
        problem = make(rng, 0.5)
        r, error, _ = METHODS["admm"].solve(problem, np.zeros(len(problem.b)), 0.0, 5000)
        assert problem.residual(r) < 1e-5
        assert error <= 1e-5 * max(np.abs(problem.scaled.p * problem.b).max(), np.abs(r).max())


def test_a_good_start_changes_no_force():
    """Gauss-Seidel from the solution leads to the same forces."""
    rng = np.random.default_rng(5)
    problem = next(p for p in iter(lambda: solo_problem(rng, 0.4), None) if SLIDING in solve_contacts(p).status)
    cold = solve_contacts(problem, "gauss_seidel")
    warm = solve_contacts(problem, "gauss_seidel", cold.impulse)
    assert warm.impulse == pytest.approx(cold.impulse, rel=1e-9, abs=1e-12)
    with pytest.raises(InvalidValue, match="start"):
        solve_contacts(problem, "gauss_seidel", np.zeros(5))


def test_tolerance_in_newton_seconds():
    """With a coarser tolerance the error of what counts as solved is what was asked for."""
    rng = np.random.default_rng(5)
    problem = next(p for p in iter(lambda: solo_problem(rng, 0.4), None) if SLIDING in solve_contacts(p).status)
    exact = solve_contacts(problem, "gauss_seidel")
    coarse = solve_contacts(problem, ContactMethod("gauss_seidel", 1e-4))
    assert coarse.converged
    assert coarse.acceptable > exact.acceptable
    assert np.abs(coarse.impulse - exact.impulse).max() < 1e-2
    with pytest.raises(InvalidValue, match="tolerance"):
        ContactMethod("newton", -1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("friction", [0.0, 0.4, 1.5])
def test_one_contact_of_any_body(friction, method):
    """Three rows that depend on each other in any way: each answer obeys the laws."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        A = rng.normal(size=(3, 4))
        G, b = A @ A.T + 0.05 * np.eye(3), rng.normal(size=3)
        problem = ContactProblem(G, b, np.array([friction]), np.zeros((1, 2)))
        solution = solve_contacts(problem, method)
        assert solution.converged
        check_laws(problem, solution.impulse)

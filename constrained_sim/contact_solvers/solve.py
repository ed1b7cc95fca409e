"""The contact schedule: which methods solve contact problems, and the order in which they are tried.

All contacts stick, which is linear; else the methods of :data:`METHODS` in turn, the user's choice first. The kernel
:func:`solve_quick` goes through the schedule as far as methods are compiled, for a step that is compiled whole;
:func:`solve_contacts` goes on where that led to no solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.active_set_newton import newton
from constrained_sim.contact_solvers.admm import admm
from constrained_sim.contact_solvers.interior_point import interior_point
from constrained_sim.contact_solvers.least_norm import with_least_norm
from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.pivoting import pivoting
from constrained_sim.contact_solvers.problem import ContactProblem, ContactSolution, no_values
from constrained_sim.contact_solvers.projected_gauss_seidel import projected_gauss_seidel
from constrained_sim.contact_solvers.quick_solution import (
    BY_STICKING,
    CONTINUATION,
    INTERIOR_POINT,
    NAMES,
    NEWTON,
    QuickSolution,
)
from constrained_sim.contact_solvers.scaled_problem import ScaledProblem, accuracy_of, impulse_scale, scaled_problem
from constrained_sim.contact_solvers.status import classify, without_open
from constrained_sim.contact_solvers.sticking import judge_sticking, solve_sticking
from constrained_sim.contact_solvers.vanishing_compliance import choose_solution, rigid_limit
from constrained_sim.exceptions import NonFiniteMotion
from constrained_sim.linalg.products import matvec
from constrained_sim.validation import Array, finite_array, lookup, number

Method = Callable[[ContactProblem, Array, float, int], tuple[Array, float, int]]
"""From a problem, impulses (n,) to begin with, a tolerance [N s] and the most iterations to impulses, their error [N s]
and the iterations done. What a method cannot do it leaves as it is."""


@kernel
def solve_quick(G, b, laws, start, tolerance, newton_first, may_stick):
    """Solve a contact problem as :func:`solve_contacts` does, as far as methods are compiled.

    Args:
        G: (n, n) Delassus matrix of the contact rows.
        b: (n,) row velocities at zero impulse.
        laws: of the rows, a :class:`~constrained_sim.contact_solvers.scaled_problem.ContactLaws`.
        start: (n,) impulses from which Newton's method begins; (0,): from a few iterations of Gauss-Seidel.
        tolerance: error of impulses that is good enough [N s].
        newton_first: whether Newton's method is the first choice; else all contacts stick, or others do the problem.
        may_stick: whether all contacts may stick; not asked where Newton's method is not the first choice.

    Returns:
        A :class:`QuickSolution`.
    """
    problem = scaled_problem(G, b, laws)
    if may_stick or not newton_first:
        stuck = solve_sticking(G, b)
        u = matvec(G, stuck)
        u += b
        found = judge_sticking(laws, problem.p, b, u, stuck, tolerance)
        if found.solved or not newton_first:
            return found
    wanted = accuracy_of(laws, problem.p, b, tolerance)
    r, error, by, iterations = begin_newton(problem, start), np.inf, BY_STICKING, 0
    for method in (NEWTON, INTERIOR_POINT, CONTINUATION):
        magnitude = impulse_scale(laws, problem.p, b, r)
        enough = acceptable(tolerance, magnitude) if method == CONTINUATION else OPTIONS.sufficient
        if error <= max(wanted, enough * magnitude):
            break
        if method == NEWTON:
            other, left, done = newton(problem, r, wanted, OPTIONS.newton_budget)
        elif method == INTERIOR_POINT:
            other, left, done = interior_point(problem, r, wanted, OPTIONS.interior_point_budget)
        else:
            other, left, done = rigid_limit(problem, OPTIONS.compliances)
        iterations += done
        if left < error:
            r, error, by = other, left, method
    return conclude(problem, r, error, (by, iterations), tolerance)


@kernel
def begin_newton(problem, start):
    """Return the impulses from which Newton's method begins: `start` (n,), or a few iterations of Gauss-Seidel.

    These have no tolerance: where they come near, one step of Newton's makes all digits.
    """
    if start.shape[0]:
        return start
    return projected_gauss_seidel(problem, np.zeros_like(problem.b), 0.0, OPTIONS.start_iterations)[0]


@kernel(inline=True)
def acceptable(tolerance, magnitude):
    """Return the largest relative residual that counts as solved, for a tolerance and impulses of `magnitude` [N s]."""
    return max(OPTIONS.acceptable, OPTIONS.slack * tolerance / magnitude)


@kernel
def conclude(problem, r, error, how, tolerance):
    """Return the :class:`QuickSolution` that is taken, of impulses r (n,) with this error [N s].

    Where dependent rows leave a choice that is the one that
    :mod:`~constrained_sim.contact_solvers.vanishing_compliance` explains, whichever was found.

    Args:
        problem: a :class:`~constrained_sim.contact_solvers.scaled_problem.ScaledProblem`.
        r: (n,) impulses.
        error: of r [N s].
        how: the method that found r, and the iterations of all.
        tolerance: error of impulses that is good enough [N s].
    """
    (G, b, laws, p), (by, iterations) = problem, how
    magnitude = impulse_scale(laws, p, b, r)
    largest = acceptable(tolerance, magnitude) * magnitude
    solved = error <= largest
    if solved:
        reached = max(accuracy_of(laws, p, b, 0.0), error)
        most = min(max(OPTIONS.slack * reached, tolerance), largest)
        if by == CONTINUATION:
            r = with_least_norm(problem, r, reached, most)
        else:
            r = choose_solution(problem, r, reached, most)
    u = G @ r + b
    status = classify(laws, p, u, r, OPTIONS.slack * OPTIONS.accuracy * magnitude)
    r = without_open(laws, status, r)
    if not solved:
        status = classify(laws, p, u, r, OPTIONS.slack * error)
    error, magnitude = error_of(problem, r), impulse_scale(laws, p, b, r)
    solved = error <= acceptable(tolerance, magnitude) * magnitude
    return QuickSolution(r, status, by, iterations, error / magnitude, magnitude, solved)


@dataclass(frozen=True)
class ContactMethod:
    """How contact problems are solved.

    Attributes:
        name: in ``METHODS``, of the method that comes first.
        tolerance: error of impulses that is good enough [N s] (of forces [N], at acceleration level); 0: rounding.

    Raises:
        UnknownName: no such method.
        InvalidValue: a negative tolerance.
    """

    name: str = "newton"
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Check the values."""
        lookup("contact method", self.name, METHODS)
        object.__setattr__(self, "tolerance", number("contact tolerance", self.tolerance, 0.0))

    @property
    def schedule(self) -> list[str]:
        """Names of all methods in turn, this one first."""
        return [self.name, *(name for name in METHODS if name != self.name)]

    @cached_property
    def newton_first(self) -> bool:
        """Whether Newton's method is the first choice."""
        return self.name == "newton"

    @cached_property
    def without_newton(self) -> ContactMethod:
        """What to begin with where Newton's method would be the first and is not likely to do."""
        return replace(self, name="interior_point") if self.newton_first else self

    def solution(self, found: QuickSolution) -> ContactSolution:
        """Return what a kernel `found`, judged by the tolerance."""
        largest = float(acceptable(self.tolerance, found.magnitude))
        return ContactSolution(
            found.impulse, found.status, NAMES[found.method], found.iterations, found.residual, largest
        )


def solve_contacts(
    problem: ContactProblem, method: str | ContactMethod = "newton", start: Any = None
) -> ContactSolution:
    """Solve `problem`; the result depends on the problem only, never on what was solved before.

    First all contacts are taken to stick, which is linear. Where this violates a cone, the chosen method comes first,
    then those of :data:`METHODS` in turn, until one converges or all have had their say. They aim at the tolerance, or
    rounding; a slow one is left out where what was found is acceptable. Where dependent rows leave a choice of forces
    or of motions, what is returned is the one solution that
    :mod:`~constrained_sim.contact_solvers.vanishing_compliance` explains, whichever was found.

    Args:
        problem: what to solve.
        method: which method comes first.
        start: (n,) impulses from which that method begins; None: it finds its own. Where the solution is unique, this
            changes the number of iterations only.

    Raises:
        UnknownName: no such method.
        InvalidValue: a start of wrong length, NaN or infinity.
        NonFiniteMotion: NaN or infinity in the problem.
    """
    method = ContactMethod(method) if isinstance(method, str) else method
    begin = no_values() if start is None else finite_array("start", start, problem.b.shape)
    found = solve_quick(problem.G, problem.b, problem.laws, begin, method.tolerance, method.newton_first, True)
    return method.solution(found) if found.solved else solve_fallback(problem, method, found, begin)


def solve_fallback(
    problem: ContactProblem, method: ContactMethod, quick: QuickSolution, start: Array
) -> ContactSolution:
    """Go on as :func:`solve_contacts` does where :func:`solve_quick` returned no solution but `quick`.

    Contacts that stick whatever the force may have no solution: one of them would pull, and without it penetrate, as
    where a quadruped lands on such feet. With Coulomb's law there is one at the velocity level, in which this contact
    slides: they have the coefficient ``strong_friction`` then.
    """
    if not np.isinf(problem.friction).any():
        return _follow_schedule(problem, method, quick, start)
    nearly = replace(problem, friction=np.minimum(problem.friction, OPTIONS.strong_friction))
    found = solve_contacts(nearly, method, start if start.size else None)
    held = solve_quick(problem.G, problem.b, problem.laws, found.impulse, method.tolerance, True, True)
    if held.solved:
        return method.solution(held)
    return found if found.converged else _follow_schedule(problem, method, quick, start)


def _follow_schedule(
    problem: ContactProblem, method: ContactMethod, quick: QuickSolution, start: Array
) -> ContactSolution:
    """Try one method after the other, but those that have led to `quick`, see :func:`solve_contacts`."""
    if not (np.isfinite(problem.G).all() and np.isfinite(problem.b).all()):
        raise NonFiniteMotion("the velocities of contacts are NaN or infinite")
    scaled = problem.scaled
    wanted = float(accuracy_of(scaled.laws, scaled.p, scaled.b, method.tolerance))
    impulse, by, iterations = quick.impulse, NAMES[quick.method], quick.iterations
    error, schedule = quick.residual * quick.magnitude, method.schedule
    if quick.method == BY_STICKING:
        impulse, error = begin_newton(scaled, start), np.inf
    else:
        schedule = [name for name in schedule if not METHODS[name].is_compiled]
    for name in schedule:
        magnitude = float(impulse_scale(scaled.laws, scaled.p, scaled.b, impulse))
        enough = METHODS[name].needed_above(len(impulse), acceptable(method.tolerance, magnitude))
        if error <= max(wanted, enough * magnitude):
            break
        other, left, done = METHODS[name].solve(problem, impulse, wanted, METHODS[name].budget)
        iterations += done
        if left < error:
            impulse, error, by = other, left, name
    known = NAMES.index(by) if by in NAMES else BY_STICKING
    found = conclude(scaled, impulse, error, (known, iterations), method.tolerance)
    return method.solution(found)._replace(method=by)


def gauss_seidel(problem: ContactProblem, impulse: Array, tolerance: float, budget: int) -> tuple[Array, float, int]:
    """Projected Gauss-Seidel, in rounds that are twice as long each time, until the error is acceptable.

    Newton's method goes on from where each has led, for all digits.
    """
    scaled, done, rounds = problem.scaled, 0, OPTIONS.first_round
    best, least = impulse, np.inf
    while done < budget:
        impulse, _, count = projected_gauss_seidel(scaled, impulse, tolerance, min(rounds, budget - done))
        found, error, steps = newton(scaled, impulse, tolerance, OPTIONS.newton_steps)
        done += count + steps
        if error < least:
            best, least = found, error
        magnitude = float(impulse_scale(scaled.laws, scaled.p, scaled.b, best))
        if count < rounds or least <= acceptable(tolerance, magnitude) * magnitude:
            break
        rounds *= 2
    return best, least, done


def continuation(problem: ContactProblem, impulse: Array, tolerance: float, budget: int) -> tuple[Array, float, int]:
    """The limit of vanishing compliance, from contacts that do not feel each other: `impulse` is of no use."""
    limit, error, tried = rigid_limit(problem.scaled, budget)
    return limit, float(error), int(tried)


class ContactAlgorithm(NamedTuple):
    """A way to solve contact problems, and when it is worth while.

    Attributes:
        solve: the function.
        budget: the most iterations.
        about: what it is, in a line.
        is_compiled: whether :func:`solve_quick` has tried it.
        is_quick: whether it takes so little time that it is tried where what was found is acceptable, but not all that
            rounding allows.
        most_rows: of problems for which it is tried where nothing is acceptable; with more where nothing is tolerable.
    """

    solve: Method
    budget: int
    about: str
    is_compiled: bool = False
    is_quick: bool = False
    most_rows: float = np.inf

    def needed_above(self, rows: int, acceptable: float) -> float:
        """Return the relative error above which it is tried on a problem of so many `rows`."""
        if self.is_quick:
            return OPTIONS.sufficient
        return acceptable if rows <= self.most_rows else OPTIONS.tolerable


def _compiled(method: Callable[[ScaledProblem, Array, float, int], tuple[Array, float, int]]) -> Method:
    """Return a method that a kernel is."""
    return lambda problem, impulse, tolerance, budget: method(problem.scaled, impulse, tolerance, budget)


METHODS = {
    "newton": ContactAlgorithm(
        _compiled(newton),
        OPTIONS.newton_budget,
        "Newton's method on the natural map: all digits in a few steps, of nearly all problems. The default.",
        is_compiled=True,
        is_quick=True,
    ),
    "interior_point": ContactAlgorithm(
        _compiled(interior_point),
        OPTIONS.interior_point_budget,
        "An interior-point method: few iterations, however many rows depend on each other.",
        is_compiled=True,
        is_quick=True,
    ),
    "continuation": ContactAlgorithm(
        continuation,
        OPTIONS.compliances,
        "Follows the solutions of contacts whose compliance vanishes, however rows depend on each other.",
        is_compiled=True,
    ),
    "gauss_seidel": ContactAlgorithm(
        gauss_seidel,
        OPTIONS.gauss_seidel_budget,
        "Projected Gauss-Seidel, contact by contact; Newton's method makes the last digits.",
    ),
    "admm": ContactAlgorithm(
        admm,
        OPTIONS.admm_budget,
        "Pinocchio's alternating-direction method of multipliers; Newton's method makes the last digits.",
    ),
    "pivoting": ContactAlgorithm(
        pivoting,
        OPTIONS.pivoting_budget,
        "Lemke's method on pyramids inside the cones: in a time that grows with the third power of the rows.",
        most_rows=OPTIONS.pivoting_rows,
    ),
}
"""All methods, in the order in which they are tried.

Newton's method solves nearly all. Where contacts are about to stick, slip or part it may go to and fro; the path of the
interior-point method leads around that, in a time that does not vary much. It has no model of rolling friction and of
known slip, and may end at a turn of its path, or early where rows depend on each other, as those of many joints at
their stops. Continuation follows the solutions of contacts whose compliance vanishes, however rows depend on each
other, in walls of bricks too, unless its path turns. Gauss-Seidel and ADMM know no rank: they solve these, also with
hundreds of contacts. Pivoting passes the turns, in a time that grows with the third power of the rows.
"""


def compile_methods() -> None:
    """Compile all methods, or load them from the cache: done at the first slip, it would hold up a simulation.

    Two contacts of one sliding body, whose rows depend on each other, need everything.
    """
    J = np.tile(np.eye(3), (2, 1))
    b = np.tile([1.0, 0.5, -1.0], 2)
    problem = ContactProblem(J @ J.T, b, np.full(2, 0.3), np.zeros((2, 2)))
    for method in METHODS:
        solve_contacts(problem, method)

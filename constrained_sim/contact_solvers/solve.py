"""The methods that solve contact problems, and the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.contact_solvers.admm import admm
from constrained_sim.contact_solvers.interior_point import interior_point
from constrained_sim.contact_solvers.natural_map import inverse_scale
from constrained_sim.contact_solvers.pivoting import pivoting
from constrained_sim.contact_solvers.problem import (
    RELATIVE_TOLERANCE,
    STRONG,
    SUFFICIENT,
    ContactProblem,
    ContactSolution,
    no_values,
)
from constrained_sim.contact_solvers.projected_gauss_seidel import gauss_seidel as compiled_gauss_seidel
from constrained_sim.contact_solvers.quick_methods import (
    BY_STICKING,
    INTERIOR_STEPS,
    NEWTON_STEPS,
    QUICK_METHODS,
    acceptable,
    solve_quick,
)
from constrained_sim.contact_solvers.semismooth_newton import semismooth_newton
from constrained_sim.contact_solvers.status import classify
from constrained_sim.contact_solvers.vanishing_compliance import choose_solution
from constrained_sim.exceptions import NonFiniteMotion
from constrained_sim.validation import Array, finite_array, lookup, number

Method = Callable[[ContactProblem, Array, Array, float, int], tuple[Array, float, int]]
"""From a problem, the scale (n,) of its rows, impulses (n,) to begin with, a tolerance [N s] and the most iterations to
impulses, their error [N s] and the iterations done. What a method cannot do it leaves as it is."""


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

    def acceptable(self, magnitude: float) -> float:
        """Return the largest relative residual that counts as solved, for impulses of `magnitude` [N s]."""
        return float(acceptable(self.tolerance, magnitude))

    @property
    def quick_steps(self) -> int:
        """Newton's steps that ``solve_quick`` may do, where that comes first."""
        return NEWTON_STEPS if self.name == "newton" else 0

    @property
    def without_newton(self) -> ContactMethod:
        """What to begin with where Newton's method would be the first and is not likely to do."""
        return replace(self, name="interior_point") if self.quick_steps else self

    @property
    def after_quick(self) -> ContactMethod:
        """What to go on with where the quick methods led to no solution."""
        return replace(self, name="pivoting") if self.quick_steps else self

    def quick_solution(
        self, impulse: Array, status: npt.NDArray[np.int64], how: tuple[int, int], residual: float, magnitude: float
    ) -> ContactSolution:
        """Return what :func:`~constrained_sim.contact_solvers.quick_methods.solve_quick` found."""
        which, steps = how
        return ContactSolution(impulse, status, QUICK_METHODS[which], steps, residual, self.acceptable(magnitude))


def solve_contacts(
    problem: ContactProblem, method: str | ContactMethod = "newton", start: Any = None
) -> ContactSolution:
    """Solve `problem`; the result depends on the problem only, never on what was solved before.

    First all contacts are taken to stick, which is linear. Where this violates a cone, the chosen method comes first,
    then the others in turn, until one converges or all have had their say: Newton's, an interior-point method, Lemke's
    pivoting, projected Gauss-Seidel, Pinocchio's ADMM, each with Newton's method from where it ends. The first aim at
    the tolerance, or rounding; the slow ones, from pivoting on, are left out where what was found is acceptable. Where
    dependent rows leave a choice of forces or of motions, what is returned is the one solution that
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
    settings = begin, method.tolerance, method.quick_steps, True
    *quick, solved = solve_quick(problem.G, problem.b, *problem.laws, *settings)
    return method.quick_solution(*quick) if solved else solve_fallback(problem, method, tuple(quick), begin)


def solve_fallback(
    problem: ContactProblem,
    method: ContactMethod,
    quick: tuple[Array, npt.NDArray[np.int64], tuple[int, int], float, float],
    start: Array,
) -> ContactSolution:
    """Go on as :func:`solve_contacts` does where the quick methods returned no solution but what is in `quick`.

    Contacts that stick whatever the force may have no solution: one of them would pull, and without it penetrate, as
    where a quadruped lands on such feet. With Coulomb's law there is one at the velocity level, in which this contact
    slides: they have the coefficient :data:`~constrained_sim.contact_solvers.problem.STRONG` then.
    """
    if not np.isinf(problem.friction).any():
        return _solve_fallback(problem, method, quick, start)
    nearly = replace(problem, friction=np.minimum(problem.friction, STRONG))
    found = solve_contacts(nearly, method, start if start.size else None)
    laws = problem.laws
    settings = found.impulse, method.tolerance, NEWTON_STEPS, True
    *sticking, solved = solve_quick(problem.G, problem.b, *laws, *settings)
    if solved:
        return method.quick_solution(*sticking)
    return found if found.converged else _solve_fallback(problem, method, quick, start)


def _solve_fallback(
    problem: ContactProblem,
    method: ContactMethod,
    quick: tuple[Array, npt.NDArray[np.int64], tuple[int, int], float, float],
    start: Array,
) -> ContactSolution:
    """Try one method after the other, see :func:`solve_contacts`."""
    G, b, laws = problem.G, problem.b, problem.laws
    if not (np.isfinite(G).all() and np.isfinite(b).all()):
        raise NonFiniteMotion("the velocities of contacts are NaN or infinite")
    impulse, _, (which, iterations), residual, magnitude = quick
    scale = inverse_scale(G, len(problem.friction), problem.rolling)
    rounding = RELATIVE_TOLERANCE * np.abs(scale * b).max()
    tolerance = max(rounding, method.tolerance)
    error, used = residual * magnitude, QUICK_METHODS[which]
    if start.size and which == BY_STICKING:
        impulse, used = start, method.name
        error = problem.error(scale, start)
    best = error, impulse
    first = METHODS[method.name]
    schedule = [(entry, True) for entry in SLOW]
    if which == BY_STICKING:
        is_slow = first not in (newton, by_interior_point)
        begin = (first, BUDGETS[first], first is gauss_seidel and not start.size), is_slow
        schedule = [begin, *((entry, False) for entry in QUICK), *schedule]
    for (step, budget, anew), is_slow in schedule:
        magnitude = problem.magnitude(scale, best[1])
        wanted = method.acceptable(magnitude) * magnitude if is_slow else max(tolerance, SUFFICIENT * magnitude)
        if best[0] <= wanted:
            break
        if anew:
            impulse = np.zeros_like(b)
        impulse, error, done = step(problem, scale, impulse, wanted if is_slow else tolerance, budget)
        iterations += done
        if is_slow and error > tolerance:
            impulse, error, done = newton(problem, scale, impulse, tolerance, BUDGETS[newton])
            iterations += done
        if error < best[0]:
            used, best = NAMES[step], (error, impulse)
    error, impulse = best
    magnitude = problem.magnitude(scale, impulse)
    largest = method.acceptable(magnitude) * magnitude
    if error <= largest:
        reached = max(rounding, error)
        most = min(max(tolerance, 10.0 * reached), largest)
        impulse = choose_solution(G, b, *laws, scale, impulse, reached, most)
    status = classify(G @ impulse + b, *laws, scale, impulse, 10.0 * RELATIVE_TOLERANCE * magnitude)
    acceptable = method.acceptable(problem.magnitude(scale, impulse))
    return ContactSolution(impulse, status, used, iterations, problem.residual(impulse), acceptable)


def _compiled(kernel: Callable[..., tuple[Array, float, int]]) -> Method:
    """Return a method that a kernel is."""

    def method(
        problem: ContactProblem, scale: Array, impulse: Array, tolerance: float, budget: int
    ) -> tuple[Array, float, int]:
        return kernel(problem.G, problem.b, *problem.laws, scale, impulse, tolerance, budget)

    return method


newton, gauss_seidel = _compiled(semismooth_newton), _compiled(compiled_gauss_seidel)
by_interior_point = _compiled(interior_point)

BUDGETS: dict[Method, int] = {
    newton: 30,
    by_interior_point: INTERIOR_STEPS,
    pivoting: 24,
    gauss_seidel: 200,
    admm: 2000,
}
QUICK: tuple[tuple[Method, int, bool], ...] = tuple(
    (step, BUDGETS[step], False) for step in (by_interior_point, newton)
)
SLOW: tuple[tuple[Method, int, bool], ...] = (
    (pivoting, BUDGETS[pivoting], False),
    (gauss_seidel, BUDGETS[gauss_seidel], True),
    (admm, BUDGETS[admm], False),
    (gauss_seidel, 1000, True),
)
"""Methods in turn, how many iterations each may do, and whether it begins anew, without any force."""

METHODS: dict[str, Method] = {
    "newton": newton,
    "interior_point": by_interior_point,
    "pivoting": pivoting,
    "gauss_seidel": gauss_seidel,
    "admm": admm,
}
NAMES = {step: name for name, step in METHODS.items()}


def compile_methods() -> None:
    """Compile all methods, or load them from the cache: done at the first slip, it would hold up a simulation.

    Two contacts of one sliding body, whose rows depend on each other, need everything.
    """
    J = np.tile(np.eye(3), (2, 1))
    b = np.tile([1.0, 0.5, -1.0], 2)
    problem = ContactProblem(J @ J.T, b, np.full(2, 0.3), np.zeros((2, 2)))
    for method in METHODS:
        solve_contacts(problem, method)

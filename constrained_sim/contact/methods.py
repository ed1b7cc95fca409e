"""The methods that solve contact problems, and the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from constrained_sim.contact import kernels
from constrained_sim.contact.admm import admm
from constrained_sim.contact.complementarity import LinearComplementarity
from constrained_sim.contact.least_norm import by_motion, is_determined, least_norm
from constrained_sim.contact.problem import (
    ACCEPTABLE_RESIDUAL,
    RELATIVE_TOLERANCE,
    ContactProblem,
    ContactSolution,
)
from constrained_sim.contact.sweeps import gauss_seidel
from constrained_sim.exceptions import ContactNotSolved
from constrained_sim.validation import Array, finite_array, lookup, number

SUFFICIENT = 1e-11
"""Error relative to the impulses in play at which no other method is tried; each aims at ``RELATIVE_TOLERANCE``."""

Method = Callable[..., tuple[Array, float, int]]


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
        number("contact tolerance", self.tolerance, 0.0)

    def acceptable(self, magnitude: float) -> float:
        """Return the largest relative residual that counts as solved, for impulses of `magnitude` [N s]."""
        return max(ACCEPTABLE_RESIDUAL, 10.0 * self.tolerance / magnitude)


def solve_contacts(
    problem: ContactProblem, method: str | ContactMethod = "newton", start: Any = None
) -> ContactSolution:
    """Solve `problem`; the result depends on the problem only, never on what was solved before.

    First all contacts are taken to stick, which is linear. Where this violates a cone, the chosen method comes first,
    then the others in turn, until one converges or all have had their say: pivoting, where there is no friction;
    Newton's method from no force, along a path from soft contacts to rigid ones, and from points around its end;
    projected Gauss-Seidel; Pinocchio's ADMM; each with Newton's method from where it ends. Where forces are not unique,
    those of least norm with the same motion are returned.

    Args:
        problem: what to solve.
        method: which method comes first.
        start: (3 k + m,) impulses from which that method begins; None: those of sticking. This changes the number of
            iterations only.

    Raises:
        UnknownName: no such method.
        InvalidValue: a start of wrong length, NaN or infinity.
    """
    method = ContactMethod(method) if isinstance(method, str) else method
    G, b, laws = problem.G, problem.b, problem.laws
    impulse, status, error, magnitude, scale, stuck = kernels.attempt_sticking(G, b, *laws, RELATIVE_TOLERANCE)
    if error <= max(RELATIVE_TOLERANCE * magnitude, method.tolerance):
        return ContactSolution(impulse, status, "stick", 0, error / magnitude, method.acceptable(magnitude))
    # Not the magnitude of the sticking solution: where rows nearly depend on each other it may be a million times more.
    rounding = RELATIVE_TOLERANCE * np.abs(scale * b).max()
    tolerance = max(rounding, method.tolerance)
    impulse = stuck if start is None else finite_array("start", start, b.shape)
    used, iterations, best, first = "stick", 0, (error, impulse), METHODS[method.name]
    for step, budget, anew in [(first, BUDGETS[first], first is gauss_seidel and start is None), *SCHEDULE]:
        if anew:
            impulse = np.zeros_like(b)
        impulse, error, done = step(G, b, *laws, scale, impulse, tolerance, budget)
        iterations += done
        if error < best[0]:
            used, best = NAMES[step], (error, impulse)
        if error <= max(tolerance, SUFFICIENT * problem.magnitude(scale, impulse)):
            break
    impulse = best[1]
    magnitude = problem.magnitude(scale, impulse)
    if best[0] <= max(tolerance, SUFFICIENT * magnitude):
        reached = max(rounding, best[0])
        impulse = _of_least_norm(problem, impulse, scale, reached, max(tolerance, 10.0 * reached))
    status = kernels.classify(G, b, *laws, scale, impulse, 10.0 * RELATIVE_TOLERANCE * magnitude)
    residual = problem.residual(impulse)
    return ContactSolution(impulse, status, used, iterations, residual, method.acceptable(magnitude))


def _of_least_norm(problem: ContactProblem, impulse: Array, scale: Array, error: float, most: float) -> Array:
    """Return the forces of least norm with the motion of `impulse`; `impulse` itself where there is no choice.

    Args:
        problem: what was solved.
        impulse: (n,) its solution.
        scale: (n,) of the rows.
        error: of the solution [N s].
        most: error that the forces returned may have.
    """
    G, b, (friction, slip, lower, upper, discs) = problem.G, problem.b, problem.laws
    if len(discs):
        return impulse
    u = G @ impulse + b
    status = by_motion(u, friction, slip, lower, upper, scale, 100.0 * error)
    if is_determined(G, u, friction, slip, status):
        return impulse
    found = least_norm(G, b, friction, slip, lower, upper, status, impulse, error, NEWTON_STEPS)
    left = np.abs(kernels.natural_map(G, b, friction, slip, lower, upper, discs, scale, found)).max()
    return found if left <= most else impulse


def pivoting(
    G: Array,
    b: Array,
    friction: Array,
    slip: Array,
    lower: Array,
    upper: Array,
    discs: Array,
    scale: Array,
    impulse: Array,
    tolerance: float,
    budget: int,
) -> tuple[Array, float, int]:
    """Solve a problem without friction exactly, as a linear complementarity problem; others are left as they are.

    Arguments and result are those of :func:`kernels.newton`.
    """
    solved = impulse
    if not (friction.any() or lower.any() or len(discs)) and np.isinf(upper).all():
        contacts = 3 * len(friction)
        normals = np.concatenate([np.arange(2, contacts, 3), np.arange(contacts, len(b))])
        solved = np.zeros_like(b)
        with suppress(ContactNotSolved):
            solved[normals] = LinearComplementarity(G[np.ix_(normals, normals)], b[normals]).solve()
    F = kernels.natural_map(G, b, friction, slip, lower, upper, discs, scale, solved)
    return solved, float(np.abs(F).max(initial=0.0)), 1


NEWTON_STEPS = 60
BUDGETS: dict[Method, int] = {
    kernels.newton: NEWTON_STEPS,
    gauss_seidel: 200,
    pivoting: 1,
    kernels.continuation: 11,
    kernels.restarts: 60,
    admm: 2000,
}
SCHEDULE: tuple[tuple[Method, int, bool], ...] = (
    (kernels.newton, NEWTON_STEPS, False),
    (pivoting, 1, False),
    (kernels.newton, NEWTON_STEPS, True),
    (kernels.continuation, 11, False),
    (kernels.restarts, 12, False),
    (gauss_seidel, 200, True),
    (kernels.newton, NEWTON_STEPS, False),
    (admm, 2000, False),
    (kernels.newton, NEWTON_STEPS, False),
    (gauss_seidel, 1000, True),
    (kernels.continuation, 41, False),
    (kernels.restarts, 120, False),
)
"""Methods in turn, how many iterations each may do, and whether it begins anew, without any force."""

METHODS: dict[str, Method] = {
    "newton": kernels.newton,
    "gauss_seidel": gauss_seidel,
    "pivoting": pivoting,
    "continuation": kernels.continuation,
    "restarts": kernels.restarts,
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

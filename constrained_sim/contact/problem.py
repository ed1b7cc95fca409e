"""The frictional contact problem as a value that judges its own solution, and the methods that solve it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from constrained_sim.contact import kernels
from constrained_sim.contact.complementarity import LinearComplementarity
from constrained_sim.exceptions import ContactNotSolved
from constrained_sim.validation import Array, lookup

RELATIVE_TOLERANCE = 1e-13
ACCEPTABLE_RESIDUAL = 1e-9


Method = Callable[..., tuple[Array, float, int]]


def no_values() -> Array:
    """Return (0,)."""
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """Find impulses r, three per contact [t1, t2, n], with ``u = G r + b`` under Signorini's and Coulomb's laws.

    After the contacts there may be interval rows: joint limits and dry joint friction. At acceleration level the
    impulses are forces and u accelerations.

    Attributes:
        G: (3 k + m, 3 k + m) Delassus matrix of the rows, other constraints held.
        b: (3 k + m,) row velocities without these impulses [m/s, rad/s].
        friction: (k,) Coulomb coefficients; 0 frictionless, infinity sticks as long as it is pressed.
        slip: (k, 2) at acceleration level, unit direction of the present slip along (t1, t2); zero where there is none.
        lower: (m,) least impulse of the interval rows; 0 of a limit.
        upper: (m,) largest; infinite of a limit.
    """

    G: Array
    b: Array
    friction: Array
    slip: Array
    lower: Array = field(default_factory=no_values)
    upper: Array = field(default_factory=no_values)

    def residual(self, impulse: Array) -> float:
        """Return the largest entry of the natural map [N s] relative to the largest impulse in play; 0 if solved."""
        scale = kernels.inverse_scale(self.G, len(self.friction))
        error = np.abs(kernels.natural_map(self.G, self.b, *self.laws, scale, impulse)).max(initial=0.0)
        return float(error / self._magnitude(scale, impulse))

    def judged(self, impulse: Array, method: str, iterations: int = 0) -> ContactSolution:
        """Return `impulse` (3 k,), found by `method`, as a solution with its status and residual."""
        scale = kernels.inverse_scale(self.G, len(self.friction))
        tolerance = 10.0 * RELATIVE_TOLERANCE * self._magnitude(scale, impulse)
        status = kernels.classify(self.G, self.b, *self.laws, scale, impulse, tolerance)
        return ContactSolution(impulse, status, method, iterations, self.residual(impulse))

    @property
    def laws(self) -> tuple[Array, Array, Array, Array]:
        """What the rows obey: friction, slip, lower and upper bounds."""
        return self.friction, self.slip, self.lower, self.upper

    def _magnitude(self, scale: Array, impulse: Array) -> float:
        return max(np.abs(impulse).max(initial=0.0), np.abs(scale * self.b).max(initial=0.0), 1e-300)


@dataclass(frozen=True, eq=False)
class ContactSolution:
    """What a method found.

    Attributes:
        impulse: (3 k + m,) [N s, N m s].
        status: (k + m,) 0 open, 1 sticking, 2 sliding; an interval row slides at a bound.
        method: the method that gave it.
        iterations: of all methods that were tried.
        residual: relative, see :meth:`ContactProblem.residual`.
    """

    impulse: Array
    status: npt.NDArray[np.int64]
    method: str
    iterations: int
    residual: float

    @property
    def converged(self) -> bool:
        """Whether the residual is acceptable."""
        return self.residual <= ACCEPTABLE_RESIDUAL


def solve_contacts(problem: ContactProblem, method: str = "newton") -> ContactSolution:
    """Solve `problem`; the result depends on the problem only, never on what was solved before.

    First all contacts are taken to stick, which is linear. Where this violates a cone, `method` comes first; then
    pivoting, if there is no friction, and Newton's method and projected Gauss-Seidel, which begins without any force,
    in turn, until one converges or all have had their say.

    Raises:
        UnknownName: no such method.
    """
    first = lookup("contact method", method, METHODS)
    G, b, laws = problem.G, problem.b, problem.laws
    impulse, status, error, magnitude, scale = kernels.attempt_sticking(G, b, *laws, RELATIVE_TOLERANCE)
    tolerance = RELATIVE_TOLERANCE * magnitude
    if error <= tolerance:
        return ContactSolution(impulse, status, "stick", 0, error / magnitude)
    used, iterations, best = "stick", 0, (error, impulse)
    impulse, tried_from_rest = kernels.stick(G, b), False
    for step, budget in [(first, BUDGETS[first]), *SCHEDULE]:
        if step is kernels.gauss_seidel and not tried_from_rest:
            impulse, tried_from_rest = np.zeros_like(b), True
        impulse, error, done = step(G, b, *laws, scale, impulse, tolerance, budget)
        iterations += done
        if error < best[0]:
            used, best = NAMES[step], (error, impulse)
        if error <= tolerance:
            break
    impulse = best[1]
    status = kernels.classify(G, b, *laws, scale, impulse, 10.0 * tolerance)
    return ContactSolution(impulse, status, used, iterations, problem.residual(impulse))


def pivoting(
    G: Array,
    b: Array,
    friction: Array,
    slip: Array,
    lower: Array,
    upper: Array,
    scale: Array,
    impulse: Array,
    tolerance: float,
    budget: int,
) -> tuple[Array, float, int]:
    """Solve a problem without friction exactly, as a linear complementarity problem; others are left as they are.

    Arguments and result are those of :func:`kernels.newton`.
    """
    solved = impulse
    if not friction.any() and not lower.any() and np.isinf(upper).all():
        contacts = 3 * len(friction)
        normals = np.concatenate([np.arange(2, contacts, 3), np.arange(contacts, len(b))])
        solved = np.zeros_like(b)
        with suppress(ContactNotSolved):
            solved[normals] = LinearComplementarity(G[np.ix_(normals, normals)], b[normals]).solve()
    F = kernels.natural_map(G, b, friction, slip, lower, upper, scale, solved)
    return solved, float(np.abs(F).max(initial=0.0)), 1


NEWTON_STEPS = 40
BUDGETS: dict[Method, int] = {kernels.newton: NEWTON_STEPS, kernels.gauss_seidel: 200, pivoting: 1}
SCHEDULE: tuple[tuple[Method, int], ...] = (
    (pivoting, 1),
    (kernels.gauss_seidel, 200),
    (kernels.newton, NEWTON_STEPS),
    (kernels.gauss_seidel, 1000),
    (kernels.newton, NEWTON_STEPS),
)
METHODS: dict[str, Method] = {"newton": kernels.newton, "gauss_seidel": kernels.gauss_seidel, "pivoting": pivoting}
NAMES = {step: name for name, step in METHODS.items()}

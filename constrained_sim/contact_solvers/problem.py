"""The frictional contact problem as a value that judges its own solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import CONTACT, SIZE, moment_limit, no_rolling
from constrained_sim.contact_solvers.scaled_problem import ContactLaws, ScaledProblem, impulse_scale, scaled_problem
from constrained_sim.contact_solvers.status import classify, without_open
from constrained_sim.linalg.rank import TINY
from constrained_sim.validation import Array


def no_values() -> Array:
    """Return (0,)."""
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """Find impulses r, three per contact [t1, t2, n], with ``u = G r + b`` under Signorini's and Coulomb's laws.

    After the contacts there may be m box rows, joint limits and dry joint friction, and e rows of rolling friction,
    which resist rolling and spinning. At acceleration level the impulses are forces and u accelerations.

    Attributes:
        G: (n, n), n = 3 k + m + e, Delassus matrix of the rows, other constraints held.
        b: (n,) row velocities without these impulses [m/s, rad/s].
        friction: (k,) Coulomb coefficients; 0 frictionless, infinity sticks while it is active, if it can.
        slip: (k, 2) at acceleration level, unit direction of the present slip along (t1, t2); zero where there is none.
        lower: (m,) least impulse of the box rows; 0 of a limit.
        upper: (m,) largest; infinite of a limit.
        rolling: (d, 6) what bounds the rows after these, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
    """

    G: Array
    b: Array
    friction: Array
    slip: Array
    lower: Array = field(default_factory=no_values)
    upper: Array = field(default_factory=no_values)
    rolling: Array = field(default_factory=no_rolling)

    def residual(self, impulse: Array) -> float:
        """Return the largest entry of the natural map [N s] relative to the impulse scale; 0 if solved."""
        scaled = self.scaled
        return float(error_of(scaled, impulse) / impulse_scale(scaled.laws, scaled.p, scaled.b, impulse))

    def judged(self, impulse: Array, method: str) -> ContactSolution:
        """Return `impulse` (n,), found by `method`, as a solution; what is open is cleared in it."""
        scaled, laws = self.scaled, self.laws
        tolerance = OPTIONS.slack * OPTIONS.accuracy * impulse_scale(laws, scaled.p, scaled.b, impulse)
        status = classify(laws, scaled.p, self.G @ impulse + self.b, impulse, tolerance)
        impulse = without_open(laws, status, impulse)
        return ContactSolution(impulse, status, method, 0, self.residual(impulse))

    @cached_property
    def laws(self) -> ContactLaws:
        """What the rows obey."""
        return ContactLaws(self.friction, self.slip, self.lower, self.upper, self.rolling)

    @cached_property
    def scaled(self) -> ScaledProblem:
        """The problem as kernels take it."""
        scaled: ScaledProblem = scaled_problem(self.G, self.b, self.laws)
        return scaled

    @property
    def rolling_slices(self) -> list[slice]:
        """Which rows each rolling or spinning moment has."""
        ends = 3 * len(self.friction) + len(self.lower) + np.cumsum(self.rolling[:, SIZE], dtype=np.int64)
        return [slice(int(end - moment[SIZE]), int(end)) for end, moment in zip(ends, self.rolling, strict=True)]

    def slip_residual(self, impulse: Array) -> float:
        """Return how far friction is from dissipating the most it can, relative to the power in play; 0 if solved.

        For every contact ``r_t . u_t + c r_n |u_t|``, and the same of rolling friction, which the principle of maximum
        dissipation makes 0.
        """
        count, velocity = 3 * len(self.friction), self.G @ impulse + self.b
        u, r = velocity[:count].reshape(-1, 3), impulse[:count].reshape(-1, 3)
        finite = np.isfinite(self.friction)
        most = np.where(finite, self.friction, 0.0) * r[:, 2] * np.hypot(u[:, 0], u[:, 1])
        missed = np.where(finite, r[:, 0] * u[:, 0] + r[:, 1] * u[:, 1] + most, 0.0)
        turning = [
            impulse[rows] @ velocity[rows] + radius * np.linalg.norm(velocity[rows])
            for rows, radius in self._discs_at(impulse)
            if np.isfinite(radius)
        ]
        largest = max(np.abs(r).max(initial=0.0), np.abs(impulse[count + len(self.lower) :]).max(initial=0.0))
        power = max(float(largest * np.abs(self.b).max(initial=0.0)), TINY)
        return float(np.abs([*missed, *turning]).max(initial=0.0)) / power

    def cone_violation(self, impulse: Array) -> float:
        """Return by how much a force leaves its cone, its disc or its box, relative to the largest force."""
        count, end = 3 * len(self.friction), 3 * len(self.friction) + len(self.lower)
        r, others = impulse[:count].reshape(-1, 3), impulse[count:end]
        held = np.where(np.isinf(self.friction), 0.0, self.friction)
        drag = np.where(np.isinf(self.friction), 0.0, np.hypot(r[:, 0], r[:, 1]))
        turning = [np.linalg.norm(impulse[rows]) - radius for rows, radius in self._discs_at(impulse)]
        outside = np.concatenate([-r[:, 2], drag - held * r[:, 2], self.lower - others, others - self.upper, turning])
        return float(max(outside.max(initial=0.0), 0.0) / max(np.abs(impulse).max(initial=0.0), TINY))

    def _discs_at(self, impulse: Array) -> Iterator[tuple[slice, float]]:
        """Yield the rows of each rolling moment and its bound under `impulse`."""
        for moment, rows in zip(self.rolling, self.rolling_slices, strict=True):
            yield rows, float(moment_limit(moment, impulse[3 * int(moment[CONTACT]) + 2]))


class ContactSolution(NamedTuple):
    """What a method found.

    Attributes:
        impulse: (n,) [N s, N m s].
        status: (k + m + d,) 0 open, 1 sticking, 2 sliding; a box row slides at a bound, rolling friction where it
            moves.
        method: the method that gave it.
        iterations: of all methods that were tried.
        residual: relative, see :meth:`ContactProblem.residual`.
        acceptable: largest residual that counts as solved.
    """

    impulse: Array
    status: npt.NDArray[np.int64]
    method: str
    iterations: int
    residual: float
    acceptable: float = OPTIONS.acceptable

    @property
    def converged(self) -> bool:
        """Whether the residual is acceptable."""
        return self.residual <= self.acceptable

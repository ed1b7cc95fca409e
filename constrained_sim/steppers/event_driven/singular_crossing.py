"""Through singular positions: where rows that are independent depend on each other for a moment.

There the path of a mechanism crosses another one (the parallelogram that lies flat may go on as an antiparallelogram).
Its inertia carries it straight on, and the forces ``J^T lam`` stay smooth, though multipliers may go to infinity on
both sides. But they cannot be computed: at a distance x of such a place a violation of the rows by rounding, c, is a
displacement c / x towards the other path, and an acceleration 2 c v^2 / x^3 of it.

So within a singular crossing, x < ``enter_sigma``, combinations of rows that are so small are not enforced: they push
as they did at the entry, and change as they changed there. The velocity that this leaves is of second order in the time
that the crossing takes, and none of it is along the path: behind it the projection onto the rows, in the metric of M,
takes it away and leaves the momentum along the path as it is. The multipliers that are reported of a crossing are those
at its entry.

Where no motion goes on (a cusp), the rows are violated soon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.solvers import System
from constrained_sim.steppers.event_driven.options import EVENTS
from constrained_sim.validation import Array


class SingularCrossing(NamedTuple):
    """The way into a singular position, should the motion lead to one: where rows were independent last.

    Attributes:
        t: time [s].
        lam: (m,) multipliers there [N, N m].
        push: (nv,) their generalised forces.
        rate: (nv,) of these.
        rank: number of independent rows.
        length: (m,) greatest length of each row in the metric of M^-1 so far.
        passed: whether the mechanism is within.
    """

    t: float
    lam: Array
    push: Array
    rate: Array
    rank: int
    length: Array
    passed: bool = False

    def at(self, t: float, lam: Array, push: Array, rows: ScaledRows) -> SingularCrossing:
        """Return the crossing that is moved to the time `t`, nearer to the singular position."""
        rate = (push - self.push) / (t - self.t) if t > self.t else self.rate
        return SingularCrossing(t, lam, push, rate, self.rank, rows.length)


class ScaledRows:
    """The rows of a system relative to the greatest length in the metric of M^-1 that each had, decomposed.

    A row may vanish in a singular position: its own length there would say nothing.

    Attributes:
        system: that they are of.
        length: (m,) that greatest length.
    """

    def __init__(self, system: System, before: Array | float = 0.0) -> None:
        """Decompose the rows of `system`, at least one, that had the lengths `before` (m,)."""
        self.system = system
        self.length = np.maximum(np.linalg.norm(system.whitened_rows, axis=1), before)
        self._unit = np.where(self.length > 0.0, self.length, 1.0)
        self._left, self._values, self._right = np.linalg.svd(
            system.whitened_rows / self._unit[:, None], full_matrices=False
        )

    def rank(self, tolerance: float) -> int:
        """Return how many singular values are not below `tolerance`."""
        return int(np.sum(self._values >= tolerance))

    def within(self, crossing: SingularCrossing, t: float) -> CrossingFactorization:
        """Return the factored system of a crossing at the time `t`."""
        rank, system = self.rank(EVENTS.enter_sigma), self.system
        left, small = self._left[:, :rank], self._right[rank:]
        lam = crossing.lam - left @ (left.T @ (crossing.lam * self._unit)) / self._unit
        push = (system.whiten((crossing.push + (t - crossing.t) * crossing.rate)[None])[0] @ small.T) @ small
        inverse = (left / self._values[:rank]) / self._unit[:, None]
        return CrossingFactorization(system, lam, push @ system.inertia_factor, inverse, self._right[:rank])


class CrossingFactorization:
    """A factored system of which only the rows that are independent within a singular crossing are enforced.

    Attributes:
        lam: (m,) multipliers of the others, as reported.
        push: (nv,) generalised forces of the others.
    """

    def __init__(self, system: System, lam: Array, push: Array, inverse: Array, right: Array) -> None:
        """Take what :class:`ScaledRows` gives: ``J L^-1 = inverse^+ right`` for ``M = L^T L``."""
        self._system, self.lam, self.push = system, lam, push
        self._inverse, self._right = inverse, right

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Solve ``M x - J^T lam = f, J x = b``, see :meth:`Factorization.solve`; lam without those."""
        white = self._system.whiten(np.atleast_2d(f))
        wanted = b @ self._inverse - white @ self._right.T
        x, lam = self._system.unwhiten(white + wanted @ self._right), wanted @ self._inverse.T
        return x.reshape(f.shape), lam.reshape(b.shape)

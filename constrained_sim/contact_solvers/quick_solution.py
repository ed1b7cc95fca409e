"""Result of the compiled contact methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.validation import Array

NAMES = "stick", "newton", "interior_point", "continuation"
BY_STICKING, NEWTON, INTERIOR_POINT, CONTINUATION = range(len(NAMES))


class QuickSolution(NamedTuple):
    """A solution as kernels return it; see :class:`~constrained_sim.contact_solvers.problem.ContactSolution`.

    Attributes:
        impulse: (n,) [N s, N m s].
        status: (k + m + d,) of contacts, box rows and rolling friction.
        method: which of :data:`NAMES` gave it.
        iterations: of all methods that were tried.
        residual: largest entry of the natural map, relative to the impulse scale.
        magnitude: impulse scale [N s].
        solved: whether this solves the problem; else it is where the last method ended.
    """

    impulse: Array
    status: npt.NDArray[np.int64]
    method: int
    iterations: int
    residual: float
    magnitude: float
    solved: bool

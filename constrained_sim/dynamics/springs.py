"""Linear springs in joints with one coordinate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.validation import Array


class SpringTable(NamedTuple):
    """Springs in joints.

    Attributes:
        at_q: (k,) where their joints are in q.
        at_v: (k,) where they are in v.
        stiffness: (k,) [N m/rad, N/m].
        reference: (k,) where they are relaxed [rad, m].
    """

    at_q: npt.NDArray[np.intp]
    at_v: npt.NDArray[np.intp]
    stiffness: Array
    reference: Array


@kernel
def spring_effort(springs, q, nv):
    """Return (nv,) the efforts of a :class:`SpringTable` [N m, N] at q (nq,)."""
    effort = np.zeros(nv)
    for i in range(springs.at_q.shape[0]):
        effort[springs.at_v[i]] = springs.stiffness[i] * (springs.reference[i] - q[springs.at_q[i]])
    return effort


@kernel
def spring_energy(springs, q):
    """Return the energy [J] in a :class:`SpringTable` at q (nq,)."""
    energy = 0.0
    for i in range(springs.at_q.shape[0]):
        energy += 0.5 * springs.stiffness[i] * (q[springs.at_q[i]] - springs.reference[i]) ** 2
    return energy

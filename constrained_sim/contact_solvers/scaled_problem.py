"""A contact problem as kernels take it: arrays by name, and the scale of each row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import SIZE, first_rolling_row, moment_limit, no_rolling
from constrained_sim.linalg.products import largest_entry
from constrained_sim.linalg.rank import TINY
from constrained_sim.validation import Array


class ContactLaws(NamedTuple):
    """What the rows of a contact problem obey.

    Attributes:
        friction: (k,) Coulomb coefficient of each contact; infinite: it sticks while it is active.
        slip: (k, 2) known direction of slip; zero where the row velocity decides.
        lower: (m,) least impulse of the box rows [N s].
        upper: (m,) largest.
        rolling: (d, 6) rolling and torsional friction, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
    """

    friction: Array
    slip: Array
    lower: Array
    upper: Array
    rolling: Array

    @classmethod
    def of_contacts(cls, friction: Array) -> ContactLaws:
        """Return the laws of contacts alone, at velocity level, with these coefficients (k,)."""
        return cls(friction, np.zeros((len(friction), 2)), np.zeros(0), np.zeros(0), no_rolling())


@kernel
def box_bounds(one_sided, bilateral, most):
    """Return the least and the largest impulses (m,) of box rows: one-sided ones, bilateral ones, and dry friction.

    Args:
        one_sided: number of rows whose impulse never pulls.
        bilateral: number of rows whose impulse has no bounds.
        most: (d,) largest impulses of dry joint friction, either way [N m s, N s].
    """
    first = one_sided + bilateral
    lower, upper = np.zeros(first + most.shape[0]), np.full(first + most.shape[0], np.inf)
    lower[one_sided:first] = -np.inf
    lower[first:], upper[first:] = -most, most
    return lower, upper


class ScaledProblem(NamedTuple):
    """Find r with ``u = G r + b`` under these laws.

    See :class:`~constrained_sim.contact_solvers.problem.ContactProblem`.

    Attributes:
        G: (n, n) Delassus matrix.
        b: (n,) row velocities without impulses.
        laws: of the rows.
        p: (n,) scale of each row: an impulse per velocity.
    """

    G: Array
    b: Array
    laws: ContactLaws
    p: Array


@kernel
def scaled_problem(G, b, laws):
    """Return the :class:`ScaledProblem` of G (n, n) and b (n,)."""
    return ScaledProblem(G, b, laws, inverse_diagonal(np.diag(G), laws))


@kernel
def inverse_diagonal(diagonal, laws):
    """Return (n,) the p of each row: one value for both tangential rows; zero rows take the largest of all rows.

    The two rows of rolling friction share one value too. The `diagonal` (n,) is that of the Delassus matrix; what is
    nothing beside another entry of the same contact is rounding.
    """
    friction, _, _, _, rolling = laws
    largest = 0.0
    for value in diagonal:
        largest = max(largest, value)
    p = np.ones(diagonal.shape[0])
    if largest == 0.0:
        return p
    contacts = 3 * friction.shape[0]
    for i in range(contacts, p.shape[0]):
        p[i] = 1.0 / (diagonal[i] if diagonal[i] > 0.0 else largest)
    for c in range(0, contacts, 3):
        tangential, normal = max(diagonal[c], diagonal[c + 1]), diagonal[c + 2]
        least = OPTIONS.accuracy * max(tangential, normal)
        p[c] = p[c + 1] = 1.0 / (tangential if tangential > least else largest)
        p[c + 2] = 1.0 / (normal if normal > least else largest)
    i = first_rolling_row(rolling, p.shape[0])
    for moment in rolling:
        if moment[SIZE] > 1.0:
            p[i] = p[i + 1] = min(p[i], p[i + 1])
        i += int(moment[SIZE])
    return p


@kernel
def stopping_impulse(laws, p, b):
    """Return the largest impulse [N s] that stops a row of velocity b (n,) by itself, p times b; positive.

    Of rows whose force is bounded the nearest that they may have; along a surface no more than friction gives beside
    the largest normal one. A point that moves next to no body, as one near the axis of a hinge, would need any impulse
    to be stopped.
    """
    friction, _, lower, upper, rolling = laws
    contacts, normal = friction.shape[0], TINY
    for c in range(contacts):
        normal = max(normal, p[3 * c + 2] * abs(b[3 * c + 2]))
    for j in range(lower.shape[0]):
        i = 3 * contacts + j
        least, most = max(lower[j], -upper[j]), max(-lower[j], upper[j])
        normal = max(normal, min(max(p[i] * abs(b[i]), least), most))
    largest = normal
    for c in range(contacts):
        along = p[3 * c] * max(abs(b[3 * c]), abs(b[3 * c + 1]))
        largest = max(largest, min(along, friction[c] * normal))
    i = 3 * contacts + lower.shape[0]
    for moment in rolling:
        limit, end = moment_limit(moment, normal), i + int(moment[SIZE])
        for k in range(i, end):
            largest = max(largest, min(p[k] * abs(b[k]), limit))
        i = end
    return largest


@kernel
def impulse_scale(laws, p, b, r):
    """Return the impulse scale [N s]: of r (n,), or that stops a row of velocity b (n,) by itself; positive.

    Those of r count up to ``max_amplification`` times those that stop a row, see :func:`stopping_impulse`.
    """
    stopping = stopping_impulse(laws, p, b)
    return max(stopping, min(largest_entry(r), OPTIONS.max_amplification * stopping))


@kernel
def accuracy_of(laws, p, b, tolerance):
    """Return the error that methods aim at [N s]: the `tolerance`, or rounding of what stops a row by itself.

    Not relative to impulses that were found: where rows nearly depend on each other these may be a million times more.
    """
    return max(OPTIONS.accuracy * stopping_impulse(laws, p, b), tolerance)

"""Statistics of a study's table: which variation matters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, t

from constrained_sim.validation import Array


class Correlation(NamedTuple):
    """How a measure goes with a variation, the others held.

    Attributes:
        value: partial rank correlation, -1 to 1.
        p: how probable one so far from zero is by chance.
    """

    value: float
    p: float


def partial_rank_correlations(values: Array, measure: Array) -> list[Correlation]:
    """Return the partial rank correlation of a measure with each column of `values`.

    Of ranks (means, where values are equal) the parts that are linear in the other columns' ranks are taken away; what
    is left is correlated. (Marino et al., A methodology for performing global uncertainty and sensitivity analysis in
    systems biology, Journal of Theoretical Biology 254, 2008, section 3.2.)

    Args:
        values: (n, d) of the variations.
        measure: (n,).

    Returns:
        d correlations; 0 with p = 1 where one does not vary, or there are too few runs.
    """
    n, d = values.shape
    if n <= d + 2:
        return [Correlation(0.0, 1.0)] * d
    ranks = np.column_stack([rankdata(column) for column in values.T])
    wanted = rankdata(measure)
    found = []
    for i in range(d):
        others = np.column_stack([np.ones(n), np.delete(ranks, i, axis=1)])
        ours, its = _without(others, ranks[:, i]), _without(others, wanted)
        sizes = np.linalg.norm(ours) * np.linalg.norm(its)
        scale = np.linalg.norm(ranks[:, i]) * np.linalg.norm(wanted)
        value = float(np.clip(ours @ its / sizes, -1.0, 1.0)) if sizes > 1e-12 * scale else 0.0
        found.append(Correlation(value, _probability(value, n - d - 1)))
    return found


def _without(others: Array, ranks: Array) -> Array:
    """Return `ranks` (n,) without the part that is linear in `others` (n, k)."""
    return np.asarray(ranks - others @ np.linalg.lstsq(others, ranks, rcond=None)[0])


def _probability(value: float, freedom: int) -> float:
    """Return the probability of a correlation at least so far from zero by chance, with these degrees of freedom."""
    if value == 0.0:
        return 1.0
    if abs(value) >= 1.0:
        return 0.0
    return float(2.0 * t.sf(abs(value) * np.sqrt(freedom / (1.0 - value**2)), freedom))

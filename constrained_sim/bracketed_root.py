"""The root of a function of one variable between two arguments at which its signs differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from constrained_sim.exceptions import NonFiniteMotion
from constrained_sim.linalg.rank import EPSILON


def bracketed_root(
    function: Callable[[float], float], begin: float, end: float, tolerance: float = 4.0 * EPSILON
) -> float:
    """Return where a `function` changes its sign, by Brent's method.

    Args:
        function: its values at both ends differ in sign.
        begin: one argument.
        end: the other one.
        tolerance: of the result, in its unit.

    Raises:
        NonFiniteMotion: a value that is NaN or infinite.
        ValueError: the same sign at both ends, which no caller should ask for.
    """

    def finite(argument: float) -> float:
        value = function(argument)
        if not np.isfinite(value):
            raise NonFiniteMotion("motions between two instants that are not finite")
        return value

    return float(scipy.optimize.brentq(finite, begin, end, xtol=tolerance, rtol=4.0 * EPSILON))

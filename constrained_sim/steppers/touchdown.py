"""The instant of a touchdown: how long a flight has to be that ends there."""

from __future__ import annotations

import numpy as np

from constrained_sim.steppers.options import STEPPING
from constrained_sim.validation import Array


class TouchdownSearch:
    """Finds the length of a flight at whose end the first of several gaps closes, from flights of other lengths.

    The next length is where the parabolas through the gaps at the last lengths meet zero, or their tangents where they
    do not, always for the contact that is due first; and in the middle of what is left where they lead astray: gaps at
    the end are those of another motion for each length, which may bend sharply where a contact opens or begins to slip.

    Attributes:
        h: length of the next flight [s].
    """

    def __init__(self, gaps: Array, fall: Array, rest: float) -> None:
        """Begin with `gaps` (c,) [m, rad] that close at the rates `fall` (c,), and `rest` [s] as the longest flight."""
        self._gaps, self._fall, self._rest = gaps, fall, rest
        self._last = self._before_last = self._early = 0.0
        self._late = np.inf
        self.h = min(float((gaps / fall).min()), rest)

    def is_over(self, gaps: Array) -> bool:
        """Take the `gaps` (c,) at the end of a flight of length h, and choose the next one.

        Returns:
            Whether none is needed: one gap has just closed, or none has closed in the longest flight.
        """
        h, fall = self.h, (self._gaps - gaps) / (self.h - self._last)
        bend = (fall - self._fall) / (h - self._before_last)
        due = h + _times_to_touchdown(gaps, fall, fall + bend * (h - self._last), bend)
        first = int(np.argmin(due))
        if abs(gaps[first]) <= STEPPING.touchdown_gap or (h == self._rest and gaps.min() > 0.0):
            return True
        self._early, self._late = (h, self._late) if gaps.min() > 0.0 else (self._early, h)
        wanted = min(float(due[first]), self._rest)
        if not self._early < wanted < self._late:
            wanted = 0.5 * (self._early + min(self._late, self._rest))
        self._gaps, self._fall = gaps, fall
        self._before_last, self._last, self.h = self._last, h, wanted
        return False


def _times_to_touchdown(gaps: Array, fall: Array, tangent: Array, bend: Array) -> Array:
    """Return (c,) the times after which gaps are closed [s]; infinite of those that do not close.

    On the parabolas ``gaps - tangent t - bend t^2``, or on their tangents where these have no zero; but no gap closes
    more than ``STEPPING.touchdown_bend`` times faster or slower than it has done.

    Args:
        gaps: (c,) now [m, rad].
        fall: (c,) mean rates at which they have closed [m/s, rad/s].
        tangent: (c,) rates at which they close now [m/s, rad/s].
        bend: (c,) half the change of these with time [m/s^2, rad/s^2].
    """
    square = tangent**2 + 4.0 * bend * gaps
    chord = np.where(square > 0.0, 0.5 * (tangent + np.sqrt(np.maximum(square, 0.0))), tangent)
    slope = np.clip(chord, fall / STEPPING.touchdown_bend, STEPPING.touchdown_bend * fall)
    return np.where(slope > 0.0, gaps / np.where(slope > 0.0, slope, 1.0), np.inf)

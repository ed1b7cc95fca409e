"""The law of the shipped leg as its node hears the time: in stamps, which begin at a second."""

from __future__ import annotations

import numpy as np

from constrained_sim.config import Config
from constrained_sim.controllers.leg import LegController, LegState

START = 1_000_000_000
"""[ns] Stamp of the initial state."""


class StampedLeg:
    """Stands. Differences of times are rounded as in the node, so that its efforts are the same to the last bit."""

    def __init__(self, config: Config) -> None:
        """Take no notice of `config`."""
        self._law = LegController(None, "stand")

    def efforts(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return (2,) the efforts of hip and knee [N m] at time `t` [s] since the start, `q` and `v` (3,)."""
        seconds, nanoseconds = divmod(START + round(t * 1e9), 1_000_000_000)
        return np.array(self._law.efforts_of(seconds + 1e-9 * nanoseconds, LegState(q.tolist(), v.tolist())))

"""When the next control period may begin: one class per clock mode."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from constrained_sim.options import NodeOptions


class Pace(ABC):
    """Decides how long to wait before the next control period; waiting is up to the caller."""

    @abstractmethod
    def delay(self, answers: int) -> float:
        """Return the seconds that the next period has to wait: 0 to go on, infinity for an event.

        Args:
            answers: commands that answered the last published state.
        """

    def begun(self) -> bool:
        """Note that a period begins; return whether it is late."""
        return False

    def restart(self) -> None:
        """Start anew after a pause: lost time is not made up for."""
        return None


class Fast(Pace):
    """Never waits."""

    def delay(self, answers: int) -> float:
        """Return 0."""
        return 0.0


class Lockstep(Pace):
    """Waits for the answers to the last published state."""

    def __init__(self, answers: int) -> None:
        """Go on after this many `answers`."""
        self._wanted = answers

    def delay(self, answers: int) -> float:
        """Return 0 when the answers are there."""
        return 0.0 if answers >= self._wanted else float("inf")


class Realtime(Pace):
    """Follows the wall clock times a factor; a long delay is written off, a short one made up for.

    Attributes:
        factor: simulated over wall-clock time.
    """

    MAX_DEBT = 0.1
    """[s] of wall-clock time: a longer delay is written off."""

    def __init__(self, period: float, factor: float) -> None:
        """Begin a period every ``period / factor`` seconds."""
        self._period = period
        self.factor = factor
        self.restart()

    def restart(self) -> None:
        """Begin the next period one period from now."""
        self._due = time.monotonic() + self._period / self.factor
        self._behind = 0.0

    def delay(self, answers: int) -> float:
        """Return the time until the next period is due."""
        return max(0.0, self._due - time.monotonic())

    def begun(self) -> bool:
        """Note that a period begins; it is late if it is more than a period behind, and more so than the one before.

        So a delay counts once, and the periods that make up for it, which begin behind time too, do not.
        """
        now = time.monotonic()
        behind, before = now - self._due, self._behind
        wall_period = self._period / self.factor
        is_written_off = behind > self.MAX_DEBT
        self._due = (now if is_written_off else self._due) + wall_period
        self._behind = 0.0 if is_written_off else behind
        return behind > max(wall_period, before)


def make_pace(options: NodeOptions, period: float) -> Pace:
    """Return the pace of ``clock_mode`` for control periods of `period` [s]."""
    if options.clock_mode == "realtime":
        return Realtime(period, options.real_time_factor)
    return Fast() if options.clock_mode == "fast" else Lockstep(options.lockstep_commands)

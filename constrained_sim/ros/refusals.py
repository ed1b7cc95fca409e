"""The log of refused commands: a controller may send the same mistake in every period, and another one beside it."""

from __future__ import annotations

from rclpy.impl.rcutils_logger import RcutilsLogger

REASONS = 10
"""Reasons that are told of at once, before :meth:`Refusals.tell_more` is called."""


class Refusals:
    """Tells of each reason at once, and later how many more refusals there were."""

    def __init__(self, logger: RcutilsLogger) -> None:
        """Have told of nothing yet."""
        self._logger = logger
        self._told: set[str] = set()
        self._more, self._last = 0, ""

    def tell(self, reason: str) -> None:
        """Log a refusal for a new reason; count one for a reason that was told."""
        if reason in self._told or len(self._told) >= REASONS:
            self._more, self._last = self._more + 1, reason
            return
        self._told.add(reason)
        self._logger.warning(f"refused: {reason}")

    def tell_more(self) -> None:
        """Log how many were only counted since the last call; where there were none, reasons are new again."""
        if not self._more:
            self._told.clear()
            return
        self._logger.warning(f"refused {self._more} more, the last one: {self._last}")
        self._more = 0

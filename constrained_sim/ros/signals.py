"""The end of a process at SIGINT or SIGTERM, without an exception.

An exception out of a signal's handler strikes wherever the process happens to be. Amidst a kernel that is being loaded,
or a call of rclpy, it becomes another one, is swallowed, or crashes the process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def on_end(act: Callable[[], None]) -> None:
    """Call `act` at SIGINT and SIGTERM, between two instructions of the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: act())


def leave() -> None:
    """End the process at once with exit code 0: where nothing is left to be finished."""
    os._exit(0)

"""Beginning and end of a process that is a node.

Signals raise no exception here: it would strike wherever the process happens to be, and amidst a kernel that is being
loaded, or a call of rclpy, become another one, be swallowed, or crash the process.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Sequence

import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.signals import SignalHandlerOptions

from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.discovery import discovery_settings

COMPILING = "compiling the kernels, once: services answer when this is done"
"""What the simulator logs where its kernels are not compiled yet; the monitor shows it."""

SILENCE = 10.0
"""[s] at least between two lines about kernels that are compiled while the simulation runs."""

REFUSED_BY_ROS = rclpy_implementation.RCLError, rclpy_implementation.UnknownROSArgsError
"""How ROS says that it does not take the arguments that are meant for it."""


class LateCompilation:
    """Tells that the simulation stands still while kernels are compiled, as after the choice of another stepper."""

    def __init__(self, say: Callable[[str], object]) -> None:
        """Tell by `say`, nothing yet."""
        self._say, self._said = say, -math.inf

    def __call__(self, done: int, total: int, name: str) -> None:
        """Tell that so many kernels are `done`, of a `total`, and which is next; at most one line in a while."""
        if name and time.monotonic() - self._said >= SILENCE:
            self._said = time.monotonic()
            self._say(
                f"compiling kernels, once on this machine: {done + 1} of {total} ({name}); until this is done the "
                "simulation stands still, and services do not answer"
            )


def begin(arguments: Sequence[str]) -> None:
    """Start ROS; SIGINT and SIGTERM end the process at once until :func:`on_end` says what they do.

    They leave the context as it is: a node can publish to the end of what it is doing.

    Raises:
        ConfigError: ROS refuses the `arguments`.
    """
    on_end(leave)
    os.environ.update(discovery_settings())
    try:
        rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    except REFUSED_BY_ROS as error:
        raise ConfigError(f"arguments that ROS does not take: {' '.join(str(error).split())}") from error


def on_end(act: Callable[[], None]) -> None:
    """Call `act` at SIGINT and SIGTERM, between two instructions of the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: act())


def finish() -> None:
    """End ROS; SIGINT and SIGTERM have no effect any more, for under ros2 launch Ctrl-C comes twice."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    rclpy.try_shutdown()


def leave(code: int = 0) -> None:
    """End the process at once with the exit `code`: where nothing is left to be finished."""
    os._exit(code)

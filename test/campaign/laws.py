"""Controllers and measures of the studies in the tests."""

import ctypes
import os
import signal
from pathlib import Path

import numba
import numpy as np


class Hold:
    """Springs about the initial posture, with gains that a study may vary."""

    def __init__(self, config, stiffness=60.0, damping=1.5):
        self.goal, self.stiffness, self.damping = config.q[1:], stiffness, damping

    def efforts(self, t, q, v):
        """Return the efforts of hip and knee."""
        return self.stiffness * (self.goal - q[1:]) - self.damping * v[1:]


class Misbehaves(Hold):
    """Holds, unless its trouble says otherwise."""

    def __init__(self, config, trouble="none"):
        super().__init__(config)
        self.trouble = trouble

    def efforts(self, t, q, v):
        """Return the efforts of hip and knee, if at all."""
        if t > 0.01 and self.trouble != "none":
            TROUBLES[self.trouble]()
        return super().efforts(t, q, v)


class KilledAtFirst(Hold):
    """Holds in a run that is begun once more than its process is killed in it, as if from outside."""

    def __init__(self, config, count, times, damping):
        super().__init__(config, damping=damping)
        self.count, self.times = Path(count), times

    def efforts(self, t, q, v):
        """Return the efforts of hip and knee."""
        if t > 0.01 and (begun := len(self.count.read_bytes())) < self.times:
            self.count.write_bytes(bytes(begun + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().efforts(t, q, v)


def fail():
    """Raise."""
    raise RuntimeError("the knee is on fire")


@numba.njit
def hang():
    """Never return to Python."""
    x = 0.0
    while x >= 0.0:
        x = (x + 1.0) % 7.0
    return x


def devour(kept=[]):  # noqa: B006
    """Hold more and more memory."""
    while True:
        kept.append(np.ones(2_000_000))


def crash():
    """Read where there is nothing."""
    ctypes.string_at(0)


TROUBLES = {"fails": fail, "hangs": hang, "devours": devour, "crashes": crash}


def process(trajectory):
    """Return the number of the process that did the run."""
    return os.getpid()


def lowest(trajectory):
    """Return the least height of the slider."""
    return trajectory.q[:, 0].min()

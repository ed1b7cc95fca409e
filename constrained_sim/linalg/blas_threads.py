"""The linear algebra library's threads: how they share a product decides its last bits."""

from __future__ import annotations

import functools
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from constrained_sim.exceptions import ThreadsNotBounded
from constrained_sim.user_warnings import warn

try:
    from threadpoolctl import ThreadpoolController
except ImportError:  # rosdep has no rule for it
    ThreadpoolController = None

VARIABLE = "OPENBLAS_NUM_THREADS"
"""Environment variable that bounds the threads of OpenBLAS; it is read when NumPy is loaded."""


@functools.cache
def _controller() -> Any:
    """Return what knows the BLAS libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[object]:
    """Bound BLAS to one thread within a ``with`` block; or from the call on, where the result is not used so.

    The matrices of a robot are small: threads gain nothing, and the bits of a large product depend on their number.
    :meth:`~constrained_sim.simulator.Simulator.run` and the node do this themselves. To ask for it takes longer than a
    step: around a loop of single steps it is the caller's choice. Without threadpoolctl it is up to the environment
    variable, and a warning says so where that is not 1.
    """
    if ThreadpoolController is None:
        if os.environ.get(VARIABLE) != "1":
            warn(ThreadsNotBounded(VARIABLE))
        return nullcontext()
    limits: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limits

"""The linear algebra library's threads: how they share a product decides its last bits."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


@functools.cache
def _controller() -> ThreadpoolController:
    """Return what knows the BLAS libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[object]:
    """Bound BLAS to one thread within a ``with`` block; or from the call on, where the result is not used so.

    The matrices of a robot are small: threads gain nothing, and the bits of a large product depend on their number.
    :meth:`~constrained_sim.simulator.Simulator.run` and the node do this themselves. To ask for it takes longer than a
    step: around a loop of single steps it is the caller's choice.
    """
    limits: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limits

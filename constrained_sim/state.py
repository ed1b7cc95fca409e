"""The state of a simulated robot."""

from __future__ import annotations

from typing import NamedTuple

from constrained_sim.validation import Array


class State(NamedTuple):
    """Time, configuration and velocity; the arrays are read-only.

    Attributes:
        t: time [s].
        q: (nq,) configuration in Pinocchio's conventions [rad, m; free-flyer: position and quaternion xyzw].
        v: (nv,) velocity [rad/s, m/s; free-flyer: in the body frame].
    """

    t: float
    q: Array
    v: Array

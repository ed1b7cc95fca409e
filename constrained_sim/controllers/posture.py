"""Springs and dampers in the joints that hold a posture."""

from __future__ import annotations

import numpy as np

from constrained_sim.joints import SingleJoint
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


class Posture:
    """Holds actuated joints where a configuration has them, by proportional and derivative feedback.

    ``tau = feed_forward + stiffness (q_0 - q) - damping v``, joint by joint.
    """

    def __init__(
        self,
        robot: Robot,
        q: Array,
        stiffness: Array | float,
        damping: Array | float,
        feed_forward: Array | float = 0.0,
    ) -> None:
        """Hold the posture that `robot` has at `q`.

        Args:
            robot: the robot.
            q: (nq,) configuration.
            stiffness: (nu,) or for all joints [N m/rad, N/m].
            damping: (nu,) or for all joints [N m s/rad, N s/m].
            feed_forward: (nu,) or for all joints [N m, N].

        Raises:
            UnknownName: an actuated joint with several degrees of freedom.
        """
        joints = [SingleJoint.of(robot, name) for name in robot.actuated_joints]
        self._at_q = np.array([joint.q for joint in joints], dtype=np.intp)
        self._at_v = np.array([joint.v for joint in joints], dtype=np.intp)
        self._goal = q[self._at_q]
        self._stiffness, self._damping, self._feed_forward = stiffness, damping, feed_forward

    def efforts(self, q: Array, v: Array) -> Array:
        """Return (nu,) the efforts [N m, N] at `q` (nq,) and `v` (nv,)."""
        error = self._goal - q[self._at_q]
        return np.asarray(self._feed_forward + self._stiffness * error - self._damping * v[self._at_v])

"""The topics /tf and /tf_static."""

from __future__ import annotations

from constrained_sim.config import NodeOptions
from constrained_sim.msg import Transforms
from constrained_sim.robot import Robot
from constrained_sim.ros.topics import LATCHED, Topics
from constrained_sim.ros.transforms import LinkTransforms
from constrained_sim.ros.world import LAST_STAMP
from constrained_sim.validation import Array


class TransformTopics:
    """Publishes what the option ``tf`` asks for.

    ``links``: every link in the one that carries it; ``base``: where the robot is in the world, for those who let
    robot_state_publisher do the rest. A floating base comes in every period, as odom does; links behind joints at
    ``tf_rate``; what never moves once, latched.
    """

    def __init__(self, topics: Topics, robot: Robot, options: NodeOptions) -> None:
        """Open what is needed."""
        self._transforms = LinkTransforms(robot, options.world_frame, options.frame_prefix)
        self._links, self._period = options.tf == "links", round(min(1e9 / options.tf_rate, LAST_STAMP))
        self._next = 0
        moves = options.tf != "none" and (robot.floating_base or self._links)
        self._moving = topics.open(Transforms, "/tf") if moves else None
        self._fixed = topics.open(Transforms, "/tf_static", LATCHED) if options.tf != "none" else None

    def start(self, q: Array, stamp: int) -> None:
        """Publish what never moves, at the configuration `q` and `stamp` [ns]."""
        if self._fixed is not None:
            self._fixed.offer(lambda: self._transforms.fixed(q, stamp, mounts_only=not self._links), stamp)

    def restart(self) -> None:
        """Begin anew after a reset, which may have set the time back."""
        self._next = 0

    def send(self, q: Array, stamp: int) -> None:
        """Publish what moves, and is due at `stamp` [ns]."""
        if self._moving is None:
            return
        self._moving.offer(lambda: self._transforms.base(q, stamp), stamp)
        if self._links and stamp >= self._next:
            self._next = stamp + self._period
            self._moving.offer(lambda: self._transforms.moving(q, stamp), stamp)

    def greet(self, q: Array, stamp: int) -> None:
        """Publish what moves once more if somebody has begun to listen."""
        if self._moving is None or not self._moving.has_newcomers:
            return
        for data in (self._transforms.base(q, stamp), self._transforms.moving(q, stamp) if self._links else None):
            if data is not None:
                self._moving.repeat(data)

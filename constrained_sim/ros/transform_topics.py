"""The topics /tf and /tf_static."""

from __future__ import annotations

from constrained_sim.msg import Transforms
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.options import NodeOptions
from constrained_sim.robot import Robot
from constrained_sim.ros.topics import LATCHED, Topics
from constrained_sim.ros.transforms import LinkTransforms
from constrained_sim.ros.world import LAST_STAMP
from constrained_sim.validation import Array


class TransformTopics:
    """Publishes what the option ``tf`` asks for.

    ``links``: every link in the one that carries it; ``base``: where the robot is in the world, for those who let
    robot_state_publisher do the rest; with both, all links of objects. A floating base comes in every period, as odom
    does; links behind joints at ``tf_rate``; what never moves once, latched.
    """

    def __init__(self, topics: Topics, robot: Robot, options: NodeOptions) -> None:
        """Open what is needed."""
        self._options, self._period = options, round(min(NANOSECONDS / options.tf_rate, LAST_STAMP))
        self._next = 0
        self._moving = topics.open(Transforms, "/tf") if options.tf != "none" else None
        self._fixed = topics.open(Transforms, "/tf_static", LATCHED) if options.tf != "none" else None
        self.follow(robot)

    def follow(self, robot: Robot) -> None:
        """Publish from now on what is beside `robot` now."""
        self._transforms = LinkTransforms(robot, self._options.frames, self._options.tf == "links")

    def start(self, q: Array, stamp: int) -> None:
        """Publish what never moves, at the configuration `q` and `stamp` [ns]."""
        if self._fixed is not None:
            self._fixed.offer(lambda: self._transforms.fixed(q, stamp), stamp)

    def restart(self) -> None:
        """Begin anew after a reset, which may have set the time back."""
        self._next = 0

    def send(self, q: Array, stamp: int) -> None:
        """Publish what moves, and is due at `stamp` [ns]."""
        if self._moving is None:
            return
        self._moving.offer(lambda: self._transforms.base(q, stamp), stamp)
        if stamp >= self._next:
            self._next = stamp + self._period
            self._moving.offer(lambda: self._transforms.moving(q, stamp), stamp)

    def greet(self, q: Array, stamp: int) -> None:
        """Publish what moves once more if somebody has begun to listen."""
        if self._moving is None or not self._moving.has_newcomers:
            return
        for data in (self._transforms.base(q, stamp), self._transforms.moving(q, stamp)):
            if data is not None:
                self._moving.repeat(data)

"""Joint commands and external wrenches: checked where they enter, merged as they arrive, acting at boundaries."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.ros.command_reader import CommandReader
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.declarations import wrench_from_topic
from constrained_sim.ros.hardware_link import HardwareLink
from constrained_sim.ros.inbox import Inbox
from constrained_sim.ros.message_json import commands_to_plain, to_json
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.refusals import Refusals
from constrained_sim.ros.world import World
from constrained_sim.servo import JointCommand
from constrained_sim.validation import finite_array

DEPTH = 100

STRAYS = 3
"""Commands of other states since a reset from which on a warning tells of them: a reset leaves one or two behind."""

WARN_PERIOD = 5.0
"""[s] of wall-clock time between two of these warnings."""


class Commands:
    """The subscriptions of the node, and, in lockstep, what a controller manager sends.

    Attributes:
        any_stamp: take commands of any stamp: lockstep goes on without its controller, whose answers come late.
        inbox: where they arrive; taking from it merges them.
        hardware: where those of the hardware plugin for ros2_control arrive.
        refusals: what the log is told of those with something wrong in them.
    """

    def __init__(self, node: Node, world: World, joints: JointNames, outputs: Outputs) -> None:
        """Subscribe."""
        options = world.config.node
        self._logger, self._world, self._joints, self._outputs = node.get_logger(), world, joints, outputs
        self._reader = CommandReader(joints, options.strict_commands, self._warn_of_ignored)
        self._ignored: set[str] = set()
        self._match_stamps = options.clock_mode == "lockstep" and options.lockstep_match == "stamp"
        self._all = list(joints.drives(joints.order).values())
        self._received: Counter[frozenset[int]] = Counter()
        self._repeated: int | None = None
        self._warned = self._warned_of_limits = -math.inf
        robot = world.config.robot
        self._names = [robot.velocity_names[i] for i in robot.actuation]
        self.any_stamp = False
        self.refusals = Refusals(self._logger)
        qos = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy[options.command_reliability.upper()])
        self.inbox = Inbox(node)
        self.inbox.subscribe(JointState, "joint_commands", self._by_name, qos, serialised=True)
        self.inbox.subscribe(Float64MultiArray, "~/commands", self._in_order, qos)
        self.inbox.subscribe(WrenchStamped, "~/external_wrench", self._push, qos)
        self.hardware = HardwareLink(node, world, joints, self._merge)
        if options.clock_mode == "lockstep":
            self.hardware.listen()

    def take_all(self) -> None:
        """Take everything that has arrived."""
        self.inbox.take_all()
        self.hardware.wait()

    @property
    def answers(self) -> int:
        """Number of controllers that must have answered the last published state (lockstep).

        Each may answer it as often as it was published; two of the same joints are told apart once both have answered.
        """
        times = self._outputs.states.publications
        return sum(-(-count // times) for count in self._received.values())

    def expect_answers(self) -> None:
        """Count answers anew: a state is about to be published.

        Where the one before was published more than once, a controller answers it once more before it comes to this
        one: nothing is lost by that, and it does not count as dropped.
        """
        self._repeated = self._world.stamp if self._outputs.states.publications > 1 else None
        self._received.clear()

    @property
    def publishers(self) -> int:
        """Number of publishers of commands, and of controller managers."""
        return sum(self.inbox.publishers[:2]) + self.hardware.is_connected

    def _by_name(self, data: bytes) -> None:
        try:
            stamp, commands = self._reader.read(data)
        except ConstrainedSimError as error:
            self._refuse(error)
            return
        if self._match_stamps and not self.any_stamp and stamp not in (0, self._world.stamp):
            if stamp != self._repeated:
                self._drop(stamp)
            return
        self._merge(commands)

    def _in_order(self, message: Float64MultiArray) -> None:
        order = self._joints.order
        try:
            joints = ", ".join(order) or "no joint, since none is actuated,"
            efforts = finite_array(f"efforts of {joints} in ~/commands", list(message.data), (len(order),))
        except ConstrainedSimError as error:
            self._refuse(error)
            return
        self._merge(dict(zip(self._all, map(JointCommand, efforts.tolist()), strict=True)))

    def _merge(self, commands: Mapping[int, JointCommand]) -> None:
        try:
            self._world.command(commands)
        except ConstrainedSimError as error:
            self._refuse(error)
            return
        self._outputs.record_input("commands", commands_to_plain(commands))
        self._received[frozenset(commands)] += 1
        self._warn_of_limits(commands)

    def _push(self, message: WrenchStamped) -> None:
        try:
            self._world.push(wrench_from_topic(message, self._world.link_of))
        except ConstrainedSimError as error:
            self._refuse(error)
            return
        self._outputs.record_input("external_wrench", to_json(message))

    def _warn_of_ignored(self, names: list[str]) -> None:
        """Say once of each joint that it takes no commands."""
        news = [name for name in names if name not in self._ignored]
        self._ignored.update(news)
        if news:
            actuated = ", ".join(self._joints.actuated) or "none"
            text = f"commands for {', '.join(news)} have no effect, actuated are: {actuated}"
            self._logger.warning(f"{text} (strict_commands: true refuses such commands)")

    def _warn_of_limits(self, commands: Mapping[int, JointCommand]) -> None:
        """Say now and then that positions are commanded which their joints cannot have; NaN stands for none."""
        asked = {self._names[index]: command.position for index, command in commands.items()}
        beyond = self._world.config.beyond_limits(asked)
        if beyond is not None and time.monotonic() - self._warned_of_limits >= WARN_PERIOD:
            self._warned_of_limits = time.monotonic()
            self._logger.warning(f"joint_commands: {beyond}")

    def _drop(self, stamp: int) -> None:
        """Count a command that answers another state than the one that waits, and say now and then what it lacks."""
        self._outputs.counters.commands_dropped += 1
        if self._outputs.counters.commands_dropped < STRAYS or time.monotonic() - self._warned < WARN_PERIOD:
            return
        self._warned = time.monotonic()
        wanted, publishers = self._world.config.node.lockstep_commands, self.publishers
        several = f"; publishers of commands: {publishers}, lockstep_commands: {wanted}" * (publishers > wanted)
        self._logger.warning(
            f"lockstep: dropped a command with the stamp {_seconds(stamp)}, since the state that waits has "
            f"{_seconds(self._world.stamp)}: an answer carries header.stamp of the state{several}"
        )

    def _refuse(self, error: ConstrainedSimError) -> None:
        self._outputs.counters.commands_refused += 1
        self.refusals.tell(str(error))


def _seconds(stamp: int) -> str:
    """Return a stamp [ns] in seconds."""
    return f"{stamp // NANOSECONDS}.{stamp % NANOSECONDS:09d}"

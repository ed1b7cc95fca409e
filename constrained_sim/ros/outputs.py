"""Everything the node publishes, in the order in which a period publishes it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Header, String

from constrained_sim import msg
from constrained_sim.descriptions.urdf.writer import urdf_of
from constrained_sim.impact import Impact
from constrained_sim.ros.clock_owner import CLOCK
from constrained_sim.ros.conversions import JointNames, to_time
from constrained_sim.ros.health import Counters, Health, diagnostics_message, status_message
from constrained_sim.ros.impact_message import impact_message
from constrained_sim.ros.period_messages import PeriodMessages
from constrained_sim.ros.sensors import SensorTopics
from constrained_sim.ros.state_topics import StateTopics
from constrained_sim.ros.topics import LATCHED, Topics
from constrained_sim.ros.world import Period, World
from constrained_sim.state import State


class Outputs:
    """The topics of a simulation.

    Attributes:
        states: joints, base, transforms and forces.
        counters: of what went wrong since the last reset.
    """

    def __init__(self, topics: Topics, world: World, joints: JointNames, publish_clock: bool = True) -> None:
        """Open the topics; without `publish_clock` the clock is only recorded."""
        options, robot = world.config.node, world.config.robot
        self._topics, self._world, self._joints, self._options = topics, world, joints, options
        self.restart_counters()
        self._messages = PeriodMessages(robot, joints, options.frames, world.period_ns)
        self._clock = topics.open(Clock, CLOCK, publish=publish_clock)
        self.states = StateTopics(topics, world, self._messages)
        self._impacts = topics.open(msg.Impact, "impacts")
        self._status = topics.open(msg.SimulationStatus, "~/status")
        self._diagnostics = topics.open(DiagnosticArray, "/diagnostics")
        self._description = topics.open(String, "robot_description", LATCHED)
        self._sensors = SensorTopics(topics, world.config)
        self.follow_contacts()
        self._input = msg.Input(header=Header(frame_id=options.world_frame))

    def restart_counters(self) -> None:
        """Count anew after a reset."""
        self._counters, self._lost_before = Counters(), self._topics.lost

    @property
    def counters(self) -> Counters:
        """What went wrong since the last reset."""
        self._counters.records_lost = self._topics.lost - self._lost_before
        return self._counters

    def leave_clock(self) -> None:
        """Publish the clock no longer."""
        self._clock.mute()
        self._topics.close(CLOCK)

    def check_contact(self, name: str) -> None:
        """Check the name of a contact that is to be added.

        Raises:
            InvalidValue: it cannot be a topic, or is the topic of another one.
        """
        self.states.wrenches.check(name, self._world.contacts)

    def follow_contacts(self) -> None:
        """Open the topics of contacts that were declared, close those of contacts that were removed.

        Raises:
            InvalidValue: a name that :meth:`check_contact` refuses.
        """
        self.states.wrenches.follow(self._world.contacts)

    def follow_objects(self) -> None:
        """Publish at once what is beside the robot now."""
        self.states.follow_objects()

    # -- the beginning, and periods

    def start(self, configuration: Mapping[str, Any]) -> None:
        """Publish what precedes the first period: the clock, the description, the initial state.

        Args:
            configuration: to be recorded, for a replay.
        """
        self._messages.stamp(self._world.stamp)
        self._send_clock()
        self.record_input("configuration", configuration)
        robot = self._world.config.robot.without_objects
        self._description.send(String(data=robot.urdf or urdf_of(robot)), self._world.stamp)
        self.states.start()
        self.send_present_state()

    def send_present_state(self, moved: Collection[str] | None = None) -> None:
        """Publish the state as it is between periods: at the start and after a reset; nothing has acted yet.

        Args:
            moved: joints that were put elsewhere, whose angles are those nearest to zero; of the others those nearest
                to the last. None: all.
        """
        self._joints.forget(moved)
        self._sensors.restart()
        self.states.send_initial()
        self._send_clock()

    def send_change(self, impact: Impact | None, before: State) -> None:
        """Publish an `impact` between periods, and the state where it is no longer that of `before`."""
        if impact is not None:
            self.send_impacts(((self._world.stamp, impact),))
        now = self._world.sim.state
        if not (np.array_equal(now.q, before.q) and np.array_equal(now.v, before.v)):
            self.states.send_changed()

    def send_period(self, period: Period) -> None:
        """Publish the results of a control period; the clock comes last."""
        self.send_impacts(period.impacts)  # they were earlier than the end of the period
        self.states.send_period(period)
        self.states.send_markers(period)
        self._sensors.send(period)
        self._send_clock()

    def send_impacts(self, impacts: tuple[tuple[int, Impact], ...]) -> None:
        """Publish impacts with their stamps [ns]."""
        for stamp, impact in impacts:
            header = Header(stamp=to_time(stamp), frame_id=self._options.world_frame)
            message = impact_message(header, impact, self._world.config.robot, self._options.frames)
            self._impacts.send(message, stamp)

    def _send_clock(self) -> None:
        self._clock.send_bytes(self._messages.clock(), self._world.stamp)

    # -- between periods

    def publish_latched(self) -> None:
        """Publish once more what is true, all but the status, for those who have begun to listen."""
        self.states.greet()
        self._sensors.greet()
        self._clock.greet(self._messages.clock)

    @property
    def status_has_newcomers(self) -> bool:
        """Whether somebody has begun to listen to the status."""
        return self._status.has_newcomers

    def send_status(self, health: Health) -> None:
        """Publish the status; residuals start anew."""
        self._status.send(status_message(self._world, health, self.counters, self._joints.actuated), self._world.stamp)

    def send_diagnostics(self, health: Health) -> None:
        """Publish how the simulation is doing, for the ROS diagnostics tools."""
        self._diagnostics.send(diagnostics_message(self._world, health, self.counters), self._world.stamp)

    # -- the recording

    def flush(self) -> None:
        """Let what was published be recorded: between periods, however long they are."""
        self._topics.flush()

    def recorder_has_room(self, timeout: float) -> bool:
        """Return whether the simulation may go on; where the recorder holds it up, wait up to `timeout` [s]."""
        return self._topics.has_room(timeout)

    @property
    def recording_problem(self) -> str:
        """What keeps messages from being recorded; empty: nothing does."""
        return self._topics.problem

    @property
    def boundary(self) -> tuple[int, int]:
        """Stamp [ns] and number of physics steps since reset, now."""
        return self._world.stamp, self._world.sim.steps

    def record_input(
        self, name: str, content: Mapping[Any, Any] | str, boundary: tuple[int, int] | None = None
    ) -> None:
        """Record something that takes effect at `boundary`, None: now.

        Args:
            name: of the input.
            content: JSON, or values by name.
            boundary: see :attr:`boundary`.
        """
        if not self._topics.records:
            return
        stamp, step = boundary or self.boundary
        message = self._input  # one for all: to make a message takes as long as to write it
        message.header.stamp = to_time(stamp)
        message.step, message.name = step, name
        message.content = content if isinstance(content, str) else json.dumps(content)
        self._topics.record(msg.Input, "~/inputs", message, stamp)

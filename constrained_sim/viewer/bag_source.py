"""A rosbag2 recording as a source; needs no ROS."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.bag_reader import BagReader, bag_reader
from constrained_sim.config import Config
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import ConfigError
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.plots.from_bag import IMPULSES, LOSSES, WRENCH, WRENCHES
from constrained_sim.recorded_configuration import RecordedConfiguration, check_joints
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer import message_frames as messages
from constrained_sim.viewer.declared_contacts import DeclaredContacts
from constrained_sim.viewer.frame import Frame, ShownImpact
from constrained_sim.viewer.recording_panel import Recording
from constrained_sim.viewer.source import World, events_of

MOST_PICTURES = 20_000
"""Instants of a recording that are kept: 11 minutes at 30 pictures a second, 40 MB for a quadruped."""

FRAMES = (
    messages.STATES, messages.BASE, messages.MULTI_DOF, messages.CONTACTS, messages.CONSTRAINTS, messages.STATUS,
    messages.OBJECTS, messages.DESCRIPTIONS,
)  # fmt: skip


@dataclass
class _Column:
    """The messages of one type, in the order of time.

    Attributes:
        stamps: [ns].
        data: serialised.
    """

    stamps: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)

    def add(self, stamp: int, data: Any, spacing: int) -> None:
        """Keep a message, unless the last one was less than `spacing` [ns] ago."""
        if not self.stamps or stamp - self.stamps[-1] >= spacing:
            self.stamps.append(stamp)
            self.data.append(bytes(data))


class BagSource(Recording):
    """Shows what the node recorded, or a rosbag2 recorder heard."""

    def __init__(self, directory: Path, config: Config | None = None) -> None:
        """Read the rosbag2 `directory`; `config` is what it was recorded of, None: what it says itself.

        Raises:
            ConfigError: no recording, a damaged one, or one that does not tell of a robot.
            InvalidValue: a `config` of another robot.
            MissingLibrary: the one that reads bags.
        """
        self._columns: dict[str, _Column] = defaultdict(_Column)
        self._forces: dict[str, _Column] = defaultdict(_Column)
        self._impacts: list[ShownImpact] = []
        self._told = RecordedConfiguration()
        with bag_reader(directory) as reader:
            self._deserialize = reader.deserialize
            self._read(reader)
        if not self._columns[messages.STATES].stamps:
            raise ConfigError(f"{str(directory)!r} holds no joint states")
        self._told.has_base = messages.BASE in self._columns
        if config is not None:
            first = self._deserialize(self._columns[messages.STATES].data[0], messages.STATES)
            check_joints(config.robot, first.name)
        config = config or self._told.config()
        self.world = World.configured(config) if config is not None else World(self._recorded_robot(directory))
        objects = () if config is None else config.robot.objects
        self._frames = messages.MessageFrames(self.world.robot, objects)
        constraints = () if config is None else config.constraints
        self._contacts = DeclaredContacts(self.world.robot, constraints, self._forces)
        self.times: Array = np.array([seconds_of(stamp) for stamp in self._columns[messages.STATES].stamps])
        self.events = events_of(self._impacts)
        self.time = self.begin

    def _read(self, reader: BagReader) -> None:
        """Keep the messages that can be shown, thinned out where there are very many."""
        spacing = (reader.end_time - reader.start_time) // MOST_PICTURES
        for connection, stamp, data in reader.messages():
            kind, topic = connection.msgtype, connection.topic
            if kind in FRAMES and not topic.endswith("joint_commands"):
                self._columns[kind].add(stamp, data, spacing if kind != messages.DESCRIPTIONS else 0)
            elif kind == WRENCH and topic.startswith(WRENCHES):
                self._forces[topic.removeprefix(WRENCHES)].add(stamp, data, spacing)
            elif kind == messages.IMPACT:
                self._impacts.append(messages.impact_of(reader.deserialize(data, kind), seconds_of(stamp)))
            elif topic == LOSSES:
                self._impacts.append(ShownImpact(seconds_of(stamp), reader.deserialize(data, kind).data))
            elif topic.startswith(IMPULSES) and self._impacts:
                last = self._impacts[-1]  # its energy was written before its impulses
                self._impacts[-1] = replace(last, contacts=(*last.contacts, topic.removeprefix(IMPULSES)))
            elif RecordedConfiguration.is_told_by(connection.topic, kind):
                self._told.add(connection.topic, kind, reader.deserialize(data, kind))

    def _recorded_robot(self, directory: Path) -> Robot:
        """Return the robot that the recording describes.

        Raises:
            ConfigError: it describes none.
        """
        robot = self._told.robot()
        if robot is None:
            raise ConfigError(f"{str(directory)!r} does not tell which robot it is of, allowed: --robot PARAMETERS")
        return robot

    def frame_at(self, index: int) -> Frame | None:
        """Return what the messages up to ``times[index]`` tell."""
        stamp = self._columns[messages.STATES].stamps[index]
        newest = {kind: self._newest(self._columns[kind], kind, stamp) for kind in FRAMES}
        told = {kind: found for kind, found in newest.items() if found is not None}
        frame = self._frames.frame(seconds_of(stamp), told, self._impacts)
        if frame is None or messages.CONTACTS in told:
            return frame
        wrenches = {name: self._newest(column, WRENCH, stamp) for name, column in self._forces.items()}
        forces = {name: messages.xyz(wrench.wrench.force) for name, wrench in wrenches.items() if wrench is not None}
        dynamics = kinematics_at(self.world.robot, frame.q)
        return replace(frame, contacts=self._contacts.shown(dynamics, forces))

    def _newest(self, column: _Column, kind: str, stamp: int) -> Any:
        """Return the last message of a column that is not after `stamp` [ns]; None: there is none."""
        index = int(np.searchsorted(column.stamps, stamp, side="right")) - 1
        return self._deserialize(column.data[index], kind) if index >= 0 else None

"""A rosbag2 recording as a source; needs no ROS."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional
from constrained_sim.recorded_configuration import RecordedConfiguration
from constrained_sim.validation import Array
from constrained_sim.viewer import message_frames as messages
from constrained_sim.viewer.frame import Frame, ShownImpact
from constrained_sim.viewer.recording_panel import Recording
from constrained_sim.viewer.source import World, events_of

MOST_PICTURES = 20_000
"""Instants of a recording that are kept: 11 minutes at 30 pictures a second, 40 MB for a quadruped."""

FRAMES = messages.STATES, messages.BASE, messages.MULTI_DOF, messages.CONTACTS, messages.CONSTRAINTS, messages.STATUS


@dataclass
class _Column:
    """The messages of one type, in the order of time.

    Attributes:
        stamps: [ns].
        data: serialised.
    """

    stamps: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)


class BagSource(Recording):
    """Shows what the node recorded, or a rosbag2 recorder heard."""

    def __init__(self, directory: Path, world: World | None = None) -> None:
        """Read the rosbag2 `directory`; its `world` is the one that it was recorded in, unless one is given.

        Raises:
            ConfigError: no recording, or one that does not tell of a robot.
            MissingLibrary: the one that reads bags.
        """
        if not (directory / "metadata.yaml").is_file():
            raise ConfigError(f"{str(directory)!r} is not a rosbag2 directory (no metadata.yaml in it)")
        reader_of = optional("rosbags.highlevel", "reading a recording").AnyReader
        self._columns: dict[str, _Column] = defaultdict(_Column)
        self._impacts: list[ShownImpact] = []
        self._told = RecordedConfiguration()
        with reader_of([directory]) as reader:
            self._deserialize = reader.typestore.deserialize_cdr
            self._read(reader)
        if not self._columns[messages.STATES].stamps:
            raise ConfigError(f"{str(directory)!r} holds no joint states")
        self.world = world or self._recorded_world(directory)
        self._frames = messages.MessageFrames(self.world.robot)
        self.times: Array = 1e-9 * np.array(self._columns[messages.STATES].stamps)
        self.events = events_of(self._impacts)
        self.time = self.begin

    def _read(self, reader: Any) -> None:
        """Keep the messages that can be shown, thinned out where there are very many."""
        spacing = (reader.end_time - reader.start_time) // MOST_PICTURES
        for connection, stamp, data in reader.messages():
            kind, column = connection.msgtype, self._columns[connection.msgtype]
            if kind in FRAMES and not connection.topic.endswith("joint_commands"):
                if not column.stamps or stamp - column.stamps[-1] >= spacing:
                    column.stamps.append(stamp)
                    column.data.append(bytes(data))
            elif kind == messages.IMPACT:
                self._impacts.append(messages.impact_of(reader.deserialize(data, kind), 1e-9 * stamp))
            elif RecordedConfiguration.is_told_by(connection.topic, kind):
                self._told.add(connection.topic, kind, reader.deserialize(data, kind))

    def _recorded_world(self, directory: Path) -> World:
        """Return the world that the recording tells of: its configuration, else the description of the robot.

        Raises:
            ConfigError: it tells neither.
        """
        self._told.has_base = messages.BASE in self._columns
        config = self._told.config()
        if config is not None:
            return World.configured(config)
        robot = self._told.robot()
        if robot is not None:
            return World(robot)
        raise ConfigError(f"{str(directory)!r} does not tell which robot it is of, allowed: --robot PARAMETERS")

    def frame_at(self, index: int) -> Frame | None:
        """Return what the messages up to ``times[index]`` tell."""
        stamp = self._columns[messages.STATES].stamps[index]
        newest = {kind: self._newest(kind, stamp) for kind in FRAMES}
        told = {kind: found for kind, found in newest.items() if found is not None}
        return self._frames.frame(1e-9 * stamp, told, self._impacts)

    def _newest(self, kind: str, stamp: int) -> Any:
        """Return the last message of a kind that is not after `stamp` [ns]; None: there is none."""
        column = self._columns[kind]
        index = int(np.searchsorted(column.stamps, stamp, side="right")) - 1
        return self._deserialize(column.data[index], kind) if index >= 0 else None

"""Where frames come from: something that runs, or something that was recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from constrained_sim.collision.detector import Collisions
from constrained_sim.collision.scene import SceneBody
from constrained_sim.config import Config
from constrained_sim.constraints import Constraint, PointContact
from constrained_sim.contact.surfaces import Plane
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.frame import Frame, ShownImpact
from constrained_sim.viewer.live_panel import LivePanel
from constrained_sim.viewer.recording_panel import RecordingPanel


@dataclass(frozen=True, eq=False)
class World:
    """What stays as it is while frames come.

    Attributes:
        robot: that is drawn.
        scene: bodies that rest, by name; ground planes among them.
    """

    robot: Robot
    scene: Mapping[str, SceneBody] = field(default_factory=lambda: {"ground": Plane()})

    @classmethod
    def of(cls, robot: Robot, constraints: Iterable[Constraint] = (), collisions: Collisions | None = None) -> World:
        """Return the world of a simulation: its scene, and the planes of its contacts, each once."""
        contacts = [constraint for constraint in constraints if isinstance(constraint, PointContact)]
        planes = {(*contact.surface.normal, contact.surface.offset): contact.surface for contact in contacts}
        scene: dict[str, SceneBody] = {f"plane {i}": plane for i, plane in enumerate(planes.values())}
        return cls(robot, scene | dict(collisions.scene if collisions is not None else {}))

    @classmethod
    def configured(cls, config: Config) -> World:
        """Return the world of a configuration."""
        return cls.of(config.robot, config.constraints, config.collisions)


class Controls(Protocol):
    """What a user can do to a source, on the page."""

    def update(self) -> None:
        """Follow the source; called before each picture."""


class Source(ABC):
    """Gives the frames of one world."""

    world: World

    @abstractmethod
    def add_controls(self, server: Any) -> Controls:
        """Add what a user can do to the page of a `viser.ViserServer`."""

    @abstractmethod
    def frame(self) -> Frame | None:
        """Return what is to be seen now; None while there is nothing yet."""

    def close(self) -> None:
        """End what the source has begun."""
        return None


class LiveSource(Source):
    """A simulation that runs and takes commands; what it refuses raises ConstrainedSimError."""

    def add_controls(self, server: Any) -> LivePanel:
        """Add buttons and sliders."""
        return LivePanel(server, self)

    @property
    @abstractmethod
    def is_paused(self) -> bool:
        """Whether time stands still."""

    @abstractmethod
    def pause(self, on: bool) -> None:
        """Stop time, or let it go on."""

    @abstractmethod
    def step(self) -> None:
        """Simulate one control period, while paused."""

    @abstractmethod
    def reset(self) -> None:
        """Begin anew at the initial state."""

    @abstractmethod
    def use(self, solver: str = "", stepper: str = "") -> None:
        """Use another solver or stepper from now on; empty: as it is."""

    @abstractmethod
    def push(self, link: str, force: Array, seconds: float) -> None:
        """Let a force (3,) [N], world axes, act at the origin of `link` for so long."""

    @abstractmethod
    def set_effort(self, joint: str, effort: float) -> None:
        """Command the effort [N m, N] of an actuated joint."""

    @abstractmethod
    def set_speed(self, factor: float) -> None:
        """Simulate this many seconds per second."""


@dataclass(frozen=True)
class Event:
    """Something that happened in a recording.

    Attributes:
        t: instant [s].
        text: what.
    """

    t: float
    text: str


def events_of(impacts: Iterable[ShownImpact]) -> list[Event]:
    """Return `impacts` as events: who took part, and the energy that was lost."""
    return [Event(i.t, f"impact of {', '.join(i.contacts)}, {i.energy_lost:.3g} J") for i in impacts]


class Recording(Source):
    """A run that is over: frames at any instant of it.

    Attributes:
        time: [s] that :meth:`frame` shows.
    """

    times: Array
    events: Sequence[Event]
    time: float

    def add_controls(self, server: Any) -> RecordingPanel:
        """Add the time line."""
        return RecordingPanel(server, self)

    def index(self) -> int:
        """Return the last of :attr:`times` that is not after the present one."""
        return max(int(np.searchsorted(self.times, self.time + 1e-9, side="right")) - 1, 0)

    @property
    def begin(self) -> float:
        """First instant [s]."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """Last instant [s]."""
        return float(self.times[-1])

    def next_event(self) -> Event | None:
        """Return the first event after the present time; the very first one after the last."""
        later = [event for event in self.events if event.t > self.time + 1e-9]
        return next(iter(later or self.events), None)

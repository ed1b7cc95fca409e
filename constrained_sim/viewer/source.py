"""Sources of frames: a running simulation, or a recording."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from constrained_sim.collision.detector import Collisions
from constrained_sim.collision.scene import SceneBody
from constrained_sim.config import Config
from constrained_sim.constraints import Constraint, point_contacts
from constrained_sim.contact.surfaces import Plane
from constrained_sim.robot import Robot
from constrained_sim.viewer.frame import Frame, ShownImpact


@dataclass(frozen=True, eq=False)
class World:
    """What stays as it is while frames come.

    Attributes:
        robot: that is drawn, alone: what is beside it comes and goes with the frames.
        scene: bodies that rest, by name; ground planes among them.
    """

    robot: Robot
    scene: Mapping[str, SceneBody] = field(default_factory=lambda: {"ground": Plane()})

    @classmethod
    def of(cls, robot: Robot, constraints: Iterable[Constraint] = (), collisions: Collisions | None = None) -> World:
        """Return the world of a simulation: its scene, and the planes of its contacts, each once."""
        contacts = point_contacts(constraints).values()
        planes = {(*contact.surface.normal, contact.surface.offset): contact.surface for contact in contacts}
        scene: dict[str, SceneBody] = {f"plane {i}": plane for i, plane in enumerate(planes.values())}
        return cls(robot.without_objects, scene | dict(collisions.scene if collisions is not None else {}))

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

    def frames_since(self, t: float, spacing: float) -> Iterable[Frame]:
        """Return frames after `t` [s] and before the present one, this far apart [s]; none where they are not kept."""
        return ()

    def close(self) -> None:
        """End what the source has begun."""
        return None


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

"""Between links and the names of their frames in messages: one rule for what is published, and for what comes."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass

from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD


@dataclass(frozen=True)
class FrameNames:
    """How a node names frames.

    Attributes:
        world: frame of the world, ``world_frame``.
        prefix: is put before the names of links, ``frame_prefix``.
    """

    world: str = WORLD
    prefix: str = ""

    def __post_init__(self) -> None:
        """Check what no frame of ROS can be named.

        Raises:
            InvalidValue: a slash at the beginning, a blank, or no world.
        """
        allowed = "a name without blanks, and without a slash at its beginning"
        for option, name in ("world_frame", self.world), ("frame_prefix", self.prefix):
            if name.startswith("/") or any(letter.isspace() for letter in name):
                raise InvalidValue(option, name, allowed)
        if not self.world:
            raise InvalidValue("world_frame", self.world, allowed)

    def of(self, link: str) -> str:
        """Return the frame of `link`, the world or a link of the robot; of nothing there is none."""
        if link == WORLD:
            return self.world
        return self.prefix + link if link else ""

    def check_links(self, links: Collection[str]) -> None:
        """Refuse `links` of which one has the frame of the world, or the frame of another as its name.

        A message could mean either.

        Raises:
            InvalidValue: there is such a link.
        """
        for link in links:
            frame = self.of(link)
            if link != WORLD and (frame == self.world or (frame != link and frame in links)):
                what = f"frame of link {link!r} with the frame_prefix {self.prefix!r}"
                other = "the world_frame" if frame == self.world else "the name of another link"
                raise InvalidValue(what, frame, f"one that is not {other}")

    def is_world(self, frame: str) -> bool:
        """Return whether a message names the world: by its frame, by its own name, or by nothing."""
        return frame in ("", WORLD, self.world)

    def link(self, frame: str, links: Container[str]) -> str:
        """Return the link that a message names: by its own name, where that is one of `links`, or by its frame."""
        if frame == self.world:
            return WORLD
        return frame if frame in links else frame.removeprefix(self.prefix)

"""From where a robot is looked at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.config import Config
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.robot import WORLD

LEAST = 0.3
"""[m] Size below which no robot is looked at closer."""

DISTANCE = 2.5
"""Of the camera from the middle of the robot, as a multiple of the robot's size."""


class View(NamedTuple):
    """A camera that looks at a robot.

    Attributes:
        middle: (3,) of the robot [m].
        distance: of the camera [m].
        follows: frame whose motion the camera follows.
    """

    middle: tuple[float, float, float]
    distance: float
    follows: str


def view_of(config: Config) -> View:
    """Return a view of the robot in its initial configuration; the camera follows a base that is free."""
    places = kinematics_at(config.robot, config.q).placements[1:, 3]
    low, high = places.min(axis=0), places.max(axis=0)
    size = max(LEAST, float(np.linalg.norm(high - low)))
    options = config.node
    free = config.robot.floating_base
    follows = options.frames.of(config.robot.root_link if free else WORLD)
    middle = np.round((low + high) / 2.0, 2) + 0.0
    if free:
        middle[:] = 0.0  # of the frame that is followed
    return View((float(middle[0]), float(middle[1]), float(middle[2])), round(DISTANCE * size, 1), follows)

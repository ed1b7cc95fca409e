"""The box along the axes of the world that a robot, or an object beside it, is in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from constrained_sim.collision.robot_shapes import robot_shapes
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


def bounding_box(robot: Robot, q: Array, owner: str = "") -> tuple[Array, Array] | None:
    """Return the least and the largest coordinates (3,) [m] of collision geometry, world axes; None: there is none.

    Args:
        robot: the robot, and what is beside it.
        q: (nq,) configuration.
        owner: name of an object; empty: the robot itself.

    Raises:
        ModelError: an element that cannot be loaded.
    """
    own = tuple(one for one in robot.collision_elements if robot.owner_of(one.link) == owner)
    if not own:
        return None
    placements, lowest, highest = kinematics_at(robot, q).placements, [], []
    for shape in robot_shapes(replace(robot, collision_elements=own)):
        placement = placements[shape.joint]
        highest.append(shape.extents(np.eye(3), placement))
        lowest.append(-shape.extents(-np.eye(3), placement))
    return np.min(lowest, axis=0), np.max(highest, axis=0)

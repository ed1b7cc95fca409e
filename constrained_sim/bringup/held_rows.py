"""The rows that hold a robot: of its own constraints, and of contacts that are closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from constrained_sim.constraints import PointContact
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


class HeldRows(NamedTuple):
    """Rows of the Jacobian at rest.

    Attributes:
        bilateral: (m, nv) of the robot's own constraints.
        contacts: (3 k, nv) two tangents and the normal of each contact.
        axes: (3 k, 3) world direction of each of these.
    """

    bilateral: Array
    contacts: Array
    axes: Array


def held_rows(robot: Robot, dynamics: Dynamics, contacts: Sequence[PointContact]) -> HeldRows:
    """Return the rows of `robot` and of closed `contacts` (k), whatever their gaps, at the state of `dynamics`."""
    bound = ConstraintSet.bind(robot, dynamics.q, contacts)
    bilateral = bound.bilateral.jacobian(dynamics) if bound.bilateral.dim else np.zeros((0, robot.nv))
    if not contacts:
        return HeldRows(bilateral, np.zeros((0, robot.nv)), np.zeros((0, 3)))
    geometry = bound.contacts.rows(dynamics, np.zeros(robot.nv))
    return HeldRows(bilateral, geometry.J, geometry.axes.reshape(-1, 3))

"""The forces of a state that are known before the constraints: all but those of contacts and constraints."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from constrained_sim.actuators import Efforts
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.energy import ACTUATORS, DAMPING, EXTERNAL, FORCES, GRAVITY_CORIOLIS
from constrained_sim.validation import Array
from constrained_sim.wrench import Wrench, generalised_force


def known_forces(dynamics: Dynamics, efforts: Efforts, wrenches: Collection[Wrench]) -> Array:
    """Return generalised forces (6, nv) by cause in the order of ``FORCES`` [N m, N], at the updated `dynamics`.

    Those of contacts, constraints and dry joint friction are zero.
    """
    robot, v = dynamics.robot, dynamics.v
    forces = np.zeros((len(FORCES), robot.nv))
    forces[GRAVITY_CORIOLIS] = robot.spring_effort(dynamics.q) - dynamics.h
    forces[ACTUATORS, robot.actuation] = efforts.at(v[robot.actuation])
    forces[EXTERNAL] = generalised_force(robot, dynamics, wrenches)
    forces[DAMPING] = -robot.damping * v
    return forces

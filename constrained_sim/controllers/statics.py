"""Efforts with which a robot stands still."""

from __future__ import annotations

import numpy as np

from constrained_sim.config import Config
from constrained_sim.constraints import PointContact
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.validation import Array


def standing_efforts(config: Config) -> Array:
    """Return (nu,) the efforts [N m, N] that hold a robot where its configuration begins, at rest on level ground.

    Least squares of the equations of motion with v = 0 and a = 0,

        S^T tau + J^T lam + J_n^T f_n = h - (springs),

    J the rows of the closed loops, J_n the vertical rows of all contacts: standing takes no force along the ground.
    Where the configuration is not in equilibrium, no efforts make it so, and these come nearest to it.
    """
    robot = config.robot
    dynamics = Dynamics.at(robot, config.q, np.zeros(robot.nv))
    contacts = [constraint for constraint in config.constraints if isinstance(constraint, PointContact)]
    declared = [constraint for constraint in config.constraints if not constraint.is_unilateral]
    loops = ConstraintSet.bind(robot, config.q, declared).bilateral
    places = [robot.link_point(contact.link, contact.point) for contact in contacts]
    joints, offsets = np.array([joint for joint, _ in places]), np.array([offset for _, offset in places])
    axes = np.tile(np.eye(3), (len(contacts), 1, 1))
    vertical = dynamics.row_jacobian(joints, dynamics.point_positions(joints, offsets), axes)[2::3]
    actuation = np.eye(robot.nv)[robot.actuation]
    rows = np.vstack([actuation, loops.jacobian(dynamics), vertical])
    forces = np.linalg.lstsq(rows.T, dynamics.h - robot.spring_effort(config.q), rcond=None)[0]
    return np.asarray(forces[: robot.nu])

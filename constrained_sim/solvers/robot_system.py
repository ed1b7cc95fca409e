"""The linear problem of a robot: what solvers may know beside its matrices."""

from __future__ import annotations

from typing import cast

import numpy as np

from constrained_sim.constraints.constraint import BoundConstraint
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.solvers.solver import System
from constrained_sim.validation import Array


class RobotSystem(System):
    """Inertia and bilateral rows of a robot at one configuration.

    Attributes:
        dynamics: of the robot, at that configuration.
        q: (nq,) configuration.
        members: the bound constraints that the rows are of, in their order.
        added: (nv,) added to the diagonal of the joint-space inertia, such as implicit damping; or 0.
    """

    is_of_robot = True

    def __init__(
        self,
        dynamics: Dynamics,
        J: Array,
        members: tuple[BoundConstraint, ...] = (),
        added: Array | None = None,
    ) -> None:
        """Take inertia and configuration of `dynamics` at its last update."""
        M = dynamics.M if added is None else dynamics.M + np.diag(added)
        super().__init__(M, J, dynamics.robot.inertia_parents)
        self.dynamics, self.q, self.members = dynamics, dynamics.q, members
        self.added: Array | float = 0.0 if added is None else added

    def respond(self, rows: Array) -> Array:
        """Return ``M^-1 r`` for every row r of `rows` (k, nv), by the articulated-body algorithm."""
        return self.dynamics.articulated_response(self.q, rows, self.added)


def of_robot(system: System) -> RobotSystem:
    """Return `system`, which :meth:`Solver.factor` has found to be one of a robot."""
    return cast(RobotSystem, system)

"""Kokkevis' solver: the Delassus matrix from the response of articulated bodies to test forces."""

from __future__ import annotations

from constrained_sim.linalg.cholesky import solve_lower, solve_upper
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.solvers.robot_system import RobotSystem, of_robot
from constrained_sim.solvers.solver import FullRankFactorization, FullRankSolver, System
from constrained_sim.validation import Array


class Kokkevis(FullRankSolver):
    """Solve for the multipliers with Delassus entries ``J_i . a_j``, a_j the acceleration under a unit test force j.

    Each a_j comes from one pass of the articulated-body algorithm on the robot at rest and without gravity, so that the
    joint-space inertia is never formed (Kokkevis and Metaxas, Practical Physics for Articulated Characters, 2004; RBDL,
    ForwardDynamicsContactsKokkevis). External forces are part of f like all others.
    """

    name = "kokkevis"
    needs_robot = True

    def _row_space(self, system: System) -> RowSpace:
        return RowSpace.of(system.J, of_robot(system).respond(system.J))

    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        return _TestForces(of_robot(system), space)


class _TestForces(FullRankFactorization):
    def __init__(self, system: RobotSystem, space: RowSpace) -> None:
        self._system, self._cholesky = system, space.cholesky
        self._rows = space.scaled(system.J)
        self._responses = system.respond(self._rows)

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        free = self._system.respond(f)
        rest = solve_lower(self._cholesky, b - free @ self._rows.T)
        lam = solve_upper(self._cholesky, rest)
        return free + lam @ self._responses, lam

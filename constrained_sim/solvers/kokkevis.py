"""Kokkevis' solver: the Delassus matrix from the response of articulated bodies to test forces."""

from __future__ import annotations

from scipy.linalg import lapack

from constrained_sim.solvers.row_space import RowSpace
from constrained_sim.solvers.solver import FullRankFactorization, Solver, System
from constrained_sim.validation import Array


class Kokkevis(Solver):
    """Solve for the multipliers with Delassus entries ``J_i . a_j``, a_j the acceleration under a unit test force j.

    Each a_j comes from one pass of the articulated-body algorithm on the robot at rest and without gravity, so that the
    joint-space inertia is never formed (Kokkevis and Metaxas, Practical Physics for Articulated Characters, 2004; RBDL,
    ForwardDynamicsContactsKokkevis). External forces are part of f like all others.
    """

    name = "kokkevis"
    needs_robot = True

    def _row_space(self, system: System) -> RowSpace:
        return RowSpace.of(system.J, _respond(system, system.J))

    def _factor(self, system: System, space: RowSpace, rows: Array) -> FullRankFactorization:
        return _TestForces(system, rows)


class _TestForces(FullRankFactorization):
    def __init__(self, system: System, rows: Array) -> None:
        self._system, self._rows = system, rows
        self._responses = _respond(system, rows)
        delassus = rows @ self._responses.T
        self._cholesky = lapack.dpotrf(0.5 * (delassus + delassus.T), lower=True)[0]

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        free = _respond(self._system, f)
        lam = lapack.dpotrs(self._cholesky, (b - free @ self._rows.T).T, lower=True)[0].T
        return free + lam @ self._responses, lam


def _respond(system: System, rows: Array) -> Array:
    return system.respond(rows)  # type: ignore[misc]

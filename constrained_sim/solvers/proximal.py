"""Proximal solver: Pinocchio's own factorisation of the KKT matrix, with proximal iterations."""

from __future__ import annotations

import numpy as np

from constrained_sim.constraints.constraint import Constraint
from constrained_sim.solvers.robot_system import RobotSystem, of_robot
from constrained_sim.solvers.solver import Factorization, FreeMotion, Solver, System
from constrained_sim.validation import Array

DAMPING = 1e-9
"""Proximal parameter mu, relative to the largest diagonal entry of the Delassus matrix."""

ITERATIONS = 3000
"""At most: rows that are nearly dependent need some hundreds. What comes out then is judged like any other solution."""

STALLED = 0.99
"""Ratio of two successive changes from which on they are rounding."""


class Proximal(Solver):
    """Solve the KKT system by Pinocchio's branch-sparse Cholesky factorisation of the damped KKT matrix.

    One factorisation of ``[[-mu I, -J], [-J^T, M]]`` serves the iteration ``J x + mu lam' = b + mu lam``, whose fixed
    point solves the undamped problem; this is what ``pinocchio.constraintDynamics`` does (Carpentier, Budhiraja and
    Mansard, Proximal and sparse resolution of constrained dynamic equations, 2021). It iterates on all rows,
    dependent ones too; the treatment of contradicting rows and the choice of the multipliers of least norm are those of
    the other solvers. Rows are those that Pinocchio has a constraint model for.
    """

    name = "proximal"
    needs_robot = True
    does_dry_friction = False
    supported = "whole frame anchors, and point anchors in three independent directions"

    def supports(self, constraint: Constraint) -> bool:
        """Return whether Pinocchio has a model of `constraint`, which it has of bilateral ones only."""
        return not constraint.is_unilateral and constraint.pinocchio_type is not None

    def _factorization(self, system: System) -> Factorization:
        if not len(system.J):
            return Factorization(system.row_space, FreeMotion(system))
        self.check(member.declaration for member in of_robot(system).members)
        return _ProximalFactorization(of_robot(system))


class _ProximalFactorization(Factorization):
    def __init__(self, system: RobotSystem) -> None:
        self._space, self._system = system.row_space, system
        members = [member.pinocchio_constraint(system.dynamics) for member in system.members]
        self._to_ours = _block_diagonal([transform for _, transform in members])
        self._from_ours = np.linalg.inv(self._to_ours)
        rows = self._from_ours @ system.whitened_rows
        self._mu = DAMPING * float(np.einsum("ij,ij->i", rows, rows).max(initial=1e-300))
        self._cholesky = system.dynamics.damped_kkt([model for model, _ in members], system.q, self._mu, system.added)

    def _solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        found = [self._iterate(*loads) for loads in zip(f, self._space.project(b), strict=True)]
        lam = np.array([lam for _, lam in found]).reshape(b.shape)
        return np.array([x for x, _ in found]), self._space.project(lam)

    def _iterate(self, f: Array, b: Array) -> tuple[Array, Array]:
        """Iterate until the multipliers change no more than rounding makes them."""
        target, lam, before = self._from_ours @ b, np.zeros(len(b)), np.inf
        for _ in range(ITERATIONS):
            solved = self._cholesky.solve(np.concatenate([-target - self._mu * lam, f]))
            change = self._system.J.T @ (self._from_ours.T @ (solved[: len(b)] - lam))
            lam, moved = solved[: len(b)], float(np.abs(change).max())
            if moved == 0.0 or moved >= STALLED * before:
                break
            before = moved
        return solved[len(b) :], self._from_ours.T @ lam


def _block_diagonal(blocks: list[Array]) -> Array:
    size = sum(len(block) for block in blocks)
    whole, start = np.zeros((size, size)), 0
    for block in blocks:
        whole[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    return whole

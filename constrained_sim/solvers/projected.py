"""Projected solver: contact-consistent dynamics through the null-space projector of the constraint forces."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.solvers.solver import FullRankFactorization, FullRankSolver, System, checked_system, sizes_of
from constrained_sim.validation import Array, finite_array, read_only


class Projected(FullRankSolver):
    """Solve ``x = M^-1 [N f + J^T Lambda b]`` with ``N = I - J^T Lambda J M^-1`` and ``Lambda = (J M^-1 J^T)^-1``.

    N removes from f what the constraints take up: ``N J^T = 0``. At acceleration level this is
    ``a = M^-1 [N (S^T tau - h) - J^T Lambda Jdot v]``. ``N M`` is singular, so the multipliers come from
    ``lam = Lambda (b - J M^-1 f)`` (Aghili, A unified approach for inverse and direct dynamics of constrained multibody
    systems based on linear projection operator, 2005).
    """

    name = "projected"

    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        return _Projection(ContactConsistentDynamics(system.M, space.scaled(system.J)))


class _Projection(FullRankFactorization):
    def __init__(self, dynamics: ContactConsistentDynamics) -> None:
        self._dynamics = dynamics

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        dynamics = self._dynamics
        x = (f @ dynamics.N.T + b @ dynamics.Lambda @ dynamics.J) @ dynamics.M_inverse
        return x, b @ dynamics.Lambda - f @ dynamics.J_bar


@dataclass(frozen=True, eq=False)
class ContactConsistentDynamics:
    """The operators of a set of independent constraint rows.

    Attributes:
        M: (nv, nv) joint-space inertia.
        J: (m, nv) constraint Jacobian of full row rank.

    Raises:
        InvalidValue: rows that depend on each other, wrong shapes, NaN or infinity, M not symmetric positive definite.
    """

    M: Array
    J: Array
    _system: System = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the matrices, and take copies of them."""
        system = checked_system(self.M, self.J, *sizes_of(self.M, self.J))
        rank, count = system.row_space.rank, len(system.J)
        if rank < count:
            raise InvalidValue("J", f"{count} rows of rank {rank}", "independent rows")
        object.__setattr__(self, "_system", system)
        object.__setattr__(self, "M", read_only(system.M))
        object.__setattr__(self, "J", read_only(system.J))

    @cached_property
    def M_inverse(self) -> Array:
        """(nv, nv)."""
        return self._system.unwhiten(self._system.whiten(np.eye(len(self.M))))

    @cached_property
    def Lambda(self) -> Array:
        """(m, m) inertia seen at the constraint, the inverse of the Delassus matrix."""
        inverse = np.linalg.inv(self.J @ self.M_inverse @ self.J.T)
        return 0.5 * (inverse + inverse.T)

    @cached_property
    def J_bar(self) -> Array:
        """(nv, m) dynamically consistent pseudo-inverse ``M^-1 J^T Lambda``: ``J J_bar = I``."""
        return self.M_inverse @ self.J.T @ self.Lambda

    @cached_property
    def N(self) -> Array:
        """(nv, nv) projector of generalised forces: ``N J^T = 0``, ``N N = N``; not symmetric."""
        return np.eye(len(self.M)) - self.J.T @ self.J_bar.T

    @cached_property
    def N_velocity(self) -> Array:
        """(nv, nv) projector of velocities ``I - J_bar J``: an inelastic impact is ``v_plus = N_velocity v_minus``."""
        return self.N.T

    def tau_row(self, tau: Array) -> Array:
        """Return the part of the generalised force `tau` (nv,) that the constraints take up; it moves nothing."""
        return finite_array("tau", tau, (len(self.M),)) - self.tau_null(tau)

    def tau_null(self, tau: Array) -> Array:
        """Return the part of the generalised force `tau` (nv,) that moves the robot; it makes no constraint force."""
        return self.N @ finite_array("tau", tau, (len(self.M),))

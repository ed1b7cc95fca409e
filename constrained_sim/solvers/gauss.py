"""Gauss' principle of least constraint, as a quadratic program."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.constraints.constraint import Constraint
from constrained_sim.constraints.point_contact import PointContact
from constrained_sim.contact.laws import SoftLaw
from constrained_sim.exceptions import ContactNotSolved
from constrained_sim.linalg.cholesky import solve_lower, solve_upper
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.optional import optional
from constrained_sim.solvers.solver import FullRankFactorization, FullRankSolver, System
from constrained_sim.validation import Array

ACCURACY = 1e-14
"""Of the program's residuals, relative to its data; what ProxQP reaches in practice is near rounding."""

ITERATIONS = 1000
"""At most: programs of robots take some tens."""

ACCEPTABLE = 1e-9
"""Residual, in the same way, up to which what the program ends with counts as a solution."""


class Gauss(FullRankSolver):
    """Minimise ``(x - x_free)^T M (x - x_free) / 2`` subject to ``J x = b``, and ``J_n x + offset >= 0`` of contacts.

    Among the motions that the constraints allow, the true one is the nearest to the free motion ``x_free = M^-1 f`` in
    the metric of the kinetic energy (Gauss 1829). The multipliers of the program are the constraint forces, and its
    inequalities are the complementarity of frictionless contacts; Coulomb's law is no minimum of anything. Solved by
    ProxQP (Bambade and others, PROX-QP: Yet another quadratic programming solver for robotics and beyond, 2022), from
    the optional library proxsuite.
    """

    name = "gauss"
    does_dry_friction = False
    decides_contacts = True
    supported = "constraints, and contacts without friction"

    def __init__(self) -> None:
        """Load the library.

        Raises:
            MissingLibrary: proxsuite is not installed.
        """
        self._proxqp = optional("proxsuite", "solver 'gauss'").proxqp

    def __reduce__(self) -> tuple[type[Gauss], tuple[()]]:
        """Return how to make another: a module can be neither copied nor pickled."""
        return type(self), ()

    def supports(self, constraint: Constraint) -> bool:
        """Return whether `constraint` is no contact, or one without friction, resistance to turning, or softness."""
        if not isinstance(constraint, PointContact):
            return True
        if constraint.resists_turning or isinstance(constraint.law, SoftLaw):
            return False
        return constraint.coefficient == 0.0

    def solve_normal_contacts(
        self, system: System, f: Array, b: Array, normals: Array, offset: Array
    ) -> tuple[Array, Array, Array]:
        """Solve one problem with unilateral rows: ``0 <= J_n x + offset _|_ r >= 0``.

        Args:
            system: M and the bilateral rows.
            f: (nv,).
            b: (m,).
            normals: J_n (k, nv).
            offset: (k,).

        Returns:
            x (nv,), the multipliers of the bilateral rows (m,) and of the others (k,).

        Raises:
            ContactNotSolved: no motion satisfies all rows.
        """
        self.calls += 1
        space, whitened = system.row_space, system.whiten(normals)
        scale = np.sqrt(np.einsum("ij,ij->i", whitened, whitened))
        scale[scale == 0.0] = 1.0
        target = space.reduce(b[None]) / space.independent_scale
        program = _Program(self._proxqp, system, space)
        x, lam, r = program.solve(f, target[0], whitened / scale[:, None], -offset / scale)
        return x, space.expand(lam[None] / space.independent_scale)[0], r / scale

    def _factor(self, system: System, space: RowSpace) -> FullRankFactorization:
        return _Programs(_Program(self._proxqp, system, space))


class _Program:
    """The program in coordinates in which it is well-conditioned, whatever the inertia and the rows.

    With ``M = L^T L``, ``y = L x`` and orthonormal rows Q in place of the whitened independent rows ``C Q``: minimise
    ``|y - y_free|^2 / 2`` subject to ``Q y = C^-1 b``, and ``W_n y >= lower`` for whitened normal rows.
    """

    def __init__(self, proxqp: Any, system: System, space: RowSpace) -> None:
        self._proxqp, self._system, self._cholesky = proxqp, system, space.cholesky
        rows = space.scaled(system.whitened_rows)
        self._rows = solve_lower(self._cholesky, np.ascontiguousarray(rows.T)).T

    def solve(self, f: Array, b: Array, normals: Array, lower: Array) -> tuple[Array, Array, Array]:
        """Return x (nv,) and the multipliers of the scaled independent rows (r,) and of the normal rows (k,)."""
        free = self._system.whiten(f[None])[0]
        target = solve_lower(self._cholesky, b[None])[0]
        magnitude = max(np.abs(part).max(initial=0.0) for part in (free, target, lower)) or 1.0
        program = self._proxqp.dense.QP(len(f), len(target), len(lower))
        program.settings.eps_abs, program.settings.eps_rel, program.settings.max_iter = ACCURACY, 0.0, ITERATIONS
        equality, inequality = _optional(self._rows, target / magnitude), _optional(normals, lower / magnitude)
        program.init(np.eye(len(f)), -free / magnitude, *equality, *inequality, None)
        program.solve()
        found = program.results
        residual = max(found.info.pri_res, found.info.dua_res)
        if not residual <= ACCEPTABLE:
            raise ContactNotSolved(residual)
        x = self._system.unwhiten(magnitude * found.x[None])[0]
        lam = solve_upper(self._cholesky, -magnitude * found.y[None])[0]
        return x, lam, -magnitude * found.z


class _Programs(FullRankFactorization):
    """One program for each right-hand side."""

    def __init__(self, program: _Program) -> None:
        self._program = program

    def solve(self, f: Array, b: Array) -> tuple[Array, Array]:
        no_rows = np.zeros((0, f.shape[1])), np.zeros(0)
        found = [self._program.solve(force, target, *no_rows) for force, target in zip(f, b, strict=True)]
        return np.array([x for x, _, _ in found]), np.array([lam for _, lam, _ in found])


def _optional(rows: Array, target: Array) -> tuple[Any, Any]:
    """Return `rows` and `target`, or None for both where there are none."""
    return (rows, target) if len(target) else (None, None)

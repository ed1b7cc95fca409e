"""The problem of an impact: laws of restitution and Coulomb's law for impulses, without creating energy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.bracketed_root import bracketed_root
from constrained_sim.constrained_dynamics import ConstrainedSolution, ContactRows, solve_constrained_dynamics
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.rolling_rows import COEFFICIENT, COLUMNS, CONTACT, RADIUS, SIZE
from constrained_sim.contact_solvers.scaled_problem import ContactLaws
from constrained_sim.solvers import Solver, System
from constrained_sim.validation import Array


class RestitutionOptions(NamedTuple):
    """How restitution is reduced where it would create energy.

    Attributes:
        negligible: factor of restitution below which none is left: a bounce of a thousandth nobody sees.
        factor_error: to which the factor is found: rounding of a number of order 1, some thousand times.
        factor_step: by which the factor is reduced where it is just beyond the last that has a solution: far more than
            its error, and too little to be seen.
        energy_error: energy that counts as rounding, relative to twice the kinetic energy before the impact.
    """

    negligible: float = 1e-3
    factor_error: float = 1e-12
    factor_step: float = 1e-9
    energy_error: float = 1e-13


RESTITUTION = RestitutionOptions()


@dataclass(frozen=True, eq=False)
class ImpactProblem:
    """An impact at one configuration.

    Newton's law of restitution, of contacts, one-sided and bilateral rows: ``s_plus = target - e s_minus`` of bilateral
    rows; normal rows ``0 <= s_plus - target - e max(0, -s_minus) _|_ impulse >= 0``; tangential rows Coulomb's cone on
    impulses.

    Poisson's law, of contacts: an impact has two phases. Compression is the impact without restitution, and gives the
    velocity v_C and the impulses r_C. Expansion begins with v_C; every contact gives back at least the part e of its
    normal impulse, more only where it would sink in, with Coulomb's law for the impulses of this phase::

        compression   0 <= s_C - target _|_ r_C,n >= 0                        r_C,t in the cone of r_C,n
        expansion     0 <= s_plus - target _|_ r_E,n - e r_C,n >= 0           r_E,t in the cone of r_E,n

    So a contact that was at rest, or that friction has stopped, rebounds too. Without friction, if all e are equal and
    no contact opens before the impact, both laws say the same. Contacts of either law may take part in one impact:
    those of Newton's, and bilateral rows, reach their velocities in the compression already, and keep them.

    Sources: Glocker and Pfeiffer, Multiple impacts with friction in rigid multibody systems, 1995, with impulses of
    friction that are not restored; Anitescu and Potra, Formulating dynamic multi-rigid-body contact problems with
    friction as solvable linear complementarity problems, 1997.

    Attributes:
        system: M and the (m, nv) bilateral rows that hold.
        contacts: (3 k + l, nv) rows of the contacts that take part, and of the one-sided rows.
        laws: of these rows.
        v_minus: (nv,).
        s_minus: (m,) velocities of the bilateral rows.
        bilateral_restitution: (m,) Newton's coefficients.
        restitution: (k + l,) coefficients of contacts and one-sided rows.
        poisson: (k + l,) which of these are Poisson's; all others are Newton's.
        bilateral_target: (m,) prescribed row velocities after, added to the restitution.
        target: (k + l,) prescribed normal velocities after, added to the restitution.
        approach_velocity: (3 k + l,) velocities that forces give to the rows of contacts in the meantime.
        turning: (e, nv) rows in which contacts resist rolling and spinning.
        rolling: (d, 6) of these rows.
    """

    system: System
    contacts: Array
    laws: ContactLaws
    v_minus: Array
    s_minus: Array
    bilateral_restitution: Array
    restitution: Array
    poisson: npt.NDArray[np.bool_]
    bilateral_target: Array
    target: Array
    approach_velocity: Array
    turning: Array
    rolling: Array

    def solve(self, solver: Solver, method: ContactMethod) -> tuple[ConstrainedSolution, float]:
        """Return the motion after the impact and the factor by which restitution was reduced.

        Either law of restitution with friction may create energy, beside the work of what drives the bilateral rows,
        or have no solution: where the friction of what rebounds would press it on, or where bilateral rows stop it.
        Then all coefficients are multiplied by the largest common factor for which there is a solution that creates
        none.
        """
        motion = self._solve(solver, method, 1.0)
        bounces = np.count_nonzero(self.restitution) or np.count_nonzero(self.bilateral_restitution)
        if not bounces or self.bilateral_target.any() or self.target.any() or self._excess(motion) <= self._rounding:
            return motion, 1.0

        def excess(factor: float) -> float:
            return self._excess(self._solve(solver, method, factor)) - 0.5 * self._rounding

        factor = bracketed_root(excess, 0.0, 1.0, RESTITUTION.factor_error) if excess(0.0) < 0.0 else 0.0
        if factor < RESTITUTION.negligible:
            return self._solve(solver, method, 0.0), 0.0
        motion = self._solve(solver, method, factor)
        if self._excess(motion) > self._rounding:  # just beyond the last that has a solution
            factor -= RESTITUTION.factor_step
            motion = self._solve(solver, method, factor)
        return motion, factor

    def _solve(self, solver: Solver, method: ContactMethod, factor: float) -> ConstrainedSolution:
        """Return the motion after both phases, with all coefficients multiplied by `factor`."""
        system, rows = self.system, self._rows()
        s_plus = self.bilateral_target - factor * self.bilateral_restitution * self.s_minus
        momentum, b = system.M @ self.v_minus, s_plus + self._at_rest
        if not len(self.contacts):
            return solve_constrained_dynamics(solver, system, momentum, b, rows, method)
        s = self.contacts @ self.v_minus
        newton = np.where(self.poisson, 0.0, factor * self.restitution)
        rows.offset[rows.normals] -= newton * np.maximum(0.0, -s[rows.normals])
        every = rows.with_rolling(*self._turning(np.zeros(len(rows.laws.friction))))
        compressed = solve_constrained_dynamics(solver, system, momentum, b, every, method)
        restored = np.where(self.poisson, factor * self.restitution, 0.0) * compressed.impulse[rows.normals]
        return self._expand(solver, method, rows, compressed, restored) if restored.any() else compressed

    def _expand(
        self, solver: Solver, method: ContactMethod, rows: ContactRows, compressed: ConstrainedSolution, restored: Array
    ) -> ConstrainedSolution:
        """Return the motion after the phase of expansion, with the impulses of both phases.

        Contacts push by z beside what they restore. Coulomb's disc under ``restored + z`` is the sum of a disc of fixed
        radius and of one under z alone, and the friction of either is largest against the same slip: so each contact
        has its rows along the surface twice, once in the cone of z and once in a disc.

        Args:
            solver: of the linear part.
            method: how contacts are solved.
            rows: of the contacts, with the offsets of the compression.
            compressed: motion after the compression.
            restored: (k + l,) normal impulses that are given back [N s].
        """
        system, normals, contacts = self.system, rows.normals, len(rows.laws.friction)
        given = restored[:contacts]
        sliding = np.flatnonzero((rows.laws.friction > 0.0) & (given > 0.0))
        along = (3 * sliding[:, None] + np.arange(2)).ravel()
        surface = np.zeros((len(sliding), COLUMNS))
        surface[:, CONTACT], surface[:, SIZE] = sliding, 2
        surface[:, RADIUS] = rows.laws.friction[sliding] * given[sliding]
        every = rows.with_rolling(self.contacts[along], rows.offset[along], surface).with_rolling(*self._turning(given))
        momentum = system.M @ compressed.x + restored @ self.contacts[normals]
        motion = solve_constrained_dynamics(solver, system, momentum, system.J @ compressed.x, every, method)
        row_impulses, twice, turning = np.split(motion.impulse, [len(self.contacts), len(self.contacts) + len(along)])
        row_impulses[normals] += restored
        row_impulses[along] += twice
        return _succeeding(compressed, motion, compressed.impulse + np.concatenate([row_impulses, turning]))

    def _rows(self) -> ContactRows:
        """Return the rows of the contacts, restitution aside."""
        rows = ContactRows(self.contacts, self.approach_velocity.copy(), self.laws)
        if not len(self.contacts):
            return rows
        rows.offset[rows.normals] -= self.target
        return rows

    def _turning(self, restored: Array) -> tuple[Array, Array, Array]:
        """Return rows, offsets and friction of what resists turning, under normal impulses `restored` (k,) and more."""
        rolling = self.rolling.copy()
        rolling[:, RADIUS] = rolling[:, COEFFICIENT] * restored[rolling[:, CONTACT].astype(np.intp)]
        return self.turning, np.zeros(len(self.turning)), rolling

    def _excess(self, motion: ConstrainedSolution) -> float:
        """Return the kinetic energy that the impact created [J], the work of drives aside; all of it if unsolved."""
        if motion.contact is not None and not motion.contact.converged:
            return float(self.v_minus @ self.system.M @ self.v_minus)
        change = 0.5 * float((motion.x - self.v_minus) @ self.system.M @ (motion.x + self.v_minus))
        return change - self.driven(motion)

    def driven(self, motion: ConstrainedSolution) -> float:
        """Return the work [J] of the bilateral rows that depend on time, ``-lam phi_t`` with ``s = J v + phi_t``."""
        return float(motion.lam @ self._at_rest)

    @cached_property
    def _at_rest(self) -> Array:
        """(m,) what ``J v`` is of bilateral rows at rest, ``-phi_t`` with ``s = J v + phi_t`` [m/s, rad/s]."""
        return np.asarray(self.system.J @ self.v_minus - self.s_minus)

    @property
    def _rounding(self) -> float:
        """Energy that rounding may seem to create [J]."""
        return RESTITUTION.energy_error * float(self.v_minus @ self.system.M @ self.v_minus)


def _succeeding(first: ConstrainedSolution, second: ConstrainedSolution, impulse: Array) -> ConstrainedSolution:
    """Return two phases of one impact as one motion; its residuals are the larger ones."""
    solutions = [motion.contact for motion in (first, second) if motion.contact is not None]
    return ConstrainedSolution(
        second.x,
        first.lam + second.lam,
        impulse,
        max(solutions, key=lambda solution: solution.residual / solution.acceptable),
        max(first.dynamics_residual, second.dynamics_residual),
        max(first.constraint_residual, second.constraint_residual),
    )

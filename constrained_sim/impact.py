"""Impacts: velocity jumps that satisfy all constraints at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.constrained_dynamics import EXACTLY, ConstrainedSolution, ContactRows, solve_constrained_dynamics
from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import COEFFICIENT, COLUMNS, CONTACT, RADIUS, SIZE
from constrained_sim.dynamics.dynamics import Dynamics, dynamics_at, kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.robot import WORLD, Robot, checked_state
from constrained_sim.solvers import DEFAULT, RobotSystem, Solver, System, as_solver, check_consistency
from constrained_sim.validation import Array, check_result, finite_array, flag, number, read_only

NEGLIGIBLE = 1e-3
"""Factor of restitution below which none is left."""


@dataclass(frozen=True, eq=False)
class Impact:
    """A velocity jump ``M (v_plus - v_minus) = J^T impulse``; rows are in the order of declaration.

    Attributes:
        v_minus: (nv,) before.
        v_plus: (nv,) after.
        impulse: (rows,) [N s, N m s], positive as they push phi up.
        row_velocity_minus: (rows,) before [m/s, rad/s].
        row_velocity_plus: (rows,) after.
        restitution_scale: 1; less where restitution was reduced so as not to create energy.
        energy_lost: kinetic energy before minus after [J], ``-(v_minus + v_plus)^T J^T impulse / 2``. Where the
            constraints do not depend on time this is :attr:`dissipated`, and with s_plus = 0 the well-known
            ``s_minus^T Lambda s_minus / 2``.
        driven: work [J] that constraints which depend on time did: what drives a body goes on through the impact.
        t: instant [s].
        q: (nq,) configuration.
        points: (k, 3) contact points of all contacts [m], world frame.
        axes: (k, 3, 3) their rows t1, t2, n, world axes.
        constraints: the constraints that the rows belong to.
        dynamics_residual: of ``M (v_plus - v_minus) = J^T impulse``, relative to its largest term.
        constraint_residual: of the bilateral rows, relative to their largest term; not small where they contradict
            each other.
        without_collision: whether nothing collided: a Painleve impact, since no finite force was possible
            (Painleve's paradox).
        moments: (k, 3) angular impulses by which contacts resist rolling and spinning [N m s], on their links about
            their points, world axes.
        early: contacts that take part before they touch: with very many in one step, the last are not waited for.
    """

    v_minus: Array
    v_plus: Array
    impulse: Array
    row_velocity_minus: Array
    row_velocity_plus: Array
    restitution_scale: float
    energy_lost: float
    driven: float
    t: float
    q: Array
    points: Array
    axes: Array
    constraints: ConstraintSet
    dynamics_residual: float
    constraint_residual: float
    without_collision: bool
    moments: Array
    _system: System
    early: int = 0

    @property
    def dissipated(self) -> float:
        """What the impact itself turned into heat [J], ``-(s_minus + s_plus)^T impulse / 2``."""
        return self.energy_lost + self.driven

    @property
    def rank(self) -> int:
        """Number of independent rows among those that took part."""
        return self._row_space.rank

    @property
    def condition(self) -> float:
        """Condition of their Delassus matrix over its range: impulses are exact to about eps times this."""
        return self._row_space.condition

    @property
    def _row_space(self) -> RowSpace:
        return self._system.row_space

    def multipliers(self, name: str) -> Array:
        """Return the impulses of the rows of constraint or contact `name`.

        Raises:
            UnknownName: with the names that exist.
        """
        return self.impulse[self.constraints.slice(name)]

    @property
    def contact_impulses(self) -> dict[str, Array]:
        """(3,) impulse on each contact that passed one [N s], world axes, by name."""
        contact_set = self.constraints.contacts
        impulses = contact_set.forces(self.constraints.split(self.impulse)[1], self.axes)
        return {
            member.name: read_only(impulse)
            for member, impulse in zip(contact_set.members, impulses, strict=True)
            if impulse.any()
        }

    def wrench(self, name: str, link: str, axes: str = WORLD) -> Array:
        """Return (6,) the impulse [N s] and the angular impulse [N m s] about the point where it acts, on `link`.

        Args:
            name: constraint or contact.
            link: the link that is acted on.
            axes: ``"world"``, or a link whose axes to use.

        Raises:
            UnknownName: no such constraint, or one that does not act on this link.
        """
        dynamics = kinematics_at(self.constraints.robot, self.q, self.t)
        return self.constraints.wrench(dynamics, name, self.multipliers(name), link, axes, self.moments)


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
        laws: friction, slip, lower and upper bounds of these rows.
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
    laws: tuple[Array, Array, Array, Array]
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
        bounces = self.restitution.any() or self.bilateral_restitution.any()
        is_prescribed = self.bilateral_target.any() or self.target.any()
        if not bounces or is_prescribed or self._excess(motion) <= self._rounding:
            return motion, 1.0

        def excess(factor: float) -> float:
            return self._excess(self._solve(solver, method, factor)) - 0.5 * self._rounding

        factor = float(scipy.optimize.brentq(excess, 0.0, 1.0, xtol=1e-12)) if excess(0.0) < 0.0 else 0.0
        if factor < NEGLIGIBLE:
            return self._solve(solver, method, 0.0), 0.0
        motion = self._solve(solver, method, factor)
        if self._excess(motion) > self._rounding:  # just beyond the last that has a solution
            factor -= 1e-9
            motion = self._solve(solver, method, factor)
        return motion, factor

    def _solve(self, solver: Solver, method: ContactMethod, factor: float) -> ConstrainedSolution:
        """Return the motion after both phases, with all coefficients multiplied by `factor`."""
        system, rows, s = self.system, self._rows(), self.contacts @ self.v_minus
        newton = np.where(self.poisson, 0.0, factor * self.restitution)
        rows.offset[rows.normals] -= newton * np.maximum(0.0, -s[rows.normals])
        s_plus = self.bilateral_target - factor * self.bilateral_restitution * self.s_minus
        b = system.J @ self.v_minus + s_plus - self.s_minus
        every = rows.with_rolling(*self._turning(np.zeros(len(rows.friction))))
        compressed = solve_constrained_dynamics(solver, system, system.M @ self.v_minus, b, every, method)
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
        system, normals, contacts = self.system, rows.normals, len(rows.friction)
        given = restored[:contacts]
        sliding = np.flatnonzero((rows.friction > 0.0) & (given > 0.0))
        along = (3 * sliding[:, None] + np.arange(2)).ravel()
        surface = np.zeros((len(sliding), COLUMNS))
        surface[:, CONTACT], surface[:, SIZE] = sliding, 2
        surface[:, RADIUS] = rows.friction[sliding] * given[sliding]
        every = rows.with_rolling(self.contacts[along], rows.offset[along], surface).with_rolling(*self._turning(given))
        momentum = system.M @ compressed.x + restored @ self.contacts[normals]
        motion = solve_constrained_dynamics(solver, system, momentum, system.J @ compressed.x, every, method)
        row_impulses, twice, turning = np.split(motion.impulse, [len(self.contacts), len(self.contacts) + len(along)])
        row_impulses[normals] += restored
        row_impulses[along] += twice
        return _succeeding(compressed, motion, compressed.impulse + np.concatenate([row_impulses, turning]))

    def _rows(self) -> ContactRows:
        """Return the rows of the contacts, restitution aside."""
        rows = ContactRows(self.contacts, self.approach_velocity.copy(), *self.laws)
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
        return float(motion.lam @ (self.system.J @ self.v_minus - self.s_minus))

    @property
    def _rounding(self) -> float:
        return 1e-13 * float(self.v_minus @ self.system.M @ self.v_minus)


def resolve_impact(
    robot: Robot,
    q: Any,
    v: Any,
    constraints: Iterable[Constraint],
    solver: str | Solver = DEFAULT,
    restitution: float | Mapping[str, float] | None = None,
    row_velocity_plus: Any = None,
    t: float = 0.0,
    refuse_inconsistent: bool = False,
) -> Impact:
    """Return the velocity after all `constraints` become active at once at (q, v).

    Rows of the user's own that are not linear in v are linearised at `v`, so that ``row_velocity_plus`` of the result
    is what that leaves.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity before.
        constraints: bilateral constraints and contacts; a contact that is passed counts as closed, a joint limit where
            it is reached.
        solver: a name in ``SOLVERS``, or a configured solver.
        restitution: None: each contact's own, bilateral rows 0; a number for all; or by name. Of a contact this is the
            coefficient of its own law, of others Newton's.
        row_velocity_plus: prescribed row velocities after the impact [m/s, rad/s], (rows,) in the order of the
            constraints or by name; None: 0. Of a contact only the normal one may be prescribed, as a lower bound.
        t: time, for constraints that depend on it [s].
        refuse_inconsistent: raise where bilateral rows contradict each other, instead of the least-squares motion.

    Returns:
        velocities and impulses, with the energy that is lost: an :class:`~constrained_sim.impact.Impact`.

    Raises:
        InvalidValue: wrong lengths, NaN, infinity, a coefficient outside 0..1, a prescribed tangential velocity.
        UnknownName: a link, solver, or constraint that does not exist.
        NotSupported: a constraint that the solver cannot do.
        InconsistentConstraints: on request, see above.
        NonFiniteMotion: values so large that the result is not finite.
        ContactNotSolved: no method found a solution.

    Source: RBDL, module Contacts, ComputeContactImpulses*; Tedrake, sec. 3.2.
    """
    q, v = checked_state(robot, q, v)
    bound = ConstraintSet.bind(robot, q, constraints)
    solver = as_solver(solver)
    solver.check(bound.declarations)
    dynamics = dynamics_at(robot, q, v, number("t", t))
    impact = impact_at(
        dynamics,
        bound,
        v,
        bound.contacts.reached(bound.contacts.rows(dynamics, v).gaps),
        solver,
        coefficients=_coefficients(bound, restitution),
        targets=_targets(bound, row_velocity_plus),
        refuse_inconsistent=flag("refuse_inconsistent", refuse_inconsistent),
    )
    check_result("impact", impact.v_plus, impact.impulse, impact.energy_lost)
    return impact


def impact_at(
    dynamics: Dynamics,
    bound: ConstraintSet,
    v: Array,
    closing: npt.NDArray[np.intp],
    solver: Solver,
    method: ContactMethod = EXACTLY,
    coefficients: Array | None = None,
    targets: Array | None = None,
    refuse_inconsistent: bool = False,
    approach_velocity: Array | None = None,
) -> Impact:
    """Resolve an impact in which all bilateral constraints and the contacts `closing` (indices) take part.

    Args:
        dynamics: with inertia and kinematics at the configuration and time of the impact.
        bound: the constraints.
        v: (nv,) before.
        closing: indices of contacts and one-sided rows, ascending.
        solver: of the linear part.
        method: how contacts are solved.
        coefficients: (rows,) of restitution; None: those of the contacts, bilateral rows 0.
        targets: (rows,) prescribed row velocities after; None: 0.
        refuse_inconsistent: raise where bilateral rows contradict each other.
        approach_velocity: (3 k + l,) of an impact without collision, velocities that forces give to the contact rows
            meanwhile.

    Raises:
        InconsistentConstraints: on request, see above.
        ContactNotSolved: no method found a solution.
    """
    contact_set = bound.contacts
    geometry, dynamics.v = contact_set.rows(dynamics, v), v
    contact_rows, all_turning = geometry.J, contact_set.resistance.rows(dynamics, geometry.axes)
    bilateral = bound.bilateral.jacobian(dynamics)
    s_bilateral = bound.bilateral.velocity(dynamics, v, dynamics.t)
    coefficients = _coefficients(bound, None) if coefficients is None else coefficients
    targets = np.zeros(bound.dim) if targets is None else targets
    (bilateral_e, contact_e), (bilateral_target, contact_target) = (
        bound.split(coefficients),
        bound.split(targets),
    )
    rows, normals = contact_set.rows_of(closing), contact_set.normals[closing]
    turning, rolling = contact_set.resistance.of(closing)
    problem = ImpactProblem(
        RobotSystem(dynamics, bilateral, bound.bilateral.members),
        contact_rows[rows],
        contact_set.laws_of(closing),
        v,
        s_bilateral,
        bilateral_e,
        contact_e[normals],
        contact_set.poisson[closing],
        bilateral_target,
        contact_target[normals],
        np.zeros(len(rows)) if approach_velocity is None else approach_velocity[rows],
        all_turning[turning],
        rolling,
    )
    motion, factor = problem.solve(solver, method)
    if refuse_inconsistent:
        check_consistency(problem.system, motion.constraint_residual)
    motion.check_contacts(OPTIONS.tolerable)
    impulse, moment = np.zeros(len(contact_rows)), np.zeros(len(all_turning))
    impulse[rows], moment[turning] = motion.impulse[: len(rows)], motion.impulse[len(rows) :]
    generalised = motion.lam @ bilateral + impulse @ contact_rows + moment @ all_turning
    return Impact(
        read_only(v.copy()),
        read_only(motion.x),
        read_only(bound.rows(motion.lam, impulse)),
        read_only(bound.rows(s_bilateral, contact_rows @ v)),
        read_only(bound.rows(bound.bilateral.velocity(dynamics, motion.x, dynamics.t), contact_rows @ motion.x)),
        factor,
        -0.5 * float((v + motion.x) @ generalised),
        problem.driven(motion),
        dynamics.t,
        read_only(dynamics.q),
        geometry.points,
        geometry.axes,
        bound,
        motion.dynamics_residual,
        motion.constraint_residual,
        approach_velocity is not None,
        read_only(contact_set.resistance.moments(moment, geometry.axes)),
        System(dynamics.M.copy(), np.vstack([bilateral, contact_rows[rows]]), dynamics.robot.inertia_parents),
    )


def bouncing(bound: ConstraintSet, closing: npt.NDArray[np.intp], s_normal: Array, threshold: float) -> Array:
    """Return (rows,) the coefficients of restitution in an impact of `closing`; 0 where it is too slow to bounce.

    Newton's coefficient counts where a contact itself approaches faster than `threshold` [m/s]; Poisson's, which is
    about impulses, wherever anything of the impact does.

    Args:
        bound: the constraints.
        closing: indices of the contacts and one-sided rows that take part.
        s_normal: (k + l,) velocities with which all of them open [m/s, rad/s].
        threshold: [m/s, rad/s].
    """
    contact_set = bound.contacts
    bounces = s_normal < -threshold
    counts = bounces | (contact_set.poisson & bounces[closing].any())
    restitution = contact_set.along_normals(np.where(counts, contact_set.restitution, 0.0))
    return bound.rows(np.zeros(bound.bilateral.dim), restitution)


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


def _coefficients(bound: ConstraintSet, restitution: float | Mapping[str, float] | None) -> Array:
    own = bound.rows(np.zeros(bound.bilateral.dim), bound.contacts.along_normals(bound.contacts.restitution))
    if restitution is None:
        return own
    if isinstance(restitution, Mapping):
        for name, value in restitution.items():
            own[bound.slice(name)] = number(f"restitution of {name!r}", value, 0.0, 1.0)
        return own
    return np.full(bound.dim, number("restitution", restitution, 0.0, 1.0))


def _targets(bound: ConstraintSet, prescribed: Any) -> Array:
    if prescribed is None:
        return np.zeros(bound.dim)
    if isinstance(prescribed, Mapping):
        targets = np.zeros(bound.dim)
        for name, value in prescribed.items():
            rows = bound.slice(name)
            targets[rows] = finite_array(f"row_velocity_plus of {name!r}", value, (rows.stop - rows.start,))
    else:
        targets = finite_array("row_velocity_plus", prescribed, (bound.dim,))
    tangential = np.delete(bound.split(targets)[1], bound.contacts.normals)
    if tangential.any():
        raise InvalidValue(
            "row_velocity_plus of a contact", tangential.tolist(), "0 along the surface: the cone decides"
        )
    return targets

"""Impacts: velocity jumps that satisfy all constraints at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import EXACTLY
from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.dynamics.dynamics import Dynamics, dynamics_at, kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.impact_problem import ImpactProblem
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.robot import WORLD, Robot, checked_state
from constrained_sim.solvers import DEFAULT, RobotSystem, Solver, System, as_solver, check_consistency
from constrained_sim.validation import Array, check_result, finite_array, flag, number, one_or_each, read_only


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
        energy_lost: kinetic energy before minus after [J], ``-(v_minus + v_plus)^T J^T impulse / 2``, with
            the rows of what resists rolling and spinning among those of J. Where the
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
        """What the impact itself turned into heat [J], ``-(s_minus + s_plus)^T impulse / 2`` of all rows."""
        return self.energy_lost + self.driven

    @property
    def rank(self) -> int:
        """Number of independent rows among those that took part, but those of rolling and torsional friction."""
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
            constraints, or by name, one for each row or for all of them; None: 0. Of a contact only the normal one may
            be prescribed, as a lower bound.
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
        law=ImpactLaw(_coefficients(bound, restitution), _targets(bound, row_velocity_plus)),
        refuse_inconsistent=flag("refuse_inconsistent", refuse_inconsistent),
    )
    check_result("impact", impact.v_plus, impact.impulse, impact.energy_lost)
    return impact


class ImpactLaw(NamedTuple):
    """What the rows of an impact obey.

    Attributes:
        coefficients: (rows,) of restitution.
        targets: (rows,) prescribed row velocities after the impact [m/s, rad/s]; None: 0.
        approach_velocity: (3 k + l,) of an impact without collision, velocities that forces give to the contact rows
            meanwhile; None: something collides.
    """

    coefficients: Array
    targets: Array | None = None
    approach_velocity: Array | None = None


def impact_at(
    dynamics: Dynamics,
    bound: ConstraintSet,
    v: Array,
    closing: npt.NDArray[np.intp],
    solver: Solver,
    method: ContactMethod = EXACTLY,
    law: ImpactLaw | None = None,
    refuse_inconsistent: bool = False,
) -> Impact:
    """Resolve an impact in which all bilateral constraints and the contacts `closing` (indices) take part.

    Args:
        dynamics: with inertia and kinematics at the configuration and time of the impact.
        bound: the constraints.
        v: (nv,) before.
        closing: indices of contacts and one-sided rows, ascending.
        solver: of the linear part.
        method: how contacts are solved.
        law: of the rows; None: contacts have their own coefficients, bilateral rows 0.
        refuse_inconsistent: raise where bilateral rows contradict each other.

    Raises:
        InconsistentConstraints: on request, see above.
        ContactNotSolved: no method found a solution.
    """
    contact_set, law = bound.contacts, law or ImpactLaw(_coefficients(bound, None))
    geometry, dynamics.v = contact_set.rows(dynamics, v), v
    rows, (turning, rolling) = contact_set.rows_of(closing), contact_set.resistance.of(closing)
    J, all_turning = geometry.J, contact_set.resistance.rows(dynamics, geometry.axes)
    problem = _problem(dynamics, bound, closing, law, rows, (J[rows], all_turning[turning], rolling))
    motion, factor = problem.solve(solver, method)
    if refuse_inconsistent:
        check_consistency(problem.system, motion.constraint_residual)
    motion.check_contacts(OPTIONS.tolerable)
    bilateral = problem.system.J
    impulse, moment = np.zeros(len(J)), np.zeros(len(all_turning))
    impulse[rows], moment[turning] = motion.impulse[: len(rows)], motion.impulse[len(rows) :]
    s_plus = bound.bilateral.velocity_with(bilateral, dynamics, motion.x, dynamics.t)
    generalised = motion.lam @ bilateral + impulse @ J + moment @ all_turning
    return Impact(
        v_minus=read_only(v.copy()),
        v_plus=read_only(motion.x),
        impulse=read_only(bound.rows(motion.lam, impulse)),
        row_velocity_minus=read_only(bound.rows(problem.s_minus, J @ v)),
        row_velocity_plus=read_only(bound.rows(s_plus, J @ motion.x)),
        restitution_scale=factor,
        energy_lost=-0.5 * float((v + motion.x) @ generalised),
        driven=problem.driven(motion),
        t=dynamics.t,
        q=read_only(dynamics.q),
        points=geometry.points,
        axes=geometry.axes,
        constraints=bound,
        dynamics_residual=motion.dynamics_residual,
        constraint_residual=motion.constraint_residual,
        without_collision=law.approach_velocity is not None,
        moments=read_only(contact_set.resistance.moments(moment, geometry.axes)),
        _system=System(dynamics.M.copy(), np.concatenate([bilateral, J[rows]]), dynamics.robot.inertia_parents),
    )


def _problem(
    dynamics: Dynamics,
    bound: ConstraintSet,
    closing: npt.NDArray[np.intp],
    law: ImpactLaw,
    rows: npt.NDArray[np.int64],
    taking_part: tuple[Array, Array, Array],
) -> ImpactProblem:
    """Return the problem of the contacts and one-sided rows `closing`.

    Args:
        dynamics: see :func:`impact_at`; its velocity is that before the impact.
        bound: the constraints.
        closing: indices of contacts and one-sided rows, ascending.
        law: of the rows.
        rows: (n,) which are those of `closing`.
        taking_part: (n, nv) these rows, (e, nv) those of turning, (d, 6) rolling friction.
    """
    contact_set, v, normals = bound.contacts, dynamics.v, bound.contacts.normals[closing]
    contacts, turning, rolling = taking_part
    bilateral_e, contact_e = bound.split(law.coefficients)
    bilateral_target, contact_target = bound.split(np.zeros(bound.dim) if law.targets is None else law.targets)
    bilateral = bound.bilateral.jacobian(dynamics)
    return ImpactProblem(
        system=RobotSystem(dynamics, bilateral, bound.bilateral.members),
        contacts=contacts,
        laws=contact_set.laws_of(closing),
        v_minus=v,
        s_minus=bound.bilateral.velocity_with(bilateral, dynamics, v, dynamics.t),
        bilateral_restitution=bilateral_e,
        restitution=contact_e[normals],
        poisson=contact_set.poisson[closing],
        bilateral_target=bilateral_target,
        target=contact_target[normals],
        approach_velocity=np.zeros(len(rows)) if law.approach_velocity is None else law.approach_velocity[rows],
        turning=turning,
        rolling=rolling,
    )


def bouncing(bound: ConstraintSet, closing: npt.NDArray[np.intp], s_normal: Array, least: Array | float) -> Array:
    """Return (rows,) the coefficients of restitution in an impact of `closing`; 0 where it is too slow to bounce.

    Newton's coefficient counts where a contact itself approaches faster than that; Poisson's, which is about impulses,
    wherever anything of the impact does.

    Args:
        bound: the constraints.
        closing: indices of the contacts and one-sided rows that take part.
        s_normal: (k + l,) velocities with which all of them open [m/s, rad/s].
        least: approach speeds (k + l,), or one of all, up to which nothing bounces [m/s, rad/s].
    """
    contact_set = bound.contacts
    bounces = s_normal < -least
    counts = bounces | (contact_set.poisson & bounces[closing].any())
    restitution = contact_set.along_normals(np.where(counts, contact_set.restitution, 0.0))
    return bound.rows(np.zeros(bound.bilateral.dim), restitution)


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
            targets[rows] = one_or_each(f"row_velocity_plus of {name!r}", value, rows.stop - rows.start)
    else:
        targets = finite_array("row_velocity_plus", prescribed, (bound.dim,))
    tangential = np.delete(bound.split(targets)[1], bound.contacts.normals)
    if tangential.any():
        raise InvalidValue(
            "row_velocity_plus of a contact", tangential.tolist(), "0 along the surface: the cone decides"
        )
    return targets

"""Constrained forward dynamics: accelerations and constraint forces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from constrained_sim.actuation import actuation_force
from constrained_sim.closed_contacts import ClosedContacts
from constrained_sim.constrained_dynamics import ConstrainedSolution, solve_constrained_dynamics
from constrained_sim.constraints import Constraint, ConstraintStack
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics, dynamics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.robot import WORLD, Robot, checked_state
from constrained_sim.solvers import DEFAULT, RobotSystem, Solver, as_solver, check_consistency
from constrained_sim.stabilization import Baumgarte
from constrained_sim.validation import Array, check_result, flag, number, read_only
from constrained_sim.wrench import Wrench, checked_wrenches, generalised_force


@dataclass(frozen=True, eq=False)
class ConstrainedAcceleration:
    """Result of :func:`constrained_acceleration`; rows are in the order in which the constraints were given.

    Attributes:
        a: (nv,) acceleration [rad/s^2, m/s^2].
        lam: (rows,) constraint forces [N, N m], positive as they push phi up.
        gamma: (rows,) velocity-dependent part of the rows' acceleration [m/s^2, rad/s^2].
        moments: (k, 3) by which the contacts resist rolling and spinning [N m], on their links about their points,
            world axes.
    """

    a: Array
    lam: Array
    gamma: Array
    moments: Array
    _motion: ConstrainedSolution
    _constraints: ConstraintSet
    _state: tuple[Robot, Array, Array, float]

    @property
    def dynamics_residual(self) -> float:
        """``|M a + h - S^T tau - J^T lam|``, relative to the largest term."""
        return self._motion.dynamics_residual

    @property
    def constraint_residual(self) -> float:
        """Largest violation of the bilateral ``J a = b``, relative to its terms: not small where rows contradict.

        What is rounding of what cancels in it counts as none.
        """
        return self._motion.constraint_residual

    @property
    def rank(self) -> int:
        """Number of independent rows among all that were given, but those of rolling and torsional friction."""
        return self._row_space.rank

    @property
    def condition(self) -> float:
        """Condition of the Delassus matrix of all rows over its range: lam is exact to about eps times this."""
        return self._row_space.condition

    def multipliers(self, name: str) -> Array:
        """Return the rows of the constraint or contact `name` [N, N m].

        Raises:
            UnknownName: with the names that exist.
        """
        return self.lam[self._constraints.slice(name)]

    def wrench(self, name: str, link: str, axes: str = WORLD) -> Array:
        """Return (6,) the force [N] and the moment [N m] about the point where it acts, by `name` on `link`.

        Args:
            name: constraint or contact.
            link: the link that is acted on.
            axes: ``"world"``, or a link whose axes to use.

        Raises:
            UnknownName: no such constraint, or one that does not act on this link.
        """
        return self._constraints.wrench(self._dynamics, name, self.multipliers(name), link, axes, self.moments)

    @cached_property
    def _dynamics(self) -> Dynamics:
        return Dynamics.at(*self._state)

    @cached_property
    def _row_space(self) -> RowSpace:
        dynamics, bound = self._dynamics, self._constraints
        J = bound.rows_jacobian(bound.bilateral.jacobian(dynamics), bound.contacts.rows(dynamics, dynamics.v).J)
        return RobotSystem(dynamics, J).row_space


def constrained_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    constraints: Iterable[Constraint],
    solver: str | Solver = DEFAULT,
    stabilization: Baumgarte | None = None,
    t: float = 0.0,
    wrenches: Iterable[Wrench] = (),
    refuse_inconsistent: bool = False,
    actuation: Any = None,
) -> ConstrainedAcceleration:
    """Solve ``M a + h = S^T tau + J_ext^T w + J^T lam`` with ``J a = -gamma - feedback`` and the contact laws.

    A contact that is passed counts as closed; its rows obey ``0 <= J_n a + gamma_n _|_ lam_n >= 0`` and Coulomb's law
    (with the direction of the present slip, where it slips). Of a joint limit and of other one-sided constraints, the
    rows at their bound (``phi <= 1e-8``) that do not leave it (``s <= 1e-9``) count as closed. A soft contact gives the
    force of its law, with no tangential deflection of its spring yet. Damping, dry friction and springs of joints act
    in simulations only.

    Args:
        robot: the robot; its own constraints are added to those given.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nu,) efforts of ``robot.actuated_joints`` [N m, N]; not limited here.
        constraints: bilateral constraints and contacts.
        solver: a name in ``SOLVERS``, or a configured solver.
        stabilization: feedback on ``phi`` and ``s`` of bilateral and normal rows; None: none. With it, a unilateral
            row pushes only where ``phi <= 0`` and ``s <= -phi / eps``, and 0 is the least value of
            ``alpha = J a + gamma + 2 / eps s + phi / eps^2``. (Tedrake's last equation of sec. 3.1 prints the two
            terms of the feedback with a minus; by the definition of alpha above it they are added.)
        t: time, for constraints that depend on it [s].
        wrenches: external forces.
        refuse_inconsistent: raise where bilateral rows contradict each other, instead of the least-squares motion.
        actuation: B (nv, k), with ``B tau`` in place of ``S^T tau``, tau (k,); None: ``S^T``.

    Returns:
        a (nv,) and lam (rows,), with residuals: a :class:`~constrained_sim.forward_dynamics.ConstrainedAcceleration`.

    Raises:
        InvalidValue: wrong lengths, NaN or infinity, or a stabilization of another kind.
        UnknownName: a link, joint or solver that does not exist.
        NotSupported: a constraint that the solver cannot do.
        InconsistentConstraints: on request, see above.
        NonFiniteMotion: values so large that the result is not finite.
        ContactNotSolved: the contact problem has no solution that could be found (Painleve's paradox among others).

    Source: RBDL, module Contacts, ForwardDynamicsContacts*; Tedrake, Drake implementation of rigid body dynamics
    algorithms with constraints, sec. 1 and 3.1.
    """
    (q, v), solver = checked_state(robot, q, v), as_solver(solver)
    if not (stabilization is None or isinstance(stabilization, Baumgarte)):
        raise InvalidValue("stabilization", stabilization, "None or a Baumgarte")
    bound, wrenches = ConstraintSet.bind(robot, q, constraints), checked_wrenches(wrenches)
    solver.check(bound.declarations)
    for name in () if stabilization is None else stabilization.each:
        bound.slice(name)
    dynamics = dynamics_at(robot, q, v, number("t", t))
    contacts = ClosedContacts.at(bound.contacts, dynamics, stabilization)
    force = generalised_force(robot, dynamics, wrenches) - dynamics.h + contacts.effort
    force += actuation_force(robot, tau, actuation)
    J, gamma, b = acceleration_rows(bound.bilateral, dynamics, stabilization)
    system = RobotSystem(dynamics, J, bound.bilateral.members)
    refuse_inconsistent = flag("refuse_inconsistent", refuse_inconsistent)
    motion = solve_constrained_dynamics(solver, system, force, b, contacts.rows)
    if refuse_inconsistent:
        check_consistency(system, motion.constraint_residual)
    motion.check_contacts()
    forces, moments = contacts.forces_and_moments(motion.impulse)
    lam, all_gamma = bound.rows(motion.lam, forces), bound.rows(gamma, contacts.gamma)
    check_result("constrained acceleration", motion.x, lam, all_gamma)
    state = robot, q, v, dynamics.t
    results = read_only(motion.x), read_only(lam), read_only(all_gamma), read_only(moments)
    return ConstrainedAcceleration(*results, motion, bound, state)


def acceleration_rows(
    bilateral: ConstraintStack, dynamics: Dynamics, stabilization: Baumgarte | None
) -> tuple[Array, Array, Array]:
    """Return J (m, nv), gamma (m,) and ``b = -gamma - feedback`` (m,) of bilateral rows at the state of `dynamics`."""
    J, gamma = bilateral.jacobian(dynamics), bilateral.gamma(dynamics)
    if stabilization is None:
        return J, gamma, -gamma
    s = bilateral.velocity_with(J, dynamics, dynamics.v, dynamics.t)
    stabilization = stabilization.for_rows(bilateral.row_names)
    return J, gamma, -gamma - stabilization.feedback(bilateral.phi(dynamics), s, bilateral.is_position_level)

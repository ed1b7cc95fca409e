"""Constrained forward dynamics: accelerations and constraint forces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint import BoundConstraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.drift import Baumgarte
from constrained_sim.dynamics import Dynamics
from constrained_sim.exceptions import ContactNotSolved, UnknownName
from constrained_sim.motion import ContactRows, Motion, robot_system, solve_motion
from constrained_sim.robot import WORLD, Robot
from constrained_sim.solvers import Solver, as_solver
from constrained_sim.validation import Array, finite_array, number, read_only
from constrained_sim.wrench import Wrench, generalised_force

SLIP_SPEED = 1e-9


@dataclass(frozen=True, eq=False)
class ConstrainedAcceleration:
    """Result of :func:`constrained_acceleration`; rows are in the order in which the constraints were given.

    Attributes:
        a: (nv,) acceleration [rad/s^2, m/s^2].
        lam: (rows,) constraint forces [N, N m], positive as they push phi up.
        gamma: (rows,) velocity-dependent part of the rows' acceleration [m/s^2, rad/s^2].
    """

    a: Array
    lam: Array
    gamma: Array
    _motion: Motion
    _constraints: ConstraintSet
    _dynamics: Dynamics

    @property
    def dynamics_residual(self) -> float:
        """``|M a + h - S^T tau - J^T lam|``, relative to the largest term."""
        return self._motion.dynamics_residual

    @property
    def constraint_residual(self) -> float:
        """Largest violation of the bilateral ``J a = b``, relative to its terms: not small where rows contradict."""
        return self._motion.constraint_residual

    @cached_property
    def rank(self) -> int:
        """Number of independent rows among all that were given."""
        dynamics, contacts = self._dynamics, self._constraints.contacts
        contact_rows = contacts.rows(dynamics, np.zeros_like(self.a)).J
        J = np.vstack([self._constraints.bilateral.jacobian(dynamics), contact_rows])
        return robot_system(dynamics, dynamics.q, dynamics.M, J).row_space.rank

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
        member, rows = self._constraints.member(name), self.multipliers(name)
        if isinstance(member, BoundConstraint):
            wrench = member.wrench(self._dynamics, rows, link)
        elif link == member.declaration.link:
            wrench = np.concatenate([rows @ member.declaration.surface.axes, np.zeros(3)])
        else:
            raise UnknownName(f"link of contact {name!r}", link, [member.declaration.link])
        robot = self._dynamics.robot
        joint, placement = robot.link_placement(axes)
        rotation = self._dynamics.placements[joint][:3].T @ placement.rotation
        return np.concatenate([rotation.T @ wrench[:3], rotation.T @ wrench[3:]])


def constrained_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    constraints: Iterable[Constraint],
    solver: str | Solver = "direct",
    stabilization: Baumgarte | None = None,
    t: float = 0.0,
    wrenches: Iterable[Wrench] = (),
) -> ConstrainedAcceleration:
    """Solve ``M a + h = S^T tau + J_ext^T w + J^T lam`` with ``J a = -gamma - feedback`` and the contact laws.

    A contact that is passed counts as closed; its rows obey ``0 <= J_n a + gamma_n _|_ lam_n >= 0`` and Coulomb's law
    (with the direction of the present slip, where it slips).

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nu,) efforts of ``robot.actuated_joints`` [N m, N]; not limited here.
        constraints: bilateral constraints and contacts.
        solver: a name in ``SOLVERS``, or a configured solver.
        stabilization: feedback on ``phi`` and ``s`` of bilateral and normal rows; None: none.
        t: time, for constraints that depend on it [s].
        wrenches: external forces.

    Raises:
        InvalidValue: wrong lengths, NaN or infinity.
        UnknownName: a link, joint or solver that does not exist.
        ContactNotSolved: the contact problem has no solution that could be found (Painleve's paradox among others).

    Source: RBDL, module Contacts, ForwardDynamicsContacts*; Tedrake, Drake implementation of rigid body dynamics
    algorithms with constraints, sec. 1 and 3.1.
    """
    q, v = robot.checked_configuration(q), finite_array("v", v, (robot.nv,))
    bound = ConstraintSet.bind(robot, q, constraints)
    dynamics = Dynamics.at(robot, q, v, number("t", t))
    force = generalised_force(robot, dynamics, wrenches) - dynamics.h
    force[robot.actuation] += finite_array("tau", tau, (robot.nu,))
    J, gamma = bound.bilateral.jacobian(dynamics), bound.bilateral.gamma(dynamics)
    b: Array = -gamma
    if stabilization is not None:
        s, is_position_level = bound.bilateral.velocity(dynamics, v, t), bound.bilateral.is_position_level
        b = b - stabilization.feedback(bound.bilateral.phi(dynamics), s, is_position_level)
    contact_gamma = bound.contacts.gamma(dynamics)
    contacts = _contact_rows(bound, dynamics, v, contact_gamma, stabilization)
    system = robot_system(dynamics, q, dynamics.M, J)
    motion = solve_motion(as_solver(solver), system, force, b, contacts, "newton")
    if motion.contact is not None and not motion.contact.converged:
        raise ContactNotSolved(motion.contact.residual)
    lam, all_gamma = bound.rows(motion.lam, motion.impulse), bound.rows(gamma, contact_gamma)
    return ConstrainedAcceleration(read_only(motion.x), read_only(lam), read_only(all_gamma), motion, bound, dynamics)


def _contact_rows(
    bound: ConstraintSet, dynamics: Dynamics, v: Array, gamma: Array, stabilization: Baumgarte | None
) -> ContactRows:
    table = bound.contacts
    _, gaps, J, velocities = table.rows(dynamics, v)
    s = velocities.reshape(-1, 3)
    offset = gamma.copy()
    if stabilization is not None:
        offset[2::3] += stabilization.feedback(gaps, s[:, 2])
    speed = np.linalg.norm(s[:, :2], axis=1, keepdims=True)
    slips = (speed > SLIP_SPEED) & np.isfinite(table.friction)[:, None]
    return ContactRows(J, offset, table.friction, np.where(slips, s[:, :2] / np.where(slips, speed, 1.0), 0.0))

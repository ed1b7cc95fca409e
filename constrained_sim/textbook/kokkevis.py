"""Kokkevis' system: accelerations of the constraint rows under forces on them, without joint-space inertia."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from constrained_sim.actuation import actuation_matrix
from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.robot import Robot, checked_state
from constrained_sim.solvers import RobotSystem
from constrained_sim.validation import Array, finite_array, number
from constrained_sim.wrench import Wrench, checked_wrenches, generalised_force


class KokkevisSystem(NamedTuple):
    """``vdot = Phi f + phi``: with vdot = 0 solved for the forces f.

    Attributes:
        Phi: (m, m) acceleration of each row per unit of force on each: the Delassus matrix.
        phi: (m,) acceleration of the rows without forces on them [m/s^2, rad/s^2].
    """

    Phi: Array
    phi: Array


def kokkevis_system(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    constraints: Iterable[Constraint],
    t: float = 0.0,
    wrenches: Iterable[Wrench] = (),
    actuation: Any = None,
) -> KokkevisSystem:
    """Return Phi and phi of all rows, each column from one pass of the articulated-body algorithm with a test force.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (k,) efforts.
        constraints: bilateral constraints, and contacts with all three rows.
        t: time, for constraints that depend on it [s].
        wrenches: external forces.
        actuation: B (nv, k); None: ``S^T``.

    Raises:
        InvalidValue: wrong lengths, NaN or infinity.
        UnknownName: a link or joint that does not exist.

    Source: RBDL, module Contacts, ForwardDynamicsContactsKokkevis; Kokkevis and Metaxas, Practical Physics for
    Articulated Characters, 2004.
    """
    q, v = checked_state(robot, q, v)
    bound = ConstraintSet.bind(robot, q, constraints)
    dynamics = Dynamics.at(robot, q, v, number("t", t))
    geometry, B = bound.contacts.rows(dynamics, v), actuation_matrix(robot, actuation)
    J = bound.rows_jacobian(bound.bilateral.jacobian(dynamics), geometry.J)
    gamma = bound.rows(bound.bilateral.gamma(dynamics), bound.contacts.gamma(dynamics, geometry))
    force = B @ finite_array("tau", tau, (B.shape[1],)) - dynamics.h
    force += generalised_force(robot, dynamics, checked_wrenches(wrenches))
    system = RobotSystem(dynamics, J)
    return KokkevisSystem(J @ system.respond(J).T, J @ system.respond(force[None])[0] + gamma)

"""Matrices of a robot and its constraints at one state, for the user's own solvers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import dynamics_at
from constrained_sim.robot import Robot, checked_state
from constrained_sim.validation import Array, check_result, number, read_only


class ConstraintSystem(NamedTuple):
    """The terms of ``M a + h = S^T tau + J^T lam`` with ``s = J v + phi_t`` and ``ds/dt = J a + gamma``.

    Rows are in the order in which the constraints were given; of a contact [t1, t2, n].

    Attributes:
        M: (nv, nv) joint-space inertia.
        h: (nv,) Coriolis, centrifugal and gravity forces [N m, N].
        J: (rows, nv).
        gamma: (rows,) velocity-dependent part of the rows' acceleration [m/s^2, rad/s^2].
        phi: (rows,) violations [m, rad]: of a contact its gap in the normal row; 0 of tangential rows, and of rows at
            velocity level.
        s: (rows,) row velocities [m/s, rad/s].
        slices: the rows of each constraint and contact, by name.
    """

    M: Array
    h: Array
    J: Array
    gamma: Array
    phi: Array
    s: Array
    slices: dict[str, slice]


def constraint_system(
    robot: Robot, q: Any, v: Any, constraints: Iterable[Constraint], t: float = 0.0
) -> ConstraintSystem:
    """Return inertia, bias forces and constraint rows at (q, v), whether the rows are active there or not.

    ``solve_kkt(M, J, S^T tau - h, -gamma)`` is the acceleration with all rows held, and ``solve_kkt(M, J, M v, 0)`` the
    velocity after all of them have become active.

    Args:
        robot: the robot; its own constraints follow those given.
        q: (nq,) configuration.
        v: (nv,) velocity.
        constraints: bilateral constraints and contacts.
        t: time, for constraints that depend on it [s].

    Raises:
        InvalidValue: wrong lengths, NaN or infinity.
        UnknownName: a link or joint that does not exist.
        NonFiniteMotion: values so large that the result is not finite.

    Source: RBDL, module Contacts, CalcContactSystemVariables and CalcContactJacobian (its gamma is ours with the
    opposite sign).
    """
    q, v = checked_state(robot, q, v)
    bound = ConstraintSet.bind(robot, q, constraints)
    dynamics = dynamics_at(robot, q, v, number("t", t))
    bilateral, contacts = bound.bilateral, bound.contacts
    geometry = contacts.rows(dynamics, v)
    found = ConstraintSystem(
        read_only(dynamics.M.copy()),
        read_only(dynamics.h.copy()),
        read_only(bound.rows_jacobian(bilateral.jacobian(dynamics), geometry.J)),
        read_only(bound.rows(bilateral.gamma(dynamics), contacts.gamma(dynamics, geometry))),
        read_only(bound.rows(bilateral.phi(dynamics), contacts.along_normals(geometry.all_gaps))),
        read_only(bound.rows(bilateral.velocity(dynamics, v, dynamics.t), geometry.s)),
        dict(bound.slices),
    )
    check_result("constraint system", *found[:-1])
    return found

"""Check that the functions of a constraint fit together: J, s and gamma against differences of phi and s."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from constrained_sim.constraints.constraint import BoundConstraint, Constraint
from constrained_sim.dynamics.dynamics import Dynamics, integrate
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue, WrongDerivative
from constrained_sim.robot import Robot, checked_state
from constrained_sim.user_functions import is_of_user
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array, instance, number, read_only

STEP = 1e-4
"""[rad, m, s] Of the differences, of fourth order: exact to 1e-12 for what changes within a hundredth or more."""

ROUNDING = 1e-8
"""What rounding may make of a difference that is zero, in SI units: 1e-12 of phi, divided by the step."""

TOLERANCE = 1e-4
"""Relative error up to which a derivative is right; users' own differences of first order are."""


class Derivative(NamedTuple):
    """A derivative as a constraint gives it, and by differences.

    Attributes:
        given: what the constraint's function returned.
        found: what differences give, of the same shape.
        error: largest difference between the two, relative to the size of the terms; what differences may be wrong by
            counts for the constraint.
    """

    given: Array
    found: Array
    error: float

    @property
    def is_right(self) -> bool:
        """Whether the two agree."""
        return self.error <= TOLERANCE


@dataclass(frozen=True, eq=False)
class ConstraintCheck:
    """Result of :func:`check_constraint`.

    Attributes:
        name: of the constraint.
        jacobian: (dim, nv) J against differences of phi along the velocities; at velocity level of psi.
        velocity: (dim,) s against the rate of phi along the motion; at velocity level there is nothing to compare.
        gamma: (dim,) against the rate of s along the motion without acceleration [m/s^2, rad/s^2].
    """

    name: str
    jacobian: Derivative
    velocity: Derivative
    gamma: Derivative

    @property
    def consistent(self) -> bool:
        """Whether all functions of the constraint fit together."""
        return not self.wrong

    @property
    def wrong(self) -> dict[str, Derivative]:
        """The derivatives that do not fit, by the name of the function."""
        every = {"jacobian": self.jacobian, "velocity": self.velocity, "gamma": self.gamma}
        return {function: derivative for function, derivative in every.items() if not derivative.is_right}


def check_constraint(robot: Robot, constraint: Constraint, q: Any, v: Any, t: float = 0.0) -> ConstraintCheck:
    """Compare the functions of a constraint with differences of each other, near (q, v) and `t`.

    ``dphi/dt = J v + phi_t = s`` and ``ds/dt = J a + gamma``; at velocity level ``J = dpsi/dv``. A Jacobian that is not
    the derivative of phi makes a constraint drift, a wrong gamma makes it drift more slowly. Take a velocity of which
    all entries differ from zero: at rest, gamma is zero whatever it should be.

    Args:
        robot: the robot.
        constraint: with rows; no contact.
        q: (nq,) configuration.
        v: (nv,) velocity.
        t: time [s]; differences reach from there to ``t + 4e-4``.

    Raises:
        InvalidValue: wrong lengths, NaN or infinity, or a contact.
        UnknownName: a link or joint that does not exist.
    """
    q, v = checked_state(robot, q, v)
    instance("constraint", constraint, Constraint, "an instance of a class in CONSTRAINTS")
    bound = constraint.bind(robot, q)
    if not isinstance(bound, BoundConstraint):
        raise InvalidValue("constraint", constraint, "one whose rows are functions: a contact's are its own")
    return check_bound(robot, bound, q, v, number("t", t))


def check_bound(robot: Robot, bound: BoundConstraint, q: Array, v: Array, t: float) -> ConstraintCheck:
    """Do what :func:`check_constraint` does for a constraint that is bound."""
    middle, dynamics = t + 2.0 * STEP, Dynamics(robot)  # so that no function is asked about times before t

    def at(x: Array, velocity: Array, since: float) -> Dynamics:
        dynamics.update(integrate(robot, q, x), velocity, middle + since)
        return dynamics

    def phi(x: Array, since: float = 0.0) -> Array:
        return bound.phi(at(x, v, since))

    def s(x: Array, velocity: Array, since: float = 0.0) -> Array:
        return bound.velocity(at(x, velocity, since), velocity, middle + since)

    rest = np.zeros(robot.nv)
    here = at(rest, v, 0.0)
    J, velocity, gamma = bound.jacobian(here).copy(), bound.velocity(here, v, middle), bound.gamma(here)
    along = (lambda h, e: phi(h * e)) if bound.is_position_level else (lambda h, e: s(rest, v + h * e))
    columns = zip(*(difference_of(partial(along, e=e)) for e in np.eye(robot.nv)), strict=True)
    found, doubt = (np.array(part).T for part in columns)
    rates = difference_of(lambda h: phi(h * v, h)) if bound.is_position_level else (velocity, np.zeros(bound.dim))
    largest, speed = np.abs(J).max(axis=1), np.abs(v).max()
    return ConstraintCheck(
        bound.name,
        _compared(J, found, doubt, largest[:, None]),
        _compared(velocity, *rates, largest * speed),
        _compared(gamma, *difference_of(lambda h: s(h * v, v, h)), largest * speed * max(speed, 1.0)),
    )


def warn_of_wrong_derivatives(robot: Robot, bound: BoundConstraint, q: Array, v: Array, t: float) -> None:
    """Warn of a function of a constraint that does not fit: of the Jacobian first, of which the others may follow.

    What cannot be asked here is left alone.
    """
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check = check_bound(robot, bound, q, v, t)
    except Exception as error:
        if is_of_user(error) or isinstance(error, ConstrainedSimError):
            return
        raise
    for function, (given, found, _) in list(check.wrong.items())[:1]:
        row, *place = np.unravel_index(int(np.argmax(np.abs(given - found))), given.shape)
        entry = f", {robot.velocity_names[int(place[0])]!r}" if place else ""
        where = f"row {int(row)}{entry}"
        values = float(given[(row, *place)]), float(found[(row, *place)])
        warn(WrongDerivative(bound.name, function, where, *values))


def difference_of(function: Callable[[float], Array]) -> tuple[Array, Array]:
    """Return the derivative of `function` at 0 by differences of fourth order, and what these may be wrong by.

    The doubt is their distance from differences of second order, and the fourth difference over the step: of order
    ``STEP^3`` where the function is smooth, and more than the error where it jumps within the differences, as the
    logarithm of a rotation does at half a turn.
    """
    before, here, after = function(-STEP), function(0.0), function(STEP)
    far_before, far_after = function(-2.0 * STEP), function(2.0 * STEP)
    found = (8.0 * (after - before) - (far_after - far_before)) / (12.0 * STEP)
    jump = far_before - 4.0 * before + 6.0 * here - 4.0 * after + far_after
    return found, np.abs(found - (after - before) / (2.0 * STEP)) + np.abs(jump) / STEP + ROUNDING


def _compared(given: Array, found: Array, doubt: Array, size: Array) -> Derivative:
    """Return both, and their largest difference relative to the `size` of the terms and to themselves."""
    scale = np.maximum(np.maximum(np.abs(given), np.abs(found)), size)
    difference = np.maximum(np.abs(given - found) - doubt, 0.0)
    error = np.divide(difference, scale, out=np.zeros_like(difference), where=scale > 0.0)
    return Derivative(read_only(given), read_only(found), float(error.max(initial=0.0)))

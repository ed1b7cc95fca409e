"""Lemke's method for contacts with friction: pyramids in the place of cones, refined around the forces found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from constrained_sim.contact_solvers.active_set_newton import newton
from constrained_sim.contact_solvers.complementarity import LinearComplementarity
from constrained_sim.contact_solvers.natural_map import error_of
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.problem import ContactProblem
from constrained_sim.contact_solvers.rolling_rows import COEFFICIENT, CONTACT, DIRECTION, RADIUS, SIZE
from constrained_sim.exceptions import ContactNotSolved
from constrained_sim.validation import Array

AROUND = np.linspace(0.0, 1.5 * np.pi, 4)
"""[rad] Directions of friction to begin with; later on they are counted from the force that was found."""

BESIDE = np.array([-4.0, -1.0, 1.0, 4.0])
"""Further directions then, in units of a spread."""


def pivoting(problem: ContactProblem, impulse: Array, tolerance: float, budget: int) -> tuple[Array, float, int]:
    """Solve by complementary pivoting, whose path goes on around the turns at which others end.

    Where a contact begins to slip, a path of solutions (of contacts less and less soft, or from inside all cones) may
    turn back, and every method that follows it in steps stays there. The path of pivots ends at a solution wherever it
    exists for whatever the robot may push against. Without friction one linear complementarity problem is exact. With
    it, a few directions span the friction of each contact, a pyramid inside the cone; they are chosen again around the
    force that was found, closer to each other unless that was beyond them, up to `budget` times. Newton's method ends
    it. It always begins anew.

    Sources: Stewart and Trinkle, An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and
    Coulomb friction, 1996; Anitescu and Potra, Formulating dynamic multi-rigid-body contact problems with friction as
    solvable linear complementarity problems, 1997.
    """
    rolling, scaled = list(_moments(problem)), problem.scaled
    fans, done = [_Fan()] * len(rolling), 0
    best, least = impulse, np.inf
    for _ in range(budget):
        try:
            r = _Pyramids(problem, scaled.p, rolling, [fan.directions for fan in fans]).solve()
        except ContactNotSolved:
            break
        found, error, steps = newton(scaled, r, tolerance, OPTIONS.newton_steps)
        done += 1 + steps
        if error < least:
            best, least = found, error
        if least <= tolerance or not rolling:
            break
        fans = [fan.around(r[moment.rows]) for fan, moment in zip(fans, rolling, strict=True)]
    return (best, least, done) if done else (impulse, error_of(scaled, impulse), 0)


class _Moment(NamedTuple):
    """Rows whose impulse is at most ``coefficient r_n + radius`` long; the contact's normal impulse is r_n."""

    rows: slice
    contact: int
    coefficient: float
    radius: float
    motion: Array
    """Direction that they oppose; zero where the motion is to be found."""


class _Bound(NamedTuple):
    """``sum of variables <= most + coefficient r_n``."""

    variables: slice
    most: float
    contact: int
    coefficient: float


def _moments(problem: ContactProblem) -> Iterator[_Moment]:
    """Yield what bounds the tangential rows of contacts with friction, and the rows of rolling friction."""
    for c, (coefficient, slip) in enumerate(zip(problem.friction, problem.slip, strict=True)):
        if coefficient > 0.0:
            yield _Moment(slice(3 * c, 3 * c + 2), c, min(coefficient, OPTIONS.strong_friction), 0.0, slip)
    for moment, rows in zip(problem.rolling, problem.rolling_slices, strict=True):
        motion = moment[DIRECTION : DIRECTION + int(moment[SIZE])]
        coefficient = min(moment[COEFFICIENT], OPTIONS.strong_friction)
        yield _Moment(rows, int(moment[CONTACT]), coefficient, moment[RADIUS], motion)


class _Fan(NamedTuple):
    """Directions of friction: around a `middle` [rad], and more beside it in units of `spread`, unless that is 0."""

    middle: float = 0.0
    spread: float = 0.0

    @property
    def directions(self) -> Array:
        """All of them [rad]."""
        return self.middle + (np.concatenate([AROUND, self.spread * BESIDE]) if self.spread else AROUND)

    def around(self, force: Array) -> _Fan:
        """Return the next, around a `force` (2,): finer, but where the force is at the edge of these; or the first."""
        if len(force) < 2 or not force.any():
            return _Fan()
        middle = float(np.arctan2(force[1], force[0]))
        turned = abs(np.remainder(middle - self.middle + np.pi, 2.0 * np.pi) - np.pi)
        if not self.spread:
            return _Fan(middle, OPTIONS.spread)
        return _Fan(middle, self.spread if turned > 2.0 * self.spread else self.spread / OPTIONS.refinement)


class _Pyramids:
    """The problem in which friction has a few directions only, a linear complementarity problem.

    ``r = E z + offset``, with variables z >= 0 that are complementary to velocities ``S^T (G r + b)``: the normal
    impulses, the parts of friction along each direction, the distances of box rows from a bound. For each limit of
    a sum of these there is one more variable, which adds to the velocities of all: the speed of the slip.
    """

    def __init__(self, problem: ContactProblem, scale: Array, rolling: list[_Moment], directions: list[Array]) -> None:
        """Let friction act along `directions` [rad], for each of them."""
        self._problem, self._sizes = problem, np.sqrt(scale)
        rows, contacts = np.eye(len(problem.b)), len(problem.friction)
        self._offset = np.zeros(len(rows))
        self._columns: list[Array] = []
        self._units: list[float] = []
        self._bounds: list[_Bound] = []
        for row in range(2, 3 * contacts, 3):
            self._add(rows[row], row)
        self._meant = np.array(self._columns).reshape(contacts, len(rows))
        for moment, angles in zip(rolling, directions, strict=True):
            if moment.motion.any():
                self._columns[moment.contact][moment.rows] = -moment.coefficient * moment.motion
                self._offset[moment.rows] = -moment.radius * moment.motion
                continue
            is_flat = moment.rows.stop - moment.rows.start > 1
            along = np.column_stack([np.cos(angles), np.sin(angles)]) if is_flat else np.array([[1.0], [-1.0]])
            parts = self._add(along @ rows[moment.rows], moment.rows.start)
            self._limit(parts, moment.radius, moment.contact, moment.coefficient)
        for row, (low, high) in enumerate(zip(problem.lower, problem.upper, strict=True), 3 * contacts):
            signs = [1.0] if np.isfinite(low) else [-1.0] if np.isfinite(high) else [1.0, -1.0]
            self._offset[row] = low if np.isfinite(low) else high if np.isfinite(high) else 0.0
            self._limit(self._add(np.outer(signs, rows[row]), row), high - low)

    def solve(self) -> Array:
        """Return r (n,).

        Raises:
            ContactNotSolved: the pivots end at a ray.
        """
        E, G, count = np.array(self._columns).T, self._problem.G, len(self._columns)
        S = np.hstack([self._meant.T, E[:, len(self._meant) :]])
        A = np.zeros((count + len(self._bounds), count + len(self._bounds)))
        A[:count, :count] = S.T @ G @ E
        q = np.concatenate([S.T @ (G @ self._offset + self._problem.b), [bound.most for bound in self._bounds]])
        for row, bound in enumerate(self._bounds, count):
            A[bound.variables, row], A[row, bound.variables] = 1.0, -1.0
            A[row, bound.contact] += bound.coefficient
        unit = np.array([*self._units, *(1.0 / self._units[bound.variables.start] for bound in self._bounds)])
        z = unit * LinearComplementarity(unit[:, None] * A * unit, unit * q).solve()
        return np.asarray(E @ z[:count] + self._offset)

    def _add(self, columns: Array, row: int) -> slice:
        """Add variables that act along `columns`, as large as the impulses of `row`; return which they are."""
        begin = len(self._columns)
        self._columns += [column.copy() for column in np.atleast_2d(columns)]
        self._units += [self._sizes[row]] * (len(self._columns) - begin)
        return slice(begin, len(self._columns))

    def _limit(self, variables: slice, most: float, contact: int = 0, coefficient: float = 0.0) -> None:
        """Bound the sum of `variables`, unless it may be infinite."""
        if np.isfinite(most):
            self._bounds.append(_Bound(variables, most, contact, coefficient))

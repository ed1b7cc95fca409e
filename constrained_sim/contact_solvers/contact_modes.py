"""Which contacts stay closed, stick or slide, turn or do not turn, and which joints rub, between two events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact.contact_set import ContactTable
from constrained_sim.contact_solvers.problem import STRONG, no_values
from constrained_sim.contact_solvers.rolling_rows import COEFFICIENT, CONTACT, SIZE
from constrained_sim.contact_solvers.status import OPEN, STICKING
from constrained_sim.validation import Array

SLIP_SPEED = 1e-9
"""Speed [m/s, rad/s] below which a contact or a joint is at rest."""

STOP_SPEED = 1e-11
"""Speed [m/s, rad/s] at which slip, or turning, has come to its end."""

ONSET_SPEED = 1e-6
"""Speed [m/s, rad/s] up to which what begins to slip or to turn does so along its acceleration: its direction follows
forces at a rate that is inverse to the speed, too fast for an explicit integrator."""


class FrictionDiscs(NamedTuple):
    """What opposes motion at contacts: friction along the surface, resistance to rolling, resistance to spinning.

    Each has one or two rows, among those of the table and, after these, the ones that turn; its force or moment r obeys
    ``|r| <= c r_n``, and ``r = -c r_n u / |u|`` where it moves, as :mod:`~constrained_sim.contact_solvers.rolling_rows`
    explains.

    Attributes:
        contact: (f,) place of the contact in the table.
        normal: (f,) its normal row.
        rows: (f, 2); the only one twice where there is but one.
        paired: (f,) whether there are two.
        coefficient: (f,) c, of friction [1] or of a moment [m]; infinite where nothing slips.
    """

    contact: npt.NDArray[np.intp]
    normal: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    paired: npt.NDArray[np.bool_]
    coefficient: Array

    @classmethod
    def of(cls, table: ContactTable) -> FrictionDiscs:
        """Return those of all contacts: friction of each first, then all that resists turning."""
        k, turning = len(table.members), table.resistance.discs
        contact = np.concatenate([np.arange(k), turning[:, CONTACT].astype(np.intp)])
        size = turning[:, SIZE].astype(np.intp)
        last = table.dim + np.cumsum(size) - 1
        rows = np.concatenate([3 * np.arange(k)[:, None] + [0, 1], np.stack([last - size + 1, last], axis=1)])
        coefficient = np.concatenate([table.friction, turning[:, COEFFICIENT]])
        return cls(contact, 3 * contact + 2, rows, rows[:, 0] < rows[:, 1], coefficient)

    def take(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> FrictionDiscs:
        """Return some of them."""
        return FrictionDiscs(
            self.contact[which], self.normal[which], self.rows[which], self.paired[which], self.coefficient[which]
        )

    def among(self, rows: npt.NDArray[np.intp]) -> FrictionDiscs:
        """Return the same where only `rows`, ascending, are left of all rows."""
        return self._replace(normal=np.searchsorted(rows, self.normal), rows=np.searchsorted(rows, self.rows))

    def components(self, values: Array) -> Array:
        """Return (f, 2) of the `values` of all rows those of each; the second is zero where there is but one row."""
        components = values[self.rows]
        components[~self.paired, 1] = 0.0
        return components

    def lengths(self, values: Array) -> Array:
        """Return (f,) the lengths of the components."""
        return np.hypot(*self.components(values).T)

    def margins(self, forces: Array) -> Array:
        """Return (f,) ``c r_n - |r|`` for the `forces` of all rows: how far they are inside their bounds."""
        return self.coefficient * forces[self.normal] - self.lengths(forces) if len(self.normal) else no_values()


@dataclass(frozen=True, eq=False)
class Mode:
    """What holds until the next event: then the equations of motion are linear in all forces.

    Rows are those of the table, then those that turn.

    Attributes:
        table: of the contacts.
        closed: (c,) places in the table of the contacts and limits that stay closed, ascending.
        discs: friction of the closed contacts, along the surface and against turning.
        holds: (f,) which of it holds: its rows stay at rest.
        direction: (f, 2) unit direction in which a contact began to slip or to turn, or does so at the beginning of the
            mode; zero of what holds.
        begins: (f,) what moves from rest.
        rubs: (d,) direction in which a joint with dry friction moves, +1 or -1; 0 where it is held.
        push: (3 k + l + e,) forces and moments of all rows at its beginning. Where those of least norm lie outside
            their cones, indeterminate ones stay near these.
        grip: (d,) efforts of dry joint friction at its beginning.
    """

    table: ContactTable
    closed: npt.NDArray[np.intp]
    discs: FrictionDiscs
    holds: npt.NDArray[np.bool_]
    direction: Array
    begins: npt.NDArray[np.bool_]
    rubs: Array
    push: Array
    grip: Array

    @classmethod
    def of(
        cls,
        table: ContactTable,
        candidates: npt.NDArray[np.intp],
        status: npt.NDArray[np.int64],
        push: Array,
        grip: Array,
        s: Array,
        moving: Array,
    ) -> Mode:
        """Return the mode that a solution at acceleration level tells.

        Args:
            table: of the contacts.
            candidates: (c,) places of what might stay closed.
            status: of these, of the joints with dry friction, and of the discs of turning contacts.
            push: (3 k + l + e,) forces and moments of the rows.
            grip: (d,) efforts of dry joint friction.
            s: (3 k + l + e,) velocities of the rows [m/s, rad/s].
            moving: (d,) velocities of the joints with dry friction.
        """
        of_candidates, of_joints, of_turning = np.split(status, np.cumsum([len(candidates), len(grip)]))
        every, may_close = FrictionDiscs.of(table), np.zeros(len(table), dtype=np.bool_)
        may_close[candidates] = True
        discs = every.take(may_close[every.contact])
        of_discs = np.concatenate([of_candidates[candidates < len(table.members)], of_turning])
        discs, of_discs = discs.take(of_discs != OPEN), of_discs[of_discs != OPEN]
        holds = of_discs == STICKING
        begins = ~holds & (discs.lengths(s) <= SLIP_SPEED)
        along = np.where(begins[:, None], -discs.components(push), discs.components(s))
        length = np.where(holds, 0.0, np.hypot(*along.T))
        moves = length > 0.0
        direction = np.where(moves[:, None], along / np.where(moves, length, 1.0)[:, None], 0.0)
        from_rest = np.where(of_joints == STICKING, 0.0, -np.sign(grip))
        rubs = np.where(np.abs(moving) > SLIP_SPEED, np.sign(moving), from_rest)
        return cls(table, candidates[of_candidates != OPEN], discs, holds, direction, begins, rubs, push, grip)

    @classmethod
    def free(cls, table: ContactTable) -> Mode:
        """Return the mode in which nothing is closed and no joint rubs."""
        none, rows, nothing = np.empty(0, dtype=np.intp), np.zeros(table.dim + table.resistance.dim), np.zeros(0)
        return cls.of(table, none, none, rows, nothing, rows, nothing)

    @cached_property
    def normals(self) -> npt.NDArray[np.intp]:
        """(c,) normal rows of what is closed."""
        return self.table.normals[self.closed]

    @cached_property
    def held(self) -> npt.NDArray[np.intp]:
        """(h,) rows whose velocity stays zero, ascending: normal ones, and all of friction that holds."""
        return np.union1d(self.normals, self.discs.rows[self.holds])

    @cached_property
    def holding(self) -> FrictionDiscs:
        """Friction that holds, and may give way."""
        return self.discs.take(self.holds & np.isfinite(self.discs.coefficient))

    @cached_property
    def moving(self) -> Moving:
        """Friction that opposes motion."""
        which = ~self.holds & (self.discs.coefficient > 0.0)
        return Moving(self.discs.take(which), self.direction[which], self.begins[which])

    def force_rows(self, J: Array, friction: Array) -> Array:
        """Return (h, nv) the rows along which the forces of the held rows act.

        A normal force brings with it the friction and the moments that oppose motion: ``J_n + sum f^T J_d``.

        Args:
            J: (3 k + l + e, nv) the rows.
            friction: (g, 2) f, of what moves, per unit of its normal force.
        """
        rows, discs = J[self.held], self.moving.discs
        if not len(friction):
            return rows
        for place, turning, force in zip(np.searchsorted(self.held, discs.normal), discs.rows, friction, strict=True):
            rows[place] += force @ J[turning]
        return rows

    def forces(self, r: Array, friction: Array) -> Array:
        """Return (3 k + l + e,) the forces of all rows, for those r (h,) of the held ones; `friction` as above."""
        forces, discs = np.zeros(len(self.push)), self.moving.discs
        forces[self.held] = r
        if not len(friction):
            return forces
        forces[discs.rows[:, 0]] = friction[:, 0] * forces[discs.normal]
        forces[discs.rows[discs.paired, 1]] = (friction[:, 1] * forces[discs.normal])[discs.paired]
        return forces

    def status(self) -> npt.NDArray[np.int64]:
        """Return (k + l,) 0 open, 1 sticking, 2 sliding; a limit that presses sticks."""
        status = np.zeros(len(self.table), dtype=np.int64)
        status[self.closed] = 1
        slides = ~self.holds & (self.discs.rows[:, 1] < self.table.dim)
        status[self.discs.contact[slides]] = 2
        return status


class Moving(NamedTuple):
    """Friction of what moves.

    Attributes:
        discs: of it.
        direction: (g, 2) see :class:`Mode`.
        begins: (g,) likewise.
    """

    discs: FrictionDiscs
    direction: Array
    begins: npt.NDArray[np.bool_]

    def directions(self, s: Array) -> Array:
        """Return (g, 2) the unit directions in which contacts slip or turn at the velocities `s` of all rows.

        That of its beginning for what has just begun to move, and for what has passed the instant at which it stops, so
        that the motion can be continued smoothly past the event.
        """
        along = self.discs.components(s)
        speed = np.hypot(*along.T)
        least = np.where(self.begins, ONSET_SPEED, STOP_SPEED)
        known = (speed > least) & (np.einsum("ij,ij->i", along, self.direction) > 0.0)
        return np.where(known[:, None], along / np.where(known, speed, 1.0)[:, None], self.direction)

    def onset(self, s: Array) -> npt.NDArray[np.intp]:
        """Return which of them, in two directions, have just begun to move, at `s` as above."""
        if not self.begins.any():
            return np.empty(0, dtype=np.intp)
        slow = self.discs.lengths(s) <= ONSET_SPEED
        return np.flatnonzero(self.begins & self.discs.paired & slow & self.direction.any(axis=1))

    def friction(self, s: Array) -> Array:
        """Return (g, 2) ``-c u / |u|``, the force or moment of each per unit of its normal force, at `s` as above."""
        if not len(self.begins):
            return self.direction
        return -np.minimum(self.discs.coefficient, STRONG)[:, None] * self.directions(s)

    def events(self, s: Array) -> Array:
        """Return what is positive as long as they move on, at `s` as above: speeds, along the first direction too."""
        if not len(self.begins):
            return no_values()
        along = self.discs.components(s)
        speeds = np.hypot(*along[~self.begins].T)
        return np.concatenate([np.einsum("ij,ij->i", along, self.direction), speeds - STOP_SPEED])

"""Contact modes between two events: which contacts are closed, stick, slide or turn, and which joints slip."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.contact.speeds import REST_SPEED, STOP_SPEED, directions
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.problem import no_values
from constrained_sim.contact_solvers.rolling_rows import COEFFICIENT, CONTACT, SIZE
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.steppers.event_driven.options import EVENTS
from constrained_sim.validation import Array


class FrictionBlocks(NamedTuple):
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
    def of(cls, contact_set: ContactSet) -> FrictionBlocks:
        """Return those of all contacts: friction of each first, then all that resists turning."""
        k, turning = len(contact_set.members), contact_set.resistance.table.moments
        contact = np.concatenate([np.arange(k), turning[:, CONTACT].astype(np.intp)])
        size = turning[:, SIZE].astype(np.intp)
        last = contact_set.dim + np.cumsum(size) - 1
        rows = np.concatenate([3 * np.arange(k)[:, None] + [0, 1], np.stack([last - size + 1, last], axis=1)])
        coefficient = np.concatenate([contact_set.friction, turning[:, COEFFICIENT]])
        return cls(contact, 3 * contact + 2, rows, rows[:, 0] < rows[:, 1], coefficient)

    def take(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> FrictionBlocks:
        """Return some of them."""
        return FrictionBlocks(
            self.contact[which], self.normal[which], self.rows[which], self.paired[which], self.coefficient[which]
        )

    def among(self, rows: npt.NDArray[np.intp]) -> FrictionBlocks:
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
        contact_set: of the contacts.
        closed: (c,) places in the table of the contacts and limits that stay closed, ascending.
        blocks: friction of the closed contacts, along the surface and against turning.
        holds: (f,) which of it holds: its rows stay at rest.
        direction: (f, 2) unit direction in which a contact began to slip or to turn, or does so at the beginning of the
            mode; zero of what holds.
        begins: (f,) what moves from rest.
        slip_sign: (d,) direction in which a joint with dry friction moves, +1 or -1; 0 where it is held.
        forces: (3 k + l + e,) forces and moments of all rows at its beginning. Where those of least norm lie outside
            their cones, indeterminate ones stay near these.
        friction_effort: (d,) efforts of dry joint friction at its beginning.
    """

    contact_set: ContactSet
    closed: npt.NDArray[np.intp]
    blocks: FrictionBlocks
    holds: npt.NDArray[np.bool_]
    direction: Array
    begins: npt.NDArray[np.bool_]
    slip_sign: Array
    forces: Array
    friction_effort: Array

    @classmethod
    def of(
        cls,
        contact_set: ContactSet,
        candidates: npt.NDArray[np.intp],
        status: npt.NDArray[np.int64],
        forces: Array,
        friction_effort: Array,
        s: Array,
        moving: Array,
    ) -> Mode:
        """Return the mode that a solution at acceleration level tells.

        Args:
            contact_set: of the contacts.
            candidates: (c,) places of what might stay closed.
            status: of these, of the joints with dry friction, and of the rolling friction of contacts.
            forces: (3 k + l + e,) forces and moments of the rows.
            friction_effort: (d,) efforts of dry joint friction.
            s: (3 k + l + e,) velocities of the rows [m/s, rad/s].
            moving: (d,) velocities of the joints with dry friction.
        """
        of_candidates, of_joints, of_turning = np.split(status, np.cumsum([len(candidates), len(friction_effort)]))
        every, may_close = FrictionBlocks.of(contact_set), np.zeros(len(contact_set), dtype=np.bool_)
        may_close[candidates] = True
        blocks = every.take(may_close[every.contact])
        of_blocks = np.concatenate([of_candidates[candidates < len(contact_set.members)], of_turning])
        blocks, of_blocks = blocks.take(of_blocks != OPEN), of_blocks[of_blocks != OPEN]
        holds = of_blocks == STICKING
        begins = ~holds & (blocks.lengths(s) <= REST_SPEED)
        along = np.where(begins[:, None], -blocks.components(forces), blocks.components(s))
        direction = np.where(holds[:, None], 0.0, directions(along))
        from_rest = np.where(of_joints == STICKING, 0.0, -np.sign(friction_effort))
        slip_sign = np.where(np.abs(moving) > REST_SPEED, np.sign(moving), from_rest)
        return cls(
            contact_set,
            candidates[of_candidates != OPEN],
            blocks,
            holds,
            direction,
            begins,
            slip_sign,
            forces,
            friction_effort,
        )

    @classmethod
    def free(cls, contact_set: ContactSet) -> Mode:
        """Return the mode in which nothing is closed and no joint slips."""
        none, rows, nothing = (
            np.empty(0, dtype=np.intp),
            np.zeros(contact_set.dim + contact_set.resistance.dim),
            np.zeros(0),
        )
        return cls.of(contact_set, none, none, rows, nothing, rows, nothing)

    def continues(self, before: Mode) -> bool:
        """Return whether the same is held as in the mode `before`, and all else moves on: only forces are others."""
        pairs = (self.closed, before.closed), (self.holds, before.holds), (self.slip_sign, before.slip_sign)
        if not len(self.held) or not all(np.array_equal(*pair) for pair in pairs):
            return False
        along = np.einsum("ij,ij->i", self.direction, before.direction)
        return bool((along[~self.holds] > 0.0).all())

    @cached_property
    def normals(self) -> npt.NDArray[np.intp]:
        """(c,) normal rows of what is closed."""
        return self.contact_set.normals[self.closed]

    @cached_property
    def held(self) -> npt.NDArray[np.intp]:
        """(h,) rows whose velocity stays zero, ascending: normal ones, and all of friction that holds."""
        return np.union1d(self.normals, self.blocks.rows[self.holds])

    @cached_property
    def holding(self) -> FrictionBlocks:
        """Friction that holds, and may give way."""
        return self.blocks.take(self.holds & np.isfinite(self.blocks.coefficient))

    @cached_property
    def moving(self) -> Moving:
        """Friction that opposes motion."""
        which = ~self.holds & (self.blocks.coefficient > 0.0)
        return Moving(self.blocks.take(which), self.direction[which], self.begins[which])

    @cached_property
    def moving_normals(self) -> npt.NDArray[np.intp]:
        """(g,) places of the normal rows of what moves, among the held rows."""
        return np.searchsorted(self.held, self.moving.blocks.normal)

    def force_rows(self, J: Array, friction: Array) -> Array:
        """Return (h, nv) the rows along which the forces of the held rows act.

        A normal force brings with it the friction and the moments that oppose motion: ``J_n + sum f^T J_d``.

        Args:
            J: (3 k + l + e, nv) the rows.
            friction: (g, 2) f, of what moves, per unit of its normal force.
        """
        rows = J[self.held]
        for place, turning, force in zip(self.moving_normals, self.moving.blocks.rows, friction, strict=True):
            rows[place] += force @ J[turning]
        return rows

    def all_forces(self, r: Array, friction: Array) -> Array:
        """Return (3 k + l + e,) the forces of all rows, for those r (h,) of the held ones; `friction` as above."""
        forces, blocks = np.zeros(len(self.forces)), self.moving.blocks
        forces[self.held] = r
        if not len(friction):
            return forces
        forces[blocks.rows[:, 0]] = friction[:, 0] * forces[blocks.normal]
        forces[blocks.rows[blocks.paired, 1]] = (friction[:, 1] * forces[blocks.normal])[blocks.paired]
        return forces

    def status(self) -> npt.NDArray[np.int64]:
        """Return (k + l,) what contacts and one-sided rows do; an active limit sticks."""
        status = np.full(len(self.contact_set), OPEN)
        status[self.closed] = STICKING
        slides = ~self.holds & (self.blocks.rows[:, 1] < self.contact_set.dim)
        status[self.blocks.contact[slides]] = SLIDING
        return status


class Moving(NamedTuple):
    """Friction of what moves.

    Attributes:
        blocks: of it.
        direction: (g, 2) see :class:`Mode`.
        begins: (g,) whether it begins to move from rest.
    """

    blocks: FrictionBlocks
    direction: Array
    begins: npt.NDArray[np.bool_]

    def directions(self, s: Array) -> Array:
        """Return (g, 2) the unit directions in which contacts slip or turn at the velocities `s` of all rows.

        That of its beginning for what has just begun to move, and for what has passed the instant at which it stops, so
        that the motion can be continued smoothly past the event.
        """
        along = self.blocks.components(s)
        speed = np.hypot(*along.T)
        least = np.where(self.begins, EVENTS.onset_speed, STOP_SPEED)
        known = (speed > least) & (np.einsum("ij,ij->i", along, self.direction) > 0.0)
        return np.where(known[:, None], along / np.where(known, speed, 1.0)[:, None], self.direction)

    def onset(self, s: Array) -> npt.NDArray[np.intp]:
        """Return which of them, in two directions, have just begun to move, at `s` as above."""
        if not self.begins.any():
            return np.empty(0, dtype=np.intp)
        slow = self.blocks.lengths(s) <= EVENTS.onset_speed
        return np.flatnonzero(self.begins & self.blocks.paired & slow & self.direction.any(axis=1))

    def friction(self, s: Array) -> Array:
        """Return (g, 2) ``-c u / |u|``, the force or moment of each per unit of its normal force, at `s` as above."""
        if not len(self.begins):
            return self.direction
        return -np.minimum(self.blocks.coefficient, OPTIONS.strong_friction)[:, None] * self.directions(s)

    def events(self, s: Array) -> Array:
        """Return what is positive as long as they move on, at `s` as above: speeds, along the first direction too."""
        if not len(self.begins):
            return no_values()
        along = self.blocks.components(s)
        speeds = np.hypot(*along[~self.begins].T)
        return np.concatenate([np.einsum("ij,ij->i", along, self.direction), speeds - STOP_SPEED])

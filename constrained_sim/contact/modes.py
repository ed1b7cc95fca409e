"""Which contacts stay closed, stick or slide, and which joints rub, between two events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact.kernels import OPEN, STICKING
from constrained_sim.contact.table import ContactTable
from constrained_sim.validation import Array

SLIP_SPEED = 1e-9
"""Speed [m/s, rad/s] below which a contact or a joint is at rest."""

STOP_SPEED = 1e-11
"""Speed [m/s] at which a slip has come to its end."""

ONSET_SPEED = 1e-6
"""Speed [m/s] up to which what begins to slip has the direction of its beginning: the direction of slip follows forces
at a rate that is inverse to the speed, too fast for an explicit integrator."""


class Mode(NamedTuple):
    """What holds until the next event: then the equations of motion are linear in all forces.

    Attributes:
        closed: (c,) places in the table of the contacts and limits that stay closed, ascending.
        sticks: (c,) which of them hold along the surface too.
        slip: (c, 2) unit direction in which a contact began to slip, or slips at the beginning of the mode; zero for
            others.
        begins: (c,) which of them slip from rest.
        rubs: (d,) direction in which a joint with dry friction moves, +1 or -1; 0 where it is held.
        push: (3 k + l,) forces of all rows of the table at its beginning. Where forces are indeterminate, those that
            come later are the nearest to these: the ones of least norm may lie outside their cones.
        grip: (d,) efforts of dry joint friction at its beginning.
    """

    closed: npt.NDArray[np.intp]
    sticks: npt.NDArray[np.bool_]
    slip: Array
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
        forces: Array,
        s: Array,
    ) -> Mode:
        """Return the mode that a solution at acceleration level tells.

        Args:
            table: of the contacts.
            candidates: (c,) places of what might stay closed.
            status: (c + d,) of these and of the joints with dry friction.
            forces: of their rows.
            s: velocities of these rows [m/s, rad/s].
        """
        contacts = int((candidates < len(table.members)).sum())
        slip, from_rest = np.zeros((len(candidates), 2)), np.zeros(len(candidates), dtype=np.bool_)
        for i in range(contacts):
            along, speed = s[3 * i : 3 * i + 2], np.hypot(*s[3 * i : 3 * i + 2])
            if status[i] not in (OPEN, STICKING):
                from_rest[i] = speed <= SLIP_SPEED
                direction, length = _opposed(forces[3 * i : 3 * i + 2]) if from_rest[i] else (along, speed)
                slip[i] = direction / length if length else 0.0
        dry = len(status) - len(candidates)
        moving = s[len(s) - dry :]
        begins = np.where(status[len(candidates) :] == STICKING, 0.0, -np.sign(forces[len(forces) - dry :]))
        rubs = np.where(np.abs(moving) > SLIP_SPEED, np.sign(moving), begins)
        closed = status[: len(candidates)] != OPEN
        sticks = (status[: len(candidates)] == STICKING) & (np.arange(len(candidates)) < contacts)
        push = np.zeros(table.dim)
        push[table.rows_of(candidates)] = forces[: len(forces) - dry]
        grip = forces[len(forces) - dry :]
        return cls(candidates[closed], sticks[closed], slip[closed], from_rest[closed], rubs, push, grip)

    @classmethod
    def free(cls, table: ContactTable) -> Mode:
        """Return the mode in which nothing is closed and no joint rubs."""
        none, nothing = np.empty(0, dtype=np.intp), np.zeros(0)
        nowhere = none.astype(np.bool_)
        return cls(none, nowhere, np.zeros((0, 2)), nowhere, nothing, np.zeros(table.dim), nothing)

    def held(self, table: ContactTable) -> npt.NDArray[np.intp]:
        """Return the rows whose velocity stays zero: normal ones, and all three of contacts that stick."""
        normals = table.normals[self.closed]
        along = normals[self.sticks]
        return np.sort(np.concatenate([normals, along - 1, along - 2]))

    def directions(self, s: Array) -> Array:
        """Return (c, 2) in which contacts slip at the row velocities `s` (c, 2) of this mode's contacts.

        What has just begun to slip, or has passed the instant at which it stops, keeps the direction of its beginning,
        so that the motion can be continued smoothly past the event.
        """
        speed = np.hypot(s[:, 0], s[:, 1])
        least = np.where(self.begins, ONSET_SPEED, STOP_SPEED)
        known = (speed > least) & (np.einsum("ij,ij->i", s, self.slip) > 0.0)
        return np.where(known[:, None], s / np.where(known, speed, 1.0)[:, None], self.slip)

    def status(self, table: ContactTable) -> npt.NDArray[np.int64]:
        """Return (k + l,) 0 open, 1 sticking, 2 sliding; a limit that presses sticks."""
        status = np.zeros(len(table), dtype=np.int64)
        status[self.closed] = np.where(self.sticks | (self.closed >= len(table.members)), 1, 2)
        return status


def _opposed(force: Array) -> tuple[Array, float]:
    return -force, float(np.hypot(*force))

"""The contacts of a stateless call, all of which count as closed, at acceleration level."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.constrained_dynamics import ContactRows
from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact.rolling import RollingFriction
from constrained_sim.contact.soft_forces import soft_forces
from constrained_sim.contact.speeds import REST_SPEED, directions
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.stabilization import Baumgarte
from constrained_sim.validation import Array, read_only


class ClosedContacts(NamedTuple):
    """What contacts and one-sided rows do at one configuration and velocity.

    Attributes:
        gamma: (3 k + l,) velocity-dependent part of the acceleration of their rows [m/s^2, rad/s^2].
        soft: (3 k + l,) forces of the soft contacts [N]; 0 elsewhere.
        effort: (nv,) of these forces [N m, N].
        rows: of the contact problem.
        closed: where its unilateral rows are among all.
        turning: where its rows of turning are among those of the `resistance`.
        axes: (k, 3, 3) of the contacts, world axes.
        resistance: of the contacts to rolling and spinning.
    """

    gamma: Array
    soft: Array
    effort: Array
    rows: ContactRows
    closed: npt.NDArray[np.intp]
    turning: npt.NDArray[np.intp]
    axes: Array
    resistance: RollingFriction

    @classmethod
    def at(cls, contact_set: ContactSet, dynamics: Dynamics, stabilization: Baumgarte | None) -> ClosedContacts:
        """Return what those of `contact_set` do at the state of `dynamics`."""
        if not len(contact_set):
            return _nothing_closed(contact_set, len(dynamics.v))
        geometry = contact_set.rows(dynamics, dynamics.v)
        gamma = contact_set.gamma(dynamics, geometry)
        soft, _ = soft_forces(contact_set, geometry, np.zeros((len(contact_set.soft), 2)))
        active, closed, rows = _unilateral_rows(contact_set, geometry, gamma, stabilization)
        resistance = contact_set.resistance
        turning, *rows_that_turn = resistance.at_motion(dynamics, geometry, active)
        rows = rows.with_rolling(*rows_that_turn)
        return cls(gamma, soft, soft @ geometry.J, rows, closed, turning, geometry.axes, resistance)

    def forces_and_moments(self, impulse: Array) -> tuple[Array, Array]:
        """Return (3 k + l,) forces [N] and (k, 3) moments [N m], world axes, for what solves the problem of `rows`."""
        count, forces, moments = len(self.closed), self.soft.copy(), np.zeros(self.resistance.dim)
        forces[self.closed], moments[self.turning] = impulse[:count], impulse[count:]
        return forces, self.resistance.moments(moments, self.axes)


@lru_cache(maxsize=16)
def _nothing_closed(contact_set: ContactSet, nv: int) -> ClosedContacts:
    """Return what no contacts do, those of an empty `contact_set`."""
    values, effort, places = read_only(np.zeros(0)), read_only(np.zeros(nv)), np.zeros(0, dtype=np.intp)
    rows, axes = ContactRows.none(nv), np.zeros((0, 3, 3))
    return ClosedContacts(values, values, effort, rows, places, places, axes, contact_set.resistance)


def _unilateral_rows(
    contact_set: ContactSet, geometry: ContactGeometry, gamma: Array, stabilization: Baumgarte | None
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], ContactRows]:
    """Return what is closed, all rigid contacts among it, the places of its unilateral rows, and these rows."""
    offset, reached = gamma.copy(), contact_set.reached(geometry.gaps)
    if stabilization is None:
        leaves = (reached >= len(contact_set.members)) & (geometry.s_normal[reached] > REST_SPEED)
        reached = reached[~leaves]
    else:
        feedback = stabilization.for_rows(contact_set.names[i] for i in reached)
        holds = feedback.holds(geometry.gaps[reached], geometry.s_normal[reached])
        correction, reached = (
            feedback.feedback(geometry.gaps[reached], geometry.s_normal[reached])[holds],
            reached[holds],
        )
        offset[contact_set.normals[reached]] += correction
    rows, laws = contact_set.rows_of(reached), contact_set.laws_of(reached)
    slip = directions(geometry.s[rows[: 3 * len(laws.friction)]].reshape(-1, 3)[:, :2], REST_SPEED)
    slip[np.isinf(laws.friction)] = 0.0
    return reached, rows, ContactRows(geometry.J[rows], offset[rows], laws._replace(slip=slip))

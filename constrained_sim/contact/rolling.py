"""Resistance of contacts to rolling and spinning: which rows turn, and how large the moments about them may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.bias_acceleration import turning_gamma
from constrained_sim.contact.bound_contact import BoundContact
from constrained_sim.contact.features import ContactFeatures, ContactGeometry
from constrained_sim.contact.speeds import REST_SPEED
from constrained_sim.contact_solvers.rolling_rows import CONTACT, DIRECTION, SIZE, no_rolling
from constrained_sim.dynamics import kinematics
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.validation import Array


class TurningRows(NamedTuple):
    """The e rows of angular velocity in which contacts resist rolling and spinning, and the d moments about them.

    Attributes:
        joints: (e,) joints that carry the bodies.
        others: (e,) joints that carry the other bodies, 0 for the world.
        contacts: (e,) at which they touch, ascending.
        axes: (e,) which axis of the contact a row is about: 0 and 1 along the surface, 2 the normal.
        moments: (d, 6) of all contacts, at velocity level, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
    """

    joints: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    contacts: npt.NDArray[np.int64]
    axes: npt.NDArray[np.int64]
    moments: Array


@kernel
def turning_directions(turning, axes):
    """Return (e, 3) the directions of the rows `turning`, for `axes` (k, 3, 3) of the contacts."""
    along = np.empty((turning.contacts.shape[0], 3))
    for i in range(along.shape[0]):
        along[i] = axes[turning.contacts[i], turning.axes[i]]
    return along


@kernel
def turning_among(turning, chosen):
    """Return the rows (f,) and moments (g, 6) of the contacts among `chosen`, ascending; moments count among these."""
    rows, count = np.empty(turning.contacts.shape[0], dtype=np.int64), 0
    moments, some, first = np.empty_like(turning.moments), 0, 0
    for moment in turning.moments:
        size = int(moment[SIZE])
        for place in range(chosen.shape[0]):
            if chosen[place] == int(moment[CONTACT]):
                moments[some] = moment
                moments[some, CONTACT] = place
                some += 1
                for row in range(first, first + size):
                    rows[count] = row
                    count += 1
        first += size
    return rows[:count], moments[:some]


class RollingFriction:
    """Moments of k contacts: ``|m_t| <= rolling_friction f_n`` along the surface, ``|m_n| <= torsional_friction f_n``.

    Both oppose the angular velocity w of the body relative to the surface, by maximum dissipation: ``m_t = -R w_t /
    |w_t|`` where it rolls, and whatever holds it where it does not; the spin about the normal in the same way.
    Coefficients are lengths [m]: the lever of the normal force ahead of a rolling body, the mean lever of friction over
    a patch.

    The rows are the components of w [rad/s]: for each contact in turn t1 and t2 if it resists rolling, then n if it
    resists spinning. The moment acts on the link, its opposite on the body that carries the surface.

    Attributes:
        table: of the rows and moments.
        dim: number e of the rows.
    """

    def __init__(self, members: Sequence[BoundContact], features: ContactFeatures) -> None:
        """Take the contacts in their order, and what touches at them."""
        rolling: list[tuple[float, ...]] = []
        which: list[int] = []
        for i, contact in enumerate(member.properties for member in members):
            if contact.rolling_friction:
                rolling.append((i, 2, contact.rolling_friction, 0.0, 0.0, 0.0))
                which += [0, 1]
            if contact.torsional_friction:
                rolling.append((i, 1, contact.torsional_friction, 0.0, 0.0, 0.0))
                which.append(2)
        moments = np.array(rolling) if rolling else no_rolling()
        contacts = np.repeat(moments[:, CONTACT], moments[:, SIZE].astype(np.int64)).astype(np.int64)
        joints, others = np.ascontiguousarray(features.bodies[contacts].T)
        self.table = TurningRows(joints, others, contacts, np.array(which, dtype=np.int64), moments)
        self.dim = len(which)
        self._count, self._features = len(members), features

    def rows(self, dynamics: Dynamics, axes: Array) -> Array:
        """Return (e, nv) the rows at the configuration of `dynamics`, where `axes` (k, 3, 3) are those of contacts."""
        if not self.dim:
            return np.zeros((0, dynamics.robot.nv))
        along = turning_directions(self.table, axes)
        return kinematics.turning_rows(
            self.table.joints, self.table.others, along, dynamics.joint_axes, dynamics.robot.support
        )

    def of(self, indices: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], Array]:
        """Return the rows (f,) and rolling friction (c, 6) of contacts `indices`, ascending; it counts among these."""
        if not self.dim:
            return np.empty(0, dtype=np.intp), no_rolling()
        rows, moments = turning_among(self.table, indices)
        return rows, moments

    def gamma(self, dynamics: Dynamics, geometry: ContactGeometry) -> Array:
        """Return (e,) the velocity-dependent part of the rows' acceleration [rad/s^2].

        At the configuration and velocity of `dynamics`, where the `geometry` was found.
        """
        if not self.dim:
            return np.zeros(0)
        gamma: Array = turning_gamma(tuple(self._features), geometry.places, dynamics.motion)
        return gamma[self.table.contacts, self.table.axes]

    def at_motion(
        self, dynamics: Dynamics, geometry: ContactGeometry, indices: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], Array, Array, Array]:
        """Return what contacts `indices`, ascending, resist at the configuration and velocity of `dynamics`.

        At acceleration level what turns already is opposed along its present direction.

        Returns:
            The rows' places (f,), J (f, nv), gamma (f,) [rad/s^2], and rolling friction (c, 6) with its directions.
        """
        turning, rolling = self.of(indices)
        J, gamma, first = self.rows(dynamics, geometry.axes)[turning], self.gamma(dynamics, geometry)[turning], 0
        w = J @ dynamics.v
        for moment in rolling:
            size = int(moment[SIZE])
            speed = float(np.linalg.norm(w[first : first + size]))
            if speed > REST_SPEED:
                moment[DIRECTION : DIRECTION + size] = w[first : first + size] / speed
            first += size
        return turning, J, gamma, rolling

    def moments(self, rows: Array, axes: Array) -> Array:
        """Return (k, 3) the moment on each link about its contact point, world axes, for values `rows` (e,).

        Along `axes` (k, 3, 3) of the contacts; or (n, k, 3) for n steps, of values (n, e) and axes (n, k, 3, 3).
        """
        moments = np.zeros((*rows.shape[:-1], self._count, 3))
        for row, (contact, axis) in enumerate(zip(self.table.contacts, self.table.axes, strict=True)):
            moments[..., contact, :] += rows[..., row, None] * axes[..., contact, axis, :]
        return moments

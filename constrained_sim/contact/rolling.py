"""Resistance of contacts to rolling and spinning: which rows turn, and how large the moments about them may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from constrained_sim.contact.bias_acceleration import turning_gamma
from constrained_sim.contact.features import ContactFeatures, ContactGeometry
from constrained_sim.contact_solvers.rolling_rows import CONTACT, DIRECTION, SIZE, count_rows, no_rolling
from constrained_sim.dynamics import kinematics
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.validation import Array

if TYPE_CHECKING:
    from constrained_sim.constraints.point_contact import BoundContact

TURN_SPEED = 1e-9
"""Speed [rad/s] below which a body does not turn."""


class RollingFriction:
    """Moments of k contacts: ``|m_t| <= rolling_friction f_n`` along the surface, ``|m_n| <= torsional_friction f_n``.

    Both oppose the angular velocity w of the body relative to the surface, by maximum dissipation: ``m_t = -R w_t /
    |w_t|`` where it rolls, and whatever holds it where it does not; the spin about the normal in the same way.
    Coefficients are lengths [m]: the lever of the normal force ahead of a rolling body, the mean lever of friction over
    a patch.

    The rows are the components of w [rad/s]: for each contact in turn t1 and t2 if it resists rolling, then n if it
    resists spinning. The moment acts on the link, its opposite on the body that carries the surface.

    Attributes:
        rolling: (d, 6) of all contacts, at velocity level, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
        dim: number e of their rows.
    """

    def __init__(self, members: Sequence[BoundContact], features: ContactFeatures) -> None:
        """Take the contacts in their order, and what touches at them."""
        rolling: list[tuple[float, ...]] = []
        which: list[int] = []
        for i, contact in enumerate(member.declaration for member in members):
            if contact.rolling_friction:
                rolling.append((i, 2, contact.rolling_friction, 0.0, 0.0, 0.0))
                which += [0, 1]
            if contact.torsional_friction:
                rolling.append((i, 1, contact.torsional_friction, 0.0, 0.0, 0.0))
                which.append(2)
        self.rolling = np.array(rolling) if rolling else no_rolling()
        self.dim = count_rows(self.rolling)
        self._count, self._features = len(members), features
        self._contacts = np.repeat(self.rolling[:, CONTACT], self.rolling[:, SIZE].astype(np.intp)).astype(np.intp)
        self._which = np.array(which, dtype=np.intp)
        self._joints, self._others = np.ascontiguousarray(features.bodies[self._contacts].T)

    def rows(self, dynamics: Dynamics, axes: Array) -> Array:
        """Return (e, nv) the rows at the configuration of `dynamics`, where `axes` (k, 3, 3) are those of contacts."""
        if not self.dim:
            return np.zeros((0, dynamics.robot.nv))
        return kinematics.turning_rows(
            self._joints, self._others, self._along(axes), dynamics.joint_axes, dynamics.robot.support
        )

    def of(self, indices: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], Array]:
        """Return the rows (f,) and rolling friction (c, 6) of contacts `indices`, ascending; it counts among these."""
        if not self.dim:
            return np.empty(0, dtype=np.intp), self.rolling
        rows = np.flatnonzero(np.isin(self._contacts, indices))
        rolling = self.rolling[np.isin(self.rolling[:, CONTACT], indices)]
        rolling[:, CONTACT] = np.searchsorted(indices, rolling[:, CONTACT])
        return rows, rolling

    def gamma(self, dynamics: Dynamics, geometry: ContactGeometry) -> Array:
        """Return (e,) the velocity-dependent part of the rows' acceleration [rad/s^2].

        At the configuration and velocity of `dynamics`, where the `geometry` was found.
        """
        if not self.dim:
            return np.zeros(0)
        gamma: Array = turning_gamma(tuple(self._features), geometry.places, dynamics.motion)
        return gamma[self._contacts, self._which]

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
            if speed > TURN_SPEED:
                moment[DIRECTION : DIRECTION + size] = w[first : first + size] / speed
            first += size
        return turning, J, gamma, rolling

    def moments(self, rows: Array, axes: Array) -> Array:
        """Return (k, 3) the moment on each link about its contact point, world axes, for values `rows` (e,).

        Along `axes` (k, 3, 3) of the contacts.
        """
        moments = np.zeros((self._count, 3))
        if not self.dim:
            return moments
        np.add.at(moments, self._contacts, rows[:, None] * self._along(axes))
        return moments

    def _along(self, axes: Array) -> Array:
        """Return (e, 3) the directions of the rows, for `axes` (k, 3, 3) of the contacts."""
        return axes[self._contacts, self._which]

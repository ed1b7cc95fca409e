"""Data of a plot, independent of the source that it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from constrained_sim.validation import Array

UNKNOWN = -1
"""Status of a contact that nobody recorded, beside :class:`~constrained_sim.contact_solvers.status.ContactStatus`."""


@dataclass(frozen=True)
class JointLimits:
    """Limits of a joint with one degree of freedom; infinite where there is none.

    Attributes:
        position: lower and upper [rad, m].
        velocity: least and largest [rad/s, m/s].
        effort: least and largest [N m, N].
    """

    position: tuple[float, float] = (-np.inf, np.inf)
    velocity: tuple[float, float] = (-np.inf, np.inf)
    effort: tuple[float, float] = (-np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class JointSeries:
    """States of one joint with one degree of freedom.

    Attributes:
        position: (n,) [rad, m].
        velocity: (n,) [rad/s, m/s].
        effort: (n,) as applied [N m, N]; zero without an actuator.
        limits: of the robot's description.
        limb: that the joint belongs to; empty: unknown.
    """

    position: Array
    velocity: Array
    effort: Array
    limits: JointLimits = field(default_factory=JointLimits)
    limb: str = ""


@dataclass(frozen=True, eq=False)
class ContactSeries:
    """Forces of one contact.

    Attributes:
        force: (n, 3) mean force on the robot [N], world axes; NaN while the contact is absent.
        normal: (n,) force along the normal [N]; NaN where the normal is unknown.
        friction: (n,) Coulomb coefficient in effect; NaN where it is unknown.
        status: (n,) of :class:`~constrained_sim.contact_solvers.status.ContactStatus`, or :data:`UNKNOWN`.
        limb: that the contact's link belongs to; empty: unknown.
    """

    force: Array
    normal: Array
    friction: Array
    status: npt.NDArray[np.int64]
    limb: str = ""

    @property
    def has_normal(self) -> bool:
        """Whether the force along the normal is known at any instant."""
        return bool(np.isfinite(self.normal).any())

    @property
    def tangential(self) -> Array:
        """(n,) force along the surface [N]; NaN where the normal is unknown."""
        return np.sqrt(np.maximum(0.0, np.sum(self.force**2, axis=1) - self.normal**2))

    @property
    def cone_use(self) -> Array:
        """(n,) ``|f_t| / (mu f_n)``: 1 on the friction cone; NaN without normal force or without friction."""
        bound = self.friction * self.normal
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(bound > 0.0, self.tangential / bound, np.nan)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns over time.

    Attributes:
        t: (n,) [s].
        columns: (n,) by name.
    """

    t: Array = field(default_factory=lambda: np.zeros(0))
    columns: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ImpactSeries:
    """Impacts in the order of time.

    Attributes:
        t: (k,) instants [s].
        energy_lost: (k,) kinetic energy [J].
        impulses: (k,) magnitude [N s] by contact or constraint; NaN where it took no part.
    """

    t: Array = field(default_factory=lambda: np.zeros(0))
    energy_lost: Array = field(default_factory=lambda: np.zeros(0))
    impulses: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Recording:
    """A run to be plotted; times in seconds, those of the stamps.

    Attributes:
        title: of its pictures.
        joint_times: (n,) of the joint states.
        joints: by name.
        contact_times: (m,) of the contact forces.
        contacts: by name.
        impacts: all of them.
        energy: audit [J], added up since the beginning, by cause; the energy of the robot among them.
        residuals: relative residuals of dynamics, constraints and contact problem, by name.
        drift: violation of constraints and penetration [m, rad], by name.
        notes: what could not be read, for the user.
    """

    title: str
    joint_times: Array
    joints: Mapping[str, JointSeries]
    contact_times: Array
    contacts: Mapping[str, ContactSeries]
    impacts: ImpactSeries = field(default_factory=ImpactSeries)
    energy: Table = field(default_factory=Table)
    residuals: Table = field(default_factory=Table)
    drift: Table = field(default_factory=Table)
    notes: tuple[str, ...] = ()

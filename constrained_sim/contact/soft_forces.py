"""Soft contacts: the forces of their laws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact_solvers.status import OPEN, SLIDING, STICKING
from constrained_sim.validation import Array

ROUNDING = 1e-12
"""Part of the limit of friction that may be missing where a contact slides."""

RELAXATION = 1e-4
"""[s] In which a spring along the surface that has no damper follows a sliding contact; no force depends on it."""


def soft_forces(
    contact_set: ContactSet, geometry: ContactGeometry, deflection: Array, apart: npt.NDArray[np.bool_] | None = None
) -> tuple[Array, Array]:
    """Return the forces (3 k + l,) of the soft contacts [N], 0 elsewhere, and the rates (soft, 2) of their springs.

    Along the surface ``f = proj(-k_t e - d_t s_t)`` onto Coulomb's disc; the spring follows so that spring and damper
    give f: ``de/dt = -(f + k_t e) / d_t``, which is s_t where the contact sticks. What is known to be `apart` (soft,)
    has no force, also where it would penetrate: the motion goes on smoothly past the touchdown.
    """
    force, rate = np.zeros(len(geometry.s)), np.zeros_like(deflection)
    for member, contact in enumerate(contact_set.soft):
        depth, s = -geometry.distances[contact], geometry.s[3 * contact : 3 * contact + 3]
        law, e = contact_set.soft_laws[member], deflection[member]
        if depth > 0.0 and (apart is None or not apart[member]):
            pull = -law.tangential_stiffness * e - law.tangential_damping * s[:2]
            normal = max(law.force(depth, -s[2]), 0.0)
            radius, length = contact_set.friction[contact] * normal, np.hypot(*pull)
            pull *= min(1.0, radius / length) if length else 0.0
            force[3 * contact : 3 * contact + 3] = *pull, normal
            rate[member] = _spring_rate(law.tangential_stiffness, law.tangential_damping, e, pull, s[:2])
    return force, rate


def soft_status(contact_set: ContactSet, geometry: ContactGeometry, deflection: Array) -> npt.NDArray[np.int64]:
    """Return (soft,) what the soft contacts do: open, or sliding where friction is at its limit, else sticking."""
    forces = soft_forces(contact_set, geometry, deflection)[0][: 3 * len(contact_set.members)].reshape(-1, 3)
    forces, friction = forces[contact_set.soft], contact_set.friction[contact_set.soft]
    slides = np.hypot(forces[:, 0], forces[:, 1]) >= (1.0 - ROUNDING) * friction * forces[:, 2]
    return np.where(forces[:, 2] > 0.0, np.where(slides, SLIDING, STICKING), OPEN)


def _spring_rate(stiffness: float, damping: float, e: Array, force: Array, s: Array) -> Array:
    if not stiffness:
        return np.zeros(2)
    if not damping:
        return s - (force + stiffness * e) / (stiffness * RELAXATION)
    return -(force + stiffness * e) / damping

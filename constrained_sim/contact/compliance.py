"""Soft contacts: the force of their laws, and their rows in the contact problem of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.validation import Array

if TYPE_CHECKING:
    from constrained_sim.contact.contact_set import ContactSet
    from constrained_sim.contact.features import ContactGeometry
    from constrained_sim.contact.laws import SoftLaw

LEAST_IMPEDANCE = 1e-9
"""Floor of a row's impedance per mass of the robot, for laws whose force does not depend on the motion."""

RELAXATION = 1e-4
"""[s] In which a spring along the surface that has no damper follows a sliding contact; no force depends on it."""


class SoftRows(NamedTuple):
    """Rows of s active soft contacts, in the contact problem of one step.

    Attributes:
        members: (s,) places among the soft contacts.
        contacts: (s,) places among all contacts, ascending.
        offset: (3 s,) what is added to the velocity that a row has at the end if its force is 0 [m/s].
        compliance: (3 s,) what is added to the diagonal of the Delassus matrix [1/kg].
    """

    members: npt.NDArray[np.int64]
    contacts: npt.NDArray[np.int64]
    offset: Array
    compliance: Array


NO_SOFT_ROWS = SoftRows(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


def soft_rows(
    contact_set: ContactSet,
    begin: ContactGeometry,
    excluded: npt.NDArray[np.int64],
    deflection: Array,
    h: float,
    mass: float,
) -> SoftRows:
    """Return the rows of all soft contacts that are active in the middle of the next `h` [s], implicit in the motion.

    With F the force at the predicted middle, k and d its slopes, and ds the change of the row velocity, the impulse is
    ``r = h F - alpha ds`` with ``alpha = h^2 k / 4 + h d``: the spring at the mean of the positions at both ends, which
    keeps its energy, the damper at the end, as all dampers. Written as ``ds - h F / alpha + r / alpha = 0`` it is a row
    of the contact problem that is compliant by 1/alpha; complementarity lets it push only, and Coulomb's disc bounds
    the rows along the surface.

    Args:
        contact_set: of the contacts.
        begin: the contacts at the beginning of the step.
        excluded: contacts that may not become active.
        deflection: (soft, 2) springs along the surface [m].
        h: [s].
        mass: of the robot [kg].
    """
    s = begin.s
    normal = s[3 * contact_set.soft + 2]
    depth = -begin.distances[contact_set.soft] - 0.5 * h * normal
    members = np.flatnonzero((depth > 0.0) & ~np.isin(contact_set.soft, excluded))
    offset, compliance = np.zeros((len(members), 3)), np.zeros((len(members), 3))
    for i, member in enumerate(members):
        contact = contact_set.soft[member]
        law, friction = contact_set.soft_laws[member], contact_set.friction[contact]
        k, d = law.slopes(depth[member], -normal[member])
        pull = np.zeros(3)
        pull[2] = law.force(depth[member], -normal[member])
        stiffness, damping, moving = np.array([0.0, 0.0, k]), np.array([0.0, 0.0, d]), s[3 * contact : 3 * contact + 3]
        if friction:
            stiffness[:2], damping[:2] = law.tangential_stiffness, law.tangential_damping
            pull[:2] = -stiffness[:2] * (deflection[member] + 0.5 * h * moving[:2]) - damping[:2] * moving[:2]
        impedance = np.maximum(0.25 * h**2 * stiffness + h * damping, LEAST_IMPEDANCE * mass)
        offset[i], compliance[i] = -h * pull / impedance - moving, 1.0 / impedance
        if not friction:
            offset[i, :2] = compliance[i, :2] = 0.0
    return SoftRows(members, contact_set.soft[members], offset.ravel(), compliance.ravel())


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


def _spring_rate(stiffness: float, damping: float, e: Array, force: Array, s: Array) -> Array:
    if not stiffness:
        return np.zeros(2)
    if not damping:
        return s - (force + stiffness * e) / (stiffness * RELAXATION)
    return -(force + stiffness * e) / damping


def slide_springs(
    laws: Sequence[SoftLaw],
    soft: SoftRows,
    impulse: Array,
    status: npt.NDArray[np.int64],
    s: Array,
    deflection: Array,
    h: float,
) -> Array:
    """Return the springs (soft, 2) at the end of a step of `h` [s].

    Args:
        laws: of the soft contacts.
        soft: rows of the step.
        impulse: (3 k + l,) of all contacts and one-sided rows [N s].
        status: (k + l,) of these.
        s: (3 k + l,) their mean velocities over the step [m/s].
        deflection: (soft, 2) at the beginning [m].
        h: [s].
    """
    relaxed = np.zeros_like(deflection)
    for member, contact in zip(soft.members, soft.contacts, strict=True):
        k, d = laws[member].tangential_stiffness, laws[member].tangential_damping
        if not k or status[contact] == 0:
            continue
        if status[contact] == 1:
            relaxed[member] = deflection[member] + h * s[3 * contact : 3 * contact + 2]
            continue
        slack = -impulse[3 * contact : 3 * contact + 2] / (h * k)
        fading = np.exp(-h * k / d) if d else 0.0
        relaxed[member] = slack + fading * (deflection[member] - slack)
    return relaxed

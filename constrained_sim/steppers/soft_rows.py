"""Rows of soft contacts in the contact problem of a step, and their springs at its end."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact.laws import normal_force
from constrained_sim.contact_solvers.status import OPEN, STICKING
from constrained_sim.linalg.products import vecdot
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.validation import Array

LEAST_IMPEDANCE = 1e-9
"""Floor of a row's impedance per mass of the robot, for laws whose force does not depend on the motion."""

NO_FORCES = np.empty((0, 3))
"""What the laws of the user's say where there are none."""


class SoftRows(NamedTuple):
    """Rows of the soft contacts that are active in a step, a in number.

    Attributes:
        contacts: (a,) places among all contacts, ascending.
        offset: (3 a,) what is added to the velocity that a row has at the end if its force is 0 [m/s].
        compliance: (3 a,) what is added to the diagonal of the Delassus matrix [1/kg].
    """

    contacts: npt.NDArray[np.int64]
    offset: Array
    compliance: Array


@register_jitable
def depth_ahead(distance, s_normal, h):
    """Return the penetration [m] in the middle of the next h [s] if a contact moves on as it does; negative: apart.

    Args:
        distance: from the surface [m], negative where it penetrates.
        s_normal: velocity with which it opens [m/s].
        h: [s].
    """
    return -distance - 0.5 * h * s_normal


@register_jitable
def is_one_active(contacts, excepted, distances, s, h):
    """Return whether any soft contact but those that are excepted is active in the middle of the next h [s].

    Args:
        contacts: (soft,) places among all contacts.
        excepted: (soft,) whether a contact does not count.
        distances: (k,) of all contacts [m].
        s: (3 k + l,) row velocities [m/s].
        h: [s].
    """
    for member in range(contacts.shape[0]):
        c = contacts[member]
        if not excepted[member] and depth_ahead(distances[c], s[3 * c + 2], h) > 0.0:
            return True
    return False


@register_jitable
def impedance(h, stiffness, damping, mass):
    """Return alpha [kg] of a step of h [s], see :func:`soft_rows`.

    Args:
        h: [s].
        stiffness: [N/m].
        damping: [N s/m].
        mass: of the robot [kg].
    """
    return max(0.25 * h**2 * stiffness + h * damping, LEAST_IMPEDANCE * mass)


@kernel(stage=True, spliced=True)
def soft_rows(model, begin, user_forces, excluded, h):
    """Return the rows of all soft contacts that are active in the middle of the next h [s], implicit in the motion.

    With F the force at the predicted middle, k and d its slopes, and ds the change of the row velocity, the impulse is
    ``r = h F - alpha ds`` with ``alpha = h^2 k / 4 + h d``: the spring at the mean of the positions at both ends, which
    keeps its energy, the damper at the end, as all dampers. Written as ``ds - h F / alpha + r / alpha = 0`` it is a row
    of the contact problem that is compliant by 1/alpha; complementarity lets it push only, and Coulomb's disc bounds
    the rows along the surface.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        begin: the :class:`~constrained_sim.steppers.packed_step.State` at the beginning of the step.
        user_forces: see :func:`forces_of_users`.
        excluded: (x,) contacts that may not become active.
        h: [s].
    """
    contacts, mass, s, count = borrowed(model.contacts), borrowed(model.robot).mass, begin.s, 0
    soft = contacts.soft
    most = soft.contacts.shape[0]
    active, offset, compliance = np.empty(most, dtype=np.int64), np.zeros(3 * most), np.zeros(3 * most)
    for member in range(most):
        contact = soft.contacts[member]
        first, row, law = 3 * contact, 3 * count, soft.law[member]
        s_normal = s[first + 2]
        depth = depth_ahead(begin.distances[contact], s_normal, h)
        takes_part = depth > 0.0
        for other in excluded:
            takes_part = takes_part and other != contact
        if not takes_part:
            continue
        if np.isnan(law[0]):
            force, stiffness, damping = user_forces[member, 0], user_forces[member, 1], user_forces[member, 2]
        else:
            force, stiffness, damping = normal_force((law[0], law[1], law[2], law[3]), depth, -s_normal)
        alpha = impedance(h, stiffness, damping, mass)
        offset[row + 2], compliance[row + 2] = -h * force / alpha - s_normal, 1.0 / alpha
        if contacts.friction[contact] > 0.0:
            stiffness, damping = soft.tangential[member, 0], soft.tangential[member, 1]
            alpha = impedance(h, stiffness, damping, mass)
            for axis in range(2):
                along = s[first + axis]
                pull = -stiffness * (begin.deflection[member, axis] + 0.5 * h * along) - damping * along
                offset[row + axis], compliance[row + axis] = -h * pull / alpha - along, 1.0 / alpha
        active[count] = contact
        count += 1
    return SoftRows(active[:count], offset[: 3 * count], compliance[: 3 * count])


def forces_of_users(contact_set: ContactSet, begin: ContactGeometry, excluded: npt.NDArray[np.intp], h: float) -> Array:
    """Return (soft, 3) what the laws that are functions of the user's say of the middle of the next h [s].

    Normal forces [N], their derivatives by the penetration [N/m], and by its rate [N s/m]; NaN of other laws, and of
    what is not active. (0, 3) where there are no such laws.

    Args:
        contact_set: of the contacts.
        begin: the contacts at the beginning of the step.
        excluded: (x,) contacts that may not become active.
        h: [s].
    """
    if not contact_set.asks_user:
        return NO_FORCES
    user_forces = np.full((len(contact_set.soft), 3), np.nan)
    for member, (contact, law) in enumerate(zip(contact_set.soft, contact_set.soft_laws, strict=True)):
        s_normal = begin.s[3 * contact + 2]
        depth = depth_ahead(begin.distances[contact], s_normal, h)
        if law.coefficients is None and depth > 0.0 and contact not in excluded:
            user_forces[member] = law.force(depth, -s_normal), *law.slopes(depth, -s_normal)
    return user_forces


@kernel(stage=True, spliced=True)
def slide_springs(model, h, begin, found, end):
    """Fill in the springs of soft contacts along their surfaces at the end of a step of h [s].

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        h: [s].
        begin: the :class:`~constrained_sim.steppers.packed_step.State` at the beginning.
        found: impulses and status, a :class:`~constrained_sim.steppers.step_model.StepImpulses`.
        end: the state, whose ``deflection`` is filled.
    """
    soft, work = borrowed(model.contacts).soft, borrowed(model.work)
    middle, x = work.middle, work.x
    for member in range(soft.contacts.shape[0]):
        contact, k, d = soft.contacts[member], soft.tangential[member, 0], soft.tangential[member, 1]
        for axis in range(2):
            row, e = 3 * contact + axis, begin.deflection[member, axis]
            if k == 0.0 or found.status[contact] == OPEN:
                end.deflection[member, axis] = 0.0
            elif found.status[contact] == STICKING:
                end.deflection[member, axis] = e + 0.5 * h * (middle.s[row] + vecdot(middle.J[row], x))
            else:
                slack, fading = -found.impulse[row] / (h * k), math.exp(-h * k / d) if d > 0.0 else 0.0
                end.deflection[member, axis] = slack + fading * (e - slack)

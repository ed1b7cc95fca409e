"""The energy audit of one step of time stepping."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.energy import CONSTRAINTS, CONTACTS, DAMPING, GRAVITY_CORIOLIS, KINETIC, TERMS
from constrained_sim.linalg.products import ANY_ORDER


@kernel
def attribute_work(energy, contacts, constraints):
    """Set the work of contacts and constraints in `energy` (9,) to that of their whole impulses, in place.

    Prediction and correction each close on their own, but a force that is predicted and then withdrawn would show as
    work though it never acted: the difference belongs to the inertial forces, which the correction is about.
    """
    energy[GRAVITY_CORIOLIS] += energy[CONTACTS] + energy[CONSTRAINTS] - contacts - constraints
    energy[CONTACTS], energy[CONSTRAINTS] = contacts, constraints


@kernel
def attribute_friction_work(energy, begin, predicted, end, first, whole):
    """Set the work of dry joint friction in `energy` (9,) to that of its whole impulse, in place.

    Args:
        energy: terms of the step.
        begin: (d,) velocities at the beginning [rad/s, m/s].
        predicted: (d,) as predicted for the end.
        end: (d,) at the end.
        first: (d,) impulses of the prediction [N m s, N s].
        whole: (d,) impulses of the step.
    """
    missing = 0.0
    for i in range(whole.shape[0]):
        counted = first[i] * (begin[i] + predicted[i]) + (whole[i] - first[i]) * (predicted[i] + end[i])
        missing += 0.5 * (whole[i] * (begin[i] + end[i]) - counted)
    energy[GRAVITY_CORIOLIS] -= missing
    energy[DAMPING] += missing


@kernel(fastmath=ANY_ORDER)
def energy_of(v, v_plus, M, impulses):
    """Return (9,) the terms of :class:`~constrained_sim.energy.EnergyTerms` of a change of velocity at constant M.

    Args:
        v: (nv,) at its beginning.
        v_plus: (nv,) at its end.
        M: (nv, nv) inertia.
        impulses: (6, nv) generalised impulses [N m s, N s] of the causes in the order of ``FORCES``.
    """
    terms = np.zeros(TERMS)
    for i in range(v.shape[0]):
        mean, change = 0.5 * (v[i] + v_plus[i]), 0.0
        for cause in range(KINETIC):
            terms[cause] += impulses[cause, i] * mean
        for j in range(v.shape[0]):
            change += M[i, j] * (v_plus[j] - v[j])
        terms[KINETIC] += mean * change
    return terms

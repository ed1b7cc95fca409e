"""Inputs of a step of event-driven stepping."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.contact.features import ContactGeometry
from constrained_sim.contact.soft_forces import soft_forces
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.energy import CONTACTS
from constrained_sim.solvers import Solver
from constrained_sim.stabilization import Baumgarte
from constrained_sim.steppers.known_forces import known_forces
from constrained_sim.validation import Array
from constrained_sim.wrench import Wrench


class MotionInputs(NamedTuple):
    """What acts on the robot during a step, and how its problems are solved.

    Attributes:
        efforts: of the actuators.
        wrenches: external ones.
        solver: of the linear part.
        method: of the contact problems.
        feedback: that removes drift; None: none does, within the motion.
    """

    efforts: Efforts
    wrenches: tuple[Wrench, ...]
    solver: Solver
    method: ContactMethod
    feedback: Baumgarte | None

    def forces(
        self,
        dynamics: Dynamics,
        contact_set: ContactSet,
        geometry: ContactGeometry,
        deflection: Array,
        apart: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return forces (6, nv) by cause, and force rows and spring rates of soft contacts, at the updated state.

        There the contacts have this `geometry`. Those that are `apart`: see
        :func:`~constrained_sim.contact.soft_forces.soft_forces`.
        """
        forces = known_forces(dynamics, self.efforts, self.wrenches)
        if not contact_set.soft.size:
            return forces, np.zeros(contact_set.dim), np.zeros_like(deflection)
        soft, rate = soft_forces(contact_set, geometry, deflection, apart)
        forces[CONTACTS] = soft @ geometry.J
        return forces, soft, rate

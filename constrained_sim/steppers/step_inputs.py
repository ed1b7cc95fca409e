"""Inputs of a time step: efforts, wrenches, and the solver and contact method that are chosen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.contact_solvers import ContactMethod
from constrained_sim.solvers import Solver
from constrained_sim.steppers.soft_rows import NO_FORCES
from constrained_sim.steppers.stepper import NO_CONTACT
from constrained_sim.validation import Array
from constrained_sim.wrench import WrenchTable


class StepInputs(NamedTuple):
    """What acts on the robot during a step, and how its problems are solved.

    Attributes:
        efforts: of the actuators.
        wrenches: external ones, constant along their axes during the step.
        solver: of the linear part.
        method: of the contact problems.
        excluded: (x,) contacts and limits that carry no force.
        user_forces: what the user's laws of soft contacts say, see
            :func:`~constrained_sim.steppers.soft_rows.forces_of_users`.
    """

    efforts: Efforts
    wrenches: WrenchTable
    solver: Solver
    method: ContactMethod
    excluded: npt.NDArray[np.int64] = NO_CONTACT
    user_forces: Array = NO_FORCES

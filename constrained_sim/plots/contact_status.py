"""Whether a contact sticks or slides, from its force alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.validation import Array

ON_CONE = 1.0 - 1e-6
"""Share of the largest friction from which on a contact is taken to slide: solvers keep the bound to rounding."""


def status_of(forces: Array, normal: Array, friction: float) -> npt.NDArray[np.int64]:
    """Return (n,) the :class:`~constrained_sim.contact_solvers.status.ContactStatus` that mean forces tell of.

    Args:
        forces: (n, 3) on the robot [N], world axes.
        normal: (3,) of the surface, from the ground to the robot.
        friction: Coulomb coefficient in effect.
    """
    along = forces @ normal
    across = np.linalg.norm(forces - along[:, None] * normal, axis=1)
    status = np.where(across >= ON_CONE * friction * along, ContactStatus.SLIDING, ContactStatus.STICKING)
    return np.where(along > 0.0, status, ContactStatus.OPEN)

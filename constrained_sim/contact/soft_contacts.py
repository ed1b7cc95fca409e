"""The soft contacts of a robot, as kernels know them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact.laws import SoftLaw
from constrained_sim.validation import Array


class SoftContacts(NamedTuple):
    """The soft contacts.

    Attributes:
        contacts: (soft,) places among all contacts, ascending.
        law: (soft, 4) coefficients of the normal forces, see :class:`~constrained_sim.contact.laws.ForceCoefficients`;
            NaN where the force is a function of the user's.
        tangential: (soft, 2) stiffness [N/m] and damping [N s/m] along the surface.
    """

    contacts: npt.NDArray[np.int64]
    law: Array
    tangential: Array

    @classmethod
    def of(cls, contacts: npt.NDArray[np.int64], laws: tuple[SoftLaw, ...]) -> SoftContacts:
        """Return those at places `contacts` (soft,) that have these `laws`."""
        law = [coefficients or (np.nan,) * 4 for coefficients in (law.coefficients for law in laws)]
        tangential = [(law.tangential_stiffness, law.tangential_damping) for law in laws]
        return cls(contacts, np.array(law).reshape(-1, 4), np.array(tangential).reshape(-1, 2))

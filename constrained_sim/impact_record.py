"""Impacts of a recorded run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.impact import Impact
from constrained_sim.validation import Array


@dataclass(frozen=True, eq=False)
class ImpactRecord:
    """One impact of a run.

    Attributes:
        t: instant [s].
        energy_lost: kinetic energy [J].
        v_minus: (nv,) velocity before.
        v_plus: (nv,) after.
        impulses: (3,) on each contact that passed one [N s], world axes, by name.
        early: contacts that took part before they touched.
    """

    t: float
    energy_lost: float
    v_minus: Array
    v_plus: Array
    impulses: Mapping[str, Array]
    early: int = 0

    @classmethod
    def of(cls, impact: Impact, t: float) -> ImpactRecord:
        """Return what is kept of `impact`, at the instant `t` [s]."""
        return cls(t, impact.energy_lost, impact.v_minus, impact.v_plus, impact.contact_impulses, impact.early)


def impacts_from(source: str, tables: Sequence[Array], impulses: Mapping[str, Array]) -> tuple[ImpactRecord, ...]:
    """Return the impacts in a file, from their `tables` and the `impulses` by contact.

    Raises:
        InvalidValue: tables that are not of one length.
    """
    lengths = {len(np.atleast_1d(table)) for table in (*tables, *impulses.values())}
    if len(lengths) != 1 or any(table.dtype.kind != "f" for table in (*tables, *impulses.values())):
        raise InvalidValue("trajectory", source, "a file that Trajectory.save wrote; its impacts do not fit together")
    return tuple(
        ImpactRecord(float(t), float(lost), minus, plus, _present(impulses, i), int(early))
        for i, (t, lost, minus, plus, early) in enumerate(zip(*tables, strict=True))
    )


def _present(arrays: Mapping[str, Array], i: int) -> dict[str, Array]:
    """Return row `i` of each array, unless it is NaN there."""
    return {name: values[i] for name, values in arrays.items() if not np.isnan(values[i]).any()}

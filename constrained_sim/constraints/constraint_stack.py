"""The rows of several constraints, one below the other."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints.bilateral_rows import BilateralRows
from constrained_sim.constraints.constraint import BoundConstraint, StackedRows
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


class ConstraintStack:
    """The rows of several bound constraints, one below the other."""

    def __init__(self, members: tuple[BoundConstraint, ...], nv: int) -> None:
        """Stack `members` in their order."""
        self.members, self._nv = members, nv
        self._no_values, self._no_rows = np.zeros(0), np.zeros((0, nv))
        self.slices: dict[str, slice] = {}
        self.dim = 0
        for member in members:
            self.slices[member.name] = slice(self.dim, self.dim + member.dim)
            self.dim += member.dim

    @cached_property
    def _parts(self) -> tuple[StackedRows, ...]:
        """What evaluates the rows: neighbours of one kind together."""
        runs = [tuple(run) for _, run in itertools.groupby(self.members, type)]
        return tuple(part for run in runs for part in run[0].together(run))

    @cached_property
    def has_open_targets(self) -> bool:
        """Whether it matters where some of the members are bound."""
        return any(member.declaration.has_open_target for member in self.members)

    def at(self, robot: Robot, q: Array) -> ConstraintStack:
        """Return the same rows of `robot`, with targets that declarations leave open as they are at `q` (nq,)."""
        other = object.__new__(ConstraintStack)
        other._nv, other._no_values, other._no_rows = self._nv, self._no_values, self._no_rows
        other.slices, other.dim = self.slices, self.dim
        other._parts = tuple(part.at(robot, q) for part in self._parts)
        other.members = tuple(member for part in other._parts for member in part.members)
        return other

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) violations."""
        return self._stack([member.phi(dynamics) for member in self.members], self._no_values)

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (dim, nv)."""
        return self._stack([part.jacobian(dynamics) for part in self._parts], self._no_rows)

    def velocity(self, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (dim,) row velocities at the configuration of `dynamics`, for `v` (nv,) at time `t`."""
        return self._stack([part.velocity(dynamics, v, t) for part in self._parts], self._no_values)

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return what :meth:`velocity` does, where J (dim, nv) at that configuration is known already."""
        parts, first = [], 0
        for part in self._parts:
            parts.append(part.velocity_with(J[first : first + part.dim], dynamics, v, t))
            first += part.dim
        return self._stack(parts, self._no_values)

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (dim,)."""
        return self._stack([part.gamma(dynamics) for part in self._parts], self._no_values)

    @cached_property
    def arrays(self) -> BilateralRows | None:
        """All rows as kernels know them; None where one of the kinds is only evaluated by Python."""
        parts = [member.arrays() for member in self.members]
        known = [part for part in parts if part is not None]
        return BilateralRows.stacked(known, self._nv) if len(known) == len(parts) else None

    @cached_property
    def asks_user(self) -> bool:
        """Whether functions of the user's give some of the rows."""
        return any(member.declaration.asks_user for member in self.members)

    def targets(self, t: float, h: float) -> Array:
        """Return (2, 2, dim) the targets of all rows at `t` [s] and `h` later, see :meth:`BoundConstraint.target`."""
        return np.array([self._targets_at(t), self._targets_at(t + h)]) if self.asks_user else self._fixed_targets

    def targets_ahead(self, begins: Iterable[float], h: float) -> Array:
        """Return (n, 2, 2, dim) the targets of steps of `h` [s] that begin at these times [s].

        Of fewer, where a function of the user's raises an error: it comes out at the step that needs the target. Where
        no function is asked, of one, which are those of all steps.
        """
        if not self.asks_user:
            return self._fixed_targets[None]
        found, reached, end = [], np.nan, self._no_values
        with contextlib.suppress(Exception):
            for t in begins:
                begin = end if t == reached else self._targets_at(t)
                reached, end = t + h, self._targets_at(t + h)
                found.append((begin, end))
        return np.array(found).reshape(-1, 2, 2, self.dim)

    @cached_property
    def _fixed_targets(self) -> Array:
        return np.array([self._targets_at(0.0)] * 2)

    def _targets_at(self, t: float) -> Array:
        return np.hstack([np.zeros((2, 0)), *(member.target(t) for member in self.members)])

    @cached_property
    def is_position_level(self) -> npt.NDArray[np.bool_]:
        """(dim,) which rows have a phi."""
        return np.repeat([member.is_position_level for member in self.members], [m.dim for m in self.members]).astype(
            bool
        )

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """(dim) name of the constraint that each row belongs to."""
        return tuple(member.name for member in self.members for _ in range(member.dim))

    def _stack(self, parts: list[Array], empty: Array) -> Array:
        return np.concatenate(parts) if parts else empty

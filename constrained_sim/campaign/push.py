"""External wrenches that act on the robot for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from constrained_sim.campaign.keys import put
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.robot import WORLD
from constrained_sim.validation import finite_array, number
from constrained_sim.wrench import Wrench

NOISE = ("position", "velocity", "effort")
"""What may have noise."""

ROUNDING = 1e-9
"""Part of a control period by which an instant that is meant to be the end of a run may be before it."""


@dataclass(frozen=True)
class Push:
    """A wrench on a link for a while.

    Attributes:
        link: that is pushed.
        force: (3,) [N].
        torque: (3,) [N m] about `point`.
        point: (3,) [m] where the force acts, in the link.
        axes: whose axes `force` and `torque` are in: ``"world"`` or a link.
        at: begin [s], to the nearest control period.
        duration: [s], in whole steps, at least one.
    """

    link: str
    force: tuple[float, ...] = (0.0, 0.0, 0.0)
    torque: tuple[float, ...] = (0.0, 0.0, 0.0)
    point: tuple[float, ...] = (0.0, 0.0, 0.0)
    axes: str = WORLD
    at: float = 0.0
    duration: float = 0.1

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: not three finite numbers, or a time that is negative.
        """
        for name in ("force", "torque", "point"):
            given = finite_array(f"{name} of a push", getattr(self, name), (3,))
            object.__setattr__(self, name, tuple(given.tolist()))
        number("at of a push", self.at, 0.0)
        number("duration of a push", self.duration, 0.0)

    @property
    def wrench(self) -> Wrench:
        """The wrench."""
        return Wrench(self.link, self.force, self.torque, self.point, self.axes)

    def first_period(self, period: float, periods: int) -> int:
        """Return with which of the control `periods` of a run, each this long [s], it begins: the nearest one.

        Raises:
            InvalidValue: it would begin after the end.
        """
        if self.at / period >= periods - ROUNDING:
            end = f"{periods * period:g} s"
            raise InvalidValue("at of a push", self.at, f"an instant before the end of the run, which lasts {end}")
        return min(round(self.at / period), periods - 1)

    def with_values(self, values: Mapping[str, Any]) -> Push:
        """Return this push with other `values`, by key; ``force.0`` means a component.

        Raises:
            UnknownName: no such key.
            ConfigError: no such component.
        """
        if not values:
            return self
        known = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        nested: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in known.items()
        }
        for key, value in values.items():
            if key.split(".")[0] not in known:
                raise UnknownName("key of a push", key, known)
            put(nested, key, value)
        return replace(self, **nested)


def in_order(pushes: Sequence[Push], period: float, periods: int) -> Iterator[tuple[int, Push]]:
    """Yield the pushes of a run of so many control `periods` [s], each with the period that it begins with.

    Of those that begin together, the first is first.

    Raises:
        InvalidValue: see :meth:`Push.first_period`.
    """
    begins = ((push.first_period(period, periods), push) for push in pushes)
    yield from sorted(begins, key=lambda found: found[0])

"""Distributions of values that vary from run to run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from constrained_sim.exceptions import ConfigError, InvalidValue
from constrained_sim.validation import lookup, number

LEAST = 2.0**-53
"""Quantiles are at least so far from 0 and 1, where those of a normal distribution are infinite."""

COUNT_ERROR = 1e-9
"""By which a number of steps may miss a whole number: rounding."""

Value = float | int | bool | str | tuple[float, ...]


class Distribution(ABC):
    """A distribution of values, by its quantiles.

    Attributes:
        kind: its name in a study's file.
    """

    kind: str

    @abstractmethod
    def quantile(self, share: float) -> Value:
        """Return the value below which the `share` of all values lies, 0 < share < 1."""


@dataclass(frozen=True)
class Uniform(Distribution):
    """Every value from `lower` to `upper` alike; with a `step`, those of ``lower + k step``, as delays have to be."""

    lower: float
    upper: float
    step: float = 0.0

    kind = "uniform"

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            InvalidValue: not finite, in the wrong order, or no whole number of steps apart.
        """
        _check_bounds(self.kind, self.lower, self.upper, -math.inf)
        number("step of a uniform distribution", self.step, 0.0)
        if self.step and abs(self._steps - round(self._steps)) > COUNT_ERROR:
            raise InvalidValue("step of a uniform distribution", self.step, "a whole part of upper - lower")

    @property
    def _steps(self) -> float:
        return (self.upper - self.lower) / self.step

    def quantile(self, share: float) -> float:
        """Return ``lower + share (upper - lower)``; with a step, the value whose part of the unit interval that is."""
        if not self.step:
            return self.lower + share * (self.upper - self.lower)
        count = round(self._steps) + 1
        return self.lower + self.step * min(int(share * count), count - 1)


@dataclass(frozen=True)
class LogUniform(Distribution):
    """Every order of magnitude from `lower` to `upper` alike; both are positive."""

    lower: float
    upper: float

    kind = "log_uniform"

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            InvalidValue: not positive, not finite, or in the wrong order.
        """
        _check_bounds(self.kind, self.lower, self.upper, 0.0)

    def quantile(self, share: float) -> float:
        """Return ``lower (upper / lower)^share``."""
        return self.lower * math.exp(share * math.log(self.upper / self.lower))


@dataclass(frozen=True)
class Normal(Distribution):
    """The normal distribution with this mean and standard deviation."""

    mean: float
    deviation: float

    kind = "normal"

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: not finite, or a deviation that is not positive.
        """
        number("mean of a normal distribution", self.mean)
        number("standard deviation of a normal distribution", self.deviation, 0.0, open_lower=True)

    def quantile(self, share: float) -> float:
        """Return ``mean + deviation Phi^-1(share)``."""
        return self.mean + self.deviation * float(ndtri(min(max(share, LEAST), 1.0 - LEAST)))


@dataclass(frozen=True)
class Choice(Distribution):
    """One of `values`, each as often."""

    values: tuple[Value, ...]

    kind = "choice"

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: none, or values that are not of one kind.
        """
        object.__setattr__(self, "values", _values(self.kind, self.values))

    def quantile(self, share: float) -> Value:
        """Return the value whose part of the unit interval holds `share`."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Grid(Choice):
    """Each of `values` in turn: the runs go through all combinations of the grids of a study, the last one fastest."""

    kind = "grid"


DISTRIBUTIONS: dict[str, type[Distribution]] = {kind.kind: kind for kind in (Uniform, LogUniform, Normal, Choice, Grid)}
"""Distributions by the names that a study's file uses."""


def read_distribution(where: str, content: Any) -> Distribution:
    """Read ``{KIND: [NUMBER, NUMBER]}``, ``{uniform: [LOWER, UPPER, STEP]}`` or ``{choice: [VALUE, ...]}``.

    One that is made already is taken as it is.

    Raises:
        ConfigError: something else.
        UnknownName: no such kind.
        InvalidValue: numbers that are not allowed; the message begins with `where`.
    """
    if isinstance(content, Distribution):
        return content
    if not isinstance(content, Mapping) or len(content) != 1:
        allowed = f"a mapping of one key, {', '.join(DISTRIBUTIONS)}, to a list"
        raise ConfigError(f"{where}: got {content!r}, allowed: {allowed}")
    ((name, values),) = content.items()
    kind = lookup(f"distribution of {where}", name, DISTRIBUTIONS)
    if not isinstance(values, list | tuple):
        raise ConfigError(f"{where}.{name}: got {values!r}, allowed: a list")
    is_choice = issubclass(kind, Choice)
    if not is_choice and len(values) != 2 and not (kind is Uniform and len(values) == 3):
        allowed = "two numbers, or three with a step" if kind is Uniform else "two numbers"
        raise ConfigError(f"{where}.{name}: got {len(values)} values, allowed: {allowed}")
    given = [tuple(values)] if is_choice else [number(f"{where}.{name}", value) for value in values]
    try:
        return kind(*given)
    except InvalidValue as error:
        raise InvalidValue(f"{where}: {error.what}", error.value, error.allowed) from error


def _check_bounds(kind: str, lower: float, upper: float, least: float) -> None:
    number(f"lower bound of {kind}", lower, least, open_lower=True)
    number(f"upper bound of {kind}", upper, lower, open_lower=True)


def _values(kind: str, values: Any) -> tuple[Value, ...]:
    """Return `values`, numbers as floats where any of them is one, lists of numbers as tuples of floats."""
    if not isinstance(values, list | tuple) or not values:
        raise InvalidValue(f"values of {kind}", values, "a list of one value or more")
    if all(isinstance(value, list | tuple) for value in values):
        return tuple(tuple(number(f"values of {kind}", part) for part in value) for value in values)
    kinds = {type(value) for value in values}
    if kinds <= {int, float} and float in kinds:
        return tuple(float(value) for value in values)
    if len(kinds) != 1 or not kinds <= {int, float, bool, str}:
        raise InvalidValue(
            f"values of {kind}", values, "all numbers, all lists of numbers, all texts, or all true or false"
        )
    return tuple(values)

"""Checks of what enters the package: each returns the clean value or raises with what was given and allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from constrained_sim.exceptions import InvalidValue, UnknownName

Array = npt.NDArray[np.float64]
T = TypeVar("T")

NAMES = {3: "three", 6: "six"}
"""Of the sizes of vectors, in messages."""


def finite_array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return `value` as a new float array of exactly `shape`, row by row in memory, all entries finite.

    Raises:
        InvalidValue: wrong shape, not numbers, NaN or infinity.
    """
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(what, value, _finite_numbers(shape)) from None
    if array.shape != shape or not np.logical_and.reduce(np.isfinite(array), axis=None):
        raise InvalidValue(what, np.asarray(value).tolist(), _finite_numbers(shape))
    return array


def _finite_numbers(shape: tuple[int, ...]) -> str:
    return f"{'x'.join(map(str, shape)) or 'one'} finite number(s)"


def number(what: str, value: Any, lower: float = -np.inf, upper: float = np.inf, open_lower: bool = False) -> float:
    """Return `value` as a finite float within [lower, upper] (or (lower, upper] with `open_lower`).

    Raises:
        InvalidValue: not a number, not finite, or out of the range.
    """
    is_number = isinstance(value, (float, int, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and _is_finite(value) and lower <= value <= upper and not (open_lower and value == lower):
        return float(value)
    bracket = "(" if open_lower else "["
    raise InvalidValue(what, value, f"a finite number in {bracket}{lower:g}, {upper:g}]")


def _is_finite(value: Any) -> bool:
    """Return whether a number is finite, and no whole number beyond all floats."""
    try:
        return isfinite(value)
    except OverflowError:
        return False


def directions(what: str, values: Sequence[Any], size: int) -> Array:
    """Return (k, size) directions from a list of lists, or (as in ROS parameters) from one list of all numbers.

    Raises:
        InvalidValue: another number of numbers, or numbers that are not finite.
    """
    shape = (len(values), size) if len(values) and np.ndim(values[0]) else (len(values),)
    if len(shape) == 1 and len(values) % size:
        raise InvalidValue(what, list(values), f"{NAMES[size]} numbers for each direction")
    return finite_array(what, values, shape).reshape(-1, size)


def unit_vector(what: str, value: Any) -> Array:
    """Return the direction of the 3-vector `value`, normalised.

    Raises:
        InvalidValue: not three finite numbers, or (nearly) zero.
    """
    vector = finite_array(what, value, (3,))
    length = np.linalg.norm(vector)
    if not 1e-12 < length < np.inf:
        raise InvalidValue(what, vector.tolist(), "a vector of non-zero length")
    return vector / length


def lookup(kind: str, name: Any, registry: Mapping[str, T]) -> T:
    """Return ``registry[name]``.

    Raises:
        UnknownName: with the names that exist.
    """
    try:
        return registry[name]
    except (KeyError, TypeError):
        raise UnknownName(kind, name, registry) from None


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` itself, made unwritable."""
    array.setflags(write=False)
    return array

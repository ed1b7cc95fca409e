"""Checks of what enters the package: each returns the clean value or raises with what was given and allowed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from constrained_sim.exceptions import InvalidValue, NonFiniteMotion, UnknownName, shown

Array = npt.NDArray[np.float64]
T = TypeVar("T")

MOST_LISTED = 100
"""Numbers of an array that a message lists; of a larger one NumPy abbreviates."""

SHORTEST = 1e-12
"""Length below which a vector has no direction, and four numbers are no quaternion."""

LONGEST = 1e150
"""Entry of a vector beyond which its square may overflow."""

MANY = 8
"""Numbers from which on nobody counts them in a message."""

NAMES = {3: "three", 6: "six"}
"""Of the sizes of vectors, in messages."""


def finite_array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return `value` as a new float array of exactly `shape`, row by row in memory, all entries finite.

    Raises:
        InvalidValue: wrong shape, not numbers, NaN or infinity.
    """
    array = _floats(value)
    if array is None or array.shape != shape or not _all_finite(array):
        raise InvalidValue(what, _listed(value), f"{_sizes(shape)} finite number(s){_fault(array, shape)}")
    return array


def _fault(array: Array | None, shape: tuple[int, ...]) -> str:
    """Return what is wrong with an `array` that is to have this `shape` and finite entries; "" where it is obvious."""
    if array is None or array.size < MANY:
        return ""
    if array.shape != shape:
        return f"; here are {_sizes(array.shape)}"
    return f"; entry {list(map(int, np.argwhere(~np.isfinite(array))[0]))} is not"


def one_or_each(what: str, value: Any, count: int) -> Array:
    """Return (count,) finite floats from so many numbers, or from one for all.

    Raises:
        InvalidValue: another number of numbers, not numbers, NaN or infinity.
    """
    return np.full(count, finite_array(what, value, () if isinstance(value, Real) else (count,)))


def sparse_array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return `value` as a new float array of exactly `shape`, whose entries may be NaN: nothing is given there.

    Raises:
        InvalidValue: wrong shape, not numbers, or infinity.
    """
    array = _floats(value)
    if array is None or array.shape != shape or np.isinf(array).any():
        raise InvalidValue(what, _listed(value), f"{_sizes(shape)} number(s), finite or NaN")
    return array


def float_array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return `value` itself if it is a float array of exactly `shape`, all entries finite: for what is asked often.

    Raises:
        InvalidValue: a list, another kind of array, wrong shape, NaN or infinity.
    """
    is_array = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape == shape
    if not is_array or not _all_finite(value):
        raise InvalidValue(what, _listed(value), f"an array of {_sizes(shape)} finite float(s)")
    return value


def check_result(what: str, *values: Array | float) -> None:
    """Refuse a result that is not finite, though all that it comes from is.

    Raises:
        NonFiniteMotion: it is not.
    """
    if not all(map(_all_finite, values)):
        reasons = "what was given is too large or too small for double precision, or a joint moves no inertia"
        raise NonFiniteMotion(f"{what}: not finite; {reasons}")


def _all_finite(value: Array | float) -> bool:
    """Return whether a number, or all entries of an array, are finite."""
    return isfinite(value) if isinstance(value, float) else bool(np.logical_and.reduce(np.isfinite(value), axis=None))


def _sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one"


def _floats(value: Any) -> Array | None:
    """Return a copy of `value` as floats; None where it holds anything but real numbers, text and truth included."""
    if not (isinstance(value, np.ndarray) and value.dtype == np.float64):
        try:
            array = np.asarray(value)
        except Exception:  # ragged, or an object that claims to be an array and is none
            return None
        is_list_of_numbers = not isinstance(value, np.ndarray) and all(isinstance(entry, Real) for entry in array.flat)
        if array.dtype.kind not in "iuf" and not (array.dtype.kind == "O" and is_list_of_numbers):
            return None
        value = array
    try:
        return np.array(value, dtype=np.float64, order="C")
    except OverflowError:
        return None


def _listed(value: Any) -> Any:
    """Return what to show of a value: the numbers of a small array."""
    if not isinstance(value, np.ndarray):
        return value
    return value.tolist() if value.size <= MOST_LISTED else value


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array or of nested lists; (-1,) where it has none, as of ragged ones."""
    try:
        return np.shape(value)
    except Exception:  # what an object raises that claims to be an array and is none
        return (-1,)


def number(what: str, value: Any, lower: float = -np.inf, upper: float = np.inf, open_lower: bool = False) -> float:
    """Return `value` as a finite float within [lower, upper] (or (lower, upper] with `open_lower`).

    Raises:
        InvalidValue: not a number, not finite, or out of the range.
    """
    is_number = isinstance(value, (float, int, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and _is_finite(value) and lower <= value <= upper and not (open_lower and value == lower):
        return float(value)
    raise InvalidValue(what, value, f"a finite number in {_interval(lower, upper, open_lower)}")


def _interval(lower: float, upper: float, open_lower: bool = False) -> str:
    """Return an interval as a refusal says it: infinity is never in it."""
    begin = "(" if open_lower or np.isinf(lower) else "["
    end = ")" if np.isinf(upper) else "]"
    return f"{begin}{lower:.15g}, {upper:.15g}{end}"


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer beyond the floats
        return False


def whole_number(what: str, value: Any, lower: int, upper: float = np.inf) -> int:
    """Return `value` as an integer within [lower, upper].

    Raises:
        InvalidValue: not a whole number, or out of the range.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and lower <= value <= upper:
        return int(value)
    raise InvalidValue(what, value, f"a whole number in {_interval(lower, upper)}")


def flag(what: str, value: Any) -> bool:
    """Return `value` if it is a truth value.

    Raises:
        InvalidValue: anything else, such as the text ``"no"``.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InvalidValue(what, value, "True or False")


def instance(what: str, value: Any, kind: type[T] | tuple[type[T], ...], allowed: str) -> T:
    """Return `value` if it is an instance of `kind`.

    Raises:
        InvalidValue: it is not; says what is `allowed`.
    """
    if not isinstance(value, kind):
        raise InvalidValue(what, value, allowed)
    return value


def function(what: str, value: Any, signature: str) -> Callable[..., Any]:
    """Return `value` if it can be called.

    Raises:
        InvalidValue: it cannot; says by which `signature` it would be.
    """
    if not callable(value) or isinstance(value, type):
        raise InvalidValue(what, value, f"a function {signature}")
    return value


def items(what: str, value: Any, kind: type[Any], allowed: str) -> tuple[Any, ...]:
    """Return what a list, a tuple or another iterable holds, if all of it is of one `kind`.

    Raises:
        InvalidValue: text, a mapping, one thing alone, or a thing of another kind; says what is `allowed`.
    """
    is_alone = isinstance(value, kind) and kind is not object
    if is_alone or isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidValue(what, value, f"a list of {allowed}")
    found = tuple(value)
    for i, item in enumerate(found):
        if not isinstance(item, kind):
            raise InvalidValue(what, list(found), f"a list of {allowed}; entry {i} is {shown(item)}")
    return found


def names(what: str, value: Any) -> tuple[str, ...]:
    """Return a sequence of names.

    Raises:
        InvalidValue: one name alone, or something that is not text.
    """
    return items(what, value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value, str, "names")


def path(what: str, value: Any) -> str:
    """Return the path of a file as text.

    Raises:
        InvalidValue: neither text nor a path, or a path that no file can have.
    """
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str) and text and "\0" not in text:
            return text
    raise InvalidValue(what, value, "the path of a file")


def directions(what: str, values: Sequence[Any], size: int) -> Array:
    """Return (k, size) directions from a list of lists, or (as in ROS parameters) from one list of all numbers.

    Raises:
        InvalidValue: another number of numbers, or numbers that are not finite.
    """
    shape = shape_of(values)
    count = shape[0] if shape else 1
    if len(shape) < 2 and count % size:
        raise InvalidValue(what, values, f"{NAMES[size]} numbers for each direction")
    return finite_array(what, values, (count, size) if len(shape) > 1 else (count,)).reshape(-1, size)


def unit_vector(what: str, value: Any) -> Array:
    """Return the direction of the 3-vector `value`, normalised.

    Raises:
        InvalidValue: not three finite numbers, or (nearly) zero.
    """
    vector = finite_array(what, value, (3,))
    if np.abs(vector).max() > LONGEST:
        vector /= np.abs(vector).max()
    length = np.linalg.norm(vector)
    if not length > SHORTEST:
        raise InvalidValue(what, vector.tolist(), "a vector of non-zero length")
    return vector / length


def unit_pose(what: str, value: Any) -> Array:
    """Return (7,) a position and a quaternion xyzw, which is normalised.

    Raises:
        InvalidValue: not seven finite numbers, or a quaternion that is (nearly) zero, or too long for its square.
    """
    pose = finite_array(what, value, (7,))
    length = np.linalg.norm(pose[3:])
    if not SHORTEST < length < np.inf:
        raise InvalidValue(f"quaternion of the {what}", pose[3:].tolist(), "a quaternion of non-zero length")
    pose[3:] /= length
    return pose


def lookup(kind: str, name: Any, registry: Mapping[str, T]) -> T:
    """Return ``registry[name]``.

    Raises:
        UnknownName: with the names that exist.
    """
    return registry[known(kind, name, registry)]


def known(kind: str, name: Any, allowed: Collection[str]) -> str:
    """Return `name` if it is text and among the names that are `allowed`.

    Raises:
        UnknownName: with the names that exist.
    """
    if not isinstance(name, str) or name not in allowed:
        raise UnknownName(kind, name, allowed)
    return name


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` itself, made unwritable."""
    array.setflags(write=False)
    return array

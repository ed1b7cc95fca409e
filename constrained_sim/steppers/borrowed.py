"""Arrays that a kernel uses without counting who uses them.

Numba counts the references to an array's memory, by atomic operations, whenever a variable or an argument comes to
mean it: a step of a leg does that 1700 times, which takes a third of its time.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.extending import type_callable

Values = TypeVar("Values")


def borrowed(values: Values) -> Values:
    """Return an array, or a tuple of arrays and other values, nested or not, whose arrays do not own their memory.

    The memory has to be there as long as they are used. Where they are made of the arguments of a kernel that Python
    calls, it is there until that returns; nothing of them may be returned or kept. Python owns what it uses.
    """
    return values


@type_callable(borrowed)
def _type_of_borrowed(_context: Any) -> Any:
    """Return how Numba finds its type: that of the values."""
    return lambda values: values


@lower_builtin(borrowed, types.Any)
def _borrow(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return what Numba makes of a call."""
    return _without_owner(context, builder, signature.return_type, arguments[0])


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the `value` of this Numba type with null pointers to the owners of its arrays."""
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        parts = zip(kinds, cgutils.unpack_tuple(builder, value), strict=True)
        return context.make_tuple(builder, kind, [_without_owner(context, builder, *part) for part in parts])
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (cgutils.get_null_value(owner.type) for owner in (array.meminfo, array.parent))
        return array._getvalue()
    return value

"""Arrays that a kernel uses without counting who uses them.

Numba counts the references to an array's memory, by atomic operations, whenever a variable or an argument comes to
mean it: a step of a leg does that 1700 times, which takes a third of its time.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _borrow(_context: Any, values: Any) -> Any:
    """Return an array, or a tuple of arrays and other values, nested or not, whose arrays do not own their memory.

    The memory has to be there as long as they are used. Where they are made of the arguments of a kernel that Python
    calls, it is there until that returns; nothing of them may be returned or kept.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.return_type, arguments[0])

    return values(values), generate


_settings: Any = numba.config
borrowed: Any = (lambda values: values) if _settings.DISABLE_JIT else intrinsic(_borrow)


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

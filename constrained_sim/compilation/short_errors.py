"""Lets kernels compile no text about arrays whose shapes differ.

Where an array is assigned to a slice, Numba compiles code that formats both shapes for the message of an error. This
takes longer than the assignment itself, a tenth of the time that all kernels take, for an error that none makes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

NAME = "raise_with_shape_context"
"""Of the function in numba.np.arrayobj that raises the error; other versions may have none."""


@contextlib.contextmanager
def short_errors() -> Iterator[None]:
    """Use an error without numbers for what is compiled meanwhile, which holds Numba's compiler lock."""
    from numba.np import arrayobj

    usual = getattr(arrayobj, NAME, None)
    if usual is None:
        yield
        return
    setattr(arrayobj, NAME, _shapes_differ())
    try:
        yield
    finally:
        setattr(arrayobj, NAME, usual)


@functools.cache
def _shapes_differ() -> Any:
    """Return the function that raises it, for compiled code."""
    from numba.extending import overload

    def shapes_differ(source: Any, slices: Any) -> None:
        """Say that it cannot be assigned."""

    @overload(shapes_differ)
    def compiled(source: Any, slices: Any) -> Any:
        def shapes_differ(source: Any, slices: Any) -> None:
            raise ValueError("cannot assign an array to a slice of another shape")

        return shapes_differ

    return shapes_differ

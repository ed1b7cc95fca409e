"""A compiled function, as progress and storage see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class CompiledFunction(Protocol):
    """A function with machine code.

    Attributes:
        name: of the function.
        inline: whether callers contain its machine code.
    """

    __module__: str
    name: str
    inline: bool

    @property
    def is_kept(self) -> bool:
        """Whether machine code is in this process, or on disk."""

    def callees(self) -> Iterable[Any]:
        """Return the compiled functions that this one names."""

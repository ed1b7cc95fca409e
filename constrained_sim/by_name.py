"""Results by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from constrained_sim.exceptions import UnknownName

T = TypeVar("T")


class ByName(dict[str, T]):
    """A dict that refuses a name that it does not have with those that it has.

    Attributes:
        kind: of what the names are, for the message.
    """

    def __init__(self, kind: str, values: Mapping[str, T]) -> None:
        """Hold `values` of this `kind`."""
        super().__init__(values)
        self.kind = kind

    def __missing__(self, name: str) -> T:
        """Refuse a name.

        Raises:
            UnknownName: with the names that exist; a KeyError too.
        """
        raise UnknownName(self.kind, name, self)

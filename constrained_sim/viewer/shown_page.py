"""Handle of an open page of the browser."""

from __future__ import annotations

from typing import Protocol


class ShownPage(Protocol):
    """A page that shows a simulation; ``Page`` is one.

    Attributes:
        url: where the page is.
    """

    url: str

    def open(self) -> None:
        """Open the page in the user's browser."""

    def close(self) -> None:
        """End the page; what it shows is free again."""

"""Docstrings as descriptions of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache


@cache
def attribute_docs(kind: type) -> Mapping[str, str]:
    """Return the descriptions in the ``Attributes:`` section of a class's docstring."""
    section = (kind.__doc__ or "").partition("Attributes:")[2].partition("\n\n")[0]
    docs: dict[str, str] = {}
    for line in section.strip().splitlines():
        name, colon, text = line.strip().partition(": ")
        if colon and name.isidentifier():
            docs[name] = text
        elif docs:
            docs[next(reversed(docs))] += " " + line.strip()
    return docs

"""Text files and XML from outside, read within bounds: size, depth, and the line on which each element stands."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from xml.etree.ElementTree import Element
from xml.parsers import expat

from constrained_sim.exceptions import ModelError, shown
from constrained_sim.text_file import read_regular_file

LARGEST_FILE = 8_000_000
"""Bytes of the largest description that is read; the largest of published robots have 0.6 MB."""

DEEPEST = 400
"""Elements inside each other."""

MOST_ELEMENTS = 100_000
"""Elements of one file."""

MOST_ATTRIBUTES = 1000
"""Attributes of one element."""


class Tag(Element):
    """An XML element that knows where it stands.

    Attributes:
        line: in the file, from 1.
        file: that it stands in, where that is another one than the description's; empty: that one.
        owner: the nearest element around it that has a name, for messages.
    """

    line: int = 0
    file: str = ""
    owner: str = ""

    def place_like(self, other: Element) -> None:
        """Stand where another element stands."""
        if isinstance(other, Tag):
            self.line, self.file, self.owner = other.line, other.file, other.owner


def read_text(path_or_xml: str | os.PathLike[str], what: str = "robot description") -> str:
    """Return the text of a robot description, given as a file or as itself.

    Raises:
        ModelError: the file cannot be read, is no regular file, or is too large.
    """
    if isinstance(path_or_xml, str) and _is_xml(path_or_xml):
        if len(path_or_xml) > LARGEST_FILE:
            raise ModelError(f"{what}: got {len(path_or_xml)} characters, allowed: at most {LARGEST_FILE}")
        return path_or_xml
    try:
        return read_regular_file(path_or_xml, LARGEST_FILE)
    except (OSError, TypeError, ValueError) as error:
        given = str(path_or_xml) if isinstance(path_or_xml, os.PathLike) else path_or_xml
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot read the {what} {shown(given)}: {reason}") from error


@contextlib.contextmanager
def errors_in(path_or_xml: str | os.PathLike[str]) -> Iterator[None]:
    """Read a robot description, given as a file or as itself.

    Raises:
        ModelError: what is wrong with it, and in which file.
    """
    try:
        yield
    except ModelError as error:
        if _is_xml(path_or_xml):
            raise
        raise ModelError(f"{os.fspath(path_or_xml)}: {error.message}") from error


def _is_xml(path_or_xml: object) -> bool:
    return isinstance(path_or_xml, str) and path_or_xml.lstrip("\ufeff \t\r\n").startswith("<")


def parse_xml(text: str, what: str) -> Tag:
    """Return the root of an XML document. Default namespaces are left out; prefixes stay in front of names.

    Raises:
        ModelError: not XML, too deep, too many elements, or entities of its own.
    """
    try:
        return _Parser(what).parse(text)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ModelError(f"not a valid {what}: {reason}, line {error.lineno}, column {error.offset}") from error
    except ValueError as error:  # a lone surrogate
        raise ModelError(f"not a valid {what}: {error}") from error


class _Parser:
    """Builds a tree of tags."""

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0
        self._open: list[Tag] = []
        self._root: Tag | None = None
        self._last: Tag | None = None
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._text
        self._expat.EntityDeclHandler = self._entity

    def parse(self, text: str) -> Tag:
        self._expat.Parse(text.lstrip("\ufeff \t\r\n").encode("utf-8"), True)
        if self._root is None:
            raise ModelError(f"not a valid {self._what}: no element in it")
        return self._root

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self._expat.CurrentLineNumber
        self._count += 1
        if self._count > MOST_ELEMENTS:
            raise ModelError(f"{self._what}: got more than {MOST_ELEMENTS} elements, allowed: at most that")
        if len(attributes) > MOST_ATTRIBUTES:
            raise ModelError(f"{self._what}, line {line}: got {len(attributes)} attributes, allowed: {MOST_ATTRIBUTES}")
        if len(self._open) >= DEEPEST:
            text = f"got {DEEPEST + 1} elements inside each other, allowed: {DEEPEST}"
            raise ModelError(f"{self._what}, line {line}: {text}")
        tag = Tag(name, {key: value for key, value in attributes.items() if key != "xmlns"})
        tag.line = line
        if self._open:
            parent = self._open[-1]
            owner = parent.get("name") or parent.get("reference")
            tag.owner = f"<{parent.tag}> {owner[:80]!r}" if owner else parent.owner
            parent.append(tag)
        else:
            self._root = tag
        self._open.append(tag)
        self._last = None

    def _end(self, name: str) -> None:
        self._last = self._open.pop()

    def _text(self, data: str) -> None:
        if self._last is not None:
            self._last.tail = (self._last.tail or "") + data
        elif self._open:
            self._open[-1].text = (self._open[-1].text or "") + data

    def _entity(self, name: str, *_: object) -> None:
        line = self._expat.CurrentLineNumber
        raise ModelError(f"{self._what}, line {line}: got the entity {name!r}, allowed: no entities of its own")


def where(element: Element) -> str:
    """Return ``<tag> 'name' (line n)``, or ``<tag> of <owner> 'name' (line n)``, for messages."""
    name = element.get("name")
    text = f"<{element.tag}>{f' {name[:80]!r}' if name else ''}"
    if not isinstance(element, Tag) or not element.line:
        return text
    owner = f" of {element.owner}" if element.owner and not name else ""
    return f"{text}{owner} ({f'{element.file}, ' if element.file else ''}line {element.line})"


def descend(root: Element) -> Iterator[tuple[Element, Element | None]]:
    """Yield every element of a tree with its parent, in the order of the file."""
    waiting: list[tuple[Element, Element | None]] = [(root, None)]
    while waiting:
        element, parent = waiting.pop()
        yield element, parent
        waiting.extend((child, element) for child in reversed(element))

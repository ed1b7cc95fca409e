"""Vocabulary of a format: what its elements may hold, as a table; and the walk that checks a file against it.

Whatever a file says is done, refused with its name and line, or reported as read and not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from xml.etree.ElementTree import Element

from constrained_sim.descriptions.document import where
from constrained_sim.exceptions import ModelError

LARGEST = 1e30
"""Numbers from here on are no lengths, masses or gains: products of several would overflow."""


@dataclass(frozen=True)
class Rule:
    """What an element may hold. Names are separated by blanks.

    Attributes:
        numbers: used attributes that hold numbers, as ``name=3`` (three finite numbers), ``name=1-5``, ``name=*`` (any
            number of them); ``~name=2`` allows infinite ones.
        words: used attributes that hold text.
        unused: attributes that are read and not used.
        refused: attributes that would make another robot, with the values that say nothing.
        children: used elements.
        shown: elements for those who show the robot; neither used nor reported.
        unused_children: elements that are read and not used, with all that they hold.
        refused_children: elements that would make another robot, with the texts that say nothing.
        text: numbers that the element holds as its text, as ``3``, ``1-5`` or ``~1``.
        is_closed: whether other elements are refused, where the format as a whole only reports them.
    """

    numbers: str = ""
    words: str = ""
    unused: str = ""
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    children: str = ""
    shown: str = ""
    unused_children: str = ""
    refused_children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text: str = ""
    is_closed: bool = False

    @cached_property
    def counts(self) -> dict[str, Count]:
        """How many numbers an attribute holds, by its name."""
        pairs = (entry.split("=") for entry in self.numbers.split())
        return {name.lstrip("~"): Count.of(("~" if name.startswith("~") else "") + count) for name, count in pairs}

    @cached_property
    def names(self) -> dict[str, frozenset[str]]:
        """Names of attributes and of elements, by what becomes of them."""
        groups = ("words", "unused", "children", "shown", "unused_children")
        return {group: frozenset(getattr(self, group).split()) for group in groups}

    @property
    def known(self) -> list[str]:
        """All attributes that may be there."""
        return sorted({*self.counts, *self.names["words"], *self.names["unused"]})

    @property
    def known_children(self) -> list[str]:
        """All elements that may be there."""
        return sorted({*self.names["children"], *self.names["shown"], *self.names["unused_children"]})


@dataclass(frozen=True)
class Count:
    """How many numbers there must be.

    Attributes:
        least: at least so many.
        most: at most so many; None: any number.
        is_finite: whether they must be finite.
    """

    least: int
    most: int | None
    is_finite: bool = True

    @classmethod
    def of(cls, text: str) -> Count:
        """Return what ``3``, ``1-5``, ``*`` or ``~1`` means."""
        first, _, last = text.lstrip("~").partition("-")
        if first == "*":
            return cls(0, None, not text.startswith("~"))
        return cls(int(first), int(last or first), not text.startswith("~"))

    def check(self, what: str, text: str | None) -> list[float]:
        """Return the numbers in `text`.

        Raises:
            ModelError: others than there must be.
        """
        try:
            values = [_number(word) for word in (text or "").split()]
        except ValueError:
            values = [float("nan")]
        fitting = self.least <= len(values) and (self.most is None or len(values) <= self.most)
        if not fitting or any(value != value or (self.is_finite and abs(value) > LARGEST) for value in values):
            raise ModelError(f"{what}: got {(text or '')[:80]!r}, allowed: {self}")
        return values

    def __str__(self) -> str:
        """Return it as a refusal says it."""
        most = "any number of" if self.most is None else str(self.most)
        count = most if self.least == self.most or self.most is None else f"{self.least} to {most}"
        return f"{count} {'finite ' if self.is_finite else ''}number(s)"


class Ignored:
    """What a file says and nobody uses, each kind once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._first: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self._reports: list[str] = []

    def add(self, what: str, element: Element, why: str = "") -> None:
        """Note that `what`, at `element`, is not used."""
        self._first.setdefault(what, f"{where(element)}{f': {why}' if why else ''}")
        self._count[what] = self._count.get(what, 0) + 1

    def report(self, text: str) -> None:
        """Note something else that the user must know of."""
        self._reports.append(text)

    def lines(self) -> tuple[str, ...]:
        """Return one line for each kind."""
        return (
            *(f"read, not used: {what}, {first}{self._times(what)}" for what, first in self._first.items()),
            *self._reports,
        )

    def _times(self, what: str) -> str:
        return f" and {self._count[what] - 1} more" if self._count[what] > 1 else ""


@dataclass(frozen=True)
class Vocabulary:
    """The elements of a format.

    Attributes:
        format: its name.
        rules: by ``parent/tag``, or by tag.
        is_closed: whether attributes and elements that are not in the table are refused, or reported.
        once: elements of which another may hold one only, separated by blanks.
    """

    format: str
    rules: Mapping[str, Rule]
    is_closed: bool = False
    once: str = ""

    def check(self, root: Element, ignored: Ignored) -> None:
        """Hold a file against the table, and note what is not used.

        Raises:
            ModelError: something that is refused, or numbers that are none.
        """
        waiting = [(root, self.rules[root.tag])]
        while waiting:
            element, rule = waiting.pop()
            self._check_attributes(element, rule, ignored)
            if rule.text:
                Count.of(rule.text).check(where(element), element.text)
            followed = [child for child in element if self._is_followed(child, element, rule, ignored)]
            self._refuse_repeated(element, followed)
            for child in reversed(followed):
                waiting.append((child, self.rule_for(element.tag, child.tag)))

    def _refuse_repeated(self, element: Element, followed: list[Element]) -> None:
        tags = [child.tag for child in followed]
        for tag in self.once.split():
            if tags.count(tag) > 1:
                raise ModelError(f"{where(element)}: got {tags.count(tag)} <{tag}>, allowed: one")

    def rule_for(self, parent: str, tag: str) -> Rule:
        """Return what an element in another may hold; an element without a rule may hold text."""
        return self.rules.get(f"{parent}/{tag}") or self.rules.get(tag) or Rule()

    def _check_attributes(self, element: Element, rule: Rule, ignored: Ignored) -> None:
        for key, value in element.items():
            if key in rule.counts:
                rule.counts[key].check(f"{key!r} of {where(element)}", value)
            elif key in rule.refused:
                _refuse_unless(value, rule.refused[key], f"{key!r} of {where(element)}")
            elif key in rule.names["unused"]:
                ignored.add(f"attribute {key!r} of <{element.tag}>", element)
            elif key not in rule.names["words"] and not key.startswith(("xmlns:", "xml:", "xsi:")):
                what = f"attribute {key!r} of <{element.tag}>"
                self._meet_unknown(what, element, self.is_closed, rule.known, ignored)

    def _is_followed(self, child: Element, parent: Element, rule: Rule, ignored: Ignored) -> bool:
        """Return whether an element is used."""
        if child.tag in rule.names["children"]:
            return True
        if child.tag in rule.refused_children:
            _refuse_unless(child.text or "", rule.refused_children[child.tag], f"{where(child)} in <{parent.tag}>")
        elif child.tag in rule.names["unused_children"]:
            ignored.add(f"<{child.tag}> in <{parent.tag}>", child)
        elif child.tag not in rule.names["shown"]:
            what = f"<{child.tag}> in <{parent.tag}>"
            self._meet_unknown(what, child, self.is_closed or rule.is_closed, rule.known_children, ignored)
        return False

    def _meet_unknown(
        self, what: str, element: Element, is_closed: bool, known: Iterable[str], ignored: Ignored
    ) -> None:
        if is_closed:
            raise ModelError(f"{what}, {where(element)}: not understood, allowed: {', '.join(known) or 'none'}")
        ignored.add(what, element, f"not part of {self.format}")


def _number(word: str) -> float:
    """Return a number as C's strtod reads it.

    Raises:
        ValueError: it is none.
    """
    if "_" in word or not word.isascii():
        raise ValueError(word)
    return float(word)


def _refuse_unless(value: str, harmless: tuple[str, ...], what: str) -> None:
    """Refuse a value that is not one of those that say nothing.

    Raises:
        ModelError: it is not.
    """
    words = " ".join(value.split())
    if words not in harmless and not (words and "0" in harmless and _is_zero(words)):
        raise ModelError(f"{what}: got {words[:80]!r}, allowed: {' or '.join(harmless) or 'none, it is not supported'}")


def _is_zero(text: str) -> bool:
    try:
        return not any(float(word) for word in text.split())
    except ValueError:
        return False


def numbers(element: Element, key: str, default: Iterable[float] = ()) -> list[float]:
    """Return the numbers of an attribute that the table has checked, or its `default`."""
    text = element.get(key)
    return list(default) if text is None else [float(word) for word in text.split()]


def number(element: Element, key: str, default: float) -> float:
    """Return the number of an attribute that the table has checked, or its `default`."""
    return numbers(element, key, (default,))[0]


def not_negative(element: Element, key: str, default: float) -> float:
    """Return a number that must not be below zero.

    Raises:
        ModelError: it is.
    """
    value = number(element, key, default)
    if not value >= 0.0:
        raise ModelError(f"{key!r} of {where(element)}: got {value:g}, allowed: a number >= 0")
    return value


def needed(element: Element, key: str) -> str:
    """Return an attribute that must be there.

    Raises:
        ModelError: it is not, or is empty.
    """
    text = element.get(key, "").strip()
    if not text:
        raise ModelError(f"{where(element)}: the attribute {key!r} is missing")
    return text

"""The topics contact_wrenches/NAME: one for each contact, as long as it is declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from geometry_msgs.msg import WrenchStamped

from constrained_sim.exceptions import InvalidValue
from constrained_sim.ros.cdr import serialise
from constrained_sim.ros.topics import Topic, Topics


class ContactWrenches:
    """Publishes the wrench of every contact on a topic of its own.

    What a name has that topics do not allow becomes an underscore there. Contacts that are declared have a topic at
    once. Those which collision geometry finds have one from their first touch on; they are too many to be named by the
    user, so that one whose name cannot be a topic is told of once.
    """

    def __init__(self, topics: Topics, is_on: bool) -> None:
        """Open no topic yet; without `is_on`, names are checked, and nothing is ever opened."""
        self._topics, self._is_on = topics, is_on
        self._open: dict[str, Topic] = {}
        self._declared: set[str] = set()
        self._ever_declared: set[str] = set()
        self._mute: set[str] = set()

    def check(self, name: str, others: Iterable[str]) -> None:
        """Check the name of a contact that is to be beside `others`.

        Raises:
            InvalidValue: it cannot be a topic, or is the topic of another one.
        """
        topic = topic_of(name)
        for other in others:
            if other != name and topic_of(other) == topic:
                raise InvalidValue(
                    "name of a contact", name, f"one that is no other's topic, {topic} is that of {other!r}"
                )
        if name not in self._open:
            self._topics.check(topic)

    def follow(self, declared: Iterable[str]) -> None:
        """Open the topics of contacts that were `declared`, close those of contacts that no longer are.

        Raises:
            InvalidValue: a name that :meth:`check` refuses.
        """
        names = set(declared)
        for name in sorted(names - self._declared):
            self.check(name, names)
        for name in sorted(self._declared - names):
            self._close(name)
        if self._is_on:
            for name in sorted(names - self._open.keys()):
                self._open[name] = self._topics.open(WrenchStamped, topic_of(name))
        self._declared, self._ever_declared = names, self._ever_declared | names

    def send(self, wrenches: Mapping[str, WrenchStamped], stamp: int) -> None:
        """Publish `wrenches` by name of the contact."""
        for name, message in wrenches.items():
            topic = self._open.get(name) or self._open_found(name)
            if topic is not None:
                topic.send(message, stamp)

    def greet(self, make: Callable[[], Mapping[str, WrenchStamped]]) -> None:
        """Publish the wrenches that `make` returns once more on topics that somebody has begun to listen to."""
        waiting = [name for name, topic in self._open.items() if topic.has_newcomers]
        for name, message in make().items() if waiting else ():
            if name in waiting:
                self._open[name].repeat(serialise(message))

    def _open_found(self, name: str) -> Topic | None:
        """Open the topic of a contact that collision geometry has found; None if it cannot have one."""
        if name in self._mute:
            return None
        try:
            self.check(name, {*self._open, *self._ever_declared})  # a reset brings back what was removed
        except InvalidValue as error:
            self._mute.add(name)
            self._topics.warn(f"not published in contact_wrenches: {error}")
            return None
        return self._open.setdefault(name, self._topics.open(WrenchStamped, topic_of(name)))

    def _close(self, name: str) -> None:
        if self._open.pop(name, None) is not None:
            self._topics.close(topic_of(name))


def topic_of(name: str) -> str:
    """Return the topic of the contact `name`."""
    allowed = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"contact_wrenches/{'_' if allowed[0].isdigit() else ''}{allowed}"

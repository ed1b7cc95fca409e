"""Choice of the topics that a recording holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from constrained_sim.exceptions import ConfigError

INPUTS = "~/inputs"
"""Everything that enters the simulation; every recording holds it, so that it can be replayed."""

WILD = frozenset("*?[")


class TopicChoice:
    """Topics that are chosen by name; names are compared before remapping, so that a replay finds the same ones."""

    def __init__(self, patterns: Sequence[str] = (), namespace: str = "/", node_name: str = "constrained_sim") -> None:
        """Choose the topics that fit one of `patterns`.

        Args:
            patterns: names with ``*`` for any characters, absolute or in the namespace; none: all topics.
            namespace: of the node.
            node_name: of the node, for names that begin with ``~/``.
        """
        self._patterns, self._namespace, self._node_name = tuple(patterns), namespace.rstrip("/"), node_name
        self._wanted = {self._absolute(pattern): pattern for pattern in self._patterns}

    def __contains__(self, name: str) -> bool:
        """Whether the topic `name` is recorded."""
        if not self._patterns or name == INPUTS:
            return True
        absolute = self._absolute(name)
        return any(fnmatchcase(absolute, pattern) for pattern in self._wanted)

    def check(self, names: Iterable[str]) -> None:
        """Check that every topic that is chosen by its whole name is there.

        Args:
            names: of all topics that there are.

        Raises:
            ConfigError: one is not.
        """
        known = {self._absolute(name): name for name in (*names, INPUTS)}
        absent = [given for name, given in self._wanted.items() if name not in known and not WILD & set(name)]
        if absent:
            raise ConfigError(f"record_topics: nothing is published on {absent}, allowed: {sorted(known.values())}")

    def _absolute(self, name: str) -> str:
        if name.startswith("/"):
            return name
        own = f"{self._node_name}/" if name.startswith("~/") else ""
        return f"{self._namespace}/{own}{name.removeprefix('~/')}"

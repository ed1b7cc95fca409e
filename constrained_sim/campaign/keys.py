"""Keys with dots between levels, of a study and of the configuration in it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from constrained_sim.exceptions import ConfigError


@dataclass
class SplitValues:
    """Values of a run by whom they are for.

    Attributes:
        configuration: by key of the configuration, with dots.
        options: of the controller, by key, with dots for an index into a list.
        pushes: by push, then by key.
        noise: by kind.
    """

    configuration: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    pushes: dict[str, dict[str, Any]] = field(default_factory=dict)
    noise: dict[str, Any] = field(default_factory=dict)

    def put_into(self, configuration: dict[str, Any]) -> dict[str, Any]:
        """Return `configuration`, changed, with the values in it.

        Raises:
            ConfigError: a key through what is no group, or an index that a list does not have.
        """
        for key, value in self.configuration.items():
            put(configuration, key, list(value) if isinstance(value, tuple) else value)
        return configuration

    def options_over(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return `options` of the controller with the values over them.

        Raises:
            ConfigError: an index that a list does not have.
        """
        changed = copy.deepcopy(dict(options))
        for key, value in self.options.items():
            put(changed, key, value)
        return changed


def split_values(values: Mapping[str, Any]) -> SplitValues:
    """Return `values` by whom they are for.

    Raises:
        ConfigError: ``pushes``, ``noise`` or ``controller`` without what of it.
    """
    split = SplitValues()
    for key, value in values.items():
        group, _, rest = key.partition(".")
        if group not in ("controller", "pushes", "noise"):
            split.configuration[key] = value
            continue
        name, _, what = rest.partition(".")
        if not name or (group == "pushes" and not what):
            raise ConfigError(f"variations: got {key!r}, allowed: controller.NAME, pushes.NAME.KEY, noise.NAME")
        if group == "controller":
            split.options[rest] = value
        elif group == "noise":
            split.noise[rest] = value
        else:
            split.pushes.setdefault(name, {})[what] = value
    return split


def put(nested: dict[str, Any], key: str, value: Any) -> None:
    """Write `value` into `nested`, whose mappings and lists are changed; groups that are missing are made.

    Raises:
        ConfigError: a key through what is neither mapping nor list, or an index that a list does not have.
    """
    *groups, last = key.split(".")
    level: Any = nested
    for group in groups:
        if isinstance(level, dict):
            level = level.setdefault(group, {})
        elif isinstance(level, list) and _is_index(group, level):
            level = level[int(group)]
        else:
            raise ConfigError(_no_place(key, group))
    if isinstance(level, dict):
        level[last] = value
    elif isinstance(level, list) and _is_index(last, level):
        level[int(last)] = value
    else:
        raise ConfigError(_no_place(key, last))


def _is_index(text: str, values: list[Any]) -> bool:
    return text.isdigit() and int(text) < len(values)


def _no_place(key: str, part: str) -> str:
    return (
        f"key {key!r}: {part!r} has no place there, allowed: a key of a mapping, or an index into a list that is given "
        "in the configuration"
    )

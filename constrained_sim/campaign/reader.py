"""Reads a study from a YAML file, or from nested mappings; every key is read or refused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from constrained_sim.campaign.distributions import read_distribution
from constrained_sim.campaign.keys import put
from constrained_sim.campaign.measures import read_measure
from constrained_sim.campaign.push import Push
from constrained_sim.campaign.references import find_object
from constrained_sim.campaign.study import Study
from constrained_sim.config_sections import Section
from constrained_sim.exceptions import ConfigError, shown
from constrained_sim.package_paths import find_config
from constrained_sim.parameter_file import load_parameters, read_yaml
from constrained_sim.shipped import no_robot, shipped_robots
from constrained_sim.validation import number


def load_study(path: str | os.PathLike[str]) -> Study:
    """Read a study from a YAML file.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or holds an unknown key or a value of the wrong kind.
        ConstrainedSimError: a name or value in it that is not allowed.
    """
    file = Path(path).resolve()
    return replace(read_study(read_yaml(path), file.parent), file=file)


def read_study(content: Mapping[str, Any], folder: Path | None = None) -> Study:
    """Make a Study of nested mappings as a file has them; relative paths start at `folder`.

    Raises:
        ConfigError: an unknown key, or a value of the wrong kind.
        ConstrainedSimError: a name or value that is not allowed.
    """
    top, here = Section("study", content), folder or Path.cwd()
    robot, configuration = _configuration(top, here)
    controller, options = _controller(top)
    variations = {
        str(name): read_distribution(f"study.variations.{name}", values)
        for name, values in top.section("variations").remaining().items()
    }
    noise = {
        str(name): number(f"study.noise.{name}", value, 0.0) for name, value in top.section("noise").remaining().items()
    }
    pushes = {section.name: _push(section) for section in top.named_sections("pushes")}
    find = lambda text: find_object(text, here)  # noqa: E731
    measures = {
        str(name): read_measure(str(name), options, find)
        for name, options in top.section("measures").remaining().items()
    }
    simple = {
        entry.name: top.take(entry.name, type(entry.default), entry.default)
        for entry in fields(Study)
        if entry.name in SIMPLE
    }
    study = Study(
        configuration,
        top.take("duration", float),
        controller,
        options,
        variations,
        pushes,
        noise,
        measures,
        robot=robot,
        folder=here,
        **simple,
    )
    top.finish()
    return study


SIMPLE = "passed", "runs", "seed", "sampling", "time_limit", "memory_limit", "keep", "worst", "worst_by"
"""Keys that are one value, of the type of its default."""


def _configuration(top: Section, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of the shipped robot, if it is one, and the nested parameters of the simulation.

    Raises:
        ConfigError: no such file or robot.
    """
    robot = top.take("robot", object)
    if isinstance(robot, Mapping):
        name, nested = "", _copied(robot)
    elif isinstance(robot, str):
        shipped = shipped_robots()
        file = shipped.get(robot) or find_config(robot if robot.startswith("package://") else folder / robot).absolute()
        if not file.exists():
            raise ConfigError(f"study.robot: {no_robot(robot, folder)}")
        name, nested = (robot if robot in shipped else ""), _copied(load_parameters(file))
        _make_paths_absolute(nested, file.parent)
    else:
        raise ConfigError(f"study.robot: got {shown(robot)}, allowed: a parameter file, a shipped robot, or a mapping")
    for key, value in top.section("parameters").remaining().items():
        put(nested, str(key), _copied(value))
    return name, nested


def _make_paths_absolute(nested: dict[str, Any], folder: Path) -> None:
    """Let the description of a robot that lies beside its parameter file be found from anywhere."""
    robot = nested.get("robot")
    for kind in ("urdf", "sdf", "mjcf"):
        text = robot.get(kind) if isinstance(robot, dict) else None
        if isinstance(text, str) and not text.lstrip().startswith("<") and "://" not in text:
            robot[kind] = str(folder / text)  # type: ignore[index]


def _controller(top: Section) -> tuple[Any, dict[str, Any]]:
    """Return the controller and its options: a name, a command line, an object, or ``{use: NAME, OPTION: VALUE}``.

    Raises:
        ConfigError: something else.
    """
    use, options = top.take("controller", object, None), dict[str, Any]()
    if isinstance(use, Mapping):
        section = Section("study.controller", use)
        use, options = section.take("use", object), section.remaining()
    if isinstance(use, list) and use and all(isinstance(word, str) for word in use):
        return tuple(use), options
    if use is None or isinstance(use, str) or callable(use) or hasattr(use, "efforts"):
        return use, options
    allowed = "a name, MODULE:NAME, FILE.py:NAME, a command line in a list, or {use: one of these, OPTION: VALUE}"
    raise ConfigError(f"study.controller: got {shown(use)}, allowed: {allowed}")


def _push(section: Section) -> Push:
    """Read a push; its keys are its attributes, with their defaults."""
    given = {
        entry.name: section.take(entry.name, type(entry.default), entry.default)
        for entry in fields(Push)
        if entry.default is not MISSING
    }
    push = Push(section.take("link", str), **given)
    section.finish()
    return push


def _copied(value: Any) -> Any:
    """Return `value` with mappings and lists of its own."""
    if isinstance(value, Mapping):
        return {str(key): _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list | tuple) else value

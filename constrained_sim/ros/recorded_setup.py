"""Setup of a simulation at the beginning of its recording: what has to be the same for a replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import machine
from typing import Any

from constrained_sim.config import Config
from constrained_sim.robot import Robot

LIBRARIES = ("numpy", "scipy", "numba", "pin")
"""On whose versions the bits of a result depend."""


def describe(parameters: Mapping[str, Any], config: Config, namespace: str = "/") -> dict[str, Any]:
    """Return what has to be the same for a replay: the configuration, a digest of the model, versions."""
    return {
        "parameters": parameters,
        "folder": str(Path.cwd()),  # where relative paths begin
        "namespace": namespace,
        "digest": _digest(parameters, config.robot),
        "versions": _versions(),
    }


def with_former_defaults(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return `parameters` with what recordings from before an option did."""
    return {"tf": "base"} | dict(parameters)


def changes_since(described: Mapping[str, Any], robot: Robot) -> tuple[str, ...]:
    """Return what is not as it was `described`, now that the same parameters lead to `robot`; a line each."""
    here = _versions()
    changed = [
        f"{name}: recorded with {then}, now {here.get(name)}"
        for name, then in described["versions"].items()
        if then != here.get(name)
    ]
    if described["digest"] != _digest(described["parameters"], robot):
        changed.append("the description of the robot has changed since the recording")
    return tuple(changed)


def _versions() -> dict[str, str]:
    """Return the versions of the libraries, and the type of the processor."""
    return {library: version(library) for library in LIBRARIES} | {"machine": machine()}


def _digest(parameters: Mapping[str, Any], robot: Robot) -> str:
    """Return the SHA-256 of `parameters` and of the model that they lead to."""
    text = json.dumps(parameters, sort_keys=True) + robot.model.saveToString()
    return sha256(text.encode()).hexdigest()

"""The controller of a run, from what a study says of it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.campaign.references import find_object
from constrained_sim.config import Config
from constrained_sim.controllers import CONTROLLERS, Posture
from constrained_sim.dynamics.dynamics import integrate
from constrained_sim.exceptions import ConfigError, InvalidValue, UnknownName
from constrained_sim.validation import Array

Efforts = Callable[[float, Array, Array], Any]

POSTURE = ("stiffness", "damping", "feed_forward")
"""Options of a posture about the initial configuration."""


def make_controller(
    given: Any, options: Mapping[str, Any], config: Config, robot_name: str, folder: Path
) -> Efforts | None:
    """Return a new controller for a run.

    Args:
        given: ``none``; ``posture``, about the initial configuration; a mode of the shipped robot's law;
            ``MODULE:NAME`` or ``FILE.py:NAME`` of a function ``efforts(t, q, v)``, of a class, or of an object; or one
            of these itself. A class is made anew for every run, with the configuration and `options`; of an object
            every run has a copy, so that none sees what another left. Its ``efforts`` is asked, or itself.
        options: of the controller: gains of a posture, class attributes of a shipped law, keywords of a class or
            function.
        config: of the simulation.
        robot_name: of the shipped robot, if it is one.
        folder: of the study.

    Raises:
        ConfigError: what is named cannot be loaded, or options for no controller.
        UnknownName: no such mode or option.
        InvalidValue: no controller.
    """
    if given is None or given == "none":
        if options:
            raise ConfigError(
                f"controller: got options {', '.join(options)} for none, allowed: a controller that has some"
            )
        return None
    if given == "posture":
        return _posture(config, options)
    if isinstance(given, str) and ":" not in given:
        return _shipped(given, options, config, robot_name)
    found = find_object(given, folder) if isinstance(given, str) else given
    made = found(config, **options) if isinstance(found, type) else copy.deepcopy(found)
    efforts: Any = made if isinstance(made, Posture) else getattr(made, "efforts", made)
    if options and not isinstance(found, type):
        efforts = functools.partial(efforts, **options)
    if not callable(efforts):
        raise InvalidValue("controller", given, "a function efforts(t, q, v), or a class whose instances have one")
    return efforts


def check_named(name: str, options: Mapping[str, Any], config: Config, robot_name: str, folder: Path) -> None:
    """Refuse the name of a controller that no run can have; arguments as of :func:`make_controller`.

    Nothing of the user's is called: a class is made for a run only.

    Raises:
        ConfigError: what is named cannot be loaded, or options for no controller.
        UnknownName: no such mode or option.
    """
    if ":" in name:
        find_object(name, folder)
    else:
        make_controller(name, options, config, robot_name, folder)


def _posture(config: Config, options: Mapping[str, Any]) -> Posture:
    """Return the posture of the initial configuration."""
    for name in options:
        if name not in POSTURE:
            raise UnknownName("option of the controller 'posture'", name, POSTURE)
    gains = {"stiffness": 0.0, "damping": 0.0} | dict(options)
    return Posture(config.robot, config.q, **gains)


def _shipped(mode: str, options: Mapping[str, Any], config: Config, robot_name: str) -> Efforts:
    """Return the law of a shipped robot with some of its constants changed."""
    law = CONTROLLERS.get(robot_name)
    modes = () if law is None else law.MODES
    if law is None or mode not in modes:
        allowed = (*modes, "none", "posture", "MODULE:NAME", "FILE.py:NAME")
        raise UnknownName(f"controller of {robot_name or 'this robot'}", mode, allowed)
    constants = [name for name in vars(law) if name.isupper() and name != "MODES"]
    for name in options:
        if name not in constants:
            raise UnknownName(f"constant of {law.__name__}", name, constants)
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return type(law.__name__, (law,), values)(config, mode).efforts


class NoisyController:
    """A controller that sees the state with noise, and whose efforts come out with noise."""

    def __init__(
        self, efforts: Efforts, config: Config, noise: Mapping[str, float], random: np.random.Generator
    ) -> None:
        """Add noise to what `efforts` sees and says.

        Args:
            efforts: the controller.
            config: of the simulation.
            noise: standard deviation of every component of ``position`` [rad, m] (of a floating base in its tangent
                space), ``velocity`` [rad/s, m/s] and ``effort`` [N m, N].
            random: source of the noise.
        """
        self._efforts, self._robot, self._noise, self._random = efforts, config.robot, noise, random

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return (nu,) the efforts [N m, N] at `t` [s], `q` (nq,) and `v` (nv,)."""
        shift = self._of("position", self._robot.nv)
        seen = integrate(self._robot, q, shift) if self._noise.get("position") else q
        tau = self._efforts(t, seen, v + self._of("velocity", self._robot.nv))
        return np.asarray(tau, dtype=np.float64) + self._of("effort", self._robot.nu)

    def _of(self, what: str, size: int) -> Array:
        """Return (size,) noise; what has none draws all the same, so that one kind of noise changes no other."""
        return self._noise.get(what, 0.0) * self._random.standard_normal(size)

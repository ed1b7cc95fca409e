"""Interface of control laws: efforts from time and state, nothing else."""

from __future__ import annotations

from typing import ClassVar, Protocol

from constrained_sim.config import Config
from constrained_sim.exceptions import UnknownName
from constrained_sim.validation import Array


class ControlLaw(Protocol):
    """A control law for the robot of a configuration.

    ``law.efforts`` is what :meth:`Simulator.run <constrained_sim.simulator.Simulator.run>` takes as a controller, and
    what :class:`~constrained_sim.ros.controller.ControllerNode` serves over ROS.

    Attributes:
        MODES: what it can make the robot do; the first is the default.
    """

    MODES: ClassVar[tuple[str, ...]]

    def __init__(self, config: Config, mode: str) -> None:
        """Prepare to do `mode`, one of :attr:`MODES`, about the initial configuration of `config`."""

    def efforts(self, t: float, q: Array, v: Array) -> Array:
        """Return (nu,) the efforts [N m, N] at time `t` [s], configuration `q` (nq,) and velocity `v` (nv,)."""
        ...


def checked_mode(law: type[ControlLaw], mode: str) -> str:
    """Return `mode`.

    Raises:
        UnknownName: none of the modes of `law`.
    """
    if mode not in law.MODES:
        raise UnknownName(f"mode of {law.__name__}", mode, law.MODES)
    return mode

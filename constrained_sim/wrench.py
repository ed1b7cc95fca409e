"""External forces on links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, finite_array, instance, items, read_only


@dataclass(frozen=True, eq=False)
class Wrench:
    """A force and a moment on a link.

    Attributes:
        link: link or frame that they act on.
        force: (3,) [N].
        torque: (3,) [N m] about `point`.
        point: (3,) [m] where the force acts, in the link.
        axes: whose axes `force` and `torque` are in: ``"world"`` or a link.

    Raises:
        InvalidValue: not finite, not three numbers, or no name.
    """

    link: str
    force: Sequence[float] = (0.0, 0.0, 0.0)
    torque: Sequence[float] = (0.0, 0.0, 0.0)
    point: Sequence[float] = (0.0, 0.0, 0.0)
    axes: str = WORLD

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("link", "axes"):
            instance(f"{name} of a wrench", getattr(self, name), str, "the name of a link")
        for part in ("force", "torque", "point"):
            value = finite_array(f"{part} on {self.link!r}", getattr(self, part), (3,))
            object.__setattr__(self, part, read_only(value))


def checked_wrenches(wrenches: Iterable[Wrench]) -> tuple[Wrench, ...]:
    """Return `wrenches`.

    Raises:
        InvalidValue: something else, or one that is not in a sequence.
    """
    return items("wrenches", wrenches, Wrench, "instances of Wrench")


def generalised_force(robot: Robot, dynamics: Dynamics, wrenches: Iterable[Wrench]) -> Array:
    """Return (nv,) ``J_ext^T w`` [N m, N] of all `wrenches` at the configuration of `dynamics`.

    Raises:
        UnknownName: a link that the robot does not have.
    """
    total = np.zeros(robot.nv)
    for wrench in wrenches:
        moves = robot.support[robot.link_placement(wrench.link)[0]]
        total[moves] += dynamics.joint_axes[moves] @ wrench_about_origin(robot, dynamics, wrench)
    return total


def wrench_about_origin(robot: Robot, dynamics: Dynamics, wrench: Wrench) -> Array:
    """Return (6,) force [N] and moment about the world's origin [N m] of `wrench`, world axes.

    Raises:
        UnknownName: a link that the robot does not have.
    """
    joint, offset = robot.link_point(wrench.link, wrench.point)
    axes_joint, axes_placement = robot.link_placement(wrench.axes)
    rotation = dynamics.placements[axes_joint][:3].T @ axes_placement.rotation
    force, torque = rotation @ wrench.force, rotation @ wrench.torque
    point = dynamics.point_positions(np.array([joint]), offset[None])[0]
    return np.concatenate([force, torque + np.cross(point, force)])

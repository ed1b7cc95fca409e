"""External forces on links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.vectors import cross_components, in_world
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


class WrenchTable(NamedTuple):
    """Wrenches on the bodies of one robot, as kernels know them.

    Attributes:
        joints: (w, 2) the joint that carries the link, and the one that carries the axes; 0 is the world.
        vectors: (w, 3, 3) the point [m] in the frame of the first joint, force [N] and torque [N m] in that of the
            second.
    """

    joints: npt.NDArray[np.int64]
    vectors: Array


NO_WRENCHES = WrenchTable(np.empty((0, 2), dtype=np.int64), np.empty((0, 3, 3)))


def wrench_table(robot: Robot, wrenches: Collection[Wrench]) -> WrenchTable:
    """Return `wrenches` with their links resolved.

    Raises:
        UnknownName: a link that the robot does not have.
    """
    if not wrenches:
        return NO_WRENCHES
    joints, vectors = np.empty((len(wrenches), 2), dtype=np.int64), np.empty((len(wrenches), 3, 3))
    for i, wrench in enumerate(wrenches):
        joints[i, 0], vectors[i, 0] = robot.link_point(wrench.link, wrench.point)
        joints[i, 1], axes = robot.link_placement(wrench.axes)
        vectors[i, 1], vectors[i, 2] = axes.rotation @ wrench.force, axes.rotation @ wrench.torque
    return WrenchTable(joints, vectors)


def generalised_force(robot: Robot, dynamics: Dynamics, wrenches: Collection[Wrench]) -> Array:
    """Return (nv,) ``J_ext^T w`` [N m, N] of all `wrenches` at the configuration of `dynamics`.

    Raises:
        UnknownName: a link that the robot does not have.
    """
    if not wrenches:
        return np.zeros(robot.nv)
    table = wrench_table(robot, wrenches)
    return np.asarray(external_effort(table, dynamics.placements, dynamics.joint_axes, robot.support))


def wrench_about_origin(robot: Robot, dynamics: Dynamics, wrench: Wrench) -> Array:
    """Return (6,) force [N] and moment about the world's origin [N m] of `wrench`, world axes.

    Raises:
        UnknownName: a link that the robot does not have.
    """
    return np.array(_about_origin(wrench_table(robot, [wrench]), 0, dynamics.placements))


@kernel
def external_effort(wrenches, placements, joint_axes, support):
    """Return (nv,) ``J_ext^T w`` [N m, N].

    Args:
        wrenches: a :class:`WrenchTable`.
        placements: (njoints, 4, 3), see :func:`~constrained_sim.dynamics.kinematics.point_positions`.
        joint_axes: (nv, 6), see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        support: (njoints, nv) whether a degree of freedom moves a joint's frame.
    """
    effort = np.zeros(joint_axes.shape[0])
    for i in range(wrenches.joints.shape[0]):
        fx, fy, fz, tx, ty, tz = _about_origin(wrenches, i, placements)
        for j in range(effort.shape[0]):
            if support[wrenches.joints[i, 0], j]:
                axis = joint_axes[j]
                effort[j] += axis[0] * fx + axis[1] * fy + axis[2] * fz + axis[3] * tx + axis[4] * ty + axis[5] * tz
    return effort


@kernel(inline=True)
def _about_origin(wrenches, i, placements):
    """Return the six numbers of force [N] and moment about the world's origin [N m] of one wrench, world axes."""
    vectors = wrenches.vectors[i]
    point, force, torque = vectors[0], vectors[1], vectors[2]
    body, axes = placements[wrenches.joints[i, 0]], placements[wrenches.joints[i, 1]]
    fx, fy, fz = in_world(force[0], force[1], force[2], axes)
    tx, ty, tz = in_world(torque[0], torque[1], torque[2], axes)
    x, y, z = in_world(point[0], point[1], point[2], body)
    mx, my, mz = cross_components(x + body[3, 0], y + body[3, 1], z + body[3, 2], fx, fy, fz)
    return fx, fy, fz, tx + mx, ty + my, tz + mz

"""Joints of an SDF that close a loop, as anchors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pinocchio as pin
from scipy.linalg import block_diag, null_space

from constrained_sim.constraints import FrameAnchor, PointAnchor
from constrained_sim.descriptions.sdf.joints import Joint
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array

PLANE = 1e-6
"""Motion of a loop's ends in a direction, relative to the largest of its links, that is rounding of the file."""


def anchors_of(joint: Joint, poses: Mapping[str, pin.SE3]) -> list[PointAnchor | FrameAnchor]:
    """Return what holds a link on its second parent: a point, two points of an axis, or a frame."""
    in_child = poses[joint.child].actInv(joint.placement)
    parent = poses[joint.parent] if joint.parent != WORLD else pin.SE3.Identity()
    in_parent = parent.actInv(joint.placement)
    if joint.type == "fixed":
        return [FrameAnchor(joint.name, joint.child, in_child, joint.parent, in_parent)]
    if joint.type == "prismatic":
        axes = block_diag(null_space(joint.axis[None]).T, np.eye(3))
        return [FrameAnchor(joint.name, joint.child, in_child, joint.parent, in_parent, axes)]
    points = {joint.name: np.zeros(3)}
    if joint.type in ("revolute", "continuous"):
        points[f"{joint.name} axis"] = joint.axis
    return [
        PointAnchor(name, joint.child, in_child.act(point), joint.parent, in_parent.act(point))
        for name, point in points.items()
    ]


def without_planes(robot: Robot, anchor: PointAnchor | FrameAnchor) -> PointAnchor | FrameAnchor | None:
    """Return `anchor` without the directions in which its frames cannot move apart, as out of the plane of a four-bar.

    The joints of the tree hold these directions already. Poses in files are rounded, so that a row for one would not be
    redundant but contradict the motion. They are those in which nothing moves at several configurations. Where these
    are all, as on the second hinge of a door, nothing is left: None.
    """
    if isinstance(anchor, FrameAnchor) and anchor.axes is None:
        return anchor
    rows, largest = _motions(robot, anchor), 0.0
    for link in (anchor.link_a, anchor.link_b):
        if link != WORLD:
            largest = max(largest, float(np.linalg.norm(_motions(robot, FrameAnchor("motion", link)), 2)))
    if isinstance(anchor, PointAnchor):
        held = _moving(rows, largest)
        if len(held) == 3:
            return anchor
        return replace(anchor, normals=held) if len(held) else None
    linear, angular = rows[:-3], rows[-3:]
    axes = block_diag(_moving(linear, largest), _moving(angular, largest)) @ anchor.axes
    return replace(anchor, axes=axes) if len(axes) else None


def _motions(robot: Robot, anchor: PointAnchor | FrameAnchor) -> Array:
    """Return the Jacobians of an anchor at several configurations side by side."""
    rng, dynamics = np.random.default_rng(0), Dynamics(robot)
    moves = []
    for _ in range(8):
        dynamics.update_kinematics(pin.integrate(robot.model, robot.neutral(), rng.uniform(-0.5, 0.5, robot.nv)))
        moves.append(anchor.bind(robot, robot.neutral()).jacobian(dynamics))
    return np.hstack(moves)


def _moving(rows: Array, largest: float) -> Array:
    """Return the combinations of `rows` that are not zero, relative to the `largest` motion of a link."""
    directions, sizes, _ = np.linalg.svd(rows)
    return directions.T[sizes > PLANE * largest]

"""A robot's tree of joints and bodies as arrays, for kernels.

Where a whole time step is compiled, kernels do what Pinocchio does for
:class:`~constrained_sim.dynamics.dynamics.Dynamics`, for the joints that most robots have:
:mod:`~constrained_sim.dynamics.tree_kinematics` and :mod:`~constrained_sim.dynamics.tree_dynamics`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.validation import Array

SLIDES, TURNS, TURNS_FREELY, BALL, FREE = range(5)
"""Kinds of joints: prismatic, revolute, continuous (cos, sin), spherical (quaternion), free-flyer."""


class Tree(NamedTuple):
    """A robot's joints and bodies as arrays; joint 0 is the world.

    Attributes:
        kinds: (n,) of the joints.
        parents: (n,) joints that carry them.
        at_q: (n + 1,) where their coordinates begin in q, then nq.
        at_v: (n + 1,) where their degrees of freedom begin in v, then nv.
        rows: (nv,) parent of each degree of freedom, -1 at a root.
        frames: (n, 4, 3) rotation columns and translation of each joint in the frame of its parent, at zero.
        motions: (nv, 6) what each degree of freedom does, linear and angular, in the frame that its joint moves.
        bodies: (n, 10) of what a joint carries: mass [kg], first moment [kg m], and Ixx, Iyy, Izz, Ixy, Ixz, Iyz
            [kg m^2] about its frame's origin.
        armature: (nv,) [kg m^2, kg].
        gravity: (3,) acceleration [m/s^2], world axes.
    """

    kinds: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]
    at_q: npt.NDArray[np.int64]
    at_v: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    frames: Array
    motions: Array
    bodies: Array
    armature: Array
    gravity: Array


class Pose(NamedTuple):
    """Where the joints and bodies of a tree are, and what they weigh.

    Filled by functions of :mod:`~constrained_sim.dynamics.tree_kinematics` and
    :mod:`~constrained_sim.dynamics.tree_dynamics`, in the order in which they are named here.

    Attributes:
        placements: (n, 4, 3) of the joints: rotation columns and translation of their frames. By ``place``.
        axes: (nv, 6) what the degrees of freedom do to a body point at the world's origin: linear, angular. In world
            axes: the transposed joint Jacobian of :class:`~constrained_sim.dynamics.dynamics.Dynamics`. By
            ``find_axes``.
        base_axes: (nv, 6) the same about the origin of the first joint's frame. By ``find_bodies``, as bodies.
        bodies: (n, 10) as in :class:`Tree`, in world axes about that origin.
        composites: (n, 10) the same, with all that they carry. By ``inertia``, as weight.
        weight: (nv,) what holds the tree up at rest.
    """

    placements: Array
    axes: Array
    base_axes: Array
    bodies: Array
    composites: Array
    weight: Array


def pose_of(tree: Tree) -> Pose:
    """Return the arrays for a pose of a tree, with nothing in them yet."""
    n, nv = len(tree.kinds), len(tree.rows)
    return Pose(
        np.zeros((n, 4, 3)), np.zeros((nv, 6)), np.zeros((nv, 6)), np.zeros((n, 10)), np.zeros((n, 10)), np.zeros(nv)
    )


def tree_of(model: pin.Model) -> Tree | None:
    """Return the arrays of a Pinocchio model; None where it has a joint of another kind."""
    kinds, motions = [_kind(joint) for joint in model.joints], np.zeros((model.nv, 6))
    if any(kind is None for kind in kinds[1:]):
        return None
    for joint in list(model.joints)[1:]:
        data = joint.createData()
        joint.calc(data, pin.neutral(model))
        motions[joint.idx_v : joint.idx_v + joint.nv] = np.asarray(data.S).reshape(6, joint.nv).T
    return Tree(
        np.array([0, *kinds[1:]], dtype=np.int64),
        np.array(model.parents, dtype=np.int64),
        np.array([0, *model.idx_qs[1:], model.nq], dtype=np.int64),
        np.array([0, *model.idx_vs[1:], model.nv], dtype=np.int64),
        np.array(model.createData().parents_fromRow, dtype=np.int64),
        np.array([np.vstack([frame.rotation.T, frame.translation]) for frame in model.jointPlacements]),
        motions,
        np.array([_numbers(inertia) for inertia in model.inertias]),
        np.array(model.armature),
        np.array(model.gravity.linear),
    )


def _kind(joint: pin.JointModel) -> int | None:
    name = joint.shortname().removeprefix("JointModel")
    if name in ("FreeFlyer", "Spherical"):
        return {"FreeFlyer": FREE, "Spherical": BALL}[name]
    if name.startswith("RUB") or name == "RevoluteUnboundedUnaligned":
        return TURNS_FREELY
    if name in ("RX", "RY", "RZ", "RevoluteUnaligned"):
        return TURNS
    return SLIDES if name in ("PX", "PY", "PZ", "PrismaticUnaligned") else None


def _numbers(inertia: pin.Inertia) -> list[float]:
    mass, lever = inertia.mass, inertia.lever
    about_origin = inertia.inertia + mass * (lever @ lever * np.eye(3) - np.outer(lever, lever))
    return [mass, *(mass * lever), *np.diag(about_origin), *about_origin[[0, 0, 1], [1, 2, 2]]]


def contract(
    parents: npt.NDArray[np.int64], left_out: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the degrees of freedom that are not `left_out` (d,), and the parent of each among them, -1 at a root.

    So the inertia of these alone has the sparsity of a tree too.

    Args:
        parents: (nv,) parent of each degree of freedom, -1 at a root.
        left_out: (d,) degrees of freedom that do not move.
    """
    kept = np.setdiff1d(np.arange(len(parents)), left_out)
    places = {int(k): i for i, k in enumerate(kept)} | {-1: -1}
    nearest = []
    for k in kept:
        ancestor = int(parents[k])
        while ancestor not in places:
            ancestor = int(parents[ancestor])
        nearest.append(places[ancestor])
    return kept.astype(np.int64), np.array(nearest, dtype=np.int64)

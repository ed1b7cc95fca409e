"""Compiled recursions over the tree of bodies: configurations, placements, inertia and inertial forces in one call.

They do what Pinocchio does for :class:`~constrained_sim.dynamics.dynamics.Dynamics`, for the joints that most robots
have, where a whole time step is compiled and cannot call it. Everything is in world axes, about the origin of the first
joint's frame, where bodies are near: so a composite inertia is a sum, and nothing has to be moved from frame to frame.

Source: Featherstone, Rigid Body Dynamics Algorithms, 2008: tables 5.1 (recursive Newton-Euler) and 6.2 (composite
rigid bodies), with spatial vectors written (linear, angular).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.compilation.kernel import kernel
from constrained_sim.validation import Array

SLIDES, TURNS, TURNS_FREELY, BALL, FREE = range(5)
"""Kinds of joints: prismatic, revolute, continuous (cos, sin), spherical (quaternion), free-flyer."""

SMALL_ANGLE = 1e-2
"""[rad] below which the coefficients of a turn are taken from their series, exact to 1e-17 there."""


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
    """Where the joints and bodies of a tree are, and what they weigh: filled by functions below, one after the other.

    Attributes:
        placements: (n, 4, 3) of the joints: rotation columns and translation of their frames. By :func:`place`.
        axes: (nv, 6) what the degrees of freedom do to a body point at the world's origin: linear, angular. In world
            axes: the transposed joint Jacobian of :class:`~constrained_sim.dynamics.dynamics.Dynamics`. By
                :func:`find_axes`.
        base_axes: (nv, 6) the same about the origin of the first joint's frame. By :func:`find_bodies`, as bodies.
        bodies: (n, 10) as in :class:`Tree`, in world axes about that origin.
        composites: (n, 10) the same, with all that they carry. By :func:`inertia`, as weight.
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


# -- configurations


@kernel
def move(tree, q, h, v, end):
    """Fill `end` (nq,) with the configuration reached from q in h [s] at the velocity v, as ``pin.integrate`` does."""
    x = h * v
    for joint in range(1, tree.kinds.shape[0]):
        kind, i, k = tree.kinds[joint], tree.at_q[joint], tree.at_v[joint]
        if kind == SLIDES or kind == TURNS:
            end[i] = q[i] + x[k]
        elif kind == TURNS_FREELY:
            cos, sin = np.cos(x[k]), np.sin(x[k])
            end[i], end[i + 1] = q[i] * cos - q[i + 1] * sin, q[i] * sin + q[i + 1] * cos
            end[i : i + 2] /= np.hypot(end[i], end[i + 1])
        elif kind == BALL:
            end[i : i + 4] = turned(q[i : i + 4], x[k : k + 3])
        else:
            quaternion, turn = q[i + 3 : i + 7], x[k + 3 : k + 6]
            dx, dy, dz = rotated(quaternion, *_displacement(x[k : k + 3], turn))
            end[i], end[i + 1], end[i + 2] = q[i] + dx, q[i + 1] + dy, q[i + 2] + dz
            a, b, c, d = turned(quaternion, turn)
            sign = 1.0 if a * quaternion[0] + b * quaternion[1] + c * quaternion[2] + d * quaternion[3] >= 0.0 else -1.0
            end[i + 3], end[i + 4], end[i + 5], end[i + 6] = sign * a, sign * b, sign * c, sign * d


@kernel(inline=True)
def turned(quaternion, w):
    """Return the components xyzw of a quaternion (4,) after the turn by the vector w (3,) in its own axes [rad]."""
    angle = np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2)
    share = np.sin(0.5 * angle) / angle if angle > SMALL_ANGLE else 0.5 - angle**2 / 48.0 + angle**4 / 3840.0
    a, b, c, d = share * w[0], share * w[1], share * w[2], np.cos(0.5 * angle)
    x, y, z, s = quaternion
    e, f, g = s * a + x * d + y * c - z * b, s * b + y * d + z * a - x * c, s * c + z * d + x * b - y * a
    h = s * d - x * a - y * b - z * c
    length = np.sqrt(e**2 + f**2 + g**2 + h**2)
    return e / length, f / length, g / length, h / length


@kernel(inline=True)
def _displacement(v, w):
    """Return where a frame comes to that moves with v (3,) and turns with w (3,) in its own axes for a unit of time."""
    angle = np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2)
    if angle > SMALL_ANGLE:
        first, second = (1.0 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
    else:
        first, second = 0.5 - angle**2 / 24.0 + angle**4 / 720.0, 1.0 / 6.0 - angle**2 / 120.0 + angle**4 / 5040.0
    x, y, z = cross(w[0], w[1], w[2], v[0], v[1], v[2])
    xx, yy, zz = cross(w[0], w[1], w[2], x, y, z)
    return v[0] + first * x + second * xx, v[1] + first * y + second * yy, v[2] + first * z + second * zz


@kernel(inline=True)
def rotated(quaternion, x, y, z):
    """Return the components of a vector turned by a unit quaternion (4,) xyzw: ``v + 2 s (u x v) + 2 u x (u x v)``."""
    a, b, c, s = quaternion
    tx, ty, tz = cross(2.0 * a, 2.0 * b, 2.0 * c, x, y, z)
    ux, uy, uz = cross(a, b, c, tx, ty, tz)
    return x + s * tx + ux, y + s * ty + uy, z + s * tz + uz


@kernel(inline=True)
def cross(a, b, c, x, y, z):
    """Return the components of a vector product; as an array they would take ten times as long."""
    return b * z - c * y, c * x - a * z, a * y - b * x


# -- placements


@kernel
def place(tree, q, pose):
    """Place the joints of a tree for q (nq,)."""
    placements = pose.placements
    placements[0] = 0.0
    for axis in range(3):
        placements[0, axis, axis] = 1.0
    for joint in range(1, tree.kinds.shape[0]):
        kind, i, k = tree.kinds[joint], tree.at_q[joint], tree.at_v[joint]
        here = placements[joint]
        _compose(tree.frames[joint], placements[tree.parents[joint]], here)
        if kind == SLIDES:
            _shift(here, q[i] * tree.motions[k, 0], q[i] * tree.motions[k, 1], q[i] * tree.motions[k, 2])
        elif kind == TURNS:
            _turn(here, tree.motions[k, 3:], np.cos(q[i]), np.sin(q[i]))
        elif kind == TURNS_FREELY:
            _turn(here, tree.motions[k, 3:], q[i], q[i + 1])
        elif kind == BALL:
            _turn_by(here, q[i : i + 4])
        else:
            _shift(here, q[i], q[i + 1], q[i + 2])
            _turn_by(here, q[i + 3 : i + 7])


@kernel
def find_axes(tree, pose):
    """Find the joint axes of a tree whose joints are placed."""
    placements, axes = pose.placements, pose.axes
    for joint in range(1, tree.kinds.shape[0]):
        here = placements[joint]
        x, y, z = here[3]
        for k in range(tree.at_v[joint], tree.at_v[joint + 1]):
            a, b, c, d, e, f = tree.motions[k]
            vx, vy, vz = in_world(a, b, c, here)
            wx, wy, wz = in_world(d, e, f, here)
            axes[k, 0], axes[k, 1], axes[k, 2] = vx + y * wz - z * wy, vy + z * wx - x * wz, vz + x * wy - y * wx
            axes[k, 3], axes[k, 4], axes[k, 5] = wx, wy, wz


@kernel
def shift_base_to_com(tree, q, placements, support, joint, com):
    """Move a free-flyer, and all that it carries, so that their centre of mass is at `com` (3,); in place.

    Args:
        tree: the robot.
        q: (nq,) configuration, changed.
        placements: (n, 4, 3) at q, changed.
        support: (n, nv) whether a degree of freedom moves a joint's frame.
        joint: the free-flyer, on the world.
        com: (3,) [m], world frame.
    """
    row, at, mass, mx, my, mz = tree.at_v[joint], tree.at_q[joint], 0.0, 0.0, 0.0, 0.0
    for other in range(joint, tree.kinds.shape[0]):
        if support[other, row]:
            body, here = tree.bodies[other], placements[other]
            x, y, z = in_world(body[1], body[2], body[3], here)
            mass += body[0]
            mx, my, mz = mx + x + body[0] * here[3, 0], my + y + body[0] * here[3, 1], mz + z + body[0] * here[3, 2]
    dx, dy, dz = com[0] - mx / mass, com[1] - my / mass, com[2] - mz / mass
    x, y, z = in_axes(dx, dy, dz, tree.frames[joint])
    q[at], q[at + 1], q[at + 2] = q[at] + x, q[at + 1] + y, q[at + 2] + z
    for other in range(joint, tree.kinds.shape[0]):
        if support[other, row]:
            origin = placements[other, 3]
            origin[0], origin[1], origin[2] = origin[0] + dx, origin[1] + dy, origin[2] + dz


@kernel(inline=True)
def in_world(x, y, z, placement):
    """Return the three components, in world axes, of a vector given in the axes of a placement."""
    return (
        x * placement[0, 0] + y * placement[1, 0] + z * placement[2, 0],
        x * placement[0, 1] + y * placement[1, 1] + z * placement[2, 1],
        x * placement[0, 2] + y * placement[1, 2] + z * placement[2, 2],
    )


@kernel(inline=True)
def in_axes(x, y, z, placement):
    """Return the three components, in the axes of a placement, of a vector given in world axes."""
    return (
        placement[0, 0] * x + placement[0, 1] * y + placement[0, 2] * z,
        placement[1, 0] * x + placement[1, 1] * y + placement[1, 2] * z,
        placement[2, 0] * x + placement[2, 1] * y + placement[2, 2] * z,
    )


@kernel(inline=True)
def _shift(placement, x, y, z):
    """Move a placement (4, 3) along its own axes, in place."""
    dx, dy, dz = in_world(x, y, z, placement)
    placement[3, 0] += dx
    placement[3, 1] += dy
    placement[3, 2] += dz


@kernel(inline=True)
def _compose(frame, carrier, placement):
    """Fill `placement` (4, 3) with that of a frame (4, 3) given in the axes of its carrier (4, 3)."""
    for row in range(4):
        for i in range(3):
            placement[row, i] = (
                frame[row, 0] * carrier[0, i] + frame[row, 1] * carrier[1, i] + frame[row, 2] * carrier[2, i]
            )
    for i in range(3):
        placement[3, i] += carrier[3, i]


@kernel(inline=True)
def _turn(placement, axis, cos, sin):
    """Turn a placement (4, 3) about the unit vector `axis` (3,) of its own, in place (Rodrigues' formula)."""
    ax, ay, az = in_world(axis[0], axis[1], axis[2], placement)
    for row in range(3):
        x, y, z = placement[row]
        along = (1.0 - cos) * axis[row]
        placement[row, 0] = cos * x + sin * (ay * z - az * y) + along * ax
        placement[row, 1] = cos * y + sin * (az * x - ax * z) + along * ay
        placement[row, 2] = cos * z + sin * (ax * y - ay * x) + along * az


@kernel(inline=True)
def _turn_by(placement, quaternion):
    """Turn a placement (4, 3) by a unit quaternion (4,) xyzw in its own axes, in place."""
    first = in_world(*rotated(quaternion, 1.0, 0.0, 0.0), placement)
    second = in_world(*rotated(quaternion, 0.0, 1.0, 0.0), placement)
    third = in_world(*rotated(quaternion, 0.0, 0.0, 1.0), placement)
    placement[0], placement[1], placement[2] = first, second, third


# -- inertia


@kernel
def find_bodies(tree, pose):
    """Find the bodies of a tree, and the axes, about the origin of the first joint's frame, once axes are found."""
    x, y, z = pose.placements[1, 3]
    for k in range(pose.axes.shape[0]):
        vx, vy, vz, wx, wy, wz = six(pose.axes, k)
        base = pose.base_axes[k]
        base[0], base[1], base[2] = vx + (wy * z - wz * y), vy + (wz * x - wx * z), vz + (wx * y - wy * x)
        base[3], base[4], base[5] = wx, wy, wz
    _bodies_in_world(tree, pose.placements, pose.bodies)


@kernel(inline=True)
def _bodies_in_world(tree, placements, found):
    """Fill `found` (n, 10) with the inertias of the bodies in world axes, about the first joint's frame."""
    inertia, half = np.empty((2, 3, 3))
    for joint in range(1, tree.kinds.shape[0]):
        body, here = tree.bodies[joint], placements[joint]
        m = body[0]
        inertia[0, 0], inertia[1, 1], inertia[2, 2] = body[4], body[5], body[6]
        inertia[0, 1] = inertia[1, 0] = body[7]
        inertia[0, 2] = inertia[2, 0] = body[8]
        inertia[1, 2] = inertia[2, 1] = body[9]
        for row in range(3):
            for i in range(3):
                half[row, i] = (
                    inertia[row, 0] * here[0, i] + inertia[row, 1] * here[1, i] + inertia[row, 2] * here[2, i]
                )
        hx, hy, hz = in_world(body[1], body[2], body[3], here)
        x, y, z = here[3, 0] - placements[1, 3, 0], here[3, 1] - placements[1, 3, 1], here[3, 2] - placements[1, 3, 2]
        # about another point: I' = I + (2 h.p + m p.p) 1 - (h p^T + p h^T + m p p^T), h' = h + m p
        trace = 2.0 * (hx * x + hy * y + hz * z) + m * (x * x + y * y + z * z)
        found[joint, 0] = m
        found[joint, 1], found[joint, 2], found[joint, 3] = hx + m * x, hy + m * y, hz + m * z
        found[joint, 4] = _product(here, half, 0, 0) + trace - (2.0 * hx * x + m * x * x)
        found[joint, 5] = _product(here, half, 1, 1) + trace - (2.0 * hy * y + m * y * y)
        found[joint, 6] = _product(here, half, 2, 2) + trace - (2.0 * hz * z + m * z * z)
        found[joint, 7] = _product(here, half, 0, 1) - (hx * y + hy * x + m * x * y)
        found[joint, 8] = _product(here, half, 0, 2) - (hx * z + hz * x + m * x * z)
        found[joint, 9] = _product(here, half, 1, 2) - (hy * z + hz * y + m * y * z)


@kernel(inline=True)
def six(rows, i):
    """Return the six numbers of a row of `rows` (n, 6); to cut it out as an array takes longer than what uses it."""
    return rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4], rows[i, 5]


@kernel(inline=True)
def _product(a, b, i, j):
    return a[0, i] * b[0, j] + a[1, i] * b[1, j] + a[2, i] * b[2, j]


@kernel(inline=True)
def _momentum(bodies, joint, v0, v1, v2, w0, w1, w2):
    """Return linear and angular momentum, or force and moment: what one of `bodies` (n, 10) gives a spatial motion."""
    m, hx, hy, hz = bodies[joint, 0], bodies[joint, 1], bodies[joint, 2], bodies[joint, 3]
    xx, yy, zz = bodies[joint, 4], bodies[joint, 5], bodies[joint, 6]
    xy, xz, yz = bodies[joint, 7], bodies[joint, 8], bodies[joint, 9]
    return (
        m * v0 + w1 * hz - w2 * hy,
        m * v1 + w2 * hx - w0 * hz,
        m * v2 + w0 * hy - w1 * hx,
        hy * v2 - hz * v1 + xx * w0 + xy * w1 + xz * w2,
        hz * v0 - hx * v2 + xy * w0 + yy * w1 + yz * w2,
        hx * v1 - hy * v0 + xz * w0 + yz * w1 + zz * w2,
    )


@kernel
def inertia(tree, pose, M):
    """Fill M (nv, nv), armature included, and find what the bodies weigh, once they are found."""
    axes, composites, weight, g = pose.base_axes, pose.composites, pose.weight, tree.gravity
    composites[:] = pose.bodies
    M[:] = 0.0
    for joint in range(tree.kinds.shape[0] - 1, 0, -1):
        for k in range(tree.at_v[joint + 1] - 1, tree.at_v[joint] - 1, -1):
            a0, a1, a2, w0, w1, w2 = six(axes, k)
            f0, f1, f2, t0, t1, t2 = _momentum(composites, joint, a0, a1, a2, w0, w1, w2)
            weight[k] = -(f0 * g[0] + f1 * g[1] + f2 * g[2])
            M[k, k] = a0 * f0 + a1 * f1 + a2 * f2 + w0 * t0 + w1 * t1 + w2 * t2 + tree.armature[k]
            j = tree.rows[k]
            while j >= 0:
                b0, b1, b2, u0, u1, u2 = six(axes, j)
                M[k, j] = M[j, k] = b0 * f0 + b1 * f1 + b2 * f2 + u0 * t0 + u1 * t1 + u2 * t2
                j = tree.rows[j]
        parent = tree.parents[joint]
        for i in range(10):
            composites[parent, i] += composites[joint, i]


@kernel
def potential_energy(tree, placements):
    """Return the energy of gravity [J] with the joints at `placements` (n, 4, 3); zero at the world's origin."""
    x = y = z = 0.0
    for joint in range(1, placements.shape[0]):
        mass = tree.bodies[joint, 0]
        hx, hy, hz = in_world(tree.bodies[joint, 1], tree.bodies[joint, 2], tree.bodies[joint, 3], placements[joint])
        x += hx + mass * placements[joint, 3, 0]
        y += hy + mass * placements[joint, 3, 1]
        z += hz + mass * placements[joint, 3, 2]
    return -(tree.gravity[0] * x + tree.gravity[1] * y + tree.gravity[2] * z)


# -- inertial forces


@kernel(inline=True)
def _velocities(tree, axes, v, found):
    """Fill zeros (n, 6) with the spatial velocities of the bodies, linear at the origin of the first joint's frame."""
    for joint in range(1, tree.kinds.shape[0]):
        parent = tree.parents[joint]
        for i in range(6):
            found[joint, i] = found[parent, i]
            for k in range(tree.at_v[joint], tree.at_v[joint + 1]):
                found[joint, i] += v[k] * axes[k, i]


@kernel
def bias_forces(tree, pose, v):
    """Return (nv,) the Coriolis, centrifugal and gravity forces at the velocity v (nv,), by Newton and Euler.

    A joint's axes are fixed in the body that it moves, so those of body i change at the rate ``v_i x s``; its bias
    acceleration is the sum of ``v_i x (v_i - v_parent)`` along the branch. The bodies have been found.
    """
    n, bodies, axes = tree.kinds.shape[0], pose.bodies, pose.base_axes
    moving, accelerations, forces = np.zeros((3, n, 6))
    _velocities(tree, axes, v, moving)
    accelerations[0, :3] = -tree.gravity
    for joint in range(1, n):
        parent = tree.parents[joint]
        v0, v1, v2, w0, w1, w2 = six(moving, joint)
        p0, p1, p2, u0, u1, u2 = six(moving, parent)
        a0, a1, a2, b0, b1, b2 = six(accelerations, parent)
        # v x (v - v_parent) = -(v x v_parent)
        a0, a1, a2 = (
            a0 - (w1 * p2 - w2 * p1 + v1 * u2 - v2 * u1),
            a1 - (w2 * p0 - w0 * p2 + v2 * u0 - v0 * u2),
            a2 - (w0 * p1 - w1 * p0 + v0 * u1 - v1 * u0),
        )
        b0, b1, b2 = b0 - (w1 * u2 - w2 * u1), b1 - (w2 * u0 - w0 * u2), b2 - (w0 * u1 - w1 * u0)
        accelerations[joint, 0], accelerations[joint, 1], accelerations[joint, 2] = a0, a1, a2
        accelerations[joint, 3], accelerations[joint, 4], accelerations[joint, 5] = b0, b1, b2
        l0, l1, l2, h0, h1, h2 = _momentum(bodies, joint, v0, v1, v2, w0, w1, w2)
        f0, f1, f2, t0, t1, t2 = _momentum(bodies, joint, a0, a1, a2, b0, b1, b2)
        forces[joint, 0] = f0 + w1 * l2 - w2 * l1
        forces[joint, 1] = f1 + w2 * l0 - w0 * l2
        forces[joint, 2] = f2 + w0 * l1 - w1 * l0
        forces[joint, 3] = t0 + w1 * h2 - w2 * h1 + v1 * l2 - v2 * l1
        forces[joint, 4] = t1 + w2 * h0 - w0 * h2 + v2 * l0 - v0 * l2
        forces[joint, 5] = t2 + w0 * h1 - w1 * h0 + v0 * l1 - v1 * l0
    return _along_axes(tree, axes, forces)


@kernel(inline=True)
def _along_axes(tree, axes, forces):
    """Return (nv,) the efforts along the joint axes that give each body its force (n, 6); forces add up on the way."""
    efforts = np.empty(axes.shape[0])
    for joint in range(tree.kinds.shape[0] - 1, 0, -1):
        for k in range(tree.at_v[joint], tree.at_v[joint + 1]):
            efforts[k] = 0.0
            for i in range(6):
                efforts[k] += axes[k, i] * forces[joint, i]
        parent = tree.parents[joint]
        for i in range(6):
            forces[parent, i] += forces[joint, i]
    return efforts

"""Compiled kinematics of a tree of bodies: configurations, placements of its joints, and the axes of these."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.tree import BALL, SLIDES, TURNS, TURNS_FREELY
from constrained_sim.dynamics.vectors import cross_components, in_axes, in_world, rotated, rotation_coefficients, turned


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
def _displacement(v, w):
    """Return where a frame comes to that moves with v (3,) and turns with w (3,) in its own axes for a unit of time."""
    first, second = rotation_coefficients(np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2))
    x, y, z = cross_components(w[0], w[1], w[2], v[0], v[1], v[2])
    xx, yy, zz = cross_components(w[0], w[1], w[2], x, y, z)
    return v[0] + first * x + second * xx, v[1] + first * y + second * yy, v[2] + first * z + second * zz


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

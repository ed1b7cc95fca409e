"""Compiled dynamics of a tree of bodies: inertia, energy, and inertial forces.

Everything is in world axes, about the origin of the first joint's frame, where bodies are near: so a composite inertia
is a sum, and nothing has to be moved from frame to frame.

Source: Featherstone, Rigid Body Dynamics Algorithms, 2008: tables 5.1 (recursive Newton-Euler) and 6.2 (composite
rigid bodies), with spatial vectors written (linear, angular).
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.vectors import in_world


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
def _product(a, b, i, j):
    return a[0, i] * b[0, j] + a[1, i] * b[1, j] + a[2, i] * b[2, j]


@kernel(inline=True)
def six(rows, i):
    """Return the six numbers of a row of `rows` (n, 6); to cut it out as an array takes longer than what uses it."""
    return rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4], rows[i, 5]


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
def _velocities(tree, axes, v, found):
    """Fill zeros (n, 6) with the spatial velocities of the bodies, linear at the origin of the first joint's frame."""
    for joint in range(1, tree.kinds.shape[0]):
        parent = tree.parents[joint]
        for i in range(6):
            found[joint, i] = found[parent, i]
            for k in range(tree.at_v[joint], tree.at_v[joint + 1]):
                found[joint, i] += v[k] * axes[k, i]


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

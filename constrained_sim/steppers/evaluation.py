"""A state of a compiled step: where its joints are, its rows and its inertia; and how drift is taken out of it."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.constrained_dynamics import smallest_motion, smallest_reduced_motion
from constrained_sim.constraints.bilateral_rows import evaluate_bilateral
from constrained_sim.contact.features import contact_rows
from constrained_sim.contact_solvers.reduced_rows import reduce_contact_rows
from constrained_sim.dynamics.springs import spring_energy
from constrained_sim.dynamics.tree import find_axes, find_bodies, inertia, move, place, potential_energy
from constrained_sim.linalg.products import vecdot
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import held_rows
from constrained_sim.steppers.state_checks import LEVER, MOST_PROJECTIONS, largest_drift


@kernel
def evaluate_rows(model, target, pose, v, state):  # type: ignore[no-untyped-def]
    """Fill in what a `state` has of constraints, at its configuration, the joints of which are placed.

    Args:
        model: see :func:`~constrained_sim.steppers.rigid.advance`.
        target: (2, m) of the bilateral rows.
        pose: of the tree; the axes are found too.
        v: (nv,) velocity at which the rows move.
        state: a :class:`~constrained_sim.steppers.packed_step.State`.
    """
    robot, features, limits = borrowed(model.robot), borrowed(model.contacts).features, borrowed(model.limits)
    k, found = state.distances.shape[0], (state.axes, state.points, state.distances)
    find_axes(robot.tree, pose)
    contact_rows(*features, pose.placements, pose.axes, robot.support, v, *found, state.J[: 3 * k], state.s[: 3 * k])
    for c in range(k):
        state.gaps[c] = state.distances[c]
    for i in range(limits.at_q.shape[0]):
        state.J[3 * k + i] = limits.rows[i]
        state.s[3 * k + i] = vecdot(limits.rows[i], v)
        state.gaps[k + i] = limits.signs[i] * state.q[limits.at_q[i]] - limits.values[i]
    if state.phi.shape[0]:
        where, rows = (pose.placements, pose.axes, robot.support), (state.phi, state.J_bilateral, state.s_bilateral)
        evaluate_bilateral(borrowed(model.bilateral), target, state.q, v, where, rows)


@kernel
def evaluate_inertia(model, pose, state):  # type: ignore[no-untyped-def]
    """Fill in the inertia and bias forces of a `state`, and what the `pose` still lacks."""
    robot = borrowed(model.robot)
    for i in range(robot.free.shape[0]):
        state.frames[i] = pose.placements[robot.free[i]]
    find_bodies(robot.tree, pose)
    inertia(robot.tree, pose, state.M)


@kernel
def hold(model, target, held, status, pose, end):  # type: ignore[no-untyped-def]
    """Move the configuration at the `end` of a step back onto bilateral rows, and contacts and limits that are `held`.

    As :meth:`~constrained_sim.steppers.stepper.Stepper.hold_positions` does in the metric of the kinetic energy.

    Args:
        model: see :func:`~constrained_sim.steppers.rigid.advance`.
        target: (2, m) of the bilateral rows at the end.
        held: what presses or has sunk, ascending.
        status: of all contacts and limits.
        pose: at the end; changes, as far as :func:`evaluate_rows` knows it.
        end: the state there; the configuration changes, and what :func:`evaluate_rows` fills in.

    Returns:
        The potential energy [J] that this brings in.
    """
    robot, contacts = borrowed(model.robot), borrowed(model.contacts)
    tree, energy = robot.tree, potential_energy(robot.tree, pose.placements) + spring_energy(robot.springs, end.q)
    drift = largest_drift(end.phi, end.gaps, held)
    rows, gaps = held_rows(held, contacts.normals, status), np.zeros(end.s.shape[0])
    for _ in range(MOST_PROJECTIONS):
        gaps[contacts.normals] = end.gaps
        if end.phi.shape[0]:
            step_back = smallest_motion(
                end.M,
                tree.rows,
                np.concatenate((end.J_bilateral, end.J[rows])),
                np.concatenate((end.phi, gaps[rows])),
            )
        elif contacts.shares:
            reduced = reduce_contact_rows(rows, contacts.features[0], end.axes, end.points)
            step_back = smallest_reduced_motion(end.M, tree.rows, end.J[rows], reduced, gaps[rows])
        else:
            step_back = smallest_motion(end.M, tree.rows, end.J[rows], gaps[rows])
        if held.shape[0] and np.abs(step_back).max() > LEVER * drift:
            break
        before = end.q.copy()
        move(tree, before, 1.0, step_back, end.q)
        place(tree, end.q, pose)
        evaluate_rows(model, target, pose, end.v, end)
        left = largest_drift(end.phi, end.gaps, held)
        if not left < 0.5 * drift:
            end.q[:] = before
            place(tree, end.q, pose)
            evaluate_rows(model, target, pose, end.v, end)
            break
        drift = left
        if drift <= model.options.position_tolerance:
            break
    return potential_energy(tree, pose.placements) + spring_energy(robot.springs, end.q) - energy

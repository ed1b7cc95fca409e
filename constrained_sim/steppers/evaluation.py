"""A state of a step: where its joints are, its rows, inertia and forces; and how drift is taken out of it.

Each function is a stage: :class:`~constrained_sim.steppers.interpreted_model.InterpretedSubstepModel` has most of them
by Pinocchio and the user's functions.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.constraints.bilateral_rows import evaluate_bilateral
from constrained_sim.contact.features import contact_rows
from constrained_sim.contact.rolling import turning_directions
from constrained_sim.contact_solvers.reduced_rows import reduce_contact_rows
from constrained_sim.contact_solvers.smallest_motion import smallest_motion, smallest_reduced_motion
from constrained_sim.dynamics.kinematics import turning_rows
from constrained_sim.dynamics.springs import spring_energy
from constrained_sim.dynamics.tree_dynamics import bias_forces, find_bodies, inertia, potential_energy
from constrained_sim.dynamics.tree_kinematics import find_axes, move, place, shift_base_to_com
from constrained_sim.linalg.kept_dependence import keep_dependence
from constrained_sim.linalg.products import vecdot
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.drift_rows import position_rows, takes_out, without_clashes
from constrained_sim.steppers.options import STEPPING
from constrained_sim.steppers.state_checks import largest_drift
from constrained_sim.wrench import external_effort

AS_IT_IS = np.empty((0, 3))
"""No centre of mass is given."""


@kernel(stage=True)
def configure(model, pose, q, h, v, coms, state):
    """Give a `state` the configuration reached from q in h [s] at the velocity v, and place the joints.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        pose: of the tree, filled as far as the placements.
        q: (nq,) configuration.
        h: [s].
        v: (nv,) velocity.
        coms: (r, 3) where the centres of mass of all that free-flyers carry are then [m], world frame; (0, 3): where
            the velocity leads them.
        state: its q is filled.
    """
    robot = borrowed(model.robot)
    move(robot.tree, q, h, v, state.q)
    place(robot.tree, state.q, pose)
    for i in range(coms.shape[0]):
        shift_base_to_com(robot.tree, state.q, pose.placements, robot.support, robot.free[i], coms[i])


@kernel(stage=True)
def evaluate_rows(model, target, pose, v, state):
    """Fill in what a `state` has of constraints, at its configuration, the joints of which are placed.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        target: (2, m) of the bilateral rows.
        pose: of the tree; the axes are found too.
        v: (nv,) velocity at which the rows move.
        state: a :class:`~constrained_sim.steppers.packed_step.State`.
    """
    robot, contacts, limits = borrowed(model.robot), borrowed(model.contacts), borrowed(model.limits)
    k, found = state.distances.shape[0], (state.axes, state.points, state.distances)
    find_axes(robot.tree, pose)
    where = pose.placements, pose.axes, robot.support
    contact_rows(contacts.features, where, v, found, (state.J[: 3 * k], state.s[: 3 * k]))
    q, J, s, gaps, distances = state.q, state.J, state.s, state.gaps, state.distances
    for c in range(k):
        gaps[c] = distances[c]
    for c in contacts.soft.contacts:
        gaps[c] = np.inf
    for i in range(limits.at_q.shape[0]):
        J[3 * k + i] = limits.rows[i]
        s[3 * k + i] = vecdot(limits.rows[i], v)
        gaps[k + i] = limits.signs[i] * q[limits.at_q[i]] - limits.values[i]
    if state.turning.shape[0]:
        turning = contacts.turning
        along = turning_directions(turning, state.axes)
        state.turning[:] = turning_rows(turning.joints, turning.others, along, pose.axes, robot.support)
    if state.phi.shape[0]:
        rows = state.phi, state.J_bilateral, state.s_bilateral
        evaluate_bilateral(borrowed(model.bilateral), target, state.q, v, where, rows)


@kernel(stage=True)
def evaluate_inertia(model, pose, state):
    """Fill in the inertia of a `state`, and what the `pose` still lacks."""
    robot, frames, placements = borrowed(model.robot), state.frames, pose.placements
    for i in range(robot.free.shape[0]):
        frames[i] = placements[robot.free[i]]
    find_bodies(robot.tree, pose)
    inertia(robot.tree, pose, state.M)


@kernel(stage=True, spliced=True)
def inertial_forces(model, pose, v):
    """Return (nv,) Coriolis, centrifugal and gravity forces at the `pose` and the velocity v (nv,)."""
    return bias_forces(borrowed(model.robot).tree, pose, v)


@kernel(stage=True, spliced=True)
def gravity_forces(model, pose):
    """Return (nv,) gravity forces at the `pose`, of which the inertia has been evaluated."""
    return pose.weight


@kernel(stage=True, spliced=True)
def external_forces(model, pose, wrenches):
    """Return (nv,) the efforts of external `wrenches` at a `pose` [N m, N]."""
    return external_effort(wrenches, pose.placements, pose.axes, borrowed(model.robot).support)


@kernel(stage=True, spliced=True)
def bilateral_goal(model, targets, begin, v, middle):
    """Return (m,) what ``J v'`` is to be, J in the `middle`, so that the bilateral rows are at rest at the end.

    They move at the end as they are to, but for what their velocity changes by from the beginning to the middle.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        targets: (2, 2, m) of the rows at both ends.
        begin: the state at the beginning.
        v: (nv,) velocity there, along the axes in the middle.
        middle: the state there.
    """
    return begin.s_bilateral + targets[1, 1] - middle.s_bilateral


@kernel(stage=True, spliced=True)
def stored_energy(model, pose, q):
    """Return the energy of gravity and springs [J] at a `pose` and configuration q (nq,)."""
    robot = borrowed(model.robot)
    return potential_energy(robot.tree, pose.placements) + spring_energy(robot.springs, q)


@kernel(stage=True, spliced=True)
def step_back(model, before, pose, state, rows):
    """Return the smallest tangent step (nv,) that takes the drift out of a `state`, to first order.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        before: (m, nv) bilateral rows where the step began.
        pose: of the state.
        state: the state; its bilateral rows, and
        rows: (n,) those of contacts and limits, whose drift is to vanish: gaps in rows that open, 0 in others.
    """
    tree, contacts, gaps = borrowed(model.robot).tree, borrowed(model.contacts), np.zeros(state.s.shape[0])
    gaps[contacts.normals] = state.gaps
    if state.phi.shape[0]:
        bilateral, phi = keep_dependence(state.M, tree.rows, before, state.J_bilateral, state.phi)
        every, drift = np.concatenate((bilateral, state.J[rows])), np.concatenate((phi, gaps[rows]))
        return smallest_motion(state.M, tree.rows, every, drift)
    if contacts.shares:
        basis = reduce_contact_rows(rows, contacts.features.bodies, state.axes, state.points)
        return smallest_reduced_motion(state.M, tree.rows, state.J[rows], basis, gaps[rows])
    return smallest_motion(state.M, tree.rows, state.J[rows], gaps[rows])


@kernel(stage=True)
def project_configuration(model, target, held, status, pose, begin, end):
    """Move the configuration at the `end` of a step back onto bilateral rows, and contacts and limits that are `held`.

    Where rows nearly depend on each other, what is a hundredth of a micrometre at one of them may take a large motion,
    or be farther away after it: contacts are left as they are then, as is what a step does not halve. The tangential
    rows of sticking contacts keep their position meanwhile, unless that clashes with what is taken out.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        target: (2, m) of the bilateral rows at the end.
        held: contacts and limits that are active or have sunk, ascending.
        status: of all contacts and limits.
        pose: at the end; changes, as far as :func:`evaluate_rows` knows it.
        begin: the state at the beginning.
        end: the state at the end; the configuration changes, and what :func:`evaluate_rows` fills in.

    Returns:
        The potential energy [J] that this brings in.
    """
    energy, drift = stored_energy(model, pose, end.q), largest_drift(end.phi, end.gaps, held)
    normals = borrowed(model.contacts).normals
    rows = position_rows(held, normals, status)
    for _ in range(STEPPING.projections):
        back, before = step_back(model, begin.J_bilateral, pose, end, rows), end.q.copy()
        others, allowed = rows.shape[0] - held.shape[0], STEPPING.clash * drift
        if others and not takes_out(back, end.J_bilateral, end.phi, end.J, end.gaps, normals, held, allowed):
            rows = without_clashes(end.M, model.robot.parents, end.J_bilateral, end.J, rows, normals)
            back = step_back(model, begin.J_bilateral, pose, end, rows)
        if held.shape[0] and np.abs(back).max() > STEPPING.lever * drift:
            break
        configure(model, pose, before, 1.0, back, AS_IT_IS, end)
        evaluate_rows(model, target, pose, end.v, end)
        left = largest_drift(end.phi, end.gaps, held)
        if not left < 0.5 * drift:
            configure(model, pose, before, 0.0, back, AS_IT_IS, end)
            evaluate_rows(model, target, pose, end.v, end)
            break
        drift = left
        if drift <= model.options.position_tolerance:
            break
    return stored_energy(model, pose, end.q) - energy

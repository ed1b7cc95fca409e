"""A step with rigid contacts, joint limits, dry joint friction and bilateral rows, compiled: what is tried first.

It is no method of its own: the kernels of the interpreted step, one after the other, without the interpreter between
them. It leaves off where it cannot go on, and the interpreted step goes on from there.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.constrained_dynamics import (
    dynamics_residual,
    free_motion,
    quick_contacts,
    smallest_motion,
    smallest_reduced_motion,
    sticking_dynamics,
)
from constrained_sim.constraints.bilateral_rows import evaluate_bilateral
from constrained_sim.contact.features import contact_rows
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.reduced_rows import reduce_contact_rows
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.contact_solvers.solve import BY_STICKING
from constrained_sim.dynamics.free_flyer import (
    end_momentum,
    end_velocities,
    expected_velocity,
    generalized_momentum,
    hold_axes,
    middle_coms,
    turn_axes,
)
from constrained_sim.dynamics.springs import spring_effort, spring_energy
from constrained_sim.dynamics.tree import (
    bias_forces,
    find_axes,
    find_bodies,
    inertia,
    kinetic_gradient,
    move,
    place,
    potential_energy,
    shift_base_to_com,
)
from constrained_sim.energy import EnergyTerms
from constrained_sim.linalg.products import matvec, vecdot, vecmat
from constrained_sim.solvers.held_rows import hold_rows
from constrained_sim.solvers.solver import largest_row_error
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import (
    active_set,
    allow_approach,
    candidate_rows,
    held_rows,
    rows_of,
    spread,
)
from constrained_sim.steppers.midpoint_friction import (
    LEAST_SHARE,
    correct_midpoint_friction,
    first_reversal,
    predict_midpoint_friction,
)
from constrained_sim.steppers.state_checks import LEVER, MOST_PROJECTIONS, exceeds, largest_drift
from constrained_sim.steppers.step_energy import attribute_friction_work, attribute_work, energy_of
from constrained_sim.steppers.step_model import RowSolution
from constrained_sim.wrench import external_effort

NO_ROLLING = no_rolling()

UNSOLVED, PREDICTED, TURNED, REVERSED, DONE = range(5)
"""How far a step came, see :func:`advance`."""

PROJECTION = list(vars(EnergyTerms())).index("projection")


@kernel
def advance(model, settings, begin, acceleration, loads, excluded, near, found, end):  # type: ignore[no-untyped-def]
    """Do a step without impact, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        model: what is the same in all steps, a :class:`~constrained_sim.steppers.step_model.StepModel`.
        settings: length h of the step [s]; whether the velocity at its end is corrected; passes, see
            ``TimeStepping.memory``; factorisation of the rows held, see :func:`predict`; tolerance and steps of
            :func:`~constrained_sim.contact_solvers.solve.solve_quick`.
        begin: the :class:`~constrained_sim.steppers.packed_step.State` at the beginning.
        acceleration: (nv,) of the last step.
        loads: efforts of the actuators, see :class:`~constrained_sim.actuators.Efforts`; external wrenches, see
            :class:`~constrained_sim.wrench.WrenchTable`; and the targets (2, 2, m) of the bilateral rows at both ends,
            see :func:`~constrained_sim.constraints.bilateral_rows.evaluate_bilateral`.
        excluded: contacts and limits that carry no force, whatever becomes of their gaps.
        near: impulses near those of the rows that take part, but bilateral ones; of another length than these, and
            nothing is known.
        found: see :func:`predict`; corrected, where this comes so far.
        end: filled with the state at the end.

    Returns:
        How far this came, what :func:`predict` returns, and how often rows were held. :data:`UNSOLVED`, and all else is
        of no use; :data:`PREDICTED`, the correction needs another way, or was not wanted; :data:`TURNED`, it does where
        friction was turned; :data:`REVERSED`, it is done, but slip turned back within it; or :data:`DONE`.
    """
    h, corrects, passes, factorization, tolerance, steps = settings
    robot, contacts, work = borrowed(model.robot), borrowed(model.contacts), borrowed(model.work)
    theta, rest_speed = model.options.theta, model.options.rest_speed
    tree, free, middle, bias, impulses, x = robot.tree, robot.free, work.middle, work.bias, work.impulses, work.x
    v, pose, end_pose = begin.v, work.pose, work.end_pose
    joint_friction = robot.friction_dofs, h * robot.coulomb_effort, robot.others, robot.parents_of_others
    tolerable = 0.0 if corrects else OPTIONS.tolerable  # what is only tried need not be solved
    laws = contacts.friction, joint_friction, theta, factorization, tolerance, steps, tolerable
    opening = begin.gaps, contacts.normals, begin.s
    pull = spring_effort(robot.springs, begin.q, v.shape[0])
    for i in range(v.shape[0]):
        pull[i] -= 0.25 * h * robot.stiffness[i] * v[i]

    com = middle_coms((1.0 - theta) * h, begin.M, v, begin.frames, robot.free_rows)
    move(tree, begin.q, (1.0 - theta) * h, v, middle.q)
    place(tree, middle.q, pose)
    for i in range(free.shape[0]):
        shift_base_to_com(tree, middle.q, pose.placements, robot.support, free[i], com[i])
    carried = turn_axes((1.0 - theta) * h, v, robot.free_rows)
    efforts, wrenches, targets = loads
    evaluate_rows(model, targets[0], pose, carried, middle)
    evaluate_inertia(model, pose, middle)
    external = external_effort(wrenches, pose.placements, pose.axes, robot.support)
    expected = expected_velocity(h, theta, begin.M, carried, acceleration, passes == 1, robot.free_rows)
    start, last, calls = near, acceleration, 0
    for done in range(passes + 1):
        if done:
            if done == passes and (
                exceeds(v, rest_speed) or exceeds(x, rest_speed) or not exceeds(middle.v, rest_speed)
            ):
                break  # else what stopped within the last step would have forces at a velocity that it does not have
            expected[:] = x
        for i in range(v.shape[0]):
            middle.v[i] = carried[i] + (1.0 - theta) * (expected[i] - carried[i])
        bias[:] = bias_forces(tree, pose, middle.v)
        hold_axes(bias, h, theta, middle.M, carried, expected, robot.free_rows)
        predicted, will_do = predict(
            h,
            model,
            laws,
            opening,
            carried,
            begin.s_bilateral + targets[1, 1],
            (pull - bias, external),
            efforts,
            excluded,
            start,
            found,
        )
        start = predicted.impulse
        calls += min(start.shape[0] + predicted.lam.shape[0], 1)
        if not will_do:
            return UNSOLVED, predicted, calls

    masses, frames = (begin.M, v, middle.M), (begin.frames, middle.frames)
    flown = end_velocities(h, *masses, impulses, tree.gravity, robot.free_rows, *frames)
    move(tree, middle.q, theta * h, x, end.q)
    end.v[:] = turn_axes(theta * h, x, robot.free_rows)
    place(tree, end.q, end_pose)
    for i in range(free.shape[0]):
        shift_base_to_com(tree, end.q, end_pose.placements, robot.support, free[i], com[i] + theta * h * flown[i])
    evaluate_rows(model, targets[1], end_pose, end.v, end)
    _, _, _, status, energy = found
    active, held = active_set(status, begin.gaps, end.gaps, excluded)
    if largest_drift(end.phi, end.gaps, held) > model.options.position_tolerance:
        evaluate_inertia(model, end_pose, end)
        energy[PROJECTION] += hold(model, targets[1], held, status, end_pose, end)
    evaluate_inertia(model, end_pose, end)
    if not (exceeds(v, rest_speed) or exceeds(middle.v, rest_speed) or exceeds(x, rest_speed)):
        return DONE, predicted, calls
    if not corrects:
        return PREDICTED, predicted, calls
    v_mean = carried + (1.0 - theta) * (x - carried)
    inertial = bias - pose.weight + kinetic_gradient(tree, pose, v_mean)
    total = end_momentum(h, *masses, inertial, impulses, tree.gravity, end.M, robot.free_rows, *frames, end.frames)
    w = matvec(begin.J_bilateral, v)
    reached, more = correct(model, h, total, v, w, last, laws, active, opening, end, found)
    return reached, predicted, calls + more


@kernel
def evaluate_rows(model, target, pose, v, state):  # type: ignore[no-untyped-def]
    """Fill in what a `state` has of constraints, at its configuration, the joints of which are placed.

    Args:
        model: see :func:`advance`.
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
        model: see :func:`advance`.
        target: (2, m) of the bilateral rows at the end.
        held: what presses or has sunk, ascending.
        status: of all contacts and limits.
        pose: at the end; changes, as far as :func:`evaluate_rows` knows it.
        end: see :func:`advance`; the configuration changes, and what :func:`evaluate_rows` fills in.

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


@kernel
def predict(h, model, laws, begin, v, s_ends, forces, efforts, excluded, start, found):  # type: ignore[no-untyped-def]
    """Solve the smooth problem of a step, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        h: length of the step [s].
        model: see :func:`advance`; damping acts at the velocity at the end, springs at the mean of the positions.
        laws: (k,) coefficients of friction; of dry friction the (d,) degrees of freedom, their largest impulses (d,)
            [N m s, N s], and the others with their parents; share of
            :func:`~constrained_sim.steppers.contact_selection.allow_approach`; factorisation of the rows held, one of
            :mod:`~constrained_sim.solvers.held_rows`; tolerance and steps of
            :func:`~constrained_sim.contact_solvers.solve.solve_quick`; largest relative residual of the
            contact law that will do where it leads to no solution.
        begin: gaps (k + l,) at the beginning [m, rad]; which rows open and close (k + l,); row velocities (3 k + l,)
            there [m/s, rad/s].
        v: (nv,) velocity there.
        s_ends: (m,) velocities of the bilateral rows there, plus what their ``J v`` is to be at the end [m/s, rad/s].
        forces: (nv,) of gravity and inertia in the middle state of the work space, and of springs; (nv,) of external
            wrenches [N m, N].
        efforts: of the actuators, see :class:`~constrained_sim.actuators.Efforts`.
        excluded: contacts and limits that take no part.
        start: impulses near those of the rows that take part, see ``advance``.
        found: filled with the impulses of contacts and one-sided rows (3 k + l,) [N s, N m s], those of dry friction
            (d,) [N m s, N s], those of the bilateral rows (m,) [N s, N m s], the status (k + l,), and the terms of the
            audit (9,).

    Returns:
        A :class:`~constrained_sim.steppers.step_model.RowSolution`, and whether it is solved, or nearly where that will
        do; if it is not, nothing else counts.
    """
    friction, by_joint, theta, factorization, tolerance, steps, tolerable = laws
    robot, features, work = borrowed(model.robot), borrowed(model.contacts).features, borrowed(model.work)
    damping, friction_dofs, middle, impulses, x = robot.damping, robot.friction_dofs, work.middle, work.impulses, work.x
    gaps, normals, s = begin
    impulse, joint_friction, lam, status, energy = found
    gravity_and_inertia, external = forces
    impulses[:] = 0.0
    inertia = middle.M.copy()
    for i in range(v.shape[0]):
        impulses[0, i] = h * gravity_and_inertia[i]
        impulses[2, i] = h * external[i]
        inertia[i, i] += h * damping[i] + 0.25 * h**2 * robot.stiffness[i]
    for i in range(robot.actuation.shape[0]):
        k = robot.actuation[i]
        impulses[1, k] = h * efforts.constant[i]
        inertia[k, k] += h * efforts.damping[i]
    candidates, rows, J, offset = candidate_rows(
        gaps, normals, s, v, middle.J, excluded, h, theta, model.options.activation_distance, friction_dofs
    )
    f, where = generalized_momentum(middle.M, v, impulses), (features[0], middle.axes, middle.points)
    if start.shape[0] != offset.shape[0]:
        start = np.empty(0)
    # The rows move at the end as they are to, but for what their velocity changes by from the beginning to the middle.
    bilateral = middle.J_bilateral, s_ends - middle.s_bilateral
    solution = _solve(
        factorization, inertia, robot.tree.rows, f, J, offset, bilateral, friction, candidates, rows, where, by_joint,
        start, tolerance, steps,
    )  # fmt: skip
    if not (solution.solved or solution.residual <= tolerable):
        return solution, False
    x[:], lam[:] = solution.x, solution.lam
    row_impulses, end = solution.impulse, rows.shape[0]
    for i in range(v.shape[0]):
        impulses[0, i] -= 0.25 * h**2 * robot.stiffness[i] * x[i]
        impulses[3, i] = -h * damping[i] * x[i]
    for i in range(robot.actuation.shape[0]):
        k = robot.actuation[i]
        impulses[1, k] -= h * efforts.damping[i] * x[k]
    for i in range(friction_dofs.shape[0]):
        joint_friction[i] = row_impulses[end + i]
        impulses[3, friction_dofs[i]] += joint_friction[i]
    impulses[4] = vecmat(row_impulses[:end], J[:end])
    impulses[5] = vecmat(lam, middle.J_bilateral)
    spread(candidates, normals, row_impulses, solution.status, impulse, status)
    energy[:] = energy_of(v, x, middle.M, impulses)
    return solution, True


@kernel
def correct(model, h, total, v, w, last, laws, active, begin, state, found):  # type: ignore[no-untyped-def]
    """Correct what was predicted, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        model: see :func:`advance`; velocity and impulses before friction is turned are left in the work space.
        h: length of the step [s].
        total: (nv,) generalised momentum at the end, with all impulses of the prediction.
        v: (nv,) velocity at the beginning.
        w: (m,) what the bilateral rows there make of it.
        last: (nv,) acceleration of the last step.
        laws: see :func:`predict`.
        active: contacts and one-sided rows that carry force in the prediction, ascending.
        begin: see :func:`predict`.
        state: at the end; the velocity, as predicted, is corrected, and so are those of the rows.
        found: what :func:`predict` found, is corrected.

    Returns:
        How far this came, and how often rows were held: :data:`DONE` or :data:`REVERSED`; else nothing but the work
        space has changed, :data:`PREDICTED` where the contact problem was not solved, :data:`TURNED` where that with
        friction turned was not.
    """
    friction, by_joint, theta, factorization, tolerance, steps, _ = laws
    gaps, normals, s = begin
    impulse, joint_friction, lam, status, energy = found
    robot, work, x, M = borrowed(model.robot), borrowed(model.work), state.v, state.M
    friction_dofs, where = robot.friction_dofs, (borrowed(model.contacts).features[0], state.axes, state.points)
    contacts, places = np.searchsorted(active, friction.shape[0]), rows_of(active, normals, friction.shape[0])
    end, count = places.shape[0], places.shape[0] + friction_dofs.shape[0]
    J, predicted, s_begin, offset = np.zeros((count, v.shape[0])), np.empty(count), np.empty(count), np.zeros(count)
    allow_approach(active, friction.shape[0], gaps, normals, s, h, theta, offset)
    for i in range(end):
        J[i] = state.J[places[i]]
        predicted[i], s_begin[i] = impulse[places[i]], s[places[i]]
    for i in range(friction_dofs.shape[0]):
        J[end + i, friction_dofs[i]] = 1.0
        predicted[end + i], s_begin[end + i] = joint_friction[i], v[friction_dofs[i]]
    free = total - vecmat(predicted, J) - vecmat(lam, state.J_bilateral)
    bilateral = state.J_bilateral, matvec(state.J_bilateral, x) - state.s_bilateral
    predict_midpoint_friction(s_begin, matvec(J, x), contacts, NO_ROLLING, offset)
    all_gained, gained = h * matvec(state.J, last), np.empty(count)
    for i in range(end):
        gained[i] = all_gained[places[i]]
    for i in range(friction_dofs.shape[0]):
        gained[end + i] = h * last[friction_dofs[i]]
    row_impulses = predicted
    for turns in range(2):
        solution = _solve(
            factorization, M, robot.tree.rows, free, J, offset, bilateral, friction, active, places, where, by_joint,
            row_impulses, tolerance, steps,
        )  # fmt: skip
        if not solution.solved:
            return TURNED if turns else PREDICTED, turns + 1
        v_plus, row_impulses = solution.x, solution.impulse
        work.x_first[:], work.row_impulses_first[: row_impulses.shape[0]] = v_plus, row_impulses
        s_end = matvec(J, v_plus)
        friction_rows = friction_dofs.shape[0]
        if not correct_midpoint_friction(
            s_begin, s_end, gained, contacts, friction_rows, NO_ROLLING, offset, row_impulses, tolerance
        ):
            break
    change = np.zeros_like(work.impulses)
    for i in range(v.shape[0]):
        change[0, i] = total[i] - vecdot(M[i], x)
    for i in range(friction_dofs.shape[0]):
        change[3, friction_dofs[i]] = row_impulses[end + i] - joint_friction[i]
    change[4] = vecmat(row_impulses[:end] - predicted[:end], J[:end])
    change[5] = vecmat(solution.lam - lam, state.J_bilateral)
    energy += energy_of(x, v_plus, M, change)
    impulse[places], status[active] = row_impulses[:end], solution.status[: active.shape[0]]
    lam[:] = solution.lam
    state.s[:] = matvec(state.J, v_plus)
    state.s_bilateral[:] = state.s_bilateral + matvec(state.J_bilateral, v_plus - x)
    by_contacts = 0.5 * (vecdot(impulse, s) + vecdot(impulse, state.s))
    attribute_work(energy, by_contacts, 0.5 * vecdot(lam, w + matvec(state.J_bilateral, v_plus)))
    if friction_dofs.shape[0]:
        attribute_friction_work(
            energy, v[friction_dofs], x[friction_dofs], v_plus[friction_dofs], joint_friction, row_impulses[end:]
        )
    joint_friction[:], x[:] = row_impulses[end:], v_plus
    joints = v[friction_dofs], v_plus[friction_dofs], gained[end:], joint_friction, by_joint[1]
    reversing, _ = first_reversal(s, state.s, all_gained, friction, impulse, status, joints, LEAST_SHARE)
    return REVERSED if reversing >= 0 else DONE, min(count + lam.shape[0], 1) * (turns + 1)


@kernel
def _solve(  # type: ignore[no-untyped-def]
    factorization, M, parents, f, J, offset, bilateral, friction, chosen, rows, where, joint_friction, start, tolerance,
    steps,
):  # fmt: skip
    """Solve for the velocity: first with all rows held, and where the contact law forbids that, by contact methods.

    Args:
        factorization: of the rows held, one of :mod:`~constrained_sim.solvers.held_rows`.
        M: (nv, nv) inertia.
        parents: (nv,) parent of each degree of freedom.
        f: (nv,) momentum.
        J: (n + d, nv) rows of what is `chosen`, then of dry friction.
        offset: (n + d,) what is added to ``J x``.
        bilateral: (m, nv) rows, and what their ``J x`` is to be (m,).
        friction: (k,) coefficients of all contacts.
        chosen: contacts and one-sided rows, ascending.
        rows: (n,) of what is `chosen`, among those of all contacts.
        where: (k, 2) bodies of the contacts, and where their rows are taken their axes (k, 3, 3) and points (k, 3).
        joint_friction: as in the laws of :func:`predict`.
        start: impulses near those of the rows; (0,): nothing is known.
        tolerance: error of impulses that is good enough [N s].
        steps: of Newton's method.

    Returns:
        A :class:`~constrained_sim.steppers.step_model.RowSolution`.
    """
    held_J, b = bilateral
    m, n, d = b.shape[0], rows.shape[0], offset.shape[0] - rows.shape[0]
    if not (n + d + m):
        x, dynamics = free_motion(M, parents, f)
        return RowSolution(
            x, np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), (BY_STICKING, 0), 0.0, 1.0, True, dynamics, 0.0
        )
    held, most, others, parents_of_others = joint_friction
    contacts = np.searchsorted(chosen, friction.shape[0])
    one_sided = chosen.shape[0] - contacts
    lower, upper = np.zeros(one_sided + m + d), np.full(one_sided + m + d, np.inf)
    lower[one_sided : one_sided + m] = -np.inf
    lower[one_sided + m :], upper[one_sided + m :] = -most, most
    slip, coefficients = np.zeros((contacts, 2)), friction[chosen[:contacts]]
    reduced = reduce_contact_rows(np.append(rows, np.full(m + d, 3 * friction.shape[0])), *where)
    every, offsets = J, offset
    if m:
        every = np.concatenate((J[:n], held_J, J[n:]))
        offsets = np.concatenate((offset[:n], -b, offset[n:]))
    x, forces, status, residual, magnitude, solved, dynamics = sticking_dynamics(
        factorization, M, parents, f, every, reduced, offsets, (held, others, parents_of_others), coefficients, slip,
        lower, upper, NO_ROLLING, tolerance,
    )  # fmt: skip
    if not m:
        impulse, lam = forces, np.empty(0)
    else:
        impulse, lam = np.concatenate((forces[:n], forces[n + m :])), forces[n : n + m].copy()
        status = np.concatenate((status[: chosen.shape[0]], status[chosen.shape[0] + m :]))
    how, inconsistent = (BY_STICKING, 0), 0.0
    if not (n + d):
        residual, magnitude, solved = 0.0, 1.0, True
    elif not solved:
        lower, upper = np.append(lower[:one_sided], -most), np.append(upper[:one_sided], most)
        x, _, _, impulse, status, how, residual, magnitude, solved = quick_contacts(
            M, parents, f, held_J, b, J, offset, offset[:0], coefficients, slip, lower, upper, NO_ROLLING, start,
            tolerance, steps, steps == 0 or m > 0,
        )  # fmt: skip
        total = f + vecmat(impulse, J)
        if m:
            x, lam, _, _, _ = hold_rows(factorization, M, parents, held_J, total, b)
        dynamics = dynamics_residual(M, x, f, total - f + vecmat(lam, held_J))
    if m:
        inconsistent = largest_row_error(held_J, b, x, free_motion(M, parents, f)[0])
    return RowSolution(x, impulse, lam, status, how, residual, magnitude, solved, dynamics, inconsistent)

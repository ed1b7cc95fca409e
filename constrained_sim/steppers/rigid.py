"""A step with rigid contacts, joint limits, dry joint friction and bilateral rows, compiled: what is tried first.

It is no method of its own: the kernels of the interpreted step, one after the other, without the interpreter between
them. It leaves off where it cannot go on, and the interpreted step goes on from there.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.dynamics.free_flyer import (
    end_momentum,
    end_velocities,
    expected_velocity,
    generalized_momentum,
    hold_axes,
    middle_coms,
    turn_axes,
)
from constrained_sim.dynamics.springs import spring_effort
from constrained_sim.dynamics.tree import (
    bias_forces,
    kinetic_gradient,
    move,
    place,
    shift_base_to_com,
)
from constrained_sim.energy import EnergyTerms
from constrained_sim.linalg.products import matvec, vecdot, vecmat
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import (
    active_set,
    allow_approach,
    candidate_rows,
    rows_of,
    spread,
)
from constrained_sim.steppers.evaluation import evaluate_inertia, evaluate_rows, hold
from constrained_sim.steppers.midpoint_friction import (
    LEAST_SHARE,
    correct_midpoint_friction,
    first_reversal,
    predict_midpoint_friction,
)
from constrained_sim.steppers.row_solution import solve_rows
from constrained_sim.steppers.state_checks import exceeds, largest_drift
from constrained_sim.steppers.step_energy import attribute_friction_work, attribute_work, energy_of
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
        A :class:`~constrained_sim.steppers.row_solution.RowSolution`, and whether it is solved, or nearly where that
        will do; if it is not, nothing else counts.
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
    solution = solve_rows(
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
        solution = solve_rows(
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

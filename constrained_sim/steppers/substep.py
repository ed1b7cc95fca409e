"""The step without impact, written once: with contacts, limits, dry friction, resistance to turning, bilateral rows.

Its stages act on a model: one of arrays, for which the whole is compiled, or an
:class:`~constrained_sim.steppers.interpreted_model.InterpretedSubstepModel`, for which Python goes from stage to stage.
"""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.dynamics.free_flyer import (
    end_velocities,
    expected_velocity,
    free_flyer_momentum,
    hold_axes,
    keep_spin,
    middle_coms,
    velocity_in_turned_axes,
)
from constrained_sim.dynamics.momentum import (
    ENERGY_ERRORS,
    give_momentum,
    limit_energy,
    with_impulses,
)
from constrained_sim.dynamics.springs import spring_effort
from constrained_sim.energy import PROJECTION
from constrained_sim.linalg.inertia_factor import solve_inertia
from constrained_sim.linalg.kept_dependence import keep_dependence
from constrained_sim.linalg.products import matvec, vecmat
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import active_rows, active_set, candidate_rows
from constrained_sim.steppers.evaluation import (
    bilateral_goal,
    configure,
    evaluate_inertia,
    evaluate_rows,
    external_forces,
    gravity_forces,
    inertial_forces,
    project_configuration,
)
from constrained_sim.steppers.midpoint_friction import (
    correct_midpoint_friction,
    first_reversal,
    predict_midpoint_friction,
)
from constrained_sim.steppers.options import STEPPING
from constrained_sim.steppers.row_solution import CORRECTION, MIDPOINT_FRICTION, PREDICTION, StepProblem, solve_rows
from constrained_sim.steppers.soft_rows import slide_springs, soft_rows
from constrained_sim.steppers.state_checks import exceeds, largest_drift
from constrained_sim.steppers.step_energy import energy_of
from constrained_sim.steppers.step_impulses import (
    between,
    enter_correction,
    enter_known_impulses,
    enter_solution,
    values_of,
)

UNSOLVED, PREDICTED, UNCORRECTED, REVERSED, INACCURATE, DONE = range(6)
"""How far a step came, see :func:`substep`."""


@kernel(stage=True)
def substep(model, settings, begin, acceleration, arguments, near, found, end):
    """Do a step without impact, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        model: what is the same in all steps, a :class:`~constrained_sim.steppers.step_model.StepModel`.
        settings: see :class:`~constrained_sim.steppers.step_model.StepSettings`.
        begin: the :class:`~constrained_sim.steppers.packed_step.State` at the beginning.
        acceleration: (nv,) of the last step.
        arguments: see :class:`~constrained_sim.steppers.step_model.StepArguments`.
        near: warm start: impulses (n + d + f,) near those of the rows that take part, without the bilateral ones; an
            array of another length for none.
        found: :class:`~constrained_sim.steppers.step_model.StepImpulses`; filled, and corrected where this comes so
            far.
        end: filled with the state at the end.

    Returns:
        How far this came, the :class:`~constrained_sim.steppers.row_solution.RowSolution` of the prediction, and how
        often rows were held. :data:`UNSOLVED`: no other output is valid; :data:`PREDICTED`: no correction was wanted;
        :data:`UNCORRECTED`: that was not solved; :data:`REVERSED`: it is done, but slip turned back within it;
        :data:`INACCURATE`: it is done or predicted, but its energy is not that of the work; or :data:`DONE`.
    """
    robot, work, h, theta = borrowed(model.robot), borrowed(model.work), settings.h, model.options.theta
    negligible_speed, v = STEPPING.negligible_speed, begin.v
    middle, impulses, x = work.middle, work.impulses, work.x
    pull = spring_effort(robot.springs, begin.q, v.shape[0])
    com = middle_coms((1.0 - theta) * h, begin.M, v, begin.frames, robot.free_rows)
    configure(model, work.pose, begin.q, (1.0 - theta) * h, v, com, middle)
    carried = velocity_in_turned_axes((1.0 - theta) * h, v, robot.free_rows)
    evaluate_rows(model, arguments.targets[0], work.pose, carried, middle)
    evaluate_inertia(model, work.pose, middle)
    external = external_forces(model, work.pose, arguments.wrenches)
    soft = soft_rows(model, begin, arguments.user_forces, arguments.excluded, h)
    known = settings.passes == 1
    expected, shares = expected_velocity(h, theta, begin.M, carried, acceleration, known, robot.free_rows)
    start, calls = near, 0
    for done in range(settings.passes + 1):
        if done:
            if done == settings.passes and (
                exceeds(v, negligible_speed) or exceeds(x, negligible_speed) or not exceeds(middle.v, negligible_speed)
            ):
                break  # else what stopped within the last step would have forces at a velocity that it does not have
            expected[:] = x
        between(1.0 - theta, carried, expected, middle.v)
        work.bias[:] = inertial_forces(model, work.pose, middle.v)
        hold_axes(work.bias, h, theta, middle.M, carried, expected, robot.free_rows)
        predicted, will_do = predict(model, settings, begin, carried, (pull, external, soft), arguments, start, found)
        start = predicted.contact.impulse
        calls += min(start.shape[0] + predicted.lam.shape[0], 1)
        if not will_do:
            return UNSOLVED, predicted, calls

    masses, frames = (begin.M, middle.M), (begin.frames, middle.frames)
    flown = end_velocities(h, masses, v, impulses, robot.gravity, robot.free_rows, frames)
    active = arrive(model, settings, begin, com + theta * h * flown, arguments, found, end)
    if not (exceeds(v, negligible_speed) or exceeds(middle.v, negligible_speed) or exceeds(x, negligible_speed)):
        return DONE, predicted, calls
    total, is_off = final_momentum(model, settings, begin, carried, (expected, shares), end)
    if not settings.corrects:
        return INACCURATE if is_off else PREDICTED, predicted, calls
    reached, more = correct(model, settings, begin, total, acceleration, active, found, end)
    return INACCURATE if is_off and reached != UNCORRECTED else reached, predicted, calls + more


@kernel(stage=True, spliced=True)
def predict(model, settings, begin, v, forces, arguments, start, found):
    """Solve the smooth problem of a step, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        model: see :func:`substep`; damping acts at the velocity at the end, springs at the mean of the positions.
        settings: see :func:`substep`.
        begin: the state at the beginning.
        v: (nv,) velocity there, along the axes in the middle.
        forces: (nv,) of springs; (nv,) of external wrenches [N m, N]; the
            :class:`~constrained_sim.steppers.soft_rows.SoftRows` of the step.
        arguments: see :func:`substep`.
        start: impulses near those of the rows that take part, see ``substep``.
        found: filled.

    Returns:
        A :class:`~constrained_sim.steppers.row_solution.RowSolution`, and whether it is solved, or nearly where that
        will do; if it is not, nothing else counts.
    """
    joints, work = borrowed(model.robot).joints, borrowed(model.work)
    h, middle, impulses = settings.h, work.middle, work.impulses
    pull, external, soft = forces
    added = enter_known_impulses(h, joints, arguments.efforts, v, (pull, work.bias, external), impulses)
    candidates = candidate_rows(model, h, begin, v, middle, soft, arguments.excluded)
    f, goal = with_impulses(matvec(middle.M, v), impulses), bilateral_goal(model, arguments.targets, begin, v, middle)
    parents = borrowed(model.robot).parents
    held, goal = keep_dependence(middle.M, parents, begin.J_bilateral, middle.J_bilateral, goal)
    start = start if start.shape[0] == candidates.offset.shape[0] else start[:0]  # what takes part depends on h
    problem = StepProblem(middle.M, held, middle.axes, middle.points, added, f, goal, candidates)
    solution = solve_rows(model, settings, PREDICTION, problem, start)
    contact = solution.contact
    is_near = not settings.corrects and contact.residual <= OPTIONS.tolerable  # enough for a step that is only tried
    if not (contact.solved or settings.goes_on or is_near):
        return solution, False
    work.x[:] = solution.x
    enter_solution(h, joints, arguments.efforts, candidates, solution, held, found, impulses)
    found.energy[:] = energy_of(v, solution.x, middle.M, impulses)
    return solution, True


@kernel(stage=True, spliced=True)
def arrive(model, settings, begin, coms, arguments, found, end):
    """Fill in the state at the `end`, to which a prediction leads, without its drift.

    Args:
        model: see :func:`substep`.
        settings: see :func:`substep`.
        begin: the state at the beginning.
        coms: (r, 3) where the centres of mass of all that free-flyers carry come to [m], world frame.
        arguments: see :func:`substep`.
        found: what :func:`predict` found; the energy of what takes out drift is added.
        end: filled.

    Returns:
        The contacts and one-sided rows that carry force, ascending.
    """
    work, second = borrowed(model.work), model.options.theta * settings.h
    configure(model, work.end_pose, work.middle.q, second, work.x, coms, end)
    end.v[:] = velocity_in_turned_axes(second, work.x, borrowed(model.robot).free_rows)
    evaluate_rows(model, arguments.targets[1], work.end_pose, end.v, end)
    slide_springs(model, settings.h, begin, found, end)
    active, held = active_set(found.status, begin.gaps, end.gaps, arguments.excluded)
    if not largest_drift(end.phi, end.gaps, held) <= model.options.position_tolerance:
        evaluate_inertia(model, work.end_pose, end)
        found.energy[PROJECTION] += project_configuration(
            model, arguments.targets[1], held, found.status, work.end_pose, begin, end
        )
    evaluate_inertia(model, work.end_pose, end)
    return active


@kernel(stage=True, spliced=True)
def final_momentum(model, settings, begin, v, expectation, end):
    """Find (nv,) the generalised momentum at the end of a step, with all impulses of the prediction.

    That of the velocity by the equation of motion in the middle; what of momentum is known exactly is made so, see
    :mod:`~constrained_sim.dynamics.momentum`. Bias forces are those at a velocity between the expected one and the one
    found. With s the share of the step before its middle, ``v + s (1 + s) / 2 (v' - v) + s (1 - s) / 2 h a`` is on the
    parabola through the velocities at both ends, and at the beginning of the step before, where its acceleration a was
    expected to go on. Where a pass before has found what is expected, the two hardly differ. Of what turned free-flyers
    a share was expected to go on; without it that is the mean of the velocities at both ends.

    Args:
        model: see :func:`substep`.
        settings: see :func:`substep`.
        begin: the state at the beginning.
        v: (nv,) velocity there, along the axes in the middle.
        expectation: (nv,) velocity at the end of which bias forces were made; and the shares, see
            :func:`~constrained_sim.dynamics.free_flyer.expected_velocity`.
        end: the state at the end.

    Returns:
        The momentum, and whether its energy is off, see :func:`~constrained_sim.dynamics.momentum.limit_energy`.
    """
    robot, work, h, theta = borrowed(model.robot), borrowed(model.work), settings.h, model.options.theta
    middle, x, impulses, rows = work.middle, work.x, work.impulses, robot.free_rows
    before, shares = expectation
    expected = before + (1.0 - 0.5 * theta * shares) * (x - before)
    between(1.0 - theta, v, expected, middle.v)
    bias = inertial_forces(model, work.pose, middle.v)
    hold_axes(bias, h, theta, middle.M, v, expected, rows)
    reached = x + solve_inertia(middle.M, robot.parents, h * (work.bias - bias))
    applied = with_impulses(h * (work.bias - gravity_forces(model, work.pose)), impulses)  # all but inertial forces
    momentum, v_plus = matvec(begin.M, begin.v), velocity_in_turned_axes(theta * h, reached, rows)
    total = matvec(end.M, v_plus)
    exact = momentum + applied
    inertias, placements = (begin.M, middle.M, end.M), (begin.frames, middle.frames, end.frames)
    carried = free_flyer_momentum(h, inertias, begin.v, impulses, robot.gravity, rows, placements)
    keep_spin(end.M, total, rows, carried)
    for i in range(rows.shape[0]):
        exact[rows[i] : rows[i] + 6] = carried[i]
    give_momentum(end.M, robot.momentum_rows, robot.parents_of_momenta, exact, v_plus, total)
    half_work = np.empty((2, v.shape[0]))
    half_work[0], half_work[1] = 0.5 * v * applied, 0.5 * reached * applied
    error = ENERGY_ERRORS[0] if theta == 0.5 else ENERGY_ERRORS[1]
    allowed = error, 0.5 * STEPPING.negligible_speed**2 * np.diag(middle.M)
    is_off = limit_energy(robot.parents, 0.5 * begin.v * momentum, half_work, allowed, v_plus, total)
    return total, is_off


@kernel(stage=True, spliced=True)
def correct(model, settings, begin, total, last, active, found, end):
    """Make the momentum at the end of the step what it must be, and the row velocities there obey their laws.

    Friction of what slides on opposes the mean slip, which is of second order where the slip turns. Where slip ends
    within the step, the friction that holds at its end may be along the slip at its beginning: there it is made to
    oppose the mean slip too, so that it never does positive work.

    Args:
        model: see :func:`substep`.
        settings: see :func:`substep`.
        begin: the state at the beginning.
        total: (nv,) generalised momentum at the end, with all impulses of the prediction.
        last: (nv,) acceleration of the last step.
        active: contacts and one-sided rows that carry force in the prediction, ascending.
        found: what :func:`predict` found, is corrected.
        end: the state there; the velocity, as predicted, is corrected, and so are those of the rows.

    Returns:
        How far this came, and how often rows were held: :data:`DONE` or :data:`REVERSED`; :data:`UNCORRECTED` where
        the contact problem was not solved, and nothing has changed.
    """
    joints, contacts, h = borrowed(model.robot).joints, borrowed(model.contacts), settings.h
    friction_dofs, most = joints.friction_dofs, h * joints.coulomb_effort
    rows = active_rows(model, h, begin, end, active)
    n, d, J, offset = rows.rows.shape[0], friction_dofs.shape[0], rows.J, rows.offset
    sticks = np.searchsorted(active, contacts.friction.shape[0])
    predicted, s_begin = values_of(rows, friction_dofs, found, begin)
    free = total - vecmat(predicted, J) - vecmat(found.lam, end.J_bilateral)
    goal, parents = matvec(end.J_bilateral, end.v) - end.s_bilateral, borrowed(model.robot).parents
    held, goal = keep_dependence(end.M, parents, begin.J_bilateral, end.J_bilateral, goal)
    predict_midpoint_friction(s_begin, matvec(J, end.v), sticks, rows.moments, offset)
    gained, row_impulses, phase = h * matvec(J, last), predicted, CORRECTION
    problem = StepProblem(end.M, held, end.axes, end.points, np.empty(0), free, goal, rows)
    for turns in range(2):
        solution = solve_rows(model, settings, phase, problem, row_impulses)
        if not (solution.contact.solved or settings.goes_on):
            return UNCORRECTED, turns + 1
        row_impulses, phase = solution.contact.impulse, MIDPOINT_FRICTION
        if turns or not correct_midpoint_friction(
            s_begin, matvec(J, solution.x), gained, (sticks, d), rows.moments, offset, row_impulses, settings.tolerance
        ):
            break
    enter_correction(friction_dofs, begin, total, rows, solution, found, end)
    slips = begin.s, end.s, h * matvec(end.J, last)
    joint_slips = begin.v[friction_dofs], end.v[friction_dofs], gained[n : n + d], found.joint_friction, most
    reversing, _ = first_reversal(
        *slips, contacts.slip_friction, found.impulse, found.status, joint_slips, STEPPING.least_share
    )
    return REVERSED if reversing >= 0 else DONE, min(predicted.shape[0] + found.lam.shape[0], 1) * (turns + 1)

"""A step with rigid contacts, joint limits and dry joint friction, compiled whole: what the time stepper tries first.

It is no method of its own: the kernels of the general way, one after the other, without the interpreter between them.
It leaves off where something unusual is to be done, and the general way goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from constrained_sim.contact.discs import no_discs
from constrained_sim.contact.geometry import contact_rows
from constrained_sim.contact.shared_rows import share_rows
from constrained_sim.energy import EnergyTerms
from constrained_sim.motion import free_motion, smallest_motion, smallest_shared_motion, sticking_motion, usual_motion
from constrained_sim.products import matvec, vecdot, vecmat
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.flight import end_momentum, end_velocities, middle_centres
from constrained_sim.steppers.kernels import (
    LEVER,
    MOST_PROJECTIONS,
    allow_approach,
    attribute_dry_work,
    attribute_work,
    candidate_rows,
    energy_of,
    exceeds,
    follow_mean_slip,
    held_rows,
    largest_drift,
    momentum,
    oppose_mean_slip,
    pressing,
    rows_of,
    spread,
)
from constrained_sim.tree import (
    Pose,
    bias_forces,
    carry,
    find_axes,
    find_bodies,
    inertia,
    kinetic_gradient,
    move,
    place,
    potential_energy,
)
from constrained_sim.validation import Array

NO_DISCS = no_discs()

UNSOLVED, PREDICTED, TURNED, DONE = range(4)
"""How far a step came, see :func:`advance`."""

STEPS_AGAIN = 8
"""Steps of Newton's method after friction was turned against the mean slip: it gets there soon, or not at all."""

PROJECTION = list(vars(EnergyTerms())).index("projection")


class WorkSpace(NamedTuple):
    """Arrays of a step that every step fills anew; what is in them after it is of interest now and then.

    Attributes:
        middle: the state where forces were evaluated, see :func:`~constrained_sim.steppers.record.cut_state`; but its
            rows move as they do at the velocity at the beginning.
        pose: there.
        end_pose: at the end.
        impulses: (6, nv) generalised impulses [N m s, N s] of the prediction, the causes in the order of ``FORCES``.
        x: (nv,) the velocity that is predicted for the end.
        x_first: (nv,) velocity of the correction before friction is turned against the mean slip.
        pushes_first: (3 k + l + d,) impulses of that, or fewer.
    """

    middle: tuple[Array, ...]
    pose: Pose
    end_pose: Pose
    impulses: Array
    x: Array
    x_first: Array
    pushes_first: Array


@numba.njit(cache=True)
def advance(problem, settings, begin, acceleration, tau, excluded, near, found, end):  # type: ignore[no-untyped-def]
    """Do a step without impact, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        problem: what is the same in all steps, a :class:`~constrained_sim.steppers.compiled.Problem`.
        settings: length h of the step [s]; whether the velocity at its end is corrected; passes, see
            ``TimeStepping.memory``; tolerance and steps of :func:`~constrained_sim.contact.usual.solve_usually`.
        begin: q, v, M, placements of the free-flyers, and gaps and row velocities of contacts and limits at the
            beginning.
        acceleration: (nv,) of the last step.
        tau: (nu,) efforts [N m, N].
        excluded: contacts and limits that carry no force, whatever becomes of their gaps.
        near: impulses near those of the rows that take part; of another length than these, and nothing is known.
        found: see :func:`predict`; corrected, where this comes so far.
        end: filled with configuration, velocity, M and placements of the free-flyers there, and of the contacts there
            axes, points, distances, gaps, rows and their velocities.

    Returns:
        How far this came, and what :func:`predict` returns. :data:`UNSOLVED`, and all else is of no use;
        :data:`PREDICTED`, the correction needs another way, or was not wanted; :data:`TURNED`, it does where friction
        was turned; or :data:`DONE`.
    """
    h, corrects, passes, tolerance, steps = settings
    share, _, slow, position_tolerance, _ = problem.scheme
    tree, support, _, _, rubbing, breakaway, free, free_rows, others = borrowed(problem.robot)
    cores, friction, normals, shares = borrowed(problem.contacts)
    middle, pose, end_pose, impulses, x, x_first, pushes_first = borrowed(problem.work)
    q, v, M, frames, gaps, s = begin
    q_middle, v_middle, M_middle, frames_middle, _, _, _, _, _, _ = middle
    q_end, v_end, M_end, frames_end, axes, points, _, end_gaps, J, s_end = end
    dry, opening = (rubbing, h * breakaway, *others), (gaps, normals, s)
    laws = friction, shares, dry, share, tolerance, steps

    centre = middle_centres((1.0 - share) * h, M, v, frames, free_rows)
    move(tree, q, (1.0 - share) * h, v, q_middle)
    place(tree, q_middle, pose)
    for i in range(free.shape[0]):
        carry(tree, q_middle, pose.placements, support, free[i], centre[i])
    observe_contacts(problem, pose, v, middle)
    observe_inertia(problem, pose, middle)
    start = near
    for done in range(passes + 1):
        if done:
            if done == passes and (exceeds(v, slow) or exceeds(x, slow) or not exceeds(v_middle, slow)):
                break  # else what stopped within the last step would have forces at a velocity that it does not have
            acceleration = (x - v) / h
        for i in range(v.shape[0]):
            v_middle[i] = v[i] + (1.0 - share) * h * acceleration[i]
        bias = bias_forces(tree, pose, v_middle)
        predicted = predict(h, problem, laws, opening, v, bias, tau, excluded, start, found)
        if not predicted[5]:
            return UNSOLVED, predicted
        start = predicted[0]

    flown = end_velocities(h, M, v, M_middle, impulses, tree.gravity, free_rows, frames, frames_middle)
    move(tree, q_middle, share * h, x, q_end)
    v_end[:] = x
    place(tree, q_end, end_pose)
    for i in range(free.shape[0]):
        carry(tree, q_end, end_pose.placements, support, free[i], centre[i] + share * h * flown[i])
    observe_contacts(problem, end_pose, x, end)
    pressed, held = pressing(found[2], gaps, end_gaps, excluded)
    if largest_drift(end_gaps[:0], end_gaps, held) > position_tolerance:
        observe_inertia(problem, end_pose, end)
        found[3][PROJECTION] += hold(problem, held, found[2], end_pose, end)
    observe_inertia(problem, end_pose, end)
    if not (exceeds(v, slow) or exceeds(v_middle, slow) or exceeds(x, slow)):
        return DONE, predicted
    if not corrects:
        return PREDICTED, predicted
    v_mean = v + (1.0 - share) * (x - v)
    inertial = bias - pose.weight + kinetic_gradient(tree, pose, v_mean)
    total = end_momentum(
        h, M, v, M_middle, inertial, impulses, tree.gravity, M_end, free_rows, frames, frames_middle, frames_end
    )
    touch, first = (cores[0], axes, points), (x_first, pushes_first)
    return correct(
        total, h, v, M_end, tree.rows, laws, pressed, opening, touch, J, impulses, v_end, found, s_end, first
    ), predicted


@numba.njit(cache=True)
def observe_contacts(problem, pose, v, state):  # type: ignore[no-untyped-def]
    """Fill in what a `state` has of contacts and limits, at its configuration, the joints of which are placed.

    Args:
        problem: see :func:`advance`.
        pose: of the tree; the axes are found too.
        v: (nv,) velocity at which the rows move.
        state: see :func:`~constrained_sim.steppers.record.cut_state`.
    """
    tree, support, _, _, _, _, _, _, _ = borrowed(problem.robot)
    cores, _, _, _ = borrowed(problem.contacts)
    at_q, signs, values, limit_rows = borrowed(problem.limits)
    q, _, _, _, axes, points, distances, gaps, J, s = state
    k = distances.shape[0]
    find_axes(tree, pose)
    contact_rows(  # type: ignore[call-arg]
        *cores, pose.placements, pose.axes, support, v, axes, points, distances, J[: 3 * k], s[: 3 * k]
    )
    for c in range(k):
        gaps[c] = distances[c]
    for i in range(at_q.shape[0]):
        J[3 * k + i] = limit_rows[i]
        s[3 * k + i] = vecdot(limit_rows[i], v)
        gaps[k + i] = signs[i] * q[at_q[i]] - values[i]


@numba.njit(cache=True)
def observe_inertia(problem, pose, state):  # type: ignore[no-untyped-def]
    """Fill in the rest of a `state`, likewise, and of the `pose`."""
    tree, _, _, _, _, _, free, _, _ = borrowed(problem.robot)
    _, _, M, frames, _, _, _, _, _, _ = state
    for i in range(free.shape[0]):
        frames[i] = pose.placements[free[i]]
    find_bodies(tree, pose)
    inertia(tree, pose, M)


@numba.njit(cache=True)
def hold(problem, held, status, pose, end):  # type: ignore[no-untyped-def]
    """Move the configuration at the `end` of a step back onto the contacts and limits that are `held`, and drifted.

    As :meth:`~constrained_sim.steppers.stepper.Stepper.hold_positions` does in the metric of the kinetic energy.

    Args:
        problem: see :func:`advance`.
        held: what presses or has sunk, ascending.
        status: of all contacts and limits.
        pose: at the end; changes, as far as :func:`observe_contacts` knows it.
        end: see :func:`advance`; the configuration changes, and what :func:`observe_contacts` fills in.

    Returns:
        The potential energy [J] that this brings in.
    """
    tree, _, _, _, _, _, _, _, _ = borrowed(problem.robot)
    cores, _, normals, shares = borrowed(problem.contacts)
    _, _, _, tolerance, _ = problem.scheme
    none, energy = np.empty(0), potential_energy(tree, pose.placements)
    q, v, M, _, axes, points, _, gaps, J, _ = end
    drift = largest_drift(none, gaps, held)
    rows, target = held_rows(held, normals, status), np.zeros(J.shape[0])
    for _ in range(MOST_PROJECTIONS):
        target[normals] = gaps
        if shares:
            shared = share_rows(rows, cores[0], axes, points)
            step_back = smallest_shared_motion(M, tree.rows, J[rows], shared, target[rows])
        else:
            step_back = smallest_motion(M, tree.rows, J[rows], target[rows])
        if np.abs(step_back).max() > LEVER * drift:
            break
        before = q.copy()
        move(tree, before, 1.0, step_back, q)
        place(tree, q, pose)
        observe_contacts(problem, pose, v, end)
        left = largest_drift(none, gaps, held)
        if not left < 0.5 * drift:
            q[:] = before
            place(tree, q, pose)
            observe_contacts(problem, pose, v, end)
            break
        drift = left
        if drift <= tolerance:
            break
    return potential_energy(tree, pose.placements) - energy


@numba.njit(cache=True)
def predict(h, problem, laws, begin, v, bias, tau, excluded, start, found):  # type: ignore[no-untyped-def]
    """Solve the smooth problem of a step, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        h: length of the step [s].
        problem: see :func:`advance`; the robot's damping acts at the velocity at the end.
        laws: (k,) coefficients of friction; whether any two neighbours are of the same bodies; of dry friction the (d,)
            degrees of freedom, their largest impulses (d,) [N m s, N s], and the others with their parents; share of
            :func:`~constrained_sim.steppers.kernels.allow_approach`; tolerance and steps of
            :func:`~constrained_sim.contact.usual.solve_usually`.
        begin: gaps (k + l,) at the beginning [m, rad]; which rows open and close (k + l,); row velocities (3 k + l,)
            there [m/s, rad/s].
        v: (nv,) velocity there.
        bias: (nv,) Coriolis, centrifugal and gravity forces in the middle state of the work space.
        tau: (nu,) efforts [N m, N].
        excluded: contacts and limits that take no part.
        start: impulses near those of the rows that take part, see ``advance``.
        found: filled with the impulses of contacts and one-sided rows (3 k + l,) [N s, N m s], those of dry friction
            (d,) [N m s, N s], the status (k + l,), and the terms of the audit (9,).

    Returns:
        (impulses of the rows that take part, their status, Newton's steps, residual of the contact law, magnitude of
        the impulses in play, whether the contact problem is solved, residual of the equation of motion); if it is not
        solved, nothing else counts.
    """
    friction, shares, dry_laws, share, tolerance, steps = laws
    tree, _, damping, actuation, rubbing, _, _, _, _ = borrowed(problem.robot)
    cores, _, _, _ = borrowed(problem.contacts)
    middle, _, _, impulses, x, _, _ = borrowed(problem.work)
    _, _, M, _, axes, points, _, _, J_middle, _ = middle
    _, reach, _, _, _ = problem.scheme
    gaps, normals, s = begin
    impulse, dry, status, energy = found
    impulses[:] = 0.0
    inertia = M.copy()
    for i in range(v.shape[0]):
        impulses[0, i] = -h * bias[i]
        inertia[i, i] += h * damping[i]
    for i in range(actuation.shape[0]):
        impulses[1, actuation[i]] = h * tau[i]
    candidates, rows, J, offset = candidate_rows(
        gaps, normals, s, v, J_middle, excluded, h, share, reach, rubbing.shape[0]
    )
    f = momentum(M, v, impulses)
    if start.shape[0] != offset.shape[0]:
        start = np.empty(0)
    v_plus, pushes, pushed, done, residual, magnitude, solved, dynamics = _solve(
        inertia, tree.rows, f, J, offset, friction, shares, candidates, rows, (cores[0], axes, points), dry_laws, start,
        tolerance, steps,
    )  # fmt: skip
    if not solved:
        return pushes, pushed, done, residual, magnitude, False, dynamics
    x[:] = v_plus
    end = rows.shape[0]
    for i in range(v.shape[0]):
        impulses[3, i] = -h * damping[i] * x[i]
    for i in range(rubbing.shape[0]):
        dry[i] = pushes[end + i]
        impulses[3, rubbing[i]] += dry[i]
    impulses[4] = vecmat(pushes[:end], J)
    spread(candidates, normals, pushes, pushed, impulse, status)
    energy[:] = energy_of(v, x, M, impulses)
    return pushes, pushed, done, residual, magnitude, True, dynamics


@numba.njit(cache=True)
def correct(  # type: ignore[no-untyped-def]
    total, h, v, M, parents, laws, pressed, begin, touch, J, impulses, x, found, s_plus, first
):
    """Correct what was predicted, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        total: (nv,) generalised momentum at the end, with all impulses of the prediction.
        h: length of the step [s].
        v: (nv,) velocity at the beginning.
        M: (nv, nv) inertia at the end.
        parents: see :func:`predict`.
        laws: see :func:`predict`.
        pressed: contacts and one-sided rows that carry force in the prediction, ascending.
        begin: see :func:`predict`.
        touch: (k, 2) bodies of the contacts, and at the end their axes (k, 3, 3) and points (k, 3).
        J: (3 k + l, nv) rows at the end.
        impulses: (6, nv) of the prediction.
        x: (nv,) velocity at the end: predicted, is corrected.
        found: what :func:`predict` found, is corrected.
        s_plus: (3 k + l,) is filled with the row velocities at the end [m/s, rad/s].
        first: filled with the velocity and the impulses before friction is turned.

    Returns:
        :data:`DONE`; else nothing but `first` has changed: :data:`PREDICTED` where the contact problem was not solved,
        :data:`TURNED` where that with friction turned was not.
    """
    friction, shares, dry_laws, share, tolerance, steps = laws
    gaps, normals, s = begin
    impulse, dry, status, energy = found
    rubbing = dry_laws[0]
    contacts, places = np.searchsorted(pressed, friction.shape[0]), rows_of(pressed, normals, friction.shape[0])
    end, count = places.shape[0], places.shape[0] + rubbing.shape[0]
    rows, predicted, s_begin, offset = J[places], np.empty(count), np.empty(count), np.zeros(count)
    allow_approach(pressed, friction.shape[0], gaps, normals, s, h, share, offset)
    for i in range(end):
        predicted[i], s_begin[i] = impulse[places[i]], s[places[i]]
    for i in range(rubbing.shape[0]):
        predicted[end + i], s_begin[end + i] = dry[i], v[rubbing[i]]
    free = total - _push(rows, rubbing, predicted)
    follow_mean_slip(s_begin, _velocities(rows, rubbing, x), contacts, NO_DISCS, offset)
    pushes = predicted
    for turns, limit in enumerate((steps, min(steps, STEPS_AGAIN))):
        v_plus, pushes, pushed, _, _, _, solved, _ = _solve(
            M, parents, free, rows, offset, friction, shares, pressed, places, touch, dry_laws, pushes, tolerance, limit
        )
        if not solved:
            return TURNED if turns else PREDICTED
        first[0][:], first[1][: pushes.shape[0]] = v_plus, pushes
        s_end = _velocities(rows, rubbing, v_plus)
        if not oppose_mean_slip(s_begin, s_end, contacts, rubbing.shape[0], NO_DISCS, offset, pushes, tolerance):
            break
    change = np.zeros_like(impulses)
    for i in range(v.shape[0]):
        change[0, i] = total[i] - vecdot(M[i], x)
    for i in range(rubbing.shape[0]):
        change[3, rubbing[i]] = pushes[end + i] - dry[i]
    change[4] = vecmat(pushes[:end] - predicted[:end], rows)
    energy += energy_of(x, v_plus, M, change)
    impulse[places], status[pressed] = pushes[:end], pushed[: pressed.shape[0]]
    s_plus[:] = matvec(J, v_plus)
    attribute_work(energy, 0.5 * (vecdot(impulse, s) + vecdot(impulse, s_plus)), 0.0)
    if rubbing.shape[0]:
        attribute_dry_work(energy, v[rubbing], x[rubbing], v_plus[rubbing], dry, pushes[end:])
    dry[:], x[:] = pushes[end:], v_plus
    return DONE


@numba.njit(cache=True)
def _push(J, rubbing, impulse):  # type: ignore[no-untyped-def]
    """Return (nv,) the generalised impulse of rows J (n, nv), then of dry friction in `rubbing` (d,)."""
    n = J.shape[0]
    push = vecmat(impulse[:n], J)
    for i in range(rubbing.shape[0]):
        push[rubbing[i]] += impulse[n + i]
    return push


@numba.njit(cache=True)
def _velocities(J, rubbing, v):  # type: ignore[no-untyped-def]
    """Return (n + d,) the velocities of rows J (n, nv), and of the degrees of freedom `rubbing` (d,)."""
    n = J.shape[0]
    velocities = np.empty(n + rubbing.shape[0])
    for i in range(n):
        velocities[i] = vecdot(J[i], v)
    for i in range(rubbing.shape[0]):
        velocities[n + i] = v[rubbing[i]]
    return velocities


@numba.njit(cache=True)
def _solve(  # type: ignore[no-untyped-def]
    M, parents, f, J, offset, friction, shares, chosen, rows, touch, dry, start, tolerance, steps
):
    """Return velocity, impulses, status, and the rest of what :func:`~constrained_sim.motion.usual_motion` returns.

    Args:
        M: this and the following four, see ``usual_motion``.
        parents: likewise.
        f: likewise.
        J: likewise, but without those of dry friction: rows of what is `chosen`.
        offset: likewise, and of dry friction.
        friction: (k,) coefficients of all contacts.
        shares: whether any two neighbours are of the same bodies.
        chosen: contacts and one-sided rows, ascending.
        rows: of what is `chosen`, among those of all contacts.
        touch: see :func:`correct`.
        dry: as in the laws of :func:`predict`.
        start: this and the following two, see there.
        tolerance: likewise.
        steps: likewise.
    """
    if not offset.shape[0]:
        x, dynamics = free_motion(M, parents, f)
        return x, np.empty(0), np.empty(0, dtype=np.int64), 0, 0.0, 1.0, True, dynamics
    held, most, others, parents_of_others = dry
    contacts = np.searchsorted(chosen, friction.shape[0])
    one_sided = chosen.shape[0] - contacts
    lower, upper = np.zeros(one_sided + most.shape[0]), np.full(one_sided + most.shape[0], np.inf)
    lower[one_sided:], upper[one_sided:] = -most, most
    slip, coefficients, may_stick = np.zeros((contacts, 2)), friction[chosen[:contacts]], True
    if shares or held.shape[0]:
        x, impulse, status, residual, magnitude, solved, dynamics, is_unique = sticking_motion(
            M, f, J, share_rows(rows, *touch), offset, (held, others, parents_of_others), coefficients, slip, lower,
            upper, NO_DISCS, tolerance,
        )  # fmt: skip
        if solved:
            return x, impulse, status, 0, residual, magnitude, True, dynamics
        may_stick = not is_unique or steps == 0
    every = J
    if held.shape[0]:
        every = np.zeros((offset.shape[0], J.shape[1]))
        every[: J.shape[0]] = J
        for i in range(held.shape[0]):
            every[J.shape[0] + i, held[i]] = 1.0
    x, _, _, impulse, status, done, residual, magnitude, solved, dynamics = usual_motion(
        M, parents, f, every, offset, offset[:0], coefficients, slip, lower, upper, NO_DISCS, start, tolerance, steps,
        may_stick,
    )  # fmt: skip
    return x, impulse, status, done, residual, magnitude, solved, dynamics

"""A step with rigid contacts, joint limits and dry joint friction, compiled whole: what the time stepper tries first.

It is no method of its own: the kernels of the general way, one after the other, without the interpreter between them.
It leaves off where something unusual is to be done, and the general way goes on from there.
"""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.discs import no_discs
from constrained_sim.contact.geometry import contact_rows
from constrained_sim.contact.shared_rows import share_rows
from constrained_sim.energy import EnergyTerms
from constrained_sim.motion import free_motion, smallest_motion, smallest_shared_motion, sticking_motion, usual_motion
from constrained_sim.products import matvec, vecdot, vecmat
from constrained_sim.steppers.flight import end_momentum, end_velocities, middle_centres
from constrained_sim.steppers.kernels import (
    LEVER,
    MOST_PROJECTIONS,
    allowed_approach,
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
    about_base,
    axes_of,
    bias_forces,
    bodies_in_world,
    carry,
    inertia,
    kinetic_gradient,
    moved,
    place,
    potential_energy,
)

NO_DISCS = no_discs()

UNSOLVED, PREDICTED, TURNED, DONE = range(4)
"""How far a step came, see :func:`advance`."""

STEPS_AGAIN = 8
"""Steps of Newton's method after friction was turned against the mean slip: it gets there soon, or not at all."""

PROJECTION = list(vars(EnergyTerms())).index("projection")


@numba.njit(cache=True)
def advance(  # type: ignore[no-untyped-def]
    robot, contacts, limits, scheme, begin, acceleration, tau, excluded, near, middle, impulses, found, end
):
    """Do a step without impact, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        robot: tree; support, see :func:`~constrained_sim.kinematics.row_jacobian`; (nv,) damping of the joints; (nu,)
            velocity index of every effort; (d,) degrees of freedom with dry friction and (d,) their breakaway efforts
            [N m, N]; the free-flyers and their rows, see ``Robot.free_joints``; the other degrees of freedom and their
            parents, see :func:`~constrained_sim.tree.contract`.
        contacts: cores, see :class:`~constrained_sim.contact.geometry.Cores`; (k,) coefficients of friction; (k + l,)
            which rows open and close; whether any two contacts are of the same bodies.
        limits: the bounds of joints, see :class:`~constrained_sim.constraints.joint_limit.Bounds`.
        scheme: length h of the step [s]; whether the velocity at its end is corrected; share of the new velocity in the
            mean velocity; passes, see ``TimeStepping.memory``; predicted gap [m] up to which a contact takes part;
            velocity up to which a state is at rest [m/s, rad/s]; drift up to which positions stay as they are [m, rad];
            tolerance and steps of :func:`~constrained_sim.contact.usual.solve_usually`.
        begin: q, v, M, placements of the free-flyers, and gaps and row velocities of contacts and limits at the
            beginning.
        acceleration: (nv,) of the last step.
        tau: (nu,) efforts [N m, N].
        excluded: contacts and limits that carry no force, whatever becomes of their gaps.
        near: impulses near those of the rows that take part; of another length than these, and nothing is known.
        middle: filled with the configuration (nq,) and the velocity (nv,) where forces were evaluated; the velocity x
            (nv,) predicted for the end; and the velocity (nv,) and the impulses (3 k + l + d,), or fewer, of the
            correction before friction is turned against the mean slip.
        impulses: this and the following, see :func:`predict`.
        found: corrected, where this comes so far.
        end: filled with configuration, velocity, M and placements of the free-flyers there, and of the contacts there
            axes, points, distances, gaps, rows and their velocities.

    Returns:
        How far this came, and what :func:`predict` returns. :data:`UNSOLVED`, and all else is of no use;
        :data:`PREDICTED`, the correction needs another way, or was not wanted; :data:`TURNED`, it does where friction
        was turned; or :data:`DONE`.
    """
    tree, support, damping, actuation, rubbing, breakaway, free, free_rows, others = robot
    cores, friction, normals, shares = contacts
    limit_rows = limits[3]
    h, corrects, share, passes, reach, slow, position_tolerance, tolerance, steps = scheme
    q, v, M, frames, gaps, s = begin
    dry, opening = (rubbing, h * breakaway, *others), (gaps, normals, s)
    laws = friction, shares, dry, share, tolerance, steps
    q_middle, v_middle, x, x_first, pushes_first = middle

    centre = middle_centres((1.0 - share) * h, M, v, frames, free_rows)
    q_middle[:] = moved(tree, q, (1.0 - share) * h * v)
    placements, M_middle = place(tree, q_middle), np.empty_like(M)
    for i in range(free.shape[0]):
        carry(tree, q_middle, placements, support, free[i], centre[i])
    joint_axes, bodies = axes_of(tree, placements), bodies_in_world(tree, placements)
    base_axes = about_base(placements, joint_axes)
    weight = inertia(tree, bodies, base_axes, M_middle)
    where = placements, joint_axes, support
    start = near
    for done in range(passes + 1):
        if done == passes and (exceeds(v, slow) or exceeds(x, slow) or not exceeds(v_middle, slow)):
            break  # else what stopped within the last step would have forces at a velocity that it does not have
        v_middle[:] = v + (1.0 - share) * h * acceleration
        bias = bias_forces(tree, bodies, base_axes, v_middle)
        predicted = predict(
            h, reach, M_middle, bias, v, damping, tree.rows, actuation, tau, cores, where, limit_rows, laws, opening,
            excluded, start, impulses, x, found,
        )  # fmt: skip
        if not predicted[5]:
            return UNSOLVED, predicted
        acceleration, start = (x - v) / h, predicted[0]

    frames_middle = placements[free]
    centre += share * h * end_velocities(h, M, v, M_middle, impulses, tree.gravity, free_rows, frames, frames_middle)
    end[0][:], end[1][:] = moved(tree, q_middle, share * h * x), x
    placements = place(tree, end[0])
    for i in range(free.shape[0]):
        carry(tree, end[0], placements, support, free[i], centre[i])
    observe_contacts(robot, contacts, limits, placements, end)
    pressed, held = pressing(found[2], gaps, end[7], excluded)
    if largest_drift(end[7][:0], end[7], held) > position_tolerance:
        observe_inertia(robot, placements, end)
        placements, brought = hold(robot, contacts, limits, held, found[2], position_tolerance, placements, end)
        found[3][PROJECTION] += brought
    observe_inertia(robot, placements, end)
    if not (exceeds(v, slow) or exceeds(v_middle, slow) or exceeds(x, slow)):
        return DONE, predicted
    if not corrects:
        return PREDICTED, predicted
    _, v_end, M_end, frames_end, _, _, _, _, J, s_end = end
    v_mean = v + (1.0 - share) * (x - v)
    inertial = bias - weight + kinetic_gradient(tree, bodies, base_axes, v_mean)
    total = end_momentum(
        h, M, v, M_middle, inertial, impulses, tree.gravity, M_end, free_rows, frames, frames_middle, frames_end
    )
    first = x_first, pushes_first
    touch = cores[0], end[4], end[5]
    return correct(
        total, h, v, M_end, tree.rows, laws, pressed, opening, touch, J, impulses, v_end, found, s_end, first
    ), predicted


@numba.njit(cache=True)
def observe_contacts(robot, contacts, limits, placements, end):  # type: ignore[no-untyped-def]
    """Fill in what `end` has of contacts and limits at its configuration and velocity, see :func:`advance`.

    The other arguments are those of :func:`advance`, and the placements (n, 4, 3) of the joints there.
    """
    tree, support, cores, k = robot[0], robot[1], contacts[0], contacts[1].shape[0]
    at_q, signs, values, limit_rows = limits
    q, v, _, _, axes, points, distances, gaps, J, s = end
    contact_rows(  # type: ignore[call-arg]
        *cores, placements, axes_of(tree, placements), support, v, axes, points, distances, J[: 3 * k], s[: 3 * k]
    )
    J[3 * k :], s[3 * k :] = limit_rows, matvec(limit_rows, v)
    gaps[:k], gaps[k:] = distances, signs * q[at_q] - values


@numba.njit(cache=True)
def observe_inertia(robot, placements, end):  # type: ignore[no-untyped-def]
    """Fill in the rest of `end`, likewise."""
    tree, free, M, frames = robot[0], robot[6], end[2], end[3]
    for i in range(free.shape[0]):
        frames[i] = placements[free[i]]
    base_axes = about_base(placements, axes_of(tree, placements))
    inertia(tree, bodies_in_world(tree, placements), base_axes, M)


@numba.njit(cache=True)
def hold(robot, contacts, limits, held, status, tolerance, placements, end):  # type: ignore[no-untyped-def]
    """Move the configuration at the `end` of a step back onto the contacts and limits that are `held`, and drifted.

    As :meth:`~constrained_sim.steppers.stepper.Stepper.hold_positions` does in the metric of the kinetic energy.

    Args:
        robot: this and the following two, see :func:`advance`.
        contacts: likewise.
        limits: likewise.
        held: what presses or has sunk, ascending.
        status: of all contacts and limits.
        tolerance: drift up to which positions stay as they are [m, rad].
        placements: (n, 4, 3) of the joints at the end.
        end: see :func:`advance`; the configuration changes, and what :func:`observe_contacts` fills in.

    Returns:
        The placements there, and the potential energy [J] that this brings in.
    """
    tree, normals, none, begin = robot[0], contacts[2], np.empty(0), placements
    q, _, M, _, axes, points, _, gaps, J, _ = end
    drift = largest_drift(none, gaps, held)
    rows, target = held_rows(held, normals, status), np.zeros(J.shape[0])
    for _ in range(MOST_PROJECTIONS):
        target[normals] = gaps
        if contacts[3]:
            shared = share_rows(rows, contacts[0][0], axes, points)
            step_back = smallest_shared_motion(M, tree.rows, J[rows], shared, target[rows])
        else:
            step_back = smallest_motion(M, tree.rows, J[rows], target[rows])
        if np.abs(step_back).max() > LEVER * drift:
            break
        before, placed_before = q.copy(), placements
        q[:] = moved(tree, q, step_back)
        placements = place(tree, q)
        observe_contacts(robot, contacts, limits, placements, end)
        left = largest_drift(none, gaps, held)
        if not left < 0.5 * drift:
            q[:], placements = before, placed_before
            observe_contacts(robot, contacts, limits, placements, end)
            break
        drift = left
        if drift <= tolerance:
            break
    return placements, potential_energy(tree, placements) - potential_energy(tree, begin)


@numba.njit(cache=True)
def predict(  # type: ignore[no-untyped-def]
    h, reach, M, bias, v, damping, parents, actuation, tau, cores, where, limits, laws, begin, excluded, start,
    impulses, x, found,
):  # fmt: skip
    """Solve the smooth problem of a step, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        h: length of the step [s].
        reach: predicted gap [m] up to which a contact takes part.
        M: (nv, nv) inertia at the evaluation point.
        bias: (nv,) Coriolis, centrifugal and gravity forces there.
        v: (nv,) velocity at the beginning.
        damping: (nv,) of the joints, at the velocity at the end.
        parents: see :func:`~constrained_sim.solvers.kernels.factor_inertia`.
        actuation: (nu,) velocity index of every effort.
        tau: (nu,) efforts [N m, N].
        cores: of the contacts, see :class:`~constrained_sim.contact.geometry.Cores`.
        where: placements, joint axes and support there, see :func:`~constrained_sim.contact.geometry.contact_rows`.
        limits: (l, nv) one-sided rows there.
        laws: (k,) coefficients of friction; whether any two contacts are of the same bodies; of dry friction the (d,)
            degrees of freedom, their largest impulses (d,) [N m s, N s], and the others with their parents; share of
            :func:`~constrained_sim.steppers.kernels.allowed_approach`; tolerance and steps of
            :func:`~constrained_sim.contact.usual.solve_usually`.
        begin: gaps (k + l,) at the beginning [m, rad]; which rows open and close (k + l,); row velocities (3 k + l,)
            there [m/s, rad/s].
        excluded: contacts and limits that take no part.
        start: impulses near those of the rows that take part, see ``advance``.
        impulses: (6, nv) is filled with generalised impulses of the causes in the order of ``FORCES``.
        x: (nv,) is filled with the velocity at the end.
        found: filled with the impulses of contacts and one-sided rows (3 k + l,) [N s, N m s], those of dry friction
            (d,) [N m s, N s], the status (k + l,), and the terms of the audit (9,).

    Returns:
        (impulses of the rows that take part, their status, Newton's steps, residual of the contact law, magnitude of
        the impulses in play, whether the contact problem is solved, residual of the equation of motion); if it is not
        solved, nothing else counts.
    """
    friction, shares, dry_laws, share, tolerance, steps = laws
    gaps, normals, s = begin
    impulse, dry, status, energy = found
    rubbing = dry_laws[0]
    impulses[:] = 0.0
    impulses[0] -= h * bias
    for i in range(actuation.shape[0]):
        impulses[1, actuation[i]] = h * tau[i]
    k = friction.shape[0]
    axes, points, distances = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty(k)
    J_middle, s_middle = np.empty((s.shape[0], v.shape[0])), np.empty(s.shape[0])
    J_middle[3 * k :], s_middle[3 * k :] = limits, matvec(limits, v)
    contact_rows(*cores, *where, v, axes, points, distances, J_middle[: 3 * k], s_middle[: 3 * k])  # type: ignore[call-arg]
    candidates, rows, J, offset = candidate_rows(gaps, normals, s, s_middle, J_middle, excluded, h, share, reach)
    inertia = M.copy()
    for i in range(v.shape[0]):
        inertia[i, i] += h * damping[i]
    f = momentum(M, v, impulses)
    offset = np.append(offset, np.zeros(rubbing.shape[0]))
    if start.shape[0] != offset.shape[0]:
        start = np.empty(0)
    v_plus, pushes, pushed, done, residual, magnitude, solved, dynamics = _solve(
        inertia, parents, f, J, offset, friction, shares, candidates, rows, (cores[0], axes, points), dry_laws, start,
        tolerance, steps,
    )  # fmt: skip
    if not solved:
        return pushes, pushed, done, residual, magnitude, False, dynamics
    x[:] = v_plus
    end = pushes.shape[0] - rubbing.shape[0]
    dry[:] = pushes[end:]
    impulses[3] -= h * damping * x
    for i in range(rubbing.shape[0]):
        impulses[3, rubbing[i]] += dry[i]
    impulses[4] += vecmat(pushes[:end], J)
    impulse[:], status[:] = spread(candidates, normals, pushes, pushed, s.shape[0])
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
    end, row = places.shape[0], -1
    offset = np.zeros(end)
    for c in pressed:
        row += 3 if c < friction.shape[0] else 1
        offset[row] = allowed_approach(gaps[c], s[normals[c]], h, share)
    predicted, s_begin = np.empty(end + rubbing.shape[0]), np.empty(end + rubbing.shape[0])
    predicted[:end], s_begin[:end] = impulse[places], s[places]
    predicted[end:], s_begin[end:] = dry, v[rubbing]
    rows, offset = J[places], np.append(offset, np.zeros(rubbing.shape[0]))
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
    change[0] = total - matvec(M, x)
    for i in range(rubbing.shape[0]):
        change[3, rubbing[i]] = pushes[end + i] - dry[i]
    change[4] = vecmat(pushes[:end] - predicted[:end], rows)
    energy += energy_of(x, v_plus, M, change)
    impulse[places], status[pressed] = pushes[:end], pushed[: pressed.shape[0]]
    s_plus[:] = matvec(J, v_plus)
    attribute_work(energy, 0.5 * vecdot(impulse, s + s_plus), 0.0)
    attribute_dry_work(energy, v[rubbing], x[rubbing], v_plus[rubbing], dry, pushes[end:])
    dry[:], x[:] = pushes[end:], v_plus
    return DONE


@numba.njit(cache=True)
def _push(J, rubbing, impulse):  # type: ignore[no-untyped-def]
    """Return (nv,) the generalised impulse of rows J (n, nv), then of dry friction in `rubbing` (d,)."""
    n = J.shape[0]
    push = vecmat(impulse[:n], J)
    push[rubbing] += impulse[n:]
    return push


@numba.njit(cache=True)
def _velocities(J, rubbing, v):  # type: ignore[no-untyped-def]
    """Return (n + d,) the velocities of rows J (n, nv), and of the degrees of freedom `rubbing` (d,)."""
    return np.append(matvec(J, v), v[rubbing])


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
        shares: whether any two contacts are of the same bodies.
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
    every = np.zeros((offset.shape[0], J.shape[1]))
    every[: J.shape[0]] = J
    for i in range(held.shape[0]):
        every[J.shape[0] + i, held[i]] = 1.0
    x, _, _, impulse, status, done, residual, magnitude, solved, dynamics = usual_motion(
        M, parents, f, every, offset, np.zeros(offset.shape[0]), coefficients, slip, lower, upper, NO_DISCS, start,
        tolerance, steps, may_stick,
    )  # fmt: skip
    return x, impulse, status, done, residual, magnitude, solved, dynamics

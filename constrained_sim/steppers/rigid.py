"""A step of rigid contacts, limits and dry joint friction in two compiled calls: what the time stepper tries first.

Neither is a method of its own: both are the kernels of the general way one after the other, without the interpreter
between them, and give up where the contact problem is not solved in the usual way.
"""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.discs import no_discs
from constrained_sim.contact.geometry import contact_rows
from constrained_sim.motion import free_motion, usual_motion
from constrained_sim.steppers.kernels import (
    allowed_approach,
    attribute_dry_work,
    attribute_work,
    candidate_rows,
    end_momentum,
    energy_of,
    momentum,
    oppose_mean_slip,
    spread,
)

NO_DISCS = no_discs()


@numba.njit(cache=True)
def predict(  # type: ignore[no-untyped-def]
    h, reach, M, bias, v, damping, parents, actuation, tau, where, limits, laws, begin, start, impulses, x, found
):
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
        where: the first ten arguments of :func:`~constrained_sim.contact.geometry.contact_rows`, at the evaluation
            point.
        limits: (l, nv) one-sided rows there.
        laws: (k,) coefficients of friction; (d,) degrees of freedom with dry friction; (d,) their largest impulses
            [N m s, N s]; share of :func:`~constrained_sim.steppers.kernels.allowed_approach`; tolerance and steps of
            :func:`~constrained_sim.contact.usual.solve_usually`.
        begin: gaps (k + l,) at the beginning [m, rad]; which rows open and close (k + l,); row velocities (3 k + l,)
            there [m/s, rad/s].
        start: impulses near those of the rows that take part, see ``usual_motion``.
        impulses: (6, nv) is filled with generalised impulses of the causes in the order of ``FORCES``.
        x: (nv,) is filled with the velocity at the end.
        found: filled with the impulses of contacts and one-sided rows (3 k + l,) [N s, N m s], those of dry friction
            (d,) [N m s, N s], the status (k + l,), and the terms of the audit (9,).

    Returns:
        (impulses of the rows that take part, their status, Newton's steps, residual of the contact law, magnitude of
        the impulses in play, whether the contact problem is solved, residual of the equation of motion); if it is not
        solved, nothing else counts.
    """
    friction, rubbing, most, share, tolerance, steps = laws
    gaps, normals, s = begin
    impulse, dry, status, energy = found
    impulses[:] = 0.0
    impulses[0] -= h * bias
    for i in range(actuation.shape[0]):
        impulses[1, actuation[i]] = h * tau[i]
    k = friction.shape[0]
    axes, points, distances = np.empty((k, 3, 3)), np.empty((k, 3)), np.empty(k)
    J_middle, s_middle = np.empty((s.shape[0], v.shape[0])), np.empty(s.shape[0])
    J_middle[3 * k :], s_middle[3 * k :] = limits, limits @ v
    contact_rows(*where, v, axes, points, distances, J_middle[: 3 * k], s_middle[: 3 * k])  # type: ignore[call-arg]
    excluded = np.empty(0, dtype=np.int64)
    candidates, J, offset = candidate_rows(gaps, normals, s, s_middle, J_middle, excluded, h, share, reach)
    inertia = M.copy()
    for i in range(v.shape[0]):
        inertia[i, i] += h * damping[i]
    f = momentum(M, v, impulses)
    J, offset = with_dry_rows(J, offset, rubbing)
    v_plus, pushes, pushed, done, residual, magnitude, solved, dynamics = _solve(
        inertia, parents, f, J, offset, friction, candidates, most, start, tolerance, steps
    )
    if not solved:
        return pushes, pushed, done, residual, magnitude, False, dynamics
    x[:] = v_plus
    end = pushes.shape[0] - rubbing.shape[0]
    dry[:] = pushes[end:]
    impulses[3] -= h * damping * x
    for i in range(rubbing.shape[0]):
        impulses[3, rubbing[i]] += dry[i]
    impulses[4] += pushes[:end] @ J[:end]
    impulse[:], status[:] = spread(candidates, normals, pushes, pushed, s.shape[0])
    energy[:] = energy_of(v, x, M, impulses)
    return pushes, pushed, done, residual, magnitude, True, dynamics


@numba.njit(cache=True)
def correct(middle, frames, M, parents, laws, pressed, begin, J, impulses, x, found, s_plus):  # type: ignore[no-untyped-def]
    """Correct what was predicted, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        middle: the arguments of :func:`~constrained_sim.steppers.kernels.end_momentum` before the impulses.
        frames: those after them.
        M: (nv, nv) inertia at the end.
        parents: see :func:`predict`.
        laws: see :func:`predict`.
        pressed: contacts and one-sided rows that carry force in the prediction, ascending.
        begin: see :func:`predict`.
        J: (3 k + l, nv) rows at the end.
        impulses: (6, nv) of the prediction.
        x: (nv,) velocity at the end: predicted, is corrected.
        found: what :func:`predict` found, is corrected.
        s_plus: (3 k + l,) is filled with the row velocities at the end [m/s, rad/s].

    Returns:
        Whether the contact problem was solved; else nothing has changed.
    """
    friction, rubbing, most, share, tolerance, steps = laws
    gaps, normals, s = begin
    impulse, dry, status, energy = found
    h, v = middle[0], middle[2]
    total = end_momentum(*middle, impulses, *frames)  # type: ignore[call-arg]
    contacts = np.searchsorted(pressed, friction.shape[0])
    end = 2 * contacts + pressed.shape[0]
    places, offset = np.empty(end, dtype=np.int64), np.zeros(end)
    row = 0
    for c in pressed:
        n = normals[c]
        for place in range(n - 2 if c < friction.shape[0] else n, n + 1):
            places[row] = place
            row += 1
        offset[row - 1] = allowed_approach(gaps[c], s[n], h, share)
    predicted, s_begin = np.empty(end + rubbing.shape[0]), np.empty(end + rubbing.shape[0])
    predicted[:end], s_begin[:end] = impulse[places], s[places]
    predicted[end:], s_begin[end:] = dry, v[rubbing]
    rows, offset = with_dry_rows(J[places], offset, rubbing)
    free = total - predicted @ rows
    pushes = predicted
    for _ in range(2):
        v_plus, pushes, pushed, _, _, _, solved, _ = _solve(
            M, parents, free, rows, offset, friction, pressed, most, pushes, tolerance, steps
        )
        if not solved:
            return False
        if not oppose_mean_slip(s_begin, contacts, rubbing.shape[0], NO_DISCS, rows, offset, v_plus, pushes, tolerance):
            break
    change = np.zeros_like(impulses)
    change[0] = total - M @ x
    for i in range(rubbing.shape[0]):
        change[3, rubbing[i]] = pushes[end + i] - dry[i]
    change[4] = (pushes[:end] - predicted[:end]) @ rows[:end]
    energy += energy_of(x, v_plus, M, change)
    impulse[places], status[pressed] = pushes[:end], pushed[: pressed.shape[0]]
    s_plus[:] = J @ v_plus
    attribute_work(energy, 0.5 * np.dot(impulse, s + s_plus), 0.0)
    attribute_dry_work(energy, v[rubbing], x[rubbing], v_plus[rubbing], dry, pushes[end:])
    dry[:], x[:] = pushes[end:], v_plus
    return True


@numba.njit(cache=True)
def with_dry_rows(J, offset, rubbing):  # type: ignore[no-untyped-def]
    """Return rows and offsets with a row for each degree of freedom in `rubbing` (d,) after them."""
    n = offset.shape[0]
    rows, offsets = np.zeros((n + rubbing.shape[0], J.shape[1])), np.zeros(n + rubbing.shape[0])
    rows[:n], offsets[:n] = J, offset
    for i in range(rubbing.shape[0]):
        rows[n + i, rubbing[i]] = 1.0
    return rows, offsets


@numba.njit(cache=True)
def _solve(M, parents, f, J, offset, friction, chosen, most, start, tolerance, steps):  # type: ignore[no-untyped-def]
    """Return velocity, impulses, status, and the rest of what :func:`~constrained_sim.motion.usual_motion` returns.

    Args:
        M: this and the following four, see ``usual_motion``.
        parents: likewise.
        f: likewise.
        J: likewise; rows of what is `chosen`, then of dry friction.
        offset: likewise.
        friction: (k,) coefficients of all contacts.
        chosen: contacts and one-sided rows, ascending.
        most: this and the following three, see :func:`predict`.
        start: likewise.
        tolerance: likewise.
        steps: likewise.
    """
    if not J.shape[0]:
        x, dynamics = free_motion(M, parents, f)
        return x, np.empty(0), np.empty(0, dtype=np.int64), 0, 0.0, 1.0, True, dynamics
    contacts = np.searchsorted(chosen, friction.shape[0])
    one_sided = chosen.shape[0] - contacts
    lower, upper = np.zeros(one_sided + most.shape[0]), np.full(one_sided + most.shape[0], np.inf)
    lower[one_sided:], upper[one_sided:] = -most, most
    slip, rigid = np.zeros((contacts, 2)), np.zeros(J.shape[0])
    coefficients = friction[chosen[:contacts]]
    x, _, _, impulse, status, done, residual, magnitude, solved, dynamics = usual_motion(
        M, parents, f, J, offset, rigid, coefficients, slip, lower, upper, NO_DISCS, start, tolerance, steps
    )
    return x, impulse, status, done, residual, magnitude, solved, dynamics

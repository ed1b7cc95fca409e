"""A step of rigid contacts and dry joint friction in two compiled calls: what the time stepper tries first.

Neither is a method of its own: both are the kernels of the general way one after the other, without the interpreter
between them, and give up where the contact problem is not solved in the usual way.
"""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.discs import no_discs
from constrained_sim.kinematics import contact_rows
from constrained_sim.motion import dynamics_residual, usual_motion
from constrained_sim.solvers.kernels import free_response
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

NONE = np.zeros(0)
NO_DISCS = no_discs()


@numba.njit(cache=True)
def predict(  # type: ignore[no-untyped-def]
    h,
    reach,
    M,
    bias,
    v,
    damping,
    parents,
    actuation,
    tau,
    placements,
    joint_axes,
    support,
    joints,
    points,
    radii,
    axes,
    other_joints,
    other_points,
    friction,
    rubbing,
    most,
    tolerance,
    steps,
    gaps,
    normals,
    s,
    impulses,
    x,
    impulse,
    dry,
    status,
    energy,
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
        placements: at the evaluation point, see :func:`~constrained_sim.kinematics.contact_rows`.
        joint_axes: likewise.
        support: likewise.
        joints: this and the following five of the contacts, likewise.
        points: likewise.
        radii: likewise.
        axes: likewise.
        other_joints: likewise.
        other_points: likewise.
        friction: (k,) coefficients.
        rubbing: (d,) degrees of freedom with dry friction.
        most: (d,) their largest impulses [N m s, N s].
        tolerance: see :func:`~constrained_sim.contact.usual.solve_usually`.
        steps: likewise.
        gaps: (k,) at the beginning [m].
        normals: (k,) which rows open and close.
        s: (3 k,) row velocities at the beginning [m/s].
        impulses: (6, nv) is filled with generalised impulses of the causes in the order of ``FORCES``.
        x: (nv,) is filled with the velocity at the end.
        impulse: (3 k,) is filled with the impulses of the contacts [N s].
        dry: (d,) is filled with those of dry friction [N m s, N s].
        status: (k,) is filled.
        energy: (9,) is filled with the terms of the audit.

    Returns:
        (Newton's steps, residual of the contact law, magnitude of the impulses in play, whether the contact problem is
        solved, residual of the equation of motion); if it is not solved, nothing else counts.
    """
    impulses[:] = 0.0
    impulses[0] -= h * bias
    for i in range(actuation.shape[0]):
        impulses[1, actuation[i]] = h * tau[i]
    all_points, distances = np.empty((gaps.shape[0], 3)), np.empty(gaps.shape[0])
    J_middle, s_middle = np.empty((s.shape[0], v.shape[0])), np.empty(s.shape[0])
    contact_rows(
        joints,
        points,
        radii,
        axes,
        other_joints,
        other_points,
        placements,
        joint_axes,
        support,
        v,
        all_points,
        distances,
        J_middle,
        s_middle,
    )
    excluded = np.empty(0, dtype=np.int64)
    candidates, J, offset = candidate_rows(gaps, normals, s, s_middle, J_middle, excluded, h, reach)
    inertia = M.copy()
    for i in range(v.shape[0]):
        inertia[i, i] += h * damping[i]
    f = momentum(M, v, impulses)
    J, offset = with_dry_rows(J, offset, rubbing)
    found, pushes, pushed, done, residual, magnitude, solved, dynamics = _solve(
        inertia, parents, f, J, offset, friction[candidates], most, tolerance, steps
    )
    if not solved:
        return done, residual, magnitude, False, dynamics
    x[:] = found
    end = pushes.shape[0] - rubbing.shape[0]
    dry[:] = pushes[end:]
    impulses[3] -= h * damping * x
    for i in range(rubbing.shape[0]):
        impulses[3, rubbing[i]] += dry[i]
    impulses[4] += pushes[:end] @ J[:end]
    impulse[:], status[:] = spread(candidates, normals, pushes, pushed, s.shape[0])
    energy[:] = energy_of(v, x, M, impulses)
    return done, residual, magnitude, True, dynamics


@numba.njit(cache=True)
def correct(  # type: ignore[no-untyped-def]
    h,
    M_begin,
    v,
    M_middle,
    coriolis,
    v_middle,
    gravity,
    base_begin,
    base_middle,
    base,
    is_floating,
    s,
    M,
    parents,
    friction,
    rubbing,
    most,
    tolerance,
    steps,
    pressed,
    gaps,
    normals,
    J,
    impulses,
    x,
    impulse,
    dry,
    status,
    energy,
    s_plus,
):
    """Correct what was predicted, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`.

    Args:
        h: this and the following ten, see :func:`~constrained_sim.steppers.kernels.end_momentum`.
        M_begin: likewise.
        v: likewise.
        M_middle: likewise.
        coriolis: likewise.
        v_middle: likewise.
        gravity: likewise.
        base_begin: likewise.
        base_middle: likewise.
        base: likewise.
        is_floating: likewise.
        s: (3 k,) row velocities at the beginning [m/s].
        M: (nv, nv) inertia at the end.
        parents: see :func:`~constrained_sim.solvers.kernels.factor_inertia`.
        friction: (k,) coefficients.
        rubbing: this and the following three, see :func:`predict`.
        most: likewise.
        tolerance: likewise.
        steps: likewise.
        pressed: contacts that carry force in the prediction.
        gaps: (k,) at the beginning [m].
        normals: (k,) which rows open and close.
        J: (3 k, nv) rows at the end.
        impulses: (6, nv) of the prediction.
        x: (nv,) velocity at the end: predicted, is corrected.
        impulse: (3 k,) impulses of the contacts [N s], likewise.
        dry: (d,) impulses of dry friction [N m s, N s], likewise.
        status: (k,) likewise.
        energy: (9,) terms of the audit, likewise.
        s_plus: (3 k,) is filled with the row velocities at the end [m/s].

    Returns:
        Whether the contact problem was solved; else nothing has changed.
    """
    total = end_momentum(
        h, M_begin, v, M_middle, coriolis, v_middle, impulses, gravity, base_begin, base_middle, base, is_floating
    )
    end = 3 * pressed.shape[0]
    rows, offset = np.empty((end, v.shape[0])), np.zeros(end)
    predicted, s_begin = np.empty(end + rubbing.shape[0]), np.empty(end + rubbing.shape[0])
    for i in range(pressed.shape[0]):
        mine, all_rows = slice(3 * i, 3 * i + 3), slice(3 * pressed[i], 3 * pressed[i] + 3)
        rows[mine], predicted[mine], s_begin[mine] = J[all_rows], impulse[all_rows], s[all_rows]
        offset[3 * i + 2] = allowed_approach(gaps[pressed[i]], s[normals[pressed[i]]], h)
    predicted[end:], s_begin[end:] = dry, v[rubbing]
    rows, offset = with_dry_rows(rows, offset, rubbing)
    free = total - predicted @ rows
    for _ in range(2):
        found, pushes, pushed, _, _, _, solved, _ = _solve(
            M, parents, free, rows, offset, friction[pressed], most, tolerance, steps
        )
        if not solved:
            return False
        if not oppose_mean_slip(s_begin, pressed.shape[0], rubbing.shape[0], NO_DISCS, rows, offset, found, pushes):
            break
    change = np.zeros_like(impulses)
    change[0] = total - M @ x
    for i in range(rubbing.shape[0]):
        change[3, rubbing[i]] = pushes[end + i] - dry[i]
    change[4] = (pushes[:end] - predicted[:end]) @ rows[:end]
    energy += energy_of(x, found, M, change)
    for i in range(pressed.shape[0]):
        impulse[3 * pressed[i] : 3 * pressed[i] + 3] = pushes[3 * i : 3 * i + 3]
        status[pressed[i]] = pushed[i]
    s_plus[:] = J @ found
    attribute_work(energy, 0.5 * np.dot(impulse, s + s_plus), 0.0)
    attribute_dry_work(energy, v[rubbing], x[rubbing], found[rubbing], dry, pushes[end:])
    dry[:], x[:] = pushes[end:], found
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
def _solve(M, parents, f, J, offset, friction, most, tolerance, steps):  # type: ignore[no-untyped-def]
    """Return velocity, impulses, status, and the rest of what :func:`~constrained_sim.motion.usual_motion` returns."""
    if not J.shape[0]:
        x, _ = free_response(M, parents, f, J)
        dynamics = dynamics_residual(M, x, f, np.zeros_like(f))
        return x, NONE.copy(), np.empty(0, dtype=np.int64), 0, 0.0, 1.0, True, dynamics
    x, _, _, _, impulse, status, done, residual, magnitude, solved, dynamics = usual_motion(
        M,
        parents,
        f,
        J,
        offset,
        np.zeros(J.shape[0]),
        friction,
        np.zeros((friction.shape[0], 2)),
        -most,
        most,
        NO_DISCS,
        tolerance,
        steps,
    )
    return x, impulse, status, done, residual, magnitude, solved, dynamics

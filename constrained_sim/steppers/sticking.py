"""A step of rigid contacts that all stick, in two compiled calls: what the time stepper tries first.

Neither is a method of its own: both are the kernels of the general way one after the other, without the interpreter
between them, and give up where a contact slips.
"""

from __future__ import annotations

import numba
import numpy as np

from constrained_sim.contact.discs import no_discs
from constrained_sim.contact.problem import RELATIVE_TOLERANCE
from constrained_sim.kinematics import contact_rows
from constrained_sim.motion import dynamics_residual, sticking_motion
from constrained_sim.solvers.kernels import free_response
from constrained_sim.steppers.kernels import (
    allowed_approach,
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
    gaps,
    normals,
    s,
    impulses,
    x,
    impulse,
    status,
    energy,
    residuals,
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
        gaps: (k,) at the beginning [m].
        normals: (k,) which rows open and close.
        s: (3 k,) row velocities at the beginning [m/s].
        impulses: (6, nv) is filled with generalised impulses of the causes in the order of ``FORCES``.
        x: (nv,) is filled with the velocity at the end.
        impulse: (3 k,) is filled with the impulses of the contacts [N s].
        status: (k,) is filled.
        energy: (9,) is filled with the terms of the audit.
        residuals: (2,) is filled with those of the contact law and of the equation of motion.

    Returns:
        Whether all contacts stick; else nothing counts.
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
    found, pushes, pushed, residual, dynamics = _stick(inertia, parents, f, J, offset, friction[candidates])
    if residual > RELATIVE_TOLERANCE:
        return False
    x[:] = found
    impulses[3] -= h * damping * x
    impulses[4] += pushes @ J
    impulse[:], status[:] = spread(candidates, normals, pushes, pushed, s.shape[0])
    energy[:] = energy_of(v, x, M, impulses)
    residuals[0], residuals[1] = residual, dynamics
    return True


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
    pressed,
    gaps,
    normals,
    J,
    impulses,
    x,
    impulse,
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
        pressed: contacts that carry force in the prediction.
        gaps: (k,) at the beginning [m].
        normals: (k,) which rows open and close.
        J: (3 k, nv) rows at the end.
        impulses: (6, nv) of the prediction.
        x: (nv,) velocity at the end: predicted, is corrected.
        impulse: (3 k,) impulses of the contacts [N s], likewise.
        status: (k,) likewise.
        energy: (9,) terms of the audit, likewise.
        s_plus: (3 k,) is filled with the row velocities at the end [m/s].

    Returns:
        Whether all contacts that press go on to stick; else nothing has changed.
    """
    total = end_momentum(
        h, M_begin, v, M_middle, coriolis, v_middle, impulses, gravity, base_begin, base_middle, base, is_floating
    )
    rows, predicted = np.empty((3 * pressed.shape[0], v.shape[0])), np.empty(3 * pressed.shape[0])
    offset, s_pressed = np.zeros(3 * pressed.shape[0]), np.empty(3 * pressed.shape[0])
    for i in range(pressed.shape[0]):
        mine, all_rows = slice(3 * i, 3 * i + 3), slice(3 * pressed[i], 3 * pressed[i] + 3)
        rows[mine], predicted[mine], s_pressed[mine] = J[all_rows], impulse[all_rows], s[all_rows]
        offset[3 * i + 2] = allowed_approach(gaps[pressed[i]], s[normals[pressed[i]]], h)
    free = total - predicted @ rows
    found, pushes, pushed, residual, _ = _stick(M, parents, free, rows, offset, friction[pressed])
    if residual > RELATIVE_TOLERANCE:
        return False
    if oppose_mean_slip(s_pressed, pressed.shape[0], 0, NO_DISCS, rows, offset, found, pushes):
        return False
    change = np.zeros_like(impulses)
    change[0] = total - M @ x
    change[4] = (pushes - predicted) @ rows
    energy += energy_of(x, found, M, change)
    for i in range(pressed.shape[0]):
        impulse[3 * pressed[i] : 3 * pressed[i] + 3] = pushes[3 * i : 3 * i + 3]
        status[pressed[i]] = pushed[i]
    x[:] = found
    s_plus[:] = J @ x
    attribute_work(energy, 0.5 * np.dot(impulse, s + s_plus), 0.0)
    return True


@numba.njit(cache=True)
def _stick(M, parents, f, J, offset, friction):  # type: ignore[no-untyped-def]
    """Return the velocity with all rows sticking, impulses, status, and residuals of contact law and motion."""
    if not J.shape[0]:
        x, _ = free_response(M, parents, f, J)
        return x, NONE.copy(), np.empty(0, dtype=np.int64), 0.0, dynamics_residual(M, x, f, np.zeros_like(f))
    x, _, _, _, impulse, status, residual, dynamics = sticking_motion(
        M, parents, f, J, offset, np.zeros(J.shape[0]), friction, np.zeros((friction.shape[0], 2)), NONE, NONE, NO_DISCS
    )
    return x, impulse, status, residual, dynamics

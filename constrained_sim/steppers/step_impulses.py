"""Impulses of the causes of motion in a step: entered before its problem is solved, and by what that finds."""

from __future__ import annotations

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.energy import ACTUATORS, CAUSES, CONSTRAINTS, CONTACTS, DAMPING, EXTERNAL, GRAVITY_CORIOLIS
from constrained_sim.linalg.products import matvec, vecdot, vecmat
from constrained_sim.steppers.step_energy import attribute_friction_work, attribute_work, energy_of


@kernel(spliced=True)
def enter_known_impulses(h, joints, efforts, v, forces, impulses):
    """Enter what acts whatever the velocity at the end; return (nv,) what the rest adds to the inertia.

    Damping of joints and of their feedback acts at the velocity at the end; springs act at the mean of the positions at
    both ends, which keeps their energy whatever their frequency.

    Args:
        h: length of the step [s].
        joints: see :class:`~constrained_sim.steppers.step_model.JointModel`.
        efforts: of the actuators, see :class:`~constrained_sim.actuators.Efforts`.
        v: (nv,) velocity at the beginning.
        forces: (nv,) of springs at the beginning, bias, and of external wrenches [N m, N].
        impulses: (6, nv) filled, the causes in the order of ``FORCES`` [N m s, N s].
    """
    (pull, bias, external), (constant, feedback) = forces, efforts
    damping, stiffness, actuation, _, _ = joints
    added = np.empty_like(bias)
    impulses[:] = 0.0
    for i in range(added.shape[0]):
        impulses[GRAVITY_CORIOLIS, i] = h * (pull[i] - 0.25 * h * stiffness[i] * v[i] - bias[i])
        impulses[EXTERNAL, i] = h * external[i]
        added[i] = h * damping[i] + 0.25 * h**2 * stiffness[i]
    for i in range(actuation.shape[0]):
        k = actuation[i]
        impulses[ACTUATORS, k] = h * constant[i]
        added[k] += h * feedback[i]
    return added


@kernel(spliced=True)
def enter_solution(h, joints, efforts, active, solution, J_bilateral, found, impulses):
    """Enter what the solution of a prediction makes act, and its impulses.

    Args:
        h: length of the step [s].
        joints: see :func:`enter_known_impulses`.
        efforts: see :func:`enter_known_impulses`.
        active: the :class:`~constrained_sim.steppers.contact_selection.ActiveRows`.
        solution: their :class:`~constrained_sim.steppers.row_solution.RowSolution`.
        J_bilateral: (m, nv).
        found: see :class:`~constrained_sim.steppers.step_model.StepImpulses`.
        impulses: (6, nv) as :func:`enter_known_impulses` left them.
    """
    damping, stiffness, actuation, friction_dofs, _ = joints
    x, impulse, J, joint_friction, feedback = (
        solution.x,
        solution.contact.impulse,
        active.J,
        found.joint_friction,
        efforts.damping,
    )
    n, d = active.rows.shape[0], friction_dofs.shape[0]
    for i in range(x.shape[0]):
        impulses[GRAVITY_CORIOLIS, i] -= 0.25 * h**2 * stiffness[i] * x[i]
        impulses[DAMPING, i] = -h * damping[i] * x[i]
    for i in range(actuation.shape[0]):
        k = actuation[i]
        impulses[ACTUATORS, k] -= h * feedback[i] * x[k]
    for i in range(d):
        joint_friction[i] = impulse[n + i]
        impulses[DAMPING, friction_dofs[i]] += impulse[n + i]
    impulses[CONTACTS], found.moments[:] = vecmat(impulse[:n], J[:n]), 0.0
    if active.turning.shape[0]:
        found.moments[active.turning] = impulse[n + d :]
        impulses[CONTACTS] += vecmat(impulse[n + d :], J[n + d :])
    found.lam[:], impulses[CONSTRAINTS] = solution.lam, vecmat(solution.lam, J_bilateral)
    found.impulse[:], found.status[:] = 0.0, 0
    for i in range(n):
        found.impulse[active.rows[i]] = impulse[i]
    for i in range(active.chosen.shape[0]):
        found.status[active.chosen[i]] = solution.contact.status[i]


@kernel(spliced=True)
def values_of(active, friction_dofs, found, begin):
    """Return the impulses `found` of the rows that are `active` (n + d + f,), and their velocities at the `begin`."""
    rows, turning, impulse, s, v = active.rows, active.turning, found.impulse, begin.s, begin.v
    joint_friction, n, d = found.joint_friction, rows.shape[0], friction_dofs.shape[0]
    impulses, velocities = np.empty(active.offset.shape[0]), np.empty(active.offset.shape[0])
    for i in range(n):
        impulses[i], velocities[i] = impulse[rows[i]], s[rows[i]]
    for i in range(d):
        impulses[n + i], velocities[n + i] = joint_friction[i], v[friction_dofs[i]]
    for i in range(turning.shape[0]):
        row = turning[i]
        impulses[n + d + i], velocities[n + d + i] = found.moments[row], vecdot(begin.turning[row], v)
    return impulses, velocities


@kernel(spliced=True)
def enter_correction(friction_dofs, begin, total, active, solution, found, end):
    """Enter the solution of a correction into what was `found`, the energy audit, and the state at the `end`.

    Args:
        friction_dofs: (d,) degrees of freedom with dry friction.
        begin: the state at the beginning.
        total: (nv,) generalised momentum at the end, with all impulses of the prediction.
        active: the :class:`~constrained_sim.steppers.contact_selection.ActiveRows` of the correction.
        solution: their :class:`~constrained_sim.steppers.row_solution.RowSolution`.
        found: corrected, see :class:`~constrained_sim.steppers.step_model.StepImpulses`.
        end: the state, corrected.
    """
    x, v_plus, n, d, energy = end.v, solution.x, active.rows.shape[0], friction_dofs.shape[0], found.energy
    M, lam, J_bilateral, J_begin = end.M, found.lam, end.J_bilateral, begin.J_bilateral
    impulse, status = solution.contact.impulse, solution.contact.status
    row_impulses, joint_friction, turning = impulse[:n], impulse[n : n + d], impulse[n + d :]
    change, J = np.zeros((CAUSES, x.shape[0])), active.J
    for i in range(x.shape[0]):
        change[GRAVITY_CORIOLIS, i] = total[i] - vecdot(M[i], x)
    for i in range(d):
        change[DAMPING, friction_dofs[i]] = joint_friction[i] - found.joint_friction[i]
    change[CONTACTS] = vecmat(row_impulses - found.impulse[active.rows], J[:n])
    change[CONSTRAINTS] = vecmat(solution.lam - lam, J_bilateral)
    if turning.shape[0]:
        change[CONTACTS] += vecmat(turning - found.moments[active.turning], J[n + d :])
        found.moments[active.turning] = turning
    energy += energy_of(x, v_plus, M, change)
    found.impulse[active.rows], found.status[active.chosen] = row_impulses, status[: active.chosen.shape[0]]
    lam[:], end.s[:] = solution.lam, matvec(end.J, v_plus)
    by_contacts = 0.5 * (vecdot(found.impulse, begin.s) + vecdot(found.impulse, end.s))
    for row in active.turning:
        w = vecdot(begin.turning[row], begin.v) + vecdot(end.turning[row], v_plus)
        by_contacts += 0.5 * found.moments[row] * w
    by_rows, v, s_bilateral = 0.0, begin.v, end.s_bilateral
    for i in range(lam.shape[0]):
        at_end = vecdot(J_bilateral[i], v_plus)
        by_rows += 0.5 * lam[i] * (vecdot(J_begin[i], v) + at_end)
        s_bilateral[i] += at_end - vecdot(J_bilateral[i], x)
    attribute_work(energy, by_contacts, by_rows)
    if d:
        velocities = begin.v[friction_dofs], x[friction_dofs], v_plus[friction_dofs]
        attribute_friction_work(energy, *velocities, found.joint_friction, joint_friction)
    found.joint_friction[:], x[:] = joint_friction, v_plus


@kernel(spliced=True)
def enter_means(h, order, friction_dofs, begin, end, outputs):
    """Enter mean forces of all rows, mean axes of contacts and mean efforts of dry friction of a step of `h` [s].

    Args:
        h: its length [s].
        order: where each row is, in the order of declaration, among those of contacts, of limits, and bilateral ones.
        friction_dofs: (d,) degrees of freedom with dry friction.
        begin: (k, 3, 3) axes at the beginning.
        end: (k, 3, 3) at the end.
        outputs: see :class:`~constrained_sim.steppers.packed_step.StepOutputs`.
    """
    forces, lam, impulse = outputs.forces, outputs.lam, outputs.impulse
    efforts, friction = outputs.friction_efforts, outputs.joint_friction
    first = impulse.shape[0]
    for i in range(order.shape[0]):
        place = order[i]
        forces[i] = (lam[place - first] if place >= first else impulse[place]) / h
    for i in range(friction_dofs.shape[0]):
        efforts[friction_dofs[i]] = friction[i] / h
    outputs.axes[:] = 0.5 * (begin + end)


@kernel(spliced=True)
def between(share, one, other, result):
    """Fill `result` (n,) with what is this `share` of the way from `one` (n,) to the `other` (n,)."""
    for i in range(result.shape[0]):
        result[i] = one[i] + share * (other[i] - one[i])

"""All rows of a compiled step at once: held first, and where the contact law forbids that, by contact methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.quick_contacts import QuickBudget, quick_contacts
from constrained_sim.contact_solvers.quick_solution import BY_STICKING, QuickSolution
from constrained_sim.contact_solvers.reduced_rows import reduce_contact_rows
from constrained_sim.contact_solvers.scaled_problem import ContactLaws, box_bounds
from constrained_sim.contact_solvers.sticking_dynamics import sticking_dynamics
from constrained_sim.linalg.products import vecmat
from constrained_sim.solvers.held_dynamics import TreeInertia, dynamics_residual, free_motion
from constrained_sim.solvers.held_rows import hold_rows
from constrained_sim.solvers.solver import largest_row_error
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import ActiveRows
from constrained_sim.validation import Array

PREDICTION, CORRECTION, MIDPOINT_FRICTION = range(3)
"""What a problem is for: the prediction of a step, its correction, and that with friction against the mean slip."""


class StepProblem(NamedTuple):
    """A problem of a step: ``M x - J^T impulse - J_b^T lam = f``, ``J_b x = goal``, and the contact law.

    Attributes:
        M: (nv, nv) inertia.
        J_bilateral: (m, nv) bilateral rows J_b.
        axes: (k, 3, 3) of the contacts.
        points: (k, 3) of the contacts [m].
        added: (nv,) to the diagonal of M, by forces that depend on x; (0,): nothing.
        f: (nv,) momentum.
        goal: (m,) what ``J_b x`` is to be.
        active: the other rows J that take part.
    """

    M: Array
    J_bilateral: Array
    axes: Array
    points: Array
    added: Array
    f: Array
    goal: Array
    active: ActiveRows


class RowSolution(NamedTuple):
    """What all rows of a step come to.

    Attributes:
        x: (nv,) velocity.
        lam: (m,) impulses of the bilateral rows [N s, N m s].
        contact: the other impulses (n + d + f,): of contacts and one-sided rows that take part, of dry friction, and of
            turning [N s, N m s]; and the status of the contacts, one-sided rows, degrees of freedom with dry friction,
            and moments.
        dynamics_residual: relative, of the equation of motion.
        constraint_residual: relative, of the bilateral rows.
    """

    x: Array
    lam: Array
    contact: QuickSolution
    dynamics_residual: float
    constraint_residual: float


@kernel(stage=True)
def solve_rows(model, settings, phase, problem, start):
    """Solve for the velocity: first with all rows held, and where the contact law forbids that, by contact methods.

    Args:
        model: see :func:`~constrained_sim.steppers.substep.substep`.
        settings: see ``substep``.
        phase: :data:`PREDICTION`, :data:`CORRECTION` or :data:`MIDPOINT_FRICTION`; a solution is the same in each.
        problem: see :class:`StepProblem`.
        start: impulses near those of the rows; (0,): nothing is known.

    Returns:
        A :class:`RowSolution`.
    """
    robot, contacts, active, M = borrowed(model.robot), borrowed(model.contacts), problem.active, problem.M
    J, offset, f, held_J, goal = active.J, active.offset, problem.f, problem.J_bilateral, problem.goal
    m, n, d = goal.shape[0], active.rows.shape[0], robot.joints.friction_dofs.shape[0]
    added = problem.added
    if added.shape[0]:
        M = M.copy()
        for i in range(M.shape[0]):
            M[i, i] += added[i]
    if not (n + d + m):
        x, dynamics = free_motion(M, robot.parents, f)
        return RowSolution(x, np.empty(0), _no_contact(True), dynamics, 0.0)
    sticks = np.searchsorted(active.chosen, contacts.friction.shape[0])
    one_sided, most = active.chosen.shape[0] - sticks, settings.h * robot.joints.coulomb_effort
    slip, friction = np.zeros((sticks, 2)), contacts.friction[active.chosen[:sticks]]
    x, lam, found, dynamics = _hold_all(settings, robot, contacts, problem, M, (friction, slip, most))
    inconsistent = 0.0
    if not (n + d):
        found = _no_contact(True)
    elif not found.solved:
        may_stick = m > 0 or active.compliance.shape[0] > 0
        lower, upper = box_bounds(one_sided, 0, most)
        laws = ContactLaws(friction, slip, lower, upper, active.moments)
        budget = QuickBudget(settings.tolerance, settings.newton_first, may_stick)
        motion = quick_contacts(
            TreeInertia(M, robot.parents), f, (held_J, goal), (J, offset), active.compliance, laws, start, budget
        )
        x, found = motion.x, motion.solution
        total = f + vecmat(found.impulse, J)
        if m:
            held = hold_rows(settings.factorization, M, robot.parents, held_J, total, goal)
            x, lam = held.x, held.y
        dynamics = dynamics_residual(M, x, f, total - f + vecmat(lam, held_J))
    if m:
        inconsistent = largest_row_error(M, f, held_J, goal, x, free_motion(M, robot.parents, f)[0])
    return RowSolution(x, lam, found, dynamics, inconsistent)


@kernel
def _no_contact(solved):
    """Return a solution in which no contact takes part."""
    return QuickSolution(np.empty(0), np.empty(0, dtype=np.int64), BY_STICKING, 0, 0.0, 1.0, solved)


@kernel(spliced=True)
def _hold_all(settings, robot, contacts, problem, M, laws):
    """Solve with all rows held, unless a soft contact is active, whose rows are not.

    Args:
        settings: see :func:`solve_rows`.
        robot: see :class:`~constrained_sim.steppers.step_model.RobotModel`.
        contacts: see :class:`~constrained_sim.steppers.step_model.Contacts`.
        problem: see :class:`StepProblem`.
        M: (nv, nv) inertia, with what is added.
        laws: coefficients of friction (c,) and slip (c, 2) of the contacts that take part; largest impulses (d,) of dry
            friction [N m s, N s].

    Returns:
        (x, lam, :class:`~constrained_sim.contact_solvers.quick_solution.QuickSolution` of the other rows, relative
        residual of the equation of motion).
    """
    active, goal = problem.active, problem.goal
    friction, slip, most = laws
    m, n, d, t = goal.shape[0], active.rows.shape[0], most.shape[0], active.turning.shape[0]
    members, k = active.chosen.shape[0], contacts.friction.shape[0]
    if active.compliance.shape[0]:
        return np.empty(0), np.empty(0), _no_contact(False), 0.0
    every, offsets = active.J, active.offset
    if m:
        every = np.concatenate((every[:n], problem.J_bilateral, every[n:]))
        offsets = np.concatenate((offsets[:n], -goal, offsets[n:]))
    basis = reduce_contact_rows(
        np.append(active.rows, np.full(m + d + t, 3 * k)), contacts.features.bodies, problem.axes, problem.points
    )
    dry = robot.joints.friction_dofs[: 0 if t else d]  # only where their rows are the last ones
    joint_friction = dry, robot.others, robot.parents_of_others
    lower, upper = box_bounds(members - friction.shape[0], m, most)
    contact_laws = ContactLaws(friction, slip, lower, upper, active.moments)
    inertia = TreeInertia(M, robot.parents)
    x, held, dynamics = sticking_dynamics(
        settings.factorization, inertia, problem.f, (every, offsets), basis, joint_friction, contact_laws,
        settings.tolerance,
    )  # fmt: skip
    if not m:
        return x, np.empty(0), held, dynamics
    forces, status, method, iterations, residual, magnitude, solved = held
    impulse, lam = np.concatenate((forces[:n], forces[n + m :])), forces[n : n + m].copy()
    status = np.concatenate((status[:members], status[members + m :]))
    return x, lam, QuickSolution(impulse, status, method, iterations, residual, magnitude, solved), dynamics

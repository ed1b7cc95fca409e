"""Pinocchio's alternating-direction method of multipliers: robust where the Delassus matrix is singular."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from constrained_sim.contact_solvers.active_set_newton import newton
from constrained_sim.contact_solvers.options import OPTIONS, TINY
from constrained_sim.contact_solvers.problem import ContactProblem
from constrained_sim.validation import Array


def admm(problem: ContactProblem, impulse: Array, tolerance: float, budget: int) -> tuple[Array, float, int]:
    """Solve contacts and one-sided rows; problems with other rows, or with known slip, are left as they are.

    A few steps of Newton's method make all digits.

    Rows are scaled to unit Delassus entries, and a one-sided row becomes the normal of a contact without friction.

    Source: Carpentier, Montaut and Le Lidec, From compliant to rigid contact simulation: a unified and efficient
    approach, 2024.
    """
    friction, iterations = problem.friction, 0
    others = problem.slip.any() or problem.lower.any() or np.isinf(friction).any() or len(problem.rolling)
    if not others and np.isinf(problem.upper).all():
        impulse, iterations = _solve(problem.G, problem.b, friction, len(problem.lower), budget)
    impulse, error, steps = newton(problem.scaled, impulse, tolerance, OPTIONS.newton_steps)
    return impulse, error, iterations + steps


def _solve(G: Array, b: Array, friction: Array, one_sided: int, budget: int) -> tuple[Array, int]:
    contacts = len(friction)
    rows = np.concatenate([np.arange(3 * contacts), 3 * contacts + 3 * np.arange(one_sided) + 2]).astype(np.int64)
    unit = 1.0 / max(np.diag(G).max(), TINY)
    padded, free = np.eye(3 * (contacts + one_sided)), np.zeros(3 * (contacts + one_sided))
    padded[np.ix_(rows, rows)], free[rows] = unit * G, unit * b
    models, datas = _cones(np.concatenate([friction, np.zeros(one_sided)]))
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    settings.max_iterations = budget
    for criterion in ("feasibility", "complementarity"):
        setattr(settings, f"absolute_{criterion}_tol", OPTIONS.acceptable * max(np.abs(free).max(), TINY))
        setattr(settings, f"relative_{criterion}_tol", OPTIONS.acceptable)
    solver = pin.ADMMConstraintSolver(len(free))
    solver.solve(pin.DelassusOperatorDense(padded), free, models, datas, settings, result)
    return result.retrieveConstraintImpulses()[rows], int(result.iterations)


def _cones(friction: Array) -> tuple[pin.StdVec_ConstraintModel, pin.StdVec_ConstraintData]:
    """Return Pinocchio's constraints whose sets are the cones; what they are attached to does not matter here."""
    model, here = pin.Model(), pin.SE3.Identity()
    model.addJoint(0, pin.JointModelFreeFlyer(), here, "any")
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for coefficient in friction:
        contact = pin.PointContactConstraintModel(model, 0, here, 1, here)
        contact.set = pin.CoulombFrictionCone(float(coefficient))
        constraint = pin.ConstraintModel(contact)
        models.append(constraint)
        datas.append(constraint.createData())
    return models, datas

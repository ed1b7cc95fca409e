"""Pinocchio's alternating-direction method of multipliers: robust where the Delassus matrix is singular."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.contact_solvers.active_set_newton import newton
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.problem import ContactProblem
from constrained_sim.linalg.rank import TINY
from constrained_sim.validation import Array


def admm(problem: ContactProblem, impulse: Array, tolerance: float, budget: int) -> tuple[Array, float, int]:
    """Solve contacts and one-sided rows; problems with other rows, or with known slip, are left to what follows.

    A few steps of Newton's method make all digits, from the impulses given where they are left.

    Rows are scaled to unit Delassus entries, and a one-sided row becomes the normal of a contact without friction.

    Source: Carpentier, Montaut and Le Lidec, From compliant to rigid contact simulation: a unified and efficient
    approach, 2024.
    """
    friction, iterations = problem.friction, 0
    others = problem.slip.any() or problem.lower.any() or np.isinf(friction).any() or len(problem.rolling)
    if not others and np.isinf(problem.upper).all():
        found, iterations = _solve(problem.G, problem.b, friction, len(problem.lower), budget)
        impulse = found if np.isfinite(found).all() else impulse  # NaN of Pinocchio 3, where rows are dependent
    impulse, error, steps = newton(problem.scaled, impulse, tolerance, OPTIONS.newton_steps)
    return impulse, error, iterations + steps


def _solve(G: Array, b: Array, friction: Array, one_sided: int, budget: int) -> tuple[Array, int]:
    contacts = len(friction)
    rows = np.concatenate([np.arange(3 * contacts), 3 * contacts + 3 * np.arange(one_sided) + 2]).astype(np.int64)
    unit = 1.0 / max(np.diag(G).max(), TINY)
    padded, free = np.eye(3 * (contacts + one_sided)), np.zeros(3 * (contacts + one_sided))
    padded[np.ix_(rows, rows)], free[rows] = unit * G, unit * b
    cones = [pin.CoulombFrictionCone(float(coefficient)) for coefficient in (*friction, *np.zeros(one_sided))]
    solve = _by_pinocchio_4 if hasattr(pin, "ADMMConstraintSolver") else _by_pinocchio_3
    impulse, iterations = solve(padded, free, cones, budget, OPTIONS.acceptable * max(np.abs(free).max(), TINY))
    return impulse[rows], iterations


def _by_pinocchio_3(G: Array, free: Array, cones: list[Any], budget: int, accuracy: float) -> tuple[Array, int]:
    """Return impulses (n,) in the `cones`, and how many iterations of Pinocchio 3 they took, at most `budget`."""
    solver = pin.ADMMContactSolver(len(free))
    solver.setMaxIterations(budget)
    solver.setAbsolutePrecision(accuracy)
    solver.setRelativePrecision(OPTIONS.acceptable)
    sets = pin.StdVec_CoulombFrictionCone()
    sets.extend(cones)
    solver.solve(pin.DelassusOperatorDense(G), free, sets, np.zeros_like(free))
    return np.array(solver.getPrimalSolution()), int(solver.getIterationCount())


def _by_pinocchio_4(G: Array, free: Array, cones: list[Any], budget: int, accuracy: float) -> tuple[Array, int]:
    """Return impulses (n,) in the `cones`, and how many iterations of Pinocchio 4 they took, at most `budget`."""
    models, datas = _constraints(cones)
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    settings.max_iterations = budget
    for criterion in ("feasibility", "complementarity"):
        setattr(settings, f"absolute_{criterion}_tol", accuracy)
        setattr(settings, f"relative_{criterion}_tol", OPTIONS.acceptable)
    solver = pin.ADMMConstraintSolver(len(free))
    solver.solve(pin.DelassusOperatorDense(G), free, models, datas, settings, result)
    return result.retrieveConstraintImpulses(), int(result.iterations)


def _constraints(cones: list[Any]) -> tuple[Any, Any]:
    """Return Pinocchio's constraints whose sets are the cones; what they are attached to does not matter here."""
    model, here = pin.Model(), pin.SE3.Identity()
    model.addJoint(0, pin.JointModelFreeFlyer(), here, "any")
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for cone in cones:
        contact = pin.PointContactConstraintModel(model, 0, here, 1, here)
        contact.set = cone
        constraint = pin.ConstraintModel(contact)
        models.append(constraint)
        datas.append(constraint.createData())
    return models, datas

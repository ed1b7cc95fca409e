"""The one problem behind accelerations, impacts and time steps: bilateral rows held, contact rows complementary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from constrained_sim.contact.problem import ContactProblem, ContactSolution, solve_contacts
from constrained_sim.solvers import Solver, System
from constrained_sim.validation import Array


@dataclass(frozen=True, eq=False)
class ContactRows:
    """Rows of the contacts that may be closed, [t1, t2, n] each.

    Attributes:
        J: (3 k, nv).
        offset: (3 k,) what is added to ``J x`` to give the row quantity u of the contact law.
        friction: (k,).
        slip: (k, 2), see :class:`~constrained_sim.contact.problem.ContactProblem`.
    """

    J: Array
    offset: Array
    friction: Array
    slip: Array

    @classmethod
    def none(cls, nv: int) -> ContactRows:
        """Return no rows."""
        return cls(np.zeros((0, nv)), np.zeros(0), np.zeros(0), np.zeros((0, 2)))


@dataclass(frozen=True, eq=False)
class Motion:
    """Solution of ``M x - J^T lam - J_c^T impulse = f`` with the bilateral rows ``J x = b`` and the contact law.

    Attributes:
        x: (nv,) acceleration or velocity.
        lam: (m,) bilateral multipliers [N, N m], or impulses.
        impulse: (3 k,) contact forces or impulses.
        rank: independent bilateral rows.
        contact: how the contacts were solved; None without contacts.
        dynamics_residual: of the first equation, relative to the largest of its terms.
        constraint_residual: of the second, relative likewise.
    """

    x: Array
    lam: Array
    impulse: Array
    rank: int
    contact: ContactSolution | None
    dynamics_residual: float
    constraint_residual: float


def solve_motion(solver: Solver, system: System, f: Array, b: Array, contacts: ContactRows, method: str) -> Motion:
    """Solve for the motion and all multipliers.

    The solver gives the motion without contact x0 and the response X to unit contact impulses, bilateral rows held;
    the contact law acts on ``G = J_c X`` and ``J_c x0 + offset`` alone; the rest is superposition. So the solver is
    linear algebra and the law is physics, and neither knows the other.

    Args:
        solver: how to solve the linear part.
        system: M and the bilateral Jacobian.
        f: (nv,) generalised force, or momentum.
        b: (m,) right-hand side of the bilateral rows.
        contacts: rows of the contacts that may be closed.
        method: contact method, a name in ``METHODS``.

    Raises:
        UnknownName: no such contact method.
    """
    factorization = solver.factor(system)
    x, lam = factorization.solve(f, b)
    impulse, solution = np.zeros(0), None
    if len(contacts.friction):
        response, bilateral = factorization.solve(contacts.J, np.zeros((len(contacts.J), len(b))))
        delassus = contacts.J @ response.T
        free = contacts.J @ x + contacts.offset
        problem = ContactProblem(0.5 * (delassus + delassus.T), free, contacts.friction, contacts.slip)
        solution = solve_contacts(problem, method)
        impulse = solution.impulse
        x, lam = x + impulse @ response, lam + impulse @ bilateral
    reaction = lam @ system.J + impulse @ contacts.J
    momentum = system.M @ x
    held = system.J @ x
    return Motion(
        x,
        lam,
        impulse,
        factorization.rank,
        solution,
        _relative(momentum - reaction - f, f, momentum, reaction),
        _relative(held - b, b, np.abs(system.J) @ np.abs(x)),
    )


def _relative(residual: Array, *terms: Array) -> float:
    scale = max(np.abs(term).max(initial=0.0) for term in terms)
    return float(np.abs(residual).max(initial=0.0) / scale) if scale > 0.0 else 0.0

"""The one problem behind accelerations, impacts and time steps: bilateral rows held, contact rows complementary."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from constrained_sim.contact import kernels as contact_kernels
from constrained_sim.contact.problem import ContactProblem, ContactSolution, solve_contacts
from constrained_sim.solvers import Solver, System, kernels
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
    linear algebra and the law is physics, and neither knows the other. Without bilateral rows there is nothing for
    the solvers to differ in.

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
    if len(b):
        factorization = solver.factor(system)
        rank = factorization.rank
        x, lam = factorization.solve(f, b)
        response, bilateral = factorization.solve(contacts.J, np.zeros((len(contacts.J), len(b))))
    else:
        rank, lam = 0, b
        x, response = kernels.free_response(system.M, system.parents, f, contacts.J)
    impulse, solution = np.zeros(0), None
    if len(contacts.friction):
        delassus, free = contact_kernels.delassus(contacts.J, response, x, contacts.offset)
        solution = solve_contacts(ContactProblem(delassus, free, contacts.friction, contacts.slip), method)
        impulse = solution.impulse
        x = x + impulse @ response
        if len(b):
            lam = lam + impulse @ bilateral
    residuals = _residuals(system.M, x, f, contacts.J, impulse, system.J, lam, b)
    return Motion(x, lam, impulse, rank, solution, *residuals)


@numba.njit(cache=True)
def _residuals(M, x, f, J_contact, impulse, J, lam, b):  # type: ignore[no-untyped-def]
    """Return the residuals of the equation of motion and of the bilateral rows, relative to their largest terms."""
    momentum = M @ x
    reaction = lam @ J + impulse @ J_contact
    worst = largest = 0.0
    for i in range(x.shape[0]):
        worst = max(worst, abs(momentum[i] - reaction[i] - f[i]))
        largest = max(largest, abs(momentum[i]), abs(reaction[i]), abs(f[i]))
    dynamics = worst / largest if largest > 0.0 else worst
    worst = largest = 0.0
    for i in range(b.shape[0]):
        held, terms = -b[i], abs(b[i])
        for j in range(x.shape[0]):
            held += J[i, j] * x[j]
            terms += abs(J[i, j] * x[j])
        worst, largest = max(worst, abs(held)), max(largest, terms)
    return dynamics, worst / largest if largest > 0.0 else worst
